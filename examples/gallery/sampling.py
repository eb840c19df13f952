"""GraphSAGE on the citations of Cora, trained on sampled neighbourhoods; needs torch.

    python3 sampling.py FOLDER          FOLDER: data/cora of the repository
"""

import os
import sys

import numpy as np
import scipy.io
import torch
from torch.nn.functional import cross_entropy, dropout, normalize

from spgraph.torch import NeighborSampler, SAGEConv

if len(sys.argv) < 2:
    sys.exit(__doc__)
folder = sys.argv[1]
torch.manual_seed(1)
graph = scipy.io.mmread(os.path.join(folder, "graph.mtx.gz")).tocoo()  # each edge in both directions
edges = torch.from_numpy(np.stack([graph.col, graph.row]).astype(np.int64))
x = torch.from_numpy(scipy.io.mmread(os.path.join(folder, "features.mtx.gz")).toarray()).float()
x = normalize(x, p=1)
label, train, test = (torch.from_numpy(np.loadtxt(os.path.join(folder, name + ".txt"), np.int64))
                      for name in ("labels", "train", "test"))

first, second = SAGEConv(x.shape[1], 64), SAGEConv(64, int(label.max()) + 1)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01, weight_decay=5e-3)
sampler = NeighborSampler(edges, [10, 5], input_nodes=train, batch_size=32, shuffle=True, num_nodes=len(x))
for epoch in range(20):
    for batch in sampler:
        optimizer.zero_grad()
        hidden = dropout(torch.relu(first(dropout(x[batch.n_id], 0.5), batch.edge_index)), 0.5)
        out = second(hidden, batch.edge_index)[:batch.batch_size]
        cross_entropy(out, label[batch.n_id[:batch.batch_size]]).backward()
        optimizer.step()
with torch.no_grad():  # the whole graph
    guess = second(torch.relu(first(x, edges)), edges).argmax(1)
print(f"{len(sampler)} minibatches an epoch, test accuracy {(guess == label)[test].float().mean():.3f}")
