"""What the package does in a process: threads, forks, Ctrl-C, memory, errors of the library, the interface number."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph
from spgraph import _core, cluster


def square(n, density, seed=1):
    """A random matrix; functions of scipy that make one take a seed by different names in different versions."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, n, int(n * n * density)), rng.integers(0, n, int(n * n * density))
    return ss.coo_array((rng.random(len(row)), (row, col)), shape=(n, n)).tocsr()


def product_bits(seed):
    a = square(2000, 0.01, seed)
    return spgraph.matmul(a, a).data.tobytes()


def count_threads(_):
    return spgraph.get_threads()


def test_forked_children_work():
    here = [product_bits(seed) for seed in range(4)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(product_bits, range(4)).get(timeout=120) == here
        assert pool.map_async(count_threads, range(2)).get(timeout=120) == [1, 1]
    assert product_bits(0) == here[0]


def test_threads_run_side_by_side():
    expected = [product_bits(seed) for seed in range(4)]
    found = [None] * 4

    def work(i):
        for _ in range(5):
            found[i] = product_bits(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_other_threads_run_during_a_call():
    a = square(3000, 0.03)
    ticks, ended = [], threading.Event()

    def tick():
        while not ended.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    spgraph.matmul(a, a)
    end = time.perf_counter()
    ended.set()
    thread.join()
    assert sum(begin < t < end for t in ticks) >= 3


LONG = """
import os, signal, sys, threading, time
import numpy as np, scipy.sparse as ss
import spgraph
from spgraph import cluster
n, k = 20000, 300
columns = np.sort((np.arange(n)[:, None] + 61 * np.arange(k)) % n, axis=1).astype(np.int32)
a = ss.csr_array((np.ones(n * k, np.float32), columns.ravel(), np.arange(n + 1) * k), shape=(n, n))
spgraph.matmul(a[:10], a)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what it runs in the background without
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.time()
try:
    {call}
    print("ended")
except KeyboardInterrupt as failure:
    print("interrupted" if time.time() - begin < 100 else "late")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    print("and again")
print(spgraph.matmul(a[:2, :2], a[:2, :2]).shape)
"""


@pytest.mark.parametrize("call", ["spgraph.matmul(a, a)", "cluster.mcl(abs(a), 1.2)", "spgraph.MatmulPlan(a, a)"])
def test_ctrl_c_ends_a_long_call(call):
    said = subprocess.run([sys.executable, "-c", LONG.format(call=call)], capture_output=True, text=True, timeout=240)
    assert said.stdout.split("\n")[:3] == ["interrupted", "and again", "(2, 2)"], said


def test_a_handler_of_the_user_is_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        os.kill(os.getpid(), signal.SIGINT)
        spgraph.matmul(ss.eye_array(3, format="csr"), ss.eye_array(3, format="csr"))
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_memory_comes_back():
    a = square(1000, 0.02)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(5):
        spgraph.MatmulPlan(a, a)()
    before = resident()
    for _ in range(50):  # 4 MB each
        spgraph.matmul(a, a)
        spgraph.MatmulPlan(a, a)()
    assert resident() - before < 50e6


def test_results_live_to_the_end_of_the_interpreter():
    code = ("import scipy.sparse as ss, spgraph; a = ss.eye_array(9, format='csr'); b = spgraph.matmul(a, a); "
            "p = spgraph.MatmulPlan(a, a); q = spgraph.SpmmPlan(a, 3); import spgraph as kept; kept.cycle = [b, p, q]; "
            "kept.cycle.append(kept.cycle)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


def test_the_environment_stays():
    code = ("import os; before = dict(os.environ); import spgraph; assert dict(os.environ) == before; "
            "import ctypes; print(ctypes.CDLL(None).getenv(b'OMP_WAIT_POLICY'))")
    env = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env).stdout == "0\n"


def test_statuses_are_exceptions():
    kinds = {_core._abi.SP_ERROR_HOST_MEMORY: MemoryError, _core._abi.SP_ERROR_UNSUPPORTED: NotImplementedError,
             _core._abi.SP_ERROR_INTERRUPTED: KeyboardInterrupt, _core._abi.SP_ERROR_DEVICE: RuntimeError}
    with _core.Session() as session:
        for status, kind in kinds.items():
            with pytest.raises(kind):
                session.check(status)
    with pytest.raises(RuntimeError, match="CUDA|device"):
        cluster.mcl(ss.eye_array(3, format="csr"), device="cuda:1023")


def test_interface_is_that_of_the_headers():
    pytest.importorskip("pycparser")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    said = subprocess.run([sys.executable, os.path.join(root, "python", "tools", "abi.py"), "--check"],
                          capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_package_has_no_warnings_for_type_checkers():
    mypy = pytest.importorskip("mypy.api")
    said, errors, status = mypy.run(["-p", "spgraph", "--ignore-missing-imports", "--no-incremental"])
    assert status == 0, said + errors
