"""A back end of networkx: counts of triangles, squares and common neighbours, and PageRank, by sparse products.

networkx finds this module by its entry points. ``nx.triangles(g, backend="spgraph")`` runs one function here, and
``nx.config.backend_priority = ["spgraph"]`` every one that this module has and that pays. Results are those of
networkx: the same numbers, for clustering with weights, scores of pairs and `pagerank` up to rounding.

`from_matrix` makes a graph of a sparse matrix, which these functions take without a networkx graph in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as ss

from ._core import F8, I4, I8
from ._dense import SpmmPlan
from ._input import from_triples
from ._matrix import as_csr
from ._products import matmul

_SMALL = 300  # graphs with fewer nodes are faster in networkx, which need not convert them
_BLOCK = 1 << 24  # multiplications, or elements of an array, that are held at once


class Graph:
    """A graph for the functions of this module: a matrix and the names of its nodes.

    Attributes
    ----------
    nodes : list
        The nodes in the order of the rows.
    pattern : csr_array of float64
        Ones where there are edges. Undirected edges are there in both directions.
    """

    __networkx_backend__ = "spgraph"

    def __init__(self, nodes: list[Any], pattern: Any, weights: dict[str | None, np.ndarray], directed: bool,
                 multigraph: bool = False) -> None:
        self.nodes, self.pattern = nodes, pattern
        self._weights = weights  # by attribute, in the order of the pattern's entries
        self._directed, self._multigraph = directed, multigraph
        self._index: dict[Any, int] | None = None
        self._simple: Any = None

    def is_directed(self) -> bool:
        """Whether edges have directions."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Whether the graph was made from one with parallel edges."""
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    @property
    def index(self) -> dict[Any, int]:
        """The row of each node."""
        if self._index is None:
            self._index = {node: i for i, node in enumerate(self.nodes)}
        return self._index

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.index
        except TypeError:
            return False

    @property
    def simple(self) -> Any:
        """The pattern without loops."""
        if self._simple is None:
            self._simple = _without_loops(self.pattern)
        return self._simple

    def weighted(self, weight: str | None) -> Any:
        """The matrix of the weights; without an attribute, that of the numbers of edges, more than 1 in multigraphs."""
        values = self._weights.get(weight) if weight is None else self._weights[weight]
        return self.pattern if values is None else _with(self.pattern, values)


def _with(pattern: Any, values: np.ndarray) -> Any:
    """A matrix of the same pattern with other values."""
    made = ss.csr_array(pattern.shape, dtype=values.dtype)
    made.indptr, made.indices, made.data = pattern.indptr, pattern.indices, values
    made.has_sorted_indices = made.has_canonical_format = True
    return made


def _rows(csr: Any) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(csr.shape[0], dtype=I4), np.diff(csr.indptr))


def _without_loops(csr: Any) -> Any:
    off = _rows(csr) != csr.indices
    if off.all():
        return csr
    made = ss.csr_array(csr.shape, dtype=csr.dtype)
    made.indptr = np.concatenate([[0], np.cumsum(off)])[csr.indptr]
    made.indices, made.data = csr.indices[off], csr.data[off]
    made.has_sorted_indices = made.has_canonical_format = True
    return made


# ---- conversion --------------------------------------------------------------------------------------------


def from_matrix(matrix: Any, *, directed: bool = False) -> Graph:
    """Make a graph for the functions of networkx from a sparse matrix.

    Parameters
    ----------
    matrix : sparse array or matrix of scipy
        Square. Its values are the attribute ``weight``; stored zeros are edges. Nodes are called 0, 1, 2 ...
    directed : bool
        Row i has the edges that leave node i. Without it the matrix must be symmetric.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from spgraph.networkx import from_matrix
    >>> nx.triangles(from_matrix(sp.csr_array(np.ones((4, 4)))))
    {0: 3, 1: 3, 2: 3, 3: 3}
    """
    csr = as_csr(matrix, "matrix")
    if csr.shape[0] != csr.shape[1]:
        raise ValueError(f"the matrix of a graph is square, not {csr.shape[0]} x {csr.shape[1]}")
    if csr.dtype.kind not in "biuf":
        raise ValueError(f"weights of type {csr.dtype}: real numbers are possible")
    nnz = int(csr.indptr[-1])
    if not directed:
        other = csr.T.tocsr()
        other.sort_indices()
        if not (np.array_equal(other.indptr, csr.indptr) and np.array_equal(other.indices, csr.indices[:nnz]) and
                np.array_equal(other.data, csr.data[:nnz])):
            raise ValueError("the matrix is not symmetric: pass directed=True, or the larger of it and its transpose")
    weights: dict[str | None, np.ndarray] = {"weight": np.ascontiguousarray(csr.data[:nnz], F8)}
    return Graph(list(range(csr.shape[0])), _with(csr, np.ones(nnz)), weights, directed)


