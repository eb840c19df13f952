#!/usr/bin/env python3
"""A random sweep of `contract` against quotients computed here: python3 tests/sweep/contract.py BIN [--cases N]

Graphs of every input format, labels of every kind, and options are drawn at random; what `contract` writes with exit
status 0 must be what the documents say. Needs numpy, scipy, zstd, and mcx for mcl's binary form.
"""

import json
import re
import struct
import sys
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from common import Skipped, Wrong, must_refuse, sweep
from graphs import draw_graph, metis
from quotient import draw_labels, node_figures, quotient
from readers import READERS, read_metis

ENDINGS = {"mtx": [".mtx"], "abc": [".abc"], "tsv": [".tsv"], "mcl": [".mci", ".mcl"], "metis": [".graph", ".metis"],
           "bin": [".bin", ".csr"]}
UNNAMED = ("mtx", "metis", "mcl")    # formats without names of groups


class Plan:
    """What one call asks for."""

    def __init__(self, rng, graph, labels):
        self.op = rng.choice(["sum", "sum", "sum", "max", "min", "mean", "count", "first"])
        if any(weight != 1 for *_, weight in labels.members) and rng.random() < 0.95:
            self.op = "sum"    # others refuse weights of memberships
        self.loops = rng.choice(["keep", "keep", "drop", "only"])
        self.half = rng.random() < 0.25
        self.unlabelled = rng.choice(["drop", "keep"]) if labels.unlabelled and rng.random() < 0.95 else "error"
        self.unknown = "drop" if labels.unknown and rng.random() < 0.9 else "error"
        self.compact, self.names = rng.random() < 0.3, rng.random() < 0.2
        self.to = rng.choice(["mtx", "mtx", "abc", "tsv", "mcl", "bin", "metis"])
        if self.to == "metis" and rng.random() < 0.9:    # METIS has no loops and no directions
            self.loops = "drop"
            self.op = self.op if self.op == "sum" else rng.choice(["max", "count"])
            self.to = "metis" if graph.undirected else "mtx"
        self.figures = not labels.matrix and rng.random() < 0.4
        self.report, self.quiet = rng.random() < 0.2, rng.random() < 0.04
        self.engine = rng.choice(["auto", "auto", "fused", "product"])
        self.engine = "auto" if labels.matrix and self.engine == "fused" else self.engine
        self.single = rng.random() < 0.06 and (graph.form != "mcl" or    # there the first that is not 0 counts
                                               all(abs(value) > 1e-30 for *_, value in graph.entries))
        self.threads = rng.choice(["", "1", "2"])

    def options(self):
        made = [] if self.op == "sum" else ["--combine", self.op]
        made += [] if self.loops == "keep" else ["--loops", self.loops]
        made += ["--half-loops"] * self.half + ["--compact"] * self.compact + ["--names"] * self.names
        made += [] if self.unlabelled == "error" else ["--unlabelled", self.unlabelled]
        made += [] if self.unknown == "error" else ["--unknown", self.unknown]
        made += ["--node-output", "figures.tsv"] * self.figures + ["--report", "report.json"] * self.report
        made += [] if self.engine == "auto" else ["--engine", self.engine]
        made += ["--values", "f32"] * self.single + ["--quiet"] * self.quiet
        return made + (["--threads", self.threads] if self.threads else [])


def native_binary(case, graph):
    """mcl's own text in mcl's binary form, where single precision holds the weights; else as it is."""
    single = all(Fraction(struct.unpack("f", struct.pack("f", value))[0]) == value for *_, value in graph.entries)
    if graph.form == "mcl" and single and case.rng.random() < 0.3:
        case.write("g.native", graph.text)
        if case.run("mcx", "convert", "--write-binary", "g.native", "g.binary").status == 0:
            graph.text = case.read("g.binary")


