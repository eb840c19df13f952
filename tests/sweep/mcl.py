#!/usr/bin/env python3
"""A random sweep of `mcl-gpu` against the real mcl: python3 tests/sweep/mcl.py BIN [--cases N]

The same command line runs in two folders, by `mcl` with one thread and by `mcl-gpu`; the files that they leave must be
the same byte for byte, but for the comment that names the command. What only `mcl-gpu` reads (compressed files, Matrix
Market, STRING, BLAST, METIS) or takes (a list of inflations) is compared with mcl runs on converted input. Needs mcl,
mcxload, clm and zstd.
"""

import json
import math
import os
import re
import sys

from common import Skipped, Wrong, sweep
from graphs import FAMILIES, finish, shape, sorted_pairs

INFLATIONS = ["1.2", "1.4", "1.5", "2", "2.0", "2.5", "3", "4", "6", "10", "1.1", "20"]
WEIGHTS = {
    "one": FAMILIES["one"], "small": FAMILIES["small"], "tenths": FAMILIES["tenths"], "reals": FAMILIES["reals"],
    "float24": FAMILIES["float24"], "odd": FAMILIES["odd"], "zeros": lambda r: r.choice(["0", "0.0", "2", "3.5", "1"]),
    "dyadic": lambda r: r.choice(["1", "0.5", "0.25", "2"]), "large": FAMILIES["large"],
    "small30": lambda r: f"{r.randint(1, 9)}e-30", "scores": lambda r: f"{r.randint(200, 9999) / 10}",
    "probabilities": lambda r: f"1e-{r.randint(0, 30)}",
}
SINGLE = ["gq({w})", "gt({w})", "lt({w})", "lq({w})", "ceil({w})", "floor({w})", "mul(0.3)", "add(1.5)", "add({w})",
          "pow(2)", "pow(0.5)", "power(1.5)", "scale(3)", "log(10)", "neglog(10)", "exp(2)", "abs()", "mul(2),gq({w})"]
WHOLE = ["#knn(2)", "#knn(5)", "#knnj(3)", "#ceilnb(3)", "#max()", "#min()", "#add()", "#mul()", "#arcmax()",
         "#arcsub()", "#tp()", "#rev()", "#selfrm()", "#selfmax()", "#step()", "#ils()", "#mcl(2)", "#symmcl(2)"]


class Network:
    """A graph as mcl reads it (`text`), and as mcl-gpu does (`own`), with the options of each."""

    def __init__(self, form, text, options):
        self.form, self.text, self.options = form, text, list(options)
        self.own, self.own_options, self.ending = text, list(options), "." + form
        self.gaps = self.matrix = False


def draw_pairs(rng):
    n = rng.choice([1, 2, 3, 6, rng.randint(4, 30), rng.randint(10, 80), rng.randint(30, 300)])
    pairs = shape(rng, n) or [(0, n - 1)]
    if rng.random() < 0.3:    # several shapes beside each other
        more = shape(rng, rng.randint(1, 40))
        pairs, n = pairs + [(n + i, n + j) for i, j in more], n + 40
    family = WEIGHTS[rng.choice(list(WEIGHTS))]
    return n, sorted_pairs(rng, pairs, True, True) or [(0, 0)], family


def word(rng):
    """A way to call nodes."""
    return rng.choice([lambda v: f"v{v}", lambda v: f"P{v:05d}", lambda v: str(v), lambda v: f"é{v}_x",
                       lambda v: f"{v}#"])


def abc(rng):
    _, pairs, family = draw_pairs(rng)
    name, tabs = word(rng), rng.random() < 0.5
    blank = "\t" if tabs else rng.choice([" ", "  "])
    if tabs and rng.random() < 0.3:
        name = lambda v: f"node {v}"
    plain, extra = rng.random() < 0.15, rng.random() < 0.1
    rows = [blank.join([name(i), name(j)] + ([] if plain else [family(rng)] + ["more"] * extra)) for i, j in pairs]
    text = finish(rng, rows).lstrip("\ufeff")
    return Network("abc", text.replace("\r\n", "\n") if tabs else text, ["--abc"])


