"""A graph convolution network that finds communities from few known nodes; needs torch.

    python3 gcn.py
"""

import torch

from spgraph.torch import GCNConv, SparseMatrix

torch.manual_seed(1)
groups, size = 4, 100
label = torch.arange(groups * size) // size
inside = (label[:, None] == label[None, :]).float()
edges = torch.nonzero(torch.rand_like(inside) < 0.05 * inside + 0.004).t()
edges = torch.cat([edges, edges.flip(0)], 1)
x = torch.randn(groups * size, 32) + torch.nn.functional.one_hot(label, 32)  # weak features
known = torch.cat([torch.arange(5) + g * size for g in range(groups)])

first, second = GCNConv(32, 16), GCNConv(16, groups)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.02, weight_decay=5e-3)
for epoch in range(100):
    optimizer.zero_grad()
    hidden = torch.nn.functional.dropout(torch.relu(first(x, edges)), 0.5)
    loss = torch.nn.functional.cross_entropy(second(hidden, edges)[known], label[known])
    loss.backward()
    optimizer.step()
with torch.no_grad():
    guess = second(torch.relu(first(x, edges)), edges).argmax(1)
print(f"{SparseMatrix.from_edge_index(edges)}: accuracy {(guess == label).float().mean():.2f}")