def single_precision(graph):
    """Makes the entries those that --values f32 reads: rounded, without zeros."""
    entries = [(i, j, Fraction(struct.unpack("f", struct.pack("f", value))[0])) for i, j, value in graph.entries]
    kept = [entry for entry in entries if entry[2]]
    graph.edges = graph.edges if len(kept) == len(entries) else None
    graph.entries = kept


def place_inputs(case, graph, labels):
    """Writes the inputs, plain or compressed, by name or on standard input; returns arguments and standard input."""
    rng = case.rng
    native_binary(case, graph)
    name = case.write("g" + graph.ending, graph.text, rng.choice(["", "", "", ".gz", ".zst"]))
    label_name = case.write("labels", labels.text, rng.choice(["", "", "", ".gz", ".zst"]))
    options = list(graph.options)
    hidden = graph.form == "metis" and not name.startswith(("g.graph", "g.metis"))
    stdin = None
    draw = rng.random()
    if draw < 0.15:
        stdin, name, hidden = case.read(name), "-", graph.form == "metis"
    elif draw < 0.25:
        stdin, label_name = case.read(label_name), "-"
    unknown = hidden and (graph.edges < 2 or any(value.denominator > 1 for *_, value in graph.entries))
    if unknown or (hidden and rng.random() < 0.3) or (not options and rng.random() < 0.1):
        options = ["--from", graph.form]
    options += [graph.direction] if graph.direction else []
    return [name, label_name] + options + labels.options, stdin


def final_groups(graph, labels, plan):
    """Members, and names of the groups, after --unlabelled, --compact and --names."""
    members, names = list(labels.members), list(labels.groups)
    if plan.unlabelled == "keep":
        for node in labels.unlabelled:
            members.append((node, len(names), Fraction(1)))
            names.append(graph.names[node] if labels.named else str(len(names) + labels.base))
    if plan.names and not labels.named:
        first = {}
        for node, group, _ in members:
            first[group] = min(node, first.get(group, node))
        names = [graph.names[first[p]] if p in first else name for p, name in enumerate(names)]
    if plan.compact:
        kept = sorted({group for _, group, _ in members})
        at = {p: k for k, p in enumerate(kept)}
        members = [(node, at[group], weight) for node, group, weight in members]
        names = [names[p] for p in kept]
    return members, names


def agree(got, want, single):
    """Whether a number that was written is the one wanted: whole ones exactly, others to 1e-12 of their terms."""
    if want.whole and want.want.denominator == 1 and not single:
        return got == want.want
    relative, least = (10**6, Fraction(1, 10**38)) if single else (10**12, 0)
    return abs(got - want.want) <= want.scale / relative + least


def compare(cells, wanted, single):
    for cell, want in wanted.items():
        if cell not in cells and not agree(0, want, single):
            raise Wrong(f"{cell} is missing, want {float(want.want)!r}")
        if not agree(cells.get(cell, Fraction(0)), want, single):
            raise Wrong(f"{cell} is {float(cells[cell])!r}, want {float(want.want)!r}; {len(wanted)} cells")
    extra = set(cells) - set(wanted)
    if extra:
        raise Wrong(f"{len(extra)} cells too many: {sorted(extra)[:3]}")


def group_sums(graph, members, groups):
    """Weights and sizes of nodes summed over the groups: a tuple each, and a number each or None."""
    constraints = len(graph.weights[0]) if graph.weights else 1
    weights, sizes = [[0] * constraints for _ in range(groups)], [0] * groups
    for node, group, _ in members:
        for c in range(constraints):
            weights[group][c] += graph.weights[node][c] if graph.weights else 1
        sizes[group] += graph.sizes[node] if graph.sizes else 0
    return [tuple(w) for w in weights], sizes if graph.sizes else None


