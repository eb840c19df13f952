"""Minibatches of sampled neighbourhoods, drawn where the graph lies, in PyG's format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from .. import _abi
from .._core import lib, whole
from ._matrix import _offsets
from ._ops import _session, _space, require_tensor


@dataclasses.dataclass
class Batch:
    """A sampled neighbourhood.

    Attributes
    ----------
    n_id : Tensor
        The nodes: first the seeds, then those that each hop has added.
    edge_index : Tensor, 2 x edges
        Sources and targets, as places in `n_id`.
    e_id : Tensor
        The numbers of these edges in the graph.
    batch_size : int
        The number of seeds.
    input_id : Tensor
        The places of the seeds among the sampler's input nodes.
    num_sampled_nodes, num_sampled_edges : list of int
        How many nodes (first the seeds) and edges each hop has added.
    edge_weight : Tensor, optional
        The weights of these edges, scaled to the sample; only of samplers that got weights.
    """

    n_id: Tensor
    edge_index: Tensor
    e_id: Tensor
    batch_size: int
    input_id: Tensor
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    edge_weight: Optional[Tensor] = None


class Loader:
    """What the samplers share: the graph, its seeds, and batches as PyG has them."""

    def __init__(self, data: Any, input_nodes: Optional[Tensor], batch_size: int, shuffle: bool,
                 num_nodes: Optional[int], seed: Optional[int]) -> None:
        edges: Any = data if isinstance(data, Tensor) else getattr(data, "edge_index", None)
        require_tensor(edges, "edge_index")
        self.data = None if isinstance(data, Tensor) else data
        if edges.dim() != 2 or edges.shape[0] != 2 or edges.is_floating_point():
            raise ValueError(f"edge_index is {edges.dtype} of the shape {tuple(edges.shape)}: whole numbers of the "
                             "shape (2, edges) are expected")
        if self.data is not None:
            num_nodes = self.data.num_nodes
        largest = int(edges.max()) if edges.numel() else -1
        self.num_nodes = largest + 1 if num_nodes is None else num_nodes
        if largest >= self.num_nodes or (edges.numel() and int(edges.min()) < 0):
            raise ValueError(f"edge_index has a node outside the {self.num_nodes} nodes")
        self._edge_index, self._device = edges, edges.device
        self.batch_size, self.shuffle = whole(batch_size, "batch_size"), shuffle
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}: it is at least 1")
        self.input_nodes = self._seeds(input_nodes)
        self._state = (int(torch.randint(2**62, ())) if seed is None else int(seed)) % 2**64

    def _seeds(self, nodes: Optional[Tensor]) -> Tensor:
        if nodes is None:
            return torch.arange(self.num_nodes, device=self._device)
        nodes = nodes.nonzero()[:, 0] if nodes.dtype == torch.bool else nodes
        nodes = nodes.to(self._device).long()
        if nodes.dim() != 1 or (len(nodes) and (int(nodes.min()) < 0 or int(nodes.max()) >= self.num_nodes)):
            raise ValueError(f"the seeds are nodes from 0 to {self.num_nodes - 1}, in one dimension")
        if len(torch.unique(nodes)) != len(nodes):
            raise ValueError("a node is a seed twice")
        return nodes

    def __len__(self) -> int:
        """The number of minibatches of a pass."""
        return -(-len(self.input_nodes) // self.batch_size)

    def _filled(self, batch: Batch) -> Any:
        """The batch, or for a graph of PyG its part of that."""
        if self.data is None:
            return batch
        from torch_geometric.loader.utils import filter_data

        made = filter_data(self.data, batch.n_id, batch.edge_index[0], batch.edge_index[1], batch.e_id)
        for field in dataclasses.fields(batch):
            value = getattr(batch, field.name)
            if field.name != "edge_index" and value is not None:
                made[field.name] = value
        return made


class NeighborSampler(Loader):
    """Minibatches for training on large graphs: seeds and sampled neighbours of several hops (Hamilton et al. 2017).

    For each node that a hop has added, the next hop draws some of the edges that end there, without replacement; each
    set of them has the same probability. Sampling runs on the device of the graph.

    Parameters
    ----------
    data : Data of PyG, or Tensor
        A graph with its features and labels, or an edge_index.
    num_neighbors : sequence of int
        How many edges are drawn for each node, hop by hop. -1: all.
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
    Iterating yields the minibatches of one pass. For `Data` these are `Data` objects with the attributes of the batch's
    nodes and edges, as those of PyG's NeighborLoader, so that its programs train unchanged; for an edge_index they are
    `Batch` objects. A sampler serves one thread at a time. `LayerSampler` draws nodes for a whole minibatch together,
    `ClusterSampler` takes whole clusters.

    Examples
    --------
    >>> import torch
    >>> from spgraph.torch import NeighborSampler
    >>> ring = torch.stack([torch.arange(6), torch.arange(6).roll(1)])
    >>> batch = next(iter(NeighborSampler(ring, [1, 1], batch_size=2)))
    >>> batch.n_id.tolist(), batch.batch_size, batch.num_sampled_edges
    ([0, 1, 2, 3], 2, [2, 1])
    """

    def __init__(self, data: Any, num_neighbors: Sequence[int], *, input_nodes: Optional[Tensor] = None,
                 batch_size: int = 1, shuffle: bool = False, num_nodes: Optional[int] = None,
                 seed: Optional[int] = None) -> None:
        super().__init__(data, input_nodes, batch_size, shuffle, num_nodes, seed)
        self.num_neighbors = [whole(n, "num_neighbors") for n in num_neighbors]
        if not self.num_neighbors or min(self.num_neighbors) < -1:
            raise ValueError("num_neighbors has a number for each hop, of which -1 means all")
        target, self._edges = torch.sort(self._edge_index[1], stable=True)
        self._sources = self._edge_index[0][self._edges]
        self._offsets = _offsets(target, self.num_nodes)
        self._place = torch.full((self.num_nodes,), -1, device=self._device)  # of each node in n_id; -1 between batches

    def __iter__(self) -> Iterator[Any]:
        count = len(self.input_nodes)
        order = torch.randperm(count).to(self._device) if self.shuffle else torch.arange(count, device=self._device)
        for begin in range(0, count, self.batch_size):
            chosen = order[begin:begin + self.batch_size]
            yield self._filled(self._sample(self.input_nodes[chosen], chosen))

    def sample(self, seeds: Tensor) -> Any:
        """The minibatch of these nodes, each given once."""
        seeds = self._seeds(seeds)
        return self._filled(self._sample(seeds, torch.arange(len(seeds), device=self._device)))

    def _draw(self, nodes: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """Positions of drawn edges, and how many there are for each node."""
        counts = self._offsets[nodes + 1] - self._offsets[nodes]
        counts = counts if most < 0 else counts.clamp(max=most)
        offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        drawn = torch.empty(int(offsets[-1]), dtype=torch.int64, device=self._device)
        self._state = (self._state + 1) % 2**64
        if len(drawn):
            rows = nodes.int()
            graph = _abi.sp_csr(self.num_nodes, self.num_nodes, len(self._sources), self._offsets.data_ptr(),
                                self._sources.data_ptr(), None, _abi.SP_F32, _space(self._device))
            with _session(self._device) as session:
                session.check(lib.sp_csr_sample_rows(session.handle, graph, rows.data_ptr(), len(rows),
                                                     offsets.data_ptr(), self._state, drawn.data_ptr()))
        return drawn, counts

    def _distinct(self, nodes: Tensor) -> Tensor:
        """The nodes, each once, ascending. Of equal ones that stays whose number the list of places keeps, whichever it
        is. A minibatch takes a third of the time that it takes with torch.unique."""
        numbers = torch.arange(len(nodes), device=self._device)
        self._place[nodes] = numbers
        return nodes[self._place[nodes] == numbers].sort()[0]

    def _sample(self, seeds: Tensor, places: Tensor) -> Batch:
        nodes, hops = [seeds], []
        begin, end = 0, len(seeds)
        self._place[seeds] = torch.arange(end, device=self._device)
        try:
            for most in self.num_neighbors:
                drawn, counts = self._draw(nodes[-1], most)
                source = self._sources[drawn]
                fresh = self._distinct(source[self._place[source] < 0])
                self._place[fresh] = torch.arange(end, end + len(fresh), device=self._device)
                target = torch.repeat_interleave(torch.arange(begin, end, device=self._device), counts,
                                                 output_size=len(drawn))
                hops.append((torch.stack([self._place[source], target]), drawn))
                nodes.append(fresh)
                begin, end = end, end + len(fresh)
            n_id = torch.cat(nodes)
            self._place[n_id] = -1
        except BaseException:
            self._place.fill_(-1)
            raise
        return Batch(n_id, torch.cat([edges for edges, _ in hops], 1), self._edges[torch.cat([d for _, d in hops])],
                     len(seeds), places, [len(part) for part in nodes], [len(drawn) for _, drawn in hops])


__all__ = ["Batch", "Loader", "NeighborSampler"]
