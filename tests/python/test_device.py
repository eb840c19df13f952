"""Functions of sparse matrices of torch and cupy: the results are those of the same matrices of scipy.

"pretended cupy" has its arrays in host memory; all else runs as with cupy.
"""

import gc
import sys

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph
from spgraph import _core, graph
from support import pretended_cupy

KINDS = ("torch cpu", "torch cuda", "cupy", "pretended cupy")
NO_TORCH = "torch is not installed (LARGE=1 make test-python installs it)"


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    name = request.param
    if name == "pretended cupy":
        pretended_cupy.install(monkeypatch)
        return name
    if name == "cupy":
        cupy = pytest.importorskip("cupy", reason="cupy is not installed")
        if not cupy.cuda.is_available():
            pytest.skip("no GPU")
        return name
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    if name == "torch cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return name


def send(matrix, kind, index=np.int64):
    """A matrix of scipy as one of a kind; with kind "scipy" itself."""
    if kind == "scipy":
        return matrix
    if kind.endswith("cupy"):
        from cupyx.scipy import sparse

        return sparse.csr_matrix(ss.csr_matrix(matrix))
    import torch

    return torch.sparse_csr_tensor(torch.from_numpy(matrix.indptr.astype(index)),
                                   torch.from_numpy(matrix.indices.astype(index)), torch.from_numpy(matrix.data),
                                   matrix.shape).to(kind.split()[1])


def numbers(array, kind):
    """An array of numpy as one of a kind."""
    if kind == "scipy":
        return array
    if kind.endswith("cupy"):
        return sys.modules["cupy"].asarray(array)
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(kind.split()[1])


def back(array):
    """An array of any kind as one of numpy."""
    return array.get() if hasattr(array, "get") else array.cpu().numpy() if hasattr(array, "cpu") else array


def parts(matrix):
    """Offsets, columns and values."""
    if hasattr(matrix, "crow_indices"):
        return [back(part) for part in (matrix.crow_indices(), matrix.col_indices(), matrix.values())]
    return [back(part) for part in (matrix.indptr, matrix.indices, matrix.data)]


def same(found, expected, kind):
    assert type(found).__module__.startswith(pretended_cupy.__name__ if kind == "pretended cupy" else kind.split()[0])
    assert tuple(found.shape) == expected.shape
    for mine, theirs in zip(parts(found), parts(expected)):
        np.testing.assert_array_equal(mine, theirs)


# ---- results -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(make, kind, dtype):
    a, b, mask = make(300, 200, dtype=dtype), make(200, 250, dtype=dtype), make(300, 250, 0.2, dtype=dtype)
    x, y, m = send(a, kind), send(b, kind), send(mask, kind)
    same(spgraph.matmul(x, y), spgraph.matmul(a, b), kind)
    same(spgraph.matmul(x, y, mask=m), spgraph.matmul(a, b, mask=mask), kind)
    same(spgraph.matmul(x, y, mask=m, complement=True, semiring="min_plus"),
         spgraph.matmul(a, b, mask=mask, complement=True, semiring="min_plus"), kind)
    same(spgraph.matmul(x, x, transpose_a=True), spgraph.matmul(a, a, transpose_a=True), kind)
    same(spgraph.matmul(x, y, top_k=3), spgraph.matmul(a, b, top_k=3), kind)
    same(spgraph.matmul(x, y, semiring="or_and"), spgraph.matmul(a, b, semiring="or_and").astype(dtype), kind)
    empty = make(0, 200, dtype=dtype)
    same(spgraph.matmul(send(empty, kind), y), spgraph.matmul(empty, b), kind)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_similarity(make, kind, dtype):
    a, b = make(400, 60, 0.2, dtype=dtype), make(9000, 60, 0.2, dtype=dtype)
    x, y = send(a, kind), send(b, kind)
    same(spgraph.similarity(x, top_k=5), spgraph.similarity(a, top_k=5), kind)
    same(spgraph.similarity(x, y, top_k=7, metric="dot"), spgraph.similarity(a, b, top_k=7, metric="dot"), kind)
    same(spgraph.similarity(x, y, threshold=0.4), spgraph.similarity(a, b, threshold=0.4), kind)


