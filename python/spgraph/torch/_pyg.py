"""Faster propagation in unchanged programs of PyG."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from . import _layers
from ._graphs import matrix_of, normalized, remember
from ._matrix import SparseMatrix

_original: dict[Any, Callable[..., Any]] = {}
_HOOKS = ("_propagate_forward_pre_hooks", "_propagate_forward_hooks", "_message_forward_pre_hooks",
          "_message_forward_hooks", "_aggregate_forward_pre_hooks", "_aggregate_forward_hooks",
          "_message_and_aggregate_forward_pre_hooks", "_message_and_aggregate_forward_hooks",
          "_edge_update_forward_pre_hooks", "_edge_update_forward_hooks")
_SUMS = ("add", "sum")
_STEPS = ("message", "aggregate", "update", "message_and_aggregate", "edge_update")


def _fits(layer: Any, base: Any, x: Any, graph: Any, node_dim: int = -2) -> bool:
    """Whether a call is one of those that run here; all others run in PyG."""
    if torch.jit.is_tracing():
        return False
    if any(getattr(type(layer), step) is not getattr(base, step) for step in _STEPS if hasattr(base, step)):
        return False
    if layer.explain or layer.decomposed_layers > 1 or layer.flow != "source_to_target" or layer.node_dim != node_dim:
        return False
    if any(getattr(layer, hooks, None) for hooks in _HOOKS) or not isinstance(layer.aggr, str):
        return False
    if layer.aggr not in ("add", "sum", "mean", "max", "min"):
        return False
    tensors = [part for part in (x if isinstance(x, (tuple, list)) else (x,)) if part is not None]
    if not all(isinstance(part, Tensor) and part.layout == torch.strided and part.dim() == 2 and
               part.is_floating_point() for part in tensors):
        return False
    if type(graph) is not Tensor or any(part.device != graph.device for part in tensors):
        return False
    return graph.device.type in ("cpu", "cuda") and (graph.layout == torch.sparse_csr or (
        graph.layout == torch.strided and graph.dtype == torch.int64 and graph.dim() == 2 and graph.shape[0] == 2))


def _gcn(layer: Any, x: Any, edge_index: Any, edge_weight: Optional[Tensor] = None) -> Tensor:
    base = _base(layer, "GCNConv")
    listed = isinstance(edge_index, Tensor) and edge_index.layout == torch.strided
    if isinstance(x, (tuple, list)) or not _fits(layer, base, x, edge_index) or (
            edge_weight is not None and (edge_weight.dim() != 1 or not listed)):
        return _original[base](layer, x, edge_index, edge_weight)
    nodes = x.shape[0]
    if layer.normalize and layer.cached and layer._cached_edge_index is not None:  # as PyG keeps it
        edge_index, edge_weight = layer._cached_edge_index
        matrix = matrix_of(edge_index, edge_weight, (nodes, nodes))
    elif layer.normalize and listed:
        matrix = normalized(edge_index, edge_weight, nodes, layer.improved, layer.add_self_loops, x.dtype)
        if layer.cached:
            made, edges = matrix, matrix.edge_index()
            layer._cached_edge_index = (edges, matrix.values)
            remember(edges, matrix.values, (nodes, nodes), lambda: made)
    elif layer.normalize:
        matrix = _normalized_tensor(layer, x, edge_index)
    else:
        matrix = matrix_of(edge_index, edge_weight, (nodes, nodes))
    if layer.aggr in ("max", "min") and matrix.counts is not None:
        return _original[base](layer, x, edge_index, edge_weight)
    return _layers.gcn(layer, matrix, x)


def _normalized_tensor(layer: Any, x: Tensor, graph: Tensor) -> SparseMatrix:
    """A sparse tensor scaled by PyG, which adds loops to those that are there."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    def scale() -> Tensor:
        return gcn_norm(graph, None, x.shape[0], layer.improved, layer.add_self_loops, layer.flow, x.dtype)[0]

    if layer.cached:
        layer._cached_edge_index = (scale(), None)
        return matrix_of(layer._cached_edge_index[0])
    return remember(graph, None, ("PyG", layer.improved, layer.add_self_loops, x.dtype),
                    lambda: SparseMatrix.from_torch(scale()))


def _gat(layer: Any, x: Any, edge_index: Any, edge_attr: Optional[Tensor] = None, size: Any = None,
         return_attention_weights: Optional[bool] = None) -> Any:
    base = _base(layer, "GATConv")
    drops = layer.dropout > 0 and layer.training
    if (edge_attr is None and layer.edge_dim is None and layer.aggr in _SUMS
            and not (return_attention_weights and drops) and _fits(layer, base, x, edge_index, node_dim=0)):
        matrix = _layers.gat_matrix(layer, x, edge_index, size)
        if matrix.counts is None or not drops:  # PyG drops repeated edges one by one
            made = _layers.gat(layer, x, matrix)[0]
            if not return_attention_weights:
                return made
            # The weights are PyG's, in its order of the edges; the features have the bits of a call without weights.
            return made, _original[base](layer, x, edge_index, edge_attr, size, return_attention_weights)[1]
    return _original[base](layer, x, edge_index, edge_attr, size, return_attention_weights)


def _of(name: str, forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The replacement of a layer's forward pass."""

    def replaced(layer: Any, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        base = _base(layer, name)
        if _fits(layer, base, x, edge_index):
            return forward(layer, x, edge_index, size)
        return _original[base](layer, x, edge_index, size)

    return replaced


def _in_place_of(original: Callable[..., Any], forward: Callable[..., Any]) -> Any:
    """The replacement, as a function of PyG's module with the original's signature: torch.jit.script compiles the
    original's source with the names of that module, and torch.compile looks names up there."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if _spgraph_compiling():  # type: ignore[name-defined]  # noqa: F821
            return _spgraph_original(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
        return _spgraph_forward(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821

    scope = original.__globals__
    scope.update(_spgraph_compiling=torch.compiler.is_compiling, _spgraph_original=original, _spgraph_forward=forward)
    return functools.update_wrapper(types.FunctionType(run.__code__, scope), original)


def _base(layer: Any, name: str) -> Any:
    """The class of PyG among those of a layer."""
    return next(kind for kind in type(layer).__mro__ if kind in _original and kind.__name__ == name)


def install_pyg() -> None:
    """Let PyG's GCNConv, SAGEConv, GINConv and GATConv propagate by products of this library.

    This holds for all programs of the process. Calls with an edge_index or a sparse CSR tensor and two-dimensional
    features run here; all others, among them subclasses with messages of their own, hooks, explanations and compiled
    models, run in PyG as before. Matrices are kept as long as the edge_index tensor lives and does not change. Results
    are the same up to rounding.

    See Also
    --------
    uninstall_pyg
    """
    from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

    if _original:
        return
    for kind, forward in ((GCNConv, _gcn), (GATConv, _gat), (SAGEConv, _of("SAGEConv", _layers.sage)),
                          (GINConv, _of("GINConv", _layers.gin))):
        _original[kind] = kind.forward
        kind.forward = _in_place_of(kind.forward, forward)


def uninstall_pyg() -> None:
    """Undo `install_pyg`."""
    for kind, forward in _original.items():
        kind.forward = forward
    _original.clear()


__all__ = ["install_pyg", "uninstall_pyg"]