def convert_from_nx(graph: Any, *, edge_attrs: dict[str, Any] | None = None, preserve_edge_attrs: Any = False,
                    **_: Any) -> Graph:
    """A graph of networkx as one of this module, with the attributes that the function needs; networkx calls it."""
    if isinstance(graph, Graph):
        return graph
    if preserve_edge_attrs:
        raise NotImplementedError("spgraph keeps only the attributes that a function needs")
    adjacency, multigraph = graph._adj, graph.is_multigraph()
    nodes = list(adjacency)
    counts = np.fromiter(map(len, adjacency.values()), I8, len(nodes))
    ends: Any = chain.from_iterable(adjacency.values())
    numbered = nodes == list(range(len(nodes)))
    if not numbered:
        index = {node: i for i, node in enumerate(nodes)}
        ends = map(index.__getitem__, ends)
    cols = np.fromiter(ends, I4, int(counts.sum()))
    rows = np.repeat(np.arange(len(nodes), dtype=I4), counts)
    ordered = multigraph or bool(edge_attrs)
    places = np.arange(1.0, len(cols) + 1) if ordered else None  # a weight of 0 would drop the entry
    csr = from_triples(rows, cols, places, len(nodes), F8, False)
    weights: dict[str | None, np.ndarray] = {}
    if ordered:
        order = csr.data.astype(I8) - 1
        weights = {name: _attribute(adjacency, name, default, len(cols), multigraph)[order]
                   for name, default in (edge_attrs or {}).items()}
        if multigraph:
            keys = chain.from_iterable(ends.values() for ends in adjacency.values())
            weights[None] = np.fromiter(map(len, keys), F8, len(cols))[order]
    return Graph(nodes, _with(csr, np.ones(len(cols))), weights, graph.is_directed(), multigraph)


def _attribute(adjacency: Any, name: str, default: Any, count: int, multigraph: bool) -> np.ndarray:
    """An attribute of all edges; that of parallel edges is their sum."""
    data: Iterable[Any] = chain.from_iterable(ends.values() for ends in adjacency.values())
    try:
        if multigraph:
            return np.fromiter((sum(d.get(name, default) for d in keys.values()) for keys in data), F8, count)
        return np.fromiter((d.get(name, default) for d in data), F8, count)
    except (TypeError, ValueError):
        raise NotImplementedError(f"an edge's attribute {name!r} is not a number") from None


def convert_to_nx(result: Any, **_: Any) -> Any:
    """A graph of this module as one of networkx, any other result as it is; networkx calls it."""
    if not isinstance(result, Graph):
        return result
    made = nx.DiGraph() if result.is_directed() else nx.Graph()
    made.add_nodes_from(result.nodes)
    nodes = result.nodes
    ends = [(nodes[i], nodes[j]) for i, j in zip(_rows(result.pattern).tolist(), result.pattern.indices.tolist())]
    made.add_edges_from(ends)
    for name, values in result._weights.items():
        if name is None:
            continue
        nx.set_edge_attributes(made, dict(zip(ends, values.tolist())), name)
    return made


# ---- what runs here ----------------------------------------------------------------------------------------

_SIMPLE = {"adamic_adar_index", "average_clustering", "clustering", "common_neighbor_centrality", "generalized_degree",
           "jaccard_coefficient", "resource_allocation_index", "transitivity"}  # networkx refuses parallel edges, with its own message


