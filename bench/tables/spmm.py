"""Sparse times dense: the choice, algorithms taken apart, host memory, 16-bit features."""
import math

from .common import (both_times, count, geometric_mean, milliseconds, place_of, products_heading, ratio_cell, size,
                     with_mean, works)

SPMM_ALGORITHMS = {"row_split": "row split", "block_partition": "block partition", "bidirectional": "bidirectional"}


def spmm_heading(result):
    options = result["options"]
    made = f"result {options['result']}, " if options.get("result", "f32") != "f32" else ""
    return products_heading({**result, "options": {**options, "semiring":
                             f"features {options['features']}, {made}{options['reduce']}"}})


def spmm_rows(result):
    """A line a graph and width: the choice, every algorithm, the peers, the best of them. Runs that take algorithms
    apart, or that have X and Y in host memory, have tables of their own."""
    if any(case.get("ablation") or case.get("host") for case in result["matrices"]):
        return []
    names, ratios, behind = [], {}, []
    for case in result["matrices"]:
        names += [p["name"] for p in case["peers"] if p["name"] not in names]
    floors = any("floor_fraction" in case for case in result["matrices"])
    counted = any(case["ours"]["auto"].get("peak_bytes") is not None for case in result["matrices"])
    titles = ["graph", "rows", "nnz", "width", "ours, ms", "chosen", "of copy", "gathered, TB/s"] + \
        ["of the floor"] * floors + [name + ", ms" for name in [*SPMM_ALGORITHMS.values(), *names]] + \
        ["faster than the best by"] + ["memory"] * counted + ["largest error"]
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for case in result["matrices"]:
        ours = case["ours"]["auto"]
        cells = [case["matrix"], count(case["rows"]), count(case["nnz"]), str(case["width"])]
        if not works(ours):
            lines.append("| " + " | ".join(cells + [ours["failed"]] + [""] * (len(titles) - 5)) + " |")
            continue
        mine = ours["median_seconds"]
        own = [case["ours"][key] for key in SPMM_ALGORITHMS]
        cells += [f"**{milliseconds(mine)}**", SPMM_ALGORITHMS[ours["algorithm"]],
                  f"{100 * case['copy_fraction']:.0f} %", f"{case['gathered_bytes'] / mine / 1e12:.3g}"]
        cells += [f"{100 * case['floor_fraction']:.0f} %"] if floors else []
        cells += [milliseconds(o["median_seconds"]) if works(o) else o["failed"] for o in own]
        peers = {p["name"]: p for p in case["peers"]}
        ran = [p["median_seconds"] for p in case["peers"] if works(p)]
        cells += ["" if n not in peers else milliseconds(peers[n]["median_seconds"]) if works(peers[n])
                  else peers[n]["failed"] for n in names]
        for name in names:
            if works(peers.get(name)):
                ratios.setdefault(name, []).append(peers[name]["median_seconds"] / mine)
        if ran:
            ratios.setdefault("best", []).append(min(ran) / mine)
        behind.append(case["behind_best"])
        verdict = case["checked"]
        cells.append(f"{min(ran) / mine:.2f}×" if ran else "")
        if counted:
            peak = ours["peak_bytes"]
            cells.append("" if peak is None else f"{100 * peak / case['compulsory_bytes']:.0f} %")
        cells += ["" if verdict is None else ("" if verdict["good"] else "**wrong**, ") +
                  f"{verdict['largest_error']:.1e}"]
        lines.append("| " + " | ".join(cells) + " |")
    means = [f"{geometric_mean(ratios[n]):.2f}×" if n in ratios else "" for n in names + ["best"]]
    if ratios:
        lines.append("| geometric mean |" + " |" * (10 + floors) + " " + " | ".join(means) + " | |" + " |" * counted)
    if behind:
        near = sum(b <= 0.05 for b in behind)
        lines += ["", f"The choice is within 5 % of the fastest algorithm in {near} of {len(behind)} cases, "
                  f"at worst {100 * max(behind):.0f} % behind it."]
    return lines


def spmm_f32_rows(result):
    return spmm_rows(result) if result["machine"]["gpu"] and result["options"]["features"] == "f32" else []


def spmm_small_rows(result):
    return spmm_rows(result) if result["machine"]["gpu"] and result["options"]["features"] != "f32" else []


def spmm_cpu_rows(result):
    return [] if result["machine"]["gpu"] else spmm_rows(result)


def by_graph(result):
    """{graph: its cases}, one a width."""
    graphs = {}
    for case in result["matrices"]:
        graphs.setdefault(case["matrix"], []).append(case)
    return graphs


def variant(case, name, caches=0):
    found = [v for v in case.get("ablation", ()) if v["name"] == name and v["caches"] == caches]
    return found[0] if found else None


def best_peer_of(case):
    ran = [p for p in case["peers"] if works(p)]
    return min(ran, key=lambda p: p["median_seconds"]) if ran else None


