"""Sampled neighbourhoods: they belong to the graph, every choice is as likely, PyG's programs train on them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")

from spgraph.torch import NeighborSampler  # noqa: E402
from support.devices import device  # noqa: E402, F401


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(3)


def random_graph(nodes, count, device="cpu"):
    return torch.randint(nodes, (2, count), device=device)


@pytest.mark.parametrize("fanouts", [[3, 2], [1], [-1, -1], [100, 1, 2]])
@pytest.mark.parametrize("nodes, count", [(50, 600), (50, 20), (7, 300), (1, 0), (1, 4)])
def test_batches_are_parts_of_the_graph(device, nodes, count, fanouts):
    e = random_graph(nodes, count, device)  # with repeated edges and loops
    sampler = NeighborSampler(e, fanouts, batch_size=4, shuffle=True, num_nodes=nodes)
    seen, batches = [], list(sampler)
    assert len(batches) == len(sampler)
    degree = torch.bincount(e[1], minlength=nodes)
    for batch in batches:
        assert batch.n_id.unique().numel() == len(batch.n_id) == sum(batch.num_sampled_nodes)
        assert batch.e_id.unique().numel() == len(batch.e_id) == sum(batch.num_sampled_edges)
        assert torch.equal(batch.n_id[batch.edge_index], e[:, batch.e_id])
        seen.append(batch.n_id[:batch.batch_size])
        assert torch.equal(sampler.input_nodes[batch.input_id], seen[-1])
        begin, first = 0, 0
        for hop, most in enumerate(fanouts):  # each hop draws for the nodes that the last one has added
            end, last = begin + batch.num_sampled_nodes[hop], first + batch.num_sampled_edges[hop]
            drawn = torch.bincount(batch.edge_index[1, first:last], minlength=len(batch.n_id))
            whole = degree[batch.n_id[begin:end]]
            assert torch.equal(drawn[begin:end], whole if most < 0 else whole.clamp(max=most))
            assert drawn.sum() == drawn[begin:end].sum()
            begin, first = end, last
    assert torch.equal(torch.cat(seen).sort()[0], torch.arange(nodes, device=device))
    assert (sampler._place == -1).all()


def test_every_set_of_neighbours_is_as_likely(device):
    from itertools import combinations

    e = torch.stack([torch.arange(1, 7), torch.zeros(6, dtype=torch.long)]).to(device)
    sampler = NeighborSampler(e, [2], seed=1)
    seeds, drawn = torch.tensor([0]), []
    for _ in range(3000):
        drawn.append(tuple(sampler.sample(seeds).e_id.sort()[0].tolist()))
    counts = np.array([drawn.count(pair) for pair in combinations(range(6), 2)])
    assert counts.sum() == 3000
    assert ((counts - 200) ** 2 / 200).sum() < 14 + 5 * np.sqrt(28)  # chi squared of 15 sets


def test_seeds_decide(device):
    e = random_graph(40, 800, device)

    def draw(seed):
        return torch.cat([batch.e_id for batch in NeighborSampler(e, [3, 3], batch_size=8, seed=seed)]).cpu()

    assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))
    sampler = NeighborSampler(e, [3], batch_size=40)
    first, second = next(iter(sampler)), next(iter(sampler))
    assert not torch.equal(first.e_id, second.e_id)
    torch.manual_seed(9)
    one = next(iter(NeighborSampler(e, [3], batch_size=40)))
    torch.manual_seed(9)
    assert torch.equal(one.e_id, next(iter(NeighborSampler(e, [3], batch_size=40))).e_id)


def test_wrong_arguments_are_named():
    e = random_graph(10, 30)
    for make, message in ((lambda: NeighborSampler(e.t(), [1]), "shape"), (lambda: NeighborSampler(e, []), "each hop"),
                          (lambda: NeighborSampler(e, [1], num_nodes=2), "outside"),
                          (lambda: NeighborSampler(e, [1], batch_size=0), "batch_size"),
                          (lambda: NeighborSampler(e, [1], input_nodes=torch.tensor([1, 10])), "from 0 to 9"),
                          (lambda: NeighborSampler(e, [1], num_nodes=10).sample(torch.tensor([1, 1])), "twice")):
        with pytest.raises(ValueError, match=message):
            make()
    mask = torch.zeros(10, dtype=torch.bool)
    assert len(NeighborSampler(e, [1], num_nodes=10, input_nodes=mask)) == 0
    mask[3] = True
    assert [batch.n_id[0] for batch in NeighborSampler(e, [1], num_nodes=10, input_nodes=mask)] == [3]


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
    return data.Data(x=x, y=y, edge_index=torch.stack([source, target]), edge_attr=torch.arange(count)).to(device)


def graph_sage():
    from torch_geometric.nn import GraphSAGE

    return GraphSAGE(4, 16, 2, 4)


def test_batches_of_pyg_have_its_attributes(planted):
    batch = NeighborSampler(planted, [4, 4], batch_size=10).sample(torch.tensor([5, 700]))
    assert type(batch) is type(planted) and batch.batch_size == 2 and batch.n_id[:2].tolist() == [5, 700]
    assert torch.equal(batch.x, planted.x[batch.n_id]) and torch.equal(batch.y, planted.y[batch.n_id])
    assert torch.equal(batch.edge_attr, batch.e_id)
    assert batch.validate() and batch.num_nodes == len(batch.n_id)


def test_with_all_neighbours_results_are_those_of_the_whole_graph(planted):
    model = graph_sage().to(planted.x.device).eval()
    whole = model(planted.x, planted.edge_index)
    for batch in NeighborSampler(planted, [-1, -1], batch_size=100, shuffle=True):
        part = model(batch.x, batch.edge_index)[:batch.batch_size]
        torch.testing.assert_close(part, whole[batch.n_id[:batch.batch_size]], rtol=1e-4, atol=1e-4)


def test_a_program_of_pyg_trains_on_samples(planted):
    train = torch.rand(800) < 0.5
    model = graph_sage().to(planted.x.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = NeighborSampler(planted, [10, 5], input_nodes=train, batch_size=64, shuffle=True)
    for _ in range(15):
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[:batch.batch_size]
            torch.nn.functional.cross_entropy(out, batch.y[:batch.batch_size]).backward()
            optimizer.step()
    found = model.eval()(planted.x, planted.edge_index).argmax(1)
    test = ~train.to(found.device)
    assert (found == planted.y)[test].float().mean() > 0.85
