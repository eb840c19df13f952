#!/usr/bin/env python3
"""PyTorch, PyTorch Geometric and DGL on folders that `gnn convert` writes: what sparse-bench gnn and gnn train are
compared with. fp32, without TF32, unless said (--precision). Ways whose library is not there fail by their name.

  gnn_torch.py speed FOLDER...     forward and epoch of two layers on the whole graph: with PyG's scatter, with
                                   torch.sparse CSR (cuSPARSE) inside PyG, with CSR by hand (GCN, SAGE, GIN), where
                                   the transpose is given and A·(X·W) is taken in the cheaper order, and with DGL;
                                   each also as a CUDA graph, and with --compile compiled. GAT's 8 heads share the
                                   columns of --hidden.
                                   --precision has a case for each of fp32, tf32, and bf16: AMP, with features and the
                                   matrix in bf16 from the start
  gnn_torch.py sample FOLDER...    neighbour sampling on the GPU by vectorised PyTorch, NeighborLoader where pyg-lib or
                                   torch-sparse is there, and DGL's NeighborSampler and GraphBolt, on the CPU
  gnn_torch.py accuracy REPORT...  test accuracy at the lowest validation loss with the data, splits, seeds and
                                   hyper-parameters of these reports of gnn train
  gnn_torch.py links REPORT...     the same of links: AUC and average precision at the highest validation AUC, with
                                   PyG's negative_sampling
  gnn_torch.py check FOLDER DIR    gradients that `sparse-bench gnn FOLDER --export DIR` wrote, against autograd in
                                   f64, and logits of DGL's layers with the same parameters

Results are written as JSON (--json FILE) in the shape of sparse-bench's, anew after each case.
"""
import argparse
import contextlib
import datetime
import functools
import glob
import importlib
import itertools
import json
import math
import os
import signal
import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

from tables.common import processor
from peers import dgl_peer
from torch_models import (
    Data, HEADS, HandModel, MODELS, PygModel, TEST, TRAIN, VALIDATION, csr_tensor, draw_links, draw_split, edge_index,
    formula, gather_by)

# ---- times


def machine():
    cuda = torch.cuda.is_available()

    def version(name):
        try:
            return importlib.import_module(name).__version__
        except Exception:  # compiled for another PyTorch, it may fail in any way
            return None
    return {"cpu": processor(), "cores": os.cpu_count(), "gpu": torch.cuda.get_device_name() if cuda else None,
            "driver": os.environ.get("BENCH_DRIVER"), "cuda": torch.version.cuda, "torch": torch.__version__,
            **{name: version(name) for name in ("torch_geometric", "pyg_lib", "torch_sparse", "dgl")}}


def run_time(step, repeat, limit, device, least=3):
    """Seconds a step: at least `least` samples of as many steps as take 20 ms, after three to warm up."""
    cuda = device.type == "cuda"

    def span(count):
        if not cuda:
            began = time.perf_counter()
            for _ in range(count):
                step()
            return time.perf_counter() - began
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    span(3)
    once = span(1)
    count = max(1, min(200, math.ceil(0.02 / max(once, 1e-7))))
    samples, began = [], time.perf_counter()
    while len(samples) < repeat and (len(samples) < least or time.perf_counter() - began < limit):
        samples.append(span(count) / count)
    return {"median_seconds": statistics.median(samples), "samples": samples}