def label_lists(rng):
    """SIF and ETC."""
    form = rng.choice(["sif", "etc"])
    _, pairs, family = draw_pairs(rng)
    name, values = word(rng), rng.random() < 0.4
    lines = {}
    for i, j in pairs:
        lines.setdefault(i, []).append(name(j) + (":" + family(rng) if values else ""))
    blank = rng.choice(["\t", " "])
    rows = [blank.join([name(i)] + ["pp"] * (form == "sif") + targets) for i, targets in lines.items()]
    return Network(form, "\n".join(rows) + "\n", ["--" + form] + ["--expect-values"] * values)


def columns_text(n, ids, columns, rng):
    text = f"(mclheader\nmcltype matrix\ndimensions {n}x{n}\n)\n"
    if ids != list(range(n)):
        text += f"(mcldoms\n{' '.join(map(str, ids))} $\n)\n"
    text += "(mclmatrix\nbegin\n"
    for i in sorted(columns):
        column = sorted(columns[i].items())
        fields = [f"{ids[j]}:{w}" if w != "1" or rng.random() < 0.5 else f"{ids[j]}" for j, w in column]
        text += f"{ids[i]} " + ("\n   " if rng.random() < 0.2 else " ").join(fields) + " $\n"
    return text + ")\n"


def native(rng):
    n, pairs, family = draw_pairs(rng)
    ids = sorted(rng.sample(range(3 * n), n)) if rng.random() < 0.3 else list(range(n))
    columns, symmetric = {}, rng.random() < 0.7
    for i, j in pairs:
        columns.setdefault(i, {})[j] = weight = family(rng)
        if symmetric:
            columns.setdefault(j, {})[i] = weight
    network = Network("mci", columns_text(n, ids, columns, rng), [])
    network.gaps, network.matrix = ids != list(range(n)), True
    if rng.random() < 0.3:
        network.tab = "".join(f"{v}\tname {v}\n" for v in ids if rng.random() < 0.97)
        network.options += ["-use-tab", "names.tab"]
        network.own_options = list(network.options)
    return network


def matrix_market(rng):
    """Entry (i, j) is an arc from j to i: a column of mcl's matrix is a column here."""
    n, pairs, family = draw_pairs(rng)
    symmetric, field = rng.random() < 0.6, rng.choice(["real", "pattern", "real"])
    pairs = list(dict.fromkeys((max(p), min(p)) if symmetric else p for p in pairs))
    columns, rows = {}, []
    for i, j in pairs:
        weight = "1" if field == "pattern" else family(rng)
        rows.append(f"{i + 1} {j + 1}" + ("" if field == "pattern" else " " + weight))
        columns.setdefault(j, {})[i] = weight
        if symmetric:
            columns.setdefault(i, {})[j] = weight
    network = Network("mci", columns_text(n, list(range(n)), columns, rng), [])
    head = f"%%MatrixMarket matrix coordinate {field} {'symmetric' if symmetric else 'general'}\n"
    network.own, network.ending, network.matrix = head + "\n".join([f"{n} {n} {len(rows)}"] + rows) + "\n", ".mtx", True
    return network


def metis(rng):
    n, pairs, _ = draw_pairs(rng)
    weighted = rng.random() < 0.6
    edges = sorted({(max(p), min(p)) for p in pairs if p[0] != p[1]})
    columns = {v: {} for v in range(n)}
    for i, j in edges:
        columns[i][j] = columns[j][i] = str(rng.randint(1, 9)) if weighted else "1"
    lines = [" ".join(f"{u + 1} {w}" if weighted else f"{u + 1}" for u, w in columns[v].items()) for v in range(n)]
    network = Network("mci", columns_text(n, list(range(n)), columns, rng), [])
    network.own = "\n".join([f"{n} {len(edges)}" + " 001" * weighted] + lines) + "\n"
    network.ending, network.matrix = rng.choice([".graph", ".metis"] + [".txt"] * (len(edges) > 2)), True
    return network


def string_links(rng):
    _, pairs, _ = draw_pairs(rng)
    least = rng.choice([0, 0, 400, 700])
    lines = [(f"9.{i}", f"9.{j}", rng.randint(150, 999)) for i, j in pairs]
    lines += [(b, a, w) for a, b, w in lines]
    kept = [line for line in lines if line[2] >= least]
    if not kept:
        raise Skipped("no pair has the least score")
    network = Network("abc", "".join(f"{a} {b} {w}\n" for a, b, w in kept), ["--abc"])
    network.own = "protein1 protein2 combined_score\n" + "".join(f"{a} {b} {w}\n" for a, b, w in lines)
    network.ending, network.own_options = ".txt", ["--min-score", str(least)] if least else []
    return network


