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
    """By kind and size."""
    found = [network for result in results for network in result["networks"]]
    return sorted(found, key=lambda n: ("qps".find(n["network"][0]), n["nodes"]))


def total(network, way, figure, p):
    return sum(iteration[way][figure][p] for iteration in network["iterations"])


def held(network, p):
    """Entries of the process that has most, in each iteration: its rows, those that they name, and its share of the next
    iterand, whose rows are as even as the products."""
    iterations = network["iterations"]
    following = [iteration["entries"] for iteration in iterations[1:]] + [network["nodes"]]
    return [iteration["recut"]["most_held"][p] + after / network["sizes"][p]
            for iteration, after in zip(iterations, following)]


def reckoned_memory(network, p):
    """A process: the program with MPI, the largest matrices at once, and per node names, offsets and sums."""
    return 40e6 + ENTRY * max(held(network, p)) + 60 * network["nodes"]


def check_table(results):
    lines = ["| network | processes | received by all: reckoned | real | by one: reckoned | real "
             "| memory of the largest: reckoned | real |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for network in networks_of(results):
        for number, real in network["real"].items():
            p = network["sizes"].index(int(number))
            most = total(network, "recut", "most_received", p)
            fetched = total(network, "recut", "received", p) - total(network, "recut", "moved", p)
            cells = [network["network"], number, size(ENTRY * fetched), size(real["received_bytes"]),
                     size(ENTRY * most), size(real["most_received_bytes"]),
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


USUAL, A_PROCESS = (2, 4, 9, 16, 64, 256, 1024), 5000  # numbers of processes; nodes of each where they grow together


def volume_table(results):
    lines = ["| network | processes | rows: received, mean | most | products, most | cut anew: received, mean | most "
             "| products, most | tiles: received | products, most |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for network in networks_of(results):
        for number in (n for n in network["sizes"] if n in USUAL):
            cells = [network["network"], str(number)]
            for way in ("rows", "recut"):
                cells += [f"{share(network, way, number):.3f}", f"{share(network, way, number, 'most_received'):.3f}",
                          f"{imbalance(network, way, number):.2f}×"]
            square = round(number ** 0.5) ** 2 == number
            cells += [f"{share(network, 'tiles', number):.3f}", f"{imbalance(network, 'tiles', number):.2f}×"] \
                if square else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


def growing_table(results):
    """Networks of one kind that grow with the number of processes."""
    lines = ["| network | processes | received by one: mean | most | products of one: mean | most | memory of the largest |",
             "|---|--:|--:|--:|--:|--:|--:|"]
    for network in networks_of(results):
        number = round(network["nodes"] / A_PROCESS)
        if number not in network["sizes"] or abs(network["nodes"] / A_PROCESS - number) > 0.01:
            continue
        p = network["sizes"].index(number)
        cells = [network["network"], str(number), size(ENTRY * total(network, "recut", "received", p) / number),
                 size(ENTRY * total(network, "recut", "most_received", p)),
                 f"{sum(i['products'] for i in network['iterations']) / number / 1e9:.2f} G",
                 f"{total(network, 'recut', 'most_products', p) / 1e9:.2f} G", size(reckoned_memory(network, p))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 3 else ""


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
            cells = [network["network"], str(hosts),
                     *(size(found[way]) for way in ("mean", "most", "at once", "recut")),
                     str(found["phases"]), size(found["tiles"]),
                     *(f"{found[way] / LINK:.0f}" for way in ("most", "recut", "tiles"))]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


# Networks that users have named: nodes, entries, and hosts of which one is reckoned. A core forms so many products a
# second; while its part is read and dealt out, an entry takes a process so many bytes.
WANTED = ((6.8e6, 1e9, (2, 4, 16)), (32e6, 1e10, (4, 16, 64)), (282e6, 37e9, (16, 64, 256)),
          (70e6, 68e9, (64, 256, 1024)))
CORES, CORE, READING = 64, 7e8, 32


def planned(network, nodes, entries, hosts):
    """Bytes of memory of a host, and seconds for products and for receiving, as in a run on that network."""
    ratio, p = nodes / network["nodes"], network["sizes"].index(hosts)
    longer = entries / nodes / (network["start_entries"] / network["nodes"])
    memory = receiving = computing = 0
    for iteration, kept in zip(network["iterations"], held(network, p)):
        grown = min(longer, COLUMN * network["nodes"] / iteration["entries"])
        memory = max(memory, ENTRY * ratio * grown * kept)
        receiving += ENTRY * ratio * grown * iteration["recut"]["most_received"][p] / LINK
        computing += ratio * grown ** 2 * iteration["recut"]["most_products"][p] / CORES / CORE
    return max(memory, READING * entries / hosts) + 60 * nodes, computing, receiving


def duration(taken):
    return f"{taken:.0f} s" if taken < 100 else f"{taken / 60:.0f} min" if taken < 6000 else f"{taken / 3600:.1f} h"


def sizing_table(results):
    """Hosts, memory and time by the size of a network, as in the largest protein-like one with communities."""
    networks = [network for network in networks_of(results) if network["network"][0] == "q"]
    lines = ["| nodes | entries | hosts | memory of the largest host | products | receiving |",
             "|--:|--:|--:|--:|--:|--:|"]
    for nodes, entries, choices in WANTED if networks else ():
        for hosts in choices:
            memory, *parts = planned(max(networks, key=lambda n: n["nodes"]), nodes, entries, hosts)
            cells = [f"{nodes / 1e6:g} M", f"{entries / 1e9:g} G", f"{hosts:,}", size(memory), *map(duration, parts)]
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
    for network in networks_of(results):  # the largest of a kind stands
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
