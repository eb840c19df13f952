#!/usr/bin/env python3
"""Epochs of GraphSAGE by sampled minibatches in PyTorch, on folders that `gnn convert` writes: what `sparse-bench gnn
--minibatches` is compared with. Two layers, Adam, no dropout; minibatches of 1,024 training nodes, 25 neighbours a node
of the last layer and 10 of the first, without replacement. --precision has a case for each of fp32, tf32, and bf16:
AMP, with features in bf16 from the start.

  bulk             as Tripathy et al. (2024) draw, in torch operations on the device: several minibatches together.
                   Columns are drawn by Floyd's algorithm for all rows at once, into arrays of a fixed width, so nothing
                   waits for a size; nodes are made distinct once a layer and bulk, where the host reads sizes. Means
                   are of gathered rows of that width, with a mask; or by embedding_bag, which gathers and adds in one
                   pass
  tree             the same without making nodes distinct: the host never waits, and features are gathered for every
                   occurrence of a node
  NeighborLoader   PyG's, on the CPU, with SAGEConv; where pyg-lib or torch-sparse is there
  DGL              its NeighborSampler and GraphBolt, on the CPU, with its SAGEConv; where DGL is there

Each is timed as it runs, and with a wait between the phases (sampling, gather, step), of which the fastest of three
epochs counts. --host keeps features in pinned host memory. Results are written as JSON (--json FILE) in the shape of
gnn_torch.py's, anew after each case.
"""
import argparse
import itertools
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from gnn_torch import Results, add_arguments, add_precision, attempt, autocast, describe, run_time  # noqa: E402
from peers import dgl_peer  # noqa: E402
from torch_models import TRAIN, Data, edge_index  # noqa: E402

FANOUT = (25, 10)
BATCH = 1024
PHASES = ("sampling", "gather", "step")


class Clock:
    """Seconds of phases, if it is to wait for the device at the end of each."""

    def __init__(self, device, waits):
        self.cuda, self.waits = device.type == "cuda", waits
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.began = time.perf_counter()

    def end(self, phase):
        if not self.waits:
            return
        if self.cuda:
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[phase] += now - self.began
        self.began = now


class Setting:
    """A graph, features, labels and training nodes where they are used."""

    def __init__(self, folder, device, on_host):
        self.data, self.device = Data(folder), device
        self.graph = self.data.without_loops()
        self.offsets = torch.as_tensor(self.graph.indptr.astype(np.int64)).to(device)
        self.columns = torch.as_tensor(self.graph.indices.astype(np.int64)).to(device)
        self.train = torch.as_tensor(np.flatnonzero(self.data.split == TRAIN))
        self.labels = torch.as_tensor(self.data.labels.astype(np.int64)).to(device)
        self.on_host = on_host
        self.take("fp32")

    def take(self, precision):
        """Features for it."""
        self.precision, self.x = precision, None
        x = torch.as_tensor(self.data.features).to(torch.bfloat16 if precision == "bf16" else torch.float32)
        on_host = self.on_host
        self.x = x.pin_memory() if on_host and self.device.type == "cuda" else x if on_host else x.to(self.device)
        torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"

    def rows(self, nodes):
        if self.x.device == nodes.device:
            return self.x[nodes]
        return self.x[nodes.cpu()].pin_memory().to(self.device, non_blocking=True)

    def batches(self):
        return torch.split(self.train[torch.randperm(len(self.train))].to(self.device), BATCH)


# ---- by torch operations


def draw(offsets, columns, nodes, fanout):
    """`fanout` distinct neighbours of each node, all where there are no more: neighbours and a mask, nodes x fanout.
    Floyd's algorithm: of 0 .. d-1, for j from d-fanout on, a random number up to j, or j if it is drawn already."""
    begin = offsets[nodes]
    degree = offsets[nodes + 1] - begin
    places = torch.arange(fanout, device=nodes.device).repeat(len(nodes), 1)
    mask = places < degree[:, None]
    many = degree > fanout
    drawn = torch.full_like(places, -1)
    for t in range(fanout):
        j = degree - fanout + t
        wanted = (torch.rand(len(nodes), device=nodes.device) * (j + 1)).long().minimum(j)
        taken = (drawn[:, :t] == wanted[:, None]).any(1)
        drawn[:, t] = torch.where(taken, j, wanted)
    places = torch.where(many[:, None], drawn, places)
    entry = (begin[:, None] + places).clamp_(0, len(columns) - 1)
    return torch.where(mask, columns[entry], nodes[:, None]), mask


