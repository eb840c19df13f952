"""The Python package beside others: what a call costs, sparse products and similarity joins.

    bench/python/calls.py [--threads N] [--rounds N] [--gpu] [--small] [--json FILE]

scipy, sparse_dot_mkl, graphblas (python-graphblas), torch and sparse_dot_topn are measured if they are installed. All
candidates of a case run once a round, one after another, so that what else the machine does falls on all alike; medians
count. The numbers of entries of the results are printed beside the times. With --gpu, spgraph and torch multiply
tensors on the GPU as well. PYTHONPATH=$(scripts/lay-out-python) takes spgraph from the build. BENCH_COMMIT is the
commit that the JSON names; bench/table.py makes the table of docs/python.md from bench/results/python-calls-*.json.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time

import numpy as np
import scipy.sparse as ss

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from compare import circumstances  # noqa: E402

# Modules and the packages whose versions count: the peers, and the libraries that do their work.
MODULES = {"numpy": ["numpy"], "scipy": ["scipy"], "sparse_dot_mkl": ["sparse-dot-mkl", "mkl"],
           "graphblas": ["python-graphblas", "suitesparse-graphblas"], "torch": ["torch"],
           "sparse_dot_topn": ["sparse-dot-topn"]}


def package(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def versions():
    """Of Python and of the packages that were measured."""
    found = {"python": platform.python_version(), "spgraph": sys.modules["spgraph"].__version__}
    for module, packages in MODULES.items():
        for name in packages if module in sys.modules else []:
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:  # installed by other means
                found[name] = getattr(sys.modules[module], "__version__", None)
    return found


def random_graph(nodes, degree, seed=1):
    rng = np.random.default_rng(seed)
    count = nodes * degree
    row, col = rng.integers(0, nodes, count), (nodes * rng.random(count) ** 2).astype(int)  # some are met often
    made = ss.coo_array((rng.random(count), (row, col)), shape=(nodes, nodes)).tocsr()
    made.sum_duplicates()
    return made


def items(rows, features, entries, seed=2):
    rng = np.random.default_rng(seed)
    col = rng.integers(0, features, rows * entries).astype(np.int32)
    made = ss.csr_array((rng.random(rows * entries), col, np.arange(0, rows * entries + 1, entries)),
                        shape=(rows, features))
    made.sum_duplicates()
    return made


def tensor(matrix, device):
    import torch

    return torch.sparse_csr_tensor(torch.from_numpy(matrix.indptr.astype(np.int64)),
                                   torch.from_numpy(matrix.indices.astype(np.int64)), torch.from_numpy(matrix.data),
                                   matrix.shape).to(device)


def ready(result):
    if hasattr(result, "is_cuda") and result.is_cuda:
        import torch

        torch.cuda.synchronize()
    return result


def product_candidates(a, gpu):
    import spgraph

    found = {"spgraph": lambda: spgraph.matmul(a, a), "scipy": lambda: a @ a}
    if mkl := package("sparse_dot_mkl"):
        b = ss.csr_matrix(a)
        found["sparse_dot_mkl"] = lambda: mkl.dot_product_mkl(b, b)
    if gb := package("graphblas"):
        g = gb.io.from_scipy_sparse(a)
        found["graphblas"] = lambda: g.mxm(g, gb.semiring.plus_times).new()
    if package("torch"):
        for device in ("cpu", "cuda")[:2 if gpu else 1]:
            t = tensor(a, device)
            found[f"torch {device}"] = lambda t=t: ready(t @ t)
            found[f"spgraph {device} tensor"] = lambda t=t: ready(spgraph.matmul(t, t))
    return found


def join_candidates(a, top, threads, gpu):
    import spgraph

    found = {"spgraph": lambda: spgraph.similarity(a, top_k=top, self_join=False)}
    if topn := package("sparse_dot_topn"):
        unit = ss.csr_matrix(ss.diags_array(1 / np.sqrt(a.multiply(a).sum(axis=1))) @ a)
        turned = ss.csr_matrix(unit.T)
        found["sparse_dot_topn"] = lambda: topn.sp_matmul_topn(unit, turned, top_n=top, threshold=0, sort=False,
                                                               n_threads=threads)
    if gpu:
        t = tensor(a, "cuda")
        found["spgraph cuda tensor"] = lambda: ready(spgraph.similarity(t, top_k=top, self_join=False))
    return found


def size_of(result):
    for name in ("nnz", "nvals"):
        if hasattr(result, name):
            return int(getattr(result, name))
    return int(result._nnz())


def measure(name, candidates, rounds, limit=60):
    """Medians of all candidates, in rounds: at least 5, then until the limit in seconds. One that fails says so and is
    left out."""
    taken = {}
    sizes = {}
    for one, call in candidates.items():
        try:
            sizes[one] = size_of(call())
            taken[one] = []
        except Exception as failure:  # of whatever kind: that is the answer to this case
            print(f"  {one}: {type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}")
    end = time.perf_counter() + limit
    for done in range(1, rounds + 1):
        for one in taken:
            start = time.perf_counter()
            candidates[one]()
            taken[one].append(time.perf_counter() - start)
        if done >= 5 and time.perf_counter() > end:
            break
    own = np.median(taken["spgraph"])
    case = {"case": name, "rounds": len(taken["spgraph"]), "entries": sizes, "peers": []}
    print(name)
    for one, samples in taken.items():
        median = float(np.median(samples))
        case["peers"].append({"name": one, "median_seconds": median, "of_spgraph": median / own, "samples": samples})
        print(f"  {one:22} {median * 1e6:12.1f} us   {median / own:7.2f} of spgraph's   {sizes[one]} entries")
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--small", action="store_true", help="few and small cases, to see that all works")
    parser.add_argument("--json")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    import spgraph

    spgraph.set_threads(options.threads)
    cases = [measure(f"product, {nodes} nodes of degree {degree}",
                     product_candidates(random_graph(nodes, degree), options.gpu), rounds)
             for nodes, degree, rounds in ((10, 2, 200), (2000, 8, 5 * options.rounds), (30000, 16, options.rounds),
                                           (200000, 8, options.rounds // 2))[:2 if options.small else 4]]
    cases += [measure(f"join, {rows} rows of {entries}, {features} features, top 10",
                      join_candidates(items(rows, features, entries), 10, options.threads, options.gpu),
                      max(options.rounds // 4, 5))
              for rows, features, entries in ((30000, 1000, 20), (100000, 42000, 20))[:0 if options.small else 2]]
    if options.small:
        cases.append(measure("join, 2000 rows", join_candidates(items(2000, 300, 10), 10, options.threads, options.gpu),
                             3))
    if options.json:
        made = {"bench": "python", "version": spgraph.__version__, **circumstances()}
        made["machine"].update(versions())
        made.update({"options": {key: value for key, value in vars(options).items() if key != "json"}, "cases": cases})
        with open(options.json, "w") as file:
            json.dump(made, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