def test_neighbours_become_clusters(kind):
    """Rows of five groups that share features within a group only: the kNN graph has the groups as clusters."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(5), 40)
    rows = np.repeat(np.arange(200), 8)
    cols = groups[rows] * 12 + rng.integers(0, 12, len(rows))
    items = ss.csr_array((np.ones(len(rows)), (rows, cols)), shape=(200, 60))
    items.sum_duplicates()
    offsets, columns, values = parts(spgraph.similarity(send(items, kind), top_k=10))
    near = ss.csr_array((values, columns, offsets), shape=(200, 200))
    labels = spgraph.cluster.mcl(near.maximum(near.T)).labels
    assert len(np.unique(labels)) >= 5
    for label in np.unique(labels):
        assert len(np.unique(groups[labels == label])) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_between_products(make, kind, dtype):
    a, b = make(300, 200, dtype=dtype), make(300, 200, 0.2, dtype=dtype)
    x, y = send(a, kind), send(b, kind)
    same(spgraph.add(x, y, 2, -0.5), spgraph.add(a, b, 2, -0.5), kind)
    same(spgraph.hadamard(x, y), spgraph.hadamard(a, b), kind)
    same(spgraph.triu(x, 3), spgraph.triu(a, 3), kind)
    same(spgraph.tril(x), spgraph.tril(a), kind)
    same(spgraph.top_k(x, 4), spgraph.top_k(a, 4), kind)
    expected = spgraph.transpose(a)
    same(spgraph.transpose(x), expected, kind)
    same(spgraph.transpose(send(make(0, 9, dtype=dtype), kind)), make(9, 0, dtype=dtype), kind)
    for index in (np.int32, np.int64):
        wrong = expected.copy()
        wrong.indices[:], wrong.data[:] = 0, np.nan
        out = send(wrong, kind, index)
        assert spgraph.transpose(x, out=out) is out
        same(out, expected, kind)
    with pytest.raises(ValueError, match="shape"):
        spgraph.transpose(x, out=x)
    with pytest.raises(ValueError, match="library of the operands"):
        spgraph.transpose(x, out=expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plans_of_products(make, kind, dtype):
    a, b, mask = make(300, 200, dtype=dtype), make(200, 250, dtype=dtype), make(300, 250, 0.2, dtype=dtype)
    x, y = send(a, kind), send(b, kind)
    plan, other = spgraph.MatmulPlan(x, y, mask=send(mask, kind)), spgraph.MatmulPlan(a, b, mask=mask)
    assert plan.nnz == other.nnz and plan.products == other.products
    same(plan(), other(), kind)
    twice, ones = 2 * a.data, np.ones(b.nnz, dtype)
    same(plan(numbers(twice, kind), numbers(ones, kind), alpha=3), other(twice, ones, alpha=3), kind)
    out, theirs = plan(), other()
    assert plan(numbers(twice, kind), out=out, alpha=0.5, beta=2) is out
    same(out, other(twice, out=theirs, alpha=0.5, beta=2), kind)
    assert plan(out=out) is out
    same(out, other(), kind)
    with pytest.raises(ValueError, match="entries of the product"):
        plan(out=send(mask, kind))
    with pytest.raises(ValueError, match="has the shape"):
        plan(numbers(ones, kind))
    counts = spgraph.MatmulPlan(x, y, semiring="or_and")
    same(counts(), spgraph.matmul(a, b, semiring="or_and").astype(dtype), kind)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transpose", [False, True])
def test_plans_of_dense_products(make, rng, kind, dtype, transpose):
    a = make(300, 200, dtype=dtype)
    plan, other = (spgraph.SpmmPlan(m, 8, transpose=transpose) for m in (send(a, kind), a))
    rows, cols = a.shape[::-1] if transpose else a.shape
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    for shape in ((cols, 8), (cols, 1), (cols,), (cols, 0), (3, cols, 5), (cols, 70)):
        x = rng.standard_normal(shape).astype(dtype)
        y = plan(numbers(x, kind))
        assert type(y) is type(numbers(x, kind)) and y.device == numbers(x, kind).device
        assert back(y).dtype == dtype
        np.testing.assert_allclose(back(y), other(x), **close)
    x = rng.standard_normal((cols, 6)).astype(dtype)
    there = numbers(x, kind)
    for view, same_of in ((there[:, ::2], x[:, ::2]), (there[:, 1:4], x[:, 1:4]),
                          (numbers(x.T, kind).T, x), (numbers(x.astype(np.int64), kind), x.astype(np.int64))):
        np.testing.assert_allclose(back(plan(view)), other(same_of), **close)
    for out in (numbers(np.ones((rows, 6), dtype), kind), numbers(np.ones((6, rows), dtype), kind).T):
        assert plan(there, out=out, alpha=2, beta=3) is out
        np.testing.assert_allclose(back(out), 2 * other(x) + 3, **close)
    if dtype == np.float32:
        half = plan(numbers(x.astype(np.float16), kind))
        assert back(half).dtype == np.float16
        np.testing.assert_allclose(back(half).astype(float), other(x), rtol=1e-2, atol=1e-1)
    for bad, mistake in ((x[1:], ValueError), (x[None, None], ValueError), (x.astype(complex), NotImplementedError)):
        with pytest.raises(mistake):
            plan(numbers(bad, kind))
    with pytest.raises(TypeError, match="matmul multiplies two"):
        plan(send(a, kind))
    with pytest.raises(TypeError, match="out is list"):
        plan(there, out=[])


@pytest.mark.parametrize("reduce", ["mean", "max", "min"])
def test_reductions(make, rng, kind, reduce):
    a, x = make(50, 40), rng.standard_normal((40, 5))
    np.testing.assert_allclose(back(spgraph.SpmmPlan(send(a, kind), 5, reduce=reduce)(numbers(x, kind))),
                               spgraph.SpmmPlan(a, 5, reduce=reduce)(x), rtol=1e-12, atol=1e-12)


def test_plans_on_a_gpu_are_freed_by_a_later_call(make, kind):
    """The collector may end them while a CUDA graph is captured."""
    if kind == "torch cpu":
        pytest.skip("plans on the CPU are freed at once")
    if kind == "torch cuda":
        from spgraph.torch._ops import _unused as waiting
    else:
        waiting = _core.unused
    a = send(make(20, 20), kind)
    gc.collect()
    spgraph.matmul(a, a)
    assert not waiting
    plans = spgraph.MatmulPlan(a, a), spgraph.SpmmPlan(a, 3)
    del plans
    gc.collect()
    assert len(waiting) == 2
    spgraph.matmul(a, a)
    assert not waiting


@pytest.mark.parametrize("combine", ["sum", "max", "first", "mean", "count"])
@pytest.mark.parametrize("loops", ["keep", "drop", "only"])
def test_quotients(make, rng, kind, combine, loops):
    a, labels = make(300, 300, 0.05), rng.integers(-1, 12, 300)
    options = {"combine": combine, "loops": loops, "groups": 13}
    expected = graph.contract(a, labels, **options)
    x = send(a, kind)
    for given in (labels, numbers(labels, kind), numbers(labels.astype(np.int32), kind), list(labels)):
        same(graph.contract(x, given, **options), expected, kind)
    for index in (np.int32, np.int64):
        out = send(expected * 0, kind, index)
        assert graph.contract(x, labels, out=out, **options) is out
        same(out, expected, kind)


def test_quotients_that_are_refused(make, kind):
    a = make(60, 60)
    x, labels = send(a, kind), np.arange(60) // 6
    expected = graph.contract(a, labels)
    same(graph.contract(x, numbers(labels, kind)), expected, kind)
    for more in (1, -1):
        count = expected.nnz + more
        out = send(ss.csr_array((np.zeros(count), np.zeros(count, np.int32), np.minimum(np.arange(11), count)),
                                shape=(10, 10)), kind)
        with pytest.raises(ValueError, match="entries"):
            graph.contract(x, labels, out=out)
    for bad, options in ((labels[1:], {}), (labels + 0.5, {}), (labels + 2**40, {}), (labels, {"groups": 3})):
        with pytest.raises(ValueError):
            graph.contract(x, numbers(bad, kind), **options)
    with pytest.raises(ValueError, match="square"):
        graph.contract(send(make(3, 4, 0.5), kind), [0, 1, 2])
    for call in (graph.contract, graph.coarsen):
        with pytest.raises(ValueError, match="where they lie"):
            call(x, labels if call is graph.contract else 1, device="cpu")


def test_groups_that_overlap(make, kind):
    a, s = make(80, 80), make(7, 80, 0.3)
    same(graph.contract(send(a, kind), send(s, kind)), graph.contract(a, s), kind)
    same(graph.contract(send(a, kind), send(s, kind), combine="max"), graph.contract(a, s, combine="max"), kind)
    member = s.astype(bool)
    same(graph.contract(send(a, kind), send(member, kind)), graph.contract(a, member), kind)
    with pytest.raises(TypeError, match="one library"):
        graph.contract(send(a, kind), s)


@pytest.mark.parametrize("method", graph.METHODS)
def test_levels(make, rng, kind, method):
    a = abs(make(400, 400, 0.01))
    a = spgraph.add(a, spgraph.transpose(a))
    weights = rng.integers(1, 4, 400).astype(float)
    for options in ({}, {"weights": weights, "max_weight": 20.0, "loops": "drop"}, {"least": 200}):
        expected = graph.coarsen(a, 3, method, **options)
        found = graph.coarsen(send(a, kind), 3, method, **options)
        assert len(found) == len(expected) > 0
        for mine, theirs in zip(found, expected):
            same(mine.graph, theirs.graph, kind)
            assert type(mine.labels) is type(numbers(weights, kind)) and back(mine.labels).dtype == np.int32
            np.testing.assert_array_equal(back(mine.labels), theirs.labels)
            np.testing.assert_array_equal(back(mine.nodes), theirs.nodes)
    found = graph.coarsen(send(a, kind), 1, method, weights=numbers(weights, kind))
    np.testing.assert_array_equal(back(found[0].labels), graph.coarsen(a, 1, method, weights=weights)[0].labels)
    for bad in (weights[1:], weights - 1, weights * np.inf):
        with pytest.raises(ValueError, match="numbers above 0"):
            graph.coarsen(send(a, kind), 1, method, weights=numbers(bad, kind))


def test_orders(make, kind):
    a = make(90, 90)
    x, order = send(a, kind), graph.order(a, "degree")
    found = graph.order(x, "degree")
    np.testing.assert_array_equal(back(found), order)
    same(graph.reorder(x, found), graph.reorder(a, order), kind)
    same(graph.reorder(x, order), graph.reorder(a, order), kind)
    if kind in ("torch cuda", "cupy"):
        with pytest.raises(ValueError, match="on the host"):
            graph.order(x)
    else:
        np.testing.assert_array_equal(back(graph.order(x)), graph.order(a))
    for bad in (order[1:], order * 0, order - 1, order + 0.5):
        with pytest.raises(ValueError, match="once"):
            graph.reorder(x, numbers(bad, kind))


def test_indices_keep_their_type(make):
    torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    a = make(50, 50)
    assert spgraph.matmul(*[send(a, "torch cpu", np.int32)] * 2).col_indices().dtype == torch.int32
    assert spgraph.matmul(*[send(a, "torch cpu", np.int64)] * 2).crow_indices().dtype == torch.int64


def test_wrong_tensors_are_refused(make):
    torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    a = make(20, 20)
    x = send(a, "torch cpu")
    with pytest.raises(TypeError, match="must be of one library"):
        spgraph.matmul(x, a)
    with pytest.raises(TypeError, match="to_sparse_csr"):
        spgraph.matmul(x, x.to_dense())
    with pytest.raises(NotImplementedError, match="float16"):
        spgraph.matmul(x.to(torch.float16), x)
    with pytest.raises(ValueError, match="values of the same type"):
        spgraph.matmul(x, x.to(torch.float32))
    with pytest.raises(NotImplementedError, match="gradients"):
        spgraph.matmul(x.clone().requires_grad_(), x)
    for call in (spgraph.matmul, spgraph.similarity):
        with pytest.raises(ValueError, match="where they lie"):
            call(x, x, device="cpu")
    with pytest.raises(ValueError, match="ascend"):
        spgraph.matmul(torch.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2)), torch.eye(2).to_sparse_csr())


def test_side_streams(make):
    """A product sees what was queued before it in the current stream, and what is queued after it sees the product."""
    torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    a = make(3000, 3000, 0.01)
    x, expected = send(a, "torch cuda"), spgraph.matmul(a, a)
    for _ in range(20):
        with torch.cuda.stream(torch.cuda.Stream()):
            values = torch.zeros_like(x.values())
            torch.cuda._sleep(10_000_000)
            values.copy_(x.values())
            y = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)
            found = spgraph.matmul(y, y)
            values.fill_(0)
            double = (found.values() * 2).cpu()
        np.testing.assert_array_equal(double.numpy(), 2 * expected.data)


# ---- arrays of other libraries -----------------------------------------------------------------------------


class Lent:
    """An array that is known by DLPack only."""

    def __init__(self, given):
        self.given = given

    def __dlpack__(self, **options):
        return self.given.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.given.__dlpack_device__()


class Described:
    """An array that is known by NumPy's or CUDA's interface only."""

    def __init__(self, given, stream=None):
        self.given = given
        name = "__cuda_array_interface__" if hasattr(given, "__cuda_array_interface__") else "__array_interface__"
        setattr(self, name, {**getattr(given, name), **({} if stream is None else {"stream": stream})})


class Elsewhere:
    """An array on a GPU that nobody may read here."""

    __cuda_array_interface__ = {"shape": (40, 3), "typestr": "<f8", "data": (4096, True), "version": 3}


class ElsewhereByDLPack:
    def __dlpack__(self, **_):
        raise AssertionError("read")

    def __dlpack_device__(self):
        return 2, 0  # kDLCUDA


@pytest.mark.parametrize("where", ["scipy", "torch cpu"])
def test_dense_operands_of_any_library(make, rng, where):
    if where != "scipy":
        pytest.importorskip("torch", reason=NO_TORCH)
    a, x = make(30, 40), rng.standard_normal((40, 3))
    plan, product = spgraph.SpmmPlan(send(a, where), 3), spgraph.MatmulPlan(send(a, where), send(a.T.tocsr(), where))
    expected, twice = spgraph.SpmmPlan(a, 3)(x), 2 * a.data
    frozen = x.copy()
    frozen.flags.writeable = False
    forms = [x, frozen, x[::-1][::-1], x.astype(">f8"), x.tolist(), Lent(x), Described(x), memoryview(x)]
    if "torch" in sys.modules:
        forms += [sys.modules["torch"].from_numpy(x), Lent(sys.modules["torch"].from_numpy(x))]
    for form in forms:
        y = plan(form)
        assert type(y) is type(numbers(x, where))
        np.testing.assert_array_equal(back(y), expected)
    for form in (twice, Lent(twice), Described(twice), twice.tolist()):
        np.testing.assert_array_equal(parts(product(form))[2], parts(product(numbers(twice, where)))[2])
    np.testing.assert_array_equal(back(plan(Lent(x[:, 1]))), spgraph.SpmmPlan(a, 3)(x[:, 1]))
    np.testing.assert_array_equal(np.from_dlpack(plan(x)), expected)  # so do other libraries read the result
    for wrong in (Elsewhere(), ElsewhereByDLPack()):
        for call in (plan, product):
            with pytest.raises((ValueError, RuntimeError, AssertionError)):
                call(wrong)
    with pytest.raises(ValueError, match="lies on a GPU"):
        plan(Elsewhere())


@pytest.mark.parametrize("where", ["scipy", "torch cpu"])
def test_arrays_of_jax(make, rng, where):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    if where != "scipy":
        pytest.importorskip("torch", reason=NO_TORCH)
    a, x = make(30, 40, dtype=np.float32), rng.standard_normal((40, 3)).astype(np.float32)
    y = spgraph.SpmmPlan(send(a, where), 3)(jax.device_put(x, jax.devices("cpu")[0]))
    np.testing.assert_array_equal(back(y), spgraph.SpmmPlan(a, 3)(x))


def test_dense_operands_on_a_gpu(make, rng, kind):
    if kind == "torch cpu":
        pytest.skip("not on a GPU")
    a, x = make(30, 40), rng.standard_normal((40, 3))
    plan, there = spgraph.SpmmPlan(send(a, kind), 3), numbers(x, kind)
    expected = back(plan(there))
    forms = [Described(there)] if kind == "pretended cupy" else [Lent(there), Described(there), Described(there, 1)]
    for form in forms:
        y = plan(form)
        assert type(y) is type(there)
        np.testing.assert_array_equal(back(y), expected)
    with pytest.raises((TypeError, ValueError), match="x (is|lies)"):
        plan(x)
    with pytest.raises((TypeError, ValueError), match="x (is|lies)"):
        plan(x.tolist())
    if kind != "pretended cupy":
        with pytest.raises(ValueError, match="lies on a GPU"):
            spgraph.SpmmPlan(a, 3)(there)


def test_arrays_of_numba(make, rng):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    cuda = pytest.importorskip("numba.cuda", reason="numba is not installed")
    if not torch.cuda.is_available() or not cuda.is_available():
        pytest.skip("no GPU")
    a, x = make(30, 40), rng.standard_normal((40, 3))
    y = spgraph.SpmmPlan(send(a, "torch cuda"), 3)(cuda.to_device(x))
    np.testing.assert_allclose(back(y), a @ x)
    np.testing.assert_allclose(cuda.as_cuda_array(y).copy_to_host(), a @ x)


def test_interfaces_with_a_stream(make):
    """The work that an array's own library has queued is waited for."""
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    a = make(500, 400)
    plan, x = spgraph.SpmmPlan(send(a, "torch cuda"), 3), torch.rand(400, 3, dtype=torch.float64, device="cuda")
    expected = plan(x)
    for _ in range(10):
        side, late = torch.cuda.Stream(), torch.zeros_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(10_000_000)
            late.copy_(x)
        assert torch.equal(plan(Described(late, side.cuda_stream)), expected)