def as_graph(step):
    """The step as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


@contextlib.contextmanager
def at_most(seconds):
    """TimeoutError where the body takes longer; a call of the device ends first."""
    def late(*_):
        raise TimeoutError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def failure(error):
    said = str(error).strip()
    memory = isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in said
    word = "memory" if memory else "time" if "not done after" in said else "failed"
    return {"failed": word, "why": (said or type(error).__name__).split("\n")[0][:200]}


def attempt(action):
    try:
        return action()
    except Exception as error:  # whatever it is, it becomes a word in the table
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return failure(error)


# ---- speed


def autocast(precision, device):
    """AMP for bf16."""
    return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False) if precision == "bf16" else \
        contextlib.nullcontext()


def steps_of(model, x, graph, train_nodes, train_labels, capturable, compiled, precision):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=x.is_cuda, capturable=capturable)
    if compiled:
        torch.compiler.reset()  # it compiles a function for eight shapes, then it leaves it as it is
    call = torch.compile(model) if compiled else model

    def epoch():
        model.train()
        optimizer.zero_grad(set_to_none=True)
        with autocast(precision, x.device):
            logits = call(x, graph)
        F.cross_entropy(logits[train_nodes].float(), train_labels).backward()
        optimizer.step()

    def forward():
        model.eval()
        with torch.no_grad(), autocast(precision, x.device):
            call(x, graph)

    return forward, epoch


def measure_way(make, compiled, options, device):
    """Times of forward and epoch of the model that make(capturable, compiled) gives: plain, and on CUDA as a CUDA
    graph. A compiled step is compiled once for both."""
    cuda = device.type == "cuda"
    times = [{} for _ in range(1 + cuda)]

    def compile_step(which):
        step = make(cuda, True)[which]
        with at_most(options.compile):
            step()
            if cuda:
                torch.cuda.synchronize()
        return step

    def measure(step, graphed):
        return run_time(as_graph(step) if graphed else step, options.repeat, options.limit, device)

    for which, key in enumerate(("forward", "epoch")):
        ready = attempt(lambda: compile_step(which)) if compiled else None
        for graphed in range(1 + cuda):
            times[graphed][key] = ready if isinstance(ready, dict) else \
                attempt(lambda: measure(ready or make(bool(graphed), False)[which], graphed))
    return times


def ways_of(data, kind, hidden, kept, precision, device, cache):
    """(name, by hand, make) for each way to run a model."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32

    def once(name, make):
        if (name, dtype) not in cache:
            cache[name, dtype] = make()
        return cache[name, dtype]

    x = once("x", lambda: torch.as_tensor(data.features).to(device, dtype))
    chosen = np.flatnonzero(data.split == TRAIN)
    nodes, labels = torch.as_tensor(chosen).to(device), torch.as_tensor(data.labels[chosen]).to(device)
    inputs, classes, gat = x.shape[1], data.classes, kind == "gat"
    width = hidden // HEADS if gat else hidden

    def hand(capturable, compiled):
        matrix = once(kind, {"gcn": data.normalised, "sage": data.mean, "gin": data.pattern}[kind])
        a = once(kind + " csr", lambda: csr_tensor(matrix, device, dtype))
        transpose = a if kind == "gcn" else \
            once(kind + " transpose", lambda: csr_tensor(matrix.T.tocsr(), device, dtype))
        aggregated = once(kind + " kept", lambda: a @ x + x if kind == "gin" else a @ x) if kept else None
        model = HandModel(kind, inputs, hidden, classes, kept).to(device)
        graph = gather_by(a, transpose, compiled), aggregated
        return steps_of(model, x, graph, nodes, labels, capturable, compiled, precision)

    def pyg_csr(capturable, compiled):
        a = once(kind + " pyg", lambda: csr_tensor(data.normalised() if kind == "gcn" else data.pattern(loops=gat),
                                                   device, dtype, wide=kind + " wide" in cache))
        model = PygModel(kind, inputs, width, classes, normalize=False, loops=False).to(device)
        return steps_of(model, x, a, nodes, labels, capturable, compiled, precision)

    def pyg_scatter(capturable, compiled):
        edges = once("loops" if gat else "edges", lambda: edge_index(data.pattern(loops=gat), device))
        model = PygModel(kind, inputs, width, classes, cached=kind == "gcn", loops=False).to(device)
        return steps_of(model, x, edges, nodes, labels, capturable, compiled, precision)

    def dgl(capturable, compiled, weighted):
        graph = once(f"{kind} dgl {weighted}", lambda: dgl_peer.graph_for(data, kind, device, dtype, weighted))
        model = dgl_peer.DglModel(kind, inputs, width, classes, weighted=weighted).to(device)
        return steps_of(model, x, graph, nodes, labels, capturable, compiled, precision)

    by_hand = [("CSR by hand", True, hand)] if kind in ("gcn", "sage", "gin") else []
    by_dgl = [("DGL" + ", weights of edges" * weighted, False, functools.partial(dgl, weighted=weighted))
              for weighted in dgl_peer.WEIGHTED.get(kind, ())]
    return by_hand if kept else [("PyG CSR", False, pyg_csr), *by_hand, ("PyG scatter", False, pyg_scatter), *by_dgl]


