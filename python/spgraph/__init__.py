"""Sparse matrix products, Markov clustering and quotient graphs.

`spgraph` works on sparse matrices of scipy and cupy and on sparse CSR tensors of torch: `matmul`, `similarity`,
`MatmulPlan`, `SpmmPlan`, `add`, `hadamard`, `transpose`, `triu`, `tril` and `top_k` take them and return them.
`spgraph.cluster` finds clusters of networks with the results of `mcl`; `spgraph.graph` reads, contracts, coarsens and
renumbers graphs. All work is done by the C library `libsparse`, on all processors or on a GPU.
"""

from . import cluster, graph
from ._core import get_threads, lib, set_threads
from ._dense import SpmmPlan
from ._elementwise import add, hadamard, top_k, transpose, tril, triu
from ._products import MatmulPlan, matmul
from ._similarity import similarity

__version__: str = lib.sp_version().decode()

__all__ = ["MatmulPlan", "SpmmPlan", "add", "cluster", "get_threads", "graph", "hadamard", "matmul", "set_threads",
           "similarity", "top_k", "transpose", "tril", "triu"]
