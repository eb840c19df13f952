#!/usr/bin/env python3
"""How well a partition of the coarse graph serves the fine one: coarsen by contract, partition by METIS, carry the parts
back, and compare the edge cut with those of METIS and KaHIP on the fine graph itself, as they are and after contract
--refine. No part may weigh more than 1.03 times the mean, as METIS allows; --refine rounds this bound up to a whole
weight.

usage: bench/partition.py [options] GRAPH...      METIS graphs; .gz
  --how "..."     ways of --repeat [matching two-hop hec lp]
  --nodes N       nodes of the coarse graph, as a part of the fine one's where below 1 [0.125]
  --parts "..."   numbers of parts [2 8 32]
  --seeds N       of METIS, whose mean cut is compared [5]
  --kahip MODE    also KaHIP, once: fast, eco, strong, or social with these in front, as socialeco
  --json FILE     figures
  --extra "..."   options of contract in place of --to-nodes
CONTRACT is the tool [build/bin/contract]. Needs pymetis (PyPI), and kahip for --kahip; without pymetis nothing is measured
and the status is 0."""
import argparse, datetime, gzip, json, math, os, statistics, subprocess, sys, tempfile, time

try:
    import numpy as np
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    import pymetis
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(0)


IMBALANCE = 0.03  # METIS's default for k parts
TOOL = os.environ.get("CONTRACT", "build/bin/contract")


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
    _, part = pymetis.part_graph(parts, recursive=False, xadj=xadj, adjncy=adjncy, vweights=loads, eweights=weights,
                                 options=options)
    return np.array(part), time.perf_counter() - began


MODES = ["fast", "eco", "strong", "socialfast", "socialeco", "socialstrong"]  # in the order of KaHIP's numbers


def partition_by_kahip(graph, parts, mode):
    import kahip
    xadj, adjncy, loads, weights = (array.tolist() for array in graph)
    began = time.perf_counter()
    _, part = kahip.kaffpa(loads, xadj, weights, adjncy, parts, IMBALANCE, True, 1, MODES.index(mode))
    return np.array(part), time.perf_counter() - began


def judge(graph, part, parts):
    """Edge cut and balance of a partition."""
    xadj, adjncy, loads, weights = graph
    sources = np.repeat(np.arange(len(xadj) - 1), np.diff(xadj))
    each = np.bincount(part, weights=loads, minlength=parts)
    used = np.count_nonzero(np.bincount(part, minlength=parts))  # METIS may leave parts empty
    return int(weights[part[sources] != part[adjncy]].sum()) // 2, float(each.max() * used / each.sum())


def coarsen(path, how, nodes, folder, extra):
    """The coarse graph, the node there of each node, the file of these, seconds."""
    out = os.path.join(folder, how + ".graph")
    began = time.perf_counter()
    subprocess.run([TOOL, path, "-o", out, "--repeat", how, "--loops", "drop", "--quiet", "--from", "metis",
                    *(extra or ["--to-nodes", str(nodes)])], check=True)
    seconds = time.perf_counter() - began
    total = np.loadtxt(out + ".total.map", dtype=np.int64, ndmin=2)[:, 1] - 1
    return read_graph(out), total, out + ".total.map", seconds


def refine(path, part, through, folder):
    """The partition after contract --refine."""
    parts, better = os.path.join(folder, "parts"), os.path.join(folder, "better")
    np.savetxt(parts, part, fmt="%d")
    began = time.perf_counter()
    subprocess.run([TOOL, path, parts, "--through", through, "--labels", "list", "--refine", better, "--imbalance",
                    str(IMBALANCE), "--from", "metis", "--quiet"], check=True)
    return np.loadtxt(better, dtype=np.int64, ndmin=1), time.perf_counter() - began


def mean_of(judged):
    return {"cut": statistics.mean(cut for cut, _ in judged), "balance": max(balance for _, balance in judged)}