def can_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Whether a function takes these arguments; networkx calls it."""
    graph = args[0] if args else kwargs["G"]
    if graph.is_multigraph() and (name in _SIMPLE or (name == "triangles" and _nodes(args, kwargs) is not None)):
        return "not for graphs with parallel edges"
    if name == "square_clustering" and graph.is_directed():
        return "only for undirected graphs"
    if name == "common_neighbor_centrality" and (args[2] if len(args) > 2 else kwargs.get("alpha", 0.8)) != 1:
        return "only for alpha=1: other scores need all distances"
    return True


def should_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Whether a function is likely to be faster here than in networkx, which calls it."""
    graph = args[0] if args else kwargs["G"]
    if len(graph) < _SMALL:
        return "the graph is small"
    if name in ("triangles", "clustering", "average_clustering", "square_clustering", "generalized_degree"):
        nodes = _nodes(args, kwargs)
        if nodes is not None and (nodes in graph or not hasattr(nodes, "__len__") or 4 * len(nodes) < len(graph)):
            return "only a few nodes are asked for"
    elif name.endswith(("index", "coefficient", "neighbor_centrality")):
        pairs = args[1] if len(args) > 1 else kwargs.get("ebunch")
        if pairs is not None and (not hasattr(pairs, "__len__") or len(pairs) < len(graph)):
            return "only a few pairs are asked for"
    return True


def _nodes(args: Any, kwargs: Any) -> Any:
    return args[1] if len(args) > 1 else kwargs.get("nodes")


# ---- triangles and squares ---------------------------------------------------------------------------------


class _Chosen:
    """The nodes that a call asks for: their rows of a matrix, and the result as networkx returns it."""

    def __init__(self, graph: Graph, nodes: Any) -> None:
        self.single = nodes in graph
        self.rows: np.ndarray | None = None
        self.names = graph.nodes
        if nodes is not None:
            try:
                self.names = [nodes] if self.single else [node for node in nodes if node in graph.index]
            except TypeError:
                raise nx.NetworkXError("nbunch is not a node or a sequence of nodes.") from None
            self.rows = np.array([graph.index[node] for node in self.names], I8)

    def __call__(self, array: Any) -> Any:
        """The chosen rows of a matrix, or elements of an array."""
        return array if self.rows is None else array[self.rows]

    def result(self, values: list[Any]) -> Any:
        return values[0] if self.single else dict(zip(self.names, values))


def _paths(rows: Any, matrix: Any, transpose: bool = False) -> Any:
    """For each edge (u, v) of `rows` the number of nodes w with edges (u, w) and (w, v)."""
    return matmul(rows, matrix, semiring="plus_pair", mask=rows, transpose_b=transpose)


def _sums(matrix: Any) -> np.ndarray:
    """The sum of each row of whole numbers."""
    return np.asarray(matrix.sum(axis=1)).astype(I8)


def _ratios(counts: np.ndarray, possible: np.ndarray) -> list[float]:
    return np.divide(counts, possible, out=np.zeros(len(counts)), where=counts != 0).tolist()


