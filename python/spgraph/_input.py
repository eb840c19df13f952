"""Graphs of any kind as sparse matrices."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as ss

from . import _abi
from ._core import F4, F8, I4, I8, Session, address, lib, view
from ._matrix import Types, as_csr, choose, take

FORMATS = ("auto", "abc", "sif", "etc", "native", "mtx", "string", "blast", "metis", "csr", "", "csv", "npz", "graphml",
           "dimacs")  # by io_format; "" is for writing only
SCORES = ("bits", "evalue", "identity")
COMBINE = ("sum", "max", "min", "first", "mean", "count")


class Graph(NamedTuple):
    """A graph as a matrix: row i has the neighbours of node i.

    Attributes
    ----------
    matrix : csr_array
        The weights of the edges. An undirected edge has two entries.
    nodes : list or None
        What the nodes are called; None if they are called 0, 1, 2 ...
    numbered : bool
        False if a matrix file of `mcl` gives the nodes other numbers than 0, 1, 2 ...
    """

    matrix: Any
    nodes: list[Any] | None = None
    numbered: bool = True


def from_triples(rows: Any, cols: Any, weights: Any, nodes: int, dtype: np.dtype, symmetric: bool,
                 combine: str = "max") -> Any:
    """A matrix from the arcs of a graph; those of weight 0 are left out."""
    if weights is not None:
        weights = _to_type(np.asarray(weights), dtype)
        if not weights.all():
            there = weights != 0
            rows, cols, weights = rows[there], cols[there], weights[there]
    rows, cols = np.asarray(rows), np.asarray(cols)
    index = I4 if rows.dtype == cols.dtype == I4 else I8
    rows, cols = np.ascontiguousarray(rows, index), np.ascontiguousarray(cols, index)
    triples = _abi.sp_coo(nodes, nodes, len(rows), address(rows), address(cols),
                          None if weights is None else address(weights), _abi.SP_I64 if index == I8 else _abi.SP_I32,
                          _abi.SP_F32 if dtype == F4 else _abi.SP_F64, _abi.SP_HOST)
    c = _abi.sp_csr()
    like = ss.csr_array((1, 1), dtype=dtype)
    with Session() as session:
        session.check(lib.sp_csr_from_coo(session.handle, triples, COMBINE.index(combine), symmetric, c))
        return take(session, c, Types(like), like)


def _to_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Weights in a type of the library. Complex ones, and those that are not finite in it, are refused."""
    if values.dtype.kind not in "biuf":
        raise TypeError(f"weights of type {values.dtype}: real numbers are possible")
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(values, dtype)
    if len(made) and not np.isfinite(made).all():
        wrong = values[~np.isfinite(made)][0]
        raise ValueError(f"a weight is {wrong}: finite numbers" + (" up to 3.4e38" if dtype == F4 else "") +
                         " are possible")
    return made


def _from_sparse(matrix: Any, dtype: np.dtype) -> Graph:
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"the matrix of a graph is square, not {matrix.shape[0]} x {matrix.shape[1]}")
    csr = as_csr(matrix, "graph")
    data = _to_type(csr.data[: csr.indptr[-1]], dtype)
    made = ss.csr_array(csr.shape, dtype=dtype)
    made.indptr, made.indices, made.data = csr.indptr, csr.indices[: len(data)], data
    made.has_sorted_indices = made.has_canonical_format = True
    if not data.all():
        made = made.copy()
        made.eliminate_zeros()
    return Graph(made)


