"""Graphs: reading, and quotient graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as ss

from . import _abi
from ._core import F8, I4, Session, address, lib
from ._input import COMBINE, Graph, as_graph, read
from ._matrix import Types, as_csr, choose, largest, lend, take
from .cluster import Clustering

LOOPS = ("keep", "drop", "only")


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


def contract(graph: Any, labels: Any, *, combine: str = "sum", loops: str = "keep", groups: int | None = None) -> Any:
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

    Returns
    -------
    sparse matrix
        Of the class and format of `graph`, or a csr_array. Whole numbers give int64 for sums and counts and float64
        for means.

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
    like = graph if ss.issparse(graph) else as_graph(graph, "weight", False, F8).matrix
    csr = as_csr(like, "graph")
    if csr.shape[0] != csr.shape[1]:
        raise ValueError(f"the matrix of a graph is square, not {csr.shape[0]} x {csr.shape[1]}")
    types = _types(csr, combine)
    keep: list[Any] = []
    lent, c = lend(csr, types.compute, keep), _abi.sp_csr()
    how = _abi.sp_contract_options(combine=number, loops=loop)
    if ss.issparse(labels):
        s = as_csr(labels, "labels")
        if types.whole and Types(s).result.kind != "b":
            raise NotImplementedError("groups with weights need a graph of float32 or float64 values")
        options = _abi.contraction_options(how=how)
        members = lend(s, types.compute, keep, pattern=s.dtype.kind == "b" or combine != "sum")
        with Session() as session:
            session.check(lib.contraction_product(session.handle, members, lent, options, c, None))
            return take(session, c, types, like)
    array = _label_array(labels, csr.shape[0])
    count = groups if groups is not None else int(array.max(initial=-1)) + 1
    with Session() as session:
        session.check(lib.sp_contract(session.handle, lent, address(array), _abi.SP_HOST, count, how, c, None))
        return take(session, c, types, like)


__all__ = ["Graph", "contract", "read"]
