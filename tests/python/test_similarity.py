"""Similarity joins beside dense products and sparse_dot_topn."""

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph
from spgraph import cluster


def expected(a, b, top_k, threshold, metric, skip):
    """The definition, by a dense product. `b` is a matrix."""
    x, y = (np.asarray(m.toarray(), np.float64) for m in (a, b))
    if metric == "cosine":
        x, y = (m / np.maximum(np.linalg.norm(m, axis=1, keepdims=True), 1e-300) for m in (x, y))
    s = x @ y.T
    if skip:
        np.fill_diagonal(s, 0)
    if threshold is not None:
        s[s < threshold] = 0
    if top_k is not None:
        for row in s:
            there = np.flatnonzero(row)
            row[there[np.argsort(-row[there], kind="stable")[top_k:]]] = 0
    return s


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-170, 1e170, 1e200, 1e300])
def test_cosines_do_not_depend_on_the_scale(make, scale):
    a = make(40, 15, 0.3, np.float64)
    found = spgraph.similarity(_scaled(a, scale), threshold=0.2)
    np.testing.assert_allclose(found.toarray(), spgraph.similarity(a, threshold=0.2).toarray(), rtol=1e-12)


def _scaled(matrix, scale):
    made = matrix.copy()
    made.data *= scale
    return made


@pytest.mark.parametrize("metric", ["cosine", "dot"])
@pytest.mark.parametrize("top_k, threshold", [(None, None), (1, None), (5, None), (None, 0.31), (3, 0.21),
                                              (1000, -0.4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_joins_are_dense_products(make, metric, top_k, threshold, dtype):
    for rows, cols, others in ((40, 15, 60), (1, 15, 60), (40, 15, 1), (0, 5, 3), (3, 5, 0), (4, 0, 4)):
        a, b = make(rows, cols, 0.3, dtype), make(others, cols, 0.3, dtype)
        found = spgraph.similarity(a, b, top_k, threshold, metric)
        assert found.dtype == dtype and found.shape == (rows, others) and type(found) is type(a)
        found.check_format(full_check=True)
        wanted = expected(a, b, top_k, threshold, metric, False)
        np.testing.assert_allclose(found.toarray(), wanted, atol=1e-5 if dtype == np.float32 else 1e-12)
        if rows == others:
            continue
        itself = spgraph.similarity(a, top_k=top_k, threshold=threshold, metric=metric)
        np.testing.assert_allclose(itself.toarray(), expected(a, a, top_k, threshold, metric, True),
                                   atol=1e-5 if dtype == np.float32 else 1e-12)


def test_a_row_with_itself(make):
    a = make(20, 10, 0.5)
    assert (spgraph.similarity(a).diagonal() == 0).all()
    np.testing.assert_allclose(spgraph.similarity(a, self_join=False).diagonal(), 1)
    np.testing.assert_allclose(spgraph.similarity(a, a).diagonal(), 1)
    assert (spgraph.similarity(a, a, self_join=True).diagonal() == 0).all()


def test_types_and_formats(make):
    whole = make(20, 10, 0.5, np.int64)
    dots = spgraph.similarity(whole, metric="dot", self_join=False)
    assert dots.dtype == np.int64 and (dots.toarray() == (whole @ whole.T).toarray()).all()
    assert spgraph.similarity(whole).dtype == np.float64
    big = ss.csr_array(np.array([[2**27, 1]]))
    with pytest.raises(NotImplementedError, match="2\\^53"):
        spgraph.similarity(big, metric="dot")
    for kind, format in ((ss.csr_matrix, "csr"), (ss.csc_array, "csc")):
        found = spgraph.similarity(kind(make(20, 10, 0.5)), top_k=2)
        assert found.format == format and isinstance(found, ss.sparray) == (kind is ss.csc_array)
    assert (spgraph.similarity(ss.csr_array((3, 4))).toarray() == 0).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_values_that_are_not_finite_are_refused(make, value, metric):
    a, b = make(20, 10, 0.5), make(20, 10, 0.5)
    entry = b.indptr[7] + 1
    b.data[entry] = value
    said = f"has the value {value} in row 7, column {b.indices[entry]}:"
    with pytest.raises(ValueError, match="b " + said):
        spgraph.similarity(a, b, metric=metric)
    with pytest.raises(ValueError, match="a " + said):
        spgraph.similarity(b, metric=metric)


def test_wrong_arguments(make):
    a = make(4, 5, 0.5)
    for call, message in ((lambda: spgraph.similarity(a, make(4, 6, 0.5)), "same length"),
                          (lambda: spgraph.similarity(a, top_k=0), "1 or more"),
                          (lambda: spgraph.similarity(a, threshold=float("nan")), "threshold is nan"),
                          (lambda: spgraph.similarity(a, metric="jaccard"), "cosine, dot")):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("threshold", [None, 0.6])
def test_joins_are_those_of_sparse_dot_topn(rng, threshold):
    peer = pytest.importorskip("sparse_dot_topn", reason="sparse_dot_topn is not installed")
    a = ss.random(3000, 400, 0.03, "csr", random_state=4)
    b = ss.random(40000, 400, 0.03, "csr", random_state=5)
    there = peer.sp_matmul_topn(a, b.T.tocsr(), top_n=5, threshold=threshold, sort=False)
    here = spgraph.similarity(a, b, 5, threshold, "dot")
    there.sort_indices()
    assert (there.indptr == here.indptr).all() and (there.indices == here.indices).all()
    np.testing.assert_allclose(here.data, there.data)


def test_neighbours_become_clusters(rng):
    centres = rng.random((5, 60)) < 0.15
    rows = [np.where(rng.random(60) < 0.1, 0, centres[i % 5]) for i in range(200)]
    near = spgraph.similarity(ss.csr_array(np.array(rows, np.float32)), top_k=10, threshold=0.3)
    found = cluster.mcl(near.maximum(near.T), 2.0)
    assert len(set(zip(found.labels, np.arange(200) % 5))) == len(found)  # no cluster mixes groups
    assert len(found) < 15
