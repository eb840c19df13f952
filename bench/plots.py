"""Draws docs/plots/*.svg with matplotlib: how many times as fast every measured case is, one picture an operation.

usage: python3 -B bench/plots.py [--output DIR]                    the pictures of docs/performance.md
       python3 -B bench/plots.py --check                           draw nothing; status 1 where one is not up to date
       python3 -B bench/plots.py [--output DIR] --papers RESULT... figures of papers on SpMM (plot_papers.py)

A picture of the first kind ends with a digest of the numbers that it shows, by which --check works without matplotlib.
"""
import glob
import hashlib
import io
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tables.cases import all_cases, grouped  # noqa: E402
from tables.common import ROOT, load  # noqa: E402
from tables.compact import place_in_short  # noqa: E402
from tables.gnn import gnn_runs  # noqa: E402
from tables.survey import all_rows, panel_of  # noqa: E402

GREY = "#7a7a7a"  # text and axes, readable on white and on black
COLORS = ("#3987d6", "#e07b2a", "#2fa05a", "#d24b5a", "#8f6bd0", "#a8862b", "#2ba3a3", "#c45aa5")
TITLES = {"markov": "Markov clustering: mcl's time over mcl-gpu's",
          "spgemm": "Sparse × sparse: a peer's time over ours",
          "spmm": "Sparse × dense: a peer's time over ours", "contract": "Contraction: a peer's time over ours",
          "gnn": "An epoch of training: PyTorch's time over ours"}
WIDE, MOST = 160, 5  # cases and panels in a row


def digest(cases):
    shown = [[c.group, c.place, c.name, f"{c.ours:.4g}", {p: f"{t:.4g}" for p, t in c.peers.items()}] for c in cases]
    return hashlib.sha256(json.dumps([1, shown]).encode()).hexdigest()[:16]


