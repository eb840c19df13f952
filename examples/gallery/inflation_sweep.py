"""How the inflation of Markov clustering changes the clusters of a network.

    python3 inflation_sweep.py GRAPH        GRAPH: label pairs, STRING, Matrix Market ...
"""

import sys

from spgraph import cluster

if len(sys.argv) < 2:
    sys.exit(__doc__)
path = sys.argv[1]
inflations = [1.4, 2.0, 4.0, 6.0]
found = cluster.mcl(path, inflations)
print("inflation  clusters  largest  modularity  efficiency  nodes moved to the next")
for i, c in enumerate(found):
    moved = cluster.compare(c, found[i + 1]).split_join if i + 1 < len(found) else 0
    print(f"{inflations[i]:9.1f}  {len(c):8}  {c.sizes[0]:7}  {c.modularity:10.3f}  {c.efficiency:10.3f}  {moved:6}")
