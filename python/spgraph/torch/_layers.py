"""Layers of graph networks with the signatures, parameters and results of PyG's, without PyG."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor
from torch.nn import Linear, Parameter

from ._attention import attention, spmm_heads
from ._graphs import aggregate, matrix_of, normalized, with_loops
from ._matrix import SparseMatrix

SUMS = ("add", "sum", "mean")  # reductions that a linear layer may come before or after


def _linear(inputs: int, outputs: int, bias: bool) -> Linear:
    return torch.nn.LazyLinear(outputs, bias=bias) if inputs == -1 else Linear(inputs, outputs, bias=bias)


def _reset(module: Any) -> None:
    """Draws the parameters of a module and of those in it anew."""
    if isinstance(module, torch.nn.LazyLinear):
        return  # they are drawn when the first input comes
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
    elif isinstance(module, torch.nn.Module):
        for child in module.children():
            _reset(child)


def _only(layer: str, options: dict[str, Any], **others: Any) -> None:
    """Refuses the options of PyG's MessagePassing that these layers lack, unless they have their default."""
    defaults = {"flow": "source_to_target", "node_dim": -2, "decomposed_layers": 1, "aggr_kwargs": None, **others}
    for name, value in options.items():
        if name not in defaults:
            raise TypeError(f"{layer} has no option {name!r}")
        if value != defaults[name]:
            raise NotImplementedError(f"{layer} with {name}={value!r} is not supported: use PyG's")


def _is_plain(lin: Any) -> bool:
    """Whether a module is torch's or PyG's linear layer and nothing else, so that it may change places with a sum."""
    kind = type(lin)
    ours = kind is Linear or (kind.__name__ == "Linear" and kind.__module__ == "torch_geometric.nn.dense.linear")
    return ours and not (
        isinstance(lin.weight, torch.nn.parameter.UninitializedParameter) or lin._forward_hooks or
        lin._forward_pre_hooks or lin._backward_hooks or lin._backward_pre_hooks)


def _ends_narrow(lin: Any, x: Tensor) -> bool:
    """Whether products after a linear layer have fewer columns in all, forward and backward, than those before it."""
    backward = torch.is_grad_enabled()
    after = lin.weight.shape[0] * (2 if backward else 1)
    return bool(after <= x.shape[-1] * (2 if backward and x.requires_grad else 1))


def gcn(layer: Any, matrix: SparseMatrix, x: Tensor) -> Tensor:
    """The forward pass of GCNConv on a normalised matrix, for this module's and PyG's."""
    lin = layer.lin
    if layer.aggr in SUMS and _is_plain(lin) and lin.bias is None and not _ends_narrow(lin, x):
        y = lin(aggregate(matrix, x, layer.aggr))
    else:
        y = aggregate(matrix, lin(x), layer.aggr)
    return y if layer.bias is None else y + layer.bias


