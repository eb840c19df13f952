"""A road network made small: roads without junctions become one edge, then districts become nodes.

    python3 road_network.py [WIDTH]         a made-up town of WIDTH x WIDTH crossings
"""

import sys

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from spgraph import graph

width = int(sys.argv[1]) if len(sys.argv) > 1 else 200
rng = np.random.default_rng(1)
place = np.arange(width * width).reshape(width, width)
ends = np.concatenate([np.stack([place[:, :-1], place[:, 1:]]).reshape(2, -1),
                       np.stack([place[:-1], place[1:]]).reshape(2, -1)], 1)
ends = ends[:, rng.random(ends.shape[1]) < 0.65]  # not every crossing has four roads
roads = sp.coo_array((rng.uniform(50, 150, ends.shape[1]), tuple(ends)), shape=(place.size,) * 2)
roads = (roads + roads.T).tocsr()  # lengths in metres

degree = np.diff(roads.indptr)
between = roads.tocoo()
inner = (degree[between.row] == 2) & (degree[between.col] == 2)  # edges whose ends are no junctions
chains = sp.coo_array((between.data[inner], (between.row[inner], between.col[inner])), shape=roads.shape)
count, label = connected_components(chains, directed=False)
small = graph.contract(roads, label, combine="min", loops="drop")
print(f"{roads.shape[0]} crossings, {roads.nnz // 2} roads; without bends {small.shape[0]} and {small.nnz // 2}")

side = 20  # crossings
district = (np.arange(place.size) // width // side) * -(-width // side) + np.arange(place.size) % width // side
links = graph.contract(roads, district, combine="count", loops="drop")  # roads between two districts
lengths = graph.contract(roads, district, combine="sum", loops="only").diagonal() / 2e3
print(f"{links.shape[0]} districts with {lengths.mean():.1f} km of roads each, "
      f"{links.sum() / links.nnz:.1f} roads between neighbours")
