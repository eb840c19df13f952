"""How much longer the cases of sparse-bench take without a path: a line for each path and family, then over all.

usage: bench/ablation.py LOG...                            what sparse-bench printed with BENCH_WITHOUT
       bench/ablation.py --gnn NAME WHOLE.json WITHOUT.json  of sparse-bench gnn

A ratio above 1 says that the path pays. bench/ablation.sh makes the files."""
import json
import sys

from survey import mean


def paths(logs):
    """Yields (path, family, case, seconds with it, seconds without it) of all that was measured in both ways."""
    for log in logs:
        with open(log, encoding="utf-8") as file:
            for line in file:
                if line.startswith("without\t"):
                    _, path, family, case, whole, left = line.rstrip("\n").split("\t")
                    family = "plan: " + family if case.endswith(" plan") else family
                    if float(left) > 0:
                        yield path, family, case, float(whole), float(left)


def cases(path):
    """Yields (graph and kind, case, seconds) of all that was measured of gnn."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    for r in result["matrices"]:
        for t in r["training"]:
            how = "kept" if t["kept"] else "bf16" if t["half"] else f"maxk {t['maxk']}" if t["maxk"] else "plain"
            yield f"{r['matrix']} {t['hidden']} columns", f"{t['model']} {how}", t["epoch"].get("median_seconds")
        for s in r["sampling"]:
            yield f"{r['matrix']} sampling", ",".join(map(str, s["fanout"])), s["pass"].get("median_seconds")


def gnn(name, whole, without):
    """The same of two runs of sparse-bench gnn."""
    before = {(family, case): seconds for family, case, seconds in cases(whole)}
    for family, case, seconds in cases(without):
        if seconds and before.get((family, case)):
            yield name, family, case, before[family, case], seconds


def table(path, measured):
    """Prints what is lost without one path, by family."""
    families = {}
    for family, case, whole, left in measured:
        families.setdefault(family, []).append((left / whole, case))
    print(f"without {path}")
    for family, ratios in families.items():
        print(f"  {family:<32} {mean([r for r, _ in ratios]):6.3f}   "
              f"most {max(ratios)[0]:6.3f} ({max(ratios)[1]}), least {min(ratios)[0]:6.3f}")
    print(f"  {'all':<32} {mean([r for ratios in families.values() for r, _ in ratios]):6.3f}")


def main(arguments):
    if arguments[:1] == ["--gnn"] and len(arguments) == 4:
        measured = gnn(*arguments[1:])
    elif arguments and not arguments[0].startswith("-"):
        measured = paths(arguments)
    else:
        sys.exit(__doc__)
    tables = {}
    for path, *case in measured:
        tables.setdefault(path, []).append(case)
    for path, rows in tables.items():
        table(path, rows)
    if not tables:
        sys.exit("no case was measured in both ways")


if __name__ == "__main__":
    main(sys.argv[1:])
