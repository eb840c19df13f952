"""Writes the tables of README.md and docs/performance.md from bench/results/*.json.

They stand between <!-- bench:mcl --> (whole processes) or <!-- bench:mcl-phases --> (where the time goes), or one of
<!-- bench:spgemm -->, <!-- bench:spgemm-phases -->, <!-- bench:spgemm-plan -->, <!-- bench:spgemm-stage -->, <!--
bench:aia-l1 -->, <!-- bench:spmm -->, <!-- bench:spmm-warps -->, <!-- bench:spmm-partitions -->, <!--
bench:spmm-amortised -->, <!-- bench:spmm-sizes -->, <!-- bench:spmm-host -->, <!-- bench:spmm-small -->, <!--
bench:contract -->, <!-- bench:contract-stage -->, <!-- bench:gnn-train -->, <!-- bench:gnn-maxk -->, <!--
bench:gnn-sample -->, <!-- bench:gnn-accuracy -->, <!-- bench:gnn-check -->, or <!-- bench:summary --> (all tools in a few lines), and <!--
/bench -->; everything else of the files is left alone. With --check nothing is written and the exit status says
whether the tables are up to date; --show FILE... prints the tables of these results; --add FILE REPORT... adds
reports of gnn train to a result of the same machine and commit; else it is begun anew.
"""
import datetime
import fcntl
import glob
import json
import math
import os
import platform
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def seconds(value):
    return f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def size(value):
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def heading(result):
    machine = result["machine"]
    gpu = f", {machine['gpu']} (driver {machine['driver']})" if machine["gpu"] else ""
    commit = f", commit {result['commit']}" if result["commit"] else ""
    return f"{machine['cpu']}, {result['threads']} threads{gpu}, {result['date']}{commit}"


def works(tool):
    return tool is not None and "failed" not in tool


def best_peer(tools):
    """The faster of mcl's two modes."""
    peers = [(t["median_seconds"], name, t) for name, t in tools.items() if name.startswith("mcl") and
             not name.startswith("mcl-gpu") and works(t)]
    return min(peers, key=lambda p: p[0]) if peers else None


def agreement(tools):
    said = []
    for device in ("cpu", "cuda"):
        tool = tools.get("mcl-gpu " + device)
        if not works(tool) or "agreement" not in tool:
            continue
        same = tool["agreement"]
        said.append("identical file" if same["identical"] else f"{same['moved_nodes']} nodes moved")
    if len(set(said)) <= 1:
        return said[0] if said else "not compared"
    return f"CPU {said[0]}, GPU {said[1]}"


def own(tool, peer):
    if not works(tool):
        return "", ""
    ratio = f" (**{peer[0] / tool['median_seconds']:.1f}×**)" if peer else ""
    return seconds(tool["median_seconds"]) + ratio, size(tool["peak_bytes"])


def results_table(results):
    lines = []
    for result in results:
        lines += ["", heading(result) + ":", "",
                  "| network | edges | `mcl`, its faster mode | memory | mcl-gpu, CPU | memory | mcl-gpu, GPU "
                  "| memory | clusters |", "|---|---|---|---|---|---|---|---|---|"]
        for network in result["networks"]:
            tools = network["tools"]
            peer = best_peer(tools)
            cpu, cuda = own(tools.get("mcl-gpu cpu"), peer), own(tools.get("mcl-gpu cuda"), peer)
            cells = [network["network"], f"{network.get('edges', 0) / 1e6:.2f} M",
                     f"{seconds(peer[0])} (`{peer[1]}`)" if peer else "", size(peer[2]["peak_bytes"]) if peer else "",
                     *cpu, *cuda, agreement(tools)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines[1:])


def phases_table(results):
    lines = []
    for result in results:
        rows = [(n, name, tool) for n in result["networks"] for name, tool in n["tools"].items()
                if works(tool) and "phases" in tool]
        if not rows:
            continue
        names = list(rows[0][2]["phases"])
        lines += ["", heading(result) + ", last run of each, seconds:", "",
                  "| network | back end | iterations | products | " + " | ".join(names) + " |",
                  "|" + "---|" * (4 + len(names))]
        for network, name, tool in rows:
            cells = [network["network"], name.removeprefix("mcl-gpu "), str(tool["iterations"]),
                     f"{network['products'] / 1e9:.2f} G"] + [f"{tool['phases'][p]:.3f}" for p in names]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines[1:])


