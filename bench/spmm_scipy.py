"""scipy beside sparse-bench spmm, for bench/bench_spmm.sh on the CPU.

    spmm_scipy.py write GRAPH.npz FILE.mtx    a graph of `gnn convert` with weights in (0, 1], for both sides to read
    spmm_scipy.py time RESULT.json            times scipy's CSR x dense on the files that RESULT.json names, at its
                                              widths, and adds it there as a peer
scipy multiplies on one thread, by one row of A after another.
"""
import sys

import numpy as np
import scipy.io
import scipy.sparse

import scipy_peer


def write(graph, path):
    matrix = scipy.sparse.load_npz(graph).astype(np.float32)
    matrix.data = 1 - np.random.default_rng(4).random(matrix.nnz, dtype=np.float32)
    scipy.io.mmwrite(path, matrix, symmetry="general", precision=9)


def measure(case, matrix, options, limit=2):
    width = case["width"]
    features = np.random.default_rng(width).random((matrix.shape[1], width), dtype=np.float32)
    taken, product = scipy_peer.samples(lambda: matrix @ features, options["repeat"], limit)
    rows = np.random.default_rng(1).integers(0, matrix.shape[0], 100)
    exact = matrix[rows].astype(np.float64) @ features.astype(np.float64)
    bound = abs(matrix[rows]).astype(np.float64) @ abs(features).astype(np.float64)
    error = float(np.max(np.abs(product[rows] - exact) / np.maximum(bound, 1e-300)))
    return [scipy_peer.peer("scipy", error, taken)]


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "write":
        write(*sys.argv[2:])
    elif len(sys.argv) == 3 and sys.argv[1] == "time":
        scipy_peer.add_peers(sys.argv[2], "nnz", measure)
    else:
        sys.exit(__doc__)
