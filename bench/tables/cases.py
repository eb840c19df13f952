"""Every measured case as one record: our time and that of each peer that did the same work.

The compact tables, README.md's summary and the pictures are all made from these records.
"""
import re
from dataclasses import dataclass

from .common import geometric_mean, place_of, threads_of, works
from .gnn import TORCH_WAYS, cases as gnn_cases, fastest, precision_of, variants_beside
from .spgemm import full_peers


@dataclass
class Case:
    group: str  # what was measured: cases of one group and place are summed up together
    place: str
    name: str
    ours: float  # seconds; of sampling, seconds an edge
    peers: dict  # {name: seconds} of those that ran

    @property
    def strongest(self):
        return min(self.peers, key=self.peers.get)

    @property
    def ratio(self):
        return self.peers[self.strongest] / self.ours


def medians(peers):
    return {p["name"]: p["median_seconds"] for p in peers if works(p)}


def short_name(name):
    """`rmat-17-16.mtx` and `rmat:18,16` are rmat17 and rmat18, `community:1000000,18,...` is community; of a file the
    name without its ending, of a product the first operand."""
    name = name.split(" (")[0]
    found = re.match(r"([a-z]+)[-:](\d+)[-,:.\d]*(\.mtx)?$", name)
    if not found:
        return re.sub(r"(\.(mtx|txt))?(\.gz)?$", "", name)
    return found[1] + (found[2] if len(found[2]) < 3 else "")


def markov_cases(results):
    for result in results("mcl-*.json"):
        machine = result["machine"]
        places = {"mcl-gpu cuda": machine["gpu"], "mcl-gpu cpu": threads_of(machine, result["threads"])}
        for network in result["networks"]:
            tools = network["tools"]
            peers = {name: t["median_seconds"] for name, t in tools.items()
                     if name.startswith("mcl") and not name.startswith("mcl-gpu") and works(t)}
            for name, place in places.items():
                if works(tools.get(name)) and peers:
                    yield Case("whole runs", place, network["network"], tools[name]["median_seconds"], peers)


def library_cases(group, found, own, peers, named):
    for result in found:
        for matrix in result["matrices"]:
            ran = medians(peers(matrix))
            if ran and works(own(matrix)) and not any(matrix.get(k) for k in ("host", "stage_on")):
                yield Case(group, place_of(result), named(matrix), own(matrix)["median_seconds"], ran)


SPGEMM_GROUPS = (("f64, A·A", "fp64"), ("f32, A·A", "fp32"), ("f64, A·A, other shapes", "more"),
                 ("f64, A·A, real matrices", "files"), ("f64, A·Aᵀ and A·B", "aat"),
                 ("f64, A·Aᵀ and A·B", "rectangular"))


def spgemm_cases(results):
    def ordered(matrix):
        return [p for p in full_peers(matrix) if works(p) and p["sorted"]]

    def named(matrix):
        return short_name(matrix["matrix"])

    def reuse(matrix):
        return [p for p in matrix["peers"] if p["name"].endswith("reuse")]

    for group, part in SPGEMM_GROUPS:
        yield from library_cases(group, results(f"spgemm-*-{part}.json"), lambda m: m["ours"], ordered, named)
    yield from library_cases("f64, new values by a plan", results("spgemm-*-fp64.json"), lambda m: m.get("plan"), reuse,
                             named)


SPMM_GROUPS = (("f32, nine graphs", "*-fp32"), ("f32, Accel-GCN's shapes", "*-accel-gcn"),
               ("f32, BiKD's shapes", "*-bikd"), ("f16 in and out", "*-f16-result"), ("f32, four graphs", "cpu-*"))


def spmm_cases(results):
    for group, part in SPMM_GROUPS:
        yield from library_cases(group, results(f"spmm-{part}.json"), lambda m: m["ours"]["auto"], lambda m: m["peers"],
                                 lambda m: f"{short_name(m['matrix'])}, {m['width']} columns")


