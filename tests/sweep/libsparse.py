"""Random calls of every function in sparse.h, compared with plain numpy.

    python3 tests/sweep/libsparse.py LIB.so [--cases N] [--seed S] [--only K]

A case is a call (or a few) on random operands. It runs with one thread and with two, and the results must have the
same bits. Some cases run with an allocator that fails, an interrupt or a small memory budget: a refusal is fine then,
but it must leave every output as it was. Cases run in forked children, so that a crash fails one case alone.
"""
import sys

import numpy as np

from libsparse_call import (Csr, Dense, Matrix, combine, compare, dense_array, expect, gather_products, matrix,
                            near, numbers, one_of, product_options, shape, take, triples)
from libsparse_dense import edge_softmax, maxk, sddmm, spmm, spmm_argument
from libsparse_run import run_sweep
from libsparse_wrong import arguments

COMBINE = "sum max min first mean count".split()


# ---- making and moving matrices

def from_coo(env, rng):
    rows, cols = shape(rng)
    symmetric = rng.random() < 0.3
    cols = rows if symmetric else cols
    count = int(rng.integers(0, 300)) if rows and cols else 0
    index = one_of(rng, [np.int32, np.int64])
    i, j = (rng.integers(0, max(n, 1), count).astype(index) for n in (rows, cols))
    if count and rng.random() < 0.5:
        i, j = i // 2, j // 3
    dtype, rule = one_of(rng, [np.float32, np.float64]), int(rng.integers(6))
    values = None if rng.random() < 0.2 else numbers(rng, count, dtype)
    out = Csr()
    env.call("sp_csr_from_coo", triples(env, rows, cols, i, j, values, dtype), rule, symmetric, out, out=[out])
    v = np.ones(count) if values is None else values.astype(float)
    where, mirror = np.arange(count), np.flatnonzero(i != j) if symmetric else np.arange(0)
    order = np.argsort(np.concatenate([where, mirror]), kind="stable")
    i, j, v = (np.concatenate([x, y])[order] for x, y in
               ((i, j[mirror]), (j, i[mirror]), (v, v[mirror])))
    want = combine(rows, cols, i, j, v, COMBINE[rule], dtype)
    compare(take(env, out), want, slack=0 if rule in (1, 2, 3, 5) else 1)


def transpose(env, rng):
    a, out = matrix(rng, special=True), Csr()
    env.call("sp_csr_transpose", a, out, out=[out])
    compare(take(env, out), a.transposed())


def permute(env, rng):
    a, out = matrix(rng, special=True), Csr()
    row, column = rng.permutation(a.rows).astype(np.int32), rng.permutation(a.cols).astype(np.int32)
    env.call("sp_csr_permute", a, row, column, out, out=[out])
    place = np.empty(a.rows, int)
    place[row] = np.arange(a.rows)
    compare(take(env, out), Matrix(a.rows, a.cols, place[a.i], column[a.j], a.v, a.dtype))


def copy_and_check(env, rng):
    a, out = matrix(rng), Csr()
    env.call("sp_csr_copy", a, 0, out, out=[out])
    compare(take(env, out), a)
    env.call("sp_csr_check", a)
    broken, fault = matrix(rng), rng.integers(4)
    if broken.i.size < 2:
        return
    expected = 2
    broken.struct()
    if fault == 0:
        broken.columns[rng.integers(broken.i.size)] = broken.cols + rng.integers(3)
    elif fault == 1:
        broken.offsets[-1] += 1
    elif fault == 2:
        both = np.flatnonzero(broken.i[1:] == broken.i[:-1])
        if not both.size:
            return
        broken.columns[both[0] + 1] = broken.columns[both[0]]
    else:
        if broken.v is None:
            return
        broken.v[rng.integers(broken.i.size)] = one_of(rng, [np.nan, np.inf, -np.inf])
        expected = 3
    env.refused("sp_csr_check", broken, statuses=(expected,))