class GCNConv(torch.nn.Module):
    """The graph convolution of Kipf and Welling (2017): D^-1/2 (A + I) D^-1/2 X W + b.

    Parameters
    ----------
    in_channels, out_channels : int
        Columns of x and of the result. -1: those of the first x.
    improved : bool
        A + 2I. As in PyG it has an effect only on graphs with weights.
    cached : bool
        Keep the normalised matrix of the first call for all later ones.
    add_self_loops : bool, optional
        Give each node without a loop one. As `normalize` by default.
    normalize : bool
        Scale by the degrees.
    bias : bool
    aggr : str
        "add", "mean", "max" or "min".

    Notes
    -----
    `forward` takes x, and as a graph an edge_index, a sparse tensor or `SparseMatrix` of targets x sources. Matrices
    that are made of an edge_index are kept as long as that tensor lives and does not change.
    """

    def __init__(self, in_channels: int, out_channels: int, improved: bool = False, cached: bool = False,
                 add_self_loops: Optional[bool] = None, normalize: bool = True, bias: bool = True, *,
                 aggr: str = "add", **kwargs: Any) -> None:
        super().__init__()
        _only("GCNConv", kwargs)
        if add_self_loops is None:
            add_self_loops = normalize
        if add_self_loops and not normalize:
            raise ValueError("GCNConv adds loops only where it normalises")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.improved, self.cached, self.add_self_loops, self.normalize = improved, cached, add_self_loops, normalize
        self.aggr = aggr
        self.lin = _linear(in_channels, out_channels, bias=False)
        self.bias = Parameter(torch.empty(out_channels)) if bias else None
        self._matrix: Any = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, and forget the cached matrix."""
        if not isinstance(self.lin, torch.nn.LazyLinear):
            torch.nn.init.xavier_uniform_(self.lin.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)
        self._matrix = None

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Optional[Tensor] = None) -> Tensor:
        """The new features of all nodes."""
        if self.normalize:
            matrix = self._matrix
            if matrix is None:
                matrix = normalized(edge_index, edge_weight, x.shape[-2], self.improved, self.add_self_loops, x.dtype)
                if self.cached:
                    self._matrix = matrix
        else:
            matrix = matrix_of(edge_index, edge_weight, (x.shape[-2], x.shape[-2]))
        return gcn(self, matrix, x)

    def __repr__(self) -> str:
        return f"GCNConv({self.in_channels}, {self.out_channels})"


def sage(layer: Any, x: Any, edge_index: Any, size: Optional[tuple[int, int]]) -> Tensor:
    """The forward pass of SAGEConv, for this module's and PyG's."""
    source, target = x if isinstance(x, (tuple, list)) else (x, x)
    if layer.project and hasattr(layer, "lin"):
        source = layer.lin(source).relu()
    matrix, lin = matrix_of(edge_index, None, _size(source, target, size)), layer.lin_l
    if layer.aggr in SUMS and _is_plain(lin) and _ends_narrow(lin, source):
        y = aggregate(matrix, torch.nn.functional.linear(source, lin.weight), layer.aggr)
        y = y if lin.bias is None else y + lin.bias
    else:
        y = lin(aggregate(matrix, source, layer.aggr))
    if layer.root_weight and target is not None:
        y = y + layer.lin_r(target)
    return torch.nn.functional.normalize(y, p=2.0, dim=-1) if layer.normalize else y


def gin(layer: Any, x: Any, edge_index: Any, size: Optional[tuple[int, int]]) -> Tensor:
    """The forward pass of GINConv, for this module's and PyG's."""
    source, target = x if isinstance(x, (tuple, list)) else (x, x)
    y = aggregate(matrix_of(edge_index, None, _size(source, target, size)), source, layer.aggr)
    if target is not None:
        y = y + (1 + layer.eps) * target
    return layer.nn(y)


def _size(source: Tensor, target: Optional[Tensor], size: Any) -> tuple[int, int]:
    """The numbers of sources and of targets."""
    sources, targets = size if size is not None else (None, None)
    given = source.shape[0] if target is None else target.shape[0]
    return source.shape[0] if sources is None else sources, given if targets is None else targets


class SAGEConv(torch.nn.Module):
    """The layer of GraphSAGE (Hamilton et al. 2017): the combined features of the neighbours, and the node's own.

    Parameters
    ----------
    in_channels : int or (int, int)
        Columns of x, of sources and targets. -1: those of the first x.
    out_channels : int
    aggr : {"mean", "add", "sum", "max", "min"}
        How the features of neighbours are combined.
    normalize : bool
        Scale each row of the result to length 1.
    root_weight : bool
        Add the node's own features, times another matrix.
    project : bool
        First apply a linear layer and ReLU to the sources.
    bias : bool

    Notes
    -----
    `forward` takes x or a pair (sources, targets), and a graph as `GCNConv` does.
    """

    def __init__(self, in_channels: Union[int, tuple[int, int]], out_channels: int, aggr: str = "mean",
                 normalize: bool = False, root_weight: bool = True, project: bool = False, bias: bool = True,
                 **kwargs: Any) -> None:
        super().__init__()
        _only("SAGEConv", kwargs)
        sources, targets = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        if project and sources <= 0:
            raise ValueError("SAGEConv with project=True needs the number of its in_channels")
        self.in_channels, self.out_channels, self.aggr = in_channels, out_channels, aggr
        self.normalize, self.root_weight, self.project = normalize, root_weight, project
        if project:
            self.lin = Linear(sources, sources)
        self.lin_l = _linear(sources, out_channels, bias=bias)
        if root_weight:
            self.lin_r = _linear(targets, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for child in self.children():
            _reset(child)

    def forward(self, x: Any, edge_index: Any, size: Optional[tuple[int, int]] = None) -> Tensor:
        """The new features of all targets."""
        return sage(self, x, edge_index, size)

    def __repr__(self) -> str:
        return f"SAGEConv({self.in_channels}, {self.out_channels}, aggr={self.aggr})"


class GINConv(torch.nn.Module):
    """The layer of graph isomorphism networks (Xu et al. 2019): nn((1 + eps) x + the sum of the neighbours).

    Parameters
    ----------
    nn : Module
        What is applied to the sums.
    eps : float
        The weight of the node itself, beyond 1.
    train_eps : bool
        Make `eps` a parameter.
    aggr : {"add", "sum", "mean", "max", "min"}

    Notes
    -----
    `forward` takes x or a pair (sources, targets), and a graph as `GCNConv` does.
    """

    def __init__(self, nn: Callable[..., Tensor], eps: float = 0.0, train_eps: bool = False, *, aggr: str = "add",
                 **kwargs: Any) -> None:
        super().__init__()
        _only("GINConv", kwargs)
        self.nn, self.initial_eps, self.aggr = nn, eps, aggr
        if train_eps:
            self.eps = Parameter(torch.empty(1))
        else:
            self.register_buffer("eps", torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _reset(self.nn)
        self.eps.data.fill_(self.initial_eps)

    def forward(self, x: Any, edge_index: Any, size: Optional[tuple[int, int]] = None) -> Tensor:
        """The new features of all targets."""
        return gin(self, x, edge_index, size)

    def __repr__(self) -> str:
        return f"GINConv(nn={self.nn})"


def gat_matrix(layer: Any, x: Any, edge_index: Any, size: Optional[tuple[int, int]]) -> SparseMatrix:
    """The edges between which GATConv attends."""
    source, target = x if isinstance(x, (tuple, list)) else (x, x)
    if isinstance(edge_index, Tensor) and edge_index.layout == torch.strided:
        size = _size(source, target, size)
    else:  # which has a row for each target, also where targets have no features
        size = edge_index.shape[1], edge_index.shape[0]
    return with_loops(edge_index, size) if layer.add_self_loops else matrix_of(edge_index, None, size)


def gat(layer: Any, x: Any, matrix: SparseMatrix) -> tuple[Tensor, Tensor]:
    """The forward pass of GATConv, for this module's and PyG's; also the attention, heads x entries."""
    pair = isinstance(x, (tuple, list))
    source, target = x if pair else (x, x)
    rest = None if layer.res is None or target is None else layer.res(target)
    if layer.lin is not None:
        source = layer.lin(source)
        target = source if not pair else None if target is None else layer.lin(target)
    else:
        source, target = layer.lin_src(source), None if target is None else layer.lin_dst(target)
    right = _head_scores(source, layer.att_src)
    left = right.new_zeros((matrix.shape[0], layer.heads)) if target is None else _head_scores(target, layer.att_dst)
    weights = attention(matrix, left, right, layer.negative_slope)
    weights = torch.nn.functional.dropout(weights, layer.dropout, layer.training)
    y = spmm_heads(matrix, weights, source)
    if not layer.concat:
        y = y.view(-1, layer.heads, layer.out_channels).mean(1)
    for part in (rest, layer.bias):
        y = y if part is None else y + part
    return y, weights


def _head_scores(x: Tensor, vectors: Tensor) -> Tensor:
    """The product of each head's columns with its vector."""
    return (x.view(-1, *vectors.shape[1:]) * vectors).sum(-1)


