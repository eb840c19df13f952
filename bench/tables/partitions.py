"""Partitions by coarse graphs beside those of METIS and KaHIP on the graph itself."""
from .common import geometric_mean

KINDS = (("meshes", {"4elt", "airfoil1", "fe_4elt2", "bcsstk33"}),
         ("roads, power lines", {"luxembourg", "NY", "power"}))
WAYS = ("matching", "two-hop", "hec", "lp")  # of --repeat
HEADING = ["graphs", "cases", "KaHIP", *(f"`{way}`, refined" for way in WAYS)]


def kind_of(graph):
    return next((kind for kind, graphs in KINDS if graph in graphs), "social networks, webs")


def mean_and_worst(rows, cut):
    ratios = [max(cut(row), 1e-9) / max(row["metis"]["cut"], 1) for row in rows]
    return f"{geometric_mean(ratios):.2f} ({max(ratios):.2f})"


def partitions_table(results):
    """Edge cuts over METIS's, of each way carried back, then refined: the geometric mean of each kind of graphs and the
    greatest."""
    lines = []
    for result in results:
        lines += ["| " + " | ".join(HEADING) + " |", "|---|" + "--:|" * (len(HEADING) - 1)]
        for kind in [name for name, _ in KINDS] + ["social networks, webs"]:
            rows = [row for row in result["rows"] if kind_of(row["graph"]) == kind]
            cells = [mean_and_worst(rows, lambda row: row["kahip"]["cut"])]
            for way in WAYS:
                carried, refined = (mean_and_worst(rows, lambda row, stage=stage: row[way][stage]["cut"])
                                    for stage in ("carried", "refined"))
                cells.append(f"{carried}, **{refined.replace(' ', '** ')}")
            lines.append(f"| {len({row['graph'] for row in rows})} {kind} | {len(rows)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