def check_output(data, plan, graph, members, names, labels, wanted):
    """Compares the quotient that was written with the cells that are wanted."""
    undirected = graph.undirected and plan.op != "first"
    text = data if plan.to == "bin" else data.decode()
    groups, own, cells, *extra = READERS[plan.to](text, undirected and plan.to == "abc")
    if undirected and plan.to != "mtx" and any(cells.get((q, p)) != value for (p, q), value in cells.items()):
        raise Wrong("the graph is undirected, but the two directions of an edge have different weights")
    if plan.to in ("abc", "tsv"):
        wanted = {(names[p], names[q]): value for (p, q), value in wanted.items()}
    elif groups != len(names):
        raise Wrong(f"{groups} groups, want {len(names)}")
    if own is not None and own != names:
        raise Wrong(f"names are {own[:6]}, want {names[:6]}")
    if plan.to == "bin" and own is None and names != [str(p + labels.base) for p in range(groups)]:
        raise Wrong(f"no names, want {names[:6]}")
    compare(cells, wanted, plan.single)
    if extra and not labels.matrix:
        want = group_sums(graph, members, groups)
        if extra[0] != want:
            raise Wrong(f"weights and sizes of groups {str(extra[0])[:200]}, want {str(want)[:200]}")


def check_figures(case, plan, graph, members, names):
    lines = case.text("figures.tsv").splitlines()
    wanted = node_figures(graph, members, len(names), plan.op)
    weights, sizes = group_sums(graph, members, len(names))
    sums = [[*(w if graph.weights else []), *([sizes[p]] if sizes else [])] for p, w in enumerate(weights)]
    if len(lines) != len(names) + 1:
        raise Wrong(f"{len(lines)} lines of figures for {len(names)} groups")
    scale = sum(abs(value) for *_, value in graph.entries) + 1
    loose = scale / 10**(6 if plan.single else 12)
    for line, name, want, more in zip(lines[1:], names, wanted, sums):
        own, size, *numbers = line.split("\t")
        if (own, int(size), [int(sum_of) for sum_of in numbers[3:]]) != (name, want[0], more):
            raise Wrong(f"figures {line!r}, want group {name} of {want[0]}, sums {more}")
        for number, right in zip(numbers[:2], want[1:3]):
            exact = right.denominator == 1 and scale < 2**53 and all(v.denominator == 1 for *_, v in graph.entries)
            exact = exact and plan.op != "mean" and not plan.single
            if abs(Fraction(float(number)) - right) > (0 if exact else loose):
                raise Wrong(f"figures {line!r}, want {float(want[1])!r} within, {float(want[2])!r} cut")
        if want[3] is not None and abs(float(numbers[2]) - float(want[3])) > 1e-5 * (1 + abs(float(want[3]))) \
                and scale < 2**53 and all(value > 0 for *_, value in graph.entries):
            raise Wrong(f"figures {line!r}, want conductance {float(want[3])!r}")


def check_report(case, graph, labels, names, wanted):
    report = json.loads(case.text("report.json"))
    found = (report["graph"]["nodes"], report["output"]["groups"], report["output"]["entries"],
             report["labels"]["unlabelled"], report["labels"]["overlapping"])
    zeros = sum(1 for value in wanted.values() if value.want == 0)
    want = (len(graph), len(names), len(wanted), len(labels.unlabelled), labels.matrix)
    if found != want and not (zeros and found[:2] == want[:2]):
        raise Wrong(f"the report says nodes, groups, entries, unlabelled, overlapping {found}, want {want}")


def check_closing(run, graph, names, wanted, plan, rare):
    """The closing line: counts must be true. One case in 40 fails where it is missing."""
    lines = [line for line in run.err.splitlines() if re.search(r" nodes?, .* wrote ", line)]
    if plan.quiet and lines:
        raise Wrong(f"--quiet, yet {lines[-1]!r}")
    if not lines:
        if rare and not plan.quiet:
            raise Wrong(f"no closing line: {run.err!r}")
        return
    plain = lines[-1].replace(",", "")
    nodes, groups = re.search(r"(\d+) nodes?\b", plain), re.search(r"wrote (?:\d+ levels? )?(\d+) groups?\b", plain)
    if not nodes or int(nodes[1]) != len(graph) or not groups or int(groups[1]) != len(names):
        raise Wrong(f"closing line {lines[-1]!r}, want {len(graph)} nodes, {len(names)} groups")
    edges = re.search(r"groups? (\d+) edges?\b", plain)
    undirected = graph.undirected and plan.op != "first"
    want = sum(1 for p, q in wanted if not undirected or p <= q)
    if edges and int(edges[1]) != want and all(value.want for value in wanted.values()):
        raise Wrong(f"closing line {lines[-1]!r}, want {want} edges written")
    edges = re.search(r"nodes? (\d+) edges?\b", plain)
    if edges and graph.edges is not None and int(edges[1]) != graph.edges:
        raise Wrong(f"closing line {lines[-1]!r}, want {graph.edges} edges read")


