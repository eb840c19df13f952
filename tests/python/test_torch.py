"""Products of tensors beside dense ones and numeric derivatives, and layers beside PyG's."""

import copy
import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as ss

torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")

import spgraph.torch as st  # noqa: E402
from spgraph.torch import _ops  # noqa: E402
from support.devices import DEVICES  # noqa: E402

SHAPES = [(0, 0, 0), (0, 4, 0), (4, 0, 0), (5, 5, 0), (1, 30, 12), (30, 1, 12), (20, 30, 90), (6, 6, 36)]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(5)


def edges(targets, sources, count, repeats=False, device="cpu"):
    """`count` edges from sources to targets; without repeats they differ."""
    if repeats:
        return torch.stack([torch.randint(sources, (count,)), torch.randint(targets, (count,))]).to(device)
    places = torch.randperm(targets * sources)[:count]
    return torch.stack([places % max(sources, 1), places // max(sources, 1)]).to(device)


def dense(edge_index, weight, targets, sources):
    return torch.zeros(targets, sources, dtype=weight.dtype).index_put((edge_index[1], edge_index[0]), weight, True)


def reduced(edge_index, weight, x, targets, reduce):
    """The definition, a target after another."""
    rows = []
    for i in range(targets):
        mine = edge_index[1] == i
        messages = weight[mine, None] * x[edge_index[0][mine]]
        if len(messages) == 0:
            rows.append(torch.zeros(x.shape[1], dtype=x.dtype))
        else:
            rows.append({"sum": messages.sum, "mean": messages.mean, "max": messages.amax,
                         "min": messages.amin}[reduce](0))
    return torch.stack(rows) if rows else x.new_zeros(0, x.shape[1])


@pytest.mark.parametrize("targets, sources, count", SHAPES)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_are_what_they_are_defined_as(targets, sources, count, reduce, weighted):
    e = edges(targets, sources, count)
    w = torch.randn(count, dtype=torch.float64) if weighted else None
    x = torch.randn(sources, 7, dtype=torch.float64)
    a = st.SparseMatrix.from_edge_index(e, w, (sources, targets))
    assert a.shape == (targets, sources) and a.nnz == count
    ones = torch.ones(count, dtype=torch.float64) if w is None else w
    torch.testing.assert_close(st.spmm(a, x, reduce), reduced(e, ones, x, targets, reduce))
    y = torch.randn(targets, 7, dtype=torch.float64)
    torch.testing.assert_close(st.spmm(a.t(), y, reduce), reduced(e.flip(0), ones, y, sources, reduce))


@pytest.mark.parametrize("dtype, exact", [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.float16, 1e-2),
                                          (torch.bfloat16, 5e-2)])
@pytest.mark.parametrize("device", DEVICES)
def test_types_of_x(dtype, exact, device):
    e, w = edges(20, 20, 60), torch.rand(60)
    x = torch.randn(20, 16).to(dtype)
    a = st.SparseMatrix.from_edge_index(e, w, 20).to(device)
    y = (a @ x.to(device)).cpu()
    assert y.dtype == dtype
    torch.testing.assert_close(y.double(), dense(e, w.double(), 20, 20) @ x.double(), rtol=exact, atol=exact)
    torch.testing.assert_close(st.spmm(a, x.to(device)[:, 3]).cpu(), y[:, 3])


def test_layouts_of_x():
    e = edges(9, 9, 30)
    a, d = st.SparseMatrix.from_edge_index(e, None, 9), dense(e, torch.ones(30), 9, 9)
    for x in (torch.randn(9, 12)[:, 2:7], torch.randn(12, 9).t(), torch.randn(18, 4)[::2], torch.randn(9, 8)[:, ::2],
              torch.randn(1, 5).expand(9, 5), torch.randn(9, 0), torch.randn(9, 1)):
        torch.testing.assert_close(a @ x, d @ x)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_batches_are_products_of_their_own(device, reduce):
    e, x = edges(20, 15, 60).to(device), torch.randn(4, 15, 6, dtype=torch.float64, device=device)
    w = torch.rand(e.shape[1], dtype=torch.float64, device=device, requires_grad=True)
    a = st.SparseMatrix.from_edge_index(e, w, (15, 20))
    expected = torch.stack([st.spmm(a, one, reduce) for one in x])
    x.requires_grad_()
    y = st.spmm(a, x, reduce)
    assert y.shape == (4, 20, 6)
    torch.testing.assert_close(y, expected)
    if reduce == "sum":
        y.square().sum().backward(retain_graph=True)
        before = w.grad.clone()
        w.grad = None
        expected.square().sum().backward()
        torch.testing.assert_close(before, w.grad)
        d = dense(e.cpu(), w.detach().cpu(), 20, 15)
        torch.testing.assert_close(x.grad.cpu(), 2 * torch.stack([d.T @ (d @ one) for one in x.detach().cpu()]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_edges_are_sorted_where_they_are(device, index):
    e, w = edges(300, 200, 4000), torch.rand(4000)
    a = st.SparseMatrix.from_edge_index(e.to(index).to(device), w.to(device), (200, 300))
    assert a.device.type == torch.device(device).type and a.pattern.columns.dtype == torch.int32
    found = torch.zeros(300, 200)
    found[a.pattern.rows().cpu(), a.pattern.columns.long().cpu()] = a.values.cpu()
    torch.testing.assert_close(found, dense(e, w.double(), 300, 200).float())
    with pytest.raises(ValueError, match="outside"):
        st.SparseMatrix.from_edge_index(e.to(device), None, (100, 300))


def test_repeated_edges_count_as_often_as_they_are_there():
    e = edges(8, 8, 200, repeats=True)
    x, w = torch.randn(8, 3, dtype=torch.float64), torch.randn(200, dtype=torch.float64)
    ones = torch.ones(200, dtype=torch.float64)
    a, b = st.SparseMatrix.from_edge_index(e, None, 8), st.SparseMatrix.from_edge_index(e, w, 8)
    for reduce in ("sum", "mean", "max"):
        torch.testing.assert_close(st.spmm(a, x, reduce), reduced(e, ones, x, 8, reduce))
        torch.testing.assert_close(st.spmm(a.t(), x, reduce), reduced(e.flip(0), ones, x, 8, reduce))
    for reduce in ("sum", "mean"):
        torch.testing.assert_close(st.spmm(b, x, reduce), reduced(e, w, x, 8, reduce))
    with pytest.raises(NotImplementedError, match="twice"):
        st.spmm(b, x, "max")


def test_matrices_from_everywhere():
    e, w = edges(6, 9, 20), torch.randn(20, dtype=torch.float64)
    d = dense(e, w, 6, 9)
    x = torch.randn(9, 2, dtype=torch.float64)
    for made in (d.to_sparse_csr(), d.to_sparse_csc(), d.to_sparse()):
        torch.testing.assert_close(st.SparseMatrix.from_torch(made) @ x, d @ x)
    for kind in (ss.csr_array, ss.csc_matrix, ss.coo_array):
        torch.testing.assert_close(st.SparseMatrix.from_scipy(kind(d.numpy())) @ x, d @ x)
    whole = st.SparseMatrix.from_scipy(ss.csr_array(np.array([[0, 2], [3, 0]])))
    assert whole.values.dtype == torch.float32 and "2 x 2, 2 entries" in repr(whole)
    listed = st.SparseMatrix.from_edge_index(e, w, (9, 6))
    assert torch.equal(dense(listed.edge_index(), listed.values, 6, 9), d)
    assert torch.equal(dense(listed.t().edge_index(), listed.values, 9, 6), d.t())
    with pytest.raises(TypeError, match="layout"):
        st.SparseMatrix.from_torch(d)
    with pytest.raises(ValueError, match="outside"):
        st.SparseMatrix.from_edge_index(e, w, 3)
    with pytest.raises(ValueError, match="outside"):
        st.SparseMatrix.from_edge_index(-1 - e, w, 30)
    with pytest.raises(ValueError, match="weight has the shape"):
        st.SparseMatrix.from_edge_index(e, w[:3])
    with pytest.raises(ValueError, match="whole numbers"):
        st.SparseMatrix.from_edge_index(e.t())


def test_wrong_operands_are_named():
    a = st.SparseMatrix.from_edge_index(edges(5, 7, 10), torch.rand(10), (7, 5))
    for call, message in ((lambda: a @ torch.rand(6, 2), "7 rows are needed"),
                          (lambda: a @ torch.ones(7, 2, dtype=torch.int32), "int32"),
                          (lambda: a.t() @ torch.rand(7, 2), "5 rows are needed"),
                          (lambda: st.spmm(a, torch.rand(7, 2), "median"), "median"),
                          (lambda: a.with_values(torch.rand(9)), "10 entries"),
                          (lambda: st.sddmm(a, torch.rand(5, 2), torch.rand(7, 3)), "same number of columns")):
        with pytest.raises((ValueError, NotImplementedError), match=message):
            call()


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_are_the_numeric_ones(reduce, transposed):
    e = edges(6, 8, 25)
    w = torch.randn(25, dtype=torch.float64, requires_grad=True)
    x = torch.randn(6 if transposed else 8, 3, dtype=torch.float64, requires_grad=True)

    def product(w, x):
        a = st.SparseMatrix.from_edge_index(e, w, (8, 6))
        return st.spmm(a.t() if transposed else a, x, reduce)

    assert torch.autograd.gradcheck(product, (w, x))
    if reduce in ("sum", "mean"):
        assert torch.autograd.gradgradcheck(product, (w, x))


def test_gradients_of_sampled_products_are_the_numeric_ones():
    a = st.SparseMatrix.from_edge_index(edges(6, 8, 25), None, (8, 6))
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    source, target = a.edge_index()
    torch.testing.assert_close(st.sddmm(a, x, y), (x[target] * y[source]).sum(1))
    torch.testing.assert_close(st.sddmm(a.t(), y, x), (x[target] * y[source]).sum(1))
    assert torch.autograd.gradcheck(lambda x, y: st.sddmm(a, x, y), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: st.sddmm(a, x, y), (x, y))


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("targets, sources, count", SHAPES)
def test_attention_is_what_it_is_defined_as(targets, sources, count, heads):
    from spgraph.torch._attention import attention

    a = st.SparseMatrix.from_edge_index(edges(targets, sources, count), None, (sources, targets))
    source, target = a.edge_index()
    left, right = torch.randn(targets, heads).double(), torch.randn(sources, heads).double()
    x = torch.randn(sources, 4 * heads, dtype=torch.float64)
    weights = attention(a, left, right, 0.2)
    y = st.spmm_heads(a, weights, x)
    assert weights.shape == (heads, count) and y.shape == (targets, 4 * heads)
    for h in range(heads):
        scores = torch.full((targets, sources), -torch.inf, dtype=torch.float64)
        scores[target, source] = torch.nn.functional.leaky_relu(left[target, h] + right[source, h], 0.2)
        soft = torch.softmax(scores, 1).nan_to_num(0)
        torch.testing.assert_close(weights[h], soft[target, source])
        torch.testing.assert_close(y[:, 4 * h:4 * h + 4], soft @ x[:, 4 * h:4 * h + 4])
    torch.testing.assert_close(st.edge_softmax(a, weights[0]), st.edge_softmax(a, weights)[0])


def test_gradients_of_attention_are_the_numeric_ones():
    from spgraph.torch._attention import attention

    for repeats in (False, True):
        a = st.SparseMatrix.from_edge_index(edges(6, 8, 25, repeats), None, (8, 6))
        given = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((6, 2), (8, 2), (8, 6))]
        assert torch.autograd.gradcheck(lambda left, right: attention(a, left, right, 0.2), given[:2])
        weights = torch.randn(2, a.nnz, dtype=torch.float64, requires_grad=True)
        for product, x in ((a, given[2]), (a.t(), torch.randn(6, 6, dtype=torch.float64, requires_grad=True))):
            assert torch.autograd.gradcheck(lambda w, x: st.spmm_heads(product, w, x), (weights, x))
            assert torch.autograd.gradgradcheck(lambda w, x: st.spmm_heads(product, w, x), (weights, x))


def test_wrong_operands_of_attention_are_named():
    a = st.SparseMatrix.from_edge_index(edges(5, 7, 10), None, (7, 5))
    for call, message in ((lambda: st.spmm_heads(a, torch.rand(3, 10), torch.rand(7, 4)), "3 heads cannot share"),
                          (lambda: st.spmm_heads(a, torch.rand(2, 9), torch.rand(7, 4)), "10 columns"),
                          (lambda: st.edge_softmax(a, torch.rand(2, 9)), "10 columns"),
                          (lambda: st.edge_softmax(a, torch.ones(10, dtype=torch.int32)), "int32"),
                          (lambda: st.edge_softmax(a.t(), torch.rand(10)), "transpose"),
                          (lambda: st.GATConv(4, 4, edge_dim=3), "edge_dim")):
        with pytest.raises((ValueError, NotImplementedError), match=message):
            call()


def test_operators_pass_torchs_own_check():
    a = st.SparseMatrix.from_edge_index(edges(6, 8, 25), torch.rand(25, dtype=torch.float64), (8, 6))
    for gradient in (False, True):
        x = torch.randn(8, 3, dtype=torch.float64, requires_grad=gradient)
        y = torch.randn(6, 3, dtype=torch.float64, requires_grad=gradient)
        z = torch.randn(6, 5, dtype=torch.float64, requires_grad=gradient)
        v = a.values.clone().requires_grad_(gradient)
        columns = torch.tensor([[0, 2, 4], [1, 2, 3]], dtype=torch.uint8).repeat(4, 1)
        for operator, given in ((torch.ops.spgraph.spmm, (x, v, a._number, 6, False)),
                                (torch.ops.spgraph.spmm, (y, None, a._number, 8, True)),
                                (torch.ops.spgraph.sddmm, (y, x, a._number, 25)),
                                (torch.ops.spgraph.spmm_extreme, (x, v, a._number, 6, False, "max")),
                                (torch.ops.spgraph.maxk_kept, (x, 2)),
                                (torch.ops.spgraph.maxk_expand, (x, columns, 5)),
                                (torch.ops.spgraph.spmm_kept, (x, columns, v, 5, a._number, 6, False)),
                                (torch.ops.spgraph.spmm_kept, (x, columns, None, 5, a._number, 6, False)),
                                (torch.ops.spgraph.spmm_at, (z, columns, v, a._number, True)),
                                (torch.ops.spgraph.edge_sums, (y, x, a._number, 25)),
                                (torch.ops.spgraph.edge_softmax, (v[None], a._number)),
                                (torch.ops.spgraph.spmm_heads, (x, v.expand(3, 25), a._number, 6, False)),
                                (torch.ops.spgraph.sddmm_heads, (y, x, a._number, 25, 3))):
            torch.library.opcheck(operator.default, given)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_in_one_graph(backend):
    first = st.SparseMatrix.from_edge_index(edges(9, 9, 30), torch.rand(30), 9)
    second = st.SparseMatrix.from_edge_index(edges(9, 9, 20), torch.rand(20), 9)

    def model(a, x):
        y = torch.relu(st.spmm(a, x * 2, "mean"))
        return (st.spmm(a.t(), y).sum() + st.spmm(a, x, "max").sum() + st.sddmm(a, x, y).sum() +
                st.spmm_maxk(a, x, 2, "mean").square().sum())

    try:
        compiled = torch.compile(model, fullgraph=True, backend=backend)
        compiled(first, torch.randn(9, 4))
    except (torch._dynamo.exc.BackendCompilerFailed, torch._inductor.exc.InductorError) as failure:
        pytest.skip(f"torch cannot compile here: {failure}")
    for a in (first, second, first):
        x = torch.randn(9, 4, requires_grad=True)
        here, there = compiled(a, x), model(a, x)
        torch.testing.assert_close(here, there)
        torch.testing.assert_close(*(torch.autograd.grad(y, x)[0] for y in (here, there)))


def test_new_values_are_noticed():
    e, w = edges(9, 9, 30), torch.rand(30)
    a, x = st.SparseMatrix.from_edge_index(e, w, 9), torch.randn(9, 4)
    before = a @ x
    a.values.mul_(2)
    torch.testing.assert_close(a @ x, 2 * before)
    torch.testing.assert_close(a.with_values(a.values / 2) @ x, before)
    torch.testing.assert_close(a @ x, 2 * before)
    with torch.inference_mode():
        v = a.values * 1
        torch.testing.assert_close(a.with_values(v) @ x, 2 * before)
        v.mul_(2)
        torch.testing.assert_close(a.with_values(v) @ x, 4 * before)


def test_values_that_are_no_matrix_s_may_change_unnoticed():
    """As those in memory that compiled code uses again."""
    a, x = st.SparseMatrix.from_edge_index(edges(9, 9, 30), torch.rand(30), 9), torch.randn(9, 4)
    v = torch.rand(a.nnz)
    before = torch.ops.spgraph.spmm(x, v, a._number, 9, False)
    v.data.mul_(2)
    torch.testing.assert_close(torch.ops.spgraph.spmm(x, v, a._number, 9, False), 2 * before)


def test_gradients_outlive_the_matrix():
    e = edges(9, 9, 30)
    x = torch.randn(9, 4, requires_grad=True)
    a = st.SparseMatrix.from_edge_index(e, None, 9)
    gone = weakref.ref(a.pattern)
    y = (a @ x).sum()
    del a
    gc.collect()
    y.backward()
    torch.testing.assert_close(x.grad, dense(e, torch.ones(30), 9, 9).t() @ torch.ones(9, 4))
    del y
    gc.collect()
    assert gone() is None
    with pytest.raises(RuntimeError, match="no longer exists"):
        torch.ops.spgraph.spmm(x, None, 10**9, 9, False)


# ---- layers ------------------------------------------------------------------------------------------------


def layers(module, width=8):
    mlp = torch.nn.Sequential(torch.nn.Linear(width, 6), torch.nn.ReLU(), torch.nn.Linear(6, 6))
    return {
        "gcn": module.GCNConv(width, 6), "gcn improved": module.GCNConv(width, 6, improved=True),
        "gcn without loops": module.GCNConv(width, 6, add_self_loops=False),
        "gcn plain": module.GCNConv(width, 6, normalize=False, bias=False),
        "gcn cached": module.GCNConv(width, 6, cached=True),
        "gcn lazy": module.GCNConv(-1, 6), "gcn max": module.GCNConv(width, 6, aggr="max"),
        "sage": module.SAGEConv(width, 6), "sage sum": module.SAGEConv(width, 6, aggr="sum", normalize=True),
        "sage max": module.SAGEConv(width, 6, aggr="max", root_weight=False),
        "sage project": module.SAGEConv(width, 6, project=True, bias=False),
        "gat": module.GATConv(width, 3, heads=2), "gat lazy": module.GATConv(-1, 6, negative_slope=0.5),
        "gat mean": module.GATConv(width, 6, heads=3, concat=False, bias=False, residual=True),
        "gat without loops": module.GATConv(width, 2, heads=3, add_self_loops=False),
        "gin": module.GINConv(mlp), "gin trained": module.GINConv(mlp, eps=0.5, train_eps=True),
    }


NAMES = list(layers(st))


def forms(kind):
    """Edge lists with and without repeats, loops and weights."""
    e = edges(20, 20, 70, repeats=kind == "repeats")
    if kind == "loops":
        e = torch.cat([e, torch.tensor([[3, 4, 7], [3, 4, 7]])], 1)
        e = torch.unique(e, dim=1)
    return e


def compare(here, there, x, *graph):
    """The same results and gradients."""
    found, expected = here(x, *graph), there(x, *graph)
    torch.testing.assert_close(found, expected)
    weights = [p for p in here.parameters()], [p for p in there.parameters()]
    for a, b in zip(torch.autograd.grad(found.square().sum(), [x, *weights[0]]),
                    torch.autograd.grad(expected.square().sum(), [x, *weights[1]])):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["plain", "repeats", "loops"])
@pytest.mark.parametrize("name", NAMES)
def test_layers_are_pygs(name, kind):
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    if name == "gcn max" and kind == "repeats":
        pytest.skip("NotImplementedError: the weights of repeated edges are added")
    e = forms(kind)
    here, there = layers(st)[name], layers(pyg)[name]
    x = torch.randn(20, 8, requires_grad=True)
    if "lazy" in name:
        here(x, e), there(x, e)
    there.load_state_dict(here.state_dict())
    assert str(here) == str(there)
    compare(here, there, x, e)
    if name.startswith("gcn") and not here.cached:
        compare(here, there, x, e, torch.rand(e.shape[1]))
    elif name.startswith(("sage", "gin", "gat")) and kind != "repeats":
        compare(here, there, x, torch.sparse_coo_tensor(e.flip(0), torch.ones(e.shape[1]), (20, 20)).to_sparse_csr())


def test_layers_of_sources_and_targets():
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    e = edges(4, 20, 40)
    x, y = torch.randn(20, 8), torch.randn(4, 5)
    for here, there in ((st.SAGEConv((8, 5), 6), pyg.SAGEConv((8, 5), 6)),
                        (st.GATConv((8, 5), 6, 2, residual=True), pyg.GATConv((8, 5), 6, 2, residual=True)),
                        (st.GINConv(torch.nn.Identity()), pyg.GINConv(torch.nn.Identity()))):
        there.load_state_dict(here.state_dict())
        if not isinstance(here, st.GINConv):
            torch.testing.assert_close(here((x, y), e), there((x, y), e))
        torch.testing.assert_close(here((x, None), e, size=(20, 4)), there((x, None), e, size=(20, 4)))
        csr = torch.sparse_coo_tensor(e.flip(0), torch.ones(e.shape[1]), (4, 20)).to_sparse_csr()
        torch.testing.assert_close(here((x, None), csr), there((x, None), csr))


def test_attention_weights_and_their_dropout():
    e = forms("repeats")
    layer = st.GATConv(8, 3, heads=2, dropout=0.4)
    x = torch.randn(20, 8)
    y, (ends, weights) = layer.eval()(x, e, return_attention_weights=True)
    torch.testing.assert_close(y, layer(x, e))
    torch.testing.assert_close(torch.zeros(20, 2).index_add(0, ends[1], weights), torch.ones(20, 2))
    _, (_, dropped) = layer.train()(x, e, return_attention_weights=True)
    kept = dropped != 0
    assert 0.4 < kept.float().mean() < 0.8
    torch.testing.assert_close(dropped[kept], (weights / 0.6)[kept])


def test_gradients_of_weights_are_pygs():
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    e = forms("loops")
    w = torch.rand(e.shape[1], requires_grad=True)
    x = torch.randn(20, 8)
    here, there = st.GCNConv(8, 6), pyg.GCNConv(8, 6)
    there.load_state_dict(here.state_dict())
    torch.testing.assert_close(*(torch.autograd.grad(layer(x, e, w).square().sum(), w)[0] for layer in (here, there)))


@pytest.mark.parametrize("inputs, outputs", [(30, 4), (4, 30), (10, 6)])
@pytest.mark.parametrize("name, options", [("GCNConv", {}), ("GCNConv", {"aggr": "max"}), ("SAGEConv", {}),
                                           ("SAGEConv", {"aggr": "sum"}), ("SAGEConv", {"aggr": "min"})])
def test_products_run_where_features_are_narrow(products, name, options, inputs, outputs):
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    here, there = getattr(st, name)(inputs, outputs, **options), getattr(pyg, name)(inputs, outputs, **options)
    there.load_state_dict(here.state_dict())
    e, linear = forms("loops"), options.get("aggr") not in ("max", "min")
    usual = inputs if name == "SAGEConv" else outputs  # the columns of the products in the formula
    for gradient in (False, True):
        x = torch.randn(20, inputs, requires_grad=gradient)
        here(x, e)
        backward = inputs * 2 if gradient else inputs  # the features get a gradient only if somebody asks for it
        cheaper = outputs if 2 * outputs <= backward else inputs
        assert products == [cheaper if linear else usual]
        products.clear()
        torch.testing.assert_close(here(x, e), there(x, e))
        products.clear()
    compare(here, there, torch.randn(20, inputs, requires_grad=True), e)


@pytest.mark.parametrize("inputs, outputs", [(30, 4), (4, 30)])
def test_modules_in_place_of_linear_layers_keep_their_place(installed, inputs, outputs):
    import torch_geometric.nn as pyg

    class Linear(torch.nn.Linear):  # such as adapters, which add to the product with the weight
        def forward(self, x):
            return super().forward(x).tanh()

    e, x = forms("loops"), torch.randn(20, inputs)
    gcn, sage = pyg.GCNConv(inputs, outputs), pyg.SAGEConv(inputs, outputs)
    hooked, biased = pyg.SAGEConv(inputs, outputs), pyg.GCNConv(inputs, outputs)
    gcn.lin, sage.lin_l = Linear(inputs, outputs), Linear(inputs, outputs)
    biased.lin = torch.nn.Linear(inputs, outputs)
    hooked.lin_l.register_forward_hook(lambda module, given, made: made.square())
    made = [layer(x, e) for layer in (gcn, sage, hooked, biased)]
    st.uninstall_pyg()
    for found, layer in zip(made, (gcn, sage, hooked, biased)):
        torch.testing.assert_close(found, layer(x, e))


def test_changed_edges_are_noticed():
    e, x = edges(20, 20, 70), torch.randn(20, 8)
    layer = st.SAGEConv(8, 6)
    layer(x, e)
    e[:] = edges(20, 20, 70)
    fresh = layer(x, e.clone())
    torch.testing.assert_close(layer(x, e), fresh)


def test_graphs_are_forgotten_with_their_tensor():
    from spgraph.torch import _graphs

    gc.collect()  # of what other tests left
    layer, x, before = st.SAGEConv(8, 6), torch.randn(20, 8), len(_graphs._kept)
    patterns = len(_ops._patterns)
    e = edges(20, 20, 70)
    layer(x, e), layer(x, e)
    assert len(_graphs._kept) == before + 1 and len(_ops._patterns) == patterns + 1
    del e
    gc.collect()
    assert len(_graphs._kept) == before and len(_ops._patterns) == patterns


def test_options_that_layers_lack_are_refused():
    with pytest.raises(NotImplementedError, match="flow"):
        st.GCNConv(8, 6, flow="target_to_source")
    with pytest.raises(TypeError, match="no option 'edge_dim'"):
        st.GINConv(torch.nn.Identity(), edge_dim=3)
    with pytest.raises(ValueError, match="loops"):
        st.GCNConv(8, 6, normalize=False, add_self_loops=True)
    with pytest.raises(NotImplementedError, match="lstm"):
        st.SAGEConv(8, 6, aggr="lstm")(torch.randn(3, 8), edges(3, 3, 4))


# ---- PyG ---------------------------------------------------------------------------------------------------


@pytest.fixture
def installed():
    pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
    st.install_pyg()
    yield
    st.uninstall_pyg()


@pytest.fixture
def products(monkeypatch):
    """The columns of each product that ran here."""
    counted, plan = [], _ops.Pattern.plan
    monkeypatch.setattr(_ops.Pattern, "plan", lambda self, session, x, *given: counted.append(x.shape[1]) or
                        plan(self, session, x, *given))
    return counted


@pytest.mark.parametrize("kind", ["plain", "repeats", "loops"])
@pytest.mark.parametrize("name", NAMES)
def test_unchanged_programs_of_pyg_run_here(installed, products, name, kind):
    import torch_geometric.nn as pyg

    e, x = forms(kind), torch.randn(20, 8, requires_grad=True)
    layer = layers(pyg)[name]
    graphs = [(e,)]
    if name.startswith("gcn"):
        graphs.append((e, torch.rand(e.shape[1])))
    if kind != "repeats":
        csr = torch.sparse_coo_tensor(e.flip(0), torch.ones(e.shape[1]), (20, 20)).to_sparse_csr()
        graphs.append((csr,))
    for graph in graphs:
        layer.reset_parameters()
        found = layer(x, *graph)
        assert products or (name == "gcn max" and kind == "repeats")
        gradient = torch.autograd.grad(found.square().sum(), x)[0]
        st.uninstall_pyg()
        products.clear()
        layer._cached_edge_index = None
        fresh = copy.deepcopy(layer)
        expected = fresh(x, *graph)
        assert not products
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected.square().sum(), x)[0], rtol=1e-4, atol=1e-4)
        st.install_pyg()


