"""A network cut in two: clusters become nodes, and the second eigenvector of the small graph's Laplacian says where.

    python3 partition.py GRAPH          GRAPH: label pairs, STRING, Matrix Market ...
"""

import sys

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, laplacian

from spgraph import cluster, graph

if len(sys.argv) < 2:
    sys.exit(__doc__)
network = graph.read(sys.argv[1]).matrix
_, label = connected_components(network, directed=False)
largest = np.flatnonzero(label == np.bincount(label).argmax())
network = network[largest][:, largest]

found = cluster.mcl(network, 2.0)
small = graph.contract(network, found)  # weights between clusters, and inside of them on the diagonal
print(f"{network.shape[0]} nodes and {network.nnz // 2} edges become {small.shape[0]} and {small.nnz // 2}")

roots = np.sqrt(found.sizes)  # a cluster weighs as much as it has nodes
scaled = sp.diags_array(1 / roots) @ laplacian(small) @ sp.diags_array(1 / roots)
_, vectors = np.linalg.eigh(scaled.toarray())
order = np.argsort(vectors[:, 1] / roots)
half = np.searchsorted(np.cumsum(found.sizes[order]), network.shape[0] / 2) + 1
side = np.isin(np.arange(len(found)), order[:half]).astype(int)[found.labels]
cut = graph.contract(network, side)
part = 100 * (cut[0, 1] + cut[1, 0]) / cut.sum()
print(f"sides of {(side == 0).sum()} and {(side == 1).sum()} nodes; {part:.2f} % of the weight is cut")
