#!/usr/bin/env python3
"""Epochs of unchanged PyTorch Geometric programs with and without spgraph.torch.install_pyg(), on folders that
`gnn convert` writes; bench_pyg.sh prepares its arguments.

Two layers of GCNConv or SAGEConv are trained on the whole graph by Adam, fp32, without TF32. Without install_pyg they
run with an edge_index, also compiled, with PyG's EdgeIndex (sorted, its transpose kept) and with torch.sparse CSR, and
beside them runs a program by hand on torch.sparse CSR, which is given the transpose and multiplies in the cheaper
order. With install_pyg the same programs run with an edge_index and with CSR. On a GPU each also runs as one CUDA
graph. Losses of the first epochs are compared from equal parameters and equal dropout.
"""
import argparse
import itertools
import sys

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F

from gnn_torch import Results, add_arguments, as_graph, attempt, describe, run_time
from torch_models import TRAIN, Data, HandModel, PygModel, csr_tensor, edge_index, gather_by

import spgraph
import spgraph.torch as st

TOLERANCE = 1e-3  # between losses, relative: sums run in other orders, and Adam's steps widen the difference


class Setting:
    """A graph in the forms in which programs take it, made when first asked for, and the training set."""

    def __init__(self, data, device):
        self.data, self.device, self.kept = data, device, {}
        chosen = np.flatnonzero(data.split == TRAIN)
        self.nodes = torch.as_tensor(chosen).to(device)
        self.labels = torch.as_tensor(data.labels[chosen]).to(device)
        self.x = torch.as_tensor(data.features).to(device)

    def once(self, name, make):
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def edges(self):
        return self.once("edges", lambda: edge_index(self.data.without_loops(), self.device))

    def sorted_edges(self):
        from torch_geometric import EdgeIndex

        def make():
            # Of matrix rows (targets) in ascending order; the graphs have each edge in both directions.
            made = EdgeIndex(self.edges(), sparse_size=(self.data.nodes,) * 2, sort_order="col", is_undirected=True)
            return made.fill_cache_()
        return self.once("EdgeIndex", make)

    def csr(self, kind):
        def make():
            if kind == "gcn":
                return csr_tensor(self.data.normalised(), self.device, wide="wide" in self.kept)
            graph = self.data.without_loops()
            ones = scipy.sparse.csr_matrix((np.ones(graph.nnz, np.float32), graph.indices, graph.indptr), graph.shape)
            return csr_tensor(ones, self.device, wide="wide" in self.kept)
        return self.once("csr " + kind, make)

    def by_hand(self, kind):
        def make():
            matrix = self.data.normalised() if kind == "gcn" else self.data.mean()
            a = csr_tensor(matrix, self.device)
            return gather_by(a, a if kind == "gcn" else csr_tensor(matrix.T.tocsr(), self.device), False), None
        return self.once("hand " + kind, make)


def programs(setting, kind, hidden, compiled):
    """(name, installed, by hand, model, graph) of each program; `model` and `graph` are made when it runs."""
    inputs, classes, device = setting.x.shape[1], setting.data.classes, setting.device

    def listed():
        return PygModel(kind, inputs, hidden, classes, cached=kind == "gcn").to(device)

    def scaled():
        return PygModel(kind, inputs, hidden, classes, normalize=False).to(device)

    def compiled_model():
        torch.compiler.reset()
        return torch.compile(listed())

    def by_hand():
        return HandModel(kind, inputs, hidden, classes, False).to(device)

    found = [("edge_index", False, False, listed, setting.edges),
             ("edge_index", True, False, listed, setting.edges),
             ("CSR", False, False, scaled, lambda: setting.csr(kind)),
             ("CSR", True, False, scaled, lambda: setting.csr(kind)),
             ("EdgeIndex", False, False, listed, setting.sorted_edges),
             ("CSR by hand", False, True, by_hand, lambda: setting.by_hand(kind))]
    if compiled:
        found.append(("edge_index, compiled", False, False, compiled_model, setting.edges))
    return found


def training(setting, make_model, make_graph, capturable=False):
    """A step of training, which returns its loss."""
    torch.manual_seed(1)
    model, graph = make_model(), make_graph()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=setting.x.is_cuda, capturable=capturable)
    model.train()

    def epoch():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(setting.x, graph)[setting.nodes], setting.labels)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return epoch


def captured(step):
    """The step as a CUDA graph, which uses the memory of what `step` holds."""
    replay = as_graph(step)

    def run():
        replay()
        return step
    return run


def losses(setting, make_model, make_graph, epochs):
    step = training(setting, make_model, make_graph)
    return [float(loss) for loss in [step() for _ in range(epochs)]]


