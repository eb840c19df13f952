"""The back end of networkx beside networkx itself, on random graphs of all kinds."""

import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as ss

nx = pytest.importorskip("networkx", minversion="3.4")
spx = pytest.importorskip("spgraph.networkx")

LOOPS_IN_SQUARES = tuple(map(int, nx.__version__.split(".")[:2])) >= (3, 5)  # older ones count loops as neighbours
OVER_NODES = ["triangles", "clustering", "square_clustering", "generalized_degree"]
OVER_PAIRS = ["jaccard_coefficient", "adamic_adar_index", "resource_allocation_index"]


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})


def graph(n=40, edges=160, directed=False, loops=True, named=False, seed=3):
    """A random graph with loops, nodes without edges and, on two edges of three, weights."""
    rng = random.Random(seed)
    made = nx.DiGraph() if directed else nx.Graph()
    name = (lambda i: f"node {i}") if named else (lambda i: i)
    made.add_nodes_from(map(name, range(n)))
    for i in range(edges):
        u, v = rng.randrange(n - 3), rng.randrange(n - 3)
        if u != v or loops:
            made.add_edge(name(u), name(v), **({"weight": rng.uniform(0.1, 3)} if i % 3 else {}))
    return made


def both(name, g, *args, **options):
    function = getattr(nx, name)
    return function(g, *args, backend="spgraph", **options), function(g, *args, backend="networkx", **options)


def assert_same(found, expected):
    if isinstance(expected, Counter):  # of one node, in any order
        assert found == expected
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for node, value in expected.items():
            assert found[node] == (value if isinstance(value, (int, dict)) else pytest.approx(value, rel=1e-12))
    else:
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("nodes", ["all", "one", "some", "none", "strangers"])
@pytest.mark.parametrize("name", OVER_NODES)
def test_counts_of_nodes_are_networkxs(name, nodes, named):
    g = graph(named=named, loops=LOOPS_IN_SQUARES or name != "square_clustering")
    all_nodes = list(g)
    chosen = {"all": None, "one": all_nodes[5], "some": all_nodes[30:2:-3] + [all_nodes[5]], "none": [],
              "strangers": ["nobody", all_nodes[1]]}[nodes]
    assert_same(*both(name, g, chosen))


@pytest.mark.parametrize("name", OVER_NODES + OVER_PAIRS + ["average_clustering", "transitivity", "pagerank"])
def test_small_graphs(name):
    for g in (nx.empty_graph(1), nx.empty_graph(3), nx.path_graph(2), nx.complete_graph(4), nx.star_graph(5)):
        found, expected = both(name, g)
        if name in OVER_PAIRS:
            assert sorted(found) == sorted(expected)
        else:
            assert_same(found, expected)


def test_graphs_without_nodes():
    for name in ("triangles", "clustering", "square_clustering", "generalized_degree", "pagerank"):
        assert getattr(nx, name)(nx.Graph(), backend="spgraph") == {}
    assert nx.transitivity(nx.Graph(), backend="spgraph") == 0
    assert list(nx.jaccard_coefficient(nx.Graph(), backend="spgraph")) == []
    with pytest.raises(ZeroDivisionError):
        nx.average_clustering(nx.Graph(), backend="spgraph")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weight", [None, "weight", "elsewhere"])
def test_clustering_with_weights_and_directions(directed, weight):
    g = graph(directed=directed)
    assert_same(*both("clustering", g, weight=weight))
    assert_same(*both("clustering", g, list(g)[::2], weight=weight))
    assert_same(*both("average_clustering", g, weight=weight))
    assert_same(*both("average_clustering", g, weight=weight, count_zeros=False))
    assert_same(*both("transitivity", g))


def test_weights_may_be_negative_or_zero():
    for directed in (False, True):
        g = graph(directed=directed)
        for i, (_, _, data) in enumerate(g.edges(data=True)):
            data["weight"] = (0.0, -1.5, 2.0, 1.0)[i % 4]
        assert_same(*both("clustering", g, weight="weight"))


