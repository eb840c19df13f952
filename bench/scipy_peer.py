"""What the scripts that time scipy beside sparse-bench share: samples, and scipy as a peer in a result's JSON."""
import json
import os
import statistics
import sys
import time

import numpy as np
import scipy
import scipy.io
import scipy.sparse


def samples(product, repeat, limit):
    """Seconds of up to `repeat` products that together stay within `limit`, after one to warm up, and its result."""
    result, taken = product(), []
    while len(taken) < repeat and (not taken or sum(taken) < limit):
        begin = time.perf_counter()
        product()
        taken.append(time.perf_counter() - begin)
    return taken, result


def peer(name, error, taken, **more):
    """scipy multiplies on one thread."""
    return {"name": name, "version": scipy.__version__, "threads": 1, **more, "error": error,
            "median_seconds": statistics.median(taken), "samples": taken}


def add_peers(path, entries, measure):
    """Adds what `measure(case, matrix, options)` returns to each case of the result, in place of scipy's of before.
    The matrix is that of the file that the case names, of as many entries as case[entries] says."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    read = {}
    for case in result["matrices"]:
        name = case["file"]
        if name not in read:
            read = {name: scipy.sparse.csr_array(scipy.io.mmread(name)).astype(np.float32)}
        matrix = read[name]
        if matrix.nnz != case[entries]:
            sys.exit(f"{name}: {matrix.nnz} entries, {case[entries]} in {path}; measure both again")
        peers = measure(case, matrix, result["options"])
        case["peers"] = [peer for peer in case["peers"] if not peer["name"].startswith("scipy")] + peers
        case["file"] = os.path.basename(name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
