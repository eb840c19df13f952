"""Data and models of gnn_torch.py: folders that `gnn convert` writes, layers by hand, of PyTorch Geometric, and by their
formulas."""
import math
import os

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F

UNUSED, TRAIN, VALIDATION, TEST = range(4)

# ---- data


class Data:
    """A folder: graph (CSR, row i holds the nodes whose features i receives), features, labels, split."""

    def __init__(self, folder):
        self.folder = folder
        self.name = os.path.basename(os.path.normpath(folder))
        self.graph = scipy.sparse.load_npz(os.path.join(folder, "graph.npz")).tocsr()
        self.graph.sum_duplicates()
        dense = os.path.join(folder, "features.npy")
        self.features = np.load(dense) if os.path.exists(dense) else \
            scipy.sparse.load_npz(os.path.join(folder, "features.npz")).toarray()
        self.features = np.ascontiguousarray(self.features, dtype=np.float32)
        self.labels = np.load(os.path.join(folder, "labels.npy")).astype(np.int64)
        split = os.path.join(folder, "split.npy")
        self.split = np.load(split).astype(np.int64) if os.path.exists(split) else None
        self.classes = int(self.labels.max()) + 1

    @property
    def nodes(self):
        return self.graph.shape[0]

    def normalise(self):
        sums = np.abs(self.features).sum(1, keepdims=True)
        self.features = self.features / np.where(sums == 0, 1, sums)

    def without_loops(self):
        rows = np.repeat(np.arange(self.nodes, dtype=self.graph.indices.dtype), np.diff(self.graph.indptr))
        kept = rows != self.graph.indices
        if kept.all():
            return self.graph
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=self.nodes))])
        return scipy.sparse.csr_matrix((self.graph.data[kept], self.graph.indices[kept], offsets), self.graph.shape)

    def pattern(self, loops=False):
        """A without values, with its diagonal or without."""
        graph = self.without_loops()
        if loops:
            graph = (graph + scipy.sparse.identity(self.nodes, format="csr")).tocsr()
            graph.sort_indices()
        return scipy.sparse.csr_matrix((np.ones(graph.nnz, np.float32), graph.indices, graph.indptr), graph.shape)

    def mean(self):
        """D^-1·A of the pattern without loops."""
        graph = self.without_loops()
        degrees = np.diff(graph.indptr)
        values = np.repeat(1 / np.maximum(degrees, 1), degrees)
        return scipy.sparse.csr_matrix((values, graph.indices, graph.indptr), graph.shape)

    def normalised(self):
        """D^-1/2·(A + I)·D^-1/2."""
        graph = (self.without_loops() + scipy.sparse.identity(self.nodes, format="csr")).tocsr()
        root = 1 / np.sqrt(np.asarray(graph.sum(1)).ravel())
        scale = scipy.sparse.diags(root)
        made = (scale @ graph @ scale).tocsr()
        made.sort_indices()
        return made


MASK = (1 << 64) - 1


def mix(x):
    x = ((x ^ x >> 30) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ x >> 27) * 0x94d049bb133111eb) & MASK
    return x ^ x >> 31


def random_bits(seed, step, site, index):
    """gnn's random numbers, functions of their arguments."""
    key = (mix((seed + 0x9e3779b97f4a7c15 * (step + 1)) & MASK) + 0xd1b54a32d192ed03 * (site + 1)) & MASK
    return mix((mix(key) + 0x9e3779b97f4a7c15 * (index + 1)) & MASK)


def draw_split(labels, classes, train, validation, seed):
    """The split that gnn train --split TRAIN,VALIDATION --seed SEED draws."""
    split = np.where(labels < 0, UNUSED, TEST)
    for c in range(classes):
        nodes = np.flatnonzero(labels == c).tolist()
        size = len(nodes)
        half = (size + 1) // 2
        few = size < train or size - train < validation
        first = half if few and train > half else train
        second = min(size - first, validation)
        for i in range(size - 1, 0, -1):
            j = random_bits(seed, c, 0x73706c6974, i) % (i + 1)
            nodes[i], nodes[j] = nodes[j], nodes[i]
        split[nodes[:first]] = TRAIN
        split[nodes[first:first + second]] = VALIDATION
    return split


def draw_unlinked(linked, nodes, seed, step, wanted):
    """Pairs that are not among `linked`, as gnn draws them."""
    found = set()
    for round_number in range(16):
        for k in range(len(found), wanted):
            for attempt in range(64):
                bits = random_bits(seed, step, 0x756e6c696e6b0000 + round_number, 64 * k + attempt)
                a, b = (bits >> 32) * nodes >> 32, (bits & 0xffffffff) * nodes >> 32
                pair = (min(a, b), max(a, b))
                if a != b and pair not in linked:
                    found.add(pair)
                    break
        if len(found) == wanted:
            break
    return sorted(found)