# ---- sparse products


def milliseconds(value):
    return f"{1e3 * value:.3g}" if value < 1 else f"{1e3 * value:.0f}"


def count(value):
    return f"{value / 1e6:.1f} M" if value >= 1e6 else f"{value:,}"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def products_heading(result):
    machine = result["machine"]
    gpu = f"{machine['gpu']} (CUDA {machine['cuda']}, driver {machine['driver']}), " if machine["gpu"] else ""
    commit = f", commit {result['commit']}" if result["commit"] else ""
    options = result["options"]
    threads = f", {options['threads'] or machine['cores']} threads" if not machine["gpu"] else ""
    semiring = f", {options['semiring']}" if "semiring" in options else ""
    return (f"{gpu}{machine['cpu']}{threads}, {options['values']}{semiring}, copies at "
            f"{machine['copy_bandwidth'] / 1e9:.0f} GB/s, {result['date']}{commit}")


def full_peers(matrix):
    """Peers that make all of C; a plan's numeric phase is none."""
    return [p for p in matrix["peers"] if "plan_seconds" not in p and not p["name"].endswith("reuse")]


def best_of(matrix):
    """The fastest peer whose columns ascend, as ours do."""
    ran = [p for p in full_peers(matrix) if works(p) and p["sorted"]]
    return min(ran, key=lambda p: p["median_seconds"]) if ran else None


def checked(matrix):
    verdict = matrix["checked"]
    if verdict is None:
        return "no"
    return ("" if verdict["good"] else "**wrong**, ") + verdict["with"] + ("" if verdict["whole"] else ", in samples")


def name_of(matrix):
    return matrix["matrix"] + ("" if matrix["operation"] == "A*A" else f" ({matrix['operation']})")


def spgemm_rows(result):
    names, ratios = [], {}
    for matrix in result["matrices"]:
        for peer in full_peers(matrix):
            if peer["name"] not in names:
                names.append(peer["name"])
    titles = ["matrix", "rows", "nnz", "products", "nnz(C)", "ours, ms", "GFLOPS", "of copy"] + \
        [name + ", ms" for name in names] + ["faster than the best by", "memory", "checked with"]
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for matrix in result["matrices"]:
        ours = matrix["ours"]
        cells = [name_of(matrix)] + [count(matrix[k]) for k in ("rows", "nnz", "products", "nnz_product")]
        if not works(ours):
            lines.append("| " + " | ".join(cells + [ours["failed"]] + [""] * (len(titles) - 6)) + " |")
            continue
        mine, best = ours["median_seconds"], best_of(matrix)
        cells += [f"**{milliseconds(mine)}**", f"{matrix['gflops']:.3g}", f"{100 * matrix['copy_fraction']:.1f} %"]
        peers = {p["name"]: p for p in full_peers(matrix)}
        for name in names:
            peer = peers.get(name)
            cells.append("" if peer is None else milliseconds(peer["median_seconds"]) if works(peer)
                         else peer["failed"])
            if works(peer):
                ratios.setdefault(name, []).append(peer["median_seconds"] / mine)
        if best:
            ratios.setdefault("best", []).append(best["median_seconds"] / mine)
        cells += [f"{best['median_seconds'] / mine:.2f}×" if best else "",
                  f"{100 * ours['peak_bytes'] / matrix['bytes']:.0f} %" if ours["peak_bytes"] else "",
                  checked(matrix)]
        lines.append("| " + " | ".join(cells) + " |")
    means = [f"{geometric_mean(ratios[n]):.2f}×" if n in ratios else "" for n in names + ["best"]]
    if ratios:
        lines.append("| geometric mean |" + " |" * 7 + " " + " | ".join(means) + " | | |")
    return lines


def spgemm_phase_rows(result):
    lines = ["| matrix | analysis | stage | symbolic | numeric | batches | groups |", "|" + "---|" * 7]
    for matrix in result["matrices"]:
        ours = matrix["ours"]
        if works(ours):
            groups = ", ".join(f"{name} {number:,}" for name, number in ours["groups"].items())
            times = [milliseconds(ours["seconds"][p]) for p in ("analysis", "stage", "symbolic", "numeric")]
            lines.append("| " + " | ".join([name_of(matrix)] + times + [str(ours["batches"]), groups]) + " |")
    return lines