def best_of(variants, key, library=""):
    ran = [v for v in variants if "median_seconds" in v[key] and v["name"].startswith(library)]
    if not ran:
        return {"failed": "failed", "why": variants[0][key].get("why", "") if variants else ""}
    best = min(ran, key=lambda v: v[key]["median_seconds"])
    return {"name": best["name"], "median_seconds": best[key]["median_seconds"]}


def may_compile(name, kind, data, options):
    """None, or why not. PyG forms a message for each edge in scatter, and in CSR for attention and maxima."""
    messages = name == "PyG scatter" or (name == "PyG CSR" and kind in ("gat", "sage-max"))
    if not messages or data.graph.nnz <= options.compile_edges:
        return None
    return {"failed": "left out", "why": f"compiled up to {options.compile_edges} edges only (--compile-edges)"}


def say(title, times):
    said = [f"{1e3 * times[k]['median_seconds']:.3f}" if "median_seconds" in times[k] else times[k]["failed"]
            for k in ("forward", "epoch")]
    print(f"  {title}: forward {said[0]}, epoch {said[1]} ms", flush=True)


def speed_case(data, kind, hidden, kept, precision, options, device, cache):
    variants = []
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    ways = ways_of(data, kind, hidden, kept, precision, device, cache)
    for (name, by_hand, make), compiled in itertools.product(ways, (False, True) if options.compile else (False,)):
        word = may_compile(name, kind, data, options) if compiled else None
        found = [{"forward": word, "epoch": word}] if word else measure_way(make, compiled, options, device)
        if name == "PyG CSR" and found[0]["epoch"].get("failed") == "failed" and kind + " wide" not in cache:
            cache[kind + " wide"] = True  # autograd may want 64-bit indices
            for key in [key for key in cache if key[0] == kind + " pyg"]:
                del cache[key]
            found = measure_way(make, compiled, options, device)
        for graphed, times in enumerate(found):
            title = name + (", compiled" if compiled else "") + (", CUDA graph" if graphed else "")
            variants.append({"name": title, "by_hand": by_hand, **times})
            say(f"{kind} {hidden}{' kept' if kept else ''} {precision}  {title}", times)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    torch.backends.cuda.matmul.allow_tf32 = False
    return {"model": kind, "hidden": hidden, "heads": HEADS if kind == "gat" else 1, "maxk": 0, "kept": kept,
            "precision": precision,
            "forward": best_of(variants, "forward"), "epoch": best_of(variants, "epoch"),
            "forward_pyg": best_of(variants, "forward", "PyG"), "epoch_pyg": best_of(variants, "epoch", "PyG"),
            "variants": variants}


def speed(options, device, keep):
    for folder in options.inputs:
        data, cache, training = Data(folder), {}, []
        print(f"{data.name}: {data.nodes} nodes, {data.graph.nnz} edges", flush=True)
        for kind, hidden in itertools.product(options.model, options.hidden):
            keeps = (False, True) if options.keep and kind not in ("gat", "sage-max") else (False,)
            for kept, precision in itertools.product(keeps, options.precision):
                training.append(speed_case(data, kind, hidden, kept, precision, options, device, cache))
                keep({**describe(data), "training": training})


def describe(data):
    return {"matrix": data.name, "generated": None, "file": data.folder, "nodes": data.nodes,
            "edges": int(data.graph.nnz), "features": int(data.features.shape[1]), "classes": data.classes,
            "training_nodes": int((data.split == TRAIN).sum()) if data.split is not None else None}


# ---- sampling