def memory(env, rng):
    """Blocks and arrays: sizes checked, a count of 0 is fine, what was there stays."""
    block, count, size = env.pointer(), int(one_of(rng, [0, 1, 1000])), int(one_of(rng, [1, 8, 24]))
    for name in ("sp_alloc", "sp_calloc"):
        env.refused(name, 1 << 61, 16, block, statuses=(4, 5))
        expect(not block.value, f"{name} failed and left a pointer")
        env.call(name, count, size, block, out=[block], empty=True)
        expect(block.value, f"{name} of {count} gave NULL")
        env.owned.append(block)
        if name == "sp_calloc":
            expect(not env.read(block.value, count * size, np.uint8).any(), "sp_calloc gave other than zeros")
        block = env.pointer()
    grown = env.pointer()
    env.owned.append(grown)
    env.call("sp_grow", 0, 10, 8, grown)
    words = rng.integers(0, 1 << 60, 10)
    env.call("sp_array_copy", 10, 8, grown.value, 0, words, 0)
    env.call("sp_grow", 10, 10 + count, 8, grown)
    near(env.read(grown.value, 10, np.int64) % 10007, words % 10007, 0, "what had been there")
    made = Csr()
    env.refused("sp_csr_create", *one_of(rng, [(-1, 1, 1), (1, -1, 1), (1, 1, -1), (1 << 31, 1, 1), (1, 1 << 31, 1)]),
                0, 0, made, statuses=(1, 4))
    expect(not any(bytes(made)), "sp_csr_create failed and left other than zeros")
    env.call("sp_csr_create", count, count, count, int(rng.integers(2)), 0, made, out=[])
    expect(made.values and made.col_indices and made.row_offsets, "sp_csr_create left an array NULL")
    env.owned.append(made)


def dense_copy(env, rng):
    kind = int(rng.integers(4))
    x, out = dense_array(rng, int(rng.integers(0, 20)), int(rng.integers(0, 140)), kind), Dense()
    env.call("sp_dense_copy", x, 0, out, out=[out])
    expect(out.stride == out.cols == x.cols and out.rows == x.rows and out.type == kind, "shape of the copy")
    near(env.read_dense(out), x.numbers(), 0)


def community_order(env, rng):
    a, order = matrix(rng, square=True, positive=True), env.pointer()
    env.call("sp_csr_community_order", a, order, out=[order])
    got = env.read(order.value, a.rows, np.int32)
    expect(np.array_equal(np.sort(got), np.arange(a.rows)), "the order is no permutation")
    env.lib.sp_free(env.context, order)


# ---- products of sparse matrices

def spgemm(env, rng):
    a, b, options, want, products, _ = product_options(env, rng)
    out, info = Csr(), env.info()
    env.call("sp_spgemm", a, b, options, out, info, out=[out])
    compare(take(env, out), want)
    expect(info.nnz == want.i.size, f"info: {info.nnz} entries, {want.i.size} are right")
    expect(options.mask or info.products == products, f"info: {info.products} products, {products} are right")


def spgemm_top_k(env, rng):
    a, b, options, want, _, _ = product_options(env, rng)
    k, out = int(rng.integers(0, 12)), Csr()
    env.call("sp_spgemm_top_k", a, b, k, options, out, None, out=[out])
    compare(take(env, out), want.top(k))


def spgemm_plan(env, rng):
    a, b, options, want, products, again = product_options(env, rng)
    plan, out = env.pointer(), Csr()
    env.call("sp_spgemm_plan_create", a, b, options, plan, out=[plan], empty=True)
    env.plan("spgemm", plan)
    info = env.plan_info("sp_spgemm_plan_info", plan)
    expect(info.nnz == want.i.size, f"plan: {info.nnz} entries, {want.i.size} are right")
    for turn in range(3):
        env.call_plan("sp_spgemm_plan_execute", plan, 1.0, a, b, 0.0, out)
        kept = take(env, out, free=False)
        compare(kept, want)
        if turn < 2:
            place = out.row_offsets, out.col_indices
            want = again(turn)
        expect((out.row_offsets, out.col_indices) == place, "the plan's own matrix was allocated anew")
    env.free(out)


