"""Protein complexes in a network of STRING, and a picture of the matrix sorted by them, which needs matplotlib.

    python3 string_clusters.py LINKS [PICTURE.png]      LINKS: protein.physical.links of a species, from string-db.org
"""

import sys

import numpy as np

from spgraph import cluster, graph

if len(sys.argv) < 2:
    sys.exit(__doc__)
network = graph.read(sys.argv[1], min_score=700)  # links of high confidence
found = cluster.mcl(network, 2.0)
complexes = [names for names in found.clusters() if len(names) >= 5]
print(f"{len(network.nodes)} proteins, {network.matrix.nnz // 2} links, {len(found)} clusters, "
      f"{len(complexes)} of at least 5, modularity {found.modularity:.3f}")
for names in complexes[:5]:
    print(f"{len(names):4}", " ".join(name.split(".")[-1] for name in names[:8]), "...")

if len(sys.argv) > 2:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    row, column = network.matrix.nonzero()
    place = np.empty(len(found.labels), int)
    place[found.members] = np.arange(len(found.members))
    shown = int(found.sizes[:len(complexes)].sum())
    figure, axes = plt.subplots(figsize=(6, 6))
    axes.plot(place[row], place[column], ",", color="C0")
    axes.set(xlim=(0, shown), ylim=(shown, 0), title=f"{len(complexes)} complexes", xlabel="protein", ylabel="protein")
    figure.savefig(sys.argv[2], dpi=150)
