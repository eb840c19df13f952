"""Reports of gnn train joined to a result."""
import datetime
import fcntl
import json
import os

from .common import load, processor
from .gnn import accuracy_case


def accuracy_of(report):
    o = report["options"]
    return {"model": o["model"], "hidden": o["hidden"], "maxk": o["maxk"], "seeds": o["seeds"], "options": o,
            "test_accuracy": report["test_accuracy"], "deviation": report["test_accuracy_deviation"] or 0,
            "runs": [run["test_accuracy"] for run in report["runs"]],
            "median_epoch_seconds": report["median_epoch_seconds"], "seconds": report["seconds"]}


def add_reports(path, reports):
    """Those of gnn train to a result, where they replace the same cases. One process at a time."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    made = load([path])[0] if os.path.exists(path) else None
    for report in load(reports):
        head = {"bench": "gnn", "commit": os.environ.get("BENCH_COMMIT"), "options": {"threads": os.cpu_count()},
                "machine": {"cpu": processor(), "cores": os.cpu_count(),
                            "gpu": report["device"].partition(" ")[2] or None}}
        if made is None or any(made[k] != head[k] for k in ("commit", "machine")):
            made = {**head, "date": datetime.date.today().isoformat(), "matrices": []}
        name, new = os.path.basename(os.path.normpath(report["data"]["folder"])), accuracy_of(report)
        matrix = next((m for m in made["matrices"] if m["matrix"] == name), None)
        if matrix is None:
            matrix = {"matrix": name, "accuracy": []}
            made["matrices"].append(matrix)
        matrix["accuracy"] = [a for a in matrix["accuracy"] if accuracy_case(a) != accuracy_case(new)] + [new]
    with open(path + ".part", "w") as file:
        json.dump(made, file, indent=1)
    os.replace(path + ".part", path)
    os.close(folder)
