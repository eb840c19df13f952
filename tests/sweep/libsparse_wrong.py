"""The cases of libsparse.py whose arguments are wrong: each must be refused with a sentence, and nothing written."""
import ctypes as C

import numpy as np

import libsparse_call as call
from libsparse_call import Csr, DenseArray, Matrix, STATUS, dense_array, expect, matrix, one_of, triples


def valid_calls(env, rng):
    """Calls that are right, as name, arguments, which of these may be NULL, and which are outputs."""
    n = int(rng.integers(2, 12))
    a = b = matrix(rng, size=(n, n), dtype=np.float32, pattern=False)
    while not a.i.size:
        a = matrix(rng, size=(n, n), dtype=np.float32, pattern=False)
    x, y = dense_array(rng, n, 5, 0), dense_array(rng, n, 5, 0)
    out, plan, spmm, order = Csr(), C.c_void_p(), C.c_void_p(), C.c_void_p()
    env.call("sp_spmm_plan_create", a, 5, None, spmm, out=[spmm], empty=True)
    env.plan("spmm", spmm)
    i = np.arange(n, dtype=np.int32)
    f, d = np.ones(a.i.size + 1, np.float32), np.ones(n)
    o = env.options()
    weights = f[:n].copy() if f.size >= n else None
    return [("sp_csr_from_coo", [triples(env, n, n, i, i, weights, np.float32), 0, False, out], (), [3]),
            ("sp_csr_transpose", [a, out], (), [1]), ("sp_csr_sort", [a, out], (), [1]),
            ("sp_csr_permute", [a, i, i, out], (), [3]),
            ("sp_csr_copy", [a, 0, out], (), [2]), ("sp_csr_check", [a], (), []),
            ("sp_csr_community_order", [a, order], (), [1]),
            ("sp_spgemm", [a, b, o, out, None], {2, 4}, [3]),
            ("sp_spgemm_top_k", [a, b, 2, o, out, None], {3, 5}, [4]),
            ("sp_spgemm_plan_create", [a, b, o, plan], {2}, [3]),
            ("sp_contract", [a, i, 0, n, None, out, None], {4, 6}, [5]),
            ("sp_triple_product", [a, b, o, out, None], {2, 4}, [3]),
            ("sp_spmm_plan_create", [a, 5, None, plan], {2}, [3]),
            ("sp_spmm_execute", [spmm, 1.0, x, 0.0, y], (), [4]),
            ("sp_spmm_plan_set_values", [spmm, f, 0], (), []), ("sp_sddmm", [a, x, y, f], (), [3]),
            ("sp_edge_softmax", [a, 1, f], (), [2]), ("sp_edge_softmax_backward", [a, 1, f, f.copy()], (), [3]),
            ("sp_csr_add", [1.0, a, 1.0, b, out], (), [4]), ("sp_csr_hadamard", [a, b, out], (), [2]),
            ("sp_csr_extract", [a, i, n, i, n, 0, out], {1, 3}, [6]), ("sp_csr_select", [a, 0, 0.0, out], (), [3]),
            ("sp_csr_top_k", [a, 2, out], (), [2]), ("sp_csr_reduce_rows", [a, 0, d, 0], (), [2]),
            ("sp_csr_degree_order", [a, i, 0], (), [1]), ("sp_csr_scale", [a, d, d, 0], {1, 2}, [0]),
            ("sp_csr_inflate", [a, 2.0], (), [0])]