def spgemm_plan_rows(result):
    lines, ratios = [], []
    for matrix in result["matrices"]:
        plan = matrix.get("plan")
        if not works(plan):
            continue
        speed = 2e-9 * matrix["products"]
        cells = [name_of(matrix), milliseconds(matrix["plan_seconds"]), f"**{milliseconds(plan['median_seconds'])}**",
                 f"{speed / plan['median_seconds']:.3g}"]
        reuse = next((p for p in matrix["peers"] if p["name"].endswith("reuse")), None)
        if works(reuse):
            ratios.append(reuse["median_seconds"] / plan["median_seconds"])
            cells += [milliseconds(reuse["plan_seconds"]), milliseconds(reuse["median_seconds"]),
                      f"{speed / reuse['median_seconds']:.3g}", f"{ratios[-1]:.2f}×"]
        else:
            cells += ["", reuse["failed"] if reuse else "", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    if ratios:
        lines.append("| geometric mean |" + " |" * 6 + f" {geometric_mean(ratios):.2f}× |")
    return lines and ["| matrix | pattern, ms | values, ms | GFLOPS | cuSPARSE reuse: pattern, ms | values, ms "
                      "| GFLOPS | faster by |", "|" + "---|" * 8] + lines


def spgemm_stage_rows(result):
    """The paper's Table III, with both honest baselines: no stage, its loads cached or not."""
    lines = []
    for matrix in result["matrices"]:
        modes = [matrix.get(key) for key in ("stage_off_uncached", "stage_off", "stage_on")]
        if not all(works(mode) for mode in modes):
            continue
        uncached, off, on = (mode["median_seconds"] for mode in modes)
        ratio = matrix["stage_ratio"]
        cells = [name_of(matrix), milliseconds(uncached), milliseconds(off), milliseconds(on),
                 f"{100 * (off / on - 1):+.1f} %", f"{100 * ratio:.1f} %"]
        cells += [f"{milliseconds(on * (1 - ratio * part))} ({100 * ratio * part:.2f} %)" for part in (0.5, 0.75)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines and ["| matrix | no stage, uncached loads, ms | no stage, ms | stage, ms | gain | stage's share "
                      "| stage 2× as fast, ms | 4× as fast, ms |", "|" + "---|" * 8] + lines


def first_level_heading(result):
    machine = result["machine"]
    return f"{machine['gpu']} (driver {machine['driver']}), {result['date']}, commit {result['commit']}"


def first_level_rows(result):
    """The paper's Figure 5: hits among the lookups of the first-level cache, by phase."""
    ways, lines = ("uncached", "cached", "stage"), []
    for matrix in result["matrices"]:
        for phase in ("symbolic", "numeric"):
            counts = [matrix["ways"][way][phase] for way in ways]
            cells = [matrix["matrix"], phase] + [f"{100 * c['l1_hit_ratio']:.0f} %" for c in counts]
            lines.append("| " + " | ".join(cells) + " |")
    return ["| matrix | phase | no stage, uncached loads | no stage | stage |", "|" + "---|" * 5] + lines


# ---- quotient graphs


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
        pairs = [(fused, ran), (products, [p for p in ran if not p["name"].startswith("CUB")])]
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


def tables(results, rows, heading_of=products_heading):
    lines = []
    for result in results:
        made = rows(result)
        if made:
            lines += ["", heading_of(result) + ":", ""] + made
    return "\n".join(lines[1:])


FP64 = "spgemm-*-fp64.json"
SPGEMM_TABLES = (("spgemm", "spgemm-*.json", spgemm_rows), ("spgemm-phases", FP64, spgemm_phase_rows),
                 ("spgemm-plan", FP64, spgemm_plan_rows), ("spgemm-stage", "spgemm-*.json", spgemm_stage_rows))


CONTRACT_TABLES = (("contract", contract_rows), ("contract-stage", contract_stage_rows))


# ---- sparse times dense

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
    titles = ["graph", "rows", "nnz", "width", "ours, ms", "chosen", "of copy", "gathered, TB/s"] + \
        ["of the floor"] * floors + [name + ", ms" for name in [*SPMM_ALGORITHMS.values(), *names]] + \
        ["faster than the best by", "largest error"]
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
        cells += [f"{min(ran) / mine:.2f}×" if ran else "",
                  "" if verdict is None else ("" if verdict["good"] else "**wrong**, ") +
                  f"{verdict['largest_error']:.1e}"]
        lines.append("| " + " | ".join(cells) + " |")
    means = [f"{geometric_mean(ratios[n]):.2f}×" if n in ratios else "" for n in names + ["best"]]
    if ratios:
        lines.append("| geometric mean |" + " |" * (10 + floors) + " " + " | ".join(means) + " | |")
    if behind:
        near = sum(b <= 0.05 for b in behind)
        lines += ["", f"The choice is within 5 % of the fastest algorithm in {near} of {len(behind)} cases, "
                  f"at worst {100 * max(behind):.0f} % behind it."]
    return lines


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


def ratio_cell(value):
    return f"{value:.2f}×" if value else ""


def block_metadata(case, gpu):
    """Of the blocks alone, 16 bytes each on a GPU, and with the order of the rows, as shares of a warp-level
    partition's metadata."""
    block, warps = case["ours"]["block_partition"], case["warp_metadata_bytes"]
    if not works(block) or not warps or not gpu:
        return "", ""
    return f"{100 * 16 * block['partitions'] / warps:.0f} %", f"{100 * block['metadata_bytes'] / warps:.0f} %"


def memory_ratio(case, plan):
    """A, X, Y and the plan's metadata over A, X and Y."""
    return f"{1 + plan['metadata_bytes'] / case['compulsory_bytes']:.3f}×" if works(plan) else ""


def with_mean(lines, columns, head):
    """A last line of the geometric means of columns, lists of ratios, after `head` empty cells."""
    if any(columns):
        cells = [ratio_cell(geometric_mean([v for v in column if v])) for column in columns]
        lines.append("| geometric mean |" + " |" * (head - 1) + " " + " | ".join(cells) + " |")
    return lines


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


SPMM_TABLES = (("spmm", spmm_rows), ("spmm-warps", spmm_warp_rows), ("spmm-partitions", spmm_partition_rows),
               ("spmm-amortised", spmm_amortised_rows), ("spmm-sizes", spmm_size_rows), ("spmm-host", spmm_host_rows))


# ---- graph neural networks

# What a matrix of a result can hold, and the part of a run that it is; PyTorch's by the command that made it.
GNN_PARTS = {"training": "train", "aggregation": "aggregate", "sampling": "sample", "accuracy": "accuracy"}
TORCH_PARTS = {"speed": "torch", "sample": "torch-sample", "accuracy": "torch-accuracy", "check": "torch-check"}
TORCH_WAYS = ("PyG CSR", "PyG scatter", "CSR by hand")


def gnn_runs(paths):
    """{device: {part: result}} of files gnn-*.json; parts of several files are joined."""
    runs = {}
    for result in load(sorted(paths)):
        run = runs.setdefault(result["machine"]["gpu"] or "CPU", {})
        for matrix in result["matrices"]:
            parts = [TORCH_PARTS[result["command"]]] if result["bench"] == "gnn-torch" else \
                [part for key, part in GNN_PARTS.items() if matrix.get(key)]
            for part in parts:
                joined = run.setdefault(part, {**result, "matrices": [], "commits": {}})
                joined["matrices"].append(matrix)
                joined["date"] = max(joined["date"], result["date"])
                joined["commits"].setdefault(result["commit"], set()).add(matrix["matrix"])
    return dict(sorted(runs.items()))


def commits_of(result):
    """Those of a result's files; the graphs of each where they are several."""
    commits = {commit: graphs for commit, graphs in result["commits"].items() if commit}
    if len(commits) < 2:
        return "".join(f"commit {commit}" for commit in commits)
    said = [f"{commit} ({' '.join(sorted(graphs))})" for commit, graphs in sorted(commits.items())]
    return "commits " + ", ".join(said)


def gnn_heading(result):
    machine = result["machine"]
    parts = [machine["gpu"] or "", machine["cpu"], f"{result['options']['threads'] or machine['cores']} threads"]
    parts += [f"PyTorch {machine['torch']}" if "torch" in machine else "",
              f"PyTorch Geometric {machine['torch_geometric']}" if machine.get("torch_geometric") else "",
              "fp32", result["date"], commits_of(result)]
    return ", ".join(part for part in parts if part)


def cases(run, part, key):
    """{graph: list} of a part of a run; empty where it was not measured."""
    found = {}
    for matrix in run.get(part, {"matrices": []})["matrices"]:
        found.setdefault(matrix["matrix"], []).extend(matrix[key])
    return found


def both_times(times):
    said = [milliseconds(t["median_seconds"]) if works(t) else t["failed"] for t in times if t]
    return " / ".join(said)


def fastest(variants, key, ways):
    ran = [v[key] for v in variants if v["name"].split(",")[0] in ways]
    good = [t for t in ran if works(t)]
    return min(good, key=lambda t: t["median_seconds"]) if good else ran[0] if ran else None


def ratio_of(theirs, ours):
    return f"{theirs['median_seconds'] / ours['median_seconds']:.2f}×" if works(theirs) and works(ours) else ""


def relu_beside(trainings, t):
    """Our fastest training of the same model with ReLU, in whatever order of the nodes."""
    same = [o for o in trainings if o["maxk"] == 0 and not o["kept"] and not o.get("half") and works(o["epoch"]) and
            all(o[k] == t[k] for k in ("model", "hidden"))]
    return min(same, key=lambda o: o["epoch"]["median_seconds"]) if same and t["maxk"] else None


def gnn_train_rows(run):
    """Forward and epoch, ours beside each way of PyTorch, each at its fastest; MaxK beside ReLU."""
    titles = ["graph", "model", "hidden", "A·X", "MaxK"] + [way + ", ms" for way in TORCH_WAYS] + \
        ["ours, ms", "epoch faster than PyG's best by", "than the best by", "than our ReLU by"]
    lines, theirs = [], cases(run, "torch", "training")
    for graph, trainings in cases(run, "train", "training").items():
        for t in trainings:
            same = [o for o in theirs.get(graph, ()) if all(o[k] == t[k] for k in ("model", "hidden", "kept"))]
            variants = [v for o in same for v in o["variants"]]
            relu = relu_beside(trainings, t)
            cells = [graph + (", renumbered" if t.get("order") == "community" else ""), t["model"], str(t["hidden"]),
                     "kept" if t["kept"] else "in bf16" if t.get("half") else "each time",
                     str(t["maxk"] or "")]
            cells += [both_times([fastest(variants, k, (way,)) for k in ("forward", "epoch")]) if variants else ""
                      for way in TORCH_WAYS]
            cells += ["**" + both_times([t["forward"], t["epoch"]]) + "**",
                      ratio_of(fastest(variants, "epoch", TORCH_WAYS[:2]), t["epoch"]),
                      ratio_of(fastest(variants, "epoch", TORCH_WAYS), t["epoch"]),
                      ratio_of(relu["epoch"], t["epoch"]) if relu else ""]
            lines.append("| " + " | ".join(cells) + " |")
    return lines and ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] + lines


def gnn_maxk_rows(run):
    lines = []
    for graph, aggregations in cases(run, "aggregate", "aggregation").items():
        for a in aggregations:
            kept = f"{a['k']} of {a['width']}"
            base = next((r for r in a["rows"] if r["name"] == "cuSPARSE" and works(r["forward"])), a["rows"][1])
            total = sum(base[k]["median_seconds"] for k in ("forward", "backward"))
            for row in a["rows"]:
                forward, backward = row["forward"], row["backward"]
                good = works(forward) and works(backward)
                mine = sum(t["median_seconds"] for t in (forward, backward)) if good else None
                cells = [graph, kept, row["name"], both_times([forward]), both_times([backward]),
                         milliseconds(mine) if good else "", f"{total / mine:.2f}×" if good else "",
                         f"{max(forward['error'], backward['error']):.1e}" if good else ""]
                lines.append("| " + " | ".join(cells) + " |")
            lines.append(f"| {graph} | {kept} | selection alone | {both_times([a['select']])} | | | | |")
    return lines and ["| graph | kept | implementation | forward, ms | backward, ms | total, ms "
                      "| faster than cuSPARSE by | largest error |", "|" + "---|" * 8] + lines


def gnn_sample_rows(run):
    lines, theirs, names = [], cases(run, "torch-sample", "sampling"), []
    for samplings in theirs.values():
        for s in samplings:
            names += [v["name"] for v in s["variants"] if v["name"] not in names]
    for graph, samplings in cases(run, "sample", "sampling").items():
        for s in samplings:
            same = [o for o in theirs.get(graph, ()) if o["fanout"] == s["fanout"]]
            variants = {v["name"]: v for v in same[0]["variants"]} if same else {}
            mine = s["edges_a_second"]
            rates = [v["edges_a_second"] for v in variants.values() if works(v)]
            cells = [graph, ", ".join(map(str, s["fanout"])), count(s["edges"]), str(s["minibatches"])]
            cells += [f"{variants[n]['edges_a_second'] / 1e6:.1f}" if works(variants.get(n)) else
                      variants[n]["failed"] if n in variants else "" for n in names]
            cells += [f"**{mine / 1e6:.1f}**" if mine else s["pass"]["failed"],
                      f"{mine / max(rates):.1f}×" if mine and rates else ""]
            lines.append("| " + " | ".join(cells) + " |")
    titles = ["graph", "fan-outs", "edges a pass", "minibatches"] + [n + ", M edges a second" for n in names] + \
        ["ours, M edges a second", "faster than the best by"]
    return lines and ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] + lines


