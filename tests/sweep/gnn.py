"""Random small folders for gnn, in all documented layouts, and a few matrices for sparse-bench, against numpy.

    python3 tests/sweep/gnn.py BIN [--cases N] [--seed S] [--only K] [--keep]

BIN is the folder of the programs. Looks for runs that end well with a wrong result: what was read, what a network
computes, what is reported of it, what two ways to say the same make of it. Refusals are counted by their message.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse as sparse

import gnn_data as data
import gnn_model
from gnn_data import Data, one_of
from gnn_model import accuracy, loss


CONVERT_PICKLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "convert-pickles")


class Failure(Exception):
    """The tool is wrong."""


class Refused(Exception):
    """The tool refused, in one line."""


class Tools:
    def __init__(self, folder, at):
        self.folder, self.at, self.said = folder, at, []

    def path(self, *names):
        return os.path.join(self.at, *names)

    def run(self, *words, tool="gnn", refusal=True):
        words = [str(w) for w in words]
        self.said.append(f"{tool} {' '.join(words)}")
        done = subprocess.run([os.path.join(self.folder, tool), *words], capture_output=True, timeout=120, text=True,
                              env={**os.environ, "LC_ALL": "C"})
        if done.returncode in (1, 2) and refusal:
            lines = done.stderr.strip().split("\n")
            expect(lines[0] and len(lines) <= 2, f"a refusal in {len(lines)} lines: {done.stderr[:300]}")
            raise Refused(done.stderr.strip())
        expect(done.returncode == 0, f"exit status {done.returncode}: {done.stderr[:300]}")
        if "--quiet" in words:
            expect(not done.stderr and (not done.stdout or "-" in words), f"--quiet, but {done.stderr + done.stdout!r}")
        return done


def expect(true, message):
    if not true:
        raise Failure(message)


def same(got, want, what, slack=0.0):
    got, want = np.atleast_1d(got), np.atleast_1d(want)
    expect(got.shape == want.shape, f"{what}: shape {got.shape}, {want.shape} is right")
    bad = ~np.isclose(got.astype(float), want.astype(float), rtol=0, atol=slack, equal_nan=True)
    if bad.any():
        at = tuple(int(k[0]) for k in np.nonzero(bad))
        raise Failure(f"{what}: at {at} {got[at]}, {want[at]} is right; {bad.sum()} of {bad.size} differ")


# ---- what was read

def check_folder(t, d, folder, split=True):
    """A folder that gnn convert made holds the data, in the documented types."""
    graph = sparse.load_npz(f"{folder}/graph.npz")
    same(graph.toarray(), d.adjacency, "graph")
    expect(graph.nnz == np.count_nonzero(d.adjacency), f"graph: {graph.nnz} entries")
    weighted = bool((d.adjacency[d.adjacency != 0] != 1).any())
    expect((graph.dtype == bool) != weighted, f"graph: {graph.dtype}, weights {'other than' if weighted else 'all'} 1")
    name = "features.npz" if d.sparse else "features.npy"
    expect(os.path.exists(f"{folder}/{name}"), f"no {name}: {os.listdir(folder)}")
    features = sparse.load_npz(f"{folder}/{name}") if d.sparse else np.load(f"{folder}/{name}")
    expect(features.dtype == np.float32, f"features are {features.dtype}")
    same(features.toarray() if d.sparse else features, d.features, "features")
    labels = np.load(f"{folder}/labels.npy")
    expect(labels.dtype == (np.uint8 if d.several else np.int32), f"labels are {labels.dtype}")
    same(labels, d.labels, "labels")
    if split:
        same(np.load(f"{folder}/split.npy"), d.split, "split")
    names = f"{folder}/classes.txt"
    if d.names:
        expect(open(names, encoding="utf-8").read().split() == d.names, f"classes {open(names).read()!r}")


def check_info(t, d, folder):
    info, a = json.loads(t.run("info", folder, "--json").stdout), d.adjacency != 0
    right = {"nodes": d.n, "edges": int(a.sum()), "loops": int(np.diag(a).sum()), "max_degree": int(a.sum(1).max()),
             "features": d.features.shape[1], "sparse": d.sparse, "multi_label": d.several,
             "weighted": bool((d.adjacency[a] != 1).any())}
    wrong = [(k, info[k], right[k]) for k in right if info[k] != right[k]]
    expect(not wrong, f"info: {wrong}, the second is right")
    if d.n:
        same(info["mean_degree"], a.sum() / d.n, "mean degree", 1e-9)
    expect(info["symmetric"] == bool((d.adjacency == d.adjacency.T).all()), f"symmetric: {info['symmetric']}")
    counts = d.labels.sum(0) if d.several else [int((d.labels == c).sum()) for c in range(d.classes)]
    same([c["nodes"] for c in info["classes"]], counts, "nodes of classes")
    unknown = (d.labels.sum(1) == 0 if d.several else d.labels < 0).sum()
    expect(info["unlabelled"] == unknown, f"{info['unlabelled']} without a class, {unknown} is right")
    right = {name: int((d.split == code).sum()) for code, name in enumerate(data.SPLITS)}
    expect(info["split"] == right, f"split {info['split']}, {right} is right")


def reading(t, rng):
    d = Data(rng)
    undirected = rng.random() < 0.25
    data.write_folder(d, t.path("in"), graph="list" if undirected else None)
    if undirected:
        make_undirected(t, d)
        return
    check_info(t, d, t.path("in"))
    done = t.run("convert", t.path("in"), t.path("out"))
    check_folder(t, d, t.path("out"))
    check_summary(d, done.stderr)
    t.run("convert", t.path("out"), t.path("again"))
    for name in os.listdir(t.path("out")):
        expect(open(t.path("out", name), "rb").read() == open(t.path("again", name), "rb").read(), f"{name} made twice")


def check_summary(d, said):
    """Where the last line on standard error gives figures, they are true."""
    for figure, word in re.findall(r"([\d,]+) (nodes|features|classes)\b", said.strip().split("\n")[-1]):
        right = {"nodes": d.n, "features": d.features.shape[1], "classes": d.classes}[word]
        expect(int(figure.replace(",", "")) == right, f"summary: {figure} {word}, {right} is right")


def make_undirected(t, d):
    """Each edge stands for both directions; of two weights the larger counts."""
    t.run("convert", t.path("in"), t.path("out"), "--undirected")
    d.adjacency[:] = 0
    for source, target, weight in d.edges:
        for at in (source, target), (target, source):
            d.adjacency[at] = max(d.adjacency[at], weight)
    check_folder(t, d, t.path("out"))


def files_by_name(t, rng):
    d = Data(rng)
    os.makedirs(t.path("files"))
    words = ["--edges", data.write_graph(d, t.path("files"), one_of(rng, ["list", "mtx", "npz"]), stem="one")]
    path, d.sparse = data.write_features(d, t.path("files"), stem="two")
    labels, d.classes = data.write_labels(d, t.path("files"), stem="three")
    data.pack(rng, t.path("files", "four.txt"), "".join(data.SPLITS[c] + "\n" for c in d.split), text=False)
    four = [f for f in os.listdir(t.path("files")) if f.startswith("four")][0]
    t.run("convert", *words, "--features", path, "--labels", labels, "--split", t.path("files", four), t.path("out"))
    check_folder(t, d, t.path("out"))
    check_info(t, d, t.path("out"))


def other_layouts(t, rng):
    kind = one_of(rng, ["saint", "benchmark", "planetoid"])
    d = Data(rng, several=False if kind != "saint" else None, names=False, least=8,
             weighted=False if kind == "planetoid" else None)
    if not d.several:
        d.labels = np.where(d.labels < 0, 0, d.labels)
        d.classes = int(d.labels.max()) + 1
        d.split[d.split == 0] = 1
    if kind == "saint":
        data.write_saint(d, t.path("in"))
        d.sparse, source = False, t.path("in")
    elif kind == "benchmark":
        d.sparse, source = data.write_benchmark(d, t.path("in.npz")), t.path("in.npz")
    else:
        data.write_planetoid(d, t.path("in"))
        d.sparse, source = True, t.path("in", "ind.tiny")
        np.fill_diagonal(d.adjacency, 0)
        d.adjacency = np.minimum(np.maximum(d.adjacency, d.adjacency.T), 1)
    if kind == "planetoid":
        subprocess.run([sys.executable, "-B", CONVERT_PICKLES, source, t.path("folder")], check=True,
                       capture_output=True)
        source = t.path("folder")
    t.run("convert", source, t.path("out"))
    check_folder(t, d, t.path("out"), split=kind != "benchmark")


def odd_labels(t, rng):
    """nan, NA, nothing and -1 are unknown, whole floats are integers, other floats are refused."""
    d = Data(rng, several=False, names=False)
    data.write_folder(d, t.path("in"), plain=True)
    for name in os.listdir(t.path("in")):
        if name.startswith(("labels", "split", "train", "val", "test")):
            os.remove(t.path("in", name))
    unknown, fraction = one_of(rng, ["nan", "NA", "-1", "NaN", "-1.0"]), rng.random() < 0.15
    if rng.random() < 0.5:
        words = [(unknown if c < 0 else one_of(rng, [str(c), f"{c}.0"])) for c in d.labels]
        if fraction:
            words[rng.integers(d.n)] = "0.5"
        open(t.path("in", "labels.txt"), "w").write("\n".join(words) + "\n")
    else:
        y = np.where(d.labels < 0, one_of(rng, [np.nan, -1]), d.labels).astype(one_of(rng, [np.float32, np.float64]))
        if fraction:
            y[rng.integers(d.n)] = 0.5
        np.save(t.path("in", "labels.npy"), y)
    try:
        t.run("convert", t.path("in"), t.path("out"))
    except Refused:
        if fraction:
            return
        raise
    expect(not fraction, f"took a label of 0.5: {np.load(t.path('out', 'labels.npy'))}")
    check_folder(t, d, t.path("out"), split=False)


# ---- training

def draw_model(rng, d):
    model = one_of(rng, gnn_model.MODELS)
    o = {"model": model, "layers": int(rng.integers(1, 4)), "hidden": int(rng.integers(1, 9)),
         "epochs": int(rng.integers(1, 4)), "seed": int(rng.integers(1, 1000)), "rate": one_of(rng, [0.01, 0.1])}
    if model == "gat":
        o["heads"] = int(rng.integers(1, 4))
    if model in ("gcn", "sage", "gin") and o["layers"] > 1 and rng.random() < 0.3:
        o["maxk"] = int(rng.integers(1, o["hidden"] + 1))
    words = [w for k, v in o.items() for w in (f"--{k}", v)] + ["--optimizer", one_of(rng, ["adam", "adamw", "sgd"])]
    o["normalise"] = rng.random() < 0.6
    return o, words + ["--no-normalise"] * (not o["normalise"])


def network_scores(d, o, path):
    parameters = gnn_model.saved_parameters(path)
    if parameters is None or o["model"] == "gin" and "maxk" in o:  # how gin keeps the largest is not documented
        return None
    hidden = o["hidden"] * o.get("heads", 1)
    sizes = [d.features.shape[1]] + [hidden] * (o["layers"] - 1) + [d.classes]
    return gnn_model.scores(o["model"], parameters, d.adjacency, d.features, sizes, o["hidden"], o.get("heads", 1),
                            o.get("maxk", 0), o["normalise"], d.several)


def read_scores(d, path):
    rows = [line.split("\t") for line in open(path, encoding="utf-8").read().split("\n")[:-1]]
    expect(len(rows) == d.n, f"{len(rows)} lines for {d.n} nodes")
    return [r[0] for r in rows], np.array([[float(x) for x in r[1:]] for r in rows])


def network(t, rng):
    """What predict computes, and what train reports, follow from the saved numbers and the data."""
    d = Data(rng, least=3)
    data.write_folder(d, t.path("in"))
    o, words = draw_model(rng, d)
    done = t.run("train", t.path("in"), *words, "--save", t.path("model"), "--report", t.path("report"))
    said = t.run("predict", t.path("in"), "--load", t.path("model"), "-o", t.path("classes"), "--scores")
    names, p = read_scores(d, t.path("classes"))
    expect(p.shape[1:] == (d.classes,), f"{p.shape[1:]} scores a node, {d.classes} classes")
    right = network_scores(d, o, t.path("model"))
    if right is not None:
        same(p, right, f"scores of {o}", 3e-5)
    close = np.sort(p, 1)
    if not d.several:
        sure = (p >= p.max(1, keepdims=True)).sum(1) == 1
        want = [d.names[c] if d.names else str(c) for c in p.argmax(1)]
        expect(all(x == y for x, y, s in zip(names, want, sure) if s), "classes other than the scores say")
    report = json.load(open(t.path("report")))
    facts = report["data"]
    right = [d.n, int((d.adjacency != 0).sum()), d.features.shape[1], d.classes] + \
        [int((d.split == code).sum()) for code in (1, 2, 3)]
    got = [facts[k] for k in ("nodes", "edges", "features", "classes", "training", "validation", "test")]
    expect(got == right, f"report: {got}, {right} is right")
    tie = (close[:, -1] - close[:, -2] < 1e-5).any() if d.classes > 1 and not d.several else (abs(p - 0.5) < 1e-5).any()
    for code, name in ((1, "training"), (2, "validation"), (3, "test")):
        share, cost = accuracy(d, p, d.split == code), loss(d, p, d.split == code)
        seen = report["runs"][0]
        if share is not None and not tie:
            same(seen[f"{name}_accuracy"], share, f"{name} accuracy", 1e-6)
        if share is not None:
            same(seen[f"{name}_loss"], cost, f"{name} loss", 1e-4 * max(1, cost) + 2e-5 / max(p.min(), 1e-6))
    told = re.search(r"test accuracy ([\d.]+)", said.stderr)
    if told and accuracy(d, p, d.split == 3) is not None and not tie:
        same(float(told[1]), accuracy(d, p, d.split == 3), "accuracy that predict says", 6e-5)


def equivalents(t, rng):
    """Two layouts of the same data, one thread and two: the same bytes."""
    d = Data(rng, least=3)
    data.write_folder(d, t.path("in"), features="npz")
    data.write_folder(d, t.path("too"), features="coordinate")
    o, words = draw_model(rng, d)
    words += ["--sampler", "node", "--fanout", ",".join(["3"] * o["layers"]), "--batch", "4"] * (rng.random() < 0.3)
    for at, threads in (("in", 1), ("too", 2)):
        t.run("train", t.path(at), *words, "--save", t.path(f"model.{at}"), "--threads", threads, "--quiet")
        t.run("predict", t.path(at), "--load", t.path("model.in"), "-o", t.path(f"classes.{at}"), "--scores", "--quiet")
    for name in ("model", "classes"):
        one, two = (open(t.path(f"{name}.{at}"), "rb").read() for at in ("in", "too"))
        expect(one == two, f"{name} differs between layouts or threads")


def resuming(t, rng):
    """A training that was cut in two gives the same bytes as one that was not."""
    d = Data(rng, least=3)
    data.write_folder(d, t.path("in"))
    o, words = draw_model(rng, d)
    words += one_of(rng, [[], [], ["--dropout", 0.3], ["--rate-step", 2], ["--decay-all"]])
    at = words.index("--epochs")
    del words[at:at + 2]
    first, last = int(rng.integers(1, 5)), int(rng.integers(5, 9))
    t.run("train", t.path("in"), *words, "--epochs", last, "--save", t.path("whole"), "--quiet")
    t.run("train", t.path("in"), *words, "--epochs", first, "--save", t.path("part"), "--quiet")
    if rng.random() < 0.5:  # the saved model knows the others
        words = words[words.index("--rate-step"):][:2] if "--rate-step" in words else []
    t.run("train", t.path("in"), *words, "--epochs", last, "--resume", t.path("part"), "--save", t.path("joined"),
          "--quiet")
    expect(open(t.path("whole"), "rb").read() == open(t.path("joined"), "rb").read(), "resumed to another model")


def drawn_split(t, rng):
    """--split A,B draws A and B nodes of each class; all others whose class is known test."""
    d = Data(rng, several=False, least=4)
    data.write_folder(d, t.path("in"))
    a, b = int(rng.integers(1, 3)), int(rng.integers(0, 3))
    t.run("train", t.path("in"), "--split", f"{a},{b}", "--epochs", 1, "--report", t.path("report"), "--quiet")
    counts = [int((d.labels == c).sum()) for c in range(d.classes)]
    facts = json.load(open(t.path("report")))["data"]
    trains = [a if n >= a + b else (n + 1) // 2 for n in counts]  # half of a class that is too small
    train, val = sum(trains), sum(min(b, n - k) for n, k in zip(counts, trains))
    right = [train, val, sum(counts) - train - val]
    got = [facts[k] for k in ("training", "validation", "test")]
    expect(got == right, f"--split {a},{b} of classes of {counts}: {got}, {right} is right")


def made_up(t, rng):
    """A lattice by gnn convert: what info says of it is what its definition says."""
    sizes, features, classes = rng.integers(3, 6, rng.integers(1, 4)), int(rng.integers(1, 9)), int(rng.integers(1, 5))
    t.run("convert", "generate:torus:" + ",".join(map(str, sizes)), t.path("out"), "--features", features,
          "--classes", classes)
    info, n = json.loads(t.run("info", t.path("out"), "--json").stdout), int(sizes.prod())
    right = {"nodes": n, "edges": 2 * n * len(sizes), "symmetric": True, "loops": 0, "max_degree": 2 * len(sizes),
             "features": features}
    wrong = [(k, info[k], v) for k, v in right.items() if info[k] != v]
    expect(not wrong, f"info: {wrong}, the second is right")
    expect(sum(info["split"].values()) == n and len(info["classes"]) <= classes, f"{info['split']}, {info['classes']}")


def bench(t, rng):
    """sparse-bench reads what is documented; rows, entries and products are right."""
    d = Data(rng, several=False, names=False, least=2)
    path = data.write_graph(d, t.at, one_of(rng, ["mtx", "bin"]))
    command = one_of(rng, ["spgemm", "spmm"])
    t.run(command, path, "--peers", "none", "--repeat", 1, "--json", t.path("json"), tool="sparse-bench")
    text, a = open(t.path("json")).read(), d.adjacency != 0
    expect(re.search(rf'"rows": {d.n}\b', text), f"rows are not {d.n}: {text[:200]}")
    expect(re.search(rf'"nnz(_a)?": {int(a.sum())}\b', text), f"entries are not {a.sum()}: {text[:300]}")
    if command == "spgemm":
        products = int((a.sum(0) * a.sum(1)).sum())
        expect(re.search(rf'"products": {products}\b', text), f"products are not {products}: {text[:300]}")


CASES = [reading, reading, files_by_name, other_layouts, odd_labels, network, network, network, network, equivalents,
         equivalents, resuming, drawn_split]


def run_case(folder, seed, number, keep):
    case = bench if number % 131 == 130 else made_up if number % 131 == 65 else CASES[number % len(CASES)]
    at = tempfile.mkdtemp(prefix="gnn-sweep-")
    tools = Tools(folder, at)
    try:
        case(tools, np.random.default_rng([seed, number]))
        return "P", ""
    except Refused as refusal:
        return "S", str(refusal)
    except (Failure, subprocess.TimeoutExpired) as failure:
        return "F", f"case {number}: {case.__name__}: {failure}\n    " + "\n    ".join(tools.said[-3:])
    finally:
        if not keep:
            shutil.rmtree(at)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", action="store_true", help="leave the files of the cases where they are")
    given = parser.parse_args()
    folder = given.bin if os.path.isdir(given.bin) else os.path.dirname(os.path.abspath(given.bin))
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}", flush=True)
    counts, refusals = collections.Counter(), collections.Counter()
    for number in range(given.cases) if given.only is None else [given.only]:
        letter, text = run_case(folder, seed, number, given.keep)
        counts[letter] += 1
        if letter == "F":
            print(text, flush=True)
        if letter == "S":
            if given.only is not None:
                print(text)
            refusals[re.sub(r"-?\d[\d.,]*", "N", re.sub(r"/\S*/", "", text))] += 1
    for message, count in refusals.most_common():
        print(f"refused {count}: {message}")
    print(f"{counts['P']} passed, {counts['F']} failed, {counts['S']} skipped")
    return bool(counts["F"])


if __name__ == "__main__":
    sys.exit(main())