def draw_links(graph, validation, test, seed):
    """The graph without hidden links, and of validation and test the links and other pairs, as gnn train --task link
    --split draws them."""
    nodes, coordinates = graph.shape[0], graph.tocoo()
    pairs = sorted({(int(min(i, j)), int(max(i, j))) for i, j in zip(coordinates.row, coordinates.col) if i != j})
    linked, count = set(pairs), len(pairs)
    sizes = int(validation * count + 0.5), int(test * count + 0.5)
    for i in range(sum(sizes)):
        j = i + random_bits(seed, 0, 0x6c696e6b73, i) % (count - i)
        pairs[i], pairs[j] = pairs[j], pairs[i]
    hidden = set(pairs[:sum(sizes)])
    kept = [(min(i, j), max(i, j)) not in hidden for i, j in zip(coordinates.row, coordinates.col)]
    places = coordinates.row[kept], coordinates.col[kept]
    rest = scipy.sparse.csr_matrix((coordinates.data[kept], places), graph.shape)
    parts = {}
    for split, begin, size in ((VALIDATION, 0, sizes[0]), (TEST, sizes[0], sizes[1])):
        parts[split] = pairs[begin:begin + size], draw_unlinked(linked, nodes, seed, split, size)
    return rest, parts


def csr_tensor(matrix, device, dtype=torch.float32, wide=False):
    """Offsets and columns of 32 bits where they fit, which cuSPARSE prefers."""
    index = torch.int32 if matrix.nnz < 2**31 and not wide else torch.int64
    return torch.sparse_csr_tensor(torch.as_tensor(matrix.indptr, dtype=index),
                                   torch.as_tensor(matrix.indices, dtype=index),
                                   torch.as_tensor(matrix.data, dtype=dtype), size=matrix.shape).to(device)


def edge_index(matrix, device):
    """PyG's pairs of source and target."""
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return torch.as_tensor(np.stack([matrix.indices.astype(np.int64), rows])).to(device)


# ---- models

MODELS = ("gcn", "sage", "sage-max", "gin", "gat")
HEADS = 8  # of GAT's first layer; the last has one


class Gather(torch.autograd.Function):
    """A·X with the transpose given: autograd's own transposes A in every backward pass."""

    @staticmethod
    def forward(context, a, transpose, x):
        context.transpose = transpose
        return a @ x

    @staticmethod
    def backward(context, gradient):
        return None, None, context.transpose @ gradient


PAIRS = []  # (A, its transpose), by the numbers that product() takes: torch.compile takes no sparse tensors


def add_product():
    """product(x, number, transposed): the same as an operation that torch.compile leaves as it is."""
    @torch.library.custom_op("bench::product", mutates_args=())
    def product(x: torch.Tensor, number: int, transposed: bool) -> torch.Tensor:
        return PAIRS[number][transposed] @ x

    @product.register_fake
    def _(x, number, transposed):
        return x.new_empty(PAIRS[number][transposed].shape[0], x.shape[1])

    def keep(ctx, inputs, output):
        ctx.number, ctx.transposed = inputs[1:]

    def backward(ctx, gradient):
        return product(gradient.contiguous(), ctx.number, not ctx.transposed), None, None

    product.register_autograd(backward, setup_context=keep)
    return product


def gather_by(a, transpose, compiled):
    """x -> A·x."""
    if not compiled:
        return lambda x: Gather.apply(a, transpose, x)
    product, number, dtype = add_product() if not PAIRS else torch.ops.bench.product, len(PAIRS), a.dtype
    PAIRS.append((a, transpose))
    return lambda x: product(x.to(dtype), number, False)


class HandLayer(torch.nn.Module):
    """GCN: A·X·W + b. SAGE: X·W_self + A·X·W + b. GIN: relu((A·X + X)·W + b)·W_2 + b_2. Aggregates the narrower of X
    and X·W. `kept`: A·X, of GIN A·X + X, is given."""

    def __init__(self, kind, inputs, hidden, outputs, kept):
        super().__init__()
        gin = kind == "gin"
        width = hidden if gin else outputs
        self.weight = torch.nn.Parameter(torch.empty(inputs, width))
        self.own = torch.nn.Parameter(torch.empty(inputs, outputs)) if kind == "sage" else None
        self.bias = torch.nn.Parameter(torch.zeros(width))
        self.second = torch.nn.Linear(hidden, outputs) if gin else None
        self.kept = kept
        torch.nn.init.xavier_uniform_(self.weight)
        if self.own is not None:
            torch.nn.init.xavier_uniform_(self.own)

    def forward(self, x, gather, aggregated):
        narrow = self.weight.shape[1] <= self.weight.shape[0]
        if self.kept:
            y = aggregated @ self.weight
        else:
            p = x @ self.weight if narrow else x
            y = gather(p) if self.second is None else gather(p) + p
            y = y if narrow else y @ self.weight
        if self.second is not None:
            return self.second(F.relu(y + self.bias))
        return y + self.bias if self.own is None else y + torch.addmm(self.bias, x, self.own)


