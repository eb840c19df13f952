"""Names that are spelled in several ways: similar rows of three-letter counts, and clusters of them.

    python3 similar_names.py FILE       a name a line
"""

import sys

import numpy as np
import scipy.sparse as sp

import spgraph
from spgraph import cluster

if len(sys.argv) < 2:
    sys.exit(__doc__)
names = [line.strip() for line in open(sys.argv[1]) if line.strip()]
numbers: dict = {}  # of the pieces of three letters
rows, cols = [], []
for row, name in enumerate(names):
    padded = f"  {name.lower()} "
    for i in range(len(padded) - 2):
        rows.append(row)
        cols.append(numbers.setdefault(padded[i:i + 3], len(numbers)))
counts = sp.coo_array((np.ones(len(rows)), (rows, cols)), shape=(len(names), len(numbers))).tocsr()
rarity = np.log(len(names) / np.bincount(counts.indices, minlength=len(numbers))) + 1
features = counts.multiply(rarity).tocsr()

near = spgraph.similarity(features, top_k=10, threshold=0.5)
found = cluster.mcl(near.maximum(near.T), 2.0)
for members in found.clusters():
    if len(members) > 1:
        print(", ".join(names[i] for i in members))