def test_what_does_not_fit_stays_with_pyg(installed, products):
    import torch_geometric.nn as pyg

    class Own(pyg.SAGEConv):
        def message(self, x_j):
            return 2 * x_j

    e, x = edges(20, 20, 70), torch.randn(20, 8)
    hooked = pyg.SAGEConv(8, 6)
    hooked.register_message_forward_hook(lambda module, inputs, output: output * 3)
    pyg.GATConv(8, 6, edge_dim=1)(x, e, torch.rand(70))
    pyg.GATConv(8, 6, dropout=0.5)(x, forms("repeats"))
    pyg.GATConv(8, 6, dropout=0.5)(x, e, return_attention_weights=True)
    for layer in (Own(8, 6), pyg.GCNConv(8, 6, flow="target_to_source"), pyg.SAGEConv(8, 6, aggr="median"), hooked):
        layer(x, e)
    pyg.GCNConv(8, 6)(torch.randn(3, 20, 8), e)
    assert not products
    torch.jit.script(pyg.GCNConv(8, 6))


def test_attention_weights_come_with_the_features_of_a_call_without(installed, products):
    import torch_geometric.nn as pyg

    e, x = edges(20, 20, 70), torch.randn(20, 8)
    layer = pyg.GATConv(8, 6, heads=2, residual=True)
    y, (ends, weights) = layer(x, e, return_attention_weights=True)
    assert products and torch.equal(y, layer(x, e))
    st.uninstall_pyg()
    expected, (their_ends, theirs) = layer(x, e, return_attention_weights=True)
    torch.testing.assert_close(y, expected)
    assert torch.equal(ends, their_ends) and torch.equal(weights, theirs)


def test_uninstalled_means_as_before():
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    kinds = (pyg.GCNConv, pyg.SAGEConv, pyg.GINConv, pyg.GATConv)
    before = [kind.forward for kind in kinds]
    st.install_pyg()
    st.install_pyg()
    assert pyg.GCNConv.forward is not before[0]
    st.uninstall_pyg()
    st.uninstall_pyg()
    assert [kind.forward for kind in kinds] == before


def test_training_gives_the_same_losses(installed):
    import torch_geometric.nn as pyg

    def losses():
        torch.manual_seed(1)
        e, x, label = edges(60, 60, 300), torch.randn(60, 16), torch.randint(4, (60,))
        first, second = pyg.GCNConv(16, 8), pyg.SAGEConv(8, 4)
        optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
        made = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(second(torch.relu(first(x, e)), e), label)
            loss.backward()
            optimizer.step()
            made.append(loss.item())
        return made

    here = losses()
    st.uninstall_pyg()
    np.testing.assert_allclose(here, losses(), rtol=1e-4)
    assert here[-1] < here[0] / 2