def wrong_content(env, rng, n):
    """What the header says is looked at in arrays and numbers: indices, diagonals, specifications."""
    i, out = np.arange(n, dtype=np.int32), Csr()
    wrong = i.copy()
    wrong[rng.integers(n)] = one_of(rng, [-1, n, 2 ** 31 - 1])
    a = matrix(rng, size=(n, n))
    other = matrix(rng, size=(n, n), dtype=np.float64 if a.dtype == np.float32 else np.float32)
    name, *given = one_of(rng, [
        ("sp_csr_from_coo", triples(env, n, n, wrong, i, None, np.float32), 0, False, out),
        ("sp_csr_from_coo", triples(env, n, n, i.astype(np.int64), i + np.int64(2 ** 32), None, np.float32), 0, False,
         out),
        ("sp_csr_from_coo", triples(env, n, n + 1, i, i, None, np.float32), 0, True, out),
        ("sp_csr_extract", a, wrong, n, i, n, 0, out), ("sp_csr_extract", a, i, n, wrong, n, 0, out),
        ("sp_csr_select", a, int(rng.integers(4)), one_of(rng, [0.5, float("nan"), -1.25]), out),
        ("sp_csr_top_k", a, -1, out),
        ("sp_csr_hadamard", a, matrix(rng, size=(n, n + 1), dtype=a.dtype), out),
        ("sp_csr_add", 1.0, a, 1.0, matrix(rng, size=(n + 1, n), dtype=a.dtype), out),
        ("sp_spgemm", a, matrix(rng, size=(n + 1, n), dtype=a.dtype), None, out, None),
        ("sp_spgemm", a, other, None, out, None), ("sp_csr_add", 1.0, a, 1.0, other, out),
        ("sp_spgemm", a, a, env.options(mask=env.keep(matrix(rng, size=(n, n + 1)))), out, None),
        ("sp_contract", matrix(rng, size=(n, n + 1)), i, 0, n, None, out, None),
        ("sp_sddmm", a, dense_array(rng, n, 4, 0), dense_array(rng, n, 5, 0), np.ones(a.i.size, np.float32))])
    before, status = bytes(out), env.bare(name, *given)
    what = f"{name} of {[x for x in given if isinstance(x, (int, float, bytes))]}"
    expect(status in (1, 4), f"{what} gives {STATUS[status]}")
    expect(bytes(out) == before, f"{what} wrote to the output")
    expect(env.lib.sp_last_error(env.context), f"{what}: no sentence")


def arguments(env, rng):
    """A valid call of which one argument is spoilt: NULL, a wrong number or space, or an output that is an input."""
    name, given, nullable, outputs = one_of(rng, valid_calls(env, rng))
    if rng.random() < 0.3:
        return wrong_content(env, rng, given[0].rows if isinstance(given[0], Matrix) else 5)
    letters = call.CALLS[name][call.CALLS[name][0] == "c":]
    pointers = [at for at, letter in enumerate(letters) if letter == "p" and at not in nullable and
                not (at == 0 and name.startswith("sp_spmm_") and "plan_create" not in name)]
    matrices = [at for at, x in enumerate(given) if isinstance(x, (Matrix, DenseArray)) and at not in outputs]
    results = [at for at in outputs if isinstance(given[at], (Csr, DenseArray))]
    numbers = [at for at, letter in enumerate(letters) if letter in "il" and name != "sp_csr_top_k"]
    how = one_of(rng, ["null"] + ["alias"] * bool(results and matrices) + ["number"] * bool(numbers) +
                 ["space"] * bool(matrices))
    changed = list(given)
    if how == "null":
        at = one_of(rng, pointers)
        changed[at] = None
    elif how == "alias":
        at = one_of(rng, matrices)
        shared = given[at].struct()
        env.kept += [given[at]]
        changed[at] = changed[results[0]] = shared
    elif how == "number":
        at = one_of(rng, numbers)
        changed[at] = one_of(rng, [-1, 99]) if letters[at] == "i" else -3
    else:
        at = one_of(rng, matrices)
        changed[at] = given[at].struct()
        env.kept += [given[at]]
        changed[at].space = one_of(rng, [1, 7, -1])
    out = [changed[at] for at in outputs if changed[at] is not None and how != "alias"]
    watched = [env.bytes_of(x) for x in out if not isinstance(x, C.c_void_p)]
    what = f"{name} with {how} at argument {at} ({changed[at] if how == 'number' else ''})"
    status = env.bare(name, *changed)
    expect(status == 1 or how in ("space", "number") and status in (1, 7, 9), f"{what} gives {STATUS[status]}")
    expect(env.lib.sp_last_error(env.context), f"{what}: no sentence")
    expect([env.bytes_of(x) for x in out if not isinstance(x, C.c_void_p)] == watched, f"{what} wrote to an output")