def accuracy_case(a):
    return a["model"], a.get("hidden") or 0, a.get("maxk") or 0


def gnn_accuracy_rows(run):
    """Ours beside PyTorch Geometric's; MaxK beside ReLU."""
    def of(found, *case):
        return next((a for a in found if accuracy_case(a) == case), None)

    lines, theirs = [], cases(run, "torch-accuracy", "accuracy")
    for graph, found in sorted(cases(run, "accuracy", "accuracy").items()):
        for a in sorted(found, key=accuracy_case):
            model, hidden, maxk = accuracy_case(a)
            same = None if maxk else of(theirs.get(graph, ()), model, hidden, 0)
            relu = of(found, model, hidden, 0) if maxk else None
            cells = [graph, model, str(hidden), str(maxk or ""), str(a["seeds"])]
            for side in (a, same):
                cells.append(f"{100 * side['test_accuracy']:.2f} ± {100 * side['deviation']:.2f}" if side else "")
            for other in (same, relu):
                cells.append(f"{100 * (a['test_accuracy'] - other['test_accuracy']):+.2f}" if other else "")
            lines.append("| " + " | ".join(cells) + " |")
    return lines and ["| graph | model | hidden | MaxK | seeds | ours, % | PyTorch Geometric, % | points "
                      "| beside our ReLU, points |", "|" + "---|" * 9] + lines