def blast(rng):
    _, pairs, _ = draw_pairs(rng)
    score = rng.choice(["bits", "evalue", "identity"])
    rows, lines = [], []
    for i, j in pairs:
        identity, bits = f"{rng.randint(200, 1000) / 10}", f"{rng.randint(200, 9999) / 10}"
        evalue = rng.choice(["0.0", f"{rng.randint(1, 9)}e-{rng.randint(3, 230)}", "0.5", "3.2"])
        rows.append("\t".join([f"q{i}", f"q{j}", identity] + ["9"] * 7 + [evalue, bits]))
        e = float(evalue)
        negated = 200.0 if e == 0 else min(200.0, max(0.0, -math.log10(e)))
        lines.append(f"q{i}\tq{j}\t" + {"bits": bits, "identity": identity, "evalue": repr(negated)}[score])
    network = Network("abc", "\n".join(lines) + "\n", ["--abc"])
    network.own, network.own_options, network.ending = "\n".join(rows) + "\n", ["--blast", score], ".m8"
    return network


def clustering_options(rng, network):
    """Options that both tools take."""
    made = []
    for chance, draw in [
            (0.15, lambda: ["-pi", rng.choice(["0.8", "1.5", "2"])]),
            (0.1, lambda: ["-c", rng.choice(["0.5", "2", "3"])]),
            (0.15, lambda: ["-scheme", str(rng.randint(1, 7))]), (0.03, lambda: ["-skid", str(rng.randint(1, 7))]),
            (0.08, lambda: ["-P", rng.choice(["100", "1000", "50"])]),
            (0.05, lambda: ["-p", rng.choice(["0.01", "0.001"])]),
            (0.1, lambda: ["-S", rng.choice(["3", "10", "30"])]), (0.1, lambda: ["-R", rng.choice(["5", "20", "60"])]),
            (0.05, lambda: ["-pct", rng.choice(["50", "95"])]), (0.05, lambda: ["-resource", rng.choice(["5", "50"])]),
            (0.15, lambda: ["-overlap", rng.choice(["keep", "split", "cut"])]),
            (0.1, lambda: ["-force-connected", "y"]),
            (0.12, lambda: ["-sort", rng.choice(["size", "lex", "none", "revsize"])]),
            (0.1, lambda: rng.choice([["--discard-loops=n"], ["-discard-loops", "n"]])),
            (0.03, lambda: ["--sum-loops"]), (0.03, lambda: ["--degree-adjust"]), (0.03, lambda: ["-dae", "0.7"]),
            (0.04, lambda: ["-l", str(rng.randint(1, 4)), "-i", "1.3"]), (0.05, lambda: ["-L", str(rng.randint(1, 9))]),
            (0.03, lambda: ["-if", "1.7"]), (0.03, lambda: ["-sparse", rng.choice(["1", "100"])]),
            (0.05, lambda: ["-check-connected", "y"]), (0.03, lambda: ["--i3"])]:
        if rng.random() < chance:
            made += draw()
    number = rng.choice(["2", "0.5", "300", "1", "5"])
    if rng.random() < 0.2:
        single = rng.choice(SINGLE).format(w=number)
        made += ["-tf", rng.choice([single, rng.choice(WHOLE), single + "," + rng.choice(WHOLE)])]
    if network.form == "abc" and rng.random() < 0.12:
        made += rng.choice([["-abc-tf", rng.choice(SINGLE).format(w=number)], ["--abc-neg-log10"], ["--abc-neg-log"]])
    return made


