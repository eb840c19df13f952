"""Minibatches of layer-wise and cluster sampling, several drawn at once by the library, in PyG's format."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .. import _abi
from .._core import Unique, lib, whole
from ._matrix import _offsets
from ._ops import Owner, _session, _space, require_tensor
from ._sampler import Batch, Loader

_METHODS = {"ladies": _abi.GNN_SAMPLE_LAYER, "fastgcn": _abi.GNN_SAMPLE_FASTGCN}


class _Handle(Owner, Unique):
    """A sampler of the library."""

    free = staticmethod(lib.gnn_sampler_free)

    def __init__(self, device: torch.device, graph: _abi.sp_csr, options: _abi.gnn_sampler_options) -> None:
        self.handle = ctypes.c_void_p()
        self.on_gpu = device.type != "cpu"
        with _session(device) as session:
            self.context = session.context
            session.check(lib.gnn_sampler_create(session.handle, graph, options, ctypes.byref(self.handle)))


class BulkSampler(Loader):
    """What the samplers share whose minibatches the library makes."""

    def __init__(self, data: Any, options: _abi.gnn_sampler_options, edge_weight: Optional[Tensor],
                 input_nodes: Optional[Tensor], batch_size: int, shuffle: bool, num_nodes: Optional[int],
                 seed: Optional[int]) -> None:
        super().__init__(data, input_nodes, batch_size, shuffle, num_nodes, seed)
        source, target = self._edge_index.long()
        self._keys, self._edges = torch.sort(target * self.num_nodes + source)
        if (self._keys[1:] == self._keys[:-1]).any():
            raise ValueError("edge_index has an edge twice: coalesce it (torch_geometric.utils.coalesce)")
        self._columns = source[self._edges].int()
        self._rows = _offsets(target[self._edges], self.num_nodes)
        self._weights = None if edge_weight is None else self._sorted_weights(edge_weight)
        wide = self._weights is not None and self._weights.dtype == torch.float64
        graph = _abi.sp_csr(self.num_nodes, self.num_nodes, len(self._columns), self._rows.data_ptr(),
                            self._columns.data_ptr(), None if self._weights is None else self._weights.data_ptr(),
                            _abi.SP_F64 if wide else _abi.SP_F32, _space(self._device))
        options.batch, options.in_order = self.batch_size, not shuffle
        self._handle = _Handle(self._device, graph, options)
        self._input_place = torch.full((self.num_nodes,), -1, device=self._device)
        self._input_place[self.input_nodes] = torch.arange(len(self.input_nodes), device=self._device)
        self._asked = self.input_nodes.int().cpu()
        self._passes = 0

    def _sorted_weights(self, weight: Tensor) -> Tensor:
        require_tensor(weight, "edge_weight")
        count = self._edge_index.shape[1]
        if weight.shape != (count,) or not weight.is_floating_point():
            raise ValueError(f"edge_weight is {weight.dtype} of the shape {tuple(weight.shape)}: {count} real numbers "
                             "are expected")
        if not torch.isfinite(weight).all():
            raise ValueError("edge_weight has a number that is not finite")
        weight = weight.detach().to(self._device)
        return (weight if weight.dtype == torch.float64 else weight.float())[self._edges].contiguous()

    def __iter__(self) -> Iterator[Any]:
        self._passes += 1
        own, drawn = self._passes, _abi.gnn_minibatch()
        with _session(self._device, self._handle.context) as session:
            session.check(lib.gnn_sampler_begin(self._handle.handle, self._asked.data_ptr(), len(self._asked),
                                                self._state, own))
        while True:
            if own != self._passes:
                raise RuntimeError("another pass over this sampler has begun: a sampler has one at a time")
            with _session(self._device, self._handle.context) as session:
                session.check(lib.gnn_sampler_next(self._handle.handle, drawn))
                if drawn.layers == 0:
                    return
                try:
                    parts = self._taken(session, drawn)
                finally:
                    lib.gnn_minibatch_free(session.handle, drawn)
            yield self._filled(self._batch(*parts))

    def _taken(self, session: Any, drawn: _abi.gnn_minibatch) -> tuple[list[int], Tensor, Tensor, Tensor, Any]:
        """How many nodes the lists of all layers have, from the top, and the block of the lowest layer, which has the
        entries of all others: its nodes, offsets, columns and values. Torch may use these after the session."""
        block = drawn.block[0]
        sizes = [drawn.batch_size] + [drawn.block[layer].cols for layer in reversed(range(drawn.layers))]

        def copied(count: int, dtype: torch.dtype, address: int) -> Tensor:
            made = torch.empty(count, dtype=dtype, device=self._device)
            space = _space(self._device)
            session.check(lib.sp_array_copy(session.handle, count, made.element_size(), made.data_ptr(), space, address,
                                            space))
            return made

        values = None if self._weights is None else copied(block.nnz, self._weights.dtype, block.values)
        return (sizes, copied(block.cols, torch.int32, drawn.node[0]),
                copied(block.rows + 1, torch.int64, block.row_offsets),
                copied(block.nnz, torch.int32, block.col_indices), values)

    def _batch(self, sizes: list[int], nodes: Tensor, offsets: Tensor, columns: Tensor, values: Any) -> Batch:
        """The minibatch. An edge belongs to the first hop after which both its nodes are there, its target before."""
        nodes, source = nodes.long(), columns.long()
        target = torch.repeat_interleave(torch.arange(len(offsets) - 1, device=self._device), offsets.diff(),
                                         output_size=len(source))
        added = [sizes[0]] + [after - before for before, after in zip(sizes, sizes[1:])]
        level = torch.repeat_interleave(torch.arange(len(added), device=self._device),
                                        torch.tensor(added, device=self._device), output_size=len(nodes))
        hop, order = torch.sort(torch.maximum(level[target] + 1, level[source]), stable=True)
        source, target = source[order], target[order]
        edges = self._edges[torch.searchsorted(self._keys, nodes[target] * self.num_nodes + nodes[source])]
        counts = torch.bincount(hop, minlength=len(added))[1:].tolist()
        return Batch(nodes, torch.stack([source, target]), edges, sizes[0], self._input_place[nodes[:sizes[0]]], added,
                     counts, None if values is None else values[order])


class LayerSampler(BulkSampler):
    """Minibatches for training on large graphs: seeds, and for each hop nodes that are drawn for all of them together.

    A hop draws among the neighbours of all nodes that are there, without replacement. So a minibatch has as many nodes
    as `layer_sizes` and `batch_size` say, however many neighbours they have, and all edges between a node and those of
    the hops before. Several minibatches are drawn at once, on the device of the graph (Tripathy et al. 2024).

    Parameters
    ----------
    data : Data of PyG, or Tensor
        A graph with its features and labels, or an edge_index. No edge may be there twice.
    layer_sizes : sequence of int
        How many nodes each hop draws.
    method : {"ladies", "fastgcn"}
        Nodes are drawn in proportion to the sum of the squares of the weights of their edges: of those that end at a
        node of the minibatch (LADIES, Zou et al. 2019), or of all (FastGCN, Chen et al. 2018).
    edge_weight : Tensor, optional
        A real number for each edge, such as `torch_geometric.nn.conv.gcn_conv.gcn_norm` gives. Without weights all
        edges are alike.
    input_nodes : Tensor, optional
        The seeds: numbers of nodes, or a mask. All nodes by default.
    batch_size : int
        Seeds of a minibatch. The last one may have fewer.
    shuffle : bool
        Take the seeds in a new random order in each pass.
    num_nodes : int, optional
        For an edge_index; the largest node and one more by default.
    seed : int, optional
        Equal seeds give equal samples, on the CPU as on a GPU. By default torch's random numbers give one.

    Notes
    -----
    Iterating yields the minibatches of one pass, as of `NeighborSampler`. With `edge_weight` a batch has the weights of
    its edges, scaled to the sample: those of drawn nodes are divided by the probability that the last hop draws them,
    and then those of each target are scaled to the sum that they have in the graph.

    Examples
    --------
    >>> import torch
    >>> from spgraph.torch import LayerSampler
    >>> ring = torch.stack([torch.arange(6), torch.arange(6).roll(1)])
    >>> batch = next(iter(LayerSampler(ring, [1, 1], batch_size=1)))
    >>> batch.n_id.tolist(), batch.edge_index.tolist(), batch.num_sampled_nodes
    ([0, 1, 2], [[1, 2], [0, 1]], [1, 1, 1])
    """

    def __init__(self, data: Any, layer_sizes: Sequence[int], *, method: str = "ladies",
                 edge_weight: Optional[Tensor] = None, input_nodes: Optional[Tensor] = None, batch_size: int = 1,
                 shuffle: bool = False, num_nodes: Optional[int] = None, seed: Optional[int] = None) -> None:
        if method not in _METHODS:
            raise ValueError(f"method is {method!r}: 'ladies' and 'fastgcn' are possible")
        self.method, self.layer_sizes = method, [whole(n, "layer_sizes") for n in layer_sizes]
        if not 1 <= len(self.layer_sizes) <= _abi.GNN_MAX_LAYERS or min(self.layer_sizes) < 1:
            raise ValueError(f"layer_sizes has a positive number for each hop, of 1 to {_abi.GNN_MAX_LAYERS} hops")
        options = _abi.gnn_sampler_options(kind=_METHODS[method], layers=len(self.layer_sizes))
        options.fanout[:len(self.layer_sizes)] = self.layer_sizes
        super().__init__(data, options, edge_weight, input_nodes, batch_size, shuffle, num_nodes, seed)


class ClusterSampler(BulkSampler):
    """Minibatches of whole clusters and all edges within and between those of one minibatch (Chiang et al. 2019).

    Parameters
    ----------
    data : Data of PyG, or Tensor
        A graph with its features and labels, or an edge_index. No edge may be there twice.
    clusters : Clustering, Tensor or array of int
        The cluster of each node, from 0 on: of `spgraph.cluster.mcl`, or of any other method.
    edge_weight : Tensor, optional
        A real number for each edge. A batch has those of its edges, scaled such that those of each target have the sum
        that they have in the graph.
    input_nodes : Tensor, optional
        The seeds: numbers of nodes, or a mask. A pass takes all clusters that have one. All nodes by default.
    batch_size : int
        Clusters of a minibatch. The last one may have fewer.
    shuffle : bool
        Take the clusters in a new random order in each pass.
    num_nodes : int, optional
        For an edge_index; the largest node and one more by default.
    seed : int, optional
        Equal seeds give equal orders. By default torch's random numbers give one.

    Notes
    -----
    Iterating yields the minibatches of one pass, as of `NeighborSampler`. In `n_id` seeds come first, and the batch's
    `batch_size` is their number.

    Examples
    --------
    >>> import torch
    >>> from spgraph.torch import ClusterSampler
    >>> ring = torch.stack([torch.arange(6), torch.arange(6).roll(1)])
    >>> for batch in ClusterSampler(ring, [0, 0, 0, 1, 1, 1]):
    ...     print(batch.n_id.tolist(), batch.edge_index.tolist())
    [0, 1, 2] [[1, 2], [0, 1]]
    [3, 4, 5] [[1, 2], [0, 1]]
    """

    def __init__(self, data: Any, clusters: Any, *, edge_weight: Optional[Tensor] = None,
                 input_nodes: Optional[Tensor] = None, batch_size: int = 1, shuffle: bool = False,
                 num_nodes: Optional[int] = None, seed: Optional[int] = None) -> None:
        labels = torch.as_tensor(getattr(clusters, "labels", clusters)).cpu()
        nodes = num_nodes if isinstance(data, Tensor) else getattr(data, "num_nodes", None)
        if labels.dim() != 1 or labels.is_floating_point() or labels.is_complex():
            raise ValueError(f"clusters are {labels.dtype} of the shape {tuple(labels.shape)}: a whole number for each "
                             "node is expected")
        if nodes is not None and len(labels) != nodes:
            raise ValueError(f"clusters has {len(labels)} numbers and the graph {nodes} nodes")
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(labels):
            raise ValueError(f"clusters are numbers from 0 to {len(labels) - 1}: there is one outside")
        self.clusters = labels.int().contiguous()
        options = _abi.gnn_sampler_options(kind=_abi.GNN_SAMPLE_CLUSTER, layers=1, clusters=self.clusters.data_ptr())
        super().__init__(data, options, edge_weight, input_nodes, batch_size, shuffle, len(labels), seed)
        self._count = len(torch.unique(self.clusters[self._asked.long()]))

    def __len__(self) -> int:
        """The number of minibatches of a pass."""
        return -(-self._count // self.batch_size)

    def _batch(self, sizes: list[int], nodes: Tensor, offsets: Tensor, columns: Tensor, values: Any) -> Batch:
        made = super()._batch(sizes, nodes, offsets, columns, values)
        nodes = made.n_id
        chosen = self._input_place[nodes] >= 0
        order = torch.sort(~chosen, stable=True)[1]
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=self._device)
        seeds = int(chosen.sum())
        return Batch(nodes[order], place[made.edge_index], made.e_id, seeds,
                     self._input_place[nodes[order[:seeds]]], [seeds, len(nodes) - seeds], [len(made.e_id)],
                     made.edge_weight)


__all__ = ["ClusterSampler", "LayerSampler"]