def sample_hop(offsets, columns, nodes, fanout, replace):
    """Edges (target's place among nodes, neighbour) of `fanout` neighbours of each node."""
    begin = offsets[nodes]
    degree = offsets[nodes + 1] - begin
    if replace:
        places = (torch.rand(len(nodes), fanout, device=nodes.device) * degree[:, None]).long()
        wanted = (degree > 0)[:, None].expand_as(places)
        target = torch.arange(len(nodes), device=nodes.device)[:, None].expand_as(places)[wanted]
        return target, columns[(begin[:, None] + places)[wanted]]
    # Every neighbour gets a random key; those with the smallest keys of each node stay.
    target = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), degree)
    first = torch.cumsum(degree, 0) - degree
    within = torch.arange(len(target), device=nodes.device) - first[target]
    entry = begin[target] + within
    order = torch.argsort(target.double() + torch.rand(len(target), device=nodes.device, dtype=torch.float64))
    kept = order[within < fanout]
    return target[kept], columns[entry[kept]]


def sample_batch(offsets, columns, batch, fanouts, replace):
    nodes, edges = batch, 0
    for fanout in fanouts:
        target, neighbour = sample_hop(offsets, columns, nodes, fanout, replace)
        known = len(nodes)
        unique, inverse = torch.unique(torch.cat([nodes, neighbour]), return_inverse=True)
        _local_edges = (inverse[:known][target], inverse[known:])
        nodes = unique
        edges += len(target)
    return edges


def sample_passes(edges_of_a_pass, minibatches, options, device):
    """Edges a second over passes, of which `edges_of_a_pass()` yields the edges of each minibatch; after one to warm
    up, which a quarter of the limit may end. A pass that the limit ends counts as far as it came."""
    def one_pass(limit):
        start, edges, done = time.perf_counter(), 0, 0
        for found in edges_of_a_pass():
            edges += found
            done += 1
            if time.perf_counter() - start > limit:
                break
        if device.type == "cuda":
            torch.cuda.synchronize()
        whole = minibatches / done
        return (time.perf_counter() - start) * whole, int(edges * whole)

    one_pass(options.limit / 4)
    samples, edges, began = [], 0, time.perf_counter()
    while len(samples) < options.repeat and (not samples or time.perf_counter() - began < options.limit):
        seconds, edges = one_pass(options.limit)
        samples.append(seconds)
    middle = statistics.median(samples)
    return {"edges": edges, "edges_a_second": edges / middle, "median_seconds": middle, "samples": samples}


def vectorised(graph, train, fanouts, replace, options, device):
    """Passes over the training nodes in one order."""
    offsets = torch.as_tensor(graph.indptr.astype(np.int64)).to(device)
    columns = torch.as_tensor(graph.indices.astype(np.int64)).to(device)
    batches = torch.split(train[torch.randperm(len(train))].to(device), options.batch)
    return sample_passes(lambda: (sample_batch(offsets, columns, batch, fanouts, replace) for batch in batches),
                         len(batches), options, device)


def neighbor_loader(edges, train, fanouts, workers, options):
    """PyG's, on the CPU; edges by their targets, so that it need not sort them."""
    from torch_geometric.data import Data as PygData
    from torch_geometric.loader import NeighborLoader
    loader = NeighborLoader(PygData(edge_index=edges[0], num_nodes=edges[1]), num_neighbors=list(fanouts),
                            batch_size=options.batch, input_nodes=train, shuffle=True, is_sorted=True,
                            num_workers=workers, persistent_workers=workers > 0)
    return sample_passes(lambda: (batch.edge_index.shape[1] for batch in loader), len(loader), options,
                         torch.device("cpu"))


def dgl_loader(make, graph, train, fanouts, workers, options):
    loader, parts = make(graph, train, fanouts, options.batch, workers)
    return sample_passes(lambda: (sum(block.num_edges() for block in parts(m)[2]) for m in loader),
                         math.ceil(len(train) / options.batch), options, torch.device("cpu"))


