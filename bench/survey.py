"""Judges a survey of speed: for each part the ratios of the fastest peer's time to ours, by family and over all, and
the ten worst cases. With --before DIR, the JSON files of an earlier run, also how our own times moved.

usage: bench/survey.py [--before DIR] [--svg FILE] RESULT.json...

A ratio above 1 says that we are faster. Peers that failed, or whose columns are not sorted, do not count; a case that
no peer finished counts for none. --svg draws how the ratios are distributed (matplotlib)."""
import json
import math
import os
import sys


def cases(result):
    """Yields (family, name, our seconds or None, {peer: seconds}) of each case of a result."""
    for r in result["matrices"]:
        family = r.get("family") or "file"
        name = r["matrix"] + suffix(r)
        yield family, name, our_seconds(r), peer_seconds(r)
        plan = r.get("plan")
        if plan and "median_seconds" in plan:
            reuse = {p["name"]: p["median_seconds"] for p in r["peers"] if "plan_seconds" in p}
            yield "plan: " + family, name + " plan", plan["median_seconds"], reuse


def suffix(r):
    """What tells the cases of one matrix apart."""
    if "width" in r:
        return f" x{r['width']}"
    if "labels" in r:
        return f" {r['groups']} {r['labels']}"
    return "" if r.get("operation") in (None, "A*A") else " " + r["operation"]


def ours_of(r):
    """Our figures as a user gets them: of SpMM the algorithm that the library chooses, of quotients the one pass."""
    own = r["ours"]
    return own.get("auto") or own.get("fused") or own


def our_seconds(r):
    return ours_of(r).get("median_seconds")


def first_calls(result):
    """A sentence on what the first call of a case takes beside the later ones; "" where that was not measured."""
    ratios = [(own["first_seconds"] / own["median_seconds"], r["matrix"] + suffix(r)) for r in result["matrices"]
              if (own := ours_of(r)).get("first_seconds") and own.get("median_seconds")]
    if not ratios:
        return ""
    return f"  first calls: {mean([r for r, _ in ratios]):.2f} of later ones, at most {max(ratios)[0]:.2f} ({max(ratios)[1]})\n"


def peak_memory(result):
    """A sentence on our peak memory beside operands and result, in their bytes; "" where it was not measured."""
    shares = sorted((own["peak_bytes"] / (r.get("bytes") or r["compulsory_bytes"]), r["matrix"] + suffix(r))
                    for r in result["matrices"] if (own := ours_of(r)).get("peak_bytes") is not None)
    if not shares:
        return ""
    return (f"  peak memory beside operands and result: {100 * shares[len(shares) // 2][0]:.1f} % of them (median), at most "
            f"{100 * shares[-1][0]:.1f} % ({shares[-1][1]})\n")


def peer_seconds(r):
    """The times of the peers that did the same work: not those that promise no order and were lucky."""
    return {p["name"]: p["median_seconds"] for p in r["peers"]
            if "median_seconds" in p and p.get("sorted", True) and "plan_seconds" not in p and
            not p["name"].endswith(" unsorted")}


def mean(ratios):
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def line(name, ratios, failed):
    """One row of a table."""
    text = f"  {name:24} {len(ratios):5}"
    if ratios:
        text += f" {mean(ratios):8.2f} {min(ratios):8.2f} {max(ratios):8.2f}"
        text += f" {sum(r < 1 for r in ratios):8}"
    return text + (f"   {failed} of ours failed" if failed else "")


def judge(path, result):
    """Prints the table of one part."""
    families, worst, failed = {}, [], {}
    for family, name, ours, peers in cases(result):
        ratios = families.setdefault(family, [])
        if ours is None:
            failed[family] = failed.get(family, 0) + 1
        elif peers:
            best = min(peers, key=peers.get)
            ratios.append(peers[best] / ours)
            worst.append((ratios[-1], name, ours, best))
    machine = result["machine"]
    narrow = result["options"].get("features") in ("f16", "bf16")
    values = result["options"]["features" if narrow else "values"]
    print(f"\n{os.path.basename(path)[:-5]}: {machine['gpu'] or machine['cpu']}, {values}, "
          f"commit {result['commit']}, {result['date']}")
    print(f"  {'family':24} {'cases':>5} {'mean':>8} {'least':>8} {'most':>8} {'behind':>8}")
    for plan in (False, True):
        names = [f for f in families if f.startswith("plan: ") == plan]
        for family in names:
            print(line(family, families[family], failed.get(family, 0)))
        every = [r for family in names for r in families[family]]
        if names:
            print(line("all plans" if plan else "all", every, sum(failed.get(f, 0) for f in names)))
    print(first_calls(result) + peak_memory(result) + "  worst:")
    for ratio, name, ours, best in sorted(worst)[:10]:
        print(f"    {ratio:6.2f}  {name:44} {1e3 * ours:10.3f} ms, {best}")


def compare(before, after):
    """How our times moved from one run to another, by family; matrices drawn by other seeds are left out."""
    seeds = {m["matrix"]: m.get("seed") for m in before["matrices"]}
    same = {m["matrix"] for m in after["matrices"] if seeds.get(m["matrix"]) == m.get("seed")}
    old = {name: ours for _, name, ours, _ in cases(before)}
    families = {}
    for family, name, ours, _ in cases(after):
        if name.split(" ")[0] in same and ours and old.get(name):
            families.setdefault(family, []).append(ours / old[name])
    print("  our time, after : before")
    for family, moved in families.items():
        print(f"    {family:24} {len(moved):5} {mean(moved):8.3f} {min(moved):8.3f} {max(moved):8.3f}")
    if families:
        every = [m for moved in families.values() for m in moved]
        print(f"    {'all':24} {len(every):5} {mean(every):8.3f} {min(every):8.3f} {max(every):8.3f}")


def draw(path, results):
    """The share of the cases below each ratio."""
    import plots
    plt = plots.pyplot()
    if not plt:
        sys.exit("survey.py: matplotlib is not installed: python3 -m pip install matplotlib")
    lines = plots.survey_lines(results)
    if lines:  # a run without peers has none
        plots.draw_survey(plt, lines, path)


def main(arguments):
    """The command line."""
    options = {"--before": None, "--svg": None}
    paths = []
    while arguments:
        word = arguments.pop(0)
        if word in options and arguments:
            options[word] = arguments.pop(0)
        elif word.startswith("--"):
            sys.exit(__doc__)
        else:
            paths.append(word)
    if not paths:
        sys.exit(__doc__)
    results = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        results.append(result)
        judge(path, result)
        earlier = options["--before"] and os.path.join(options["--before"], os.path.basename(path))
        if earlier and os.path.exists(earlier):
            with open(earlier, encoding="utf-8") as file:
                compare(json.load(file), result)
    if options["--svg"]:
        draw(options["--svg"], results)


if __name__ == "__main__":
    main(sys.argv[1:])