def times_faster(pairs):
    """The geometric mean of how much longer the first of each pair takes than the second; None: of no pair."""
    return geometric_mean([a["median_seconds"] / b["median_seconds"] for a, b in pairs if works(a) and works(b)])


def block_metadata(case, gpu):
    """Of the blocks alone, 16 bytes each on a GPU, and with the order of the rows, as shares of a warp-level
    partition's metadata."""
    block, warps = case["ours"]["block_partition"], case["warp_metadata_bytes"]
    if not works(block) or not warps or not gpu:
        return "", ""
    return f"{100 * 16 * block['partitions'] / warps:.0f} %", f"{100 * block['metadata_bytes'] / warps:.0f} %"


def memory_ratio(case, plan):
    """A, X, Y and what the plan keeps over A, X and Y."""
    if not works(plan):
        return ""
    kept = plan.get("plan_bytes")
    return f"{1 + (plan['metadata_bytes'] if kept is None else kept) / case['compulsory_bytes']:.3f}×"


def spmm_warp_rows(result):
    """Accel-GCN's Figures 5 to 8 in numbers: a line a graph, geometric means over its widths."""
    graphs = by_graph(result)
    if not all(variant(c, "FP") and not variant(c, "GP", 1) for cs in graphs.values() for c in cs):
        return []
    widths = [str(c["width"]) for c in max(graphs.values(), key=len)]
    titles = ["graph", "rows", "nnz", f"ours at {' / '.join(widths)}, ms", "plan, ms", "blocks' metadata of warps'",
              "with the order of rows", "faster than the best peer by", "least", "blocks faster than row split by",
              "combined columns faster than 32 at a time by"]
    lines, columns = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)], [[], [], [], []]
    for graph, found in graphs.items():
        ours = [c["ours"] for c in found]
        peers = [(best_peer_of(c), c["ours"]["auto"]) for c in found]
        ratios = [times_faster(peers), min((times_faster([p]) for p in peers if times_faster([p])), default=None),
                  times_faster((o["row_split"], o["block_partition"]) for o in ours),
                  times_faster((variant(c, "FP"), c["ours"]["block_partition"]) for c in found if c["width"] > 32)]
        for column, ratio in zip(columns, ratios):
            column.append(ratio)
        cells = [graph, count(found[0]["rows"]), count(found[0]["nnz"]), both_times([o["auto"] for o in ours]),
                 milliseconds(ours[-1]["block_partition"]["once_seconds"]),
                 *block_metadata(found[-1], result["machine"]["gpu"])]
        lines.append("| " + " | ".join(cells + [ratio_cell(r) for r in ratios]) + " |")
    return with_mean(lines, columns, 7)


PARTITIONS = (("row split", lambda c: c["ours"]["row_split"]), ("blocks", lambda c: c["ours"]["block_partition"]),
              ("FP", lambda c: variant(c, "FP")), ("GP", lambda c: variant(c, "GP", 1)),
              ("BiKD", lambda c: variant(c, "BiKD", 1)),
              ("BiKD, rows as they come", lambda c: variant(c, "BiKD, rows as they come", 1)))


def amortised(plan, peer):
    """Products after which a plan has paid for itself; a peer's preprocessing counts for it."""
    gain = peer["median_seconds"] - plan["median_seconds"]
    cost = plan["once_seconds"] - peer["once_seconds"]
    return None if gain <= 0 else max(1, math.ceil(cost / gain))


def spmm_partition_rows(result):
    """BiKD's Figures 8, 13, 15, 16 and 20 in numbers: a line a graph and width, milliseconds."""
    made = [c for c in result["matrices"] if variant(c, "GP", 1) and variant(c, "FP")]
    titles = ["graph", "rows", "nnz", "width", "ours, ms"] + [name + ", ms" for name, _ in PARTITIONS] + \
        ["best peer, ms", "plan of blocks / BiKD, ms", "pays after products", "memory", "ours faster than it by",
         "BiKD faster than rows as they come by"]
    lines, columns = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)], [[], []]
    for case in made:
        ours, peer = case["ours"]["auto"], best_peer_of(case)
        block, both, apart = PARTITIONS[1][1](case), PARTITIONS[4][1](case), PARTITIONS[5][1](case)
        ratios = [times_faster([(peer, ours)]), times_faster([(apart, both)])]
        for column, ratio in zip(columns, ratios):
            column.append(ratio)
        after = amortised(ours, peer) if works(ours) and peer else ""
        cells = [case["matrix"], count(case["rows"]), count(case["nnz"]), str(case["width"]),
                 "**" + both_times([ours]) + "**"] + [both_times([of(case)]) for _, of in PARTITIONS]
        cells += [both_times([peer]) if peer else "",
                  " / ".join(milliseconds(p["once_seconds"]) for p in (block, both) if works(p)),
                  "never" if after is None else str(after), memory_ratio(case, both)]
        lines.append("| " + " | ".join(cells + [ratio_cell(r) for r in ratios]) + " |")
    return with_mean(lines, columns, len(titles) - 2) if made else []


