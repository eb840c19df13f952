"""Random graphs and the files that hold them, in every format that `contract` reads.

A `Graph` is what the documents say that a file means: nodes in order, their names, the entries of the matrix in the
order of the file, and the weights and sizes of nodes.
"""

import struct
import zlib
from collections import Counter
from fractions import Fraction

WORDS = ["ab", "P12345", "x_1", "é", "グラフ", "n-7", "a:b", "z#", "'q'", "N.1", "1e5", "007", "Ωmega", "c.d", "_", "k9"]


class Graph:
    def __init__(self, form, names, named):
        self.form, self.names, self.named = form, names, named
        self.cancels = False       # whether its two directions would cancel, which is refused
        self.entries = []          # (row, column, Fraction), zeros left out, in the order of the file
        self.undirected = False
        self.weights = None        # of each node a tuple, one for each constraint (METIS)
        self.sizes = None
        self.edges = None          # in METIS files, of the header
        self.file, self.options = None, []

    def __len__(self):
        return len(self.names)


def exact(text):
    """What a spelling of a number means in double precision, as a fraction."""
    return Fraction(float(text))


# Each family draws a spelling of a weight.
FAMILIES = {
    "one": lambda r: "1",
    "small": lambda r: str(r.randint(1, 9)),
    "float24": lambda r: str(2**24 + r.randint(-3, 3)),
    "int31": lambda r: str(2**31 + r.randint(-3, 3)),
    "big": lambda r: str(r.randint(2**40, 2**45)),
    "limit": lambda r: str(2**53 - r.randint(0, 2) if r.random() < 0.1 else r.randint(1, 9)),
    "tenths": lambda r: f"0.{r.randint(1, 9)}",
    "reals": lambda r: repr(r.lognormvariate(0, 3)),
    "tiny": lambda r: f"{r.randint(1, 9)}e-300" if r.random() < 0.5 else f"{r.random():.3e}",
    "signed": lambda r: str(r.randint(-5, 5)),
    "signedreals": lambda r: f"{r.gauss(0, 1):.6f}",
    "zeros": lambda r: r.choice(["0", "0.0", "-0", "2", "3.5"]),
    "odd": lambda r: r.choice(["+1", "1.", ".5", "1e5", "007", "1E-2", "+.25e+1", "00", "2.50", "1e0", "12e-1"]),
    "halves": lambda r: str(r.randint(1, 2**24)) + ".5",
    "large": lambda r: f"{r.random() + 1:.4f}e30",
}


