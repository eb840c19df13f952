"""Graph neural networks: epochs, MaxK, sampling, accuracy, gradients."""
from .common import both_times, count, load, milliseconds, works

# What a matrix of a result can hold, and the part of a run that it is; PyTorch's by the command that made it.
GNN_PARTS = {"training": "train", "aggregation": "aggregate", "sampling": "sample", "minibatches": "minibatches",
             "accuracy": "accuracy"}
TORCH_PARTS = {"speed": "torch", "sample": "torch-sample", "minibatches": "torch-minibatches",
               "accuracy": "torch-accuracy", "check": "torch-check"}
TORCH_WAYS = ("PyG CSR", "PyG scatter", "CSR by hand", "DGL")


def gnn_runs(paths):
    """{device: {part: result}} of files gnn-*.json; parts of several files are joined."""
    runs = {}
    for result in load(sorted(paths)):
        run = runs.setdefault(result["machine"]["gpu"] or "CPU", {})
        for matrix in result["matrices"]:
            parts = [TORCH_PARTS[result["command"]]] if result["bench"] == "gnn-torch" else \
                [part for key, part in GNN_PARTS.items() if matrix.get(key)]
            for part in parts:
                joined = run.setdefault(part, {**result, "matrices": [], "commits": {}})
                joined["matrices"].append(matrix)
                joined["date"] = max(joined["date"], result["date"])
                joined["commits"].setdefault(result["commit"], set()).add(matrix["matrix"])
                joined.setdefault("peers", {})[peers_of(result["machine"])] = True
    return dict(sorted(runs.items()))


def commits_of(result):
    """Those of a result's files; the graphs of each where they are several."""
    commits = {commit: graphs for commit, graphs in result["commits"].items() if commit}
    if len(commits) < 2:
        return "".join(f"commit {commit}" for commit in commits)
    said = [f"{commit} ({' '.join(sorted(graphs))})" for commit, graphs in sorted(commits.items())]
    return "commits " + ", ".join(said)


def peers_of(machine):
    """Libraries of an environment and their versions."""
    names = {"torch": "PyTorch", "torch_geometric": "PyTorch Geometric", "pyg_lib": "pyg-lib",
             "torch_sparse": "torch-sparse", "dgl": "DGL"}
    return ", ".join(f"{name} {machine[key]}" for key, name in names.items() if machine.get(key))


def gnn_heading(result):
    machine = result["machine"]
    parts = [machine["gpu"] or "", machine["cpu"], f"{result['options']['threads'] or machine['cores']} threads"]
    parts += ["; ".join(result["peers"]), "fp32", result["date"], commits_of(result)]
    return ", ".join(part for part in parts if part)


def cases(run, part, key):
    """{graph: list} of a part of a run; empty where it was not measured."""
    found = {}
    for matrix in run.get(part, {"matrices": []})["matrices"]:
        found.setdefault(matrix["matrix"], []).extend(matrix[key])
    return found


def fastest(variants, key, ways):
    ran = [v[key] for v in variants if v["name"].split(",")[0] in ways]
    good = [t for t in ran if works(t)]
    return min(good, key=lambda t: t["median_seconds"]) if good else ran[0] if ran else None


def ratio_of(theirs, ours):
    return f"{theirs['median_seconds'] / ours['median_seconds']:.2f}×" if works(theirs) and works(ours) else ""


def relu_beside(trainings, t):
    """Our fastest training of the same model with ReLU, in whatever order of the nodes."""
    same = [o for o in trainings if o["maxk"] == 0 and not o["kept"] and not o.get("half") and works(o["epoch"]) and
            all(o[k] == t[k] for k in ("model", "hidden"))]
    return min(same, key=lambda o: o["epoch"]["median_seconds"]) if same and t["maxk"] else None


def precision_of(case):
    """Results without the field are of fp32."""
    return case.get("precision", "fp32")


def variants_beside(theirs, t, precisions=None):
    """What PyTorch ran of the same case as ours, t. Without `precisions` all that ours is compared with: fp32 and TF32
    beside f32; beside bf16 also AMP, the fastest of all."""
    wanted = precisions or (("fp32", "tf32", "bf16") if t.get("half") else ("fp32", "tf32"))
    return [v for o in theirs if all(o[k] == t[k] for k in ("model", "hidden", "kept")) and precision_of(o) in wanted
            for v in o["variants"]]


