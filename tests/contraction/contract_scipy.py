#!/usr/bin/env python3
"""contract from files to files against scipy and sums of whole numbers here: contract_scipy.py TOOL CASES [OPTIONS]

Each case draws a graph, labels, a format of either side, an operation, what becomes of loops, an engine. Whole weights
lie near 2^24, 2^31 and 2^53, others are like 0.1; some are negative, some edges repeated. Whole results are to be the
same, or refused if the terms of a cell add up to more than 2^53; others within 1e-12 of the sum of their terms without
signs.
"""
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse as sparse

tool, cases = os.path.abspath(sys.argv[1]), int(sys.argv[2])
MOST = 1 << 53


def draw_weights(rng, count, positive):
    kind = rng.randrange(6)
    near = {0: 10, 1: 1 << 24, 2: 1 << 31, 3: MOST // max(count, 1), 4: MOST // 3}
    values = []
    for _ in range(count):
        if kind < 5:
            value = max(1, near[kind] + rng.randrange(-3, 4))
        else:
            value = rng.choice([0.1, 0.2, 0.3, rng.random(), rng.random() * 1e9, 1e-50 * rng.random(), 3.0])
        values.append(value if positive or rng.random() < 0.7 else -value)
    return values


class Case:
    def __init__(self, rng):
        self.rng = rng
        self.source = rng.choice(["abc", "mtx", "symmetric", "mcl", "bin", "metis", "string", "blast"])
        self.operation = rng.choice(["sum", "sum", "sum", "max", "min", "mean", "count", "first"])
        self.loops = rng.choice(["keep", "drop", "only"])
        self.half = rng.random() < 0.3
        self.engine = rng.choice(["auto", "fused", "product"])
        self.flag = rng.choice([None, None, "--directed", "--undirected"])
        self.target = rng.choice(["tsv", "abc", "mtx", "mcl", "bin"])
        self.nodes = rng.choice([1, 2, 6, 25])
        self.labels = [rng.randrange(rng.choice([1, 3, 8])) if rng.random() < 0.9 else -1 for _ in range(self.nodes)]
        if self.source == "metis":
            self.flag = None
        self.lines = self.draw_lines()

    def draw_lines(self):
        rng, pairs = self.rng, []
        once = self.source in ("mcl", "bin", "metis") or self.operation == "first"
        for _ in range(rng.randrange(3 * self.nodes + 1)):
            i, j = rng.randrange(self.nodes), rng.randrange(self.nodes)
            if self.source == "metis" and i == j or once and ((i, j) in pairs or (j, i) in pairs):
                continue
            if self.source == "symmetric" and j > i:
                i, j = j, i
            pairs.append((i, j))
            if self.source == "metis":
                pairs.append((j, i))
        weights = draw_weights(rng, len(pairs), self.source in ("blast", "metis", "string"))
        if self.source == "metis":
            weights = [abs(weights[k - k % 2]) for k in range(len(weights))]
            weights = [w if w >= 1 else 1 for w in map(int, weights)]
        if self.source == "bin":  # which contract writes here
            weights = [max(-MOST, min(MOST, w)) for w in weights]
        return [(i, j, w) for (i, j), w in zip(pairs, weights)]

    def write(self):
        """The file; returns its name and format."""
        lines, n = self.lines, self.nodes
        if self.source in ("mtx", "symmetric"):
            kind = "symmetric" if self.source == "symmetric" else "general"
            text = f"%%MatrixMarket matrix coordinate real {kind}\n{n} {n} {len(lines)}\n"
            text += "".join(f"{i + 1} {j + 1} {w!r}\n" for i, j, w in lines)
        elif self.source == "mcl" or self.source == "bin":
            text = f"(mclheader\nmcltype matrix\ndimensions {n}x{n}\n)\n(mclmatrix\nbegin\n"
            text += "".join(f"{i} {j}:{w!r} $\n" for i, j, w in lines) + ")\n"
        elif self.source == "metis":
            text = f"{n} {len(lines) // 2} 001\n"
            for node in range(n):
                text += " ".join(f"{j + 1} {w!r}" for i, j, w in lines if i == node) + "\n"
        elif self.source == "blast":
            text = "".join(f"n{i}\tn{j}\t9\t9\t0\t0\t1\t9\t1\t9\t.1\t{w!r}\n" for i, j, w in lines)
        else:
            text = "protein1 protein2 combined_score\n" if self.source == "string" else ""
            text += "".join(f"n{i} n{j} {w!r}\n" for i, j, w in lines)
        with open("graph", "w") as out:
            out.write(text)
        if self.source == "bin":
            with open("same", "w") as out:
                out.writelines(f"{i + 1}\n" for i in range(n))
            done = subprocess.run([tool, "graph", "same", "-o", "graph.bin", "--from", "mcl"], capture_output=True)
            assert done.returncode == 0, done.stderr
            return "graph.bin"
        return "graph"

    def arcs(self):
        mirrored = self.source in ("abc", "symmetric", "blast")
        both = self.flag == "--undirected" and self.source != "metis" or self.flag is None and mirrored
        for i, j, w in self.lines:
            yield i, j, w
            if both and i != j:
                yield j, i, w

    def undirected(self):
        both = self.source in ("abc", "symmetric", "blast", "metis")
        return self.flag == "--undirected" or self.flag is None and both

    def expected(self):
        """Cells, and whether the run is to be refused."""
        cells, whole = {}, all(w == int(w) for _, _, w in self.lines)
        beyond = False
        pairs = {}
        for i, j, w in self.arcs():
            p, q = self.labels[i], self.labels[j]
            pairs[i, j] = pairs.get((i, j), 0) + abs(w)
            if p >= 0 and q >= 0:
                cells.setdefault((p, q), []).append((i, j, w))
        beyond = whole and self.operation == "sum" and any(v > MOST for v in pairs.values())
        beyond = beyond or whole and self.operation != "count" and any(abs(w) > MOST for _, _, w in self.lines)
        made, order = {}, list(range(self.nodes))
        if self.source in ("abc", "string", "blast"):  # nodes are numbered as they appear
            order = {node: k for k, node in enumerate(dict.fromkeys(n for line in self.lines for n in line[:2]))}
        for (p, q), terms in cells.items():
            if self.loops != "keep" and (p == q) != (self.loops == "only"):
                continue
            values = [w for _, _, w in sorted(terms, key=lambda t: (order[t[0]], order[t[1]]))]
            size = sum(map(abs, values))
            if whole and self.operation == "sum":  # repeated edges are one already
                edges = {}
                for i, j, w in terms:
                    edges[i, j] = edges.get((i, j), 0) + int(w)
                beyond = beyond or sum(map(abs, edges.values())) > MOST
            halves = 2 if self.half and p == q and self.operation in ("sum", "count") else 1
            total = sum(map(int, values)) if whole else math.fsum(values)
            value = {"sum": total, "max": max(values), "min": min(values), "mean": total / len(values),
                     "count": len(values), "first": values[0]}[self.operation]
            exact = self.operation != "mean" and (whole or self.operation != "sum")
            made[p, q] = (value / halves, 0 if exact else 1e-12 * size)
        return made, beyond

    def check_scipy(self, made):
        """The sums of reals are those of scipy's S G S'."""
        if self.operation != "sum" or self.half or not self.lines:
            return
        arcs = list(self.arcs())
        shape = (self.nodes, self.nodes)
        g = sparse.csr_array(([float(w) for _, _, w in arcs], ([i for i, _, _ in arcs], [j for _, j, _ in arcs])),
                             shape=shape)
        kept = [i for i in range(self.nodes) if self.labels[i] >= 0]
        s = sparse.csr_array((np.ones(len(kept)), ([self.labels[i] for i in kept], kept)), shape=(8, self.nodes))
        dense = (s @ g @ s.T).toarray()
        for (p, q), (value, tolerance) in made.items():
            assert abs(dense[p, q] - value) <= tolerance, ("scipy", p, q, dense[p, q], value)

    def parse(self, path):
        text, found = open(path).read(), {}
        if self.target == "mcl":
            for line in text.split("begin\n")[1].split("$\n")[:-1]:
                words = line.split()
                for word in words[1:]:
                    j, w = word.split(":")
                    found[int(words[0]), int(j)] = float(w)
            return found
        lines = [line.split() for line in text.split("\n") if line and line[0] != "%"]
        if self.target == "mtx":
            lines = lines[1:]
        for p, q, w in lines:
            found[int(p) - 1, int(q) - 1] = float(w)
        if self.symmetric and self.target in ("abc", "mtx"):
            found.update({(q, p): w for (p, q), w in found.items()})
        return found

    def run(self):
        path = self.write()
        present = [i for i in range(self.nodes) if any(i in line[:2] for line in self.lines)]
        listed = self.source in ("mtx", "symmetric", "mcl", "bin", "metis")
        with open("labels", "w") as out:
            for i in range(self.nodes) if listed else present:
                label = self.labels[i] + 1 if self.labels[i] >= 0 else -1
                out.write(f"{label}\n" if listed else f"n{i} {label}\n")
        form = {"symmetric": "mtx"}.get(self.source, self.source)
        self.symmetric = self.undirected() and self.operation != "first"
        line = [tool, path, "labels", "-o", "out." + self.target, "--from", form, "--combine", self.operation]
        line += ["--loops", self.loops, "--engine", self.engine, "--unlabelled", "drop"]
        line += ["--labels", "list" if listed else "pairs"]
        line += sys.argv[3:] + ["--half-loops"] * self.half + ([self.flag] if self.flag else [])
        done = subprocess.run(line, capture_output=True, text=True)
        made, beyond = self.expected()
        assert done.returncode == (1 if beyond else 0), (line[1:], done.returncode, beyond, done.stderr)
        if beyond:
            assert "2^53" in done.stderr, done.stderr
            return
        self.check_scipy(made)
        groups = max([self.labels[i] for i in (range(self.nodes) if listed else present)], default=-1) + 1
        came_back = self.target == "bin"
        if came_back:  # by its own numbers, as it stands
            with open("same", "w") as out:
                out.writelines(f"{i + 1}\n" for i in range(groups))
            done = subprocess.run([tool, "out.bin", "same", "-o", "out.tsv"], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            self.target = "tsv"
        found = self.parse("out." + self.target)
        if came_back:  # but for sums of 0, which are no edges
            made = {place: value for place, value in made.items() if place in found or abs(value[0]) > value[1]}
        assert found.keys() == made.keys(), (line[1:], sorted(found), sorted(made))
        for place, (value, tolerance) in made.items():
            assert abs(found[place] - value) <= tolerance, (line[1:], place, found[place], value)


for seed in range(cases):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Case(rng).run()
        except AssertionError as wrong:
            os.chdir("/")
            sys.exit(f"seed {seed}: {wrong}")
        os.chdir("/")
print(f"{cases} cases as scipy has them")