def check_tab(case, plan, out, names):
    if plan.names and plan.to in UNNAMED and out != "-":
        want = "".join(f"{p}\t{name}\n" for p, name in enumerate(names))
        if case.text(out + ".tab") != want:
            raise Wrong(f"{out}.tab is {case.text(out + '.tab')[:80]!r}, want {want[:80]!r}")


def quotient_case(case):
    """One graph, one file of labels, one call."""
    graph = draw_graph(case.rng)
    labels = draw_labels(case.rng, graph)
    plan = Plan(case.rng, graph, labels)
    inputs, stdin = place_inputs(case, graph, labels)
    out = case.rng.choice(["-", "q" + case.rng.choice(ENDINGS[plan.to])])
    if plan.names and plan.to in UNNAMED:    # standard output has no names
        out = "q" + ENDINGS[plan.to][0]
    form = ["--to", plan.to] if out == "-" or case.rng.random() < 0.1 else []
    argv = inputs + ["-o", out] + form + plan.options()
    run = case.run("contract", *argv, stdin=stdin)
    if graph.cancels:
        return must_refuse(run, "", "directions that cancel")
    if labels.unlabelled and plan.unlabelled == "error" and not (labels.unknown and plan.unknown == "error"):
        first = labels.minus and "2^53" not in run.err    # weights are read before labels
        return must_refuse(run, "--unlabelled" if first else "", "nodes without a label")
    if labels.unknown and plan.unknown == "error":
        return must_refuse(run, "", "labels of what is no node")
    case.accepted(run, "contract")
    if plan.single:
        single_precision(graph)
    members, names = final_groups(graph, labels, plan)
    wanted = quotient(graph, members, plan.op, plan.loops, plan.half)
    data = run.out if out == "-" else case.read(out)
    check_output(data, plan, graph, members, names, labels, wanted)
    check_tab(case, plan, out, names)
    if plan.figures:
        check_figures(case, plan, graph, members, names)
    if plan.report:
        check_report(case, graph, labels, names, wanted)
    check_closing(run, graph, names, wanted, plan, case.rng.random() < 0.025)
    if case.rng.random() < 0.1:
        plan.threads = "3"
        case.accepted(case.run("contract", *inputs, "-o", "again", "--to", plan.to, *plan.options(), stdin=stdin),
                      "contract")
        if case.read("again") != data:
            raise Wrong("three threads write other bytes")
    return None


def read_map(case, name, graph_names):
    """Groups of the nodes of a level, in the order in which they are numbered."""
    pairs = [line.split("\t") for line in case.text(name).splitlines()]
    if sorted(node for node, _ in pairs) != sorted(graph_names):
        raise Wrong(f"{name} does not list every node once")
    return dict(pairs)


def check_matching(graph, step):
    """Nodes that are paired are neighbours, and no two neighbours are left alone."""
    arcs = {(i, j) for i, j, value in graph.entries if i != j and value > 0}
    pairs = {}
    for node, name in enumerate(graph.names):
        pairs.setdefault(step[name], []).append(node)
    for pair in pairs.values():
        if len(pair) == 2 and tuple(pair) not in arcs and tuple(pair[::-1]) not in arcs \
                and all(value > 0 for *_, value in graph.entries):
            raise Wrong(f"nodes {pair} are matched and no neighbours")
    alone = {pair[0] for pair in pairs.values() if len(pair) == 1}
    left = [(i, j) for i, j in arcs if i in alone and j in alone and (j, i) in arcs]
    if left:
        raise Wrong(f"nodes {left[0]} are neighbours, and both are left alone")


