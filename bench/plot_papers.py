"""Figures of two papers on SpMM, drawn from results of bench/bench_spmm.sh as the papers draw theirs; plots.py --papers.

Of parts accel-gcn (Xie et al., "Accel-GCN", 2023; graphs of the shapes of its Table I):
  accel-gcn-5   Figure 5, speed beside cuSPARSE, mean over widths. GNNAdvisor's and GraphBLAST's bars are missing.
  accel-gcn-6   Figure 6, time by width, a plot a graph
  accel-gcn-7   Figure 7, block partition over a warp a row (row split), mean over widths of each range of Table II
  accel-gcn-8   Figure 8, block partition with all columns at once over 32 at a time, mean over the same
Of parts bikd (Kim et al., "BiKD", 2026; graphs of the shapes of its Table 1, at its widths):
  bikd-8        Figure 8, speed of aggregation beside cuSPARSE, in place of DGL, which calls it
  bikd-15       Figure 15, preprocessing, in products of cuSPARSE; beside METIS and Rabbit order in the paper
  bikd-16       Figure 16, products after which preprocessing has paid for itself; none where it never does
  bikd-20       Figure 20, BiKD with its load balancing over BiKD without: NB and AS at once
Of parts ablation:
  bikd-18, -19  Figures 18 and 19, speed of GP and BiKD by the size of a partition. Cache hits need a profiler.
Of part max:
  bikd-17       Figure 17, aggregation by the maximum, which the paper's GIN takes: speed beside row split, since peers
                have no such product. The paper's bars are of whole layers, as those of its Figure 9:
                bench/bench_gnn.sh measures these.
On the CPU the fastest peer stands in for cuSPARSE. A figure whose measurements are in none of the results is left out.
"""
import os
import sys

from plots import GREY, save
from tables.common import geometric_mean, works
from tables.spmm import PARTITIONS, amortised, best_peer_of, by_graph, variant

INTERVALS = ((16, 32), (33, 64), (65, 96), (97, 128))
SIZES = (0.25, 0.5, 1, 2, 4, 8)


# ---- drawing


def grid(axes):
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.5)
    axes.set_axisbelow(True)


def bars(plt, folder, name, title, axis, groups, series, log=False):
    """Clusters of bars: series is {label: a value a group}."""
    series = {label: values for label, values in series.items() if any(values)}
    if not series:
        return
    wide = max(6.4, 1.2 + len(groups) * (0.14 + 0.09 * len(series)))
    figure, axes = plt.subplots(figsize=(wide, 3.4), layout="constrained")
    for i, (label, values) in enumerate(series.items()):
        at = [(g + (i - (len(series) - 1) / 2) * 0.8 / len(series), v) for g, v in enumerate(values) if v]
        axes.bar(*zip(*at), width=0.8 / len(series), label=label)
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle="--")
    if log:
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    axes.set_xticks(range(len(groups)), groups, rotation=40, ha="right")
    axes.set_title(title)
    axes.set_ylabel(axis)
    grid(axes)
    figure.legend(loc="outside lower center", ncols=len(series))
    save(plt, figure, os.path.join(folder, name + ".svg"))


