"""Device memory of products of tensors: from torch's allocator, and given back."""

import concurrent.futures
import ctypes
import gc

import pytest

import spgraph
from spgraph import _abi, _core

torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")

import spgraph.torch as st  # noqa: E402
from spgraph.torch import _memory, _ops  # noqa: E402

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU, or torch does not see it")


@pytest.fixture
def torch_memory():
    st.use_torch_memory()
    yield
    st.use_torch_memory(False)


def call(number, *arguments):
    """As the library calls: through the address of the function, in a thread that holds no lock of Python."""
    types = dict(_abi.sp_device_allocator._fields_)
    address = ctypes.cast(getattr(_memory.TORCH, number), ctypes.c_void_p).value
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(types[number](address), *arguments).result()


def test_the_librarys_calls_reach_torchs_allocator(monkeypatch):
    given = []

    def allocate(*arguments):
        given.append(arguments)
        if arguments[0] > 1000:
            raise torch.OutOfMemoryError("none left")
        return 4096

    monkeypatch.setattr(torch.cuda, "caching_allocator_alloc", allocate)
    monkeypatch.setattr(torch.cuda, "caching_allocator_delete", given.append)
    assert call("allocate", None, 100, 1, 77) == 4096
    assert call("allocate", None, 100, 0, None) == 4096
    assert call("allocate", None, 5000, 0, 77) is None  # the library says so, with its sizes
    call("release", None, 4096, 100, 1, 77)
    assert given == [(100, 1, 77), (100, 0, 0), (5000, 0, 77), 4096]
    monkeypatch.setattr(torch.cuda, "caching_allocator_delete", None)  # as at exit
    call("release", None, 4096, 100, 1, 77)


def test_contexts_get_the_allocator_that_is_asked_for(torch_memory, monkeypatch):
    made = []
    monkeypatch.setattr(_ops, "Context", lambda *arguments: made.append(arguments))
    monkeypatch.setattr(_ops, "_contexts", {})
    _ops._context(torch.device("cuda", 1))
    monkeypatch.setattr(_ops, "source", None)
    _ops._context(torch.device("cuda", 1))
    _ops._context(torch.device("cpu"))
    assert made == [("cuda:1", _memory.TORCH), ("cuda:1", None), ("cpu", None)]


def test_products_on_the_cpu_stay_as_they_are(torch_memory, make):
    a, x = make(30, 20), torch.randn(20, 3, dtype=torch.float64)
    torch.testing.assert_close(st.SparseMatrix.from_scipy(a) @ x, torch.from_numpy(a @ x.numpy()))
    assert _core.Context("cpu", _memory.TORCH).key == ("cpu", 0, True)


def test_kept_memory_is_given_back_beside_other_threads(make):
    a = make(50, 50)
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        running = [threads.submit(spgraph.matmul, a, a) for _ in range(100)]
        for _ in range(100):
            st.empty_cache()
        assert len({done.result().nnz for done in running}) == 1
    assert 1 <= len(_core._idle["cpu", 0, False]) <= 4  # contexts are used again


# ---- on a GPU ----------------------------------------------------------------------------------------------


def edges():
    torch.manual_seed(3)
    return torch.randint(20_000, (2, 200_000), device="cuda")


@gpu
def test_memory_is_torchs_and_goes_back(torch_memory):
    x = torch.randn(20_000, 16, device="cuda")
    a = st.SparseMatrix.from_edge_index(edges(), size=20_000)
    before = torch.cuda.memory_allocated()
    y = a @ x
    assert torch.cuda.memory_allocated() > before + y.numel() * 4  # the plan
    st.use_torch_memory(False)
    assert torch.equal(st.SparseMatrix.from_edge_index(edges(), size=20_000) @ x, y)
    st.use_torch_memory()
    del a, y
    gc.collect()
    b = st.SparseMatrix.from_edge_index(edges()[:, :1], size=20_000)  # a session frees the plans that have ended
    del b
    assert torch.cuda.memory_allocated() < before + (1 << 20)


@gpu
def test_products_of_two_sparse_tensors_take_no_memory_for_good(torch_memory):
    a = torch.sparse_coo_tensor(edges(), torch.ones(200_000, device="cuda"), (20_000, 20_000)).to_sparse_csr()
    first = spgraph.matmul(a, a, top_k=5)
    before = torch.cuda.memory_allocated()
    for _ in range(5):
        again = spgraph.matmul(a, a, top_k=5)
    del again
    assert torch.cuda.memory_allocated() == before
    st.use_torch_memory(False)
    assert torch.equal(spgraph.matmul(a, a, top_k=5).values(), first.values())


@gpu
def test_the_bound_of_torch_bounds_products(torch_memory):
    a = st.SparseMatrix.from_edge_index(edges(), size=20_000)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    x = torch.randn(20_000, 16, device="cuda")
    y = torch.empty_like(x)
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 1024) / total)
    try:
        with pytest.raises((MemoryError, torch.OutOfMemoryError)):
            for _ in range(1000):  # what torch has cached is taken first
                x = torch.cat([x, (a @ x[:20_000])])
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert (a @ y.zero_()).abs().sum() == 0


@gpu
def test_a_cuda_graph_with_memory_of_torch(torch_memory):
    a = st.SparseMatrix.from_edge_index(edges(), size=20_000)
    x = torch.randn(20_000, 16, device="cuda")
    expected = a @ x
    with torch.cuda.stream(torch.cuda.Stream()):
        a @ x
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = a @ x
    x.mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, 2 * expected)