def markov_row(columns, sums, row, e):
    """The epilogue of one row as the header puts it; None where a comparison is too close to call."""
    c = sums.astype(np.float32).astype(float)
    columns, c = columns[c != 0], c[c != 0]
    seen = c.size, c.max(initial=0), float((c * c).sum())
    def largest(among, count):
        if count <= 0:
            return np.zeros(c.size, bool)
        bar = np.sort(c[among])[::-1][min(count, among.sum()) - 1] if among.any() else np.inf
        return among & (c >= bar)
    def recover(kept, pool):
        if pool.sum() <= e["recover"]:
            return pool
        return kept | largest(pool & ~kept, e["recover"] - int(kept.sum()))
    cut = keep = c >= e["cutoff"]
    short = lambda kept: kept.sum() < e["recover"] and c[kept].sum() < e["recover_mass"]
    if short(keep):
        keep = recover(keep, np.ones(c.size, bool))
    elif e["select"] and keep.sum() > e["select"]:
        keep = largest(keep, e["select"])
        if short(keep):
            keep = recover(keep, cut)
    mass, k = c[keep].sum(), int(keep.sum())
    if not k:
        return (np.array([row]), np.ones(1), None) if e["recover"] == 0 else (columns[:0], c[:0], None)
    v = c[keep] / mass
    squares = (v ** 4).sum() / (v ** 2).sum() ** 2
    if e["inflation"]:
        v = v ** e["inflation"] / (v ** e["inflation"]).sum()
    return columns[keep], v, (mass, (seen[1] - seen[2]) * k, squares, seen[0])


def spgemm_markov(env, rng):
    n, inner, m = (int(x) for x in (rng.integers(1, 40, 3) if rng.random() < 0.3 else [rng.integers(1, 40)] * 3))
    a, b = (matrix(rng, size=s, dtype=np.float32, values=one_of(rng, ["eighths", "unit"]), pattern=False)
            for s in ((n, inner), (inner, m)))
    e = {"cutoff": one_of(rng, [0, 0.25, 0.0625, 1.5, 0.3]), "select": int(one_of(rng, [0, 0, 3, 8])),
         "recover": int(one_of(rng, [0, 0, 2, 12])), "recover_mass": one_of(rng, [0, 0.9, 3]),
         "inflation": one_of(rng, [0, 2, 1.4]), "dense_factor": int(one_of(rng, [0, 0, 1]))}
    epilogue, out, rows, info = env.epilogue(e), Csr(), env.markov_rows(n), env.info()
    env.call("sp_spgemm_markov", a, b, epilogue, out, rows, info, out=[out, rows])
    i, j, p, _ = gather_products(a, b)
    sums = combine(n, m, i, j, p, "sum", np.float64)
    got, a_squares = take(env, out), np.bincount(a.i, a.v.astype(float) ** 2, n)
    for row in range(n):
        at, mine = sums.i == row, got.i == row
        columns, v, seen = markov_row(sums.j[at], sums.v[at], row, e)
        columns, v = columns[columns < m], v[columns < m]  # a row below the square has no diagonal
        expect(np.array_equal(got.j[mine], columns), f"row {row} of {e}: {got.j[mine]}, {columns} are right")
        near(got.v[mine], v, 4e-6, f"row {row} of {e}")
        if seen:
            mass, chaos, squares, expanded = seen
            r = rows[row]
            expect(r.expanded == expanded, f"row {row}: expanded {r.expanded}, {expanded} is right")
            near([r.kept_mass, r.homogeneity], [mass, a_squares[row] / squares], 1e-4, f"row {row}: mass, homogeneity")


def inflate(env, rng):
    a, power = matrix(rng, dtype=np.float32, pattern=False, values="unit"), one_of(rng, [1, 2, 1.4, 0.5, 30])
    before = a.v.astype(float)
    env.call("sp_csr_inflate", a, power, out=[a])
    v = (before ** power).astype(np.float32).astype(float)
    sums = np.bincount(a.i, v, a.rows)[a.i] if a.i.size else v
    want = np.where(sums > 0, v / np.where(sums > 0, sums, 1), v)    # powers that are all 0 stay
    near(a.v, want, 1e-6, slack=1e-44)


# ---- contraction