class Sage(torch.nn.Module):
    """Two layers over hops (own, neighbours, mask): places of the rows of a hop in the rows of the next."""

    def __init__(self, inputs, hidden, classes, bag=False):
        super().__init__()
        self.bag = bag
        self.own = torch.nn.ModuleList([torch.nn.Linear(inputs, hidden), torch.nn.Linear(hidden, classes)])
        self.sent = torch.nn.ModuleList([torch.nn.Linear(inputs, hidden, bias=False),
                                         torch.nn.Linear(hidden, classes, bias=False)])

    def mean(self, p, neighbours, mask):
        weight = mask.to(p.dtype) / mask.sum(1, keepdim=True).clamp(min=1)
        if self.bag:
            return F.embedding_bag(neighbours, p, mode="sum", per_sample_weights=weight)
        rows = p.index_select(0, neighbours.flatten()).view(*neighbours.shape, -1)
        return torch.bmm(weight[:, None], rows)[:, 0]

    def forward(self, x, hops):
        for number, (own, neighbours, mask) in enumerate(reversed(hops)):
            narrow = self.sent[number].out_features < x.shape[1]
            p = self.sent[number](x) if narrow else x
            mean = self.mean(p, neighbours, mask)
            x = self.own[number](x[own]) + (mean if narrow else self.sent[number](mean))
            if number + 1 < len(hops):
                x = torch.relu(x)
        return x


def bulk_minibatches(setting, bulk):
    """(batch, nodes, hops) of each minibatch of a pass; `bulk` of them are drawn together."""
    nodes_of_graph, batches = setting.data.nodes, setting.batches()
    for first in range(0, len(batches), bulk):
        together = batches[first:first + bulk]
        number = torch.cat([torch.full_like(b, i) for i, b in enumerate(together)])
        keys, hops = number * nodes_of_graph + torch.cat(together), []
        bounds = [[0]]
        for batch in together:
            bounds[0].append(bounds[0][-1] + len(batch))
        for fanout in FANOUT:
            nodes, number = keys % nodes_of_graph, keys // nodes_of_graph
            neighbours, mask = draw(setting.offsets, setting.columns, nodes, fanout)
            found = torch.cat([keys, (number[:, None] * nodes_of_graph + neighbours).flatten()])
            unique, inverse = torch.unique(found, return_inverse=True)
            starts = torch.arange(len(together) + 1, device=keys.device) * nodes_of_graph
            bounds.append(torch.searchsorted(unique, starts).tolist())
            hops.append((inverse[:len(keys)], inverse[len(keys):].view(len(keys), fanout), mask))
            keys = unique
        for i, batch in enumerate(together):
            mine = []
            for l, (own, neighbours, mask) in enumerate(hops):
                rows, below = slice(bounds[l][i], bounds[l][i + 1]), bounds[l + 1][i]
                mine.append((own[rows] - below, neighbours[rows] - below, mask[rows]))
            yield batch, keys[bounds[-1][i]:bounds[-1][i + 1]] % nodes_of_graph, mine


def tree_minibatches(setting):
    for batch in setting.batches():
        nodes, hops = batch, []
        for fanout in FANOUT:
            neighbours, mask = draw(setting.offsets, setting.columns, nodes, fanout)
            places = torch.arange(len(nodes), device=nodes.device)
            hops.append((places, len(nodes) + torch.arange(len(nodes) * fanout, device=nodes.device)
                         .view(len(nodes), fanout), mask))
            nodes = torch.cat([nodes, neighbours.flatten()])
        yield batch, nodes, hops


# ---- by PyG's loader


class GeometricSage(torch.nn.Module):
    def __init__(self, inputs, hidden, classes):
        from torch_geometric.nn import SAGEConv
        super().__init__()
        self.first, self.second = SAGEConv(inputs, hidden), SAGEConv(hidden, classes)

    def forward(self, x, edges):
        return self.second(torch.relu(self.first(x, edges)), edges)


def loader_minibatches(setting, loader):
    for m in loader:
        yield m.n_id[:m.batch_size].to(setting.device), m.n_id.to(setting.device), m.edge_index.to(setting.device)


def make_loader(setting, workers):
    from torch_geometric.data import Data as PygData
    from torch_geometric.loader import NeighborLoader
    edges = edge_index(setting.graph, torch.device("cpu"))
    return NeighborLoader(PygData(edge_index=edges, num_nodes=setting.data.nodes), num_neighbors=list(FANOUT),
                          batch_size=BATCH, input_nodes=setting.train, shuffle=True, is_sorted=True,
                          num_workers=workers, persistent_workers=workers > 0)


