"""Measures of networkx on a network, computed by sparse products.

    python3 network_measures.py GRAPH

The same program without the line of `backend_priority` runs in networkx alone.
"""

import sys

import networkx as nx

from spgraph import graph
from spgraph.networkx import from_matrix

nx.config.backend_priority = ["spgraph"]
if len(sys.argv) < 2:
    sys.exit(__doc__)
network = graph.read(sys.argv[1])
g = from_matrix(network.matrix)  # networkx's own graphs can be passed as well
names = network.nodes or list(range(len(g)))
rank = nx.pagerank(g)
print(f"{len(g)} nodes, {sum(nx.triangles(g).values()) // 3} triangles, transitivity {nx.transitivity(g):.3f}")
print(f"clustering {nx.average_clustering(g):.3f}, with weights {nx.average_clustering(g, weight='weight'):.3f}")
print("first by PageRank:", ", ".join(str(names[i]) for i in sorted(rank, key=rank.get, reverse=True)[:5]))
