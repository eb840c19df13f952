"""Cell types by Markov clustering of scanpy's graph of neighbours, beside the types that the cells were drawn from.

    python3 cells.py [CELLS.h5ad]       needs scanpy; without a file 900 cells of 6 types are drawn
"""

import sys
import warnings

import numpy as np
import scanpy as sc
from anndata import AnnData

from spgraph import cluster


def draw(types=6, cells=900, genes=400, seed=5):
    """Counts of genes: each type has 40 genes that it reads more often than the others do."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, types, cells)
    rate = rng.gamma(1.0, 0.5, genes)
    means = np.tile(rate, (types, 1))
    for kind in range(types):
        means[kind, rng.choice(genes, 40, replace=False)] += 3
    data = AnnData(rng.poisson(means[of]).astype(np.float32))
    data.obs["type"] = of.astype(str)
    return data


warnings.simplefilter("ignore")
cells = sc.read_h5ad(sys.argv[1]) if len(sys.argv) > 1 else draw()
sc.pp.normalize_total(cells, target_sum=1e4)
sc.pp.log1p(cells)
sc.pp.pca(cells, n_comps=20)
sc.pp.neighbors(cells, n_neighbors=15)
print(f"{cells.n_obs} cells")
for found in cluster.mcl(cells, [1.2, 1.4, 2.0]):
    cells.obs[f"mcl {found.inflation:g}"] = found.labels.astype(str)
    said = f"inflation {found.inflation:g}: {len(found)} clusters, modularity {found.modularity:.2f}"
    if "type" in cells.obs:
        types = cells.obs["type"].to_numpy()
        alike = sum(np.unique(types[found.labels == label], return_counts=True)[1].max() for label in range(len(found)))
        said += f", {100 * alike / cells.n_obs:.1f} % of the cells are of the commonest type of their cluster"
    print(said)