def output_options(rng):
    made = []
    for chance, draw in [
            (0.1, lambda: ["-write-graph", "graph.out"]), (0.1, lambda: ["-write-graphx", "graphx.out"]),
            (0.05, lambda: ["-write-expanded", "expanded.out"]), (0.06, lambda: ["--write-limit"]),
            (0.08, lambda: ["-dump", rng.choice(["ite", "cls", "ite,cls"])]), (0.03, lambda: ["-dump-interval", "1:3"]),
            (0.03, lambda: ["-dump-stem", "stem"]), (0.05, lambda: ["--write-binary"]),
            (0.05, lambda: ["-aa", ".suffix"]), (0.05, lambda: ["-ap", rng.choice(["pre", "x=", "a.=."])]),
            (0.03, lambda: ["-odir", "sub"]), (0.03, lambda: ["--d"])]:
        if rng.random() < chance:
            made += draw()
    return made


def without_command(data):
    """A file without the comment that names the command."""
    return re.sub(rb"(?m)^# cline: .*\n", b"", data)


def left_in(case, folder):
    """The files that a run left, below its folder, but for its inputs."""
    top = os.path.join(case.folder, folder)
    found = {}
    for place, _, names in os.walk(top):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), top)
            if not path.startswith("in.") and path not in ("names.tab", "report.json", "--rags"):
                with open(os.path.join(top, path), "rb") as file:
                    found[path] = without_command(file.read())
    return found


def difference(name, own, want):
    at = next((k for k, (a, b) in enumerate(zip(own, want)) if a != b), min(len(own), len(want)))
    return f"{name} differs at byte {at} of {len(want)}: {own[at - 20 if at > 20 else 0:at + 60]!r}\n" \
           f"mcl wrote {want[at - 20 if at > 20 else 0:at + 60]!r}"


def compare_files(own, want):
    if set(own) != set(want):
        raise Wrong(f"files {sorted(own)}, mcl leaves {sorted(want)}")
    for name, data in want.items():
        if own[name] != data:
            raise Wrong(difference(name, own[name], data))


def log_rows(err, entries):
    """Iterations, their chaos, homogeneity and `entries`, and the lines of marks and counts, of a log."""
    line = r"(?m)^ *(\d+) +[ .]*? (-?[\d.]+) +[\d.]+ ([\d.]+/\S+) ([\d.]+ [\d.]+ [\d.]+) "
    rows = [list(row) for row in re.findall(line, err)]
    for row in rows:
        row[1] = row[1].lstrip("-") if float(row[1]) == 0 else row[1]
        row[3] = row[3] if entries else ""
    return rows + re.findall(r"(?m)jury pruning marks.*|\d+ clusters found", err)


def place(case, network, packing):
    """Writes the inputs of both runs; returns the name of each."""
    for folder in ("a", "b"):
        os.makedirs(os.path.join(case.folder, folder, "sub"))
    case.write("a/in" + "." + network.form, network.text)
    if getattr(network, "tab", None):
        case.write("a/names.tab", network.tab)
        case.write("b/names.tab", network.tab)
    plain = network.own == network.text and network.matrix and ":0" not in network.text
    if plain and case.rng.random() < 0.2:    # mcl's binary form
        done = case.run("mcx", "convert", "--write-binary", "in.mci", "in.mcb", inside="a")
        path = os.path.join(case.folder, "a", "in.mcb")
        if done.status == 0 and os.path.exists(path):
            network.own = case.read("a/in.mcb")
            case.write("a/in.mci", network.own)
    return "in." + network.form, case.write("b/in" + network.ending, network.own, packing)[2:]


def cluster_members(data):
    """The clusters of a file of labels or of a native matrix."""
    text = data.decode()
    if "(mclmatrix" not in text:
        return [line.split("\t") for line in text.splitlines()]
    columns = text.split("(mclmatrix\nbegin\n")[1].rsplit(")", 1)[0].split("$")[:-1]
    return [column.split()[1:] for column in columns]


def check_report(case, data):
    """What the report says of the clustering must be what the file holds."""
    report = json.loads(case.text("b/report.json"))
    run, clusters = report["runs"][-1], cluster_members(data)
    sizes = [len(cluster) for cluster in clusters]
    members = [node for cluster in clusters for node in cluster]
    found = (report["input"]["nodes"], run["clusters"], run["largest"], run["singletons"])
    want = (len(set(members)), len(sizes), max(sizes, default=0), sizes.count(1))
    if found != want:
        raise Wrong(f"the report says nodes, clusters, largest, singletons {found}, the file has {want}")


