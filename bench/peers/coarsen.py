#!/usr/bin/env python3
"""A level of coarsening by matching beside networkit's: its matchings and its coarsenings, the fastest of each. Both
libraries run in this process, on graphs in memory, with results freed between runs. They take turns after a first one
that does not count. The least of each counts, which other work on the machine disturbs least; medians are stored, too.

usage: bench/peers/coarsen.py [options] [GRAPH...]      METIS graphs; .gz
  --generate "..."  grid:ROWS,COLUMNS, rmat:SCALE,EDGES [grid:1000,1000 rmat:17,8]
  --threads "..."   [1 2]
  --repeat N        turns [9]
  --json FILE       figures
Ours is contraction_coarsen and sp_contract of BUILD/lib/libsparse.so [build]. Beside it stands the time that the report of
the tool BUILD/bin/contract has for the level: there memory is new, and the level is made ready to be written.
networkit's ParallelPartitionCoarsening gets the pairs as a partition, which takes no part of its time; MatchingCoarsening
gets them as they are. Needs numpy, scipy and networkit (PyPI); without them nothing is measured and the status is 0."""
import argparse, ctypes, datetime, gzip, importlib.util, json, os, platform, shutil, statistics, subprocess, sys, tempfile, time

try:
    import networkit as nk
    import numpy as np
    import scipy.sparse
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(0)

BUILD = os.environ.get("BUILD", "build")
TOOL = os.environ.get("CONTRACT", f"{BUILD}/bin/contract")


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


def by_tool(path, threads, folder):
    report = os.path.join(folder, "report.json")
    subprocess.run([TOOL, path, "-o", os.path.join(folder, "c.bin"), "--from", "metis", "--repeat", "matching",
                    "--levels",
                    "1", "--threads", str(threads), "--device", "cpu", "--report", report, "--quiet"], check=True)
    with open(report) as file:
        return json.load(file)["seconds"]["contract"]


def structs():
    """The C structures, as the Python package has them."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", "python", "spgraph", "_abi.py")
    spec = importlib.util.spec_from_file_location("abi", path)
    abi = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(abi)
    return abi


class Ours:
    """A graph of networkit, for the library."""

    def __init__(self, g, threads):
        self.abi, self.library, self.context = structs(), ctypes.CDLL(f"{BUILD}/lib/libsparse.so"), ctypes.c_void_p()
        matrix = scipy.sparse.csr_matrix(nk.algebraic.adjacencyMatrix(g, matrixType="sparse"))
        matrix.sort_indices()
        self.arrays = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float64))
        offsets, columns, values = (a.ctypes.data for a in self.arrays)
        self.labels = np.empty(matrix.shape[0], dtype=np.int32)
        self.g = self.abi.sp_csr(matrix.shape[0], matrix.shape[0], matrix.nnz, offsets, columns,
                                 values if g.isWeighted() else None, self.abi.SP_F64, 0)
        options = self.abi.sp_context_options(device=b"cpu", threads=threads)
        self.check(self.library.sp_context_create(ctypes.byref(options), ctypes.byref(self.context)))

    def check(self, status):
        if status:
            sys.exit(f"coarsen.py: the library fails with status {status}")

    def run(self):
        how = self.abi.contraction_coarsening(method=0, seed=1)
        options, groups, c = self.abi.sp_contract_options(symmetric=True), ctypes.c_int64(), self.abi.sp_csr()
        labels = self.labels.ctypes.data_as(ctypes.c_void_p)
        began = time.perf_counter()
        self.check(self.library.contraction_coarsen(self.context, ctypes.byref(self.g), ctypes.byref(how), labels,
                                                    ctypes.byref(groups)))
        self.check(self.library.sp_contract(self.context, ctypes.byref(self.g), labels, 0, groups,
                                            ctypes.byref(options), ctypes.byref(c), None))
        seconds = time.perf_counter() - began
        self.library.sp_csr_free(self.context, ctypes.byref(c))
        return seconds, groups.value

    def close(self):
        self.library.sp_context_destroy(self.context)


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


def rest(threads):
    """Threads of the other library may still wait for work."""
    if threads > 1:
        time.sleep(0.01)


def timed(algorithm):
    rest(nk.getMaxNumberOfThreads())
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


def summary(times):
    return {"least_seconds": min(times), "median_seconds": statistics.median(times)}


def measure(name, path, threads, repeat, folder):
    nk.setNumberOfThreads(threads)
    g = nk.readGraph(path, nk.Format.METIS)
    us = Ours(g, threads)
    mine, tool, others = [], [], {}
    for turn in range(repeat + 1):
        rest(threads)
        seconds, groups = us.run()
        found, nodes = theirs(g)
        if turn == 0:
            continue
        mine.append(seconds)
        tool.append(by_tool(path, threads, folder))
        for way, seconds in found.items():
            others.setdefault(way, []).append(seconds)
    us.close()
    peers = [{"name": way} | summary(times) for way, times in others.items()]
    best = min(peers, key=lambda p: p["least_seconds"])
    pairs = min((p for p in peers if "MatchingC" in p["name"]), key=lambda p: p["least_seconds"])
    own, as_tool, first, second = (1e3 * t for t in (min(mine), min(tool), best["least_seconds"],
                                                     pairs["least_seconds"]))
    print(f"{name:<16}{g.numberOfNodes():>9}{g.numberOfEdges():>9}{threads:>3}{own:>10.2f} {as_tool:>10.2f}"
          f"{first:>10.2f}{second:>10.2f}{first / own:>7.2f}{second / own:>7.2f}  {best['name']}", flush=True)
    return {"graph": name, "nodes": g.numberOfNodes(), "edges": g.numberOfEdges(), "threads": threads,
            "ours": summary(mine) | {"nodes": groups}, "tool": summary(tool), "peers": peers, "peer_nodes": nodes}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--generate", default="grid:1000,1000 rmat:17,8")
    parser.add_argument("--threads", default="1 2")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--json")
    o = parser.parse_args()
    rows = []
    print("milliseconds of ours, of the tool, of networkit's fastest and of its fastest with MatchingCoarsening")
    print(f"{'graph':<16}{'nodes':>9}{'edges':>9}{'t':>3}{'ours':>10}{'tool':>11}{'networkit':>10}{'pairs':>10}{'ratio':>7}{'pairs':>7}")
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
                       "commit": os.environ.get("BENCH_COMMIT"), "networkit": nk.__version__,
                       "cpu": platform.processor(),
                       "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