def test_plans_in_side_streams(make):
    """As products do, plans see what was queued before them, and what is queued after them sees their results."""
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    a = make(3000, 3000, 0.01)
    t = send(a, "torch cuda")
    x = torch.rand(3000, 8, dtype=torch.float64, device="cuda")
    product, dense = spgraph.MatmulPlan(t, t), spgraph.SpmmPlan(t, 8)
    expected, y = product().values() * 3, dense(x) * 3
    out = product()
    torch.cuda.synchronize()
    for _ in range(20):
        with torch.cuda.stream(torch.cuda.Stream()):
            late, values = torch.zeros_like(x), torch.zeros_like(t.values())
            torch.cuda._sleep(10_000_000)
            late.copy_(x)
            values.copy_(t.values())
            found, also = dense(late) * 3, product(values, out=out).values() * 3
            late.fill_(0)
            values.fill_(0)
            found, also = found.cpu(), also.cpu()
        torch.testing.assert_close(found, y.cpu())
        torch.testing.assert_close(also, expected.cpu())


def test_dense_plans_in_a_cuda_graph(make):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    plan = spgraph.SpmmPlan(send(make(300, 200, dtype=np.float32), "torch cuda"), 8)
    x = torch.rand(200, 8, device="cuda")
    expected, out = plan(x), torch.empty(300, 8, device="cuda")
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        plan(x, out=out)
    x.mul_(2)
    captured.replay()
    torch.testing.assert_close(out, 2 * expected)


