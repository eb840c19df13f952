"""scipy beside sparse-bench spmm, for bench/bench_spmm.sh on the CPU.

    spmm_scipy.py write GRAPH.npz FILE.mtx    a graph of `gnn convert` with weights in (0, 1], for both sides to read
    spmm_scipy.py time RESULT.json            times scipy's CSR x dense on the files that RESULT.json names, at its
                                              widths, and adds it there as a peer
scipy multiplies on one thread, by one row of A after another.
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


def write(graph, path):
    matrix = scipy.sparse.load_npz(graph).astype(np.float32)
    matrix.data = 1 - np.random.default_rng(4).random(matrix.nnz, dtype=np.float32)
    scipy.io.mmwrite(path, matrix, symmetry="general", precision=9)


def samples(matrix, width, repeat, limit):
    """Seconds of up to `repeat` products that together stay within `limit`, after one to warm up, and the error."""
    features = np.random.default_rng(width).random((matrix.shape[1], width), dtype=np.float32)
    product = matrix @ features
    rows = np.random.default_rng(1).integers(0, matrix.shape[0], 100)
    exact = matrix[rows].astype(np.float64) @ features.astype(np.float64)
    bound = abs(matrix[rows]).astype(np.float64) @ abs(features).astype(np.float64)
    error = float(np.max(np.abs(product[rows] - exact) / np.maximum(bound, 1e-300)))
    taken = []
    while len(taken) < repeat and (not taken or sum(taken) < limit):
        begin = time.perf_counter()
        matrix @ features
        taken.append(time.perf_counter() - begin)
    return taken, error


def time_peer(path, limit=2):
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    read = {}
    for case in result["matrices"]:
        name = case["file"]
        if name not in read:
            read = {name: scipy.sparse.csr_array(scipy.io.mmread(name)).astype(np.float32)}
        matrix = read[name]
        if matrix.nnz != case["nnz"]:
            sys.exit(f"{name}: {matrix.nnz} entries, {case['nnz']} in {path}; measure both again")
        taken, error = samples(matrix, case["width"], result["options"]["repeat"], limit)
        case["peers"] = [peer for peer in case["peers"] if peer["name"] != "scipy"]
        case["peers"].append({"name": "scipy", "version": scipy.__version__, "threads": 1, "error": error,
                              "median_seconds": statistics.median(taken), "samples": taken})
        case["file"] = os.path.basename(name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "write":
        write(*sys.argv[2:])
    elif len(sys.argv) == 3 and sys.argv[1] == "time":
        time_peer(sys.argv[2])
    else:
        sys.exit(__doc__)