@pytest.mark.parametrize("directed", [False, True])
def test_pagerank_with_all_its_options(directed):
    g = graph(directed=directed, named=True)
    some = {node: i + 1 for i, node in enumerate(list(g)[::3])}
    for options in ({}, {"alpha": 0.5}, {"personalization": some}, {"nstart": some}, {"dangling": some},
                    {"weight": None}, {"tol": 1e-10, "max_iter": 500}):
        found, expected = both("pagerank", g, **options)
        assert list(found) == list(expected)
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(g, max_iter=1, tol=1e-15, backend="spgraph")
    with pytest.raises(ZeroDivisionError):
        nx.pagerank(g, personalization={"nobody": 1}, backend="spgraph")


def test_parallel_edges_add_up_in_pagerank_and_are_one_in_triangles():
    rng = random.Random(1)
    g = nx.MultiGraph()
    g.add_weighted_edges_from((rng.randrange(20), rng.randrange(20), rng.random()) for _ in range(150))
    for weight in ("weight", None):
        found, expected = both("pagerank", g, weight=weight)
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9)
    assert_same(*both("triangles", g))
    if LOOPS_IN_SQUARES:
        assert_same(*both("square_clustering", g))
    with pytest.raises(nx.NetworkXNotImplemented, match="multigraph"):
        nx.clustering(g)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("name", OVER_PAIRS)
def test_scores_of_pairs_are_networkxs(name, loops):
    g = graph(loops=loops, named=True)
    if name == "jaccard_coefficient" and loops:
        with pytest.raises(NotImplementedError):
            nx.jaccard_coefficient(g, backend="spgraph")
        with nx.config(backend_priority=["spgraph"]):  # networkx then computes it
            assert len(list(nx.jaccard_coefficient(g))) == len(list(nx.non_edges(g)))
        return
    nodes = list(g)
    pairs = [(nodes[i * 7 % 40], nodes[i * 3 % 40]) for i in range(200)] + [(nodes[0], nodes[0])]
    for given in (pairs, [], pairs[:1]):
        found, expected = (list(x) for x in both(name, g, given))
        assert [x[:2] for x in found] == [x[:2] for x in expected]
        np.testing.assert_allclose([x[2] for x in found], [x[2] for x in expected], rtol=1e-12)
    found, expected = ({frozenset(x[:2]): x[2] for x in result} for result in both(name, g))
    assert found == pytest.approx(expected, rel=1e-12)
    with pytest.raises(nx.NodeNotFound, match="nobody"):
        getattr(nx, name)(g, [(nodes[0], "nobody")], backend="spgraph")


def test_numbers_of_common_neighbours_are_networkxs():
    g = graph(named=True)
    nodes = list(g)
    pairs = [(nodes[i * 7 % 40], nodes[(i * 7 + i % 39 + 1) % 40]) for i in range(200)]
    name = "common_neighbor_centrality"
    for given in (pairs, [], pairs[:1]):
        found, expected = (list(x) for x in both(name, g, given, alpha=1))
        assert found == expected and all(type(x[2]) is int for x in found)
    found, expected = ({frozenset(x[:2]): x[2] for x in result} for result in both(name, g, alpha=1))
    assert found == expected
    with pytest.raises(nx.NetworkXAlgorithmError, match="Self loops"):
        list(nx.common_neighbor_centrality(g, [(nodes[0], nodes[0])], alpha=1, backend="spgraph"))
    for options in ({}, {"alpha": 0.5}):
        with pytest.raises(NotImplementedError):
            nx.common_neighbor_centrality(g, pairs, backend="spgraph", **options)
        with nx.config(backend_priority=["spgraph"]):  # networkx then computes it
            assert len(list(nx.common_neighbor_centrality(g, pairs, **options))) == len(pairs)