def contract_cases(results):
    def named(m):
        share, runs = round(100 * m["groups"] / m["nodes"]), "runs" if m["labels"] == "blocks" else m["labels"]
        return f"{short_name(m['matrix'])}, {share} % groups, {runs}"

    def ordered(m):
        return [p for p in m["peers"] if works(p) and p["sorted"]]

    found = results("contract-*.json")
    yield from library_cases("f32, one pass", found, lambda m: m["ours"]["fused"], ordered, named)
    yield from library_cases("f32, S as a matrix", found, lambda m: m["ours"]["products"],
                             lambda m: [p for p in ordered(m) if not p["name"].startswith("CUB")], named)


def way_times(variants):
    """{way: seconds an epoch} of PyTorch, each way at its fastest, with or without torch.compile and a CUDA graph."""
    ways = {way: fastest(variants, "epoch", (way,)) for way in TORCH_WAYS}
    return {way: epoch["median_seconds"] for way, epoch in ways.items() if works(epoch)}


def training_cases(runs):
    """ReLU, in f32 with A·X of the first layer formed in each epoch or kept, beside PyTorch's fastest with fp32 and
    TF32; and in bf16 beside its fastest, AMP included. Models other than GCN and GraphSAGE are groups of their own."""
    for run in runs.values():
        theirs = gnn_cases(run, "torch", "training")
        for graph, trainings in gnn_cases(run, "train", "training").items():
            beside = theirs.get(graph, ())
            for t in trainings:
                precisions = {precision_of(o) for o in beside if all(o[k] == t[k] for k in ("model", "hidden"))}
                half, peers = bool(t.get("half")), way_times(variants_beside(beside, t))
                if not peers or not works(t["epoch"]) or t["maxk"] or (half and "bf16" not in precisions):
                    continue
                place, name = place_of(run["train"]), f"{graph}, {t['model']}, {t['hidden']} columns"
                ours = t["epoch"]["median_seconds"]
                other = "" if t["model"] in ("gcn", "sage") else "; GIN, GAT, maxima"
                kind = "epoch in bf16, beside AMP" if half else "epoch, A·X kept" if t["kept"] else "epoch"
                yield Case(kind + other, place, name, ours, peers)
                layers = {way: time for way, time in peers.items() if way.startswith("PyG")}
                if layers and not half and not other:
                    yield Case("epoch, PyG's layers only", place, name, ours, layers)


def sampling_cases(runs):
    for run in runs.values():
        theirs = gnn_cases(run, "torch-sample", "sampling")
        for graph, samplings in gnn_cases(run, "sample", "sampling").items():
            for s in samplings:
                peers = {v["name"]: 1 / v["edges_a_second"] for o in theirs.get(graph, ())
                         if o["fanout"] == s["fanout"] for v in o["variants"] if works(v)}
                if peers and s["edges_a_second"]:
                    yield Case("sampling", place_of(run["sample"]), f"{graph}, fan-outs {fanouts(s)}",
                               1 / s["edges_a_second"], peers)


def fanouts(sampling):
    return " ".join(map(str, sampling["fanout"]))


def all_cases(results, runs):
    """{operation: its cases}; `results`(pattern) loads results, `runs` are those of networks."""
    return {"markov": list(markov_cases(results)), "spgemm": list(spgemm_cases(results)),
            "spmm": list(spmm_cases(results)), "contract": list(contract_cases(results)),
            "gnn": list(training_cases(runs)), "sampling": list(sampling_cases(runs))}


def grouped(cases):
    """{(group, place): cases}, in the order in which they come, GPUs first."""
    groups = {}
    for case in sorted(cases, key=lambda c: c.place.endswith("threads")):
        groups.setdefault((case.group, case.place), []).append(case)
    return groups


def mean_ratio(cases):
    return geometric_mean([case.ratio for case in cases])
