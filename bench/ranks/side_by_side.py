"""mcl-gpu in several MPI processes beside one process and beside CombBLAS, HipMCL's engine, on the same files.

usage: python3 -B bench/ranks/side_by_side.py [--networks q20000,p5000] [--runs 3] [--peer-runs 1] [--phases N]
                                         [--inflation F] [--output bench/results/ranks-cpu.json]

Needs `make mpi generators`, mpirun, and Debian's libcombblas-dev, on which bench/peers/combblas.cpp is built here.
Networks are those of bench/bench_mcl.sh, or paths of .abc files; both programs read them as symmetric Matrix Market.
Every process has one thread. CombBLAS runs on 1 and 4 processes, because it takes squares, and forms its products in
--phases parts, so that memory holds what is not pruned yet. Candidates take turns. Of each sample: wall seconds of the
launcher, processor seconds of all processes, the memory of the largest, and the bytes that it received of the matrix.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import compare as whole  # noqa: E402
from tables.common import ROOT  # noqa: E402
from tables.ranks import ranks_table  # noqa: E402

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-x", "OMP_NUM_THREADS=1", "-n"]


def generate(name, path):
    generator = os.path.join(BUILD, "tests", "gen", "gen_protein2" if name[0] == "q" else "gen_protein")
    with open(path, "w") as out:  # the planted families go to file descriptor 3
        subprocess.run(["sh", "-c", f'"{generator}" {name[1:]} 80 1 3>/dev/null'], stdout=out, check=True)


def prepare(name, folder):
    """Writes the network as Matrix Market, with nodes numbered as their names appear first, and a file of labels, the
    numbers from 1. Returns the matrix, the labels, and the counts of nodes and edges."""
    stem = os.path.join(folder, os.path.basename(name).removesuffix(".abc"))
    source = name
    if re.fullmatch(r"[pq]\d+", name):
        source = stem + ".abc"
        generate(name, source)
    numbers, entries = {}, []
    with open(source) as lines:
        for line in lines:
            one, two, weight = line.split()
            pair = [numbers.setdefault(node, len(numbers) + 1) for node in (one, two)]
            entries.append(f"{max(pair)} {min(pair)} {weight}\n")
    with open(stem + ".mtx", "w") as out:
        out.write("%%MatrixMarket matrix coordinate real symmetric\n"
                  f"{len(numbers)} {len(numbers)} {len(entries)}\n")
        out.writelines(entries)
    with open(stem + ".tab", "w") as out:
        out.writelines(f"{node}\t{node + 1}\n" for node in range(len(numbers)))
    return stem + ".mtx", stem + ".tab", len(numbers), len(entries)


def build_peer():
    """The peer's path, or None: it cannot be built here."""
    path = os.path.join(BUILD, "peers", "combblas")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    command = ["mpicxx", "-std=c++14", "-O3", "-w", "-fopenmp", "-DTHREADED", "-DTIMING", "-I/usr/include/CombBLAS",
               os.path.join(ROOT, "bench", "peers", "combblas.cpp"), "-o", path, "-lCombBLAS"]
    try:
        made = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return None
    if made.returncode:
        print(made.stderr[:2000], "CombBLAS needs mpicxx and libcombblas-dev", file=sys.stderr, sep="\n")
    return None if made.returncode else path


def candidates(options, peer, matrix, labels, folder):
    """name -> (command, output, runs); the first is what the others are compared with."""
    common = [matrix, "-use-tab", labels, "-I", options.inflation, "--device", "cpu", "-te", "1"]
    tool, found = os.path.join(BUILD, "bin", "mcl-gpu"), {}
    for size in (0, 1, 2, 4):
        output = os.path.join(folder, f"ours{size}")
        launcher = [*MPIRUN, str(size)] if size else []
        found[f"mcl-gpu {size or 'alone'}"] = [*launcher, tool, *common, "-o", output], output, options.runs
    for size in (1, 4) if peer and options.peer_runs else ():
        output = os.path.join(folder, f"combblas{size}")
        found[f"CombBLAS {size}"] = ([*MPIRUN, str(size), peer, matrix, options.inflation, str(options.phases), output],
                                     output, options.peer_runs)
    return found


def told(text):
    """What a run prints of itself: bytes of the matrix that all processes received, and one at most; of the peer also
    where its time went."""
    peers = re.search(r'^{"processes".*}$', text, re.MULTILINE)
    if peers:
        figures = json.loads(peers.group())
        bytes_of = [rank["received_bytes"] for rank in figures.pop("ranks")]
        return {"received_bytes": sum(bytes_of), "most_received_bytes": max(bytes_of), **figures}
    ours = re.search(r"received ([\d,]+) MB of columns, one of them ([\d,]+) MB", text)
    figures = [int(figure.replace(",", "")) * 1000000 for figure in ours.groups()] if ours else [0, 0]
    return dict(zip(("received_bytes", "most_received_bytes"), figures))


def measure(options, peer, network):
    result = {"network": os.path.basename(network).removesuffix(".abc"), "tools": {}}
    with tempfile.TemporaryDirectory() as folder:
        matrix, labels, result["nodes"], result["edges"] = prepare(network, folder)
        tools = candidates(options, peer, matrix, labels, folder)
        for turn in range(max(options.runs, options.peer_runs)):
            for name, (command, output, runs) in tools.items():
                if turn >= runs:
                    continue
                text = []
                taken = whole.sample(command, options.timeout, text)
                if taken is None:
                    sys.exit(f"{name} failed on {network}")
                taken.update(told(text[0]))
                print(f"{result['network']:10} {name:14} {taken}", flush=True)
                tool = result["tools"].setdefault(name, {"samples": []})
                tool["samples"].append(taken)
                tool["median_seconds"] = statistics.median(s["seconds"] for s in tool["samples"])
                tool["clusters"] = len(whole.clusters(output))
        first = tools["mcl-gpu alone"][1]
        for name, (_, output, _) in tools.items():
            result["tools"][name]["agreement"] = whole.agreement(("mcl-gpu alone", first), output)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", default="q20000,p5000")
    parser.add_argument("--inflation", default="2")
    parser.add_argument("--output", default=os.path.join(ROOT, "bench", "results", "ranks-cpu.json"))
    for name, value in (("runs", 3), ("peer-runs", 1), ("phases", 4), ("timeout", 7200)):
        parser.add_argument("--" + name, type=int, default=value)
    options = parser.parse_args()
    peer = build_peer()
    results = {"bench": "ranks", **whole.circumstances(), "phases": options.phases, "networks": []}
    for network in options.networks.split(","):
        results["networks"].append(measure(options, peer, network))
        with open(options.output, "w") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
    print(ranks_table([results]))


if __name__ == "__main__":
    main()