def sample(options, device, keep):
    for folder in options.inputs:
        data, sampling = Data(folder), []
        graph = data.without_loops()
        edges = edge_index(graph, torch.device("cpu")), data.nodes
        train = torch.as_tensor(np.flatnonzero(data.split == TRAIN))
        for fanouts in ((25, 10), (15, 10, 5)):
            ways = [(f"vectorised, {'with' if replace else 'without'} replacement",
                     lambda replace=replace: vectorised(graph, train, fanouts, replace, options, device))
                    for replace in (False, True)]
            ways += [(f"NeighborLoader, {workers} workers",
                      lambda workers=workers: neighbor_loader(edges, train, fanouts, workers, options))
                     for workers in (0, min(16, os.cpu_count() or 1))]
            ways += [(f"{name}, {workers} workers",
                      lambda make=make, workers=workers: dgl_loader(make, graph, train, fanouts, workers, options))
                     for name, make in dgl_peer.LOADERS.items() for workers in (0, min(16, os.cpu_count() or 1))]
            found = []
            for name, way in ways:
                found.append({"name": name, **attempt(way)})
                rate = f"{found[-1]['edges_a_second'] / 1e6:.1f} M edges a second" if "edges" in found[-1] else \
                    found[-1]["why"]
                print(f"  {data.name} {fanouts} {name}: {rate}", flush=True)
                case = {"fanout": list(fanouts), "batch": options.batch,
                        "minibatches": math.ceil(len(train) / options.batch), "variants": found}
                keep({**describe(data), "sampling": sampling + [case]})
            sampling.append(case)


# ---- accuracy


def model_like(o, inputs, classes):
    """The model of a report's options."""
    return PygModel(o["model"], inputs, o["hidden"], classes, heads=o.get("heads", 1), dropout=o["dropout"],
                    input_dropout=o["input_dropout"], cached=o["model"] == "gcn", attention=o["attention_dropout"])


def optimizer_like(o, model):
    rest = 0 if o["decay_first_layer_only"] else o["decay"]
    optimizer = torch.optim.Adam([{"params": model.first.parameters(), "weight_decay": o["decay"]},
                                  {"params": model.second.parameters(), "weight_decay": rest}], lr=o["rate"])
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, o["rate_step"] or o["epochs"], o["rate_factor"])


def train_once(data, o, seed, device):
    """Test accuracy after the epoch of the lowest validation loss."""
    torch.manual_seed(seed)
    split = draw_split(data.labels, data.classes, *o["split"], seed) if "split" in o else data.split
    x, labels = torch.as_tensor(data.features).to(device), torch.as_tensor(data.labels).to(device)
    edges = edge_index(data.without_loops(), device)
    train, validation, test = (torch.as_tensor(np.flatnonzero(split == kind_of)).to(device)
                               for kind_of in (TRAIN, VALIDATION, TEST))
    model = model_like(o, x.shape[1], data.classes).to(device)
    optimizer, schedule = optimizer_like(o, model)
    lowest, tested = math.inf, 0
    for _ in range(o["epochs"]):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, edges)[train], labels[train]).backward()
        optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            logits = model(x, edges)
            loss = F.cross_entropy(logits[validation], labels[validation]).item()
            if loss < lowest:
                lowest, tested = loss, (logits[test].argmax(1) == labels[test]).float().mean().item()
    return tested


def read_report(path):
    """The folder and the options of a report, if they are what train_once does."""
    with open(path) as file:
        report = json.load(file)
    o = report["options"]
    wanted = {"layers": 2, "optimizer": "adam", "maxk": 0, "patience": 0, "evaluate_every": 1, "sampler": "full"}
    if o["model"] == "sage-max" or any(o[key] != value for key, value in wanted.items()):
        sys.exit(f"{path}: no model of two layers, trained on the whole graph by Adam to the last epoch")
    return report["data"]["folder"], o


def accuracy(options, device, keep):
    for path in options.inputs:
        folder, o = read_report(path)
        data = Data(folder)
        if o["normalise"]:
            data.normalise()
        runs = [train_once(data, o, o["seed"] + i, device) for i in range(o["seeds"])]
        found = {"model": o["model"], "hidden": o["hidden"], "seeds": o["seeds"],
                 "test_accuracy": statistics.mean(runs),
                 "deviation": statistics.stdev(runs) if len(runs) > 1 else 0, "runs": runs}
        print(f"  {data.name} {o['model']}: {100 * found['test_accuracy']:.2f} +- {100 * found['deviation']:.2f}",
              flush=True)
        keep({**describe(data), "accuracy": [found]})


# ---- links


