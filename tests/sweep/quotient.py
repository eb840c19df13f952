"""Random labels in every kind of label file, and the reference: the quotient of a graph by them."""

import re
from collections import namedtuple
from fractions import Fraction

from graphs import finish

NONE = ["-1", "-1", "-1", "NA", "nan", "NaN"]    # labels that mean that a node has none
Value = namedtuple("Value", "want scale whole")    # a cell; the sum of its absolute terms; whether all are whole


class Labels:
    """Who is in which group, and what the groups are called."""

    def __init__(self, kind):
        self.kind = kind
        self.members = []          # (node, group, weight), each once
        self.groups = []           # names, in order; empty groups included
        self.named = False         # whether labels are names
        self.unlabelled = []       # nodes without a label, in order
        self.minus = False         # whether the file says -1 of a node
        self.unknown = False       # whether it labels what is no node
        self.matrix = False        # whether nodes overlap or have weights
        self.file, self.options = None, []


def number_groups(labels, given, base):
    """Groups of (node or None, label, weight) lines, as the documents number them."""
    if labels.named:
        order = list(dict.fromkeys(name for _, name, _ in given))
        at = {name: p for p, name in enumerate(order)}
    else:
        last = max((int(name) for _, name, _ in given), default=base - 1)
        order = [str(p) for p in range(base, last + 1)]
        at = {str(p): p - base for p in range(base, last + 1)}
    labels.groups = order
    seen = {}
    for node, name, weight in given:
        if node is not None:
            seen.setdefault((node, at[name]), weight)
    labels.members = [(node, group, weight) for (node, group), weight in seen.items()]