def test_squares_in_several_blocks(monkeypatch):
    g = graph(200, 2000, loops=LOOPS_IN_SQUARES)
    expected = nx.square_clustering(g, backend="networkx")
    monkeypatch.setattr(spx, "_BLOCK", 500)
    assert_same(nx.square_clustering(g, backend="spgraph"), expected)
    pairs = nx.adamic_adar_index(g, backend="networkx")
    monkeypatch.setattr(spx, "_BLOCK", 8 * 600)
    found = {frozenset(x[:2]): x[2] for x in nx.adamic_adar_index(g, backend="spgraph")}
    assert found == pytest.approx({frozenset(x[:2]): x[2] for x in pairs}, rel=1e-12)


def test_attributes_that_are_not_numbers_stay_with_networkx():
    g = nx.complete_graph(3)
    nx.set_edge_attributes(g, "heavy", "weight")
    with pytest.raises(NotImplementedError, match="'weight' is not a number"):
        spx.convert_from_nx(g, edge_attrs={"weight": 1})
    with pytest.raises(NotImplementedError):
        nx.clustering(g, weight="weight", backend="spgraph")
    assert nx.clustering(g, backend="spgraph") == {0: 1, 1: 1, 2: 1}


def test_a_changed_graph_is_converted_again():
    g = nx.complete_graph(4)
    assert nx.triangles(g, backend="spgraph") == {0: 3, 1: 3, 2: 3, 3: 3}
    g.remove_edge(0, 1)
    assert nx.triangles(g, backend="spgraph") == {0: 1, 1: 1, 2: 2, 3: 2}


def test_views_are_converted():
    g = nx.complete_graph(6)
    view = nx.subgraph_view(g, filter_node=lambda node: node != 2)
    assert_same(*both("triangles", view))


def test_matrices_need_no_networkx_graph(make):
    a = make(30, 30, 0.2)
    symmetric = abs(a + a.T)
    g = nx.from_scipy_sparse_array(symmetric)
    here = spx.from_matrix(symmetric)
    assert_same(nx.triangles(here), nx.triangles(g))
    assert_same(nx.clustering(here, weight="weight"), nx.clustering(g, weight="weight"))
    assert_same(nx.triangles(here, [3, 5]), nx.triangles(g, [3, 5]))
    arcs = abs(a)
    di = spx.from_matrix(arcs, directed=True)
    assert_same(nx.transitivity(di), nx.transitivity(nx.from_scipy_sparse_array(arcs, create_using=nx.DiGraph)))
    again = spx.convert_to_nx(here)
    assert nx.utils.graphs_equal(nx.Graph(g), again) and not again.is_directed()
    with pytest.raises(ValueError, match="not symmetric"):
        spx.from_matrix(a)
    with pytest.raises(ValueError, match="square"):
        spx.from_matrix(ss.csr_array((2, 3)))
    with pytest.raises(ValueError, match="real numbers"):
        spx.from_matrix(ss.csr_array(np.eye(2) * 1j))


def test_networkx_keeps_what_is_faster_there():
    big = nx.path_graph(1000)
    for name, args, runs in (("triangles", (nx.path_graph(10),), False), ("triangles", (big,), True),
                             ("clustering", (big, 5), False), ("clustering", (big, range(900)), True),
                             ("clustering", (big, iter([1])), False), ("jaccard_coefficient", (big, [(0, 1)]), False),
                             ("pagerank", (big,), True), ("adamic_adar_index", (big,), True)):
        assert (spx.should_run(name, args, {}) is True) == runs, (name, args)


def test_networkx_finds_the_back_end_and_uses_it():
    program = """
import sys
import networkx as nx
assert "spgraph" in nx.utils.backends.backend_info
assert "spgraph" not in sys.modules  # importing networkx does not load the library
nx.config.backend_priority = ["spgraph"]
assert nx.transitivity(nx.complete_graph(400)) == 1
import spgraph.networkx as module
calls = []
before, module.transitivity = module.transitivity, lambda g: calls.append(g) or before(g)
nx.transitivity(nx.complete_graph(400))
nx.transitivity(nx.complete_graph(4))
assert len(calls) == 1
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=120).returncode == 0


def test_what_is_announced_is_there():
    import _spgraph_networkx

    for name in _spgraph_networkx.get_info()["functions"]:
        assert callable(getattr(spx, name)) and getattr(nx, name).backends >= {"spgraph"}
