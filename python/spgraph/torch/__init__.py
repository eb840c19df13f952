"""Sparse products of torch tensors with gradients, and layers of graph networks.

The operators `torch.ops.spgraph.spmm`, `sddmm` and `spmm_extreme` work with autograd and `torch.compile`. Nothing links
torch, so one wheel serves all its versions from 2.4 on.
"""

from ._activations import maxk, spmm_maxk
from ._attention import edge_softmax, spmm_heads
from ._bulk_sampler import ClusterSampler, LayerSampler
from ._layers import GATConv, GCNConv, GINConv, SAGEConv
from ._matrix import SparseMatrix, sddmm, spmm
from ._memory import empty_cache, use_torch_memory
from ._models import Classifier, load_model, save_model
from ._pyg import install_pyg, uninstall_pyg
from ._sampler import NeighborSampler

__all__ = ["Classifier", "ClusterSampler", "GATConv", "GCNConv", "GINConv", "LayerSampler", "NeighborSampler",
           "SAGEConv", "SparseMatrix", "edge_softmax", "empty_cache", "install_pyg", "load_model", "maxk", "save_model",
           "sddmm",
           "spmm", "spmm_heads", "spmm_maxk", "uninstall_pyg", "use_torch_memory"]