def lines(plt, folder, name, title, axis, xaxis, points, series):
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for label, values in series.items():
        known = [(x, v) for x, v in zip(points, values) if v]
        axes.plot(*zip(*known), marker="o", markersize=4, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(points, [f"{x:g}" for x in points])
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.set_ylabel(axis)
    axes.set_xlabel(xaxis)
    grid(axes)
    figure.legend(loc="outside lower center", ncols=4)
    save(plt, figure, os.path.join(folder, name + ".svg"))


def panels(plt, folder, name, title, graphs, labels, times):
    """A plot a graph: times(case) has a value a label."""
    rows = -(-len(graphs) // 4)
    figure, axes = plt.subplots(rows, 4, figsize=(9.2, 0.7 + 1.9 * rows), layout="constrained", squeeze=False)
    for panel, (graph, cases) in zip(axes.flat, graphs.items()):
        for i, label in enumerate(labels):
            known = [(c["width"], times(c)[i]) for c in cases if times(c)[i] is not None]
            if known:
                panel.plot(*zip(*known), color=f"C{i}", label=label)
        panel.set_title(graph, fontsize=8)
        panel.set_ylim(bottom=0)
        panel.tick_params(labelsize=7)
        panel.locator_params(axis="y", nbins=3)
        panel.set_xticks((16, 64, 128))
        grid(panel)
    for panel in list(axes.flat)[len(graphs):]:
        panel.axis("off")
    figure.suptitle(title, fontsize=10)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(labels))
    save(plt, figure, os.path.join(folder, name + ".svg"))


# ---- figures


def ratio(slower, faster):
    return slower["median_seconds"] / faster["median_seconds"] if works(slower) and works(faster) else None


def mean(values):
    known = [v for v in values if v]
    return geometric_mean(known) if known else None


def with_mean(graphs, series):
    """One more group, the geometric mean."""
    return list(graphs) + ["mean"], {label: values + [mean(values)] for label, values in series.items()}


def plot_accel(plt, folder, graphs, peer):
    """Figures 5 to 8; graphs is {name: cases by width}."""
    ours = (("row split", "row_split"), ("block partition", "block_partition"), ("choice", "auto"))
    series = {label: [mean(ratio(best_peer_of(c), c["ours"][key]) for c in cases) for cases in graphs.values()]
              for label, key in ours}
    bars(plt, folder, "accel-gcn-5", f"Speed beside {peer}, mean over widths", "times as fast",
         *with_mean(graphs, series))
    panels(plt, folder, "accel-gcn-6", "Milliseconds by columns of X", graphs,
           [peer] + [label for label, _ in ours], lambda c: [1e3 * t["median_seconds"] if works(t) else None for t in
                                                            (best_peer_of(c), *(c["ours"][key] for _, key in ours))])
    for name, title, slower in (
            ("accel-gcn-7", "Block partition over a warp a row", lambda c: c["ours"]["row_split"]),
            ("accel-gcn-8", "Block partition, all columns at once over 32 at a time", lambda c: variant(c, "FP"))):
        series = {f"({low - 1}, {high}]" if low > 16 else f"[{low}, {high}]":
                  [mean(ratio(slower(c), c["ours"]["block_partition"]) for c in cases if low <= c["width"] <= high)
                   for cases in graphs.values()] for low, high in INTERVALS}
        bars(plt, folder, name, title, "times as fast", *with_mean(graphs, series))


def plot_bikd(plt, folder, cases, peer):
    """Figures 8, 15, 16, 20."""
    graphs = [f"{c['matrix']} {c['width']}" for c in cases]
    names = {"blocks": "Naive (blocks)"}
    series = {names.get(label, label): [ratio(best_peer_of(c), of(c)) for c in cases] for label, of in PARTITIONS[:5]}
    series["choice"] = [ratio(best_peer_of(c), c["ours"]["auto"]) for c in cases]
    bars(plt, folder, "bikd-8", f"Speed of aggregation beside {peer}", "times as fast", *with_mean(graphs, series))
    plans = (("blocks", lambda c: c["ours"]["block_partition"]), ("BiKD", lambda c: variant(c, "BiKD", 1)),
             (peer, best_peer_of))
    series = {label: [of(c)["once_seconds"] / best_peer_of(c)["median_seconds"]
                      if works(of(c)) and best_peer_of(c) else None for c in cases] for label, of in plans}
    bars(plt, folder, "bikd-15", f"Preprocessing, in products of {peer}", "products", graphs, series)
    series = {label: [amortised(of(c), best_peer_of(c)) if works(of(c)) and best_peer_of(c) else None for c in cases]
              for label, of in plans[:2]}
    bars(plt, folder, "bikd-16", f"Products after which preprocessing has paid for itself, against {peer}", "products",
         graphs, series, True)
    series = {"NB and AS": [ratio(variant(c, "BiKD, rows as they come", 1), variant(c, "BiKD", 1)) for c in cases]}
    bars(plt, folder, "bikd-20", "BiKD, balanced over rows as they come", "times as fast", *with_mean(graphs, series))


def plot_maxima(plt, folder, graphs):
    """Figure 17; graphs is {name: cases by width}."""
    series = {label: [mean(ratio(c["ours"]["row_split"], c["ours"][key]) for c in cases) for cases in graphs.values()]
              for label, key in (("block partition", "block_partition"), ("choice", "auto"))}
    bars(plt, folder, "bikd-17", "Aggregation by the maximum beside row split, mean over widths", "times as fast",
         *with_mean(graphs, series))


def plot_sizes(plt, folder, cases):
    """Figures 18 and 19: times at one cache over times at each size."""
    for name, cut in (("bikd-18", "GP"), ("bikd-19", "BiKD")):
        series = {f"{c['matrix']} {c['width']}": [ratio(variant(c, cut, 1), variant(c, cut, s)) for s in SIZES]
                  for c in cases}
        series = {label: values for label, values in series.items() if any(values)}
        if series:
            lines(plt, folder, name, f"{cut} by the size of a partition", "speed, 1 at one cache",
                  "size, in second-level caches", SIZES, series)


def draw_papers(plt, folder, results):
    """Every figure that the results have measurements for; the exit status."""
    accel, bikd, sizes, maxima, peer = {}, [], [], {}, "the fastest peer"
    for result in results:
        if result["machine"]["gpu"]:
            peer = "cuSPARSE"
        if result["options"]["reduce"] == "max":
            maxima.update(by_graph(result))
        for graph, cases in by_graph(result).items():
            apart = [c for c in cases if variant(c, "GP", 1) and variant(c, "FP")]
            warps = [c for c in cases if variant(c, "FP") and c not in apart]
            accel.update({graph: warps} if warps else {})
            bikd += apart
            sizes += [c for c in cases if len([v for v in c.get("ablation", ()) if v["name"] == "BiKD"]) > 1]
    for draw, found in ((plot_sizes, sizes), (plot_maxima, maxima)):
        if found:
            draw(plt, folder, found)
    for draw, found in ((plot_accel, accel), (plot_bikd, bikd)):
        if found:
            draw(plt, folder, found, peer)
    if not (accel or bikd or sizes or maxima):
        print("plots.py: there is no figure of these results: parts accel-gcn, bikd, ablation, max have them",
              file=sys.stderr)
        return 1
    return 0