# ---- by DGL's loaders


def dgl_minibatches(setting, loader, parts):
    for m in loader:
        batch, nodes, blocks = parts(m)
        blocks = [block.to(setting.device) for block in blocks]
        yield batch.to(setting.device), nodes.to(setting.device), (blocks, None)


# ---- epochs


def epoch_of(setting, model, minibatches):
    """epoch(clock): trains with the minibatches of a pass; its mean loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=setting.device.type == "cuda")

    def epoch(clock):
        losses = []
        for batch, nodes, hops in minibatches():
            clock.end("sampling")
            x = setting.rows(nodes)
            clock.end("gather")
            optimizer.zero_grad(set_to_none=True)
            with autocast(setting.precision, setting.device):
                logits = model(x, hops)
            loss = F.cross_entropy(logits[:len(batch)].float(), setting.labels[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            clock.end("step")
        return torch.stack(losses).mean()
    return epoch


def measure(setting, model, minibatches, options):
    epoch = epoch_of(setting, model.to(setting.device), minibatches)
    losses = [epoch(Clock(setting.device, False)).item()]
    timed = run_time(lambda: epoch(Clock(setting.device, False)), options.repeat, options.limit, setting.device, 1)
    clocks = []
    for _ in range(3):
        clocks.append(Clock(setting.device, True))
        losses.append(epoch(clocks[-1]).item())
    if not losses[-1] < losses[0]:
        raise RuntimeError(f"the loss went from {losses[0]:.4f} to {losses[-1]:.4f}")
    phases = min((clock.seconds for clock in clocks), key=lambda seconds: sum(seconds.values()))
    return {"phases": phases, "losses": losses, **timed}


def ways(setting, hidden, options):
    shape = (setting.x.shape[1], hidden, setting.data.classes)

    def by_bulk(bag):
        return measure(setting, Sage(*shape, bag), lambda: bulk_minibatches(setting, options.bulk), options)

    found = [("bulk", lambda: by_bulk(False)), ("bulk, embedding_bag", lambda: by_bulk(True)),
             ("tree", lambda: measure(setting, Sage(*shape), lambda: tree_minibatches(setting), options))]

    def by_loader(workers):
        loader = make_loader(setting, workers)
        return measure(setting, GeometricSage(*shape), lambda: loader_minibatches(setting, loader), options)

    found += [(f"NeighborLoader, {workers} workers", lambda workers=workers: by_loader(workers))
              for workers in (0, min(16, os.cpu_count() or 1))]

    def by_dgl(make, workers):
        loader, parts = make(setting.graph, setting.train, FANOUT, BATCH, workers)
        return measure(setting, dgl_peer.DglModel("sage", *shape, dropout=0),
                       lambda: dgl_minibatches(setting, loader, parts), options)

    found += [(f"{name}, {workers} workers", lambda make=make, workers=workers: by_dgl(make, workers))
              for name, make in dgl_peer.LOADERS.items() for workers in (0, min(16, os.cpu_count() or 1))]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, "FOLDER", ("sage",))
    add_precision(parser)
    parser.add_argument("--bulk", type=int, default=64, help="minibatches drawn together [64]")
    parser.add_argument("--host", action="store_true", help="features stay in host memory")
    options = parser.parse_args()
    options.command = "minibatches"
    if options.threads:
        torch.set_num_threads(options.threads)
    results = Results(options)
    for folder in options.inputs:
        setting, cases = Setting(folder, torch.device(options.device), options.host), []
        for hidden, precision in itertools.product(options.hidden, options.precision):
            torch.manual_seed(1)
            setting.take(precision)
            case = {"model": "sage", "hidden": hidden, "precision": precision, "fanout": list(FANOUT), "batch": BATCH,
                    "host": options.host, "minibatches": math.ceil(len(setting.train) / BATCH), "variants": []}
            cases.append(case)
            for name, way in ways(setting, hidden, options):
                made = {"name": name, **attempt(way)}
                case["variants"].append(made)
                said = made["why"] if "failed" in made else f"{1e3 * made['median_seconds']:.3f} ms an epoch; " + \
                    ", ".join(f"{phase} {1e3 * made['phases'][phase]:.3f}" for phase in PHASES)
                print(f"  {setting.data.name} sage {hidden} {precision} {name}: {said}", flush=True)
                results.keep({**describe(setting.data), "minibatches": cases})
    return 0


if __name__ == "__main__":
    sys.exit(main())
