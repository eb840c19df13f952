"""How much longer sparse-bench gnn takes without a path: a line for each graph and kind of case, then over all.

usage: bench/ablation.py WHOLE.json WITHOUT.json

A ratio above 1 says that the path pays. bench/ablation.sh makes the files."""
import json
import math
import sys


def cases(path):
    """Yields (graph and kind, case, seconds) of all that was measured."""
    with open(path) as file:
        result = json.load(file)
    for r in result["matrices"]:
        for t in r["training"]:
            how = "kept" if t["kept"] else "bf16" if t["half"] else f"maxk {t['maxk']}" if t["maxk"] else "plain"
            yield f"{r['matrix']} {t['hidden']} columns", f"{t['model']} {how}", t["epoch"].get("median_seconds")
        for s in r["sampling"]:
            yield f"{r['matrix']} sampling", ",".join(map(str, s["fanout"])), s["pass"].get("median_seconds")


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    whole = {(family, case): seconds for family, case, seconds in cases(sys.argv[1])}
    families, worst = {}, {}
    for family, case, seconds in cases(sys.argv[2]):
        before = whole.get((family, case))
        if seconds and before:
            ratio = seconds / before
            families.setdefault(family, []).append(ratio)
            if ratio >= worst.get(family, (0, ""))[0]:
                worst[family] = (ratio, case)
    for family, ratios in families.items():
        print(f"  {family:<32} {geometric_mean(ratios):6.3f}   most {worst[family][0]:6.3f} ({worst[family][1]})")
    if not families:
        sys.exit("no case was measured in both files")
    print(f"  {'all':<32} {geometric_mean([r for ratios in families.values() for r in ratios]):6.3f}")


if __name__ == "__main__":
    main()
