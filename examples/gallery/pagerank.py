"""PageRank of many starting points at once: products of a sparse matrix with a dense one.

    python3 pagerank.py GRAPH [NODE...]     GRAPH: label pairs, STRING, Matrix Market ...; NODE: where walks begin
"""

import sys

import numpy as np
import scipy.sparse as sp

import spgraph
from spgraph import graph

if len(sys.argv) < 2:
    sys.exit(__doc__)
network = graph.read(sys.argv[1])
names = network.nodes or list(range(network.matrix.shape[0]))
out = np.asarray(network.matrix.sum(1)).ravel()
steps = sp.diags_array(1 / np.where(out > 0, out, 1)) @ network.matrix  # the walk's probabilities
walk = spgraph.SpmmPlan(steps.tocsr(), len(sys.argv) - 1, transpose=True)

start = np.zeros((len(names), len(sys.argv) - 1))  # a column a walk: the first begins anywhere, the others at a node
start[:, 0] = 1 / len(names)
for column, node in enumerate(sys.argv[2:], 1):
    start[names.index(node), column] = 1
rank, moved = start, 1.0
while moved > 1e-8:
    spread = walk(rank, alpha=0.85)
    spread += start * (1 - spread.sum(0))  # the other steps, and walks without a way on, begin anew
    moved, rank = np.abs(spread - rank).sum(0).max(), spread
for title, column in zip(["anywhere", *sys.argv[2:]], rank.T):
    print(f"{title}:", ", ".join(f"{names[i]} {column[i]:.4f}" for i in np.argsort(-column)[:5]))