def gnn_train_rows(run):
    """Forward and epoch, ours beside each way of PyTorch, each at its fastest: fp32 or TF32 beside f32, also AMP beside
    bf16. Then its epochs with TF32 and with AMP alone."""
    lines, theirs = [], cases(run, "torch", "training")
    variants = [v for found in theirs.values() for o in found for v in o["variants"]]
    ways = TORCH_WAYS if works(fastest(variants, "epoch", ("DGL",))) else TORCH_WAYS[:-1]
    titles = ["graph", "model", "hidden", "A·X", "MaxK"] + [way + ", ms" for way in ways] + \
        ["best epoch with TF32, ms", "with AMP, ms", "ours, ms", "epoch faster than PyG's best by", "than the best by",
         "than AMP by", "than our ReLU by"]
    for graph, trainings in cases(run, "train", "training").items():
        for t in trainings:
            variants = variants_beside(theirs.get(graph, ()), t)
            tf32, amp = (fastest(variants_beside(theirs.get(graph, ()), t, (p,)), "epoch", TORCH_WAYS)
                         for p in ("tf32", "bf16"))
            relu = relu_beside(trainings, t)
            if not variants and not relu:
                continue
            cells = [graph + (", renumbered" if t.get("order") == "community" else ""), t["model"], str(t["hidden"]),
                     "kept" if t["kept"] else "in bf16" if t.get("half") else "each time",
                     str(t["maxk"] or "")]
            cells += [both_times([fastest(variants, k, (way,)) for k in ("forward", "epoch")]) if variants else ""
                      for way in ways]
            cells += [both_times([tf32]), both_times([amp]), "**" + both_times([t["forward"], t["epoch"]]) + "**",
                      ratio_of(fastest(variants, "epoch", TORCH_WAYS[:2]), t["epoch"]),
                      ratio_of(fastest(variants, "epoch", TORCH_WAYS), t["epoch"]),
                      ratio_of(amp, t["epoch"]) if t.get("half") else "",
                      ratio_of(relu["epoch"], t["epoch"]) if relu else ""]
            lines.append("| " + " | ".join(cells) + " |")
    return lines and ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] + lines


def gnn_total_rows(run):
    """Seconds of whole trainings, with all that ours does once; of PyTorch the epochs alone."""
    epochs = (10, 50, 200)
    titles = ["graph", "model", "hidden", "once, s"] + [f"{n} epochs, s" for n in epochs] + \
        [f"PyTorch's {n} alone, s" for n in epochs]
    lines, theirs = [], cases(run, "torch", "training")
    for matrix in run.get("train", {"matrices": []})["matrices"]:
        for t in matrix.get("training", ()):
            peer = fastest(variants_beside(theirs.get(matrix["matrix"], ()), t), "epoch", TORCH_WAYS)
            if "once_seconds" not in t or t["kept"] or t["maxk"] or not works(t["epoch"]) or not works(peer):
                continue
            once = t["once_seconds"] + (matrix["order_seconds"] if t.get("order") == "community" else 0)
            cells = [matrix["matrix"], t["model"] + (", bf16" if t.get("half") else ""), str(t["hidden"]),
                     f"{once:.2f}"]
            cells += [f"**{once + n * t['epoch']['median_seconds']:.2f}**" for n in epochs]
            cells += [f"{n * peer['median_seconds']:.2f}" for n in epochs]
            lines.append("| " + " | ".join(cells) + " |")
    return lines and ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] + lines


def gnn_maxk_rows(run):
    lines = []
    for graph, aggregations in cases(run, "aggregate", "aggregation").items():
        for a in aggregations:
            kept = f"{a['k']} of {a['width']}"
            base = next((r for r in a["rows"] if r["name"] == "cuSPARSE" and works(r["forward"])), a["rows"][1])
            total = sum(base[k]["median_seconds"] for k in ("forward", "backward"))
            for row in a["rows"]:
                forward, backward = row["forward"], row["backward"]
                good = works(forward) and works(backward)
                mine = sum(t["median_seconds"] for t in (forward, backward)) if good else None
                cells = [graph, kept, row["name"], both_times([forward]), both_times([backward]),
                         milliseconds(mine) if good else "", f"{total / mine:.2f}×" if good else "",
                         f"{max(forward['error'], backward['error']):.1e}" if good else ""]
                lines.append("| " + " | ".join(cells) + " |")
            lines.append(f"| {graph} | {kept} | selection alone | {both_times([a['select']])} | | | | |")
    return lines and ["| graph | kept | implementation | forward, ms | backward, ms | total, ms "
                      "| faster than cuSPARSE by | largest error |", "|" + "---|" * 8] + lines