def pyplot():
    """matplotlib.pyplot, set to write the same bytes each time; None where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "plots", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
        "font.sans-serif": ["DejaVu Sans"], "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY,
        "xtick.color": GREY, "ytick.color": GREY, "axes.spines.top": False, "axes.spines.right": False,
        "legend.frameon": False, "axes.prop_cycle": matplotlib.cycler(color=COLORS)})
    from matplotlib import pyplot as plt
    return plt


def one_decimal(match):
    return f"{float(match[0]):.1f}".removesuffix(".0")


def smaller(svg):
    """The same picture in a third of the bytes: what dots share stands once, short names, numbers with one decimal."""
    def shared(match):
        styles = set(re.findall(r'style="[^"]*"', match[2]))
        if len(styles) != 1:
            return match[0]
        return match[1][:-1] + " " + styles.pop() + ">" + re.sub(r' style="[^"]*"', "", match[2])

    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"(<g[^>]*>)((?:\s*<use [^>]*/>)+)", shared, svg)
    for number, name in enumerate(dict.fromkeys(re.findall(r'id="([mp][0-9a-f]{10})"', svg))):
        svg = svg.replace(name, f"{name[0]}{number}")
    svg = svg.replace("xlink:href", "href").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    styles = {style: f"s{i}" for i, style in enumerate(dict.fromkeys(re.findall(r' style="([^"]*)"', svg)))}
    svg = re.sub(r' style="([^"]*)"', lambda m: f' class="{styles[m[1]]}"', svg)
    rules = "".join(f".{name}{{{style}}}" for style, name in styles.items())
    svg = svg.replace("</style>", rules + "</style>", 1)
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"-?\d+\.\d{2,}", one_decimal, tag[0]), svg)
    return re.sub(r"\n\s*", "\n", svg)


def save(plt, figure, path, mark=""):
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    with open(path, "w") as file:
        file.write(smaller(text.getvalue()) + (f"<!-- data {mark} -->\n" if mark else ""))
    print(path)


def rows_of_panels(groups):
    """The groups in rows of up to WIDE cases and MOST panels."""
    rows, used = [[]], 0
    for key, cases in groups.items():
        if rows[-1] and (used + len(cases) > WIDE or len(rows[-1]) == MOST):
            rows, used = rows + [[]], 0
        rows[-1].append((key, cases))
        used += len(cases)
    return rows


def draw_panel(panel, key, cases, colors):
    """Cases in the order of their ratio to the strongest peer, a dot a peer, that of the strongest filled."""
    cases = sorted(cases, key=lambda c: c.ratio)
    for peer, color in colors.items():
        ran = [(x, c.peers[peer] / c.ours, peer == c.strongest) for x, c in enumerate(cases) if peer in c.peers]
        for strongest in (False, True):
            at = [(x, y) for x, y, best in ran if best == strongest]
            if at:
                panel.plot(*zip(*at), linestyle="none", marker="o", markersize=3.5 if strongest else 2.5, color=color,
                           markerfacecolor=color if strongest else "none", markeredgewidth=0.8)
    panel.axhline(1, color=GREY, linewidth=0.8, linestyle="--")
    panel.set_xlim(-0.8, len(cases) - 0.2)
    panel.set_xticks([])
    panel.set_xlabel(f"{len(cases)} cases" if len(cases) > 1 else "1 case")
    place = place_in_short(key[1]).replace(" threads", " thr.")
    panel.set_title(f"{key[0]}\n{place}", fontsize=8)


def draw_operation(plt, operation, cases, path):
    peers = list(dict.fromkeys(p for c in cases for p in c.peers))
    colors = {p: COLORS[i % len(COLORS)] for i, p in enumerate(peers)}
    rows = rows_of_panels({k: g for k, g in grouped(cases).items() if len(g) > 1})
    figure = plt.figure(figsize=(9.2, 0.9 + 2.5 * len(rows)), layout="constrained")
    ratios = [t / c.ours for c in cases for t in c.peers.values()]
    low, high = min(0.8, min(ratios) / 1.2), max(ratios) * 1.2
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, row in zip(parts, rows):
        panels = part.subplots(1, len(row), sharey=True, squeeze=False,
                               width_ratios=[max(12, len(g)) for _, g in row])[0]
        for panel, (key, found) in zip(panels, row):
            draw_panel(panel, key, found, colors)
            panel.set_yscale("log")
            panel.set_ylim(low, high)
            ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= t <= high]
            panel.set_yticks(ticks, [f"{t:g}×" for t in ticks])
            panel.yaxis.set_minor_locator(plt.NullLocator())
            panel.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.5)
    figure.suptitle(TITLES[operation], fontsize=10)
    dots = [plt.Line2D([], [], linestyle="none", marker="o", markersize=4, color=colors[p], label=p) for p in peers]
    figure.legend(handles=dots, loc="outside lower center", ncols=min(5, len(peers)), fontsize=8,
                  title="filled: the strongest peer of a case", title_fontsize=8)
    save(plt, figure, path, digest(cases))


def survey_lines(results):
    """{panel: [(label, whether beside all peers, sorted ratios)]} of the parts of a survey."""
    panels = {}
    for what, peers, ratios, result in all_rows(results):
        panel, label = panel_of(what)
        lines = panels.setdefault(panel, [])
        every = any(other == label for other, _, _ in lines)
        lines.append((label, every or "," not in peers and result["bench"] == "contract", sorted(r for r, _ in ratios)))
    return panels


def survey_digest(panels):
    shown = {name: [[label, every, [f"{r:.4g}" for r in ratios]] for label, every, ratios in lines]
             for name, lines in panels.items()}
    return hashlib.sha256(json.dumps([1, shown]).encode()).hexdigest()[:16]


def draw_survey(plt, panels, path):
    """The share of the cases below each ratio: a line a part, solid beside the strongest of all peers of the run."""
    figure, row = plt.subplots(1, len(panels), figsize=(9.2, 3), sharey=True, squeeze=False, layout="constrained")
    for axes, (name, lines) in zip(row[0], panels.items()):
        labels = list(dict.fromkeys(label for label, _, _ in lines))
        for label, every, ratios in lines:
            alone = sum(other == label for other, _, _ in lines) == 1
            axes.step(ratios, [(i + 1) / len(ratios) for i in range(len(ratios))], where="post", linewidth=1.2,
                      color=COLORS[labels.index(label) % len(COLORS)], linestyle="-" if every or alone else ":",
                      label=label if every or alone else None)
        axes.axvline(1, color=GREY, linewidth=0.8, linestyle="--")
        axes.set_xscale("log")
        axes.set_xticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1×", "2", "5", "10", "20"])
        axes.xaxis.set_minor_locator(plt.NullLocator())
        axes.grid(color=GREY, alpha=0.25, linewidth=0.5)
        axes.set_title(name, fontsize=8)
        axes.legend(fontsize=7, loc="lower right", handlelength=1, borderpad=0,
                    title="columns" if "dense" in name else None,
                    title_fontsize=7)
    row[0][0].set_ylabel("share of the cases")
    figure.supxlabel("a peer's time over ours (solid: the fastest of all peers of the run; dotted: cuSPARSE alone)",
                     fontsize=8)
    save(plt, figure, path, survey_digest(panels))


def stored_survey():
    return survey_lines(load(sorted(glob.glob(os.path.join(ROOT, "bench", "results", "survey-h200-*.json")))))


def stored_cases():
    folder = os.path.join(ROOT, "bench", "results")

    def results(pattern):
        return load(sorted(glob.glob(os.path.join(folder, pattern))))

    cases = all_cases(results, gnn_runs(glob.glob(os.path.join(folder, "gnn-*.json"))))
    return {operation: [c for c in cases[operation] if not c.group.endswith("layers only")] for operation in TITLES}


def stale(path, mark):
    try:
        with open(path) as file:
            return f"<!-- data {mark} -->" not in file.read()
    except OSError:
        return True


def check(folder):
    marks = {name: digest(cases) for name, cases in stored_cases().items()}
    marks["survey"] = survey_digest(stored_survey())
    old = [name for name, mark in marks.items() if stale(os.path.join(folder, name + ".svg"), mark)]
    for name in old:
        print(f"plots.py: docs/plots/{name}.svg is not up to date: run python3 -B bench/plots.py")
    return 1 if old else 0


def main():
    arguments, folder = sys.argv[1:], os.path.join(ROOT, "docs", "plots")
    if arguments == ["--check"]:
        return check(folder)
    if len(arguments) > 1 and arguments[0] == "--output":
        folder, arguments = arguments[1], arguments[2:]
    if arguments and (arguments[0] != "--papers" or len(arguments) < 2):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    plt = pyplot()
    if not plt:
        print("plots.py: matplotlib is not installed: python3 -m pip install matplotlib", file=sys.stderr)
        return 1
    os.makedirs(folder, exist_ok=True)
    if arguments:
        from plot_papers import draw_papers
        return draw_papers(plt, folder, load(arguments[1:]))
    for name, cases in stored_cases().items():
        draw_operation(plt, name, cases, os.path.join(folder, name + ".svg"))
    draw_survey(plt, stored_survey(), os.path.join(folder, "survey.svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