def contract(env, rng):
    g = matrix(rng, square=True)
    groups = int(one_of(rng, [1, 2, 5, max(g.rows, 1), 3 * g.rows + 1]))
    labels = rng.integers(-1 if rng.random() < 0.5 else 0, groups, g.rows).astype(np.int32)
    labels[labels < 0] -= rng.integers(0, 5)
    rule, loops, half = int(rng.integers(6)), int(rng.integers(3)), rng.random() < 0.4
    out, info = Csr(), env.contract_info()
    env.call("sp_contract", g, labels, 0, groups, env.contract_options(rule, loops, half), out, info, out=[out])
    p, q, v = labels[g.i], labels[g.j], g.floats()
    keep = (p >= 0) & (q >= 0) & ((loops == 0) | ((p == q) == (loops == 2)))
    halve = half and COMBINE[rule] in ("sum", "count")
    want = combine(groups, groups, p[keep], q[keep], v[keep], COMBINE[rule], g.dtype, halve_diagonal=halve)
    compare(take(env, out), want)
    expect(info.nnz == want.i.size, f"info: {info.nnz} entries of C, {want.i.size} are right")
    expect(info.entries == keep.sum(), f"info: {info.entries} entries of G fall into C, {keep.sum()} are right")


def triple_product(env, rng):
    g = matrix(rng, square=True, values="small")
    p = int(rng.integers(0, 12))
    s = matrix(rng, size=(p, g.rows), dtype=g.dtype, values="small")
    if rng.random() < 0.5 and p:
        label = rng.integers(-1, p, g.rows)
        s = Matrix(p, g.rows, label[label >= 0], np.flatnonzero(label >= 0), None, g.dtype)
    semiring, out = int(rng.integers(5)), Csr()
    options = env.options(semiring=semiring, algorithm=int(rng.integers(3)))
    st, name = s.transposed(), "plus_times plus_pair min_plus max_times or_and".split()[semiring]
    gs = combine(g.rows, p, *gather_products(g, st, name)[:3], name, g.dtype)
    want = combine(p, p, *gather_products(s, gs, name)[:3], name, g.dtype)
    mask = matrix(rng, size=(p, p)) if rng.random() < 0.3 else None
    if mask is not None:
        options.mask, options.complement = env.keep(mask), rng.random() < 0.5
        want = want.masked(mask, options.complement)
    env.call("sp_triple_product", s, g, options, out, None, out=[out])
    compare(take(env, out), want)


# ---- between products

def add(env, rng):
    a, out = matrix(rng), Csr()
    b = matrix(rng, size=(a.rows, a.cols), dtype=a.dtype)
    alpha, beta = one_of(rng, [(1, 1), (1, -1), (0.5, 3), (0, 1), (1e-3, 7)])
    env.call("sp_csr_add", float(alpha), a, float(beta), b, out, out=[out])
    both = [np.concatenate(x) for x in ((a.i, b.i), (a.j, b.j), (alpha * a.floats(), beta * b.floats()))]
    compare(take(env, out), combine(a.rows, a.cols, *both, "sum", a.dtype), slack=1)


def hadamard(env, rng):
    a, out = matrix(rng), Csr()
    b = matrix(rng, size=(a.rows, a.cols), dtype=a.dtype)
    env.call("sp_csr_hadamard", a, b, out, out=[out])
    at, bt = a.keys(), b.keys()
    keys, p, q = np.intersect1d(at, bt, return_indices=True)
    with np.errstate(all="ignore"):
        v = (a.floats()[p] * b.floats()[q]).astype(a.dtype)
    v = None if a.v is None and b.v is None else v
    compare(take(env, out), Matrix(a.rows, a.cols, a.i[p], a.j[p], v, a.dtype))


def scale(env, rng):
    a, owned = matrix(rng), Csr()
    env.call("sp_csr_copy", a, 0, owned, out=[owned])
    env.owned.append(owned)
    r, c = (None if rng.random() < 0.25 else numbers(rng, n, np.float64, "signed") for n in (a.rows, a.cols))
    env.call("sp_csr_scale", owned, r, c, 0, out=[owned])
    factor = (1 if r is None else r[a.i]) * (1 if c is None else c[a.j])
    with np.errstate(all="ignore"):
        want = (a.floats() * factor).astype(a.dtype)
    compare(take(env, owned), Matrix(a.rows, a.cols, a.i, a.j, want, a.dtype))


