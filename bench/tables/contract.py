"""Contraction: one pass and two products."""
from .common import count, geometric_mean, milliseconds, works


def by_labels(name):
    """Whether a peer relabels the edges and adds equal ones, without S."""
    return name.startswith("CUB") or name.endswith(" relabelled")


def contract_rows(result):
    """Fused beside the best peer of all, products beside the best that multiplies as well, and where the peers' S and
    its transpose were made from the labels too, fused beside that."""
    names, ratios = [], {}
    if any("stage_on" in matrix for matrix in result["matrices"]):
        return []
    for matrix in result["matrices"]:
        for peer in matrix["peers"]:
            if peer["name"] not in names:
                names.append(peer["name"])
    whole = any("from_labels" in peer for matrix in result["matrices"] for peer in matrix["peers"])
    compared = ["fused faster than the best by", "products faster than products by"] + \
        ["products from labels, ms", "fused faster than these by"] * whole
    titles = ["graph", "nodes", "edges", "labels", "groups", "nnz(C)", "fused, ms", "two products, ms"] + \
        [name + ", ms" for name in names] + compared + ["floor, ms", "fused above it", "checked"]
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for matrix in result["matrices"]:
        fused, products = matrix["ours"]["fused"], matrix["ours"]["products"]
        peers = {p["name"]: p for p in matrix["peers"]}
        ran = [p for p in matrix["peers"] if works(p) and p["sorted"]]
        made = [p["from_labels"] for p in ran if "from_labels" in p]
        cells = [matrix["matrix"], count(matrix["nodes"]), count(matrix["edges"]), matrix["labels"],
                 count(matrix["groups"]), count(matrix["nnz_quotient"])]
        cells += [f"**{milliseconds(t['median_seconds'])}**" if works(t) else t["failed"] for t in (fused, products)]
        cells += [milliseconds(peers[n]["median_seconds"]) if works(peers.get(n)) else
                  peers[n]["failed"] if n in peers else "" for n in names]
        pairs = [(fused, ran), (products, [p for p in ran if not by_labels(p["name"])])]
        for column, (ours, rivals) in enumerate(pairs + [(fused, made)] * whole):
            best = min((p["median_seconds"] for p in rivals), default=None)
            ratio = best / ours["median_seconds"] if works(ours) and rivals else None
            ratios.setdefault(column, []).extend([ratio] if ratio else [])
            if rivals is made:
                cells.append(milliseconds(best) if made else "")
            cells.append(f"{ratio:.2f}×" if ratio else "")
        verdict = matrix["checked"]
        cells += [milliseconds(matrix["floor_seconds"]),
                  f"{fused['median_seconds'] / matrix['floor_seconds']:.1f}×" if works(fused) else "",
                  "no" if verdict is None else "**wrong**" if not verdict["good"] else
                  "f64 sums" if verdict.get("whole", True) else "f64 sums, in part"]
        lines.append("| " + " | ".join(cells) + " |")
    means = [f"{geometric_mean(ratios[column]):.2f}×" if ratios[column] else "" for column in sorted(ratios)]
    if whole:
        means.insert(2, "")
    lines.append("| geometric mean |" + " |" * (len(titles) - 4 - len(means)) + " " + " | ".join(means) + " | | | |")
    return lines


def contract_stage_rows(result):
    """The paper's Figure 7: two products by the hash algorithm without the stage and with it."""
    lines, ratios = [], []
    for matrix in result["matrices"]:
        modes = [matrix.get(key) for key in ("stage_off_uncached", "stage_off", "stage_on")]
        if not all(works(mode) for mode in modes):
            continue
        uncached, off, on = (mode["median_seconds"] for mode in modes)
        ratios.append(off / on)
        cells = [matrix["matrix"], count(matrix["edges"]), matrix["labels"], count(matrix["groups"])]
        cells += [milliseconds(uncached), milliseconds(off), milliseconds(on), f"{100 * (off / on - 1):+.1f} %"]
        cells += [milliseconds(t["median_seconds"]) if works(t) else t["failed"]
                  for t in (matrix["ours"]["products"], matrix["ours"]["fused"])]
        lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return []
    return ["| graph | edges | labels | groups | no stage, uncached loads, ms | no stage, ms | stage, ms | gain "
            "| products as chosen, ms | fused, ms |", "|" + "---|" * 10] + lines + \
        [f"| geometric mean | | | | | | | {100 * (geometric_mean(ratios) - 1):+.1f} % | | |"]
