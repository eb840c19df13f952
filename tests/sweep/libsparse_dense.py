"""The cases of libsparse.py that multiply with dense matrices: SpMM, SDDMM, the softmax of edges and MaxK."""
import numpy as np

from libsparse_call import dense_array, expect, matrix, near, numbers, one_of


# ---- products with dense matrices

def spmm_operands(env, rng, types=True):
    """A matrix, a plan's options, X and Y, what A·X's terms are, and the slack that sums may have."""
    a = matrix(rng, values=one_of(rng, ["unit", "small", "signed"]))
    kinds = {np.float32: [(0, 0), (2, 0), (3, 0), (2, 2), (3, 3)], np.float64: [(1, 1)]}
    xk, yk = one_of(rng, kinds[a.dtype] if a.v is not None else sum(kinds.values(), []))
    if not types:
        xk = yk = a.dtype == np.float64
    transposed = rng.random() < 0.4
    width = int(one_of(rng, [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 128, 130, 0]))
    n, m = (a.cols, a.rows) if not transposed else (a.rows, a.cols)
    x, y = dense_array(rng, n, width, xk), dense_array(rng, m, width, yk)
    i, j = (a.j, a.i) if transposed else (a.i, a.j)
    return a, transposed, x, y, i, j


def make_plan(env, rng, a, width, reduce, transposed):
    plan = env.pointer()
    options = env.spmm_options(int(rng.integers(4)), reduce, transposed, rng.random() < 0.5, int(one_of(rng, [0, 64])))
    width = int(one_of(rng, [max(width, 1), 1, 50]))
    env.call("sp_spmm_plan_create", a, width, options, plan, out=[plan], empty=True)
    return env.plan("spmm", plan)


def reduced(rows, i, terms, reduce):
    """Rows of terms, reduced, and the sums of the terms' sizes."""
    sizes, y = (np.zeros((rows, terms.shape[1])) for _ in range(2))
    np.add.at(sizes, i, abs(terms))
    lengths = np.bincount(i, minlength=rows)[:, None]
    if reduce < 2:
        np.add.at(y, i, terms)
        return (y / np.maximum(lengths, 1) if reduce else y), sizes
    y[:] = -np.inf if reduce == 2 else np.inf
    (np.maximum if reduce == 2 else np.minimum).at(y, i, terms)
    return np.where(lengths > 0, y, 0), sizes


def spmm(env, rng):
    a, transposed, x, y, i, j = spmm_operands(env, rng)
    reduce = int(rng.integers(4))
    alpha, beta = one_of(rng, [(1, 0), (1, 0), (2.5, 0), (-1, 1), (0.5, -2), (0, 0), (0, 1)])
    if beta == 0 and y.values.size:
        y.fill_bad()
    before = y.numbers()
    plan = make_plan(env, rng, a, x.cols, reduce, transposed)
    for turn in range(2):
        env.call_plan("sp_spmm_execute", plan, float(alpha), x, float(beta), y, out=[y])
        terms = a.floats()[:, None] * x.numbers()[j]
        want, sizes = reduced(y.rows, i, terms, reduce)
        want = alpha * want + (beta * before if beta else 0)
        n = np.bincount(i, minlength=y.rows)[:, None] + 4
        unit = (2.0 ** -24, 2.0 ** -53)[y.type == 1]
        slack = n * unit * (abs(alpha) * sizes + (abs(beta * before) if beta else 0)) + 1e-37
        near(y.numbers(), want, 0, "Y", slack + abs(want) * y.epsilon() + y.least())
        y.padding_untouched()
        if a.v is None or turn:
            return
        a.v = numbers(rng, a.v.size, a.dtype, "unit")
        env.call_plan("sp_spmm_plan_set_values", plan, a.v, 0)
        before = y.numbers()


def spmm_argument(env, rng):
    a, transposed, x, y, i, j = spmm_operands(env, rng, types=False)
    x.round_to(4)
    reduce = int(rng.integers(2, 4))
    plan = make_plan(env, rng, a, x.cols, reduce, transposed)
    argument = np.full((y.rows, y.cols), -7, np.int64)
    env.call_plan("sp_spmm_execute_argument", plan, x, y, argument, out=[y, argument])
    with np.errstate(all="ignore"):
        terms = (a.floats()[:, None].astype(a.dtype) * x.numbers()[j].astype(a.dtype)).astype(float)
    want, _ = reduced(y.rows, i, terms, reduce)
    near(y.numbers(), want, 0, "Y")
    first = np.full(want.shape, -1, np.int64)
    for e in range(a.i.size - 1, -1, -1):
        first[i[e]] = np.where(terms[e] == want[i[e]], e, first[i[e]])
    expect(np.array_equal(argument, first), f"argument {argument.ravel()[:9]}, {first.ravel()[:9]} are right")


