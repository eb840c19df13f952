"""Quotient graphs beside plain loops, and reading of files."""

import os
import subprocess

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph
from conftest import BUILD
from spgraph import _abi, _core, cluster, graph


def quotient(matrix, labels, groups, combine, loops):
    """Dense values and where there are entries, by a loop over the entries in the order of rows."""
    lists = {}
    coo = matrix.tocsr().sorted_indices().tocoo()
    for i, j, value in zip(coo.row, coo.col, coo.data):
        p, q = labels[i], labels[j]
        if p >= 0 and q >= 0 and (loops == "keep" or (p == q) == (loops == "only")):
            lists.setdefault((p, q), []).append(float(value))
    how = {"sum": sum, "max": max, "min": min, "first": lambda x: x[0], "mean": np.mean, "count": len}[combine]
    dense, entries = np.zeros((groups, groups)), np.zeros((groups, groups), bool)
    for place, values in lists.items():
        dense[place], entries[place] = how(values), True
    return dense, entries


@pytest.mark.parametrize("combine", ["sum", "max", "min", "first", "mean", "count"])
@pytest.mark.parametrize("loops", ["keep", "drop", "only"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_quotients(make, rng, combine, loops, dtype):
    matrix, labels = make(40, 40, 0.15, dtype=dtype), rng.integers(-1, 6, 40)
    c = graph.contract(matrix, labels, combine=combine, loops=loops, groups=7)
    dense, entries = quotient(matrix, labels, 7, combine, loops)
    assert c.shape == (7, 7) and c.nnz == entries.sum()
    np.testing.assert_allclose(c.toarray(), dense, rtol=1e-5, atol=1e-6)
    if dtype == np.int8:
        assert c.dtype == {"sum": np.int64, "count": np.int64, "mean": np.float64}.get(combine, np.int8)
    else:
        assert c.dtype == dtype


@pytest.mark.parametrize("kind", [ss.csr_array, ss.csr_matrix, ss.coo_array, ss.csc_matrix])
def test_classes_stay(make, kind):
    matrix = kind(make(10, 10, 0.3))
    assert type(graph.contract(matrix, np.arange(10) // 2)) is kind


def test_groups_that_overlap(make, rng):
    matrix, s = make(20, 20, 0.3), make(4, 20, 0.3)
    np.testing.assert_allclose(graph.contract(matrix, s).toarray(), (s @ matrix @ s.T).toarray(), atol=1e-12)
    member = s.astype(bool)
    ones = member.astype(float)
    np.testing.assert_allclose(graph.contract(matrix, member).toarray(), (ones @ matrix @ ones.T).toarray(), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("more", [0, 5])
def test_quotients_fill_the_callers_matrices(make, rng, dtype, index, more):
    matrix, labels = make(40, 40, 0.15, dtype=dtype), rng.integers(-1, 6, 40)
    expected = graph.contract(matrix, labels, groups=7)
    out = ss.csr_array((7, 7), dtype=dtype)
    out.indptr, out.indices = np.full(8, 9, index), np.full(expected.nnz + more, 9, np.int32)
    out.data = np.full(expected.nnz + more, np.nan, dtype)
    data = out.data
    assert graph.contract(matrix, labels, groups=7, out=out) is out and out.data is data
    assert out.nnz == expected.nnz and out.indptr.dtype == index
    out.prune()
    np.testing.assert_array_equal(out.indptr, expected.indptr)
    np.testing.assert_array_equal(out.indices, expected.indices)
    np.testing.assert_array_equal(out.data, expected.data)
    small = ss.csr_array((7, 7), dtype=dtype)
    with pytest.raises(ValueError, match=f"{expected.nnz} entries, and its arrays have room for 0"):
        graph.contract(matrix, labels, groups=7, out=small)
    with pytest.raises(ValueError, match="shape"):
        graph.contract(matrix, labels, groups=8, out=out)
    with pytest.raises(ValueError, match="float32 or float64"):
        graph.contract(matrix, labels, groups=7, combine="count", out=out.astype(int))
    with pytest.raises(NotImplementedError, match="labels"):
        graph.contract(matrix, make(7, 40), out=out)


def test_a_clustering_is_a_labelling(data):
    given = graph.read(data("Hu-2007.txt.gz"))
    found = cluster.mcl(given)
    c = graph.contract(given, found)
    assert c.shape == (len(found), len(found))
    assert np.isclose(c.diagonal().sum() / c.sum(), found.coverage, rtol=0.05)  # but for loops
    assert np.isclose(c.sum(), given.matrix.sum())


def test_other_graphs():
    networkx = pytest.importorskip("networkx")
    c = graph.contract(networkx.path_graph(4), [0, 0, 1, 1])
    assert type(c) is ss.csr_array and (c.toarray() == [[2, 1], [1, 2]]).all()
    c = graph.contract((np.array([0, 1, 2]), np.array([1, 2, 3])), [0, 0, 1, 1])
    assert (c.toarray() == [[2, 1], [1, 2]]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_devices(make, rng, dtype):
    matrix, labels = abs(make(300, 300, 0.02, dtype=dtype)), rng.integers(-1, 9, 300)
    matrix = (matrix + matrix.T).tocsr()
    for device in ("cpu", "auto"):  # "auto" is a GPU where there is one, with the same bits
        assert_equal(graph.contract(matrix, labels, device=device), graph.contract(matrix, labels))
        overlapping = make(5, 300, 0.2).astype(bool)
        assert_equal(graph.contract(matrix, overlapping, device=device), graph.contract(matrix, overlapping))
        out, expected = graph.contract(matrix.astype(float), labels), graph.contract(matrix.astype(float), labels)
        out.data[:] = np.nan
        assert_equal(graph.contract(matrix.astype(float), labels, out=out, device=device), expected)
        for method in graph.METHODS:
            options = {"weights": np.arange(300) % 3 + 1, "max_weight": 30.0}
            found, levels = (graph.coarsen(matrix, 3, method, **options, **there) for there in ({"device": device}, {}))
            assert len(found) == len(levels) > 0
            for mine, theirs in zip(found, levels):
                assert_equal(mine.graph, theirs.graph)
                assert (mine.labels == theirs.labels).all() and (mine.nodes == theirs.nodes).all()
    for call, first in ((graph.contract, labels), (graph.coarsen, 1)):
        with pytest.raises(RuntimeError, match="CUDA|device"):
            call(matrix, first, device="cuda:1023")


@pytest.mark.parametrize("method", graph.METHODS)
def test_levels_from_moved_arrays(make, monkeypatch, method):
    """What a GPU does to a graph of scipy, with the CPU in its place."""
    matrix = abs(make(300, 300, 0.02))
    matrix = (matrix + matrix.T).tocsr()
    expected = graph.coarsen(matrix, 3, method, weights=np.arange(300) % 3 + 1, max_weight=30.0)
    monkeypatch.setattr(_abi, "SP_DEVICE", _abi.SP_HOST)
    monkeypatch.setattr(_core.lib, "sp_context_is_cuda", lambda _: True)
    found = graph.coarsen(matrix, 3, method, weights=np.arange(300) % 3 + 1, max_weight=30.0)
    assert len(found) == len(expected) > 0
    for mine, theirs in zip(found, expected):
        assert_equal(mine.graph, theirs.graph)
        assert (mine.labels == theirs.labels).all()


def assert_equal(found, expected):
    assert type(found) is type(expected) and found.dtype == expected.dtype
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_what_is_refused(make):
    matrix = make(6, 6, 0.5)
    for labels, options in (([0, 1], {}), (np.zeros(6), {}), ([0, 1, 2, 3, 4, 5], {"groups": 3}),
                            (np.arange(6), {"combine": "median"}), (np.arange(6), {"loops": "no"}),
                            (np.arange(6) + 2**40, {})):
        with pytest.raises(ValueError):
            graph.contract(matrix, labels, **options)
    with pytest.raises(ValueError, match="square"):
        graph.contract(make(3, 4, 0.5), [0, 1, 2])
    with pytest.raises(NotImplementedError):
        graph.contract(ss.csr_array(np.full((2, 2), 2**52)), [0, 0])
    with pytest.raises(NotImplementedError):
        graph.contract(matrix.astype(complex), np.arange(6))


@pytest.mark.parametrize("method", graph.METHODS)
def test_levels_are_those_of_the_program_contract(data, tmp_path, method):
    program = os.path.join(BUILD, "bin", "contract")
    if not os.path.exists(program):
        pytest.skip("contract is not built")
    target = tmp_path / "q.mtx"
    subprocess.run([program, data("Hu-2007.txt.gz"), "-o", target, "--repeat", method, "--levels", "3"], check=True,
                   capture_output=True)
    given = graph.read(data("Hu-2007.txt.gz"))
    levels = graph.coarsen(given, 3, method)
    assert len(levels) == 3
    for number, level in enumerate(levels, 1):
        groups = dict(line.rsplit("\t", 1) for line in open(f"{target}.level{number}.map").read().splitlines())
        if number == 1:
            assert [int(groups[name]) - 1 for name in given.nodes] == level.labels.tolist()
        else:
            assert [int(groups[str(i + 1)]) - 1 for i in range(len(level.labels))] == level.labels.tolist()


@pytest.mark.parametrize("method", graph.METHODS)
@pytest.mark.parametrize("kind", [ss.csr_array, ss.csc_matrix])
def test_coarse_graphs_are_quotients_of_connected_groups(make, method, kind):
    matrix = make(300, 300, 0.01)
    matrix = kind(abs(matrix + matrix.T))
    before, nodes = matrix, np.arange(300)
    levels = graph.coarsen(matrix, 3, method)
    assert levels
    for level in levels:
        groups = level.graph.shape[0]
        assert groups < before.shape[0] and type(level.graph) is kind
        assert sorted(set(level.labels.tolist())) == list(range(groups))
        if method in ("matching", "two-hop"):
            assert np.bincount(level.labels).max() <= 2
        dense, entries = quotient(before, level.labels, groups, "sum", "keep")
        np.testing.assert_allclose(level.graph.toarray(), dense, rtol=1e-12)
        np.testing.assert_array_equal(level.nodes, level.labels[nodes])
        before, nodes = level.graph, level.nodes
    spgraph.set_threads(1)
    try:
        again = graph.coarsen(matrix, 3, method)
    finally:
        spgraph.set_threads(0)
    assert all(np.array_equal(x.nodes, y.nodes) for x, y in zip(levels, again)) and len(levels) == len(again)


def test_bounds_of_coarsening(make):
    matrix = make(200, 200, 0.05)
    matrix = abs(matrix + matrix.T)
    sizes = [level.graph.shape[0] for level in graph.coarsen(matrix, 50, "hec", least=37)]
    assert sizes[-1] == 37 and sizes == sorted(sizes, reverse=True)
    for level in graph.coarsen(matrix, 9, "lp", max_weight=6):
        assert np.bincount(level.nodes).max() <= 6
    weights = np.arange(1, 201)
    for level in graph.coarsen(matrix, 9, "lp", max_weight=250, weights=weights):
        heavy = np.bincount(level.nodes, weights=weights)
        assert heavy[np.bincount(level.nodes) > 1].max(initial=0) <= 250
    assert weights[0] == 1 and len(graph.coarsen(matrix, 0)) == 0
    first = graph.coarsen(matrix, loops="drop", combine="max")[0].graph
    assert first.diagonal().sum() == 0 and first.max() <= matrix.max()
    whole = graph.coarsen((matrix > 0).astype(np.int32), 2)[-1].graph
    assert whole.dtype == np.int64 and whole.sum() == (matrix > 0).sum()


@pytest.mark.parametrize("shape", [0, 1, 5])
def test_graphs_without_edges_are_not_coarsened(shape):
    assert graph.coarsen(ss.csr_array((shape, shape)), 4) == []


def test_what_coarsening_refuses(make):
    matrix = make(6, 6, 0.5)
    for options in ({"method": "metis"}, {"levels": -1}, {"least": -1}, {"max_weight": -1.0}, {"loops": "no"},
                    {"combine": "median"}, {"weights": [1, 2]}, {"weights": np.zeros(6)}, {"weights": [np.nan] * 6}):
        with pytest.raises(ValueError):
            graph.coarsen(matrix, **options)
    with pytest.raises(ValueError, match="square"):
        graph.coarsen(make(3, 4, 0.5))


def test_order_by_degree_falls_and_keeps_equals(make):
    given = make(100, 100, 0.03), make(100, 100, 0.03, dtype=np.int16), ss.csr_array((0, 0)), ss.csc_array((4, 4))
    for matrix in given:
        found = graph.order(matrix, "degree")
        expected = np.argsort(-np.diff(matrix.tocsr().indptr), kind="stable")
        assert found.dtype == np.int32 and found.tolist() == expected.tolist()


def test_order_by_community_brings_groups_together(rng):
    group = rng.permutation(np.repeat(np.arange(6), 30))
    row, col = rng.integers(0, 180, 6000), rng.integers(0, 180, 6000)
    there = (group[row] == group[col]) & (row != col)
    matrix = ss.coo_array((np.ones(there.sum()), (row[there], col[there])), shape=(180, 180)).tocsr()
    matrix.data[:] = 1
    matrix = matrix.maximum(matrix.T)
    found = graph.order(matrix)
    assert sorted(found.tolist()) == list(range(180))
    assert np.count_nonzero(np.diff(group[found])) < 40 < np.count_nonzero(np.diff(group))  # about 150
    assert graph.order(ss.csr_array((0, 0))).tolist() == [] and graph.order(ss.csr_array((1, 1))).tolist() == [0]


@pytest.mark.parametrize("kind", [ss.csr_array, ss.csr_matrix, ss.coo_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_reordered_graphs_are_the_same_graph(make, rng, kind, dtype):
    matrix = kind(make(50, 50, 0.1, dtype=dtype))
    order = rng.permutation(50)
    made = graph.reorder(matrix, order)
    assert type(made) is kind and made.dtype == dtype
    np.testing.assert_array_equal(made.toarray(), matrix.toarray()[order][:, order])
    assert graph.reorder(ss.csr_array((0, 0)), []).shape == (0, 0)
    for wrong in (order[:-1], np.append(order[:-1], 50), np.zeros(50, int), order.astype(float), order - 1):
        with pytest.raises(ValueError, match="once"):
            graph.reorder(matrix, wrong)


def test_reading(tmp_path):
    path = tmp_path / "g.abc"
    path.write_text("é b 1.5\nb c 2\nb é 3\nc c 4\n")
    found = graph.read(path)
    assert found.nodes == ["é", "b", "c"] and found.numbered and found.matrix.dtype == np.float64
    assert (found.matrix.toarray() == [[0, 3, 0], [3, 0, 2], [0, 2, 4]]).all()
    added = graph.read(path, combine="sum", dtype=np.float32).matrix
    assert (added.toarray() == [[0, 4.5, 0], [4.5, 0, 2], [0, 2, 4]]).all()
    path = tmp_path / "g.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 5\n2 2 6\n")
    found = graph.read(path)
    assert found.nodes is None and (found.matrix.toarray() == [[0, 0], [5, 6]]).all()  # as in mcl
    many = tmp_path / "many.abc"
    many.write_text("".join(f"node{i} node{i + 1} 1\n" for i in range(10000)))
    assert graph.read(many).nodes == [f"node{i}" for i in range(10001)]
    for options in ({"format": "xml"}, {"dtype": np.int32}, {"combine": "none"}):
        with pytest.raises(ValueError):
            graph.read(path, **options)
