"""Calls of the Python package beside those of other packages, from bench/python/calls.py."""
from .common import seconds, threads_of

PACKAGES = ("scipy", "sparse-dot-mkl", "mkl", "python-graphblas", "suitesparse-graphblas", "torch", "sparse-dot-topn")


def time_of(value):
    if value >= 1:
        return seconds(value)
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} µs"


def heading(result):
    machine = result["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in PACKAGES if name in machine)
    place = threads_of(machine, result["options"]["threads"]) + (f", {machine['gpu']}" if machine["gpu"] else "")
    return ("Median times of spgraph, and how many times as long the others take. "
            f"{place}, Python {machine['python']}, {versions}; {result['date']}, commit {result['commit']}:")


def calls_table(results):
    """The median of spgraph, and how many times as long each other package took; a table of the peers of products and
    one of those of joins, so that no column is empty."""
    lines = []
    for result in results:
        lines += ["", heading(result)]
        for kind in ("product", "join"):
            cases = [case for case in result["cases"] if case["case"].startswith(kind)]
            names = list(dict.fromkeys(peer["name"] for case in cases for peer in case["peers"]))
            if not names:
                continue
            lines += ["", f"| {kind} | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
            for case in cases:
                found = {peer["name"]: peer for peer in case["peers"]}
                cells = [time_of(found["spgraph"]["median_seconds"])]
                cells += [f"{found[name]['of_spgraph']:.2f}×" if name in found else "" for name in names[1:]]
                lines.append(f"| {case['case'].split(', ', 1)[1]} | " + " | ".join(cells) + " |")
    return "\n".join(lines[1:])
