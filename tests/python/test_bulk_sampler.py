"""Layer-wise and cluster sampling: minibatches are the parts of the graph that they say, and PyG trains on them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")

from spgraph.torch import ClusterSampler, LayerSampler  # noqa: E402
from support.devices import device  # noqa: E402, F401


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(3)


def random_graph(nodes, count, device="cpu"):
    """Edges without duplicates, with loops."""
    return torch.unique(torch.randint(nodes, (2, count)), dim=1).to(device)


def check_batch(e, batch, weight=None):
    """The batch is a part of the graph, and each edge stands in the hop that may use it."""
    assert batch.n_id.unique().numel() == len(batch.n_id) == sum(batch.num_sampled_nodes)
    assert batch.e_id.unique().numel() == len(batch.e_id) == sum(batch.num_sampled_edges)
    assert torch.equal(batch.n_id[batch.edge_index], e[:, batch.e_id])
    if weight is not None:
        kept = torch.zeros(len(batch.n_id), dtype=weight.dtype, device=e.device)
        kept.index_add_(0, batch.edge_index[1], batch.edge_weight.abs())
        whole = torch.zeros(int(e.max()) + 1, dtype=weight.dtype, device=e.device)
        whole.index_add_(0, e[1], weight.abs())
        has = kept > 0
        torch.testing.assert_close(kept[has], whole[batch.n_id[has]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["ladies", "fastgcn"])
@pytest.mark.parametrize("sizes", [[5], [6, 3], [1, 40, 2]])
@pytest.mark.parametrize("nodes, count, weights", [(50, 600, None), (50, 30, torch.float32), (7, 30, torch.float64),
                                                   (1, 4, torch.float32)])
def test_layer_batches_have_all_edges_between_their_layers(device, nodes, count, weights, sizes, method):
    e = random_graph(nodes, count, device)
    weight = None if weights is None else torch.rand(e.shape[1], dtype=weights, device=device) + 0.1
    sampler = LayerSampler(e, sizes, method=method, edge_weight=weight, batch_size=4, shuffle=True, num_nodes=nodes)
    batches, seen = list(sampler), []
    assert len(batches) == len(sampler)
    for batch in batches:
        check_batch(e, batch, weight)
        assert (batch.edge_weight is None) == (weight is None)
        seen.append(batch.n_id[:batch.batch_size])
        assert torch.equal(sampler.input_nodes[batch.input_id], seen[-1])
        ends = np.cumsum(batch.num_sampled_nodes)
        assert len(batch.num_sampled_nodes) == len(sizes) + 1 and batch.batch_size == ends[0]
        first = 0
        for hop, (most, edges) in enumerate(zip(sizes, batch.num_sampled_edges)):
            assert batch.num_sampled_nodes[hop + 1] <= most
            first += edges
            drawn = batch.edge_index[:, :first]  # of this hop and those before: all edges between their nodes
            assert not drawn.numel() or (int(drawn[1].max()) < ends[hop] and int(drawn[0].max()) < ends[hop + 1])
            inside = torch.isin(e[1], batch.n_id[:ends[hop]]) & torch.isin(e[0], batch.n_id[:ends[hop + 1]])
            assert int(inside.sum()) == first
    assert torch.equal(torch.cat(seen).sort()[0], torch.arange(nodes, device=device))


def test_a_layer_draws_all_candidates_if_there_are_no_more(device):
    e = random_graph(60, 300, device)
    for batch in LayerSampler(e, [1000], batch_size=10, num_nodes=60):
        wanted = torch.cat([batch.n_id[:batch.batch_size], e[0][torch.isin(e[1], batch.n_id[:batch.batch_size])]])
        assert torch.equal(batch.n_id.sort()[0], wanted.unique())


def test_nodes_are_drawn_by_the_squares_of_their_weights(device):
    e = torch.tensor([[1, 2, 3], [0, 0, 0]], device=device)
    weight = torch.tensor([1.0, 2.0, 3.0], device=device)
    sampler = LayerSampler(e, [1], edge_weight=weight, input_nodes=torch.tensor([0]), seed=5)
    drawn = [int(next(iter(sampler)).n_id[1]) for _ in range(700)]
    counts, wanted = np.bincount(drawn, minlength=4)[1:], 700 * np.array([1, 4, 9]) / 14
    assert ((counts - wanted) ** 2 / wanted).sum() < 2 + 5 * np.sqrt(4)  # chi squared of three nodes


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_cluster_batches_are_whole_clusters(device, shuffle, weighted):
    e = random_graph(60, 900, device)
    clusters = torch.randint(9, (60,))
    weight = torch.rand(e.shape[1], device=device) + 0.1 if weighted else None
    train = torch.rand(60) < 0.3
    sampler = ClusterSampler(e, clusters, edge_weight=weight, input_nodes=train, batch_size=2, shuffle=shuffle)
    batches, seen = list(sampler), []
    assert len(batches) == len(sampler)
    for batch in batches:
        check_batch(e, batch, weight)
        chosen = torch.isin(clusters, clusters[batch.n_id.cpu()].unique())
        assert torch.equal(batch.n_id.cpu().sort()[0], chosen.nonzero()[:, 0])
        inside = chosen.to(device)[e].all(0)
        assert torch.equal(batch.e_id.sort()[0], inside.nonzero()[:, 0])
        assert torch.equal(sampler.input_nodes[batch.input_id], batch.n_id[:batch.batch_size])
        seen.append(batch.n_id[:batch.batch_size])
    assert torch.equal(torch.cat(seen).sort()[0].cpu(), train.nonzero()[:, 0])


def test_seeds_decide(device):
    e = random_graph(40, 800, device)
    clusters = torch.arange(40) % 8

    def layers(seed):
        return torch.cat([batch.n_id for batch in LayerSampler(e, [5, 5], batch_size=8, seed=seed, shuffle=True)]).cpu()

    def order(seed):
        return torch.cat([batch.n_id for batch in ClusterSampler(e, clusters, seed=seed, shuffle=True)]).cpu()

    for draw in layers, order:
        assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))
    sampler = LayerSampler(e, [5], batch_size=8)
    first, second = list(sampler), list(sampler)
    for one, other in zip(first, second):  # seeds in order, other draws
        assert torch.equal(one.n_id[:8], other.n_id[:8])
    assert any(not torch.equal(one.n_id, other.n_id) for one, other in zip(first, second))
    torch.manual_seed(9)
    one = next(iter(LayerSampler(e, [5], batch_size=8)))
    torch.manual_seed(9)
    assert torch.equal(one.n_id, next(iter(LayerSampler(e, [5], batch_size=8))).n_id)


def test_a_sampler_has_one_pass_at_a_time():
    e = random_graph(40, 200)
    sampler = LayerSampler(e, [3], batch_size=4)
    first = iter(sampler)
    next(first)
    assert len(list(sampler)) == 10
    with pytest.raises(RuntimeError, match="another pass"):
        next(first)


def test_graphs_without_edges_or_seeds(device):
    none = torch.empty((2, 0), dtype=torch.long, device=device)
    batches = list(LayerSampler(none, [3, 3], batch_size=2, num_nodes=3))
    assert [batch.n_id.tolist() for batch in batches] == [[0, 1], [2]]
    assert batches[0].edge_index.shape == (2, 0) and batches[0].num_sampled_nodes == [2, 0, 0]
    nobody = torch.zeros(3, dtype=torch.bool)
    assert list(LayerSampler(none, [3], num_nodes=3, input_nodes=nobody)) == []
    assert list(ClusterSampler(none, [0, 1, 1], input_nodes=nobody)) == []
    assert [batch.n_id.tolist() for batch in ClusterSampler(none, [0, 1, 1])] == [[0], [1, 2]]


def test_minibatches_and_samplers_are_freed(monkeypatch):
    from spgraph.torch import _bulk_sampler

    library, given, freed = _bulk_sampler.lib, [], []

    def minibatch_free(context, drawn):
        freed.append(drawn.bulk)
        library.gnn_minibatch_free(context, drawn)

    class Library:
        def __getattr__(self, name):
            return getattr(library, name)

    watched = Library()
    watched.gnn_minibatch_free = minibatch_free
    monkeypatch.setattr(_bulk_sampler, "lib", watched)
    monkeypatch.setattr(_bulk_sampler._Handle, "free",
                        staticmethod(lambda handle: (given.append(handle.value), library.gnn_sampler_free(handle))))
    sampler = LayerSampler(random_graph(50, 600), [5], batch_size=10)
    next(iter(sampler))  # and not to the end of the pass
    assert len(list(sampler)) == 5 and len(freed) == 6 and all(freed)
    handle = sampler._handle.handle.value
    del sampler
    assert given == [handle]


def test_wrong_arguments_are_named():
    e = random_graph(10, 60)
    e = torch.cat([e, torch.tensor([[9], [9]])], 1).unique(dim=1)
    twice = torch.cat([e, e[:, :1]], 1)
    one = torch.ones(e.shape[1])
    for make, error, message in (
            (lambda: LayerSampler(e, [1], method="node"), ValueError, "method is 'node'"),
            (lambda: LayerSampler(e, []), ValueError, "each hop"),
            (lambda: LayerSampler(e, [0]), ValueError, "positive"),
            (lambda: LayerSampler(e, [1] * 17), ValueError, "16 hops"),
            (lambda: LayerSampler(e, ["a"]), TypeError, "layer_sizes is 'a'"),
            (lambda: LayerSampler(twice, [1]), ValueError, "twice"),
            (lambda: LayerSampler(e, [1], batch_size=0), ValueError, "batch_size"),
            (lambda: LayerSampler(e, [1], edge_weight=one[1:]), ValueError, "edge_weight"),
            (lambda: LayerSampler(e, [1], edge_weight=one.long()), ValueError, "edge_weight"),
            (lambda: LayerSampler(e, [1], edge_weight=one / 0), ValueError, "not finite"),
            (lambda: ClusterSampler(e, [0] * 9), ValueError, "outside the 9 nodes"),
            (lambda: ClusterSampler(e, [0] * 9, num_nodes=10), ValueError, "9 numbers and the graph 10 nodes"),
            (lambda: ClusterSampler(e, [0.5] * 10), ValueError, "whole number"),
            (lambda: ClusterSampler(e, [10] + [0] * 9), ValueError, "from 0 to 9"),
            (lambda: ClusterSampler(e, [-1] + [0] * 9), ValueError, "from 0 to 9")):
        with pytest.raises(error, match=message):
            make()


# ---- PyG ---------------------------------------------------------------------------------------------------


@pytest.fixture
def planted(device):
    """Four groups of nodes, with edges mostly within them and features that tell a little."""
    data = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    nodes, count = 800, 12000
    y = torch.arange(nodes) % 4
    target = torch.randint(nodes, (count,))
    inside = (torch.randint(nodes // 4, (count,)) * 4 + y[target])
    source = torch.where(torch.rand(count) < 0.8, inside, torch.randint(nodes, (count,)))
    x = torch.nn.functional.one_hot(y, 4) + 2.0 * torch.randn(nodes, 4)
    edges = torch.unique(torch.stack([source, target]), dim=1)
    return data.Data(x=x, y=y, edge_index=edges, edge_attr=torch.arange(edges.shape[1])).to(device)


def loaders(planted, train):
    weight = torch.rand(planted.num_edges, device=planted.x.device) + 0.5
    clusters = torch.arange(800) // 8 % 20  # of nodes of all groups
    how = dict(input_nodes=train, edge_weight=weight, shuffle=True)
    return {"ladies": LayerSampler(planted, [200, 200], batch_size=64, **how),
            "fastgcn": LayerSampler(planted, [200, 200], method="fastgcn", batch_size=64, **how),
            "clusters": ClusterSampler(planted, clusters, batch_size=5, **how)}


@pytest.mark.parametrize("kind", ["ladies", "fastgcn", "clusters"])
def test_a_program_of_pyg_trains_on_samples(planted, kind):
    from torch_geometric.nn import GraphSAGE

    train = torch.rand(800) < 0.5
    model = GraphSAGE(4, 16, 2, 4).to(planted.x.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loader = loaders(planted, train)[kind]
    for _ in range(30):
        for batch in loader:
            assert type(batch) is type(planted) and batch.validate() and batch.num_nodes == len(batch.n_id)
            assert torch.equal(batch.x, planted.x[batch.n_id]) and torch.equal(batch.edge_attr, batch.e_id)
            assert batch.edge_weight.shape == batch.e_id.shape
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[:batch.batch_size]
            torch.nn.functional.cross_entropy(out, batch.y[:batch.batch_size]).backward()
            optimizer.step()
    found = model.eval()(planted.x, planted.edge_index).argmax(1)
    test = ~train.to(found.device)
    least = 0.7 if kind == "clusters" else 0.9  # a batch of clusters lacks the edges to all others; by chance: 0.25
    assert (found == planted.y)[test].float().mean() > least


def test_layers_can_be_trimmed(planted):
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import trim_to_layer

    torch.manual_seed(1)
    layers = [SAGEConv(4, 4).to(planted.x.device) for _ in range(2)]
    for batch in LayerSampler(planted, [100, 100], batch_size=300):
        x, edges = batch.x, batch.edge_index
        for layer, conv in enumerate(layers):
            x, edges, _ = trim_to_layer(layer, batch.num_sampled_nodes, batch.num_sampled_edges, x, edges)
            x = conv(x, edges)
        assert x.shape[0] == batch.num_sampled_nodes[0] + batch.num_sampled_nodes[1] and torch.isfinite(x).all()


def test_with_all_nodes_results_are_those_of_the_whole_graph(planted):
    from torch_geometric.nn import GraphSAGE

    model = GraphSAGE(4, 16, 2, 4).to(planted.x.device).eval()
    whole = model(planted.x, planted.edge_index)
    everyone = torch.zeros(800, dtype=torch.long)
    for loader in LayerSampler(planted, [800, 800], batch_size=100), ClusterSampler(planted, everyone):
        for batch in loader:
            part = model(batch.x, batch.edge_index)[:batch.batch_size]
            torch.testing.assert_close(part, whole[batch.n_id[:batch.batch_size]], rtol=1e-4, atol=1e-4)
