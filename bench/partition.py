#!/usr/bin/env python3
"""How well a partition of the coarse graph serves the fine one: coarsen by contract, partition by METIS, carry the parts
back, and compare the edge cut with that of METIS on the fine graph itself, as they are and after contract --refine.

usage: bench/partition.py [options] GRAPH...      METIS graphs; .gz
  --how "..."     ways of --repeat [matching two-hop hec lp]
  --nodes N       nodes of the coarse graph, as a part of the fine one's where below 1 [0.125]
  --parts "..."   numbers of parts [2 8 32]
  --seeds N       of METIS, whose mean cut is compared [5]
  --json FILE     figures
  --extra "..."   options of contract in place of --to-nodes
CONTRACT is the tool [build/bin/contract]. Needs pymetis (PyPI); without it nothing is measured and the status is 0."""
import argparse, gzip, json, math, os, statistics, subprocess, sys, tempfile, time

try:
    import numpy as np
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    import pymetis
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(0)


def read_graph(path):
    """xadj, adjncy, weights of nodes, weights of edges."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        lines = [line for line in f if not line.startswith("%")]
    head = lines[0].split()
    n, fmt = int(head[0]), (head[2] if len(head) > 2 else "0").zfill(3)
    constraints = int(head[3]) if len(head) > 3 else 1
    skip = (fmt[0] == "1") + constraints * (fmt[1] == "1")
    numbers = [np.array(line.split(), dtype=np.int64) for line in lines[1:n + 1]]
    rows = [row[skip:] for row in numbers]
    loads = np.array([row[int(fmt[0] == "1")] for row in numbers]) if fmt[1] == "1" else np.ones(n, dtype=np.int64)
    step = 2 if fmt[2] == "1" else 1
    xadj = np.concatenate([[0], np.cumsum([len(row) // step for row in rows])])
    adjncy = np.concatenate([row[::step] for row in rows]) - 1
    weights = np.concatenate([row[1::2] for row in rows]) if step == 2 else np.ones(len(adjncy), dtype=np.int64)
    return xadj, adjncy, loads, weights


def partition(graph, parts, seed):
    xadj, adjncy, loads, weights = graph
    options = pymetis.Options(seed=seed)
    began = time.perf_counter()
    _, part = pymetis.part_graph(parts, recursive=False, xadj=xadj, adjncy=adjncy, vweights=loads, eweights=weights, options=options)
    return np.array(part), time.perf_counter() - began


def judge(graph, part, parts):
    """Edge cut and balance of a partition."""
    xadj, adjncy, loads, weights = graph
    sources = np.repeat(np.arange(len(xadj) - 1), np.diff(xadj))
    each = np.bincount(part, weights=loads, minlength=parts)
    return int(weights[part[sources] != part[adjncy]].sum()) // 2, each.max() * parts / each.sum()


def coarsen(path, how, nodes, folder, extra):
    out = os.path.join(folder, "coarse.graph")
    began = time.perf_counter()
    subprocess.run([os.environ.get("CONTRACT", "build/bin/contract"), path, "-o", out, "--repeat", how, "--loops", "drop",
                    "--quiet", *(extra or ["--to-nodes", str(nodes)])], check=True)
    seconds = time.perf_counter() - began
    total = None
    if os.path.exists(out + ".total.map"):
        total = np.loadtxt(out + ".total.map", dtype=np.int64, ndmin=2)[:, 1] - 1
    else:
        for level in range(1, 100):
            name = f"{out}.level{level}.map"
            if not os.path.exists(name):
                break
            step = np.loadtxt(name, dtype=np.int64, ndmin=2)[:, 1] - 1
            total = step if total is None else step[total]
    for name in os.listdir(folder):
        if name != "coarse.graph":
            os.remove(os.path.join(folder, name))
    return read_graph(out), total, seconds


def refine(path, part, folder):
    """The partition after contract --refine, which is checked: no part may become too heavy, the cut may not rise."""
    parts, better = os.path.join(folder, "parts"), os.path.join(folder, "better")
    np.savetxt(parts, part, fmt="%d")
    began = time.perf_counter()
    subprocess.run([os.environ.get("CONTRACT", "build/bin/contract"), path, parts, "--labels", "list", "--refine", better,
                    "--from", "metis", "--quiet"], check=True)
    return np.loadtxt(better, dtype=np.int64, ndmin=1), time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--how", default="matching two-hop hec lp")
    parser.add_argument("--nodes", type=float, default=0.125)
    parser.add_argument("--parts", default="2 8 32")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--extra", default="")
    o = parser.parse_args()
    hows, counts, rows = o.how.split(), [int(k) for k in o.parts.split()], []
    print(f"{'graph':<18}{'parts':>6}{'METIS':>9}{'balance':>8}" + "".join(f"{h:>13}{'refined':>8}{'nodes':>8}{'bal':>6}" for h in hows))
    for path in o.graphs:
        name = os.path.basename(path).split(".")[0]
        fine = read_graph(path)
        n = len(fine[0]) - 1
        nodes = max(1, round(o.nodes * n if o.nodes < 1 else o.nodes))
        coarse = {}
        with tempfile.TemporaryDirectory() as folder:
            for how in hows:
                coarse[how] = coarsen(path, how, nodes, folder, o.extra.split())
        for parts in counts:
            direct = [judge(fine, partition(fine, parts, seed)[0], parts) for seed in range(o.seeds)]
            cut = statistics.mean(d[0] for d in direct)
            row = {"graph": name, "nodes": n, "parts": parts, "cut": cut, "balance": max(d[1] for d in direct)}
            text = f"{name:<18}{parts:>6}{cut:>9.0f}{row['balance']:>8.3f}"
            for how in hows:
                small, total, seconds = coarse[how]
                mine, better, took = [], [], []
                for seed in range(o.seeds):
                    part = partition(small, parts, seed)[0][total]
                    with tempfile.TemporaryDirectory() as folder:
                        moved, time_taken = refine(path, part, folder)
                    mine.append(judge(fine, part, parts))
                    better.append(judge(fine, moved, parts))
                    took.append(time_taken)
                    assert better[-1][0] <= mine[-1][0], f"{name}: --refine raises the cut: {mine[-1]}, {better[-1]}"
                    assert better[-1][1] <= max(1.03, mine[-1][1]) + 1e-9, f"{name}: --refine loses the balance"
                row[how] = {"cut": statistics.mean(m[0] for m in mine), "balance": max(m[1] for m in better),
                            "refined_cut": statistics.mean(m[0] for m in better), "nodes": len(small[0]) - 1,
                            "seconds": seconds, "refine_seconds": statistics.mean(took)}
                row[how]["ratio"] = row[how]["cut"] / cut if cut else 1
                row[how]["refined"] = row[how]["refined_cut"] / cut if cut else 1
                text += (f"{row[how]['ratio']:>13.3f}{row[how]['refined']:>8.3f}{row[how]['nodes']:>8}"
                         f"{row[how]['balance']:>6.2f}")
            print(text, flush=True)
            rows.append(row)
    text = "geometric mean"
    for how in hows:
        for kind in ("ratio", "refined"):
            ratios = [max(row[how][kind], 1e-9) for row in rows]
            text += f"; {how}{', refined' * (kind == 'refined')} "
            text += f"{math.exp(statistics.mean(map(math.log, ratios))):.3f} (worst {max(ratios):.3f})"
    print(text)
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"bench": "partition", "rows": rows}, f, indent=1)


main()
