#!/usr/bin/env python3
"""Quotients of contract beside igraph's contract_vertices with simplify and networkit's ParallelPartitionCoarsening:
random graphs with whole weights, the weight within each group as a loop, and without.

usage: quotient_peers.py CONTRACT [CASES]"""
import os, random, subprocess, sys, tempfile

import igraph
import networkit as nk


def draw(rng):
    """Nodes, {(i, j): weight} with i < j, the group of each node; every group from 0 has nodes."""
    n = rng.randint(2, 60)
    edges = {}
    for _ in range(rng.randint(1, 4 * n)):
        i, j = sorted(rng.sample(range(n), 2))
        edges[i, j] = rng.randint(1, 1000)
    groups = rng.randint(1, n)
    labels = list(range(groups)) + [rng.randrange(groups) for _ in range(n - groups)]
    rng.shuffle(labels)
    return n, edges, labels


def ours(tool, folder, n, edges, labels, options):
    graph, groups, out = (os.path.join(folder, name) for name in ("g.mtx", "labels", "q.abc"))
    with open(graph, "w") as f:
        print("%%MatrixMarket matrix coordinate integer symmetric", file=f)
        print(n, n, len(edges), file=f)
        for (i, j), w in edges.items():
            print(j + 1, i + 1, w, file=f)
    with open(groups, "w") as f:
        print(*labels, sep="\n", file=f)
    subprocess.run([tool, graph, groups, "-o", out, "--base", "0", "--quiet", *options], check=True)
    with open(out) as f:
        return sorted((*sorted(map(int, line.split()[:2])), float(line.split()[2])) for line in f)


def by_igraph(n, edges, labels, loops):
    g = igraph.Graph(n, list(edges), edge_attrs={"weight": list(edges.values())})
    g.contract_vertices(labels)
    g.simplify(multiple=True, loops=False, combine_edges={"weight": "sum"})  # loops=False keeps them
    return sorted((*sorted(e.tuple), e["weight"]) for e in g.es if loops or e.source != e.target)


def by_networkit(n, edges, labels, loops):
    g = nk.Graph(n, weighted=True)
    for (i, j), w in edges.items():
        g.addEdge(i, j, w)
    groups = nk.structures.Partition(n)
    groups.setUpperBound(max(labels) + 1)
    for node, label in enumerate(labels):
        groups.addToSubset(label, node)
    coarsening = nk.coarsening.ParallelPartitionCoarsening(g, groups)
    coarsening.run()
    name = {coarse: labels[node] for node, coarse in enumerate(coarsening.getFineToCoarseNodeMapping())}
    return sorted((*sorted((name[i], name[j])), w) for i, j, w in coarsening.getCoarseGraph().iterEdgesWeights()
                  if loops or i != j)


def main():
    tool, cases = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(cases):
            case = draw(random.Random(seed))
            for loops, options in ((True, ["--half-loops"]), (False, ["--loops", "drop"])):
                made = ours(tool, folder, *case, options)
                for peer, quotient in (("igraph", by_igraph), ("networkit", by_networkit)):
                    same = made == quotient(*case, loops)
                    passed, failed = passed + same, failed + (not same)
                    if not same:
                        print(f"seed {seed}, {' '.join(options)}: {peer} makes another quotient")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main()
