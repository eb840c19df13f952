"""Mistakes that a newcomer makes: each is an exception that names the argument, never a crash or a wrong number."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as ss

import spgraph
from spgraph import cluster, graph

A = ss.csr_array([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]])
HUGE = 2**70


def broken(**parts):
    """A matrix whose arrays contradict each other, as scipy lets one make it."""
    matrix = A.copy()
    for name, array in parts.items():
        setattr(matrix, name, np.array(array))
    return matrix


WRONG = {
    "a list": (lambda: spgraph.matmul([[1]], A), TypeError, "a is list"),
    "device of a number": (lambda: spgraph.matmul(A, A, device=0), TypeError, "device is 0"),
    "device of no kind": (lambda: spgraph.matmul(A, A, device="gpu"), ValueError, "gpu"),
    "no device": (lambda: spgraph.matmul(A, A, device=""), ValueError, "device"),
    "part of an entry": (lambda: spgraph.matmul(A, A, top_k=1.5), TypeError, "top_k is 1.5"),
    "huge top_k": (lambda: spgraph.top_k(A, HUGE), OverflowError, "k is"),
    "descending offsets": (lambda: spgraph.matmul(broken(indptr=[0, 4, 2, 6]), A), ValueError, "contradicts itself"),
    "offsets beyond": (lambda: spgraph.matmul(broken(indptr=[0, 2, 4, 9]), A), ValueError, "contradicts itself"),
    "text for a factor": (lambda: spgraph.add(A, A, "2"), TypeError, "alpha is '2'"),
    "no factor": (lambda: spgraph.add(A, A, 1, None), TypeError, "beta is None"),
    "diagonal of a half": (lambda: spgraph.triu(A, 0.5), TypeError, "k is 0.5"),
    "half a thread": (lambda: spgraph.set_threads(1.5), TypeError, "threads is 1.5"),
    "threads as text": (lambda: spgraph.set_threads("2"), TypeError, "threads is '2'"),
    "more threads than can be": (lambda: spgraph.set_threads(10**6), ValueError, "1000000 threads"),
    "threads below none": (lambda: spgraph.set_threads(-1), ValueError, "-1 threads"),
    "threshold nan": (lambda: spgraph.similarity(A, threshold=np.nan), ValueError, "threshold is nan"),
    "complex values": (lambda: spgraph.MatmulPlan(A, A)(np.ones(6, complex)), TypeError, "complex"),
    "text for values": (lambda: spgraph.MatmulPlan(A, A)("abc"), TypeError, "a_values"),
    "alpha of a plan": (lambda: spgraph.MatmulPlan(A, A)(alpha="x"), TypeError, "alpha is 'x'"),
    "width of a half": (lambda: spgraph.SpmmPlan(A, 1.5), TypeError, "width is 1.5"),
    "huge width": (lambda: spgraph.SpmmPlan(A, HUGE), OverflowError, "width is"),
    "rows of x": (lambda: spgraph.SpmmPlan(A, 2)(np.ones((2, 2))), ValueError, "3 rows are needed"),
    "rows of an empty x": (lambda: spgraph.SpmmPlan(A, 2)(np.ones((5, 0))), ValueError, "3 rows are needed"),
    "a list for out": (lambda: spgraph.SpmmPlan(A, 2)(np.ones((3, 2)), out=[]), TypeError, "out is list"),
    "groups as text": (lambda: graph.contract(A, [0, 1, 2], groups="3"), TypeError, "groups is '3'"),
    "huge groups": (lambda: graph.contract(A, [0, 1, 2], groups=HUGE), OverflowError, "groups is"),
    "half a level": (lambda: graph.coarsen(A, 1.5), TypeError, "levels is 1.5"),
    "weight nan": (lambda: graph.coarsen(A, max_weight=np.nan), ValueError, "max_weight is nan"),
    "least": (lambda: graph.coarsen(A, least=-1), ValueError, "least is -1"),
    "inflation as text": (lambda: cluster.mcl(A, "2"), TypeError, "inflation is '2'"),
    "scheme as text": (lambda: cluster.mcl(A, scheme="x"), TypeError, "scheme is 'x'"),
    "half a selection": (lambda: cluster.mcl(A, select=1.5), TypeError, "select is 1.5"),
    "transform": (lambda: cluster.mcl(A, transform=3), TypeError, "transform is 3"),
    "device of mcl": (lambda: cluster.mcl(A, device=0), TypeError, "device is 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named(name):
    call, kind, words = WRONG[name]
    with pytest.raises(kind, match=words):
        call()
    assert spgraph.get_threads() >= 1  # as before


@pytest.mark.parametrize("shape", [(3, 0), (0, 3, 2), (2, 3, 0)])
def test_products_of_nothing(shape):
    plan = spgraph.SpmmPlan(A, 2)
    y = plan(np.ones(shape))
    assert y.shape == shape and plan(np.ones(shape), out=y) is y
    assert (spgraph.SpmmPlan(ss.csr_array((4, 0)), 2)(np.ones((0, 2))) == np.zeros((4, 2))).all()


def test_plans_are_not_copied():
    for plan in (spgraph.SpmmPlan(A, 2), spgraph.MatmulPlan(A, A)):
        for copies in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="neither copied nor pickled"):
                copies(plan)
    c = spgraph.matmul(A, A)  # its arrays are NumPy's
    for made in (copy.copy(c), copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert (made != c).nnz == 0


# ---- torch -------------------------------------------------------------------------------------------------


@pytest.fixture
def st():
    pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    import spgraph.torch

    return spgraph.torch


def test_mistakes_with_tensors_are_named(st):
    import torch

    e = torch.tensor([[0, 1, 2], [1, 2, 0]])
    make, a, x = st.SparseMatrix.from_edge_index, st.SparseMatrix.from_edge_index(e), torch.ones(3, 2)

    def csr(offsets, columns):
        return torch.sparse_csr_tensor(torch.tensor(offsets), torch.tensor(columns), torch.ones(len(columns)),
                                       (len(offsets) - 1, 3), check_invariants=False)

    for call, kind, words in (
            (lambda: make([[0], [1]]), TypeError, "edge_index is list"),
            (lambda: make(e.bool()), ValueError, "torch.bool"),
            (lambda: make(e, [1, 2, 3]), TypeError, "weight is list"),
            (lambda: make(e, size="x"), TypeError, "size is 'x'"),
            (lambda: make(e[:, :0], size=-1), ValueError, "size is -1"),
            (lambda: make(e * 2**40), ValueError, "size is"),
            (lambda: st.SparseMatrix.from_torch(np.eye(3)), TypeError, "tensor is ndarray"),
            (lambda: st.SparseMatrix.from_torch(csr([0, 1], [9])), ValueError, "contradicts itself"),
            (lambda: st.SparseMatrix.from_torch(csr([0, 1], [-1])), ValueError, "contradicts itself"),
            (lambda: st.SparseMatrix.from_torch(csr([0, 9], [1])), ValueError, "contradicts itself"),
            (lambda: st.SparseMatrix.from_torch(csr([0, 2, 1, 3], [0, 1, 2])), ValueError, "contradicts itself"),
            (lambda: spgraph.matmul(csr([0, 1, 1, 1], [9]), csr([0, 1, 1, 1], [0])), ValueError, "contradicts itself"),
            (lambda: a @ np.ones((3, 2)), TypeError, "x is ndarray"),
            (lambda: a.with_values([1, 2, 3]), TypeError, "values is list"),
            (lambda: st.maxk(x, 1.5), TypeError, "k is 1.5"),
            (lambda: st.NeighborSampler(None, [1]), TypeError, "edge_index is NoneType"),
            (lambda: st.NeighborSampler(e, ["a"]), TypeError, "num_neighbors is 'a'")):
        with pytest.raises(kind, match=words):
            call()


def test_matrices_of_torch_can_be_copied_and_stored(st):
    import torch

    e = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 0]])
    a, x = st.SparseMatrix.from_edge_index(e, torch.rand(4), 3).t(), torch.rand(3, 2)
    y = a @ x
    for made in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert torch.equal(made @ x, y) and made.shape == a.shape and torch.equal(made.degrees(), a.degrees())
    other = copy.deepcopy(a)
    other.values.zero_()
    assert torch.equal(a @ x, y) and (other @ x).abs().sum() == 0
