"""Writes the tables of README.md and docs/performance.md from bench/results/mcl-*.json.

They stand between <!-- bench:mcl --> (whole processes) or <!-- bench:mcl-phases --> (where the time goes) and
<!-- /bench -->; everything else of the files is left alone. With --check nothing is written and the exit status
says whether the tables are up to date.
"""
import glob
import json
import os
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
                  "| clusters |", "|---|---|---|---|---|---|---|---|"]
        for network in result["networks"]:
            tools = network["tools"]
            peer = best_peer(tools)
            cpu, cuda = own(tools.get("mcl-gpu cpu"), peer), own(tools.get("mcl-gpu cuda"), peer)
            cells = [network["network"], f"{network.get('edges', 0) / 1e6:.2f} M",
                     f"{seconds(peer[0])} (`{peer[1]}`)" if peer else "", size(peer[2]["peak_bytes"]) if peer else "",
                     cpu[0], cpu[1], cuda[0], agreement(tools)]
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


def filled(text, results):
    for marker, table in (("mcl", results_table), ("mcl-phases", phases_table)):
        text = re.sub(rf"(<!-- bench:{marker} -->\n).*?(<!-- /bench -->)",
                      lambda m, table=table: m.group(1) + (table(results) + "\n" if results else "") + m.group(2),
                      text, flags=re.S)
    return text


def main():
    results = []
    for path in sorted(glob.glob(os.path.join(ROOT, "bench", "results", "mcl-*.json"))):
        with open(path) as file:
            results.append(json.load(file))
    stale = False
    for name in ("README.md", "docs/performance.md"):
        path = os.path.join(ROOT, name)
        with open(path) as file:
            old = file.read()
        new = filled(old, results)
        stale |= new != old
        if new != old and "--check" not in sys.argv:
            with open(path, "w") as file:
                file.write(new)
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