def extract(env, rng):
    a, out = matrix(rng, special=True), Csr()
    lists = [None if n and rng.random() < 0.2 else (rng.permutation(n) if rng.random() < 0.3 else
             np.sort(rng.integers(0, n, rng.integers(0, 2 * n + 2))) if n and rng.random() < 0.5 else
             rng.integers(0, n, rng.integers(0, 50)) if n else np.arange(0)) for n in (a.rows, a.cols)]
    rows, cols = (None if x is None else x[:2000].astype(np.int32) for x in lists)
    counts = [-5 if x is None and rng.random() < 0.5 else 0 if x is None else x.size for x in (rows, cols)]
    env.call("sp_csr_extract", a, rows, counts[0], cols, counts[1], 0, out, out=[out])
    rows, cols = (np.arange(n) if x is None else x for x, n in ((rows, a.rows), (cols, a.cols)))
    start = np.searchsorted(a.i, np.arange(a.rows + 1))
    by_column = [np.flatnonzero(cols == c) for c in range(a.cols)] if a.cols < 500 else \
        {int(c): np.flatnonzero(cols == c) for c in np.unique(a.j)}
    found = [(i, j, e) for i, r in enumerate(rows) for e in range(start[r], start[r + 1]) for j in by_column[a.j[e]]]
    i, j, e = (np.array(x, int) for x in zip(*found)) if found else (np.arange(0),) * 3
    compare(take(env, out), Matrix(rows.size, cols.size, i, j, None if a.v is None else a.v[e], a.dtype))


def select(env, rng):
    a, out, how = matrix(rng, special=True), Csr(), int(rng.integers(11))
    v, d = a.floats(), a.j - a.i
    if how < 4:
        bound = float(rng.integers(-a.rows - 3, a.cols + 4)) if rng.random() < 0.5 else float(rng.integers(-2, 3))
        bound = one_of(rng, [bound] * 9 + [1e300])
    else:
        own = [float(rng.choice(v))] * 5 if v.size else []
        bound = float(one_of(rng, [0, 1, -1, np.inf, -np.inf, np.nan, 0.5] + own))
    env.call("sp_csr_select", a, how, bound, out, out=[out])
    keep = [lambda: d <= bound, lambda: d >= bound, lambda: d == bound, lambda: d != bound, lambda: v < bound,
            lambda: v <= bound, lambda: v == bound, lambda: v != bound, lambda: v >= bound, lambda: v > bound,
            lambda: abs(v) >= bound][how]()
    compare(take(env, out), a.part(keep))


def top_k(env, rng):
    a, out = matrix(rng, special=True), Csr()
    k = int(one_of(rng, [0, 1, 2, 3, 5, 17, 1000, 1 << 40]))
    env.call("sp_csr_top_k", a, k, out, out=[out])
    compare(take(env, out), a.top(k))


def reduce_rows(env, rng):
    a, rule = matrix(rng), int(rng.integers(6))
    result = np.full(a.rows, 7.5)
    env.call("sp_csr_reduce_rows", a, rule, result, 0, out=[result])
    want, v = np.zeros(a.rows), a.floats()
    grouped = combine(a.rows, 1, a.i, 0 * a.j, v, COMBINE[rule], np.float64)
    want[grouped.i] = grouped.v
    sizes = np.bincount(a.i, abs(v), a.rows)
    near(result, want, 0, COMBINE[rule], 1e-14 * sizes if rule in (0, 4) else 0)


def degree_order(env, rng):
    a = matrix(rng)
    order = np.full(a.rows, -7, np.int32)
    env.call("sp_csr_degree_order", a, order, 0, out=[order])
    want = np.argsort(-np.bincount(a.i, minlength=a.rows), kind="stable")
    expect(np.array_equal(order, want), f"order {order[:9]}, {want[:9]} is right")


CASES = [from_coo, transpose, permute, copy_and_check, memory, dense_copy, community_order, spgemm, spgemm, spgemm,
         spgemm_top_k, spgemm_plan, spgemm_markov, inflate, contract, contract, triple_product, spmm, spmm, spmm,
         spmm_argument, sddmm, edge_softmax, maxk, add, hadamard, scale, extract, select, top_k, reduce_rows,
         degree_order, arguments]

if __name__ == "__main__":
    sys.exit(run_sweep(CASES))