def repeat_case(case):
    """--repeat: the maps must compose to the graph that is written, and matchings must be matchings."""
    graph = draw_graph(case.rng)
    how = case.rng.choice(["matching", "matching", "cluster"])
    op = case.rng.choice(["sum", "sum", "max", "min", "count"])
    name = case.write("g" + graph.ending, graph.text)
    options = graph.options + (["--from", "metis"] if graph.form == "metis" else [])
    options += [graph.direction] if graph.direction else []
    loops = case.rng.choice(["keep", "drop"])
    levels = case.rng.choice([1, 2, 3, 10])
    argv = [name, "-o", "q.mtx", "--repeat", how, "--levels", str(levels), "--loops", loops, "--combine", op]
    options += ["--seed", str(case.rng.randint(0, 9))] if how == "matching" else []
    run = case.accepted(case.run("contract", *argv, *options), "contract")
    at, count = {node: name for node, name in enumerate(graph.names)}, 0
    while case.exists(f"q.mtx.level{count + 1}.map"):
        count += 1
        step = read_map(case, f"q.mtx.level{count}.map", set(at.values()))
        sizes = {}
        for group in step.values():
            sizes[group] = sizes.get(group, 0) + 1
        if how == "matching" and max(sizes.values()) > 2:
            raise Wrong(f"level {count} puts {max(sizes.values())} nodes together")
        if how == "matching" and count == 1:
            check_matching(graph, step)
        at = {node: step[name] for node, name in at.items()}
    if count > levels:
        raise Wrong(f"{count} levels, at most {levels} were asked for")
    members = [(node, int(name) - 1 if count else node, Fraction(1)) for node, name in at.items()]
    groups, _, cells = READERS["mtx"](case.text("q.mtx"), None)
    if groups != len(set(at.values())):
        raise Wrong(f"{groups} groups, the maps have {len(set(at.values()))}")
    wanted = quotient(graph, members, op, loops, False)
    compare(cells, wanted, False)
    plan = Plan(case.rng, graph, type("None", (), {"unlabelled": [], "unknown": False, "matrix": True, "members": []}))
    plan.quiet, plan.op = False, op
    check_closing(run, graph, [None] * groups, wanted, plan, False)


def steps_case(case):
    """--repeat --levels 2 is two calls of one level through METIS files, weights of nodes included."""
    graph = metis(case.rng, "")
    name, how = case.write("g.graph", graph.text), case.rng.choice(["matching", "cluster"])
    repeat = ["--repeat", how, "--loops", "drop"]
    run = case.run("contract", name, "-o", "both.graph", *repeat, "--levels", "2")
    case.accepted(run, "contract")
    if "level 1 shrinks" in run.err:    # by less than 5 %, and there is no second one
        raise Skipped("the first level is the last")
    case.accepted(case.run("contract", name, "-o", "one.graph", *repeat, "--levels", "1"), "contract")
    case.accepted(case.run("contract", "one.graph", "-o", "two.graph", *repeat, "--levels", "1"), "contract")
    both, two = read_metis(case.text("both.graph"), None), read_metis(case.text("two.graph"), None)
    if both != two:
        raise Wrong(f"two levels at once: {str(both)[:150]}\nin two steps: {str(two)[:150]}")