def link_figures(linked, unlinked):
    """AUC, with ties as halves, and average precision of scores: those of scikit-learn."""
    scores = np.concatenate([linked, unlinked])
    truth = np.concatenate([np.ones(len(linked)), np.zeros(len(unlinked))])
    order = np.argsort(-scores, kind="stable")
    scores, truth = scores[order], truth[order]
    last = np.flatnonzero(np.append(np.diff(scores) != 0, True))
    found, wrong = np.cumsum(truth)[last], np.cumsum(1 - truth)[last]
    auc = np.trapezoid(np.append(0, found), np.append(0, wrong)) / (len(linked) * len(unlinked))
    return auc, float(np.sum(np.diff(np.append(0, found)) * found / (found + wrong)) / len(linked))


def train_links_once(data, o, split, seed, device):
    """Test AUC and average precision after the epoch of the highest validation AUC."""
    from torch_geometric.utils import negative_sampling
    torch.manual_seed(seed)
    rest, parts = split
    x, edges = torch.as_tensor(data.features).to(device), edge_index(rest, device)
    linked = edges[:, edges[0] < edges[1]]
    outputs = o["hidden"] * (o.get("heads", 1) if o["model"] == "gat" else 1)
    model = model_like(o, x.shape[1], outputs).to(device)
    optimizer, schedule = optimizer_like(o, model)
    judged = {kind: [torch.as_tensor(np.array(pairs).T).to(device) for pairs in part] for kind, part in parts.items()}

    def scores(z, pairs):
        return (z[pairs[0]] * z[pairs[1]]).sum(1)

    best = 0, 0, 0
    for _ in range(o["epochs"]):
        model.train()
        optimizer.zero_grad()
        z = model(x, edges)
        others = negative_sampling(edges, data.nodes, o["negatives"] * linked.shape[1])
        found = torch.cat([scores(z, linked), scores(z, others)])
        truth = torch.cat([torch.ones(linked.shape[1]), torch.zeros(others.shape[1])]).to(device)
        F.binary_cross_entropy_with_logits(found, truth).backward()
        optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            z = model(x, edges)
            figures = {kind: link_figures(*(scores(z, pairs).cpu().numpy() for pairs in part))
                       for kind, part in judged.items()}
        if figures[VALIDATION][0] > best[0]:
            best = figures[VALIDATION][0], *figures[TEST]
    return best[1:]


def links(options, device, keep):
    for path in options.inputs:
        folder, o = read_report(path)
        if o["task"] != "link":
            sys.exit(f"{path}: no report of gnn train --task link")
        data = Data(folder)
        if o["normalise"]:
            data.normalise()
        train, validation = o["split_shares"]
        split = draw_links(data.without_loops(), validation, 1 - train - validation, o["seed"])
        runs = [train_links_once(data, o, split, o["seed"] + i, device) for i in range(o["seeds"])]
        found = {"model": o["model"], "hidden": o["hidden"], "seeds": o["seeds"]}
        for name, of_runs in zip(("test_auc", "test_average_precision"), zip(*runs)):
            found[name] = statistics.mean(of_runs)
            found[name + "_deviation"] = statistics.stdev(of_runs) if len(runs) > 1 else 0
        print(f"  {data.name} {o['model']}: AUC {found['test_auc']:.4f} +- {found['test_auc_deviation']:.4f}, average "
              f"precision {found['test_average_precision']:.4f} +- {found['test_average_precision_deviation']:.4f}",
              flush=True)
        keep({**describe(data), "links": [found]})


# ---- gradients


