#!/usr/bin/env python3
"""Writes random graphs, labellings and their quotient graphs as scipy and numpy give them: gen_contraction.py CASES

Per case, to standard output:  graph TYPE NODES GROUPS NNZ,  row offsets, columns, values and labels, a line each;
then for every combine operation  quotient OPERATION LOOPS HALF NNZ  and its row offsets, columns and values. Values are
multiples of 1/64 below 64 or, in f64, whole numbers near 2^24, 2^31 and as large as sums up to 2^53 allow, so that sums
are exact in any order and means are rounded once: results are to be equal.

Sums and counts are S G S' of scipy matrices; a count says where C has entries, also where a sum is zero. The others
are numpy reductions over the entries sorted by place, in the order of G within a place.
"""
import sys

import numpy as np
import scipy.sparse as sparse

OPERATIONS = ["sum", "max", "min", "first", "mean", "count"]  # in the order of sp_combine


def line(values):
    print(" ".join(repr(float(v)) if isinstance(v, np.floating) else str(int(v)) for v in values))


def random_labels(rng, nodes, groups):
    kind = rng.integers(5)
    if groups == 0 or kind == 4:
        return np.full(nodes, -1)
    if kind == 0:
        return rng.integers(0, groups, nodes)
    if kind == 1:
        return np.arange(nodes) * groups // max(nodes, 1)
    if kind == 2:
        return (rng.random(nodes) ** 3 * groups).astype(int)
    return np.where(rng.random(nodes) < 0.3, -1, rng.integers(0, groups, nodes))


def reduce_places(operation, values, starts, counts):
    if operation == "max":
        return np.maximum.reduceat(values, starts)
    if operation == "min":
        return np.minimum.reduceat(values, starts)
    if operation == "first":
        return values[starts]
    return np.add.reduceat(values, starts) / counts


def quotient(graph, labels, groups, operation, loops, half):
    """C in COO, sorted: rows, columns, values."""
    labelled = np.flatnonzero(labels >= 0)
    ones = np.ones(len(labelled))
    s = sparse.csr_array((ones, (labels[labelled], labelled)), shape=(groups, graph.shape[0]))
    pattern = sparse.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    counted = sparse.coo_array(s @ pattern @ s.T)
    order = np.lexsort((counted.col, counted.row))
    rows, columns, values = counted.row[order], counted.col[order], counted.data[order]
    if operation == "sum" and len(rows):
        values = np.asarray(sparse.csr_array(s @ graph @ s.T).todense())[rows, columns]
    elif operation != "count" and len(rows):
        entries = sparse.coo_array(graph)
        p, q = labels[entries.row], labels[entries.col]
        kept = np.flatnonzero((p >= 0) & (q >= 0))
        kept = kept[np.lexsort((kept, q[kept], p[kept]))]
        starts = np.flatnonzero(np.r_[True, (np.diff(p[kept]) != 0) | (np.diff(q[kept]) != 0)])
        values = reduce_places(operation, entries.data[kept], starts, np.diff(np.r_[starts, len(kept)]))
    if half and operation in ("sum", "count"):
        values = np.where(rows == columns, values / 2, values)
    chosen = {"keep": rows >= 0, "drop": rows != columns, "only": rows == columns}[loops]
    return rows[chosen], columns[chosen], values[chosen]


def draw_values(rng, count, single):
    signs = rng.choice([-1, 1], count)
    near = [0, 1 << 24, 1 << 31, (1 << 53) // max(count, 1) - 4096][rng.integers(4)]
    if single or near <= 0:
        return rng.integers(1, 4096, count) * signs / 64.0
    return (near + rng.integers(0, 4096, count)) * signs * 1.0


def write_case(rng):
    nodes = int(rng.integers(0, 60))
    groups = int(rng.integers(0, nodes + 4)) if rng.integers(3) else int(rng.integers(0, 7))
    density = rng.random() ** 2 * 0.5
    single = rng.integers(2)
    there = rng.random((nodes, nodes)) < density
    rows, columns = np.nonzero(there)
    values = draw_values(rng, len(rows), single)
    graph = sparse.csr_array((values, (rows, columns)), shape=(nodes, nodes))
    graph.sort_indices()
    labels = random_labels(rng, nodes, groups)
    print("graph", "f32" if single else "f64", nodes, groups, graph.nnz)
    line(graph.indptr)
    line(graph.indices)
    line(graph.data)
    line(labels)
    for operation in OPERATIONS:
        loops, half = ["keep", "drop", "only"][rng.integers(3)], int(rng.integers(2))
        rows, columns, values = quotient(graph, labels, groups, operation, loops, half)
        print("quotient", OPERATIONS.index(operation), ["keep", "drop", "only"].index(loops), half, len(rows))
        line(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=groups))]) if groups else [0])
        line(columns)
        line(values.astype(np.float32).astype(float) if single else values)


for seed in range(int(sys.argv[1])):
    write_case(np.random.default_rng(seed))
