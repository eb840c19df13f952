"""Markov clustering of graphs, with the results of `mcl`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _abi
from ._core import F4, I4, I8, Session, address, lib, real, view, whole
from ._input import Graph, as_graph
from ._matrix import choose, lend

OVERLAPS = ("cut", "keep", "split")


class Progress(NamedTuple):
    """The figures of an iteration.

    Attributes
    ----------
    iteration : int
        From 1.
    chaos : float
        How far the process is from its end, which is below 1e-4.
    entries : int
        Entries of the matrix after pruning.
    seconds : float
        Time of the iteration.
    """

    iteration: int
    chaos: float
    entries: int
    seconds: float


class Clustering:
    """Clusters of the nodes of a graph, the largest first.

    Attributes
    ----------
    labels : ndarray of int32
        The cluster of each node. Of a node in several clusters the first.
    sizes : ndarray of int64
        The number of members of each cluster.
    offsets, members : ndarray
        Cluster k has the nodes members[offsets[k]:offsets[k + 1]], in ascending order.
    nodes : list or None
        What the nodes are called; None if they are called 0, 1, 2 ...
    inflation : float
        The inflation that made it.
    iterations : int
        The number of iterations.
    converged : bool
        Whether the process came to its end. False if a progress function or `max_iterations` ended it.
    modularity : float
        Newman's modularity in the graph, without loops, as networkx computes it.
    coverage : float
        The part of the edges' weight that lies inside clusters.
    efficiency : float
        How well the clusters catch the weight of the start matrix with few pairs of nodes (van Dongen 2000); 1 is best.
    overlap : int
        The number of nodes that lay in more than one cluster. The option of the same name says what became of them.
    """

    def __init__(self, labels: np.ndarray, offsets: np.ndarray, members: np.ndarray, nodes: list[Any] | None,
                 **figures: Any) -> None:
        self.labels, self.offsets, self.members, self.nodes = labels, offsets, members, nodes
        self.sizes: np.ndarray = np.diff(offsets)
        self.inflation: float = figures["inflation"]
        self.iterations: int = figures["iterations"]
        self.converged: bool = figures["converged"]
        self.modularity: float = figures["modularity"]
        self.coverage: float = figures["coverage"]
        self.efficiency: float = figures["efficiency"]
        self.overlap: int = figures["overlap"]

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return (f"Clustering({len(self.labels)} nodes, {len(self)} clusters, inflation={self.inflation:g}, "
                f"modularity={self.modularity:.3f}, efficiency={self.efficiency:.3f})")

    def clusters(self) -> list[list[Any]]:
        """List the members of each cluster.

        Returns
        -------
        list of lists
            Names of nodes, or their numbers if they have no names.
        """
        members = self.members.tolist()
        if self.nodes is not None:
            members = [self.nodes[i] for i in members]
        offsets = self.offsets.tolist()
        return [members[begin:end] for begin, end in zip(offsets, offsets[1:])]

    def to_frame(self) -> Any:
        """Make a data frame of pandas.

        Returns
        -------
        DataFrame
            Columns ``node``, ``cluster`` and ``size``; a row for each member of each cluster.
        """
        import pandas

        numbers = np.repeat(np.arange(len(self)), self.sizes)
        nodes = self.members if self.nodes is None else [self.nodes[i] for i in self.members.tolist()]
        return pandas.DataFrame({"node": nodes, "cluster": numbers, "size": self.sizes[numbers]})

    def to_igraph(self, graph: Any = None) -> Any:
        """Make a clustering of igraph.

        Parameters
        ----------
        graph : igraph.Graph, optional
            The graph that was clustered. If both have names for nodes, the names tell which vertex is which, otherwise
            the order does. A graph without edges by default.

        Returns
        -------
        igraph.VertexClustering
            With the overlap "keep" an igraph.VertexCover.
        """
        import igraph

        count = len(self.labels)
        if graph is None:
            graph = igraph.Graph(n=count)
            if self.nodes is not None:
                graph.vs["name"] = self.nodes
        if graph.vcount() != count:
            raise ValueError(f"the graph has {graph.vcount()} vertices, the clustering {count} nodes")
        vertex: Any = range(count)  # of each node
        if self.nodes is not None and "name" in graph.vs.attributes():
            places = {name: i for i, name in enumerate(graph.vs["name"])}
            try:
                vertex = [places[node] for node in self.nodes]
            except KeyError as missing:
                raise ValueError(f"the graph has no vertex called {missing}") from None
        if len(self.members) > count:
            members = [vertex[i] for i in self.members.tolist()]
            ends = self.offsets.tolist()
            return igraph.VertexCover(graph, [members[begin:end] for begin, end in zip(ends, ends[1:])])
        membership = [0] * count
        for i, label in zip(vertex, self.labels.tolist()):
            membership[i] = label
        return igraph.VertexClustering(graph, membership)

    def to_cdlib(self, graph: Any) -> Any:
        """Make a clustering of cdlib, for its measures and plots.

        Parameters
        ----------
        graph : networkx.Graph or igraph.Graph
            The graph that was clustered, with the same names of nodes.

        Returns
        -------
        cdlib.NodeClustering
        """
        from cdlib import NodeClustering

        return NodeClustering(self.clusters(), graph=graph, method_name="mcl",
                              method_parameters={"inflation": self.inflation},
                              overlap=len(self.members) > len(self.labels))


def _options(session: Session, inflation: float, prune: int | None, select: int | None, recover: int | None,
             recover_percent: float | None, scheme: int | None, overlap: str, connected: bool,
             max_iterations: int | None) -> _abi.mcl_options:
    options = _abi.mcl_options()
    lib.mcl_options_default(options)
    if scheme is not None:
        session.check(lib.mcl_options_scheme(session.handle, options, whole(scheme, "scheme")))
    for name, value in (("prune_number", prune), ("select", select), ("recover", recover),
                        ("recover_percent", recover_percent), ("main_length", max_iterations)):
        if value is not None:
            number = real(value, name) if name == "recover_percent" else whole(value, name)
            if not number >= 0:
                raise ValueError(f"{name} is {value}: 0 or more is possible")
            setattr(options, name, number)
    if not 1 < inflation <= 30:
        raise ValueError(f"inflation is {inflation}: numbers above 1 and up to 30 are possible")
    options.inflation = inflation
    options.overlap = choose(OVERLAPS, overlap, "overlap")
    options.force_connected = connected
    return options


class _Monitor:
    """Calls a function of Python after each iteration, and keeps what it raises."""

    def __init__(self, progress: Callable[[Progress], Any] | None) -> None:
        self.progress = progress
        self.raised: BaseException | None = None
        self.function = _abi.mcl_monitor(self.call) if progress else _abi.mcl_monitor()

    def call(self, user: Any, iteration: Any, iterand: Any) -> bool:
        figures = iteration.contents
        if figures.number == 0:
            return True
        try:
            assert self.progress is not None
            return self.progress(Progress(figures.number, figures.chaos, figures.nnz_after,
                                          figures.seconds)) is not False
        except BaseException as failure:  # it goes on where mcl was called
            self.raised = failure
            return False


def _cluster(session: Session, graph: Any, start: Any, options: Any, monitor: _Monitor, nodes: Any) -> Clustering:
    """One clustering from the start matrix."""
    handle = session.handle
    run, limit, found, measures = _abi.mcl_run(), _abi.sp_csr(), _abi.mcl_clustering(), _abi.mcl_measures()
    coverage, modularity = ctypes.c_double(), ctypes.c_double()
    try:
        session.check(lib.mcl_iterate(handle, start, options, monitor.function, None, limit, run))
        if monitor.raised is not None:
            raise monitor.raised
        session.check(lib.mcl_interpret(handle, limit, graph, options, found))
        profiles = (_abi.mcl_profile * max(found.clusters, 1))()
        session.check(lib.mcl_profile_clusters(handle, graph, found, profiles, ctypes.byref(coverage),
                                               ctypes.byref(modularity)))
        session.check(lib.mcl_measure(handle, start, found, measures))
        labels = np.empty(found.nodes, I4)
        lib.mcl_clustering_labels(found, address(labels))
        offsets = view(found.offsets, found.clusters + 1, I8)
        return Clustering(labels, offsets, view(found.members, int(offsets[-1]), I4), nodes,
                          inflation=options.inflation, iterations=run.iterations, converged=run.converged,
                          modularity=modularity.value, coverage=coverage.value, efficiency=measures.efficiency,
                          overlap=found.overlap_nodes)
    finally:
        lib.mcl_clustering_free(handle, found)
        lib.sp_csr_free(handle, limit)


def mcl(graph: Any, inflation: Any = 2.0, *, weight: str | None = "weight", directed: bool = False,
        prune: int | None = None, select: int | None = None, recover: int | None = None,
        recover_percent: float | None = None, scheme: int | None = None, transform: str | None = None,
        overlap: str = "cut", connected: bool = False, max_iterations: int | None = None, format: str = "auto",
        min_score: float = 0.0, device: str = "cpu", progress: Callable[[Progress], Any] | None = None) -> Any:
    """Cluster a graph by the Markov cluster algorithm, with the results of `mcl` 22-282.

    Parameters
    ----------
    graph : sparse matrix, graph, (row, col) or (row, col, weight), data frame, AnnData, file name or `graph.read`
        Weights are similarities: heavier means closer. They are rounded to float32, as in `mcl`. Of repeated edges the
        heaviest counts (a sparse matrix adds them). Matrices and directed graphs (of networkx or igraph) are taken as
        they are, with the neighbours of node i in row i. Edges of arrays and data frames count in both directions. A
        data frame has the columns ``source`` and ``target``, or the ends in its first two columns. Of an AnnData it is
        the graph of neighbours that scanpy has made. Files are read as by `graph.read`.
    inflation : float or sequence of float
        Larger values make smaller clusters: 1.4 few large ones, 6 many small ones. Several values give a list of
        clusterings.
    weight : str or None
        The attribute or the column with the weights, of files as for `graph.read`. None: all are 1. A name that no edge
        has is an error, except ``"weight"``: then all are 1. In a graph of networkx an edge without the attribute weighs
        1, as in networkx. Of an AnnData: the name of the graph in ``obsp``, if it is another than that of the neighbours.
    directed : bool
        Edges of arrays and data frames count in the given direction only.
    prune, select, recover, recover_percent, scheme
        The options -P, -S, -R, -pct and -scheme of `mcl`.
    transform : str, optional
        Changes the weights first, in the language of the option -tf of `mcl`, such as ``"gq(0.5),#knn(20)"``.
    overlap : {"cut", "keep", "split"}
        What becomes of nodes in several clusters: they stay in the first, in all, or become clusters of their own.
    connected : bool
        Split clusters that are not connected in the graph.
    max_iterations : int, optional
        End after so many iterations.
    format, min_score
        For files: as for `graph.read`.
    device : {"cpu", "cuda", "cuda:N", "auto"}
        Where to compute. On a GPU the clusters are the same up to rounding in the last place.
    progress : callable, optional
        Called with a `Progress` after each iteration. The process ends when it returns False.

    Returns
    -------
    Clustering or list of Clustering

    Raises
    ------
    ValueError
        A weight is negative or not finite, no edge has the one that is named, an option is out of range, or a file is
        wrong, with the line.
    KeyboardInterrupt
        Ctrl-C ends the process.

    Examples
    --------
    >>> import numpy as np
    >>> from spgraph import cluster
    >>> row, col = np.array([0, 0, 1, 3, 3, 4, 2]), np.array([1, 2, 2, 4, 5, 5, 3])
    >>> found = cluster.mcl((row, col))
    >>> found.labels
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> round(found.modularity, 3)
    0.357
    """
    given: Graph = as_graph(graph, weight, directed, F4, format=format, min_score=min_score)
    several = isinstance(inflation, (Sequence, np.ndarray)) and not isinstance(inflation, str)
    values = [real(value, "inflation") for value in (inflation if several else [inflation])]
    if transform is not None and not isinstance(transform, str):
        raise TypeError(f"transform is {transform!r}: a text such as 'gq(0.5)' is expected")
    keep: list[Any] = []
    weights, start = lend(given.matrix, F4, keep), _abi.sp_csr()
    spec = ctypes.c_void_p()
    monitor = _Monitor(progress)
    with Session(device) as session:
        handle = session.handle
        try:
            options = [_options(session, value, prune, select, recover, recover_percent, scheme, overlap, connected,
                                max_iterations) for value in values]
            if transform is not None:
                session.check(lib.mcl_transform_parse(handle, transform.encode(), False, ctypes.byref(spec)))
            for o in options:
                if not given.numbered:
                    o.dense_factor = 0  # as mcl, which multiplies densely only where nodes are 0, 1, 2 ...
            if options:
                session.check(lib.mcl_start_matrix(handle, weights, spec, options[0], False, start))
            found = [_cluster(session, weights, start, o, monitor, given.nodes) for o in options]
            return found if several else found[0]
        finally:
            lib.mcl_transform_free(handle, spec)
            lib.sp_csr_free(handle, start)


class Comparison(NamedTuple):
    """How far two clusterings lie apart.

    Attributes
    ----------
    moved : tuple of two int
        The nodes to move to make each the finest clustering that both contain. 0: it is finer than the other.
    information : tuple of two float
        The same as information, in nats. The sum is the variation of information.
    """

    moved: tuple[int, int]
    information: tuple[float, float]

    @property
    def split_join(self) -> int:
        """The split/join distance, the sum of `moved`."""
        return sum(self.moved)

    @property
    def variation_of_information(self) -> float:
        """The sum of `information`."""
        return sum(self.information)


def _lists(labels: Any, name: str, keep: list[Any]) -> _abi.mcl_clustering:
    """A clustering of the library from labels."""
    labels = labels.labels if isinstance(labels, Clustering) else np.asarray(labels)
    if labels.ndim != 1 or (labels.dtype.kind not in "iu" and len(labels)):
        raise ValueError(f"{name} must be a clustering or an array with the number of each node's cluster")
    if len(labels) and labels.min() < 0:
        raise ValueError(f"{name} has the label {labels.min()}: every node needs a cluster, from 0")
    _, dense = np.unique(labels, return_inverse=True)
    members = np.ascontiguousarray(np.argsort(dense, kind="stable"), I4)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(dense, minlength=1))]).astype(I8)
    keep += [members, offsets]
    return _abi.mcl_clustering(nodes=len(labels), clusters=len(offsets) - 1, offsets=address(offsets),
                               members=address(members))


def compare(a: Any, b: Any) -> Comparison:
    """Compare two clusterings of the same nodes.

    Parameters
    ----------
    a, b : Clustering, or array of int
        An array has the number of each node's cluster. A node in several clusters counts in the first.

    Returns
    -------
    Comparison
        The distances of `clm dist`.

    Examples
    --------
    >>> from spgraph import cluster
    >>> cluster.compare([0, 0, 1, 1], [0, 0, 1, 2])
    Comparison(moved=(1, 0), information=(0.34657359027997264, 0.0))
    """
    keep: list[Any] = []
    first, second, distance = _lists(a, "a", keep), _lists(b, "b", keep), _abi.mcl_distance()
    with Session() as session:
        session.check(lib.mcl_compare(session.handle, first, second, distance))
    return Comparison((distance.moved_first, distance.moved_second),
                      (distance.information_first, distance.information_second))


__all__ = ["Clustering", "Comparison", "Progress", "compare", "mcl"]
