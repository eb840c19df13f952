"""Graphs: reading, quotient graphs, coarsening, and orders of nodes."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as ss

from . import _abi
from ._core import F8, I4, Session, address, lib, real, view, whole
from ._input import COMBINE, Graph, as_graph, read
from ._matrix import Target, Types, as_csr, choose, largest, lend, take
from .cluster import Clustering

LOOPS = ("keep", "drop", "only")
METHODS = ("matching", "two-hop", "hec", "lp")
ORDERS = ("community", "degree")


def _types(csr: Any, combine: str) -> Types:
    """The types of a quotient graph of whole numbers: sums and counts are int64, means float64."""
    types = Types(csr)
    if types.whole:
        bound = float(np.abs(csr.data.astype(F8)).sum()) if combine in ("sum", "mean") else largest(csr)
        types.require_exact(bound if combine != "count" else 0)
        if combine in ("sum", "count"):
            types.result = np.dtype(np.int64)
        if combine == "mean":
            types.whole, types.result = False, types.compute
    return types


def _label_array(labels: Any, nodes: int) -> np.ndarray:
    array = labels.labels if isinstance(labels, Clustering) else np.asarray(labels)
    if array.shape != (nodes,) or (array.dtype.kind not in "iu" and nodes):
        raise ValueError(f"labels must be an array of {nodes} whole numbers, one for each node of the graph")
    if nodes and (array.max() >= 2**31 or array.min() < -(2**31)):
        raise ValueError("labels are below 2^31")
    return np.ascontiguousarray(array, I4)


def contract(graph: Any, labels: Any, *, combine: str = "sum", loops: str = "keep", groups: int | None = None,
             out: Any = None) -> Any:
    """Merge the nodes of each group into one: the quotient graph S G S^T.

    Parameters
    ----------
    graph : as for `cluster.mcl`
        A sparse matrix, or any other graph.
    labels : array of int, Clustering, or sparse matrix
        The group of each node, from 0; a negative label leaves out the node and its edges. A sparse matrix has a row
        for each group and a column for each node: groups may overlap and have weights.
    combine : {"sum", "max", "min", "first", "mean", "count"}
        How the edges between two groups become one. An undirected edge has two entries, so that an edge inside a group
        counts twice on the diagonal.
    loops : {"keep", "drop", "only"}
        What becomes of the edges inside groups, on the diagonal.
    groups : int, optional
        The number of groups. The largest label and one more by default.
    out : sparse array or matrix, optional
        A matrix in compressed rows whose arrays take the result: of its shape and type, float32 or float64, with int32
        columns and room for its entries. There may be more room, which ``out.prune()`` cuts off. What it holds is not
        read. Not for overlapping groups.

    Returns
    -------
    sparse matrix
        `out`, or one of the class and format of `graph`, or a csr_array. Whole numbers give int64 for sums and counts
        and float64 for means.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from spgraph import graph
    >>> path = sp.csr_array(np.diag([1.0, 2.0, 3.0], 1) + np.diag([1.0, 2.0, 3.0], -1))
    >>> graph.contract(path, [0, 0, 1, 1]).toarray()
    array([[2., 2.],
           [2., 6.]])
    """
    number, loop = choose(COMBINE, combine, "combine"), choose(LOOPS, loops, "loops")
    like = _square(graph)
    csr = as_csr(like, "graph")
    types = _types(csr, combine)
    keep: list[Any] = []
    lent, c = lend(csr, types.compute, keep), _abi.sp_csr()
    how = _abi.sp_contract_options(combine=number, loops=loop)
    if ss.issparse(labels):
        if out is not None:
            raise NotImplementedError("out is for labels, not for a sparse matrix of groups")
        s = as_csr(labels, "labels")
        if types.whole and Types(s).result.kind != "b":
            raise NotImplementedError("groups with weights need a graph of float32 or float64 values")
        options = _abi.contraction_options(how=how)
        members = lend(s, types.compute, keep, pattern=s.dtype.kind == "b" or combine != "sum")
        with Session() as session:
            session.check(lib.contraction_product(session.handle, members, lent, options, c, None))
            return take(session, c, types, like)
    array = _label_array(labels, csr.shape[0])
    count = whole(groups, "groups") if groups is not None else int(array.max(initial=-1)) + 1
    target = None if out is None else Target(out, (count, count), types)
    call = lib.sp_contract_into if target else lib.sp_contract
    with Session() as session:
        session.check(call(session.handle, lent, address(array), _abi.SP_HOST, count, how,
                           target.struct if target else c, None))
        return target.take() if target else take(session, c, types, like)


class Level(NamedTuple):
    """A level of a hierarchy of graphs, each the quotient graph of the one before.

    Attributes
    ----------
    graph : sparse matrix
        The weights between groups. Those of the edges within a group are on the diagonal, unless ``loops="drop"``.
    labels : ndarray of int32
        The group of each node of the level before, or of the graph for the first level.
    nodes : ndarray of int32
        The group of each node of the graph from which all began.
    """

    graph: Any
    labels: np.ndarray
    nodes: np.ndarray


def _square(graph: Any) -> Any:
    """The matrix of a graph in its own class and format."""
    like = graph if ss.issparse(graph) else as_graph(graph, "weight", False, F8).matrix
    if like.ndim == 2 and like.shape[0] != like.shape[1]:
        raise ValueError(f"the matrix of a graph is square, not {like.shape[0]} x {like.shape[1]}")
    return like


def _node_weights(weights: Any, nodes: int) -> np.ndarray:
    array = np.array(weights, F8)  # a copy, which becomes that of groups
    array = np.full(nodes, array) if array.ndim == 0 else array
    if array.shape != (nodes,) or not (array > 0).all() or not np.isfinite(array).all():
        raise ValueError(f"weights must be {nodes} numbers above 0, one for each node of the graph")
    return array


def coarsen(graph: Any, levels: int = 1, method: str = "two-hop", *, least: int = 0, max_weight: float = 0.0,
            weights: Any = None, seed: int = 1, combine: str = "sum", loops: str = "keep") -> list[Level]:
    """Make a graph smaller, level by level: merge strongly connected neighbours, as ``contract --repeat`` does.

    Parameters
    ----------
    graph : as for `cluster.mcl`
        A sparse matrix, or any other graph. Edges of weight 0 and below join no nodes.
    levels : int
        The number of levels at most.
    method : {"matching", "two-hop", "hec", "lp"}
        Pairs of neighbours along heavy edges; the same, and pairs with a common neighbour where these stall; groups
        along the heaviest edge of each node; label propagation.
    least : int
        Stop at this many groups.
    max_weight : float
        The greatest weight of a group of several nodes; 0 means any.
    weights : array, optional
        The weights of the nodes, above 0. 1 each by default. A group weighs what its nodes weigh.
    seed : int
        Decides between equal edges. The result depends on it, and not on the number of threads.
    combine, loops
        How edges become one and what becomes of those inside groups, as for `contract`.

    Returns
    -------
    list of Level
        Fewer than `levels` if no nodes can be merged any more; empty for a graph without edges.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from spgraph import graph
    >>> path = sp.csr_array(np.diag([5.0, 1.0, 5.0], 1) + np.diag([5.0, 1.0, 5.0], -1))
    >>> first, second = graph.coarsen(path, 2)
    >>> first.labels
    array([0, 0, 1, 1], dtype=int32)
    >>> first.graph.toarray()
    array([[10.,  1.],
           [ 1., 10.]])
    >>> second.nodes
    array([0, 0, 0, 0], dtype=int32)
    """
    how = _abi.contraction_coarsening(method=choose(METHODS, method, "method"), seed=whole(seed, "seed"),
                                      least=whole(least, "least"), max_weight=real(max_weight, "max_weight"))
    for name, value in (("levels", whole(levels, "levels")), ("least", least), ("max_weight", max_weight)):
        if not value >= 0:
            raise ValueError(f"{name} is {value}: 0 or more is possible")
    choose(COMBINE, combine, "combine")
    choose(LOOPS, loops, "loops")
    current = _square(graph)
    heavy = _node_weights(1.0 if weights is None else weights, current.shape[0])
    how.weights = address(heavy)
    nodes: Any = np.arange(current.shape[0], dtype=I4)
    made: list[Level] = []
    while len(made) < levels and current.shape[0] > least:
        csr = as_csr(current, "graph")
        keep: list[Any] = []
        types, groups = _types(csr, combine), ctypes.c_int64()
        labels = np.empty(csr.shape[0], I4)
        with Session() as session:
            lent = lend(csr, types.compute, keep)
            session.check(lib.contraction_coarsen(session.handle, lent, how, address(labels), ctypes.byref(groups)))
            if groups.value == csr.shape[0]:
                break
            session.check(lib.contraction_add_weights(session.handle, address(labels), len(labels), groups.value,
                                                      _abi.SP_HOST, address(heavy)))
        current = contract(current, labels, combine=combine, loops=loops, groups=groups.value)
        nodes = labels[nodes]
        made.append(Level(current, labels, nodes))
    return made


def order(graph: Any, method: str = "community") -> np.ndarray:
    """Find an order of the nodes of a graph.

    Parameters
    ----------
    graph : as for `cluster.mcl`
        A sparse matrix, or any other graph.
    method : {"community", "degree"}
        "community": the nodes of a community are neighbours, so that products find in the cache what neighbouring rows
        share. Communities come from label propagation by modularity with positive entries as weights. "degree": by
        falling number of entries of the rows, equals as they were.

    Returns
    -------
    ndarray of int32
        The old number of each node in the new order, for `reorder`. It does not depend on the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from spgraph import graph
    >>> star = sp.csr_array(np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]]))
    >>> graph.order(star, "degree")
    array([2, 0, 1], dtype=int32)
    """
    number = choose(ORDERS, method, "method")
    csr = as_csr(_square(graph), "graph")
    keep: list[Any] = []
    types = Types(csr)
    types.require_exact(0)
    found = np.empty(csr.shape[0], I4)
    with Session() as session:
        lent = lend(csr, types.compute, keep)
        if ORDERS[number] == "degree":
            session.check(lib.sp_csr_degree_order(session.handle, lent, address(found), _abi.SP_HOST))
            return found
        pointer = ctypes.c_void_p()
        session.check(lib.sp_csr_community_order(session.handle, lent, ctypes.byref(pointer)))
        try:
            return view(pointer.value, csr.shape[0], I4)
        finally:
            lib.sp_free(session.handle, pointer)


def reorder(graph: Any, order: Any) -> Any:
    """Renumber the nodes of a graph.

    Parameters
    ----------
    graph : as for `cluster.mcl`
        A sparse matrix, or any other graph.
    order : array of int
        The old number of each node, as from `order`: each node once.

    Returns
    -------
    sparse matrix
        Of the class and format of `graph`, or a csr_array: node i is node ``order[i]`` of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from spgraph import graph
    >>> star = sp.csr_array(np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]]))
    >>> graph.reorder(star, graph.order(star, "degree")).toarray()
    array([[0, 1, 1],
           [1, 0, 0],
           [1, 0, 0]])
    """
    like = _square(graph)
    csr = as_csr(like, "graph")
    given = np.asarray(order)
    n = csr.shape[0]
    if given.shape != (n,) or (given.dtype.kind not in "iu" and n) or not np.array_equal(np.sort(given), np.arange(n)):
        raise ValueError(f"order must have each of the numbers from 0 to {n - 1} once")
    old = np.ascontiguousarray(given, I4)
    new = np.empty(n, I4)
    new[old] = np.arange(n, dtype=I4)
    keep: list[Any] = []
    types, c = Types(csr), _abi.sp_csr()
    types.require_exact(largest(csr) if types.whole else 0)
    with Session() as session:
        lent = lend(csr, types.compute, keep)
        session.check(lib.sp_csr_permute(session.handle, lent, address(old), address(new), c))
        return take(session, c, types, like)


__all__ = ["Graph", "Level", "coarsen", "contract", "order", "read", "reorder"]