def measure(setting, program, options):
    """Samples of an epoch, alone and as a CUDA graph, and the losses of the first epochs."""
    name, installed, hand, make_model, make_graph = program
    found = {"name": name, "install_pyg": installed, "by_hand": hand}

    def timed(step):
        return run_time(step, options.repeat, options.limit, setting.device, least=5)

    if installed:
        st.install_pyg()
    try:
        found["epoch"] = attempt(lambda: timed(training(setting, make_model, make_graph)))
        if setting.device.type == "cuda":
            found["epoch_cuda_graph"] = attempt(
                lambda: timed(captured(training(setting, make_model, make_graph, capturable=True))))
        if not hand and "compiled" not in name:  # these have other parameters, other random numbers
            found["losses"] = attempt(lambda: losses(setting, make_model, make_graph, options.epochs))
    finally:
        st.uninstall_pyg()
        if setting.device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def seconds_of(program, keys):
    """The fastest of a program's ways to run."""
    return min((program[key]["median_seconds"] for key in keys if "median_seconds" in program.get(key, {})),
               default=None)


def compare(case):
    """Adds how much faster install_pyg is, and how far its losses are from PyG's."""
    for key, ways in (("eager", ["epoch"]), ("any", ["epoch", "epoch_cuda_graph"])):
        best = {}
        for title, chosen in (("install_pyg", lambda p: p["install_pyg"]),
                              ("pyg", lambda p: not p["install_pyg"] and not p["by_hand"]),
                              ("by_hand", lambda p: p["by_hand"])):
            times = [(t, p["name"]) for p in case["programs"] if chosen(p) and (t := seconds_of(p, ways)) is not None]
            if times:
                best[title] = {"name": min(times)[1], "median_seconds": min(times)[0]}
        for other in ("pyg", "by_hand"):
            if other in best and "install_pyg" in best:
                theirs, ours = (best[title]["median_seconds"] for title in (other, "install_pyg"))
                best["times_as_fast_as_" + other] = theirs / ours
        case["best_" + key] = best
    curves = {(p["name"], p["install_pyg"]): p["losses"] for p in case["programs"] if isinstance(p.get("losses"), list)}
    plain = [curve for (_, installed), curve in curves.items() if not installed]
    for p in case["programs"]:
        if p["install_pyg"] and isinstance(p.get("losses"), list) and plain:
            reference = curves.get((p["name"], False), plain[0])
            p["loss_difference"] = max(abs(a - b) / abs(b) for a, b in zip(p["losses"], reference))
            p["same_losses"] = p["loss_difference"] <= TOLERANCE
    return case


def show(case):
    def milliseconds(time):
        if time is None:
            return "-"
        return f"{1e3 * time['median_seconds']:.3f}" if "median_seconds" in time else time["failed"]

    for p in case["programs"]:
        print(f"  {case['model']} {case['hidden']:4} {p['name'] + (' + install_pyg' if p['install_pyg'] else ''):28} "
              f"{milliseconds(p['epoch']):>10} ms, as a graph {milliseconds(p.get('epoch_cuda_graph')):>10} ms"
              + (f", losses within {p['loss_difference']:.1e}" if "loss_difference" in p else ""), flush=True)
        for key in ("epoch", "epoch_cuda_graph", "losses"):
            if isinstance(p.get(key), dict) and p[key].get("failed") == "failed":
                print(f"      {key}: {p[key]['why']}", flush=True)
    for key in ("eager", "any"):
        said = [f"{case['best_' + key][other]:.2f} x {name}" for other, name in
                (("times_as_fast_as_pyg", "PyG's best"), ("times_as_fast_as_by_hand", "CSR by hand"))
                if other in case["best_" + key]]
        print(f"  {case['model']} {case['hidden']:4} with install_pyg, {key}: {', '.join(said)}", flush=True)


def run_case(setting, kind, hidden, options):
    case = {"model": kind, "hidden": hidden, "programs": []}
    for program in programs(setting, kind, hidden, options.compile):
        found = measure(setting, program, options)
        if program[0] == "CSR" and found["epoch"].get("failed") == "failed" and "wide" not in setting.kept:
            setting.kept["wide"] = True  # autograd of torch may want 64-bit indices
            setting.kept.pop("csr " + kind, None)
            found = measure(setting, program, options)
        case["programs"].append(found)
    return case


def run(options, device, keep):
    """Whether every program with install_pyg ran and had PyG's losses."""
    right = True
    for folder in options.inputs:
        data, cases = Data(folder), []
        print(f"{data.name}: {data.nodes} nodes, {data.graph.nnz} edges", flush=True)
        for kind, hidden in itertools.product(options.model, options.hidden):
            if hidden == options.hidden[0]:
                setting = Setting(data, device)  # without the matrices of the model before, which take gigabytes
            cases.append(compare(run_case(setting, kind, hidden, options)))
            show(cases[-1])
            right = right and all(p.get("same_losses", False) for p in cases[-1]["programs"] if p["install_pyg"])
            keep({**describe(data), "training": cases})
    return right


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, "FOLDER")
    parser.add_argument("--compile", action="store_true", help="also PyG's program compiled")
    parser.add_argument("--epochs", type=int, default=20, help="whose losses are compared")
    options = parser.parse_args()
    options.command = "epochs"
    return options


def main():
    options = parse()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if options.threads:
        torch.set_num_threads(options.threads)
        spgraph.set_threads(options.threads)
    results = Results(options)
    results.head["bench"] = "pyg"
    if not run(options, torch.device(options.device), results.keep):
        print("a program with install_pyg failed, or its losses are not those of PyG", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
