"""Markov clustering in several processes and on several GPUs: measured, reckoned, and extrapolated."""
from .common import seconds, size
from .markov import agreed

ENTRY, TILE_ENTRY = 8, 16  # bytes of an entry that mcl-gpu and CombBLAS send


def ranks_table(results):
    """mcl-gpu beside CombBLAS."""
    lines = []
    for result in results:
        machine = result["machine"]
        lines += ["", f"{machine['cpu']}, {machine['cores']} cores, {result['date']}, commit {result['commit']}:", "",
                  "| network | program, processes | time | processor time | memory of the largest | received by it "
                  "| clusters |", "|---|---|--:|--:|--:|--:|---|"]
        for network in result["networks"]:
            for name, tool in network["tools"].items():
                samples = tool["samples"]
                middle = min(samples, key=lambda s: abs(s["seconds"] - tool["median_seconds"]))
                cells = [network["network"], name, seconds(tool["median_seconds"]), seconds(middle["cpu_seconds"]),
                         size(max(s["peak_bytes"] for s in samples)), size(middle["most_received_bytes"]),
                         f"{tool['clusters']}, {agreed(tool)}"]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines[1:])


# ---- the volume model -----------------------------------------------------------------------------------------------

def networks_of(results):
    return [network for result in results for network in result["networks"]]


def total(network, way, figure, p):
    return sum(iteration[way][figure][p] for iteration in network["iterations"])


def reckoned_memory(network, p):
    """A process: the program with MPI, the largest matrices at once, and per node names, offsets and sums."""
    held = max(iteration["rows"]["most_held"][p] for iteration in network["iterations"])
    return 40e6 + ENTRY * held + 60 * network["nodes"]


def check_table(results):
    lines = ["| network | processes | received by all: reckoned | real | by one: reckoned | real "
             "| memory of the largest: reckoned | real |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for network in networks_of(results):
        for number, real in network["real"].items():
            p = network["sizes"].index(int(number))
            most = total(network, "rows", "most_received", p)
            cells = [network["network"], number, size(ENTRY * total(network, "rows", "received", p)),
                     size(real["received_bytes"]), size(ENTRY * most), size(real["most_received_bytes"]),
                     size(reckoned_memory(network, p)), size(real["peak_bytes"])]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


def share(network, way, number, figure="received"):
    """What a process receives in a run, the mean or at most, in units of all iterands with 8 bytes an entry."""
    p = network["sizes"].index(number)
    entries = sum(iteration["entries"] for iteration in network["iterations"])
    got = total(network, way, figure, p) / (number if figure == "received" else 1)
    return got / entries * (TILE_ENTRY / ENTRY if way == "tiles" else 1)


def imbalance(network, way, number):
    """Products of the process that has most, over the mean, each iteration by its products."""
    p = network["sizes"].index(number)
    return total(network, way, "most_products", p) * number / sum(i["products"] for i in network["iterations"])


def volume_table(results):
    lines = ["| network | processes | rows: received, mean | most | products, most | cut anew: received, mean | most "
             "| products, most | tiles: received | products, most |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for network in networks_of(results):
        for number in network["sizes"]:
            cells = [network["network"], str(number)]
            for way in ("rows", "recut"):
                cells += [f"{share(network, way, number):.3f}", f"{share(network, way, number, 'most_received'):.3f}",
                          f"{imbalance(network, way, number):.2f}×"]
            square = round(number ** 0.5) ** 2 == number
            cells += [f"{share(network, 'tiles', number):.3f}", f"{imbalance(network, 'tiles', number):.2f}×"] \
                if square else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


# ---- many hosts -----------------------------------------------------------------------------------------------------

# HipMCL's largest network, mcl's bound of a column, and a host: bytes of memory, and bytes a second of its network.
ENTRIES, NODES, COLUMN, MEMORY, LINK = 68e9, 70e6, 1400, 256e9, 25e9
UNPRUNED = 48  # bytes of an entry that tiles hold before they are pruned: a triple, and its copy in the merge


def extrapolated(network, hosts):
    """Bytes that hosts receive in a run by each way, and fetch at once by rows; phases of tiles."""
    p, start = network["sizes"].index(hosts), network["iterations"][0]["entries"]
    found = {"mean": 0, "most": 0, "recut": 0, "at once": 0, "phases": 1, "tiles": 0}
    for iteration in network["iterations"]:
        scale = min(ENTRIES / start, NODES * COLUMN / iteration["entries"])
        most = ENTRY * scale * iteration["rows"]["most_received"][p]
        phases = int(UNPRUNED * scale * iteration["unpruned"] / hosts / MEMORY) + 1
        found["mean"] += ENTRY * scale * iteration["rows"]["received"][p] / hosts
        found["most"] += most
        found["recut"] += ENTRY * scale * iteration["recut"]["most_received"][p]
        found["at once"] = max(found["at once"], most)
        found["phases"] = max(found["phases"], phases)
        found["tiles"] += TILE_ENTRY * scale * iteration["tiles"]["most_received"][p] * (1 + phases) / 2
    return found


def extrapolation_table(results):
    lines = ["| as in | hosts | rows: received, mean | most | most at once | most, cut anew | tiles: phases | most "
             "| seconds by rows | cut anew | by tiles |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for network in networks_of(results):
        for hosts in (64, 256, 1024):
            found = extrapolated(network, hosts)
            cells = [network["network"], str(hosts), *(size(found[way]) for way in ("mean", "most", "at once", "recut")),
                     str(found["phases"]), size(found["tiles"]),
                     *(f"{found[way] / LINK:.0f}" for way in ("most", "recut", "tiles"))]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


# ---- several GPUs of a host -----------------------------------------------------------------------------------------

OPEN, NVLINK = 0.35, 300e9  # seconds that each further GPU takes to open, one after another; bytes a second of a link


def with_cards(tool, entries, cards):
    """Seconds of a run: what one card measured, without and with opening; `entries` of all iterands."""
    phases = tool["phases"]
    expand = phases["expand, prune, inflate"]
    copies = ENTRY * entries * ((cards - 1) + (cards - 1) / cards) / NVLINK
    work = phases["total"] - expand + expand / cards + copies
    return work, work + OPEN * (cards - 1)


def cards_table(measured, results):
    """Of networks measured on a GPU whose kind is among those of the volume model."""
    kinds = {}
    for network in sorted(networks_of(results), key=lambda n: n["nodes"]):  # the largest of a kind stands
        kinds[network["network"][0]] = sum(i["entries"] for i in network["iterations"]) / network["start_entries"]
    lines = ["| network | on | cards | expansion | all else | opened one after another | opened side by side |",
             "|---|---|--:|--:|--:|--:|--:|"]
    for result in measured:
        for network in result["networks"]:
            tool = network["tools"].get("mcl-gpu cuda")
            if not tool or "phases" not in tool or network["network"][0] not in kinds or network["edges"] < 1e7:
                continue
            entries = kinds[network["network"][0]] * (2 * network["edges"] + network["nodes"])
            for cards in (1, 2, 4, 8):
                work, opened = with_cards(tool, entries, cards)
                expand = tool["phases"]["expand, prune, inflate"]
                cells = [network["network"], result["machine"]["gpu"].replace("NVIDIA ", ""), str(cards),
                         seconds(expand / cards), seconds(work - expand / cards), seconds(opened),
                         seconds(work + (OPEN if cards > 1 else 0))]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""
