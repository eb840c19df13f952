"""What the package does in a process: threads, forks, Ctrl-C, memory, errors of the library, the interface number."""

import ctypes
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph
from spgraph import _core, cluster, graph


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


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_comes_back():
    a = square(1000, 0.02)
    for _ in range(5):
        spgraph.MatmulPlan(a, a)()
    before = resident()
    for _ in range(50):  # 4 MB each
        spgraph.matmul(a, a)
        spgraph.MatmulPlan(a, a)()
    assert resident() - before < 50e6


CALLS = {
    "matmul": lambda a, x: spgraph.matmul(a, a),
    "top_k": lambda a, x: spgraph.matmul(a, a, top_k=5),
    "MatmulPlan": lambda a, x: spgraph.MatmulPlan(a, a)(),
    "SpmmPlan": lambda a, x: spgraph.SpmmPlan(a, x.shape[1])(x),
    "similarity": lambda a, x: spgraph.similarity(a, threshold=0.1),
    "contract": lambda a, x: graph.contract(a, np.arange(a.shape[0]) // 2),
    "coarsen": lambda a, x: graph.coarsen(a, 1),
    "order": lambda a, x: graph.reorder(a, graph.order(a)),
    "a failure": lambda a, x: pytest.raises(ValueError, spgraph.matmul, a, a[:3]),
}


@pytest.mark.parametrize("name", CALLS)
def test_memory_is_flat_over_1000_calls(name):
    """A call that kept a result or a plan, 50 kB or more, would take 40 MB."""
    a, x = square(300, 0.03), np.ones((300, 64))
    for _ in range(200):
        CALLS[name](a, x)
    before = resident()
    for _ in range(1000):
        CALLS[name](a, x)
    assert resident() - before < 12e6


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


OTHER = """
#include <stdint.h>
const char *sp_version(void) {{ return "{version}"; }}
int sp_abi(void) {{ return {abi}; }}
const int32_t *spgraph_struct_sizes(void) {{ static const int32_t sizes[] = {{{sizes}, 0}}; return sizes; }}
"""


@pytest.mark.parametrize("change, sentence", [
    (dict(version="9.8.7"), f"has version 9.8.7, this package needs {spgraph.__version__}; install the wheel again"),
    (dict(abi=99), f"has ABI 99, this package needs {_core._abi.SP_ABI}; install the wheel again"),
    (dict(resize=(3, 8)), "has a struct sp_csr of size 64, this package needs 56; install the wheel again"),
    (dict(most=5), "has a struct sp_spgemm_options of size 0, this package needs 32; install the wheel again"),
    (dict(more=16), "has more structs than this package knows; install the wheel again"),
    (None, "is not the library of this package"),
])
def test_a_library_of_another_version_is_refused(tmp_path, change, sentence):
    compiler = shutil.which(os.environ.get("CC", "cc").split()[0])
    if compiler is None:
        pytest.skip("no C compiler")
    package = tmp_path / "spgraph"
    shutil.copytree(os.path.dirname(spgraph.__file__), package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    sizes = [ctypes.sizeof(struct) for struct in _core._abi.STRUCTS]
    if change and "resize" in change:
        which, by = change["resize"]
        sizes[which] += by
    sizes = (sizes + [change["more"]] if change and "more" in change else sizes)[: (change or {}).get("most")]
    source = "int nothing;" if change is None else OTHER.format(
        version=change.get("version", spgraph.__version__), abi=change.get("abi", _core._abi.SP_ABI),
        sizes=", ".join(map(str, sizes)))
    (tmp_path / "other.c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", package / "libspgraph.so", tmp_path / "other.c"], check=True)
    said = subprocess.run([sys.executable, "-c", "import spgraph"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert said.returncode == 1 and said.stderr.strip().split("\n")[-1].startswith("ImportError: spgraph: ")
    assert sentence in said.stderr


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
