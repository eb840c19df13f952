"""Sparse times sparse: whole products, their phases, plans, the gather stage."""
from .common import count, geometric_mean, milliseconds, works


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


def spgemm_gpu_rows(result):
    return spgemm_rows(result) if result["machine"]["gpu"] else []


def spgemm_cpu_rows(result):
    return [] if result["machine"]["gpu"] else spgemm_rows(result)


def gpu_phase_rows(result):
    return spgemm_phase_rows(result) if result["machine"]["gpu"] else []


def cpu_phase_rows(result):
    return [] if result["machine"]["gpu"] else spgemm_phase_rows(result)


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