def spmm_amortised_rows(result):
    """How much faster than the best peer's preprocessing and N products a plan and N products are."""
    counts = (1, 3, 10, 30, 100, 1000)
    lines, columns = [], [[] for _ in counts]
    for case in result["matrices"]:
        ours, peer = case["ours"]["auto"], best_peer_of(case)
        if not variant(case, "GP", 1) or not works(ours) or not peer:
            continue
        ratios = [(peer["once_seconds"] + n * peer["median_seconds"]) /
                  (ours["once_seconds"] + n * ours["median_seconds"]) for n in counts]
        for column, ratio in zip(columns, ratios):
            column.append(ratio)
        cells = [case["matrix"], str(case["width"]), milliseconds(ours["once_seconds"]),
                 f"{milliseconds(peer['once_seconds'])} ({peer['name']})"]
        lines.append("| " + " | ".join(cells + [ratio_cell(r) for r in ratios]) + " |")
    titles = ["graph", "width", "plan, ms", "best peer's preprocessing, ms"] + \
        [f"{n} products" if n > 1 else "1 product" for n in counts]
    return lines and ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] + with_mean(lines, columns, 4)


def spmm_size_rows(result):
    """BiKD's Figures 18 and 19: times by the size of a partition, in those of the second-level cache."""
    lines = []
    for case in result["matrices"]:
        for name in ("GP", "BiKD"):
            sizes = {v["caches"]: v for v in case.get("ablation", ()) if v["name"] == name}
            if len(sizes) < 2:
                continue
            cells = [case["matrix"], str(case["width"]), name, both_times([case["ours"]["block_partition"]])]
            for v in (sizes[s] for s in sorted(sizes)):
                cells.append(f"{milliseconds(v['median_seconds'])} ({v['partitions']})" if works(v) else v["failed"])
            lines.append("| " + " | ".join(cells) + " |")
    titles = ["graph", "width", "cut", "uncut, ms"] + [f"{s:g} caches" for s in (0.25, 0.5, 1, 2, 4, 8)]
    return lines and ["Milliseconds, ranges of columns in brackets.", "", "| " + " | ".join(titles) + " |",
                      "|" + "---|" * len(titles)] + lines


def spmm_host_rows(result):
    """X and Y in host memory, beside plain pinned copies of as many bytes."""
    lines = []
    for case in result["matrices"]:
        host, ours = case.get("host"), case["ours"]["auto"]
        if not host:
            continue
        cells = [case["matrix"], str(case["width"]), "pinned" if host["pinned"] else "pageable",
                 f"{host['bytes_in'] / 1e9:.2f} / {host['bytes_out'] / 1e9:.2f}",
                 " / ".join(f"{host[k] / 1e9:.1f}" for k in ("link_in", "link_out", "link_both")), both_times([ours])]
        if works(ours):
            rate = (host["bytes_in"] + host["bytes_out"]) / ours["median_seconds"]
            cells += [f"{rate / 1e9:.1f}", f"**{100 * host['link_fraction']:.0f} %**",
                      f"{case['checked']['largest_error']:.1e}" if case["checked"] else "no"]
        lines.append("| " + " | ".join(cells) + " |")
    budget = result["options"]["memory"]
    return lines and [f"With {size(budget)} of device memory." if budget else "With all of the device's memory.", "",
                      "| graph | width | host memory | in / out, GB | link in / out / both, GB/s | ours, ms | GB/s "
                      "| of the link | largest error |", "|" + "---|" * 9] + lines


def spmm_small_table(results):
    """How many times as fast as f32 features of 16 bits are: geometric means over the graphs, a column a width."""
    lines, whole = [], {}
    for result in results:
        options, cases = result["options"], result["matrices"]
        if options["reduce"] == "sum" and not any(c.get("ablation") or c.get("host") or not works(c["ours"]["auto"])
                                                  for c in cases):
            times = {(c["matrix"], c["width"]): c["ours"]["auto"]["median_seconds"] for c in cases}
            whole.setdefault(place_of(result), {})[options["features"], options.get("result", "f32")] = times
    for place, made in whole.items():
        base = made.get(("f32", "f32"), {})
        for (features, product), times in sorted(made.items(), key=lambda m: m[0][1] != "f32"):
            ratios = {case: base[case] / t for case, t in times.items() if case in base}
            if features not in ("f16", "bf16") or not ratios:
                continue
            widths = sorted({width for _, width in ratios})
            if not lines:
                lines = ["| on | features | result | graphs | " + " | ".join(map(str, widths)) + " | all |",
                         "|" + "---|" * (len(widths) + 5)]
            means = [geometric_mean([r for (_, w), r in ratios.items() if w == width]) for width in widths]
            lines.append(f"| {place} | {features} | {product} | {len({graph for graph, _ in ratios})} | " +
                         " | ".join(f"{m:.2f}×" for m in [*means, geometric_mean(list(ratios.values()))]) + " |")
    return "\n".join(lines)