def by_levels(path, fine, coarse, parts, seeds, folder):
    """Cuts with METIS on the coarse graph, before and after --refine."""
    small, total, through, seconds = coarse
    carried, refined, took = [], [], []
    for seed in range(seeds):
        part = partition(small, parts, seed)[0]
        better, time_taken = refine(path, part, through, folder)
        carried.append(judge(fine, part[total], parts))
        refined.append(judge(fine, better, parts))
        took.append(time_taken)
        mean = fine[2].sum() / len(np.unique(better))
        bound = math.ceil((1 + IMBALANCE) * mean) / mean
        assert refined[-1][1] <= bound + 1e-9 or fine[2].max() > 1, f"{path}: --refine loses the balance: {refined[-1]}"
    return {"nodes": len(small[0]) - 1, "carried": mean_of(carried), "refined": mean_of(refined),
            "coarsen_seconds": seconds, "refine_seconds": statistics.mean(took)}


def measure(path, o, folder):
    fine, name = read_graph(path), os.path.basename(path).split(".")[0]
    n, rows = len(fine[0]) - 1, []
    nodes = max(1, round(o.nodes * n if o.nodes < 1 else o.nodes))
    coarse = {how: coarsen(path, how, nodes, folder, o.extra.split()) for how in o.how.split()}
    for parts in (int(k) for k in o.parts.split()):
        metis = [partition(fine, parts, seed) for seed in range(o.seeds)]
        row = {"graph": name, "nodes": n, "edges": len(fine[1]) // 2, "parts": parts,
               "metis": {**mean_of([judge(fine, part, parts) for part, _ in metis]),
                         "seconds": statistics.mean(seconds for _, seconds in metis)}}
        if o.kahip:
            part, seconds = partition_by_kahip(fine, parts, o.kahip)
            row["kahip"] = {**mean_of([judge(fine, part, parts)]), "seconds": seconds}
        for how in coarse:
            row[how] = by_levels(path, fine, coarse[how], parts, o.seeds, folder)
        rows.append(row)
        cut = max(row["metis"]["cut"], 1)
        text = f"{name:<18}{parts:>6}{cut:>9.0f}{row['metis']['balance']:>7.3f}"
        text += f"{row['kahip']['cut'] / cut:>8.3f}" if o.kahip else ""
        for how in coarse:
            text += f"{row[how]['carried']['cut'] / cut:>13.3f}{row[how]['refined']['cut'] / cut:>8.3f}"
            text += f"{row[how]['nodes']:>8}{row[how]['refined']['balance']:>6.2f}"
        print(text, flush=True)
    return rows


def summarize(rows, hows):
    text = "geometric mean"
    for how in hows:
        for kind in ("carried", "refined"):
            ratios = [max(row[how][kind]["cut"], 1e-9) / max(row["metis"]["cut"], 1) for row in rows]
            text += f"; {how}, {kind} {math.exp(statistics.mean(map(math.log, ratios))):.3f} (worst {max(ratios):.3f})"
    print(text)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--how", default="matching two-hop hec lp")
    parser.add_argument("--nodes", type=float, default=0.125)
    parser.add_argument("--parts", default="2 8 32")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kahip", choices=MODES)
    parser.add_argument("--json")
    parser.add_argument("--extra", default="")
    o = parser.parse_args()
    print(f"{'graph':<18}{'parts':>6}{'METIS':>9}{'bal':>7}" + ("   KaHIP" if o.kahip else "") +
          "".join(f"{how:>13}{'refined':>8}{'nodes':>8}{'bal':>6}" for how in o.how.split()))
    rows = []
    for path in o.graphs:
        with tempfile.TemporaryDirectory() as folder:
            rows += measure(path, o, folder)
    summarize(rows, o.how.split())
    if o.json:
        with open(o.json, "w") as out:
            json.dump({"bench": "partitions", "date": datetime.date.today().isoformat(),
                       "commit": os.environ.get("BENCH_COMMIT"), "part_of_nodes": o.nodes, "seeds": o.seeds,
                       "kahip_mode": o.kahip, "imbalance": IMBALANCE, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