def sddmm(env, rng):
    a, kind, width = matrix(rng), int(rng.integers(2)), int(rng.integers(0, 70))
    dtype = (np.float32, np.float64)[kind]
    x, y = dense_array(rng, a.rows, width, kind), dense_array(rng, a.cols, width, kind)
    values = np.full(a.i.size, 7, dtype)
    env.call("sp_sddmm", a, x, y, values, out=[values])
    terms = x.numbers()[a.i] * y.numbers()[a.j]
    slack = (width + 2) * np.finfo(dtype).eps * abs(terms).sum(1) + 1e-37
    near(values, terms.sum(1), 0, "values", slack)


def edge_softmax(env, rng):
    a = matrix(rng)
    v = numbers(rng, a.i.size, a.dtype, one_of(rng, ["signed", "small"])) * a.dtype(one_of(rng, [1, 100, 1e4]))
    logits, g = v.astype(float), numbers(rng, v.size, a.dtype, "signed")
    env.call("sp_edge_softmax", a, 1, v, out=[v])
    top = np.full(a.rows, -np.inf)
    np.maximum.at(top, a.i, logits)
    with np.errstate(under="ignore"):
        w = np.exp(logits - top[a.i])
    sums = np.bincount(a.i, w, a.rows)
    eps = np.finfo(a.dtype).eps
    near(v, w / sums[a.i], 0, "softmax", 40 * eps * (w / sums[a.i]) + 1e-37)
    before, s = g.astype(float), v.astype(float)
    env.call("sp_edge_softmax_backward", a, 1, v, g, out=[g])
    inner, size = (np.bincount(a.i, x, a.rows)[a.i] if v.size else s for x in (s * before, abs(s * before)))
    lengths = np.bincount(a.i, minlength=a.rows)[a.i]
    near(g, s * (before - inner), 0, "gradient", (lengths + 6) * eps * s * (abs(before) + size) + 1e-37)


# ---- MaxK

def kept_by(x, k):
    """The columns of the k largest of each row, ascending; of equals the lowest."""
    return np.sort(np.argsort(-x, axis=1, kind="stable")[:, :k], axis=1)


def maxk(env, rng):
    a, transposed, x, y, i, j = spmm_operands(env, rng, types=False)
    if x.cols == 0:
        return
    if rng.random() < 0.05:
        x = dense_array(rng, x.rows, 300, x.type)
        y = dense_array(rng, y.rows, 300, x.type)
    if rng.random() < 0.5:
        x.round_to(2)
    k, reduce = int(rng.integers(1, x.cols + 1)), int(rng.integers(2))
    kept = env.cbsr(x.rows, x.cols, k, x.type)
    env.call("sp_maxk", x, kept)
    columns, values = env.read_cbsr(kept)
    want = kept_by(x.numbers(), k)
    expect(np.array_equal(columns, want), f"columns {columns[:2]}, {want[:2]} are right")
    near(values, np.take_along_axis(x.numbers(), want, 1), 0)
    dense = np.zeros((x.rows, x.cols))
    np.put_along_axis(dense, want, values.astype(float), 1)
    expanded = dense_array(rng, x.rows, x.cols, x.type)
    env.call("sp_maxk_expand", kept, expanded, out=[expanded])
    near(expanded.numbers(), dense, 0, "expanded")
    expanded.padding_untouched()
    plan = make_plan(env, rng, a, x.cols, reduce, transposed)
    alpha, beta = one_of(rng, [(1, 0), (2, 0), (-1, 0.5)])
    before = y.numbers()
    env.call_plan("sp_maxk_spmm", plan, float(alpha), kept, float(beta), y, out=[y])
    result, sizes = reduced(y.rows, i, a.floats()[:, None] * dense[j], reduce)
    eps = 200 * y.epsilon()
    near(y.numbers(), alpha * result + beta * before, 0, "Y", eps * (abs(alpha) * sizes + abs(before)) + 1e-37)
    y.padding_untouched()
    back = make_plan(env, rng, a, x.cols, reduce, not transposed)
    gradient = dense_array(rng, y.rows, x.cols, x.type)
    env.call_plan("sp_maxk_spmm_backward", back, gradient, kept)
    full, sizes = reduced(x.rows, j, a.floats()[:, None] * gradient.numbers()[i], reduce)
    again, values = env.read_cbsr(kept)
    expect(np.array_equal(again, want), "the backward call changed the columns")
    near(values, np.take_along_axis(full, want, 1), 0, "gradient",
         eps * np.take_along_axis(sizes, want, 1) + 1e-37)