def gnn_check_rows(run):
    lines = []
    for graph, found in cases(run, "torch-check", "gradients").items():
        lines += [f"| {graph} | {g['model']} | {g['type']} | {g['logits_error']:.1e} | {g['gradient_error']:.1e} |"
                  for g in found]
    return lines and ["| graph | model | type | logits apart by | gradients, relative |", "|" + "---|" * 5] + lines


GNN_TABLES = (("gnn-train", "train", gnn_train_rows), ("gnn-maxk", "aggregate", gnn_maxk_rows),
              ("gnn-sample", "sample", gnn_sample_rows), ("gnn-accuracy", "accuracy", gnn_accuracy_rows),
              ("gnn-check", "torch-check", gnn_check_rows))


def gnn_table(runs, part, rows):
    lines = []
    for run in runs.values():
        made = rows(run)
        if made:
            other = run.get("torch" if part == "train" else "torch-" + part)
            beside = f"; beside it {gnn_heading(other)}" if other and part != "torch-check" else ""
            lines += ["", gnn_heading(run[part]) + beside + ":", ""] + made
    return "\n".join(lines[1:])


def accuracy_of(report):
    o = report["options"]
    return {"model": o["model"], "hidden": o["hidden"], "maxk": o["maxk"], "seeds": o["seeds"], "options": o,
            "test_accuracy": report["test_accuracy"], "deviation": report["test_accuracy_deviation"] or 0,
            "runs": [run["test_accuracy"] for run in report["runs"]],
            "median_epoch_seconds": report["median_epoch_seconds"], "seconds": report["seconds"]}