def draw_label(rng, named, base, groups):
    p = rng.randrange(groups)
    return ["red", "blue", "x y", "Ä", "g#1", "7up", "a:b", "tail", "omega", "k"][p % 10] + str(p // 10) if named \
        else str(p + base)


def list_numbers(graph):
    """What the lines of a list mean: nodes, None for numbers that are no node; or None if they mean nothing."""
    numbered = graph.names and all(re.fullmatch("0|[1-9][0-9]*", name) for name in graph.names)
    if not graph.named or (graph.form == "bin" and not numbered):
        return list(range(len(graph)))
    if not numbered:
        return None
    numbers = {int(name): v for v, name in enumerate(graph.names)}
    return [numbers.get(k) for k in range(0 if 0 in numbers else 1, max(numbers) + 1)]


def draw_list(rng, graph, labels, base, groups, lines):
    rows, given = [], []
    for node in lines:
        label = draw_label(rng, labels.named, base, groups).replace(" ", "_")
        if node is not None and rng.random() < labels.gap:
            label, labels.minus = rng.choice(NONE), True
        else:
            given.append((node, label, 1))
        rows.append(label)
    number_groups(labels, given, base)
    return rows


def draw_pairs(rng, graph, labels, base, groups):
    rows, given = [], []
    weighted, overlap = rng.random() < 0.2, rng.random() < 0.2
    tab = "\t" if rng.random() < 0.6 or labels.named or any(" " in name for name in graph.names) else " "
    order = list(range(len(graph)))
    rng.shuffle(order)
    for node in order:
        if rng.random() < labels.gap:
            if rng.random() < 0.5:
                rows.append(graph.names[node] + tab + rng.choice(NONE))
                labels.minus = True
            continue
        for label in {draw_label(rng, labels.named, base, groups) for _ in range(rng.randint(1, 3) if overlap else 1)}:
            weight = rng.choice(["1", "0.5", "2", "0.25", "0.1"]) if weighted else "1"
            rows.append(graph.names[node] + tab + label + (tab + weight if weighted else ""))
            given.append((node, label, Fraction(float(weight))))
    if rng.random() < 0.1:
        label = draw_label(rng, labels.named, base, groups)
        rows.append(f"{10 * len(graph) + 77}" + tab + label + (tab + "1" if weighted else ""))
        labels.unknown = True
    if weighted or overlap:
        labels.options = ["--labels", "pairs"]
    number_groups(labels, given, base)
    return rows


def draw_clusters(rng, graph, labels, groups):
    """A cluster a line, as mcl writes them; a node may be in several."""
    overlap = rng.random() < 0.2
    clusters = [[] for _ in range(groups)]
    for node in range(len(graph)):
        if rng.random() >= labels.gap:
            for group in {rng.randrange(groups) for _ in range(rng.randint(1, 3) if overlap else 1)}:
                clusters[group].append(node)
    clusters = [cluster for cluster in clusters if cluster]
    labels.groups = [str(p + labels.base) for p in range(len(clusters))]
    labels.members = [(node, p, Fraction(1)) for p, cluster in enumerate(clusters) for node in cluster]
    tab = "\t" if rng.random() < 0.7 or any(" " in name for name in graph.names) else " "
    rows = [tab.join(graph.names[node] for node in cluster) for cluster in clusters]
    if rng.random() < 0.05 and rows:
        rows[-1] += tab + str(10 * len(graph) + 77)
        labels.unknown = True
    return rows


def draw_matrix(rng, graph, labels, groups):
    """A native matrix with a column a group."""
    weighted = rng.random() < 0.3
    columns = [[] for _ in range(groups)]
    for node in range(len(graph)):
        if rng.random() >= labels.gap:
            for group in {rng.randrange(groups) for _ in range(2 if weighted else 1)}:
                weight = rng.choice(["0.5", "2", "0.25"]) if weighted else ""
                columns[group].append((node, weight))
                labels.members.append((node, group, Fraction(weight) if weight else Fraction(1)))
    labels.groups = [str(p + labels.base) for p in range(groups)]
    ids = graph.names if graph.form == "mcl" else [str(v) for v in range(len(graph))]
    domain = f"(mclrows\n{' '.join(ids)} $\n)\n" if graph.form == "mcl" else ""
    text = f"(mclheader\nmcltype matrix\ndimensions {len(graph)}x{groups}\n)\n{domain}(mclmatrix\nbegin\n"
    for p, column in enumerate(columns):
        text += f"{p} " + " ".join(ids[v] + (":" + w if w else "") for v, w in column) + " $\n"
    return text + ")\n"


def guessed(rows, graph, labels):
    """The kind that the documents say a file without --labels is read as."""
    names = set(graph.names)
    fields = [row.split("\t") if "\t" in row else [row] if row in names else row.split() for row in rows]
    nodes = [field for row in fields for field in row]
    clusters = all(field in names for field in nodes) and len(set(nodes)) == len(nodes)
    if all(len(row) == 1 for row in fields):
        return "clusters" if graph.named and clusters else "list"
    if all(len(row) == 2 for row in fields):
        return "clusters" if clusters else "pairs"
    return "clusters"


def draw_labels(rng, graph):
    """A random file of labels for a graph; its `text`, and what it means."""
    n = len(graph)
    kind = rng.choice(["list", "pairs", "pairs", "clusters", "mcl"])
    lines = list_numbers(graph)
    if kind == "list" and lines is None:
        kind = "pairs"
    if kind == "mcl" and (n == 0 or graph.named):    # ids mean nothing where nodes have names
        kind = "clusters"
    labels = Labels(kind)
    labels.base = rng.choice([0, 1, 1]) if graph.form != "bin" or graph.named else 1
    labels.named = kind in ("list", "pairs") and rng.random() < 0.4
    labels.gap = rng.choice([0, 0, 0, 0.1, 0.5])
    groups = rng.choice([1, 2, max(1, n // 3), max(1, n // 3), max(1, n), n + 3])
    if kind == "list":
        rows = draw_list(rng, graph, labels, labels.base, groups, lines)
    elif kind == "pairs":
        rows = draw_pairs(rng, graph, labels, labels.base, groups)
    elif kind == "clusters":
        rows = draw_clusters(rng, graph, labels, groups)
    if kind == "mcl":
        labels.text = draw_matrix(rng, graph, labels, groups)
    else:
        labels.text = finish(rng, rows)
        if guessed(rows, graph, labels) != kind or rng.random() < 0.2:
            labels.options = ["--labels", kind]
    labels.options += ["--base", "0"] if labels.base == 0 else []
    labels.named = labels.named and bool(labels.groups)    # a file that says nothing has no names
    found = {node for node, _, _ in labels.members}
    labels.unlabelled = [v for v in range(n) if v not in found]
    labels.matrix = len(labels.members) > len(found) or any(weight != 1 for _, _, weight in labels.members)
    return labels


def combine_cell(terms, op, half):
    """Combines (row, column, position, value, weight of memberships) terms of one cell; `half` halves a loop."""
    values = [value for _, _, _, value, _ in terms]
    whole = all(v.denominator == 1 for v in values) and all(w.denominator == 1 for *_, w in terms)
    scale = sum(abs(value * weight) for *_, value, weight in terms)
    if op == "sum":
        want = sum(value * weight for *_, value, weight in terms)
        return Value(want / 2 if half else want, scale, whole)
    if op == "count":
        return Value(Fraction(len(terms), 2 if half else 1), len(terms), True)
    if op == "mean":
        return Value(sum(values) / len(values), sum(map(abs, values)) / len(values), False)
    want = {"max": max, "min": min}[op](values) if op != "first" else min(terms)[3]
    return Value(want, abs(want), True)


def quotient(graph, members, op, loops, half):
    """The cells of the quotient: a dictionary of (group, group) -> Value."""
    groups_of = {}
    for node, group, weight in members:
        groups_of.setdefault(node, []).append((group, weight))
    cells = {}
    for at, (i, j, value) in enumerate(graph.entries):
        for p, weight_p in groups_of.get(i, ()):
            for q, weight_q in groups_of.get(j, ()):
                if (loops == "drop" and p == q) or (loops == "only" and p != q):
                    continue
                cells.setdefault((p, q), []).append((i, j, at, value, weight_p * weight_q))
    cells = {cell: combine_cell(terms, op, half and cell[0] == cell[1]) for cell, terms in cells.items()}
    whole = all(v.denominator == 1 for *_, v in graph.entries) and all(w.denominator == 1 for *_, w in members)
    return {cell: value if whole or value.scale <= 2**53 else value._replace(whole=False)
            for cell, value in cells.items()}


def combined_entries(graph, op):
    """The graph itself with repeated edges combined: (row, column) -> fraction."""
    cells = {}
    for at, (i, j, value) in enumerate(graph.entries):
        cells.setdefault((i, j), []).append((i, j, at, value, Fraction(1)))
    return {cell: (Fraction(len(t)) if op == "count" else combine_cell(t, op, False).want) for cell, t in cells.items()}


def node_figures(graph, members, groups, op):
    """(size, within, cut, conductance or None where it has no meaning) of each group."""
    group_of = {node: group for node, group, _ in members}
    size, within, cut = [0] * groups, [Fraction(0)] * groups, [Fraction(0)] * groups
    for group in group_of.values():
        size[group] += 1
    for (i, j), value in combined_entries(graph, op).items():
        if i in group_of and j in group_of:
            p = group_of[i]
            if p == group_of[j]:
                within[p] += value
            else:
                cut[p] += value
    total = sum(within) + sum(cut)
    figures = []
    for p in range(groups):
        volume = within[p] + cut[p]
        least = min(volume, total - volume)
        figures.append((size[p], within[p], cut[p], cut[p] / least if least > 0 else None))
    return figures