def triangles(G: Graph, nodes: Any = None) -> Any:
    """As `networkx.triangles`."""
    chosen = _Chosen(G, nodes)
    return chosen.result((_sums(_paths(chosen(G.simple), G.simple)) // 2).tolist())


def generalized_degree(G: Graph, nodes: Any = None) -> Any:
    """As `networkx.generalized_degree`."""
    chosen = _Chosen(G, nodes)
    rows = chosen(G.simple)
    found = _paths(rows, G.simple)
    none = np.diff(rows.indptr) - np.diff(found.indptr)  # edges in no triangle have no entry
    counts = found.data.astype(I8).tolist()
    ends = found.indptr.tolist()
    degrees = [Counter(counts[begin:end]) for begin, end in zip(ends, ends[1:])]
    for degree, zeros in zip(degrees, none.tolist()):
        if zeros:
            degree[0] = zeros
    return chosen.result(degrees)


def transitivity(G: Graph) -> float:
    """As `networkx.transitivity`."""
    degrees = np.diff(G.simple.indptr).astype(I8)
    found = int(_sums(_paths(G.simple, G.simple, transpose=G.is_directed())).sum())
    return found / int((degrees * (degrees - 1)).sum()) if found else 0


def clustering(G: Graph, nodes: Any = None, weight: str | None = None) -> Any:
    """As `networkx.clustering`."""
    chosen = _Chosen(G, nodes)
    matrix = G.simple
    if weight is not None:
        values = G.weighted(weight)
        most = values.data.max(initial=-np.inf)
        matrix = _without_loops(_with(values, np.cbrt(values.data / (most if len(values.data) else 1))))
    if G.is_directed():
        back = matrix.T.tocsr()
        both = _entries(matrix, back)
        total = np.diff(matrix.indptr) + np.diff(back.indptr)
        mutual = total - np.diff(both.indptr)
        possible = 2 * (total * (total - 1) - 2 * mutual)
        matrix = both
    else:
        degrees = np.diff(matrix.indptr).astype(I8)
        possible = degrees * (degrees - 1)
    rows = chosen(matrix)
    if weight is None and not G.is_directed():
        counts = _sums(_paths(rows, matrix))
    else:
        counts = matmul(rows, matrix, mask=rows).multiply(rows).sum(axis=1)
    return chosen.result(_ratios(counts, chosen(possible)))


def _entries(a: Any, b: Any) -> Any:
    """The sum of two matrices, with an entry wherever one has one, also where they cancel."""
    rows, cols = np.concatenate([_rows(a), _rows(b)]), np.concatenate([a.indices, b.indices])
    pattern = from_triples(rows, cols, None, a.shape[0], F8, False)
    sums = ss.coo_array((np.concatenate([a.data, b.data]), (rows, cols)), shape=a.shape).tocsr()
    sums.sum_duplicates()
    return _with(pattern, sums.data)


def average_clustering(G: Graph, nodes: Any = None, weight: str | None = None, count_zeros: bool = True) -> float:
    """As `networkx.average_clustering`."""
    found = clustering(G, nodes, weight=weight).values()
    if not count_zeros:
        found = [value for value in found if abs(value) > 0]
    return sum(found) / len(found)


def square_clustering(G: Graph, nodes: Any = None) -> Any:
    """As `networkx.square_clustering`."""
    chosen = _Chosen(G, nodes)
    rows, degrees = chosen(G.simple), np.diff(G.simple.indptr).astype(I8)
    own = chosen(degrees)
    triangles_of = _sums(_paths(rows, G.simple))
    neighbours = (rows @ degrees.astype(F8)).astype(I8)  # the degrees of all neighbours together
    squares = np.concatenate([np.zeros(0, I8)] + [_pairs(part, G.simple) for part in _blocks(rows, degrees)])
    squares -= own * (own - 1) // 2  # the ways from a node back to itself
    possible = neighbours * (own - 1) - own * (own - 1) - triangles_of - squares
    squares[(own < 2) | (possible <= 0)] = 0
    return chosen.result(_ratios(squares, possible))


def _pairs(rows: Any, matrix: Any) -> np.ndarray:
    """For each row the pairs of ways of two steps that end at the same node."""
    found = matmul(rows, matrix, semiring="plus_pair")
    counts = found.data.astype(I8)
    return _sums(_with(found, counts * (counts - 1) // 2))


def _blocks(rows: Any, degrees: np.ndarray) -> Iterator[Any]:
    """The rows in blocks of at most some _BLOCK multiplications with a matrix of these degrees."""
    work = np.concatenate([[0], np.cumsum(degrees[rows.indices])])[rows.indptr]
    begin = 0
    while begin < rows.shape[0]:
        end = max(begin + 1, int(np.searchsorted(work, work[begin] + _BLOCK, side="right")) - 1)
        yield rows[begin:end]
        begin = end


# ---- common neighbours -------------------------------------------------------------------------------------


def _common(G: Graph, pairs: Any, factors: np.ndarray | None, score: Callable[..., np.ndarray]) -> Iterator[Any]:
    """(u, v, score) for pairs of nodes. The score is made of their rows and the sums of their common neighbours'
    factors, or, without factors, their number."""
    left = G.simple if factors is None else _with(G.simple, factors[G.simple.indices])
    if pairs is None:
        return _all_pairs(G, left, factors, score)
    given = list(pairs)
    for pair in given:
        for node in pair:
            if node not in G:
                raise nx.NodeNotFound(f"Node {node} not in G.")
    u = np.fromiter((G.index[pair[0]] for pair in given), I4, len(given))
    v = np.fromiter((G.index[pair[1]] for pair in given), I4, len(given))
    mask = from_triples(u, v, None, len(G), F8, False)
    found = matmul(left, G.simple, mask=mask, semiring="plus_pair" if factors is None else "plus_times")
    keys = _rows(found).astype(I8) * len(G) + found.indices
    wanted = u.astype(I8) * len(G) + v
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    sums = np.zeros(len(given))
    if len(keys):
        there = keys[place] == wanted
        sums[there] = found.data[place[there]]
    return zip((pair[0] for pair in given), (pair[1] for pair in given), score(u, v, sums).tolist())


def _all_pairs(G: Graph, left: Any, factors: np.ndarray | None, score: Callable[..., np.ndarray]) -> Iterator[Any]:
    """All pairs of nodes without an edge, a block of rows after another."""
    height = max(1, _BLOCK // 8 // max(len(G), 1))
    for begin in range(0, len(G), height):
        rows = left[begin:begin + height]
        sums = matmul(rows, G.simple, semiring="plus_pair" if factors is None else "plus_times").toarray()
        free = np.triu(np.ones(sums.shape, bool), begin + 1) & (G.pattern[begin:begin + height].toarray() == 0)
        u, v = np.nonzero(free)
        scores = score(u + begin, v, sums[u, v].astype(F8)).tolist()
        names = G.nodes
        yield from ((names[i], names[j], p) for i, j, p in zip((u + begin).tolist(), v.tolist(), scores))


def _degrees(G: Graph) -> np.ndarray:
    """The degrees of networkx, in which a loop counts twice."""
    return np.diff(G.pattern.indptr).astype(F8) + (np.diff(G.pattern.indptr) - np.diff(G.simple.indptr))


def resource_allocation_index(G: Graph, ebunch: Any = None) -> Iterator[Any]:
    """As `networkx.resource_allocation_index`."""
    factors = 1 / np.maximum(_degrees(G), 1)
    return _common(G, ebunch, factors, lambda u, v, sums: sums)


def adamic_adar_index(G: Graph, ebunch: Any = None) -> Iterator[Any]:
    """As `networkx.adamic_adar_index`."""
    factors = 1 / np.log(np.maximum(_degrees(G), 2))  # a common neighbour has a degree of at least 2
    return _common(G, ebunch, factors, lambda u, v, sums: sums)


def jaccard_coefficient(G: Graph, ebunch: Any = None) -> Iterator[Any]:
    """As `networkx.jaccard_coefficient`."""
    if G.simple is not G.pattern:
        raise NotImplementedError("spgraph computes Jaccard coefficients of graphs without loops")
    degrees = np.diff(G.pattern.indptr).astype(F8)

    def score(u: np.ndarray, v: np.ndarray, common: np.ndarray) -> np.ndarray:
        return np.divide(common, degrees[u] + degrees[v] - common, out=np.zeros(len(common)), where=common != 0)

    return _common(G, ebunch, None, score)


def common_neighbor_centrality(G: Graph, ebunch: Any = None, alpha: float = 0.8) -> Iterator[Any]:
    """As `networkx.common_neighbor_centrality` with an alpha of 1: the numbers of common neighbours."""

    def score(u: np.ndarray, v: np.ndarray, common: np.ndarray) -> np.ndarray:
        if (u == v).any():
            raise nx.NetworkXAlgorithmError("Self loops are not supported")
        return common.astype(I8)

    return _common(G, ebunch, None, score)


# ---- PageRank ----------------------------------------------------------------------------------------------


def _shares(values: dict[Any, float], nodes: list[Any]) -> np.ndarray:
    """A number of each node, scaled to the sum 1."""
    made = np.array([values.get(node, 0) for node in nodes], F8)
    if made.sum() == 0:
        raise ZeroDivisionError("the values of all nodes together are 0")
    return made / made.sum()


def pagerank(G: Graph, alpha: float = 0.85, personalization: dict[Any, float] | None = None, max_iter: int = 100,
             tol: float = 1.0e-6, nstart: dict[Any, float] | None = None, weight: str | None = "weight",
             dangling: dict[Any, float] | None = None) -> dict[Any, float]:
    """As `networkx.pagerank`."""
    count = len(G)
    if count == 0:
        return {}
    matrix = G.weighted(weight)
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    scales = np.divide(1.0, sums, out=np.zeros(count), where=sums != 0)
    step = SpmmPlan(_with(matrix, matrix.data * np.repeat(scales, np.diff(matrix.indptr))), 1, transpose=True)
    x = np.full(count, 1.0 / count) if nstart is None else _shares(nstart, G.nodes)
    home = np.full(count, 1.0 / count) if personalization is None else _shares(personalization, G.nodes)
    lost = home if dangling is None else _shares(dangling, G.nodes)
    ends = np.flatnonzero(sums == 0)
    for _ in range(max_iter):
        last = x
        x = alpha * (step(last) + last[ends].sum() * lost) + (1 - alpha) * home
        if np.abs(x - last).sum() < count * tol:
            return dict(zip(G.nodes, x.tolist()))
    raise nx.PowerIterationFailedConvergence(max_iter)
