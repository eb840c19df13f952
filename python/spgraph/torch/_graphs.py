"""Graphs as layers get them: edge lists, sparse tensors and matrices; those made from tensors are kept."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ._matrix import SparseMatrix, spmm

_kept: Any = WeakTensorKeyDictionary()  # of an edge list: its version, and the matrices that were made from it


def _version(tensor: Optional[Tensor]) -> int:
    return 0 if tensor is None else -1 if tensor.is_inference() else tensor._version


def remember(graph: Tensor, weight: Optional[Tensor], key: Any, make: Callable[[], SparseMatrix]) -> SparseMatrix:
    """The matrix that `make` made of the same tensors, as long as these live and do not change."""
    versions = _version(graph), _version(weight)
    if min(versions) < 0 or (weight is not None and weight.requires_grad) or graph.requires_grad:
        return make()
    if graph not in _kept or _kept[graph][0] != versions[0]:
        _kept[graph] = (versions[0], {})
    matrices = _kept[graph][1]
    found = matrices.get(key)
    if found is None or found[0] is not weight or found[1] != versions[1]:
        matrices[key] = found = (weight, versions[1], make())
    return found[2]


def matrix_of(graph: Any, weight: Optional[Tensor] = None, size: Optional[tuple[int, int]] = None) -> SparseMatrix:
    """A graph as a matrix of targets x sources."""
    if isinstance(graph, SparseMatrix):
        return graph if weight is None else graph.with_values(weight)
    if not isinstance(graph, Tensor):
        raise TypeError(f"a graph is an edge_index, a sparse tensor or a SparseMatrix, not {type(graph).__name__}")
    if graph.layout != torch.strided:
        if weight is not None:
            raise ValueError("a sparse tensor has its own weights")
        return remember(graph, None, "tensor", lambda: SparseMatrix.from_torch(graph))
    return remember(graph, weight, size, lambda: SparseMatrix.from_edge_index(graph, weight, size))


def normalized(graph: Any, weight: Optional[Tensor], nodes: int, improved: bool, loops: bool,
               dtype: torch.dtype) -> SparseMatrix:
    """D^-1/2 (A + I) D^-1/2 of a graph, with the loops that it lacks (or without the addition)."""
    if isinstance(graph, Tensor):
        return remember(graph, weight, ("normalized", nodes, improved, loops, dtype),
                        lambda: _normalize(graph, weight, nodes, improved, loops, dtype))
    return _normalize(graph, weight, nodes, improved, loops, dtype)


def _normalize(graph: Any, weight: Optional[Tensor], nodes: int, improved: bool, loops: bool,
               dtype: torch.dtype) -> SparseMatrix:
    if isinstance(graph, SparseMatrix) or graph.layout != torch.strided:
        matrix = matrix_of(graph, weight)
        if matrix.shape != (nodes, nodes):
            raise ValueError(f"the graph is {matrix.shape[0]} x {matrix.shape[1]} and x has {nodes} rows")
        graph, weight = matrix.edge_index(), matrix.values if matrix.values is not None else matrix.counts
    if weight is not None and weight.dtype != torch.float64:
        weight = weight.to(torch.float32)
    if loops:
        graph, weight = _add_loops(graph, weight, nodes, 2.0 if improved else 1.0)
    if weight is None:
        wide = dtype == torch.float64
        weight = torch.ones(graph.shape[1], dtype=torch.float64 if wide else torch.float32, device=graph.device)
    source, target = graph
    degree = weight.new_zeros(nodes).index_add(0, target, weight)
    scale = degree.pow(-0.5)
    scale = scale.masked_fill(scale == float("inf"), 0)
    return SparseMatrix.from_edge_index(graph, scale[source] * weight * scale[target], nodes)


def _add_loops(graph: Tensor, weight: Optional[Tensor], nodes: int, fill: float) -> tuple[Tensor, Optional[Tensor]]:
    """The edges with one loop at each node: its own, of repeated ones the last, or one of weight `fill`."""
    nodes_of = torch.arange(nodes, device=graph.device)
    loop = graph[0] == graph[1]
    edges = torch.cat([graph[:, ~loop], nodes_of.expand(2, nodes)], 1)
    if weight is None:
        return edges, None
    own = weight.new_full((nodes,), fill).index_put((graph[0][loop],), weight[loop])
    return edges, torch.cat([weight[~loop], own])


def with_loops(graph: Any, size: tuple[int, int]) -> SparseMatrix:
    """A graph as a matrix of targets x sources, with one loop at each node that is both, and without other loops."""

    def make() -> SparseMatrix:
        edges = graph
        if isinstance(graph, SparseMatrix) or graph.layout != torch.strided:
            matrix = matrix_of(graph)
            edges = matrix.edge_index()
            if matrix.counts is not None:
                edges = edges.repeat_interleave(matrix.counts.long(), 1)
        return SparseMatrix.from_edge_index(_add_loops(edges, None, min(size), 1.0)[0], None, size)

    return remember(graph, None, ("loops", size), make) if isinstance(graph, Tensor) else make()


def aggregate(matrix: SparseMatrix, x: Tensor, reduce: Union[str, None]) -> Tensor:
    """The messages of all neighbours, combined."""
    if reduce not in ("add", "sum", "mean", "max", "min"):
        raise NotImplementedError(f"aggr is {reduce!r}: add, sum, mean, max and min are possible")
    return spmm(matrix, x, reduce)