def shape(rng, n):
    """Pairs of nodes: random, a path, a star, a clique, communities, bipartite, or nothing."""
    if n == 0:
        return []
    kind = rng.choice(["random", "random", "path", "star", "clique", "blocks", "bipartite", "none", "loops"])
    nodes = range(n)
    if kind == "path":
        return [(i, i + 1) for i in range(n - 1)]
    if kind == "star":
        return [(0, i) for i in range(1, n)]
    if kind == "clique":
        return [(i, j) for i in range(min(n, 12)) for j in range(i)]
    if kind == "blocks":
        size = rng.randint(2, 8)
        inside = [(i, j) for i in nodes for j in range(i) if i // size == j // size and rng.random() < 0.7]
        return inside + [(rng.choice(nodes), rng.choice(nodes)) for _ in range(n // 5)]
    if kind == "bipartite":
        return [(i, j) for i in range(n // 2) for j in range(n // 2, n) if rng.random() < 3 / n]
    if kind == "loops":
        return [(i, i) for i in nodes if rng.random() < 0.5]
    return [] if kind == "none" else [(rng.choice(nodes), rng.choice(nodes)) for _ in range(rng.randint(1, 4 * n))]


def draw_size(rng):
    return rng.choice([0, 1, 1, 2, 3, rng.randint(4, 12), rng.randint(4, 40), rng.randint(10, 40),
                       rng.randint(30, 150)])


def draw_names(rng, n, blanks):
    """Names that differ; with `blanks` some hold blanks, which only files with tabs can have."""
    style = rng.choice(["letters", "numbers", "from0", "gaps", "odd"] + ["blanks"] * (2 * blanks))
    if style == "letters":
        return [f"v{i}" for i in range(n)]
    if style == "numbers":
        return [str(i + 1) for i in range(n)]
    if style == "from0":
        return [str(i) for i in range(n)]
    if style == "gaps":
        return [str(i) for i in sorted(rng.sample(range(1, 3 * n + 2), n))]
    stems = [w + (" " + w if style == "blanks" and rng.random() < 0.5 else "") for w in WORDS]
    return [stems[i % len(stems)] + (str(i // len(stems)) if i >= len(stems) else "") for i in range(n)]


def finish(rng, lines, comment="#"):
    """Joins lines in one of the ways that text files have: ends of lines, comments, empty lines, a byte order mark."""
    if rng.random() < 0.2 and comment:
        lines = lines[:1] + [comment + " a comment"] + lines[1:] if rng.random() < 0.5 else [comment + "x y z"] + lines
    end = "\r\n" if rng.random() < 0.12 else "\n"
    text = end.join(lines) + (end if lines and rng.random() < 0.85 else "")
    return ("\ufeff" if rng.random() < 0.05 and comment == "#" and lines else "") + text


def sorted_pairs(rng, pairs, repeats, loops):
    """Draws orientation, repetition and order of the pairs of an edge list."""
    pairs = [p if rng.random() < 0.7 else p[::-1] for p in pairs if loops or p[0] != p[1]]
    if repeats and pairs and rng.random() < 0.5:
        pairs = pairs + [rng.choice(pairs)[::rng.choice([1, -1])] for _ in range(1 + len(pairs) // 5)]
    if rng.random() < 0.5:
        rng.shuffle(pairs)
    return pairs


def add_lines(graph, lines, both):
    """Entries of (row, column, value) lines; each stands for both directions if `both`."""
    for i, j, value in lines:
        if value:
            graph.entries.append((i, j, value))
            if both and i != j:
                graph.entries.append((j, i, value))
    graph.undirected = both


def mirror(rng, pairs, texts):
    """In one of six files each pair has its opposite, with the same weight or, in some, one that has another."""
    if rng.random() > 1 / 6:
        return pairs, texts
    cells = {pair: text for pair, text in zip(pairs, texts) if pair[::-1] not in pairs or pair[0] >= pair[1]}
    cells.update({pair[::-1]: text for pair, text in list(cells.items())})
    order = rng.sample(sorted(cells), len(cells))
    if order and rng.random() < 0.2:
        cells[order[0]] = rng.choice(texts)
    return order, [cells[pair] for pair in order]


def is_symmetric(lines):
    """Whether each line has its opposite with the same value, as often as itself."""
    arcs = Counter((i, j, value) for i, j, value in lines if value)
    return arcs == Counter({(j, i, value): times for (i, j, value), times in arcs.items()})


def add_list(graph, lines, direction):
    """A line stands for both directions, unless both are listed."""
    listed = is_symmetric(lines) and any(i != j and value for i, j, value in lines)
    add_lines(graph, lines, {"": not listed, "--directed": False, "--undirected": True}[direction])
    graph.undirected = direction != "--directed"


def add_matrix(graph, lines, direction):
    """A symmetric matrix has both directions."""
    symmetric = direction != "--directed" and is_symmetric(lines)
    add_lines(graph, lines, direction == "--undirected" and not symmetric)
    graph.undirected = symmetric or direction == "--undirected"


def declare(names):
    """Returns a dictionary of numbers that a name gets when it is first seen."""
    numbers = {}
    for name in names:
        numbers.setdefault(name, len(numbers))
    return numbers


def label_pairs(rng, direction):
    """An edge list: abc, SIF, ETC, STRING or BLAST."""
    form = rng.choice(["abc", "abc", "abc", "sif", "etc", "string", "blast"])
    n = max(draw_size(rng), form != "abc")
    tabs = rng.random() < 0.5 or form == "blast"
    names = draw_names(rng, n, tabs and form in ("abc", "blast"))
    if form == "string":    # its fields are words
        names = [f"4932.{name}" for name in names]
    pairs = sorted_pairs(rng, shape(rng, n), True, True)
    family = FAMILIES[rng.choice(list(FAMILIES))]
    texts = [family(rng) for _ in pairs]
    if form in ("abc", "sif", "etc"):
        pairs, texts = mirror(rng, pairs, texts)
    blank = "\t" if tabs else rng.choice([" ", "  "])
    lines, rows = [], []
    if form == "abc":
        plain = rng.random() < 0.15
        texts = ["1"] * len(pairs) if plain else texts
        tail = rng.choice(["", "", "", blank + "extra"]) if not plain else ""
        rows = [blank.join([names[i], names[j]] + [t] * (not plain)) + tail for (i, j), t in zip(pairs, texts)]
    elif form in ("sif", "etc"):
        texts = ["1"] * len(pairs)
        middle = ["pp"] if form == "sif" else []
        rows = [blank.join([names[i]] + middle + [names[j]]) for i, j in pairs]
    elif form == "string":
        texts = [str(rng.randint(150, 999)) for _ in pairs]
        extra = rng.random() < 0.5
        rows = ["protein1 protein2" + " experimental" * extra + " combined_score"]
        rows += [f"{names[i]} {names[j]}" + " 7" * extra + f" {t}" for (i, j), t in zip(pairs, texts)]
    else:
        texts = [f"{rng.randint(200, 9999) / 10}" for _ in pairs]
        rows = ["\t".join([names[i], names[j]] + ["9"] * 8 + ["1e-5", t]) for (i, j), t in zip(pairs, texts)]
    numbers = declare(names[v] for p in pairs for v in p)
    graph = Graph(form, list(numbers), True)
    lines = [(numbers[names[i]], numbers[names[j]], exact(t)) for (i, j), t in zip(pairs, texts)]
    if form == "string":
        add_lines(graph, lines, direction == "--undirected")
    else:
        add_list(graph, lines, direction)
    if form == "string":
        graph.text = "\n".join(rows) + "\n"
    else:
        graph.text = finish(rng, rows)
    graph.ending = {"abc": ".abc", "blast": ".m8", "string": ".txt"}.get(form, "." + form)
    if form in ("sif", "etc", "blast") or (form == "abc" and rng.random() < 0.3):
        graph.options = ["--from", form]
    return graph


def matrix_market(rng, direction):
    n = draw_size(rng)
    field = rng.choice(["real", "integer", "pattern", "real"])
    symmetry = rng.choice(["general", "general", "symmetric", "symmetric", "skew-symmetric"])
    if symmetry == "skew-symmetric" and field == "pattern":
        symmetry = "symmetric"
    pairs = sorted_pairs(rng, shape(rng, n), symmetry == "general", symmetry != "skew-symmetric")
    if symmetry != "general":    # each pair once, below the diagonal
        pairs = list(dict.fromkeys((max(p), min(p)) for p in pairs))
    whole = ["one", "small", "float24", "int31", "big", "limit", "signed"]
    family = FAMILIES[rng.choice(whole if field == "integer" else list(FAMILIES))]
    texts = ["1" if field == "pattern" else family(rng) for _ in pairs]
    if symmetry == "general":
        pairs, texts = mirror(rng, pairs, texts)
    blank = rng.choice([" ", "  ", "\t"])
    rows = [blank.join([str(i + 1), str(j + 1)] + ([] if field == "pattern" else [t]))
            for (i, j), t in zip(pairs, texts)]
    head = f"matrix coordinate {field} {symmetry}"
    rows = ["%%MatrixMarket " + (head if rng.random() < 0.8 else head.title()), f"{n} {n} {len(pairs)}"] + rows
    graph = Graph("mtx", [str(i + 1) for i in range(n)], False)
    lines = [(i, j, exact(t)) for (i, j), t in zip(pairs, texts)]
    graph.cancels = symmetry == "skew-symmetric" and direction == "--undirected"
    if symmetry == "skew-symmetric":
        for i, j, value in lines:
            add_lines(graph, [(i, j, value), (j, i, -value)], False)
    elif symmetry == "symmetric":
        add_lines(graph, lines, direction != "--directed")
    else:
        add_matrix(graph, lines, direction)
    text = finish(rng, rows[1:], "%") if rng.random() < 0.5 else "\n".join(rows[1:]) + "\n"
    graph.text, graph.ending = rows[0] + "\n" + text, rng.choice([".mtx", ".txt"])
    return graph


def adjacency(rng, n, field):
    """Symmetric lists of neighbours without loops or repeats: a dictionary of spellings for each node."""
    pairs = {(max(p), min(p)) for p in shape(rng, n) if p[0] != p[1]}
    rows = [{} for _ in range(n)]
    for i, j in sorted(pairs):
        rows[i][j] = rows[j][i] = field(rng)
    return rows, len(pairs)


def metis(rng, direction):
    n = max(1, draw_size(rng))
    weighted = rng.random() < 0.6
    family = FAMILIES[rng.choice(["small", "float24", "big", "tenths", "reals"])] if weighted else FAMILIES["one"]
    rows, edges = adjacency(rng, n, family)
    sized, constraints = rng.random() < 0.3, rng.choice([0, 0, 1, 1, 2, 3])
    graph = Graph("metis", [str(i + 1) for i in range(n)], False)
    graph.edges = edges
    weight = rng.choice([lambda: rng.randint(1, 9), lambda: 2**24 + rng.randint(0, 3), lambda: rng.randint(0, 1)])
    graph.sizes = [rng.randint(1, 9) for _ in range(n)] if sized else None
    graph.weights = [tuple(weight() for _ in range(constraints)) for _ in range(n)] if constraints else None
    form = f"{int(sized)}{int(constraints > 0)}{int(weighted)}"
    lines = []
    for v in range(n):
        fields = ([str(graph.sizes[v])] if sized else []) + [str(w) for w in (graph.weights[v] if constraints else ())]
        order = list(rows[v])
        rng.shuffle(order)
        for u in order:
            fields += [str(u + 1)] + ([rows[v][u]] if weighted else [])
            graph.entries.append((v, u, exact(rows[v][u])))
        lines.append(" ".join(fields))
    if form == "000" and rng.random() < 0.7:
        form = ""
    head = f"{n} {edges} {form.lstrip('0') if rng.random() < 0.3 else form}".rstrip()
    head += f" {constraints}" if constraints > 1 or (constraints and rng.random() < 0.3) else ""
    graph.text = ("% a comment\n" if rng.random() < 0.2 else "") + "\n".join([head] + lines) + "\n"
    graph.undirected = direction != "--directed"
    graph.ending = rng.choice([".graph", ".metis", ".txt", ""])
    return graph


def native(rng, direction):
    """mcl's text, with ids that may have gaps."""
    n = max(1, draw_size(rng))
    family = FAMILIES[rng.choice(list(FAMILIES))]
    gaps = rng.random() < 0.3
    ids = sorted(rng.sample(range(3 * n), n)) if gaps else list(range(n))
    pairs = list(dict.fromkeys(sorted_pairs(rng, shape(rng, n), False, True)))
    graph = Graph("mcl", [str(i) for i in ids], False)
    columns = {}
    for (i, j), text in zip(*mirror(rng, pairs, [family(rng) for _ in pairs])):
        columns.setdefault(i, []).append((j, text))
    text = f"(mclheader\nmcltype matrix\ndimensions {n}x{n}\n)\n"
    text += f"(mcldoms\n{' '.join(map(str, ids))} $\n)\n" if gaps else ""
    text += "(mclmatrix\nbegin\n"
    lines = []
    for i, column in columns.items():
        fields = [f"{ids[j]}:{t}" if t != "1" or rng.random() < 0.5 else f"{ids[j]}" for j, t in column]
        text += f"{ids[i]}  " + ("\n  " if rng.random() < 0.2 else " ").join(fields) + " $\n"
        lines += [(i, j, exact(t)) for j, t in column]
    add_matrix(graph, lines, direction)
    graph.text, graph.ending = text + ")\n", rng.choice([".mci", ".txt"])
    return graph


def binary(rng, direction):
    """The tools' own binary matrix, with or without values and names."""
    n = draw_size(rng)
    kind, flagged, named = rng.choice([0, 1, 2]), rng.random() < 0.5 and not direction, rng.random() < 0.5
    family = rng.choice(["small", "reals", "signedreals", "tiny", "float24", "zeros"] +
                        ["signed"] * (rng.random() < 0.1))
    family = FAMILIES[family if kind else "one"]
    cells = {}
    for i, j in sorted(set(shape(rng, n))):
        value = float(family(rng))
        value = struct.unpack("f", struct.pack("f", value))[0] if kind == 1 else value
        cells[i, j] = value
        if flagged:
            cells[j, i] = value
    order = sorted(cells)
    names = draw_names(rng, n, True) if named else [str(i + 1) for i in range(n)]
    graph = Graph("bin", names, named)
    packed = [name.encode() for name in names] if named else []
    head = b"\x89SPCSR\r\n" + struct.pack("<II4q", 1, kind | flagged << 2 | named << 3, n, n, len(order),
                                          sum(map(len, packed)))
    starts = [sum(1 for i, _ in order if i < row) for row in range(n + 1)]
    body = struct.pack(f"<{n + 1}q", *starts) + struct.pack(f"<{len(order)}i", *[j for _, j in order])
    body += struct.pack(f"<{len(order)}{'f' if kind == 1 else 'd'}", *[cells[c] for c in order]) if kind else b""
    body += struct.pack(f"<{len(packed)}i", *map(len, packed)) + b"".join(packed)
    graph.text = head + struct.pack("<II", zlib.crc32(head), 0) + body + struct.pack("<II", zlib.crc32(body), 0)
    lines = [(i, j, Fraction(cells[i, j])) for i, j in order]
    add_lines(graph, lines, direction == "--undirected" and not is_symmetric(lines))
    graph.undirected = flagged or direction == "--undirected"
    graph.ending = rng.choice([".bin", ".csr", ".dat"])
    return graph


def draw_graph(rng):
    """A random graph in a random format, and the option of direction that it is to be read with."""
    direction = rng.choice(["", "", "", "", "--directed", "--undirected"])
    make = rng.choice([label_pairs, label_pairs, matrix_market, matrix_market, metis, native, binary])
    graph = make(rng, direction)
    graph.direction = direction
    return graph