def check(options, device, keep):
    data = Data(options.inputs[0])
    x = torch.as_tensor(data.features, dtype=torch.float64)
    train = torch.as_tensor(np.flatnonzero(data.split == TRAIN))
    found = []
    for path in sorted(glob.glob(os.path.join(options.inputs[1], "*.json"))):
        with open(path) as file:
            exported = json.load(file)
        stem = path[:-len(".json")]
        weights, gradients = np.load(stem + "-weights.npy"), np.load(stem + "-gradients.npy")
        w = {}
        for p in exported["parameters"]:
            shape = (p["rows"], p["cols"]) if p["rows"] > 1 or "attention" in p["name"] else (p["cols"],)
            flat = weights[p["offset"]:p["offset"] + p["rows"] * p["cols"]].astype(np.float64)
            w[p["name"]] = torch.tensor(flat.reshape(shape), requires_grad=True)
        logits = formula(exported["model"], w, x, data)
        F.cross_entropy(logits[train], torch.as_tensor(data.labels)[train]).backward()
        apart = np.abs(np.load(stem + "-logits.npy").reshape(logits.shape) - logits.detach().numpy()).max()
        errors = {}
        for p in exported["parameters"]:
            theirs = w[p["name"]].grad.numpy().ravel()
            ours = gradients[p["offset"]:p["offset"] + p["rows"] * p["cols"]]
            errors[p["name"]] = float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-300))
        dgl = attempt(lambda: dgl_peer.farthest_logits(exported["model"], w, x, data, logits.detach()))
        found.append({"model": exported["model"], "type": exported["type"], "logits_error": float(apart),
                      "gradient_error": max(errors.values()), "parameters": errors, "dgl_logits_error": dgl})
        print(f"  {exported['model']} in {exported['type']}: logits within {apart:.1e}, gradients within "
              f"{max(errors.values()):.1e}; DGL's logits "
              f"{dgl['why'] if isinstance(dgl, dict) else f'within {dgl:.1e}'}", flush=True)
    keep({**describe(data), "gradients": found})


# ---- the command line


def numbers(text):
    return [int(word) for word in text.split(",")]


def words_of(*known):
    def words(text):
        found = text.split(",")
        for word in found:
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word} is none of {', '.join(known)}")
        return found
    return words


def add_arguments(parser, inputs, models=("gcn", "sage")):
    """What all benchmarks of training take."""
    parser.add_argument("inputs", nargs="+", metavar=inputs)
    parser.add_argument("--json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--model", type=words_of(*models), default=[m for m in models if m in ("gcn", "sage")],
                        help="of " + ", ".join(models))
    parser.add_argument("--hidden", type=numbers, default=[16, 256])
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--limit", type=float, default=20, help="seconds for each candidate")


def add_precision(parser):
    parser.add_argument("--precision", type=words_of("fp32", "tf32", "bf16"), default=["fp32"],
                        help="of fp32, tf32, bf16 (AMP)")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["speed", "sample", "accuracy", "links", "check"])
    add_arguments(parser, "FOLDER|REPORT", MODELS)
    add_precision(parser)
    parser.add_argument("--keep", action="store_true", help="also with A·X of the first layer computed once")
    parser.add_argument("--compile", type=float, default=0, metavar="SECONDS",
                        help="also by torch.compile, where forward or epoch have run once within this time [0: not]")
    parser.add_argument("--compile-edges", type=int, default=20_000_000, metavar="N",
                        help="messages of edges are compiled up to this number of them [20,000,000]")
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    if options.command == "speed" and "gat" in options.model and any(width % HEADS for width in options.hidden):
        parser.error(f"--hidden for gat: multiples of its {HEADS} heads")
    return options


class Results:
    """What is measured so far, a matrix once, in a file that is whole at any time."""

    def __init__(self, options):
        self.path, self.matrices = options.json, {}
        self.head = {"bench": "gnn-torch", "command": options.command, "date": datetime.date.today().isoformat(),
                     "commit": os.environ.get("BENCH_COMMIT"), "machine": machine(),
                     "options": {"device": options.device, "threads": options.threads or torch.get_num_threads(),
                                 "values": "fp32", "repeat": options.repeat}}

    def keep(self, matrix):
        before = self.matrices.get(matrix["matrix"], {})
        for kind in ("accuracy", "links"):
            if kind in before:
                matrix[kind] = before[kind] + matrix[kind]
        self.matrices[matrix["matrix"]] = matrix
        if self.path:
            with open(self.path + ".part", "w") as file:
                json.dump({**self.head, "matrices": list(self.matrices.values())}, file, indent=1)
            os.replace(self.path + ".part", self.path)


def main():
    options = parse()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    commands = {"speed": speed, "sample": sample, "accuracy": accuracy, "links": links, "check": check}
    commands[options.command](options, device, Results(options).keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
