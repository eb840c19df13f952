"""MaxK, alone and within a product, beside sorting and dense products, and its gradients beside numeric ones."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")

import spgraph.torch as st  # noqa: E402
from test_torch import DEVICES, SHAPES, dense, edges, reduced, seed  # noqa: E402, F401


@pytest.mark.parametrize("rows, cols, k", [(0, 5, 2), (1, 1, 1), (7, 5, 2), (30, 256, 255), (30, 257, 9),
                                           (3, 40000, 100), (4, 5, 5), (4, 5, 9)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_maxk_keeps_the_largest_of_each_row(rows, cols, k, dtype):
    x = torch.randn(rows, cols).to(dtype)  # with equals, where types are short
    expected = torch.zeros_like(x)
    for i in range(rows):
        kept = torch.argsort(x[i].double(), descending=True, stable=True)[:k]
        expected[i, kept] = x[i, kept]
    found = st.maxk(x, k)
    assert found.dtype == dtype and torch.equal(found, expected)
    assert torch.equal(st.maxk(x.t().contiguous().t(), k), expected)
    assert torch.equal(st.maxk(x[None], k), expected[None])


def test_gradients_of_maxk_reach_what_was_kept():
    x = torch.randn(6, 300, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: st.maxk(x, 7), x)
    assert torch.autograd.gradgradcheck(lambda x: st.maxk(x, 7) ** 2, x)
    torch.library.opcheck(torch.ops.spgraph.maxk, (x.detach(), 7))
    y = torch.tensor([[1.0, 3.0, 2.0]], requires_grad=True)
    st.maxk(y, 2).sum().backward()
    assert y.grad.tolist() == [[0, 1, 1]]


def test_maxk_refuses_what_it_cannot_do():
    for x, k, kind in ((torch.zeros(2, 3), 0, ValueError), (torch.zeros(2, 3), -1, ValueError),
                       (torch.tensor(1.0), 1, ValueError),
                       (torch.zeros(2, 3, dtype=torch.int64), 1, NotImplementedError),
                       (torch.zeros(1, 70000), 1, NotImplementedError), (torch.zeros(2, 3), 1.5, TypeError)):
        with pytest.raises(kind):
            st.maxk(x, k)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("targets, sources, count", SHAPES[1:])
@pytest.mark.parametrize("cols, k", [(0, 1), (1, 1), (5, 2), (5, 9), (40, 1), (256, 255), (257, 9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_with_kept_numbers_are_dense_ones(targets, sources, count, cols, k, weighted, device):
    e, w = edges(targets, sources, count), torch.randn(count, dtype=torch.float64)
    d = dense(e, w if weighted else torch.ones_like(w), targets, sources)
    a = st.SparseMatrix.from_edge_index(e.to(device), w.to(device) if weighted else None, (sources, targets))
    for product, matrix in ((a, d), (a.t(), d.t())):
        x = torch.randn(matrix.shape[1], cols, dtype=torch.float64)
        expected = matrix @ st.maxk(x, k)
        means = expected / (matrix != 0).sum(1).clamp(min=1)[:, None]
        for reduce, found in (("sum", expected), ("mean", means)):
            torch.testing.assert_close(st.spmm_maxk(product, x.to(device), k, reduce).cpu(), found)


@pytest.mark.parametrize("dtype, exact", [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.float16, 1e-2),
                                          (torch.bfloat16, 5e-2)])
@pytest.mark.parametrize("device", DEVICES)
def test_products_with_kept_numbers_of_each_type_and_layout(dtype, exact, device):
    e, w = edges(20, 30, 90), torch.rand(90)
    a, d = st.SparseMatrix.from_edge_index(e, w, (30, 20)).to(device), dense(e, w.double(), 20, 30)
    for x in (torch.randn(30, 300).to(dtype), torch.randn(30, 24).to(dtype)[:, 3:20],
              torch.randn(18, 30).to(dtype).t(), torch.randn(60, 18).to(dtype)[::2]):
        y = st.spmm_maxk(a, x.to(device), 16)
        assert y.dtype == dtype and y.shape == (20, x.shape[1])
        torch.testing.assert_close(y.double().cpu(), d @ st.maxk(x, 16).double(), rtol=exact, atol=exact)


def test_repeated_edges_count_in_products_with_kept_numbers():
    e, x, w = edges(8, 8, 200, repeats=True), torch.randn(8, 9, dtype=torch.float64), torch.randn(200).double()
    for weight in (None, w):
        a = st.SparseMatrix.from_edge_index(e, weight, 8)
        ones = torch.ones(200, dtype=torch.float64) if weight is None else weight
        for reduce in ("sum", "mean"):
            torch.testing.assert_close(st.spmm_maxk(a, x, 4, reduce), reduced(e, ones, st.maxk(x, 4), 8, reduce))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("cols", [7, 300])
def test_gradients_of_products_with_kept_numbers_are_the_numeric_ones(cols, transposed, reduce, device):
    e = edges(6, 8, 25).to(device)
    w = torch.randn(25, dtype=torch.float64, device=device, requires_grad=True)
    x = torch.randn(6 if transposed else 8, cols, dtype=torch.float64, device=device, requires_grad=True)

    def product(w, x):
        a = st.SparseMatrix.from_edge_index(e, w, (8, 6))
        return st.spmm_maxk(a.t() if transposed else a, x, 3, reduce)

    assert torch.autograd.gradcheck(product, (w, x))
    if cols < 100:
        assert torch.autograd.gradgradcheck(product, (w, x))
    a = st.SparseMatrix.from_edge_index(e, None, (8, 6))
    a = a.t() if transposed else a
    dense_way = st.spmm(a, st.maxk(x, 3), reduce)
    g = torch.randn_like(dense_way)
    torch.testing.assert_close(*(torch.autograd.grad(y, x, g) for y in (st.spmm_maxk(a, x, 3, reduce), dense_way)))


def test_products_with_kept_numbers_refuse_what_they_cannot_do():
    a = st.SparseMatrix.from_edge_index(edges(5, 7, 10), torch.rand(10), (7, 5))
    for call, message in ((lambda: st.spmm_maxk(a, torch.rand(6, 4), 2), "7 rows are needed"),
                          (lambda: st.spmm_maxk(a.t(), torch.rand(7, 4), 2), "5 rows are needed"),
                          (lambda: st.spmm_maxk(a, torch.rand(7), 2), "two dimensions"),
                          (lambda: st.spmm_maxk(a, torch.rand(2, 7, 4), 2), "two dimensions"),
                          (lambda: st.spmm_maxk(a, torch.rand(7, 4), 0), "k is 0"),
                          (lambda: st.spmm_maxk(a, torch.rand(7, 4), 2, "max"), "'max': sum and mean"),
                          (lambda: st.spmm_maxk(a, torch.ones(7, 4, dtype=torch.int32), 2), "int32"),
                          (lambda: st.spmm_maxk(a, torch.rand(7, 70000), 2), "65536")):
        with pytest.raises((ValueError, NotImplementedError), match=message):
            call()