def gnn_sample_rows(run):
    lines, theirs, names = [], cases(run, "torch-sample", "sampling"), []
    for samplings in theirs.values():
        for s in samplings:
            names += [v["name"] for v in s["variants"] if v["name"] not in names]
    for graph, samplings in cases(run, "sample", "sampling").items():
        for s in samplings:
            same = [o for o in theirs.get(graph, ()) if o["fanout"] == s["fanout"]]
            variants = {v["name"]: v for v in same[0]["variants"]} if same else {}
            mine = s["edges_a_second"]
            rates = [v["edges_a_second"] for v in variants.values() if works(v)]
            cells = [graph, ", ".join(map(str, s["fanout"])), count(s["edges"]), str(s["minibatches"])]
            cells += [f"{variants[n]['edges_a_second'] / 1e6:.1f}" if works(variants.get(n)) else
                      variants[n]["failed"] if n in variants else "" for n in names]
            cells += [f"**{mine / 1e6:.1f}**" if mine else s["pass"]["failed"],
                      f"{mine / max(rates):.1f}×" if mine and rates else ""]
            lines.append("| " + " | ".join(cells) + " |")
    titles = ["graph", "fan-outs", "edges a pass", "minibatches"] + [n + ", M edges a second" for n in names] + \
        ["ours, M edges a second", "faster than the best by"]
    return lines and ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] + lines


NAMED = {"fp32": "", "tf32": ", TF32", "bf16": ", AMP"}


def gnn_minibatch_rows(run):
    """Epochs by sampled minibatches and their phases: ours in f32 above each way of PyTorch with fp32 and TF32, ours in
    bf16 above those with AMP, or with all if we have none."""
    titles = ["graph", "hidden", "implementation", "an epoch, ms", "sampling, ms", "gather, ms", "step, ms",
              "ours faster by"]
    lines, theirs = [], cases(run, "torch-minibatches", "minibatches")
    for graph, found in cases(run, "minibatches", "minibatches").items():
        halves = {m["hidden"] for m in found if m.get("half")}
        for m in found:
            rows = [("ours, bf16" if m.get("half") else "ours", m["phases"], m["epoch"])]
            rows += [(v["name"] + NAMED[precision_of(o)], v.get("phases"), v) for o in theirs.get(graph, ())
                     if o["hidden"] == m["hidden"] and
                     bool(m.get("half")) == (precision_of(o) == "bf16" and m["hidden"] in halves)
                     for v in o["variants"]]
            for name, phases, epoch in rows:
                cells = [graph, str(m["hidden"]), name, both_times([epoch])]
                cells += [milliseconds(phases[p]) if works(epoch) else "" for p in ("sampling", "gather", "step")]
                cells.append("" if name.startswith("ours") else ratio_of(epoch, m["epoch"]))
                lines.append("| " + " | ".join(cells) + " |")
    return lines and ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] + lines


def accuracy_case(a):
    return a["model"], a.get("hidden") or 0, a.get("maxk") or 0


def gnn_accuracy_rows(run):
    """Ours beside PyTorch Geometric's; MaxK beside ReLU."""
    def of(found, *case):
        return next((a for a in found if accuracy_case(a) == case), None)

    lines, theirs = [], cases(run, "torch-accuracy", "accuracy")
    for graph, found in sorted(cases(run, "accuracy", "accuracy").items()):
        for a in sorted(found, key=accuracy_case):
            model, hidden, maxk = accuracy_case(a)
            same = None if maxk else of(theirs.get(graph, ()), model, hidden, 0)
            relu = of(found, model, hidden, 0) if maxk else None
            cells = [graph, model, str(hidden), str(maxk or ""), str(a["seeds"])]
            for side in (a, same):
                cells.append(f"{100 * side['test_accuracy']:.2f} ± {100 * side['deviation']:.2f}" if side else "")
            for other in (same, relu):
                cells.append(f"{100 * (a['test_accuracy'] - other['test_accuracy']):+.2f}" if other else "")
            lines.append("| " + " | ".join(cells) + " |")
    return lines and ["| graph | model | hidden | MaxK | seeds | ours, % | PyTorch Geometric, % | points "
                      "| beside our ReLU, points |", "|" + "---|" * 9] + lines


def gnn_check_rows(run):
    lines = []
    for graph, found in cases(run, "torch-check", "gradients").items():
        lines += [f"| {graph} | {g['model']} | {g['type']} | {g['logits_error']:.1e} | {g['gradient_error']:.1e} |"
                  for g in found]
    return lines and ["| graph | model | type | logits apart by | gradients, relative |", "|" + "---|" * 5] + lines


GNN_TABLES = (("gnn-train", "train", gnn_train_rows), ("gnn-totals", "train", gnn_total_rows),
              ("gnn-maxk", "aggregate", gnn_maxk_rows),
              ("gnn-sample", "sample", gnn_sample_rows), ("gnn-minibatches", "minibatches", gnn_minibatch_rows),
              ("gnn-accuracy", "accuracy", gnn_accuracy_rows),
              ("gnn-check", "torch-check", gnn_check_rows))


def gnn_table(runs, part, rows):
    lines = []
    for run in runs.values():
        made = rows(run)
        if made:
            other = run.get("torch" if part == "train" else "torch-" + part)
            beside = f"; beside it {gnn_heading(other)}" if other and part != "torch-check" else ""
            lines += ["", gnn_heading(run[part]) + beside + ":", ""] + made
    return "\n".join(lines[1:])
