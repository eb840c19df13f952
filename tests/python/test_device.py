"""Products and joins of the sparse matrices of torch and cupy are those of the same matrices of scipy."""

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph

KINDS = ("torch cpu", "torch cuda", "cupy")


@pytest.fixture(params=KINDS)
def kind(request):
    name = request.param
    if name == "cupy":
        cupy = pytest.importorskip("cupy", reason="cupy is not installed")
        if not cupy.cuda.is_available():
            pytest.skip("no GPU")
        return name
    torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    if name == "torch cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return name


def send(matrix, kind, index=np.int64):
    if kind == "cupy":
        from cupyx.scipy import sparse

        return sparse.csr_matrix(ss.csr_matrix(matrix))
    import torch

    return torch.sparse_csr_tensor(torch.from_numpy(matrix.indptr.astype(index)),
                                   torch.from_numpy(matrix.indices.astype(index)), torch.from_numpy(matrix.data),
                                   matrix.shape).to(kind.split()[1])


def same(found, expected, kind):
    if kind == "cupy":
        found = found.get()
        parts = found.indptr, found.indices, found.data
    else:
        parts = [part.cpu().numpy() for part in (found.crow_indices(), found.col_indices(), found.values())]
    assert tuple(found.shape) == expected.shape
    for mine, theirs in zip(parts, (expected.indptr, expected.indices, expected.data)):
        np.testing.assert_array_equal(mine, theirs)


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
    near = spgraph.similarity(send(items, kind), top_k=10)
    if kind == "cupy":
        near = near.get()
    else:
        near = ss.csr_array(tuple(part.cpu().numpy() for part in (near.values(), near.col_indices(),
                                                                   near.crow_indices())), shape=tuple(near.shape))
    labels = spgraph.cluster.mcl(near.maximum(near.T)).labels
    assert len(np.unique(labels)) >= 5
    for label in np.unique(labels):
        assert len(np.unique(groups[labels == label])) == 1


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
