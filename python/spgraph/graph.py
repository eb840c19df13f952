"""Graphs: reading, quotient graphs, coarsening, and orders of nodes."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from . import _abi
from ._core import F8, I4, Session, lib, real, view, whole
from ._device import home_of, is_sparse
from ._home import Home, Target, is_whole
from ._input import COMBINE, Graph, as_graph, read
from ._matrix import choose
from .cluster import Clustering

LOOPS = ("keep", "drop", "only")
METHODS = ("matching", "two-hop", "hec", "lp")
ORDERS = ("community", "degree")


def _become_quotient(home: Home, combine: str) -> None:
    """The types of a quotient graph of whole numbers: sums and counts are int64, means float64."""
    if not home.whole:
        return
    bound = 0.0
    if combine in ("sum", "mean"):
        bound = float(np.abs(home.matrices["graph"].data.astype(F8)).sum())
    elif combine != "count":
        bound = home.largest("graph")
    home.require_exact(bound)
    if combine in ("sum", "count"):
        home.become(np.int64)
    if combine == "mean":
        home.become_real()


def _labels(home: Home, labels: Any, nodes: int) -> Any:
    array = home.array(labels.labels if isinstance(labels, Clustering) else labels, "labels", move=True)
    if tuple(array.shape) != (nodes,) or not (is_whole(home.type_of(array)) or not nodes):
        raise ValueError(f"labels must be an array of {nodes} whole numbers, one for each node of the graph")
    if nodes and (int(array.max()) >= 2**31 or int(array.min()) < -(2**31)):
        raise ValueError("labels are below 2^31")
    return home.cast(array, "int32")


def contract(graph: Any, labels: Any, *, combine: str = "sum", loops: str = "keep", groups: int | None = None,
             out: Any = None, device: str | None = None) -> Any:
    """Merge the nodes of each group into one: the quotient graph S G S^T.

    Parameters
    ----------
    graph : sparse matrix of scipy or cupy, sparse CSR tensor of torch, or as for `cluster.mcl`
        Those on a GPU are contracted there, in the order of the stream that is current in cupy or torch.
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
    out : sparse matrix or tensor, optional
        A matrix in compressed rows whose arrays take the result: of its shape and type, float32 or float64, with room
        for its entries. In scipy there may be more room, which ``out.prune()`` cuts off; tensors and matrices of cupy
        have no room to spare. Columns that are not int32 are converted. What it holds is not read. Not for overlapping
        groups.
    device : str, optional
        Where matrices of scipy, and graphs that become such, are contracted: "cpu" (the default), "cuda", "cuda:N" or
        "auto". The result is one of scipy with the same bits.

    Returns
    -------
    sparse matrix or tensor
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
    overlapping = is_sparse(labels)
    home = home_of({"graph": _square(graph)}, {"labels": labels} if overlapping else {}, device)
    _become_quotient(home, combine)
    how = _abi.sp_contract_options(combine=number, loops=loop)
    if overlapping:
        if out is not None:
            raise NotImplementedError("out is for labels, not for a sparse matrix of groups")
        weighted = home.type_of(home.matrices["labels"]) != "bool"
        if home.whole and weighted:
            raise NotImplementedError("groups with weights need a graph of float32 or float64 values")
        options = _abi.contraction_options(how=how)
        members, lent = home.lend("labels", pattern=not weighted or combine != "sum"), home.lend("graph")
        return home.run(lambda session, c: lib.contraction_product(session.handle, members, lent, options, c, None))
    lent = home.lend("graph")
    array = _labels(home, labels, lent.rows)
    count = whole(groups, "groups") if groups is not None else max(int(array.max()) + 1, 0) if lent.rows else 0
    place = home.address(array), home.space, count
    if out is None:
        return home.run(lambda session, c: lib.sp_contract(session.handle, lent, *place, how, c, None))
    target = Target(home, out, (count, count))
    with home.session() as session:
        session.check(lib.sp_contract_into(session.handle, lent, *place, how, target.struct, None))
    return target.take()


class Level(NamedTuple):
    """A level of a hierarchy of graphs, each the quotient graph of the one before.

    Attributes
    ----------
    graph : sparse matrix or tensor
        The weights between groups. Those of the edges within a group are on the diagonal, unless ``loops="drop"``.
    labels : ndarray or tensor of int32
        The group of each node of the level before, or of the graph for the first level.
    nodes : ndarray or tensor of int32
        The group of each node of the graph from which all began.
    """

    graph: Any
    labels: Any
    nodes: Any


def _square(graph: Any) -> Any:
    """The matrix of a graph in its own class and format."""
    like = graph if is_sparse(graph) else as_graph(graph, "weight", False, F8).matrix
    if len(like.shape) == 2 and like.shape[0] != like.shape[1]:
        raise ValueError(f"the matrix of a graph is square, not {like.shape[0]} x {like.shape[1]}")
    return like


def _node_weights(home: Home, weights: Any, nodes: int) -> Any:
    array = home.array(weights, "weights", move=True)
    made = home.empty(nodes, "float64")  # a copy, which becomes that of groups
    fits = tuple(array.shape) in ((), (nodes,))
    if fits:
        made[:] = array
    if not fits or not bool(((made > 0) & (made < np.inf)).all()):
        raise ValueError(f"weights must be {nodes} numbers above 0, one for each node of the graph")
    return made


def _group(session: Session, graph: _abi.sp_csr, how: Any, labels: int, weights: int) -> int:
    """Finds groups of nodes, and writes the weights of the groups over those of the nodes. Returns their number.

    The arrays are addresses where the graph lies.
    """
    groups = ctypes.c_int64()
    how.weights = weights
    session.check(lib.contraction_coarsen(session.handle, graph, how, labels, ctypes.byref(groups)))
    session.check(lib.contraction_add_weights(session.handle, labels, graph.rows, groups.value, graph.space, weights))
    return groups.value


