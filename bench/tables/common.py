"""What all tables share: results, numbers as text, lines of a table."""
import json
import math
import os
import platform

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def load(paths):
    results = []
    for path in paths:
        with open(path) as file:
            results.append(json.load(file))
    return results


def processor():
    """The model's name, which Linux has in /proc/cpuinfo only."""
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def works(tool):
    return tool is not None and "failed" not in tool


def seconds(value):
    return f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def size(value):
    if value >= 1e11:
        return f"{value / 1e12:.2f} TB"
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def milliseconds(value):
    return f"{1e3 * value:.3g}" if value < 1 else f"{1e3 * value:.0f}"


def count(value):
    return f"{value / 1e6:.1f} M" if value >= 1e6 else f"{value:,}"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def ratio_cell(value):
    return f"{value:.2f}×" if value else ""


def both_times(times):
    said = [milliseconds(t["median_seconds"]) if works(t) else t["failed"] for t in times if t]
    return " / ".join(said)


def with_mean(lines, columns, head):
    """A last line of the geometric means of columns, lists of ratios, after `head` empty cells."""
    if any(columns):
        cells = [ratio_cell(geometric_mean([v for v in column if v])) for column in columns]
        lines.append("| geometric mean |" + " |" * (head - 1) + " " + " | ".join(cells) + " |")
    return lines


def threads_of(machine, threads):
    return f"{machine['cpu'].replace('(R)', '').replace(' Processor', '')}, {threads or machine['cores']} threads"


def place_of(result):
    machine = result["machine"]
    return machine["gpu"] or threads_of(machine, result["options"]["threads"])


def products_heading(result):
    machine = result["machine"]
    gpu = f"{machine['gpu']} (CUDA {machine['cuda']}, driver {machine['driver']}), " if machine["gpu"] else ""
    commit = f", commit {result['commit']}" if result["commit"] else ""
    options = result["options"]
    threads = f", {options['threads'] or machine['cores']} threads" if not machine["gpu"] else ""
    semiring = f", {options['semiring']}" if "semiring" in options else ""
    return (f"{gpu}{machine['cpu']}{threads}, {options['values']}{semiring}, copies at "
            f"{machine['copy_bandwidth'] / 1e9:.0f} GB/s, {result['date']}{commit}")


def tables(results, rows, heading_of=products_heading):
    lines = []
    for result in results:
        made = rows(result)
        if made:
            lines += ["", heading_of(result) + ":", ""] + made
    return "\n".join(lines[1:])
