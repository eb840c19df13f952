"""Sums Nsight Compute's counters by phase and way: hit ratios as in Figure 5 of Li et al. Called by ncu_aia.sh.

A phase's ratio is that of its kernels' sums, not the mean of their ratios: short kernels would weigh as much as long
ones.
"""
import argparse
import csv
import datetime
import json
import os
import re
import sys

WAYS = {"3": "uncached", "1": "cached", "2": "stage"}  # enum sp_aia
PHASES = [("stage", "gather_ranges"), ("count products", "count_products"), ("symbolic", "count_"),
          ("numeric", "sum_")]
LOOKUPS = "l1tex__t_sectors_lookup"


def rows(path):
    """The kernels of a file in which the program's own output comes first; a line of units follows the header."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        sys.exit(f"{path}: no table of kernels: " + " ".join(lines[-3:]))
    table = csv.reader(lines[start:])
    header, _ = next(table), next(table)
    return [dict(zip(header, row)) for row in table if len(row) == len(header)]


def place(kernel):
    """Way and phase of a kernel by its name; the stage itself has one kernel only."""
    bare = re.sub(r"^void ", "", kernel)
    phase = next((phase for phase, start in PHASES if bare.startswith(start)), None)
    if phase == "stage":
        return "stage", phase
    way = re.search(r"<(?:float, |double, )?(?:\(sp_aia\)\s*)?([123])[,>]", bare)
    return (WAYS[way[1]], phase) if way and phase else None


def summarise(path):
    sums = {}
    for row in rows(path):
        where = place(row["Kernel Name"])
        if not where:
            continue
        counters = sums.setdefault(where[0], {}).setdefault(where[1], {"launches": 0})
        counters["launches"] += 1
        for key, value in row.items():
            if "__" in key and key.endswith(".sum") and value not in ("", "n/a"):
                counters[key] = counters.get(key, 0) + float(value.replace(",", ""))
    for phases in sums.values():
        for c in phases.values():
            hits, misses = c.get(LOOKUPS + "_hit.sum", 0), c.get(LOOKUPS + "_miss.sum", 0)
            c["l1_hit_ratio"] = hits / (hits + misses) if hits + misses else None
    return sums


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--counts", required=True)
    parser.add_argument("--gpu", default="")
    parser.add_argument("matrices", nargs="+")
    options = parser.parse_args()
    results = [{"matrix": os.path.basename(matrix), "ways": summarise(os.path.join(options.counts, f"{i}.csv"))}
               for i, matrix in enumerate(options.matrices)]
    said = {"bench": "aia-l1", "date": datetime.date.today().isoformat(), "commit": os.environ.get("BENCH_COMMIT"),
            "machine": {"gpu": options.gpu, "driver": os.environ.get("BENCH_DRIVER")}, "matrices": results}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(said, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
