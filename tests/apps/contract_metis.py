#!/usr/bin/env python3
"""Weights and sizes of METIS nodes through contract, against sums of whole numbers here: contract_metis.py TOOL CASES

Each case is a random graph in one of the formats 000 to 111 with 1 to 3 constraints. It is contracted by random labels,
some of them -1, and by hierarchies, in one call and level by level through METIS files, which are to be the same.
"""
import os
import random
import subprocess
import sys
import tempfile

tool, cases = os.path.abspath(sys.argv[1]), int(sys.argv[2])


def run(*arguments):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done


class Graph:
    def __init__(self, nodes, constraints, weighted, sized, edges):
        self.nodes, self.constraints, self.edges = nodes, constraints, edges  # edges: (i, j) -> weight, i < j
        self.weights = [[1] * constraints for _ in range(nodes)]
        self.sizes = [1] * nodes
        self.weighted, self.sized = weighted, sized

    def write(self, path, fmt):
        lines = [[] for _ in range(self.nodes)]
        for (i, j), weight in self.edges.items():
            for a, b in ((i, j), (j, i)):
                lines[a] += [b + 1] + ([weight] if fmt[2] == "1" else [])
        with open(path, "w") as out:
            out.write(f"{self.nodes} {len(self.edges)} {fmt}" + (f" {self.constraints}\n" if self.weighted else "\n"))
            for i in range(self.nodes):
                own = ([self.sizes[i]] if self.sized else []) + (self.weights[i] if self.weighted else [])
                out.write(" ".join(map(str, own + lines[i])) + "\n")

    def quotient(self, labels, groups):
        made = Graph(groups, self.constraints, True, self.sized, {})
        made.weights = [[0] * self.constraints for _ in range(groups)]
        made.sizes = [0] * groups
        for i, p in enumerate(labels):
            if p < 0:
                continue
            made.sizes[p] += self.sizes[i]
            for k in range(self.constraints):
                made.weights[p][k] += self.weights[i][k]
        for (i, j), weight in self.edges.items():
            p, q = sorted((labels[i], labels[j]))
            if p >= 0 and p != q:
                made.edges[p, q] = made.edges.get((p, q), 0) + weight
        return made

    def same(self, path):
        """Compares with a file, read with the least that METIS's manual says."""
        lines = open(path).read().split("\n")
        head = lines[0].split()
        fmt = head[2].zfill(3) if len(head) > 2 else "000"
        constraints = int(head[3]) if len(head) > 3 else 1 if fmt[1] == "1" else 0
        assert int(head[0]) == self.nodes and int(head[1]) == len(self.edges), head
        assert fmt[0] == str(int(self.sized)) and fmt[1] == "1" and constraints == self.constraints, head
        for i in range(self.nodes):
            numbers = list(map(int, lines[1 + i].split()))
            if self.sized:
                assert numbers.pop(0) == self.sizes[i], (path, i)
            assert numbers[:constraints] == self.weights[i], (path, i)
            numbers = numbers[constraints:]
            step = 2 if fmt[2] == "1" else 1
            found = {numbers[k] - 1: numbers[k + 1] if step == 2 else 1 for k in range(0, len(numbers), step)}
            own = {b if a == i else a: w for (a, b), w in self.edges.items() if i in (a, b)}
            assert found == own, (path, i, found, own)


def draw(rng):
    nodes = rng.choice([1, 2, 5, 30, 60])
    fmt = "".join(rng.choice("01") for _ in range(3))
    pairs = [(i, j) for i in range(nodes) for j in range(i + 1, nodes)]
    heavy = rng.choice([10, 1 << 26, 1 << 40])
    edges = {e: rng.randrange(1, heavy) if fmt[2] == "1" else 1
             for e in rng.sample(pairs, min(len(pairs), rng.randrange(3 * nodes + 1)))}
    graph = Graph(nodes, rng.randrange(1, 4) if fmt[1] == "1" else 1, fmt[1] == "1", fmt[0] == "1", edges)
    top = rng.choice([3, 1 << 30, 1 << 45])
    if graph.weighted:
        graph.weights = [[rng.randrange(top) for _ in range(graph.constraints)] for _ in range(nodes)]
    if graph.sized:
        graph.sizes = [rng.randrange(top) for _ in range(nodes)]
    return graph, fmt


def by_labels(rng, graph):
    groups = rng.randrange(1, graph.nodes + 2)
    labels = [rng.randrange(-1, groups) for _ in range(graph.nodes)]
    groups = max(labels, default=-1) + 1
    with open("labels", "w") as out:
        out.writelines(f"{p + 1 if p >= 0 else -1}\n" for p in labels)
    run("g.graph", "labels", "-o", "q.graph", "--loops", "drop", "--unlabelled", "drop", "--node-output", "nodes")
    expected = graph.quotient(labels, groups)
    expected.same("q.graph")
    rows = [line.rstrip("\n").split("\t") for line in open("nodes")]
    named = (["weight"] if graph.constraints == 1 else [f"weight{k + 1}" for k in range(graph.constraints)])
    extra = (named if graph.weighted else []) + (["size_sum"] if graph.sized else [])
    assert rows[0] == ["group", "size", "internal", "cut", "conductance"] + extra, rows[0]
    for p, row in enumerate(rows[1:]):
        sums = (expected.weights[p] if graph.weighted else []) + ([expected.sizes[p]] if graph.sized else [])
        assert row[5:] == list(map(str, sums)), (row, sums)


def in_steps(how, graph):
    """Two levels in one call, and one by one; the maps give the sums."""
    run("g.graph", "-o", "h.graph", "--repeat", how, "--levels", "2", "--loops", "drop")
    maps = [f"h.graph.level{k}.map" for k in (1, 2) if os.path.exists(f"h.graph.level{k}.map")]
    labels = list(range(graph.nodes))
    for path in maps:
        went = {int(a) - 1: int(b) - 1 for a, b in (line.split() for line in open(path))}
        labels = [went[p] for p in labels]
    graph.quotient(labels, max(labels, default=-1) + 1).same("h.graph")
    now = "g.graph"
    for k in range(len(maps)):
        run(now, "-o", f"s{k}.graph", "--repeat", how, "--levels", "1", "--loops", "drop")
        now = f"s{k}.graph"
    if maps:
        assert open(now).read() == open("h.graph").read(), "step by step and in one call"
    for path in maps:
        os.remove(path)


for seed in range(cases):
    rng = random.Random(seed)
    graph, fmt = draw(rng)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        graph.write("g.graph", fmt)
        try:
            by_labels(rng, graph)
            for how in ("matching", "cluster"):
                in_steps(how, graph)
        except AssertionError as wrong:
            sys.exit(f"seed {seed}: {wrong}")
        os.chdir("/")
