"""The compact tables of docs/performance.md and the summary in README.md, from the cases of cases.py."""
from .cases import grouped, mean_ratio
from .common import milliseconds, seconds

# The cases that stand for their operation: group, a word of the place, name. Favourable and unfavourable ones.
SHOWN = {
    "markov": (("whole runs", "H200", "p300000"), ("whole runs", "H200", "q100000"),
               ("whole runs", "2 threads", "q100000"), ("whole runs", "2 threads", "p2000")),
    "spgemm": (("f64, A·A", "H200", "wind-tunnel"), ("f64, A·A", "H200", "cage15"), ("f64, A·A", "H200", "scircuit"),
               ("f64, A·A", "2 threads", "protein"), ("f64, A·A", "2 threads", "road")),
    "spmm": (("f32, nine graphs", "H200", "molecules, 16 columns"),
             ("f32, nine graphs", "H200", "reddit, 256 columns"), ("f32, nine graphs", "H200", "uniform, 32 columns"),
             ("f32, four graphs", "2 threads", "uniform, 64 columns"),
             ("f32, four graphs", "2 threads", "molecules, 16 columns")),
    "contract": (("f32, one pass", "H200", "rmat20, 1 % groups, random"),
                 ("f32, S as a matrix", "H200", "rmat20, 10 % groups, random"),
                 ("f32, one pass", "2 threads", "rmat18, 10 % groups, runs")),
    "gnn": (("epoch", "H200", "reddit, gcn, 16 columns"), ("epoch", "H200", "reddit, sage, 256 columns"),
            ("epoch", "H200", "flickr, gcn, 16 columns"), ("epoch", "2 threads", "flickr, sage, 16 columns"),
            ("sampling", "H200", "reddit, fan-outs 25 10")),
}

PRODUCTS = (("cuSPARSE", "cuSPARSE"), ("GraphBLAS", "GraphBLAS"), ("scipy", "scipy"), ("CUB", "CUB"), ("mcl", "mcl"),
            ("CSR by hand", "PyTorch"), ("DGL", "DGL"))


def product_of(peer):
    """The product that a peer's variant belongs to."""
    return next((name for start, name in PRODUCTS if peer.startswith(start)), "PyTorch Geometric")


def place_in_short(place):
    return place.replace("NVIDIA ", "").replace("AMD ", "").replace("Intel ", "")


def time_of(case, value):
    if case.group == "sampling":
        return f"{1e-6 / value:,.0f} M edges/s"
    return seconds(value) if value >= 1 else f"{milliseconds(value)} ms"


def compact_table(operation, cases):
    """Every group: how many cases, the mean, the least and the greatest; then the chosen cases."""
    lines = ["| all cases of | on | cases | geometric mean | least | greatest |", "|---|---|--:|--:|--:|--:|"]
    for (group, place), found in grouped(cases).items():
        least, most = min(found, key=lambda c: c.ratio), max(found, key=lambda c: c.ratio)
        lines.append(f"| {group} | {place_in_short(place)} | {len(found)} | **{mean_ratio(found):.2f}×** | "
                     f"{least.ratio:.2f}× ({least.name}) | {most.ratio:.2f}× ({most.name}) |")
    lines += ["", "| case | of | on | ours | strongest peer | ratio |", "|---|---|---|--:|--:|--:|"]
    for group, place, name in SHOWN[operation]:
        for c in cases:
            if c.group == group and place in c.place and c.name == name:
                lines.append(f"| {c.name} | {c.group} | {place_in_short(c.place)} | {time_of(c, c.ours)} | "
                             f"{time_of(c, c.peers[c.strongest])}, {c.strongest} | **{c.ratio:.2f}×** |")
                break
    return "\n".join(lines)


# What the survey does not have (survey.py).
SUMMARY = (("Markov clustering, whole runs", "markov", ("whole runs",)),
           ("an epoch of GCN or GraphSAGE", "gnn", ("epoch",)),
           ("the same in bf16, beside AMP", "gnn", ("epoch in bf16, beside AMP",)),
           ("sampling neighbours", "sampling", ("sampling",)))


def summary_table(cases):
    """Whole programs in a few lines, for README.md too."""
    lines = ["| | on | fastest of | cases | faster by | from, to |", "|" + "---|" * 6]
    for what, operation, groups in SUMMARY:
        places = {}
        for case in cases[operation]:
            if case.group in groups:
                places.setdefault(case.place, []).append(case)
        for place, found in sorted(places.items(), key=lambda g: g[0].endswith("threads")):
            names = sorted({product_of(case.strongest) for case in found})
            ratios = [case.ratio for case in found]
            lines.append(f"| {what} | {place} | {', '.join(names)} | {len(found)} | **{mean_ratio(found):.1f}×** | "
                         f"{min(ratios):.1f} to {max(ratios):.1f} |")
    return "\n".join(lines)