def check_closing(run, data):
    """The closing line, where there is one: its numbers of nodes and clusters must be true."""
    line = next((line for line in run.err.splitlines() if line.startswith("mcl-gpu: read ")), "").replace(",", "")
    clusters = cluster_members(data)
    for word, want in (("nodes?", len({node for cluster in clusters for node in cluster})),
                       ("clusters?", len(clusters))):
        found = re.search(rf"(\d+) {word}\b", line)
        if found and int(found[1]) != want:
            raise Wrong(f"closing line {line!r}, want {want} {word}")


def several_inflations(case, names, network, options):
    """-I a,b,c writes what each inflation would by itself."""
    list_of = case.rng.sample(["1.4", "2", "3", "4.5", "6", "10"], case.rng.randint(2, 3))
    run = case.run("mcl-gpu", names[1], *network.own_options, *options, "-I", ",".join(list_of), "-o", "c", inside="b")
    case.accepted(run, "mcl-gpu")
    want = {}
    for inflation in list_of:
        call = [names[0], *network.options, *options, "-te", "1", "-I", inflation]
        suffix = case.run("mcl", *call, "-ax", inside="a").out.decode().strip()
        done = case.run("mcl", *call, "-o", "c." + suffix, inside="a")
        if done.status:
            raise Skipped("mcl failed")
    want = left_in(case, "a")
    compare_files(left_in(case, "b"), want)


def plain_run(case, names, network, options, stdin):
    """One clustering by each tool."""
    rng = case.rng
    out = rng.choice(["clusters", "clusters", "-", None])
    options += ["-I", rng.choice(INFLATIONS)] if rng.random() < 0.8 else []
    options += output_options(rng)
    options += ["-o", out] if out else []
    extra = ["--report", "report.json"] if rng.random() < 0.2 else []
    extra += ["-te", rng.choice(["1", "2"])] if rng.random() < 0.5 else []
    given = [None, None]
    if stdin:
        given = [case.read("a/" + names[0]), case.read("b/" + names[1])]
        names = ("-", "-")
    own = case.run("mcl-gpu", names[1], *network.own_options, *options, *extra, stdin=given[1], inside="b")
    case.accepted(own, "mcl-gpu")
    want = case.run("mcl", names[0], *network.options, *options, "-te", "1", stdin=given[0], inside="a")
    if want.status:
        raise Skipped("mcl failed" + re.sub(r"[^a-z ]+", " ", want.err[-60:]))
    own_files, want_files = left_in(case, "b"), left_in(case, "a")
    if names[0] != names[1]:    # names that are made have that of the input
        own_files = {path.replace(names[1], names[0]): data for path, data in own_files.items()}
    compare_files(own_files, want_files)
    if without_command(own.out) != without_command(want.out):
        raise Wrong(difference("standard output", without_command(own.out), without_command(want.out)))
    said = " ".join(options)    # dumps and #mcl() break mcl's rows
    inner = any(word in said for word in ("-dump", "mcl("))
    tiny = any(word in network.text + said for word in ("e-", "-I 20", "-I 10"))    # mcl counts what f32 rounds to 0
    mine, others = log_rows(own.err, not tiny), log_rows(want.err, not tiny)
    if not inner and mine != others:
        pair = next(((a, b) for a, b in zip(mine, others) if a != b), (mine[-2:], others[-2:]))
        raise Wrong(f"the log says {pair[0]}\nthat of mcl {pair[1]}")
    data = own.out if out == "-" else own_files.get("clusters")
    if data is not None and "--write-binary" not in options:
        check_closing(own, data)
        if "--report" in extra:
            check_report(case, data)


def make_case(case):
    rng = case.rng
    make = rng.choice([abc, abc, abc, label_lists, native, native, matrix_market, string_links, blast, metis])
    network = make(rng)
    names = place(case, network, rng.choice(["", "", "", ".gz", ".zst"]))
    options = clustering_options(rng, network)
    if network.gaps and "-R" in options:
        raise Skipped("-R and ids with gaps")
    stdin = rng.random() < 0.15 and "-force-connected" not in options and "-check-connected" not in options
    if rng.random() < 0.1 and "-force-connected" not in options:
        several_inflations(case, names, network, options)
    else:
        plain_run(case, names, network, options, stdin)


if __name__ == "__main__":
    sys.exit(sweep(__doc__, make_case))
