"""Plots results of bench/bench_spmm.sh as the papers plot theirs, SVG by gnuplot (Debian: gnuplot-nox).

usage: python3 -B bench/plot_spmm.py [--output DIR] RESULTS.json...        DIR: docs/plots

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
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import table  # noqa: E402

INTERVALS = ((16, 32), (33, 64), (65, 96), (97, 128))
SIZES = (0.25, 0.5, 1, 2, 4, 8)
COLORS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#9c755f", "#bab0ac", "#edc948", "#ff9da7",
          "#1f4e79", "#7f3b08")


# ---- gnuplot


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def block(rows):
    """Inline data: a row a line, what is missing as NaN."""
    return "\n".join(" ".join("NaN" if v is None else quoted(v) if isinstance(v, str) else f"{v:.6g}" for v in row)
                     for row in rows)


def draw(folder, name, width, height, commands):
    path = os.path.join(folder, name + ".svg")
    head = [f"set terminal svg size {width},{height} noenhanced background '#ffffff' font 'sans,11'",
            f"set output {quoted(path)}", "set grid ytics lc '#dddddd'", "set tics nomirror", "set border 3"]
    head += [f"set linetype {i + 1} lc rgb '{color}' lw 1.5" for i, color in enumerate(COLORS)]
    subprocess.run(["gnuplot"], input="\n".join(head + commands) + "\n", text=True, check=True)
    print(path)


def bars(folder, name, title, axis, groups, series, log=False):
    """Clusters of bars: series is {label: a value a group}."""
    series = {label: values for label, values in series.items() if any(values)}
    if not series:
        return
    rows = [[group] + [values[i] for values in series.values()] for i, group in enumerate(groups)]
    plots = [f"$data using {i + 2}:xtic(1) title {quoted(label)} lt {i + 1}" for i, label in enumerate(series)]
    draw(folder, name, max(640, 140 + len(groups) * (14 + 9 * len(series))), 340,
         ["$data << EOD", block(rows), "EOD", f"set title {quoted(title)}", f"set ylabel {quoted(axis)}",
          "set style data histograms", "set style histogram clustered gap 1", "set style fill solid noborder",
          "set xtics rotate by -40", "set key outside top horizontal",
          "set logscale y; set yrange [0.5:*]" if log else "set yrange [0:*]",
          "plot " + ", ".join(plots) + ", 1 lc '#888888' dt 2 notitle"])


def lines(folder, name, title, axis, xaxis, points, series):
    rows = [[x] + [values[i] for values in series.values()] for i, x in enumerate(points)]
    plots = [f"$data using 1:{i + 2} with linespoints lt {i + 1} pt 7 ps 0.5 title {quoted(label)}"
             for i, label in enumerate(series)]
    draw(folder, name, 640, 360,
         ["$data << EOD", block(rows), "EOD", f"set title {quoted(title)}", f"set ylabel {quoted(axis)}",
          f"set xlabel {quoted(xaxis)}", "set logscale x 2", f"set xtics ({', '.join(f'{x:g}' for x in points)})",
          "set xrange [0.23:8.7]", "set key outside", "set yrange [0:*]", "plot " + ", ".join(plots)])


# ---- figures


def ratio(slower, faster):
    return slower["median_seconds"] / faster["median_seconds"] if table.works(slower) and table.works(faster) else None


def mean(values):
    known = [v for v in values if v]
    return table.geometric_mean(known) if known else None


def with_mean(graphs, series):
    """One more group, the geometric mean."""
    return list(graphs) + ["mean"], {label: values + [mean(values)] for label, values in series.items()}


def plot_accel(folder, graphs, peer):
    """Figures 5 to 8; graphs is {name: cases by width}."""
    ours = (("row split", "row_split"), ("block partition", "block_partition"), ("choice", "auto"))
    series = {label: [mean(ratio(table.best_peer_of(c), c["ours"][key]) for c in cases) for cases in graphs.values()]
              for label, key in ours}
    bars(folder, "accel-gcn-5", f"Speed beside {peer}, mean over widths", "times as fast",
         *with_mean(graphs, series))
    panels = []
    for number, (graph, cases) in enumerate(graphs.items()):
        times = [[c["width"]] + [1e3 * t["median_seconds"] if table.works(t) else None for t in
                                 (table.best_peer_of(c), *(c["ours"][key] for _, key in ours))] for c in cases]
        labels = [peer] + [label for label, _ in ours]
        panels += [f"$data{number} << EOD", block(times), "EOD", f"set title {quoted(graph)}",
                   "set key left top" if number == 0 else "unset key", "plot " + ", ".join(
                       f"$data{number} using 1:{i + 2} with lines lt {i + 1} title {quoted(label)}"
                       for i, label in enumerate(labels))]
    rows = -(-len(graphs) // 4)
    draw(folder, "accel-gcn-6", 1100, 40 + 210 * rows,
         [f"set multiplot layout {rows},4 title 'Milliseconds by columns of X'", "set yrange [0:*]", "set xtics 32"] +
         panels + ["unset multiplot"])
    for name, title, slower in (
            ("accel-gcn-7", "Block partition over a warp a row", lambda c: c["ours"]["row_split"]),
            ("accel-gcn-8", "Block partition, all columns at once over 32 at a time", lambda c: table.variant(c, "FP"))):
        series = {f"({low - 1}, {high}]" if low > 16 else f"[{low}, {high}]":
                  [mean(ratio(slower(c), c["ours"]["block_partition"]) for c in cases if low <= c["width"] <= high)
                   for cases in graphs.values()] for low, high in INTERVALS}
        bars(folder, name, title, "times as fast", *with_mean(graphs, series))


def plot_bikd(folder, cases, peer):
    """Figures 8, 15, 16, 20."""
    graphs = [f"{c['matrix']} {c['width']}" for c in cases]
    names = {"blocks": "Naive (blocks)"}
    series = {names.get(label, label): [ratio(table.best_peer_of(c), of(c)) for c in cases]
              for label, of in table.PARTITIONS[:5]}
    series["choice"] = [ratio(table.best_peer_of(c), c["ours"]["auto"]) for c in cases]
    bars(folder, "bikd-8", f"Speed of aggregation beside {peer}", "times as fast", *with_mean(graphs, series))
    plans = (("blocks", lambda c: c["ours"]["block_partition"]), ("BiKD", lambda c: table.variant(c, "BiKD", 1)),
             (peer, table.best_peer_of))
    series = {label: [of(c)["once_seconds"] / table.best_peer_of(c)["median_seconds"]
                      if table.works(of(c)) and table.best_peer_of(c) else None for c in cases] for label, of in plans}
    bars(folder, "bikd-15", f"Preprocessing, in products of {peer}", "products", graphs, series)
    series = {label: [table.amortised(of(c), table.best_peer_of(c)) if table.works(of(c)) and table.best_peer_of(c)
                      else None for c in cases] for label, of in plans[:2]}
    bars(folder, "bikd-16", f"Products after which preprocessing has paid for itself, against {peer}", "products",
         graphs, series, True)
    series = {"NB and AS": [ratio(table.variant(c, "BiKD, rows as they come", 1), table.variant(c, "BiKD", 1))
                            for c in cases]}
    bars(folder, "bikd-20", "BiKD, balanced over rows as they come", "times as fast", *with_mean(graphs, series))


def plot_maxima(folder, graphs):
    """Figure 17; graphs is {name: cases by width}."""
    series = {label: [mean(ratio(c["ours"]["row_split"], c["ours"][key]) for c in cases) for cases in graphs.values()]
              for label, key in (("block partition", "block_partition"), ("choice", "auto"))}
    bars(folder, "bikd-17", "Aggregation by the maximum beside row split, mean over widths", "times as fast",
         *with_mean(graphs, series))


def plot_sizes(folder, cases):
    """Figures 18 and 19: times at one cache over times at each size."""
    for name, cut in (("bikd-18", "GP"), ("bikd-19", "BiKD")):
        series = {f"{c['matrix']} {c['width']}": [ratio(table.variant(c, cut, 1), table.variant(c, cut, s))
                                                 for s in SIZES] for c in cases}
        series = {label: values for label, values in series.items() if any(values)}
        if series:
            lines(folder, name, f"{cut} by the size of a partition", "speed, 1 at one cache",
                  "size, in second-level caches", SIZES, series)


def main():
    arguments, folder = sys.argv[1:], os.path.join(table.ROOT, "docs", "plots")
    if len(arguments) > 1 and arguments[0] == "--output":
        folder, arguments = arguments[1], arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    if not shutil.which("gnuplot"):
        print("plot_spmm.py: gnuplot is not installed: on Debian, apt-get install gnuplot-nox", file=sys.stderr)
        return 1
    os.makedirs(folder, exist_ok=True)
    accel, bikd, sizes, maxima, peer = {}, [], [], {}, "the fastest peer"
    for result in table.load(arguments):
        if result["machine"]["gpu"]:
            peer = "cuSPARSE"
        if result["options"]["reduce"] == "max":
            maxima.update(table.by_graph(result))
        for graph, cases in table.by_graph(result).items():
            apart = [c for c in cases if table.variant(c, "GP", 1) and table.variant(c, "FP")]
            warps = [c for c in cases if table.variant(c, "FP") and c not in apart]
            accel.update({graph: warps} if warps else {})
            bikd += apart
            sizes += [c for c in cases if len([v for v in c.get("ablation", ()) if v["name"] == "BiKD"]) > 1]
    if accel:
        plot_accel(folder, accel, peer)
    if bikd:
        plot_bikd(folder, bikd, peer)
    if sizes:
        plot_sizes(folder, sizes)
    if maxima:
        plot_maxima(folder, maxima)
    if not (accel or bikd or sizes or maxima):
        print("plot_spmm.py: there is no figure of these results: parts accel-gcn, bikd, ablation, max have them",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