def refusal_case(case):
    """Inputs and command lines that must not be taken."""
    rng = case.rng
    case.write("labels", "1\n1\n2\n")
    kind = rng.choice(["twice", "neighbour", "outputs", "minus", "sum", "weight"])
    label = ["labels"]
    if kind == "twice":
        field = rng.choice(["real", "integer"])
        case.write("g.mtx", f"%%MatrixMarket matrix coordinate {field} symmetric\n3 3 3\n2 1 4\n3 2 1\n1 2 4\n")
        return must_refuse(case.run("contract", "g.mtx", *label, "-o", "q.mtx"), "", "(2,1) and (1,2), symmetric")
    if kind == "neighbour":
        case.write("g.graph", "3 3\n2 2\n1 1 3\n2\n")
        return must_refuse(case.run("contract", "g.graph", *label, "-o", "q.mtx"), "", "a neighbour named twice")
    case.write("g.mtx", "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 2 1\n2 1 1\n3 1 2\n")
    if kind == "outputs":
        second = rng.choice(["q.mtx", "./q.mtx", case.folder + "/q.mtx"])
        run = case.run("contract", "g.mtx", *label, "-o", "q.mtx", rng.choice(["--node-output", "--report"]), second)
        must_refuse(run, "", "two outputs under one name")
        if run.status != 2:
            raise Wrong(f"exit status {run.status} for two outputs under one name, want 2")
        return None
    if kind == "minus":
        first, rest = rng.choice([("-1", ["a", "b"]), ("-1", ["1", "2"]), ("1", ["-1", "2"]), ("a", ["-1", "b"])])
        case.write("labels", "\n".join([first] + rest) + "\n")
        return must_refuse(case.run("contract", "g.mtx", *label, "-o", "q.mtx"), "--unlabelled", "the label -1")
    big = 2**53 + 1 if kind == "weight" else 2**53 - 1
    case.write("g.mtx", f"%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 1 {big}\n1 2 3\n2 3 1\n")
    run = case.run("contract", "g.mtx", *label, "-o", "q.mtx")
    return must_refuse(run, "", f"whole numbers beyond 2^53 ({kind})")


def large_case(case):
    """A graph that is large enough for several threads and every kind of row, against scipy."""
    rng = np.random.default_rng(case.rng.randrange(2**32))
    n, edges, groups = 20000, int(rng.integers(1000, 200000)), int(rng.choice([1, 30, 1000, 15000]))
    rows, columns = (n * rng.random((2, edges)) ** rng.choice([1, 4])).astype(int)    # with hubs, or without
    whole = rng.random() < 0.5
    values = rng.integers(1, 1000, edges) if whole else rng.random(edges)
    labels = rng.integers(0, groups, n)
    lines = "".join(f"{i + 1} {j + 1} {v}\n" for i, j, v in zip(rows, columns, values.tolist()))
    case.write("g.mtx", f"%%MatrixMarket matrix coordinate real general\n{n} {n} {edges}\n{lines}")
    case.write("labels", "".join(f"{p}\n" for p in labels))
    engine = case.rng.choice(["fused", "product"])
    argv = ["g.mtx", "labels", "-o", "-", "--to", "bin", "--base", "0", "--engine", engine]
    first = case.accepted(case.run("contract", *argv, "--threads", "1"), "contract")
    if case.run("contract", *argv, "--threads", "3").out != first.out:
        raise Wrong("three threads write other bytes")
    s = csr_array((np.ones(n), (labels, np.arange(n))), shape=(groups, n))
    want = (s @ csr_array((values.astype(float), (rows, columns)), shape=(n, n)) @ s.T).tocoo()
    cells = READERS["bin"](first.out, None)[2]
    for p, q, value in zip(want.row.tolist(), want.col.tolist(), want.data.tolist()):
        if abs(float(cells.pop((p, q), 0)) - value) > (0 if whole else 1e-10 * value):
            raise Wrong(f"({p}, {q}) differs from {value}")
    if cells:
        raise Wrong(f"{len(cells)} cells too many")


def make_case(case):
    draw = case.rng.random()
    if draw < 0.005:
        return large_case(case)
    if draw < 0.84:
        return quotient_case(case)
    return repeat_case(case) if draw < 0.93 else steps_case(case) if draw < 0.96 else refusal_case(case)


if __name__ == "__main__":
    sys.exit(sweep(__doc__, make_case))
