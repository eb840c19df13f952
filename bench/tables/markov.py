"""Markov clustering: whole processes, and where the time goes."""
from .common import seconds, size, works


def heading(result):
    machine = result["machine"]
    gpu = f", {machine['gpu']} (driver {machine['driver']})" if machine["gpu"] else ""
    commit = f", commit {result['commit']}" if result["commit"] else ""
    return f"{machine['cpu']}, {result['threads']} threads{gpu}, {result['date']}{commit}"


def best_peer(tools):
    """The faster of mcl's two modes."""
    peers = [(t["median_seconds"], name, t) for name, t in tools.items() if name.startswith("mcl") and
             not name.startswith("mcl-gpu") and works(t)]
    return min(peers, key=lambda p: p[0]) if peers else None


def agreed(tool):
    same = tool["agreement"]
    return "identical file" if same["identical"] else f"{same['moved_nodes']} nodes moved"


def agreement(tools):
    said = []
    for device in ("cpu", "cuda"):
        tool = tools.get("mcl-gpu " + device)
        if not works(tool) or "agreement" not in tool:
            continue
        said.append(agreed(tool))
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
