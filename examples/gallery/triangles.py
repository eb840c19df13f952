"""Triangles of a network by masked products: how many, the nodes in most of them, and the edges that hold together.

    python3 triangles.py GRAPH          GRAPH: label pairs, STRING, Matrix Market ...
"""

import sys

import numpy as np

import spgraph
from spgraph import graph

if len(sys.argv) < 2:
    sys.exit(__doc__)
network = graph.read(sys.argv[1])
names = network.nodes or list(range(network.matrix.shape[0]))
edges = spgraph.triu(network.matrix, 1) + spgraph.tril(network.matrix, -1)  # without loops
edges.data[:] = 1
both = spgraph.matmul(edges, edges, semiring="plus_pair", mask=edges)  # common neighbours, only where there is an edge
of_node = np.asarray(both.sum(1)).ravel() / 2
degree = np.diff(edges.indptr)
pairs = (degree * (degree - 1.0)).sum()
print(f"{int(of_node.sum() / 3)} triangles, transitivity {both.sum() / pairs:.4f}")
print("in most:", ", ".join(f"{names[i]} {int(of_node[i])}" for i in np.argsort(-of_node)[:5]))

core, k = edges, 0  # the largest k for which a k-truss is left: each of its edges is in k - 2 of its triangles
while core.nnz:
    k, truss = k + 1, core
    while True:
        common = spgraph.matmul(truss, truss, semiring="plus_pair", mask=truss)
        common.data[common.data < k] = 0
        common.eliminate_zeros()
        if common.nnz == truss.nnz or not common.nnz:
            break
        common.data[:] = 1
        truss = common
    if not common.nnz:
        break
    core = truss
print(f"densest part: a {k + 1}-truss of {int((np.diff(core.indptr) > 0).sum())} nodes")
