"""scipy beside sparse-bench contract, for bench/bench_contract.sh on the CPU.

    contract_scipy.py RESULT.json    times scipy's S·G·Sᵀ on the files that RESULT.json names, for its labels, and
                                     adds it there as a peer, with its rows sorted and as they come

scipy multiplies on one thread. S and its transpose lie in memory as CSR before the clock starts, as they do for the
other peers that multiply.
"""
import json
import os
import statistics
import sys
import time

import numpy as np
import scipy
import scipy.io
import scipy.sparse


def mix(z):
    z = (z + np.uint64(0x9e3779b97f4a7c15)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return z ^ z >> np.uint64(31)


def labels_of(case, seed):
    """As sparse-bench draws them."""
    node = np.arange(case["nodes"], dtype=np.uint64)
    groups = np.uint64(case["groups"])
    drawn = mix(np.uint64(seed) ^ mix(node)) % groups if case["labels"] == "random" else \
        node * groups // np.uint64(case["nodes"])
    return drawn.astype(np.int32)


def memberships(case, seed):
    nodes = case["nodes"]
    places = labels_of(case, seed), np.arange(nodes, dtype=np.int32)
    return scipy.sparse.csr_array((np.ones(nodes, np.float32), places), shape=(case["groups"], nodes))


def samples(product, repeat, limit):
    """Seconds of up to `repeat` products that together stay within `limit`, after one to warm up, and its result."""
    result, taken = product(), []
    while len(taken) < repeat and (not taken or sum(taken) < limit):
        begin = time.perf_counter()
        product()
        taken.append(time.perf_counter() - begin)
    return taken, result


def error_of(quotient, s, graph):
    """Beside sums of f64, relative to the sums of magnitudes; infinite where the patterns differ."""
    exact = (s.astype(np.float64) @ graph.astype(np.float64) @ s.T.tocsr().astype(np.float64)).tocsr()
    bound = (s.astype(np.float64) @ abs(graph).astype(np.float64) @ s.T.tocsr().astype(np.float64)).tocsr()
    for matrix in (exact, bound):
        matrix.sort_indices()
    if not np.array_equal(quotient.indices, exact.indices) or not np.array_equal(quotient.indptr, exact.indptr):
        return float("inf")
    return float(np.max(np.abs(quotient.data - exact.data) / np.maximum(bound.data, 1e-300), initial=0))


def time_peer(path, limit=5):
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    read = {}
    for case in result["matrices"]:
        name = case["file"]
        if name not in read:
            read = {name: scipy.sparse.csr_array(scipy.io.mmread(name)).astype(np.float32)}
        graph = read[name]
        if graph.nnz != case["edges"]:
            sys.exit(f"{name}: {graph.nnz} edges, {case['edges']} in {path}; measure both again")
        s = memberships(case, result["options"]["seed"])
        transposed = s.T.tocsr()

        def sorted_product():
            quotient = s @ graph @ transposed
            quotient.sort_indices()
            return quotient

        case["peers"] = [peer for peer in case["peers"] if not peer["name"].startswith("scipy")]
        for title, ordered, product in (("scipy", True, sorted_product),
                                        ("scipy unsorted", False, lambda: s @ graph @ transposed)):
            taken, quotient = samples(product, result["options"]["repeat"], limit)
            if not ordered:
                quotient.sort_indices()
            if quotient.nnz != case["nnz_quotient"]:
                sys.exit(f"{name}: scipy's quotient has {quotient.nnz} entries, ours {case['nnz_quotient']}")
            case["peers"].append({"name": title, "version": scipy.__version__, "threads": 1, "sorted": ordered,
                                  "error": error_of(quotient, s, graph), "median_seconds": statistics.median(taken),
                                  "samples": taken})
    for case in result["matrices"]:
        case["file"] = os.path.basename(case["file"])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    time_peer(sys.argv[1])
