#!/usr/bin/env python3
"""A level of coarsening by matching beside networkit's: its matchings and its coarsenings, the fastest of each. The
runs take turns, and the median of each counts.

usage: bench/peers/coarsen.py [options] [GRAPH...]      METIS graphs; .gz
  --generate "..."  grid:ROWS,COLUMNS, rmat:SCALE,EDGES [grid:1000,1000 rmat:17,8]
  --threads "..."   [1 2]
  --repeat N        turns [5]
  --json FILE       figures
CONTRACT is the tool [build/bin/contract]. Ours is the time that its report has for the level, which the file's reading and
writing are no part of. Needs numpy and networkit (PyPI); without them nothing is measured and the status is 0."""
import argparse, datetime, gzip, json, os, platform, shutil, statistics, subprocess, sys, tempfile, time

try:
    import networkit as nk
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(0)

TOOL = os.environ.get("CONTRACT", "build/bin/contract")


def edges_of(spec):
    """Nodes, and the ends of each edge."""
    kind, numbers = spec.split(":")
    a, b = (int(n) for n in numbers.split(","))
    if kind == "grid":
        ids = np.arange(a * b).reshape(a, b)
        return a * b, np.hstack([[ids[:, 1:].ravel(), ids[:, :-1].ravel()], [ids[1:].ravel(), ids[:-1].ravel()]])
    random = np.random.default_rng(1)
    ends = np.zeros((2, b << a), dtype=np.int64)
    for _ in range(a):  # a quarter of the matrix, with the probabilities of Graph500
        quarter = random.choice(4, b << a, p=[0.57, 0.19, 0.19, 0.05])
        ends = 2 * ends + [quarter // 2, quarter % 2]
    ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    return 1 << a, ends


def write_metis(path, n, ends):
    sources, targets = np.hstack([ends, ends[::-1]])
    order = np.lexsort((targets, sources))
    rows = np.split(targets[order] + 1, np.cumsum(np.bincount(sources, minlength=n))[:-1])
    with open(path, "w") as out:
        out.write(f"{n} {ends.shape[1]}\n")
        out.writelines(" ".join(map(str, row)) + "\n" for row in rows)


def plain(path, folder):
    """The file, decompressed: networkit reads no .gz."""
    if not path.endswith(".gz"):
        return path
    copy = os.path.join(folder, os.path.basename(path)[:-3])
    with gzip.open(path) as packed, open(copy, "wb") as out:
        shutil.copyfileobj(packed, out)
    return copy


def ours(path, threads, folder):
    report = os.path.join(folder, "report.json")
    subprocess.run([TOOL, path, "-o", os.path.join(folder, "c.bin"), "--from", "metis", "--repeat", "matching", "--levels",
                    "1", "--threads", str(threads), "--device", "cpu", "--report", report, "--quiet"], check=True)
    with open(report) as file:
        r = json.load(file)
    return r["seconds"]["contract"], r["output"]["groups"]


MATCHERS = {"path growing": nk.matching.PathGrowingMatcher, "Suitor": nk.matching.SuitorMatcher}


def groups_of(g, matching):
    """The pairs as a partition. Matching.toPartition of networkit 11.3 writes beyond its memory."""
    parts = nk.structures.Partition(g.upperNodeIdBound())
    parts.allToSingletons()
    for node in g.iterNodes():
        mate = matching.mate(node)
        if node < mate < g.upperNodeIdBound():
            parts.moveToSubset(parts[node], mate)
    return parts


def timed(algorithm):
    began = time.perf_counter()
    algorithm.run()
    return time.perf_counter() - began


def theirs(g):
    """{way: seconds} and the nodes of the last."""
    seconds = {}
    for name, kind in MATCHERS.items():
        matcher = kind(g)
        matched = timed(matcher)
        matching = matcher.getMatching()
        groups = groups_of(g, matching)
        pairs = nk.coarsening.MatchingCoarsening(g, matching, True)
        seconds[f"{name}, MatchingCoarsening"] = matched + timed(pairs)
        joined = nk.coarsening.ParallelPartitionCoarsening(g, groups)
        seconds[f"{name}, ParallelPartitionCoarsening"] = matched + timed(joined)
        nodes = joined.getCoarseGraph().numberOfNodes()
    return seconds, nodes


def measure(name, path, threads, repeat, folder):
    nk.setNumberOfThreads(threads)
    g = nk.readGraph(path, nk.Format.METIS)
    mine, others = [], {}
    for _ in range(repeat):
        seconds, groups = ours(path, threads, folder)
        mine.append(seconds)
        found, nodes = theirs(g)
        for way, seconds in found.items():
            others.setdefault(way, []).append(seconds)
    peers = [{"name": way, "median_seconds": statistics.median(times)} for way, times in others.items()]
    best = min(peers, key=lambda p: p["median_seconds"])
    row = {"graph": name, "nodes": g.numberOfNodes(), "edges": g.numberOfEdges(), "threads": threads,
           "ours": {"median_seconds": statistics.median(mine), "nodes": groups}, "peers": peers, "peer_nodes": nodes}
    print(f"{name:<18}{row['nodes']:>9}{row['edges']:>10}{threads:>3}{1e3 * statistics.median(mine):>10.1f} ms"
          f"{1e3 * best['median_seconds']:>10.1f} ms{best['median_seconds'] / statistics.median(mine):>7.2f}  {best['name']}",
          flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--generate", default="grid:1000,1000 rmat:17,8")
    parser.add_argument("--threads", default="1 2")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    o = parser.parse_args()
    rows = []
    print(f"{'graph':<18}{'nodes':>9}{'edges':>10}{'t':>3}{'ours':>13}{'networkit':>13}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        files = [(os.path.basename(path).split(".")[0], plain(path, folder)) for path in o.graphs]
        for spec in o.generate.split():
            files.append((spec, os.path.join(folder, f"{len(files)}.graph")))
            write_metis(files[-1][1], *edges_of(spec))
        for name, path in files:
            rows += [measure(name, path, int(t), o.repeat, folder) for t in o.threads.split()]
    if o.json:
        with open(o.json, "w") as out:
            json.dump({"bench": "coarsen", "date": datetime.date.today().isoformat(),
                       "commit": os.environ.get("BENCH_COMMIT"), "networkit": nk.__version__, "cpu": platform.processor(),
                       "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
