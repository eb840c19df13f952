"""Times mcl-gpu and mcl on the same networks and writes one JSON; bench_mcl.sh prepares its arguments.

Each sample is a whole process: wall seconds from start to exit, CPU seconds and peak resident memory from the
kernel's accounting of that child. The candidates take turns, so that a slow minute of the machine hits all of them.
The clusterings are compared in the same run.
"""
import argparse
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from tables.common import processor
from tables.markov import results_table


def first_line(command):
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return lines[0].strip() if lines else ""
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    gpu = first_line(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": gpu.split(", ")[0] if gpu else None,
        "driver": gpu.split(", ")[1] if gpu else None,
        "kernel": platform.release(),
    }


def circumstances():
    """When, of which source and where a result is made."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "commit": os.environ.get("BENCH_COMMIT") or first_line(["git", "rev-parse", "--short", "HEAD"]) or None,
            "machine": machine()}


def sample(command, timeout, text=None):
    """One run: {"seconds", "cpu_seconds", "peak_bytes"}, or None when it fails or takes too long. What it prints is
    appended to the list `text`."""
    start = time.monotonic()
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return None
    limit = threading.Timer(timeout, os.kill, (child.pid, signal.SIGKILL))
    limit.start()
    printed = child.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - start
    limit.cancel()
    child.returncode = status  # reaped here, not by Popen
    if status != 0:
        print(f"{' '.join(command)}: status {status} after {seconds:.1f} s\n{printed}", file=sys.stderr)
        return None
    if text is not None:
        text.append(printed)
    return {"seconds": round(seconds, 4), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 4),
            "peak_bytes": usage.ru_maxrss * 1024}


def clusters(path):
    with open(path) as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


def moved(left, right):
    """Nodes outside the best-fitting cluster of the other clustering, the worse of both directions (as clm dist)."""
    def one_way(a, b):
        home = {node: i for i, cluster in enumerate(b) for node in cluster}
        total = 0
        for cluster in a:
            shares = {}
            for node in cluster:
                shares[home[node]] = shares.get(home[node], 0) + 1
            total += len(cluster) - max(shares.values())
        return total
    return max(one_way(left, right), one_way(right, left))


def phases(report):
    """Wall seconds of each phase from --report."""
    run = report["runs"][0]
    steps = run["steps"]
    return {
        "read": report["seconds"]["read"],
        "start": report["seconds"]["start"],
        "expand, prune, inflate": run["seconds"]["expand"],
        "first four iterations": round(sum(step["seconds"] for step in steps[:4]), 6),
        "interpret": run["seconds"]["interpret"],
        "write": run["seconds"]["write"],
        "total": report["seconds"]["total"],
    }


def candidates(options, network, folder):
    """name → (command, output, report or None, runs)"""
    found = {}
    common = [network, "--abc", "-I", options.inflation, "-te", str(options.threads), "-V", "all"]
    for name, extra in (("mcl", []), ("mcl -sparse 1000", ["-sparse", "1000"])):
        output = os.path.join(folder, name.replace(" ", "") + ".clusters")
        if options.peer_runs:
            found[name] = ([options.peer] + common + extra + ["-o", output], output, None, options.peer_runs)
    for device in options.devices.split():
        output, report = os.path.join(folder, device + ".clusters"), os.path.join(folder, device + ".json")
        command = [options.tool] + common + ["--device", device, "-o", output, "--report", report]
        found["mcl-gpu " + device] = (command, output, report, options.runs)
    return found


def take_samples(options, network, tools):
    """name → samples of the candidates in turns; of one that fails, None."""
    samples = {name: [] for name in tools}
    for turn in range(max(options.runs, options.peer_runs)):
        for name, (command, _, _, runs) in tools.items():
            if turn >= runs or samples[name] is None:
                continue
            taken = sample(command, options.timeout)
            if taken is None:
                samples[name] = None
                continue
            samples[name].append(taken)
            print(f"{network:10} {name:18} {taken['seconds']:9.3f} s {taken['peak_bytes'] / 1e6:9.1f} MB", flush=True)
    return samples


def agreement(reference, output):
    """With the candidate that came first: its name and output."""
    name, first = reference
    with open(first, "rb") as one, open(output, "rb") as other:
        identical = one.read() == other.read()
    return {"with": name, "identical": identical,
            "moved_nodes": 0 if identical else moved(clusters(first), clusters(output))}


def measure(options, network):
    name = os.path.basename(network).removesuffix(".abc")
    result = {"network": name, "bytes": os.path.getsize(network), "tools": {}}
    with tempfile.TemporaryDirectory() as folder:
        tools = candidates(options, network, folder)
        samples = take_samples(options, name, tools)
        reference = None
        for name, (command, output, report, _) in tools.items():
            if not samples[name]:
                result["tools"][name] = {"failed": True}
                continue
            tool = result["tools"][name] = {
                "command": " ".join([os.path.basename(command[0]), os.path.basename(network)] +
                                    command[2:-4 if report else -2]),
                "median_seconds": statistics.median(s["seconds"] for s in samples[name]),
                "peak_bytes": max(s["peak_bytes"] for s in samples[name]),
                "clusters": len(clusters(output)),
                "samples": samples[name],
            }
            if reference:
                tool["agreement"] = agreement(reference, output)
            else:
                reference = (name, output)
            if report:
                with open(report) as file:
                    told = json.load(file)
                tool["phases"] = phases(told)
                tool["iterations"] = told["runs"][0]["iterations"]
                tool["device"] = told["runs"][0]["device"]
                result["nodes"], result["edges"] = told["input"]["nodes"], told["input"]["arcs"]
                result["products"] = sum(step["products"] for step in told["runs"][0]["steps"])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("tool", "peer", "devices", "inflation", "output"):
        parser.add_argument("--" + name, required=True)
    for name in ("runs", "peer-runs", "threads", "timeout"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("networks", nargs="+")
    options = parser.parse_args()
    results = {
        "bench": "mcl",
        **circumstances(),
        "peer": first_line([options.peer, "--version"]) if options.peer_runs else None,
        "threads": options.threads,
        "networks": [],
    }
    for network in options.networks:
        results["networks"].append(measure(options, network))
        os.makedirs(os.path.dirname(options.output) or ".", exist_ok=True)
        with open(options.output, "w") as file:  # after each network, so that a long run leaves what it has
            json.dump(results, file, indent=1)
            file.write("\n")
    print("written:", options.output)
    print(results_table([results]))
    return 1 if any("failed" in tool for n in results["networks"] for tool in n["tools"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