class GATConv(torch.nn.Module):
    """The layer of graph attention networks (Velickovic et al. 2018): neighbours are weighted by a softmax of scores.

    Parameters
    ----------
    in_channels : int or (int, int)
        Columns of x, of sources and targets. -1: those of the first x.
    out_channels : int
        Columns of each head.
    heads : int
    concat : bool
        Heads side by side; otherwise their mean.
    negative_slope : float
        Of the leaky ReLU of scores.
    dropout : float
        The share of weights that training drops. Repeated edges are dropped together.
    add_self_loops : bool
        Replace the loops by one at each node.
    bias : bool
    residual : bool
        Add x times another matrix.

    Notes
    -----
    `forward` takes x or a pair (sources, targets), and a graph as `GCNConv` does; weights of the graph are not read.
    Features of edges (`edge_dim`) are not supported.
    """

    def __init__(self, in_channels: Union[int, tuple[int, int]], out_channels: int, heads: int = 1,
                 concat: bool = True, negative_slope: float = 0.2, dropout: float = 0.0, add_self_loops: bool = True,
                 edge_dim: Optional[int] = None, fill_value: Any = "mean", bias: bool = True, residual: bool = False,
                 **kwargs: Any) -> None:
        super().__init__()
        _only("GATConv", kwargs, node_dim=0, aggr="add")
        if edge_dim is not None:
            raise NotImplementedError("GATConv with features of edges (edge_dim) is not supported: use PyG's")
        self.in_channels, self.out_channels, self.heads, self.concat = in_channels, out_channels, heads, concat
        self.negative_slope, self.dropout, self.add_self_loops = negative_slope, dropout, add_self_loops
        self.lin = self.lin_src = self.lin_dst = self.res = None
        if isinstance(in_channels, int):
            self.lin = _linear(in_channels, heads * out_channels, bias=False)
        else:
            self.lin_src, self.lin_dst = (_linear(n, heads * out_channels, bias=False) for n in in_channels)
        self.att_src = Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = Parameter(torch.empty(1, heads, out_channels))
        columns = out_channels * (heads if concat else 1)
        if residual:
            self.res = _linear(in_channels if isinstance(in_channels, int) else in_channels[1], columns, bias=False)
        self.bias = Parameter(torch.empty(columns)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for lin in (self.lin, self.lin_src, self.lin_dst, self.res):
            if lin is not None and not isinstance(lin, torch.nn.LazyLinear):
                torch.nn.init.xavier_uniform_(lin.weight)
        torch.nn.init.xavier_uniform_(self.att_src)
        torch.nn.init.xavier_uniform_(self.att_dst)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Any, edge_index: Any, edge_attr: None = None, size: Optional[tuple[int, int]] = None,
                return_attention_weights: Optional[bool] = None) -> Any:
        """The new features of all targets; and if it is asked for, (edges, weights) with a column for each head."""
        if edge_attr is not None:
            raise NotImplementedError("GATConv with features of edges (edge_attr) is not supported: use PyG's")
        matrix = gat_matrix(self, x, edge_index, size)
        y, weights = gat(self, x, matrix)
        return y if return_attention_weights is None else (y, (matrix.edge_index(), weights.t()))

    def __repr__(self) -> str:
        return f"GATConv({self.in_channels}, {self.out_channels}, heads={self.heads})"


__all__ = ["GATConv", "GCNConv", "GINConv", "SAGEConv"]