def processor():
    """The model's name, which only /proc/cpuinfo tells."""
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def add_reports(path, reports):
    """Those of gnn train to a result, where they replace the same cases. One process at a time."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    made = load([path])[0] if os.path.exists(path) else None
    for report in load(reports):
        head = {"bench": "gnn", "commit": os.environ.get("BENCH_COMMIT"), "options": {"threads": os.cpu_count()},
                "machine": {"cpu": processor(), "cores": os.cpu_count(),
                            "gpu": report["device"].partition(" ")[2] or None}}
        if made is None or any(made[k] != head[k] for k in ("commit", "machine")):
            made = {**head, "date": datetime.date.today().isoformat(), "matrices": []}
        name, new = os.path.basename(os.path.normpath(report["data"]["folder"])), accuracy_of(report)
        matrix = next((m for m in made["matrices"] if m["matrix"] == name), None)
        if matrix is None:
            matrix = {"matrix": name, "accuracy": []}
            made["matrices"].append(matrix)
        matrix["accuracy"] = [a for a in matrix["accuracy"] if accuracy_case(a) != accuracy_case(new)] + [new]
    with open(path + ".part", "w") as file:
        json.dump(made, file, indent=1)
    os.replace(path + ".part", path)
    os.close(folder)


# ---- all tools in a few lines


def threads_of(machine, threads):
    return f"{machine['cpu'].replace('(R)', '').replace(' Processor', '')}, {threads or machine['cores']} threads"


def clustering_cases(results):
    """(where, peer, how many times as fast) of every network on every back end."""
    for result in results:
        machine = result["machine"]
        for network in result["networks"]:
            peer = best_peer(network["tools"])
            places = {"mcl-gpu cuda": machine["gpu"], "mcl-gpu cpu": threads_of(machine, result["threads"])}
            for name, place in places.items():
                tool = network["tools"].get(name)
                if works(tool) and peer:
                    yield place, "mcl", peer[0] / tool["median_seconds"]


def place_of(result):
    machine = result["machine"]
    return machine["gpu"] or threads_of(machine, result["options"]["threads"])


def library_cases(results, own, peers):
    """The same of `own`(matrix) beside the fastest of `peers`(matrix)."""
    for result in results:
        for matrix in result["matrices"]:
            ran = [p for p in peers(matrix) if works(p)]
            if not ran or not works(own(matrix)) or any(matrix.get(k) for k in ("ablation", "host", "stage_on")):
                continue
            best = min(ran, key=lambda p: p["median_seconds"])
            yield place_of(result), best["name"].split()[0], best["median_seconds"] / own(matrix)["median_seconds"]


def training_cases(runs):
    """Epochs of one order of the nodes, the tool's own, beside the faster of PyTorch Geometric's two ways."""
    for run in runs.values():
        theirs = cases(run, "torch", "training")
        for graph, trainings in cases(run, "train", "training").items():
            for t in trainings:
                same = [v for o in theirs.get(graph, ()) for v in o["variants"]
                        if all(o[k] == t[k] for k in ("model", "hidden", "kept"))]
                peer = fastest(same, "epoch", TORCH_WAYS[:2])
                if works(peer) and works(t["epoch"]) and not t["maxk"] and not t.get("half"):
                    yield place_of(run["train"]), "PyTorch Geometric", peer["median_seconds"] / \
                        t["epoch"]["median_seconds"]


def sampling_cases(runs):
    for run in runs.values():
        theirs = cases(run, "torch-sample", "sampling")
        for graph, samplings in cases(run, "sample", "sampling").items():
            for s in samplings:
                rates = [v["edges_a_second"] for o in theirs.get(graph, ()) if o["fanout"] == s["fanout"]
                         for v in o["variants"] if works(v)]
                if rates and s["edges_a_second"]:
                    yield place_of(run["sample"]), "PyTorch Geometric", s["edges_a_second"] / max(rates)


def summary_table(results, runs):
    rows = []
    for what, made in (
            ("Markov clustering, whole runs", clustering_cases(results("mcl-*.json"))),
            ("sparse × sparse, fp64", library_cases(results(FP64), lambda m: m["ours"], lambda m: [
                p for p in full_peers(m) if p["sorted"]])),
            ("sparse × dense, fp32", library_cases(results("spmm-*-fp32.json") + results("spmm-cpu-*.json"),
                                                   lambda m: m["ours"]["auto"], lambda m: m["peers"])),
            ("quotient graphs, fp32", library_cases(results("contract-*.json"), lambda m: m["ours"]["fused"],
                                                    lambda m: [p for p in m["peers"] if p["sorted"]])),
            ("an epoch of GCN or GraphSAGE", training_cases(runs)),
            ("sampling neighbours", sampling_cases(runs))):
        groups = {}
        for place, peer, ratio in made:
            groups.setdefault(place, []).append((peer, ratio))
        for place, found in sorted(groups.items(), key=lambda g: g[0].endswith("threads")):
            ratios = [ratio for _, ratio in found]
            rows.append(f"| {what} | {place} | {', '.join(sorted({peer for peer, _ in found}))} | {len(found)} | "
                        f"**{geometric_mean(ratios):.1f}×** | {min(ratios):.1f} to {max(ratios):.1f} |")
    return "\n".join(["| | on | fastest of | cases | faster by | from, to |", "|" + "---|" * 6] + rows)


# ---- files


def load(paths):
    results = []
    for path in paths:
        with open(path) as file:
            results.append(json.load(file))
    return results


def filled(text, folder):
    def results(pattern):
        return load(sorted(glob.glob(os.path.join(folder, pattern))))

    made = [("mcl", results_table(results("mcl-*.json"))), ("mcl-phases", phases_table(results("mcl-*.json")))]
    made += [(marker, tables(results(pattern), rows)) for marker, pattern, rows in SPGEMM_TABLES]
    made += [("aia-l1", tables(results("aia-l1-*.json"), first_level_rows, first_level_heading))]
    made += [(marker, tables(results("spmm-*.json"), rows, spmm_heading)) for marker, rows in SPMM_TABLES]
    made += [("spmm-small", spmm_small_table(results("spmm-*.json")))]
    made += [(marker, tables(results("contract-*.json"), rows)) for marker, rows in CONTRACT_TABLES]
    runs = gnn_runs(glob.glob(os.path.join(folder, "gnn-*.json")))
    made += [(marker, gnn_table(runs, part, rows)) for marker, part, rows in GNN_TABLES]
    made += [("summary", summary_table(results, runs))]
    for marker, table in made:
        text = re.sub(rf"(<!-- bench:{marker} -->\n).*?(<!-- /bench -->)",
                      lambda m, table=table: m.group(1) + (table + "\n" if table else "") + m.group(2),
                      text, flags=re.S)
    return text


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--add":
        add_reports(sys.argv[2], sys.argv[3:])
        return 0
    if len(sys.argv) > 1 and sys.argv[1] == "--show":
        runs = gnn_runs(path for path in sys.argv[2:] if os.path.basename(path).startswith("gnn-"))
        for _, part, rows in GNN_TABLES:
            if gnn_table(runs, part, rows):
                print(gnn_table(runs, part, rows), end="\n\n")
        for result in load(sys.argv[2:]):
            for _, rows in SPMM_TABLES if result["bench"] == "spmm" else ():
                if rows(result):
                    print(tables([result], rows, spmm_heading), end="\n\n")
            if result["bench"] == "aia-l1":
                print(tables([result], first_level_rows, first_level_heading))
            known = {"spgemm": (spgemm_rows, spgemm_plan_rows, spgemm_stage_rows),
                     "contract": [rows for _, rows in CONTRACT_TABLES]}
            for rows in known.get(result["bench"], ()):
                if rows(result):
                    print(tables([result], rows), end="\n\n")
        return 0
    stale = False
    for name in ("README.md", "docs/performance.md"):
        path = os.path.join(ROOT, name)
        with open(path) as file:
            old = file.read()
        new = filled(old, os.path.join(ROOT, "bench", "results"))
        stale |= new != old
        if new != old and "--check" not in sys.argv:
            with open(path, "w") as file:
                file.write(new)
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