def _group_there(session: Session, graph: _abi.sp_csr, how: Any, labels: int, weights: int) -> int:
    """The same on the GPU of the session, for a graph and arrays in host memory."""
    here, there, n = _abi.SP_HOST, _abi.SP_DEVICE, graph.rows
    moved, arrays = _abi.sp_csr(), (ctypes.c_void_p(), ctypes.c_void_p())
    try:
        session.check(lib.sp_csr_copy(session.handle, graph, there, moved))
        for array, width in zip(arrays, (4, 8)):
            session.check(lib.sp_array_create(session.handle, n, width, there, ctypes.byref(array)))
        session.check(lib.sp_array_copy(session.handle, n, 8, arrays[1], there, weights, here))
        groups = _group(session, moved, how, arrays[0].value or 0, arrays[1].value or 0)
        session.check(lib.sp_array_copy(session.handle, n, 4, labels, here, arrays[0], there))
        session.check(lib.sp_array_copy(session.handle, groups, 8, weights, here, arrays[1], there))
        return groups
    finally:
        for array in arrays:
            lib.sp_array_free(session.handle, there, array)
        lib.sp_csr_free(session.handle, moved)


def coarsen(graph: Any, levels: int = 1, method: str = "two-hop", *, least: int = 0, max_weight: float = 0.0,
            weights: Any = None, seed: int = 1, combine: str = "sum", loops: str = "keep",
            device: str | None = None) -> list[Level]:
    """Make a graph smaller, level by level: merge strongly connected neighbours, as ``contract --repeat`` does.

    Parameters
    ----------
    graph : as for `contract`
        Edges of weight 0 and below join no nodes.
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
    device : str, optional
        As for `contract`.

    Returns
    -------
    list of Level
        Fewer than `levels` if no nodes can be merged any more; empty for a graph without edges. The graphs and arrays
        are of the kind of `graph` and lie where it lies.

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
    heavy: Any = None
    nodes: Any = None
    made: list[Level] = []
    while len(made) < levels and current.shape[0] > least:
        home = home_of({"graph": current}, device=device)
        if heavy is None:
            heavy = _node_weights(home, 1.0 if weights is None else weights, current.shape[0])
        _become_quotient(home, combine)
        lent = home.lend("graph")
        labels = home.empty(lent.rows, "int32")
        with home.session() as session:
            moves = home.space == _abi.SP_HOST and lib.sp_context_is_cuda(session.handle)
            groups = (_group_there if moves else _group)(session, lent, how, home.address(labels), home.address(heavy))
        if groups == lent.rows:
            break
        heavy = heavy[:groups]
        current = contract(current, labels, combine=combine, loops=loops, groups=groups, device=device)
        nodes = labels if nodes is None else labels[nodes]
        made.append(Level(current, labels, nodes))
    return made


def order(graph: Any, method: str = "community") -> np.ndarray:
    """Find an order of the nodes of a graph.

    Parameters
    ----------
    graph : as for `contract`
        For "community" it must lie in host memory.
    method : {"community", "degree"}
        "community": the nodes of a community are neighbours, so that products find in the cache what neighbouring rows
        share. Communities come from label propagation by modularity with positive entries as weights. "degree": by
        falling number of entries of the rows, equals as they were.

    Returns
    -------
    ndarray or tensor of int32
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
    home = home_of({"graph": _square(graph)})
    home.require_exact(0)
    lent = home.lend("graph")
    if ORDERS[number] == "degree":
        found = home.empty(lent.rows, "int32")
        with home.session() as session:
            session.check(lib.sp_csr_degree_order(session.handle, lent, home.address(found), home.space))
        return found
    pointer = ctypes.c_void_p()
    with home.session() as session:
        session.check(lib.sp_csr_community_order(session.handle, lent, ctypes.byref(pointer)))
        try:
            return home.array(view(pointer.value, lent.rows, I4), "order", move=True)
        finally:
            lib.sp_free(session.handle, pointer)


def reorder(graph: Any, order: Any) -> Any:
    """Renumber the nodes of a graph.

    Parameters
    ----------
    graph : as for `contract`
    order : array of int
        The old number of each node, as from `order`: each node once.

    Returns
    -------
    sparse matrix or tensor
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
    home = home_of({"graph": _square(graph)})
    home.require_exact(home.largest("graph"))
    lent = home.lend("graph")
    n, given = lent.rows, home.array(order, "order", move=True)
    fits = tuple(given.shape) == (n,) and (is_whole(home.type_of(given)) or not n)
    new = home.empty(n, "int32")
    if fits and n:
        fits = int(given.min()) >= 0 and int(given.max()) < n
    old = home.cast(given, "int32") if fits else new
    if fits and n:
        new[:] = -1
        new[old] = home.array(np.arange(n, dtype=I4), "order", move=True)
        fits = int(new.min()) >= 0
    if not fits:
        raise ValueError(f"order must have each of the numbers from 0 to {n - 1} once")
    if home.space == _abi.SP_HOST:
        return home.run(lambda session, c: lib.sp_csr_permute(session.handle, lent, home.address(old),
                                                              home.address(new), c))
    return home.run(lambda session, c: lib.sp_csr_extract(session.handle, lent, home.address(old), n,
                                                          home.address(old), n, home.space, c))


__all__ = ["Graph", "Level", "coarsen", "contract", "order", "read", "reorder"]
