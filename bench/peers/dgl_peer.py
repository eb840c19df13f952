"""DGL's layers, graphs and samplers for gnn_torch.py and gnn_minibatches.py.

DGL is imported where it is used, so without it only its own ways fail. PyPI's newest wheel, 2.1.0, is for the CPU. It
loads with PyTorch 2.0.0 to 2.2.1, and imports pandas, pydantic and PyYAML without requiring them.
"""
import numpy as np
import torch
import torch.nn.functional as F

HEADS = 8  # of GAT's first layer, as in torch_models.py
WEIGHTED = {"gcn": (False, True), "sage": (False,), "gin": (False,), "gat": (False,)}  # whether edges have values


def graph_of(matrix, device, dtype=torch.float32, weighted=False):
    """(graph of each layer, weights of its edges or None). Row i of the matrix holds the nodes whose features i
    receives. Indices have 32 bits where they fit, as for cuSPARSE, and both directions are made at once. Edges are
    numbered, because DGL's gradients of attention on the CPU fail otherwise."""
    import dgl
    dgl.utils.set_num_threads(torch.get_num_threads())  # it has an OpenMP of its own
    index = torch.int32 if matrix.nnz < 2**31 else torch.int64
    offsets, columns = (torch.as_tensor(a, dtype=index) for a in (matrix.indptr, matrix.indices))
    edges = torch.arange(matrix.nnz, dtype=index)
    graph = dgl.graph(("csc", (offsets, columns, edges)), num_nodes=matrix.shape[0], idtype=index).to(device)
    graph.create_formats_()
    return (graph, graph), torch.as_tensor(matrix.data, dtype=dtype).to(device) if weighted else None


def graph_for(data, kind, device, dtype, weighted=False):
    """The graph and the weights for a kind of model. Without `weighted` GCN's GraphConv scales by the degrees, which is
    the same if all entries are 1 and each node has as many edges out as in."""
    if weighted:
        return graph_of(data.normalised(), device, dtype, True)
    matrix = data.pattern(loops=kind in ("gcn", "gat"))
    if kind == "gcn" and not ((data.graph.data == 1).all() and np.array_equal(
            np.bincount(matrix.indices, minlength=data.nodes), np.diff(matrix.indptr))):
        raise ValueError("GraphConv scales by degrees alone, and this graph is weighted or directed")
    return graph_of(matrix, device, dtype)


class DglModel(torch.nn.Module):
    """Two layers with dropout between them, over what graph_of() gives or over the blocks of a minibatch. If `weighted`,
    GCN's edges have the normalised values; else GraphConv scales rows of X and of the result."""

    def __init__(self, kind, inputs, hidden, classes, heads=HEADS, dropout=0.5, weighted=False):
        super().__init__()
        from dgl.nn import GATConv, GINConv, GraphConv, SAGEConv
        self.kind, self.dropout = kind, dropout

        def inner(before, after):
            return torch.nn.Sequential(torch.nn.Linear(before, hidden), torch.nn.ReLU(),
                                       torch.nn.Linear(hidden, after))

        if kind == "gcn":
            norm = "none" if weighted else "both"
            self.first, self.second = GraphConv(inputs, hidden, norm=norm), GraphConv(hidden, classes, norm=norm)
        elif kind == "sage":
            self.first, self.second = SAGEConv(inputs, hidden, "mean"), SAGEConv(hidden, classes, "mean")
        elif kind == "gin":
            self.first, self.second = GINConv(inner(inputs, hidden)), GINConv(inner(hidden, classes))
        elif kind == "gat":
            self.first, self.second = GATConv(inputs, hidden, heads), GATConv(hidden * heads, classes, 1)
        else:
            raise ValueError(f"DGL has no layer for {kind}")

    def forward(self, x, graph):
        (first, second), weights = graph
        activation = F.elu if self.kind == "gat" else F.relu
        h = activation(self.first(first, x, edge_weight=weights)).flatten(1)
        logits = self.second(second, F.dropout(h, self.dropout, self.training), edge_weight=weights)
        return logits.mean(1) if self.kind == "gat" else logits

    def take(self, weights):
        """The parameters of a model that sparse-bench gnn has exported."""
        names = {"gcn": {"weight": "weight", "bias": "bias"},
                 "sage": {"weight_self": "fc_self.weight", "bias": "fc_self.bias",
                          "weight_neighbours": "fc_neigh.weight"},
                 "gin": {"weight_1": "apply_func.0.weight", "bias_1": "apply_func.0.bias",
                         "weight_2": "apply_func.2.weight", "bias_2": "apply_func.2.bias"},
                 "gat": {"weight": "fc.weight", "attention_left": "attn_r", "attention_right": "attn_l",
                         "bias": "bias"}}[self.kind]
        with torch.no_grad():
            for number, layer in ((1, self.first), (2, self.second)):
                own = dict(layer.named_parameters())
                for ours, theirs in names.items():
                    value = weights[f"layer{number}.{ours}"]
                    linear = value.dim() == 2 and ("fc" in theirs or "apply_func" in theirs)
                    own[theirs].copy_((value.T if linear else value).reshape(own[theirs].shape))
        return self


def farthest_logits(kind, weights, x, data, logits):
    """How far DGL's logits with the parameters of an exported model are from `logits`, at most."""
    heads, hidden = weights["layer1.attention_left"].shape if kind == "gat" else \
        (1, weights["layer1.bias_1" if kind == "gin" else "layer1.bias"].numel())
    apart = []
    for weighted in WEIGHTED[kind]:
        model = DglModel(kind, x.shape[1], hidden, data.classes, heads, weighted=weighted).to(x.dtype)
        with torch.no_grad():
            own = model.take(weights).eval()(x, graph_for(data, kind, x.device, x.dtype, weighted))
            apart.append(float((own - logits).abs().max()))
    return max(apart)


def neighbor_loader(matrix, train, fanouts, batch, workers):
    """DGL's NeighborSampler and DataLoader, on the CPU: (nodes of the batch, nodes that are read, blocks)."""
    import dgl
    (graph, _), _ = graph_of(matrix, torch.device("cpu"))
    sampler = dgl.dataloading.NeighborSampler(list(reversed(fanouts)))  # of the first layer first
    loader = dgl.dataloading.DataLoader(graph, train.to(graph.idtype), sampler, batch_size=batch, shuffle=True,
                                        num_workers=workers, persistent_workers=workers > 0)
    return loader, lambda m: (m[1].long(), m[0].long(), m[2])


def graphbolt_loader(matrix, train, fanouts, batch, workers):
    """The same by GraphBolt."""
    from dgl import graphbolt
    graph = graphbolt.fused_csc_sampling_graph(torch.as_tensor(matrix.indptr.astype(np.int64)),
                                               torch.as_tensor(matrix.indices.astype(np.int64)))
    items = graphbolt.ItemSampler(graphbolt.ItemSet(train, names="seed_nodes"), batch_size=batch, shuffle=True)
    loader = graphbolt.DataLoader(items.sample_neighbor(graph, list(reversed(fanouts))), num_workers=workers)
    return loader, lambda m: (m.seed_nodes, m.input_nodes, m.blocks)


LOADERS = {"DGL NeighborSampler": neighbor_loader, "DGL GraphBolt": graphbolt_loader}
