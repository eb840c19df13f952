"""The tables of the survey: each operation and type over all families, beside the usual peer and beside all of them; on
a CPU also each family."""
from survey import cases, mean

OPERATIONS = {"spgemm": "sparse × sparse", "spmm": "sparse × dense", "contract": "quotient graphs"}
USUAL = {"spgemm": "cuSPARSE", "spmm": "cuSPARSE", "contract": "CUB"}  # on a GPU
PLAN = "plan: "  # how survey.py begins the family of a plan's cases


def product_of(peer):
    """OpSparse 0134b0c -> OpSparse, CUB sort, key bits -> CUB."""
    return peer.split(",")[0].split(" ")[0]


def widths_of(result):
    widths = sorted({r["width"] for r in result["matrices"] if "width" in r})
    return f", {len(widths)} widths, {widths[0]} to {widths[-1]}" if widths else ""


def in_order(results):
    order = list(OPERATIONS)
    return sorted(results, key=lambda r: (order.index(r["bench"]), r["options"]["values"] != "fp64"))


def precision_of(result):
    narrow = {"f16": "16-bit", "bf16": "bfloat16"}.get(result["options"].get("features"))
    return f"{narrow or ('double' if result['options']['values'] == 'fp64' else 'single')} precision"


def operation_of(result):
    return ("transposed " if result["options"].get("transpose") else "") + OPERATIONS[result["bench"]]


def part_rows(result, plans):
    """(operation, peers, [(ratio, case)], result) for the usual peer, and for all peers where that changes a ratio."""
    found = [(name, ours, peers) for family, name, ours, peers in cases(result)
             if family.startswith(PLAN) == plans and ours and peers]
    what = operation_of(result) + widths_of(result) + (", new values by a plan" if plans else "") + \
        f", {precision_of(result)}"
    usual = USUAL[result["bench"]] if result["machine"]["gpu"] else "GraphBLAS"
    products = sorted({product_of(p) for _, _, peers in found for p in peers}, key=lambda p: (p != usual, p.lower()))
    before = None
    for wanted in [usual], products:
        ratios = [(min(times) / ours, case_name(name, result)) for name, ours, peers in found
                  if (times := [t for p, t in peers.items() if product_of(p) in wanted])]
        if ratios and ratios != before:
            yield what, ", ".join(wanted), ratios, result
        before = ratios


def panel_of(what):
    """(panel, line) of a picture for what part_rows says: "sparse × dense, 11 widths, 32 to 1433, single precision"."""
    operation, rest = what.split(", ", 1)
    plan = "new values by a plan, "
    if rest.startswith(plan):
        operation, rest = operation + ", plans", rest.removeprefix(plan)
    *widths, precision = rest.removesuffix(" precision").split(", ")
    return operation, ", ".join(widths[1:] + [precision] * (not widths or precision != "single"))


def case_name(name, result):
    name = name.replace(" plan", "").replace(" x", ", ")
    return name + (" columns" if result["bench"] == "spmm" else "")


def all_rows(results):
    """The newest row of each operation beside the same peers; some peers ran in some files only."""
    newest = {}
    for result in in_order(results):
        for plans in False, True:
            for row in part_rows(result, plans):
                known = newest.get(row[:2])
                if not known or known[3]["date"] < result["date"]:
                    newest[row[:2]] = row
    order = list(dict.fromkeys(what for what, _ in newest))
    return sorted(newest.values(), key=lambda row: order.index(row[0]))


def survey_table(results):
    """All parts of the stored survey of one machine."""
    lines = ["| operation | beside the fastest of | cases | geometric mean | least | greatest | slower in | commit |",
             "|---|---|--:|--:|--:|--:|--:|---|"]
    for what, peers, ratios, result in all_rows(results):
        least, most = min(ratios), max(ratios)
        lines.append(f"| {what} | {peers} | {len(ratios)} | **{mean([r for r, _ in ratios]):.2f}×** | {least[0]:.2f}× "
                     f"({least[1]}) | {most[0]:.1f}× | {sum(r < 1 for r, _ in ratios)} | "
                     f"{result['commit'][:7]}, {result['date']} |")
    return "\n".join(lines)


def short_table(results):
    """The same in few words, for README.md."""
    lines = ["| | beside the fastest of | cases | faster by | least | slower in |", "|---|---|--:|--:|--:|--:|"]
    for what, peers, ratios, _ in all_rows(results):
        lines.append(f"| {what} | {peers} | {len(ratios)} | **{mean([r for r, _ in ratios]):.2f}×** | "
                     f"{min(ratios)[0]:.2f}× | {sum(r < 1 for r, _ in ratios)} |")
    return "\n".join(lines)


def family_table(results):
    """Geometric mean and least of each family beside the fastest of all peers, a column a part."""
    parts, families = [], {}
    for result in in_order(results):
        parts.append(f"{operation_of(result)}, {precision_of(result)}, {result['options']['threads']} threads")
        for family, _, ours, peers in cases(result):
            if ours and peers:
                families.setdefault(family, {}).setdefault(parts[-1], []).append(min(peers.values()) / ours)
    lines = ["| family | " + " | ".join(parts) + " |", "|---" * (len(parts) + 1) + "|"]
    for family, found in families.items():
        cells = [f"{mean(found[p]):.2f} ({min(found[p]):.2f})" if p in found else "" for p in parts]
        lines.append(f"| {family} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
