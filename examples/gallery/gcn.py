"""A graph convolution network that tells the fields of Cora's papers from their words and citations; needs torch.

    python3 gcn.py FOLDER               FOLDER: data/cora of the repository

Network, split and settings are those of Kipf and Welling (2017), who report a test accuracy of 0.815.
"""

import os
import sys

import numpy as np
import scipy.io
import torch
from torch.nn.functional import cross_entropy, dropout, normalize

from spgraph.torch import GCNConv, SparseMatrix

if len(sys.argv) < 2:
    sys.exit(__doc__)
folder = sys.argv[1]
torch.manual_seed(1)
graph = scipy.io.mmread(os.path.join(folder, "graph.mtx.gz")).astype(np.float32)  # each edge in both directions
citations = SparseMatrix.from_scipy(graph)
x = torch.from_numpy(scipy.io.mmread(os.path.join(folder, "features.mtx.gz")).toarray()).float()
x = normalize(x, p=1)
label, train, val, test = (torch.from_numpy(np.loadtxt(os.path.join(folder, name + ".txt"), np.int64))
                           for name in ("labels", "train", "val", "test"))

first, second = GCNConv(x.shape[1], 16), GCNConv(16, int(label.max()) + 1)
optimizer = torch.optim.Adam([{"params": first.parameters(), "weight_decay": 5e-4}, {"params": second.parameters()}],
                             lr=0.01)
best, accuracy = 0.0, 0.0
for epoch in range(200):
    optimizer.zero_grad()
    hidden = dropout(torch.relu(first(dropout(x, 0.5), citations)), 0.5)
    cross_entropy(second(hidden, citations)[train], label[train]).backward()
    optimizer.step()
    with torch.no_grad():
        right = second(torch.relu(first(x, citations)), citations).argmax(1) == label
    if right[val].float().mean() > best:
        best, accuracy = float(right[val].float().mean()), float(right[test].float().mean())
print(f"{citations}: validation accuracy {best:.3f}, test accuracy {accuracy:.3f}")