def _warn(message: str) -> None:
    """A warning about the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _lacks_weight(weight: str, names: list[str], numbers: list[str]) -> None:
    """No edge of a graph in memory has the attribute: fails if it was asked for, and warns if there are others."""
    if weight != "weight":
        raise ValueError(f"no edge of the graph has {weight!r}; " +
                         (f"edges have {', '.join(names)}" if names else "edges have no attributes, so pass weight=None"))
    if numbers:
        _warn(f"no edge of the graph has a 'weight', so all weigh 1; pass weight={numbers[0]!r}"
              f"{''.join(f' or {name!r}' for name in numbers[1:])}, or weight=None if this is meant")


def _check_networkx(graph: Any, weight: str | None) -> None:
    if weight is None or not graph.size() or any(weight in data for _, _, data in graph.edges(data=True)):
        return
    there: dict[str, Any] = {}
    for _, _, data in graph.edges(data=True):
        there.update({str(name): value for name, value in data.items() if str(name) not in there})
    _lacks_weight(weight, list(there), [name for name, value in there.items() if _is_number(value)])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _from_networkx(graph: Any, weight: str | None, dtype: np.dtype) -> Graph:
    _check_networkx(graph, weight)
    nodes = list(graph)
    index = {node: i for i, node in enumerate(nodes)}
    edges = [(index[u], index[v], 1.0 if weight is None else data.get(weight, 1.0))
             for u, v, data in graph.edges(data=True)]
    table = np.array(edges, F8).reshape(-1, 3)
    return Graph(from_triples(table[:, 0].astype(I4), table[:, 1].astype(I4), table[:, 2], len(nodes), dtype,
                              not graph.is_directed()), nodes)


def _from_igraph(graph: Any, weight: str | None, dtype: np.dtype) -> Graph:
    ends = np.array(graph.get_edgelist(), I4).reshape(-1, 2)
    weights = None
    if weight is not None and weight in graph.es.attributes():
        given = graph.es[weight]
        if None in given:
            raise ValueError(f"an edge of the graph has no {weight!r}: give it one, or pass weight=None")
        weights = np.array(given)
    elif weight is not None and graph.ecount():
        names = graph.es.attributes()
        _lacks_weight(weight, names, [name for name in names if _is_number(graph.es[0][name])])
    nodes = graph.vs["name"] if "name" in graph.vs.attributes() else None
    return Graph(from_triples(ends[:, 0], ends[:, 1], weights, graph.vcount(), dtype, not graph.is_directed()), nodes)


def _from_anndata(data: Any, weight: str | None, dtype: np.dtype) -> Graph:
    """The graph of neighbours of scanpy, or another one of `obsp`."""
    name = weight
    if weight in (None, "weight"):
        name = data.uns.get("neighbors", {}).get("connectivities_key", "connectivities")
    if name not in data.obsp:
        raise ValueError(f"the AnnData has no graph {name!r} in obsp: scanpy.pp.neighbors makes one")
    matrix = _from_sparse(ss.csr_array(data.obsp[name]), dtype).matrix
    if weight is None:
        matrix.data = np.ones_like(matrix.data)
    return Graph(matrix, list(data.obs_names))


def _from_frame(frame: Any, weight: str | None, directed: bool, dtype: np.dtype) -> Graph:
    import pandas

    if len(frame.columns) < 2:
        raise ValueError("a data frame of edges has a column for each end, and perhaps one of weights")
    ends = ["source", "target"] if {"source", "target"} <= set(frame.columns) else list(frame.columns[:2])
    both = np.empty(2 * len(frame), object)
    both[::2], both[1::2] = frame[ends[0]].to_numpy(), frame[ends[1]].to_numpy()
    codes, nodes = pandas.factorize(both)
    if (codes < 0).any():
        raise ValueError(f"an edge has no {ends[int(np.argmax(codes < 0)) % 2]}: the value is missing")
    weights = None
    if weight is not None and weight in frame.columns:
        weights = frame[weight].to_numpy()
    elif len(frame.columns) > 2 and weight == "weight":
        raise ValueError(f"there is no column 'weight' among {', '.join(map(str, frame.columns))}: name it by weight=, "
                         "or pass weight=None for edges without weights")
    elif weight not in (None, "weight"):
        raise ValueError(f"there is no column {weight!r} among {', '.join(map(str, frame.columns))}")
    return Graph(from_triples(codes[::2], codes[1::2], weights, len(nodes), dtype, not directed), list(nodes))


def _from_arrays(arrays: tuple[Any, ...], directed: bool, dtype: np.dtype) -> Graph:
    if len(arrays) not in (2, 3):
        raise ValueError(f"edges are (row, col) or (row, col, weight), not {len(arrays)} arrays")
    rows, cols = np.asarray(arrays[0]), np.asarray(arrays[1])
    weights = np.asarray(arrays[2]) if len(arrays) == 3 else None
    for name, array in (("row", rows), ("col", cols)):
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            raise ValueError(f"{name} must be a one-dimensional array of whole numbers")
    if len(rows) != len(cols) or (weights is not None and weights.shape != rows.shape):
        raise ValueError("row, col and weight must have the same length")
    if not len(rows):
        return Graph(ss.csr_array((0, 0), dtype=dtype))
    if min(rows.min(), cols.min()) < 0 or max(rows.max(), cols.max()) >= 2**31 - 1:
        raise ValueError("nodes are numbered from 0 to at most 2^31 - 2")
    return Graph(from_triples(rows, cols, weights, int(max(rows.max(), cols.max())) + 1, dtype, not directed))


def _names(names: Any, group: int = 1 << 12) -> list[str]:
    """The names of a graph from a file (io_name in io.h)."""
    places = np.arange(names.count + 1)
    groups = view(names.groups, int(names.count) // group + 1, I8)
    begins = (groups[places // group] + view(names.offsets, names.count + 1, np.dtype("<u4"))).tolist()
    raw = view(names.bytes, begins[-1], np.dtype("u1")).tobytes()
    return [raw[begin:end].decode(errors="surrogateescape") for begin, end in zip(begins, begins[1:])]


def _choose_weight(weight: str | None, format: str) -> dict[str, Any]:
    """The options of reading that stand for the weight."""
    if weight in (None, "weight"):
        return {}
    if not isinstance(weight, str):
        raise TypeError(f"weight is {weight!r}: the name of a column or an attribute is expected, or None")
    if format == "blast":
        return {"blast": choose(SCORES, weight, "weight")}
    return {"score_column": weight.encode()}


def _unused(graph: _abi.io_graph, path: Any) -> None:
    """Warns of columns of numbers in a file without weights."""
    if graph.unused.count:
        _warn(f"{os.fspath(path)}: no column of edges is called weight, so all weigh 1; pass weight= with one of "
              f"{', '.join(_names(graph.unused))}, or weight=None if this is meant")


def read(path: Any, *, format: str = "auto", weight: str | None = "weight", min_score: float = 0.0,
         dtype: Any = np.float64, combine: str = "max") -> Graph:
    """Read a graph from a file.

    Parameters
    ----------
    path : str or path
        A file of label pairs, Matrix Market, METIS, STRING, BLAST, mcl's matrices and others, plain or compressed with
        gzip or zstd. The formats are those of the program `mcl-gpu`.
    format : {"auto", "abc", "sif", "etc", "native", "mtx", "string", "blast", "metis", "csr", "csv", "npz", "graphml", \
"dimacs"}
        "auto" tells by the content and the name of the file.
    weight : str or None
        In tables of edges, STRING files and GraphML the column, or the attribute, with the weights; by default the one
        that is called so, in tables also ``value``, ``score`` or ``combined_score``. With ``format="blast"`` it is
        ``"bits"`` (the default), ``"evalue"`` or ``"identity"``. None: all edges
        weigh 1 once they are read; those of weight 0 are none, and numbers that cannot be weights are refused.
    min_score : float
        Only for STRING files: links with a lower score are left out.
    dtype : float32 or float64
        Type of the weights. `cluster.mcl` reads float32.
    combine : {"sum", "max", "min", "first", "mean", "count"}
        How repeated edges are combined.

    Returns
    -------
    Graph
        The matrix and the names of the nodes. Edges of formats without directions count in both.

    Notes
    -----
    In Matrix Market files and in the matrices of `mcl`, column j has the neighbours of node j, as in `mcl`. So the
    matrix that is returned is the transpose of the one in the file.
    """
    dtype = np.dtype(dtype)
    if dtype not in (F4, F8):
        raise ValueError(f"dtype is {dtype}: float32 and float64 are possible")
    os.stat(path)  # the usual exceptions for a file that cannot be found
    graph, c = _abi.io_graph(), _abi.sp_csr()
    like = ss.csr_array((1, 1), dtype=dtype)
    with Session() as session:
        options = _abi.io_read_options(format=choose(FORMATS, format, "format"), refuse_others=True, names_keywords=True,
                                       values=_abi.SP_F32 if dtype == F4 else _abi.SP_F64, minimum_score=min_score,
                                       interrupt=session.context.address, **_choose_weight(weight, format))
        session.check(lib.io_read_graph(session.handle, os.fsencode(path), options, graph))
        try:
            if min_score > 0 and graph.format != _abi.IO_STRING:
                raise ValueError(f"{os.fspath(path)}: not a STRING file; leave min_score out")
            nodes: list[Any] | None = _names(graph.names) if graph.names.count else None
            if graph.ids:
                nodes = nodes or view(graph.ids, graph.nodes, I8).tolist()
            numbered = not graph.ids
            if graph.presumed:
                _warn(f"{os.fspath(path)}: Cytoscape calls every network directed, so edges count in both directions; "
                      "export a directed one in another way")
            if weight is not None:
                _unused(graph, path)
            elif combine == "sum":
                combine = "count"
            session.check(lib.io_graph_matrix(session.handle, graph, False, choose(COMBINE, combine, "combine"),
                                              graph.symmetric, c))
            matrix = take(session, c, Types(like), like)
            if weight is None and combine != "count":
                matrix.data = np.ones_like(matrix.data)
            return Graph(matrix, nodes, numbered)
        finally:
            lib.io_graph_free(session.handle, graph)


def as_graph(graph: Any, weight: str | None, directed: bool, dtype: np.dtype, **read_options: Any) -> Graph:
    """A graph of any kind, with weights of a type of the library."""
    if isinstance(graph, Graph):
        return Graph(_from_sparse(graph.matrix, dtype).matrix, graph.nodes, graph.numbered)
    if ss.issparse(graph):
        return _from_sparse(graph, dtype)
    if isinstance(graph, (str, os.PathLike)):
        return read(graph, weight=weight, dtype=dtype, **read_options)
    if _is(graph, "networkx", "Graph"):
        return _from_networkx(graph, weight, dtype)
    if _is(graph, "igraph", "Graph"):
        return _from_igraph(graph, weight, dtype)
    if _is(graph, "anndata", "AnnData"):
        return _from_anndata(graph, weight, dtype)
    if _is(graph, "pandas", "DataFrame"):
        return _from_frame(graph, weight, directed, dtype)
    if isinstance(graph, tuple):
        return _from_arrays(graph, directed, dtype)
    raise TypeError(f"a graph cannot be made from {type(graph).__name__}: sparse matrices, graphs of networkx and "
                    "igraph, tuples of arrays (row, col, weight), data frames, AnnData and files can")


def _is(graph: Any, module: str, name: str) -> bool:
    """Whether an object is of a class of a module, which is only there if somebody has imported it."""
    return isinstance(graph, getattr(sys.modules.get(module), name, ()))
