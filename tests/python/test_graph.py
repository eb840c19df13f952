"""Quotient graphs beside plain loops, and reading of files."""

import numpy as np
import pytest
import scipy.sparse as ss

from spgraph import cluster, graph


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