# ---- tensors -----------------------------------------------------------------------------------------------


def test_gradients_are_refused(make):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    t = send(make(20, 20), "torch cpu")
    x = torch.ones(20, 2, dtype=torch.float64, requires_grad=True)
    for call in (lambda: spgraph.SpmmPlan(t, 2)(x), lambda: spgraph.transpose(t.clone().requires_grad_()),
                 lambda: spgraph.MatmulPlan(t, t)(t.values().clone().requires_grad_()),
                 lambda: spgraph.SpmmPlan(t, 2)(x.detach(), out=x)):
        with pytest.raises(NotImplementedError, match="gradients"):
            call()


def test_torch_notices_what_is_written(make):
    """A SparseMatrix of a tensor that has new values since gives them to its plans."""
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    from spgraph.torch import SparseMatrix

    a = make(20, 20)
    t, x, y = send(a, "torch cpu"), torch.ones(20, 2, dtype=torch.float64), torch.ones(20, 2, dtype=torch.float64)
    plan = spgraph.MatmulPlan(t, t)
    out = plan()
    matrix = SparseMatrix.from_torch(out)
    before = matrix @ x
    plan(out=out, alpha=2)
    torch.testing.assert_close(matrix @ x, 2 * before)
    versions = y._version, out.values()._version
    spgraph.SpmmPlan(t, 2)(x, out=y)
    spgraph.transpose(spgraph.transpose(out), out=out)
    assert y._version > versions[0] and out.values()._version > versions[1]
    with torch.inference_mode():
        spgraph.SpmmPlan(t, 2)(x, out=torch.empty(20, 2, dtype=torch.float64))


def test_bfloat16(make):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    a = make(20, 30, dtype=np.float32)
    x = torch.randn(30, 4).bfloat16()
    y = spgraph.SpmmPlan(send(a, "torch cpu"), 4)(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), torch.from_numpy(a.toarray()) @ x.float(), rtol=2e-2, atol=2e-2)


def test_streams_of_cupy(make, monkeypatch):
    streams = pretended_cupy.install(monkeypatch)
    a = send(make(20, 20), "pretended cupy")
    plan = spgraph.MatmulPlan(a, a)
    plan()
    spgraph.add(a, a)
    assert streams == [77, None] * 3
    with pytest.raises(ZeroDivisionError):
        with spgraph._device.Cupy({"a": a}, {}).session():
            raise ZeroDivisionError
    assert streams[-1] is None  # a context that waits for other calls holds no stream of cupy's