class HandModel(torch.nn.Module):
    def __init__(self, kind, inputs, hidden, classes, kept):
        super().__init__()
        self.first = HandLayer(kind, inputs, hidden, hidden, kept)
        self.second = HandLayer(kind, hidden, hidden, classes, False)

    def forward(self, x, graph):
        gather, aggregated = graph
        h = F.dropout(F.relu(self.first(x, gather, aggregated)), 0.5, self.training)
        return self.second(h, gather, None)


class PygModel(torch.nn.Module):
    """Two layers of PyG with dropout before each of them as asked for. `hidden` columns a head of GAT; `loops`: it adds
    them itself."""

    def __init__(self, kind, inputs, hidden, classes, heads=HEADS, dropout=0.5, input_dropout=0.0, cached=False,
                 normalize=True, attention=0.0, loops=True):
        super().__init__()
        from torch_geometric import nn
        self.kind, self.dropout, self.input_dropout = kind, dropout, input_dropout
        if kind == "gcn":
            self.first = nn.GCNConv(inputs, hidden, cached=cached, normalize=normalize)
            self.second = nn.GCNConv(hidden, classes, cached=cached, normalize=normalize)
        elif kind in ("sage", "sage-max"):
            aggregation = "mean" if kind == "sage" else "max"
            self.first = nn.SAGEConv(inputs, hidden, aggr=aggregation)
            self.second = nn.SAGEConv(hidden, classes, aggr=aggregation)
        elif kind == "gin":
            def inner(before, after):
                return torch.nn.Sequential(torch.nn.Linear(before, hidden), torch.nn.ReLU(),
                                           torch.nn.Linear(hidden, after))
            self.first = nn.GINConv(inner(inputs, hidden))
            self.second = nn.GINConv(inner(hidden, classes))
        elif kind == "gat":
            self.first = nn.GATConv(inputs, hidden, heads=heads, dropout=attention, add_self_loops=loops)
            self.second = nn.GATConv(hidden * heads, classes, heads=1, concat=False, dropout=attention,
                                     add_self_loops=loops)
        else:
            raise ValueError(f"no model {kind}")

    def forward(self, x, graph):
        activation = F.elu if self.kind == "gat" else F.relu
        x = F.dropout(x, self.input_dropout, self.training)
        h = F.dropout(activation(self.first(x, graph)), self.dropout, self.training)
        return self.second(h, graph)


def formula(kind, w, x, data):
    """Logits of the exported model by the formulas of gnn.h, with dense matrices."""
    def matrix(made):
        return torch.as_tensor(made.toarray())

    def layer(number, h):
        p = {name.split(".", 1)[1]: value for name, value in w.items() if name.startswith(f"layer{number}.")}
        if kind == "gcn":
            return matrix(data.normalised()) @ (h @ p["weight"]) + p["bias"]
        if kind == "sage":
            return h @ p["weight_self"] + matrix(data.mean()) @ (h @ p["weight_neighbours"]) + p["bias"]
        if kind == "gin":
            a = matrix(data.without_loops() != 0).to(h.dtype)
            return torch.relu((a @ h + h) @ p["weight_1"] + p["bias_1"]) @ p["weight_2"] + p["bias_2"]
        mask = torch.as_tensor((data.without_loops() + scipy.sparse.identity(data.nodes)).toarray() != 0)
        heads, width = p["attention_left"].shape
        parts = []
        for k in range(heads):
            z = (h @ p["weight"])[:, k * width:(k + 1) * width]
            scores = F.leaky_relu((z @ p["attention_left"][k])[:, None] + (z @ p["attention_right"][k])[None, :], 0.2)
            parts.append(torch.softmax(scores.masked_fill(~mask, -math.inf), 1) @ z)
        joined = torch.cat(parts, 1) if p["bias"].numel() == heads * width else sum(parts) / heads
        return joined + p["bias"]

    hidden = layer(1, x)
    return layer(2, F.elu(hidden) if kind == "gat" else torch.relu(hidden))
