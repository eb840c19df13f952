"""What libsparse.py stands on: the structs of sparse.h, random operands, plain references and comparisons."""
import ctypes as C

import numpy as np

SP = {np.float32: 0, np.float64: 1}
STATUS = ("OK ARGUMENT MATRIX NOT_FINITE OVERFLOW HOST_MEMORY DEVICE_MEMORY NO_DEVICE DEVICE UNSUPPORTED "
          "INTERRUPTED").split()
# Arguments by a letter: the context, a pointer, int64, int, double, size_t, bool.
KINDS = dict(c=C.c_void_p, p=C.c_void_p, l=C.c_int64, i=C.c_int, d=C.c_double, z=C.c_size_t, b=C.c_bool)
CALLS = dict(line.split() for line in """
sp_alloc clzp
sp_calloc clzp
sp_grow cllzp
sp_array_copy clzpipi
sp_csr_create cllliip
sp_csr_copy cpip
sp_csr_check cp
sp_csr_from_coo cpibp
sp_widen_offsets clppi
sp_csr_transpose cpp
sp_csr_sort cpp
sp_csr_permute cpppp
sp_csr_community_order cpp
sp_spgemm cppppp
sp_spgemm_top_k cpplppp
sp_spgemm_plan_create cpppp
sp_spgemm_plan_execute pdppdp
sp_spgemm_markov cpppppp
sp_csr_inflate cpd
sp_contract cppilppp
sp_triple_product cppppp
sp_dense_copy cpip
sp_spmm_plan_create cplpp
sp_spmm_plan_set_values ppi
sp_spmm_execute pdpdp
sp_spmm_execute_argument pppp
sp_sddmm cpppp
sp_edge_softmax cplp
sp_edge_softmax_backward cplpp
sp_cbsr_create clllip
sp_maxk cpp
sp_maxk_expand cpp
sp_maxk_spmm pdpdp
sp_maxk_spmm_backward ppp
sp_csr_add cdpdpp
sp_csr_hadamard cppp
sp_csr_scale cpppi
sp_csr_extract cpplplip
sp_csr_select cpidp
sp_csr_top_k cplp
sp_csr_reduce_rows cpipi
sp_csr_degree_order cppi
""".strip().splitlines())
RECORD = []  # what the library gave in this run of a case, to be compared with other runs


class Failure(Exception):
    """The library is wrong."""


class Refused(Exception):
    """The library refused, with all outputs as they were."""


def struct(name, fields):
    kinds = {"l": C.c_int64, "p": C.c_void_p, "i": C.c_int, "b": C.c_bool, "z": C.c_size_t, "d": C.c_double,
             "f": C.c_float, "w": C.c_int32}
    return type(name, (C.Structure,), {"_fields_": [
        (n, kinds[k] if len(k) == 1 else C.c_byte * int(k)) for k, names in fields for n in names.split()]})


Csr = struct("Csr", [("l", "rows cols nnz"), ("p", "row_offsets col_indices values"), ("i", "value_type space")])
Coo = struct("Coo", [("l", "rows cols count"), ("p", "row_indices col_indices values"),
                     ("i", "index_type value_type space")])
Dense = struct("Dense", [("l", "rows cols stride"), ("p", "values"), ("i", "type space layout"),
                         ("l", "batch batch_stride")])
Cbsr = struct("Cbsr", [("l", "rows cols k"), ("p", "values columns"), ("i", "type space")])
Info = struct("Info", [("l", "products product_nnz nnz dense_rows batches peak_bytes plan_bytes"),
                       ("d", "analysis aia symbolic numeric"), ("i", "groups"), (str(12 * 32 + 4), "group")])
ContractInfo = struct("ContractInfo", [("l", "entries nnz peak_bytes"), ("d", "group combine"), ("i", "groups"),
                                       (str(12 * 32 + 4), "group")])
Options = struct("Options", [("i", "semiring"), ("b", "transpose_a transpose_b"), ("p", "mask"), ("b", "complement"),
                             ("i", "algorithm aia"), ("b", "to_host")])
ContractOptions = struct("ContractOptions", [("i", "combine loops"), ("b", "half_loops")])
SpmmOptions = struct("SpmmOptions", [("i", "algorithm reduce"), ("b", "transpose deterministic"), ("z", "bytes")])
Epilogue = struct("Epilogue", [("d", "cutoff"), ("l", "select recover"), ("d", "recover_mass inflation"),
                               ("l", "dense_factor"), ("p", "order"), ("b", "fast"), ("l", "diagonal")])
MarkovRow = struct("MarkovRow", [("f", "chaos homogeneity kept_mass"), ("w", "expanded")])
Allocator = struct("Allocator", [("p", "allocate release user resize")])
ContextOptions = struct("ContextOptions", [("p", "device"), ("i", "threads"), ("z", "budget"),
                                           ("p", "allocator device_allocator interrupt")])


# ---- operands

class Matrix:
    """Entries in row order; v is None for a pattern."""
    def __init__(self, rows, cols, i, j, v, dtype):
        order = np.lexsort((j, i))
        self.rows, self.cols, self.dtype = int(rows), int(cols), dtype
        self.i, self.j = np.asarray(i, np.int64)[order], np.asarray(j, np.int64)[order]
        self.v = None if v is None else np.ascontiguousarray(np.asarray(v, dtype)[order])
        self.offsets = self.columns = self.sizes = None

    def floats(self):
        return np.ones(self.i.size) if self.v is None else self.v.astype(float)

    def keys(self):
        return self.i * max(self.cols, 1) + self.j

    def part(self, keep):
        return Matrix(self.rows, self.cols, self.i[keep], self.j[keep], None if self.v is None else self.v[keep],
                      self.dtype)

    def transposed(self):
        return Matrix(self.cols, self.rows, self.j, self.i, self.v, self.dtype)

    def masked(self, mask, complement):
        return self.part(np.isin(self.keys(), mask.keys()) != complement)

    def top(self, k):
        """The k largest of each row, of equals the lowest columns, NaN before all."""
        v = self.floats()
        order = np.lexsort((self.j, -np.where(np.isnan(v), 0, v), ~np.isnan(v), self.i))
        rank = np.arange(v.size) - np.searchsorted(self.i, self.i)
        keep = np.zeros(v.size, bool)
        keep[order[rank < k]] = True
        return self.part(keep)

    def struct(self):
        if self.offsets is None:
            self.offsets = np.searchsorted(self.i, np.arange(self.rows + 1)).astype(np.int64)
            self.columns = np.append(self.j, 0).astype(np.int32)
        values = None if self.v is None else self.v.ctypes.data
        return Csr(self.rows, self.cols, self.i.size, self.offsets.ctypes.data, self.columns.ctypes.data, values,
                   SP[self.dtype], 0)


class DenseArray:
    """A dense matrix whose rows may be longer than their columns; what lies between is watched."""
    def __init__(self, x, stride, kind):
        self.rows, self.cols, self.stride, self.type = *x.shape, stride, kind
        self.values = np.full((self.rows, stride), 77, (np.float32, np.float64, np.float16, np.uint16)[kind])
        self.put(x)

    def put(self, x):
        if self.type == 3:  # bfloat16: the upper half of a float, which these few bits fit exactly
            x = (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        self.values[:, :self.cols] = x

    def numbers(self):
        x = self.values[:, :self.cols]
        return ((x.astype(np.uint32) << 16).view(np.float32) if self.type == 3 else x).astype(float)

    def fill_bad(self):
        self.put(np.full((self.rows, self.cols), np.nan))

    def round_to(self, n):
        self.put(np.round(self.numbers() * n) / n)

    def epsilon(self):
        return (2.0 ** -24, 2.0 ** -53, 2.0 ** -11, 2.0 ** -8)[self.type] * 1.01

    def least(self):
        return (0, 0, 6e-8, 0)[self.type]

    def padding_untouched(self):
        expect((self.values[:, self.cols:] == 77).all(), "wrote between the rows")

    def struct(self):
        return Dense(self.rows, self.cols, self.stride, self.values.ctypes.data, self.type, 0)


def triples(env, rows, cols, i, j, v, dtype):
    """The struct of a list of triples; its indices are int32 or int64, as i and j are."""
    return Coo(rows, cols, i.size, env.keep(i), env.keep(j), None if v is None else env.keep(v),
               int(i.dtype == np.int64), SP[dtype], 0)


def one_of(rng, values):
    return values[int(rng.integers(len(values)))]


def numbers(rng, count, dtype, kind="any", special=False):
    if kind == "any":
        kind = one_of(rng, ["small", "signed", "unit", "integers", "denormal", "wide"])
    v = {"small": lambda: rng.integers(-3, 4, count), "signed": lambda: rng.normal(size=count),
         "unit": lambda: 1 - rng.random(count), "eighths": lambda: rng.integers(1, 9, count) / 8,
         "integers": lambda: rng.choice([2.0 ** 24, 2.0 ** 31, 2.0 ** 53], count) * rng.choice([-1, 1], count)
         + rng.integers(-3, 4, count), "denormal": lambda: rng.normal(size=count) * np.finfo(dtype).tiny / 16,
         "wide": lambda: rng.normal(size=count) * 10.0 ** rng.integers(-30, 30, count)}[kind]().astype(dtype)
    if special and count and rng.random() < 0.4:
        v[rng.integers(0, count, 1 + count // 4)] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], 1 + count // 4)
    return v


def shape(rng, square=False):
    kind = rng.integers(10)
    n, m = (int(x) for x in rng.integers(1, (4, 12, 60)[rng.integers(3)], 2))
    if kind < 5:
        rows, cols = [(0, 0), (0, m), (n, 0), (1, m), (n, 1)][kind] if rng.random() < 0.5 else (n, m)
    else:
        rows, cols = (n, m) if kind < 8 else (int(rng.integers(1, 3000)), int(rng.integers(1, (5000, 90000)[kind - 8])))
    return (rows, min(rows, 3000)) if square else (rows, cols)


def matrix(rng, square=False, size=None, dtype=None, pattern=None, values="any", special=False, positive=False):
    rows, cols = size or shape(rng, square)
    rows = cols if square else rows
    dtype = dtype or one_of(rng, [np.float32, np.float64])
    most = min(rows * cols, int(one_of(rng, [0, 5, 60, 400, 2500, 6000])))
    keys = np.arange(0)
    if most:
        keys = rng.integers(0, rows * cols, most) if rows * cols > 4 * most else rng.permutation(rows * cols)[:most]
        if rng.random() < 0.2:  # a full column, a full row
            keys = np.concatenate([keys, np.arange(rows) * cols + rng.integers(cols)])
        if rng.random() < 0.2 and cols < 5000:
            keys = np.concatenate([keys, np.arange(cols) + cols * rng.integers(rows)])
        if rng.random() < 0.1 and rows * cols < 4000:
            keys = np.arange(rows * cols)
    keys = np.unique(keys)
    v = None
    if not (rng.random() < 0.2 if pattern is None else pattern):
        v = numbers(rng, keys.size, dtype, values, special)
        v = abs(v) if positive else v
    return Matrix(rows, cols, keys // max(cols, 1), keys % max(cols, 1), v, dtype)


def dense_array(rng, rows, cols, kind):
    x = np.round(rng.normal(size=(rows, cols)) * 16) / 16 if kind == 3 else rng.normal(size=(rows, cols))
    x = np.clip(x, -3.9, 3.9)
    if kind == 3:  # at most 8 significant bits, so that the upper half of the float is all of it
        x = (x.astype(np.float32).view(np.uint32) & 0xffff0000).view(np.float32)
    return DenseArray(x, cols + int(one_of(rng, [0, 0, 1, 5, 32])), kind)


# ---- references

def gather_products(a, b, semiring="plus_times"):
    """All products of A·B in the order in which sums run: rows, columns, values and their number."""
    start = np.searchsorted(b.i, np.arange(b.rows + 1))
    lengths = start[a.j + 1] - start[a.j] if a.j.size else a.j
    of_a = np.repeat(np.arange(a.j.size), lengths)
    of_b = np.arange(of_a.size) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(start[a.j], lengths)
    p, q = a.floats()[of_a], b.floats()[of_b]
    with np.errstate(all="ignore"):
        return a.i[of_a], b.j[of_b], p + q if semiring == "min_plus" else p * q, of_a.size


def combine(rows, cols, i, j, v, rule, dtype, halve_diagonal=False):
    """Entries that fall together, in f64 and in the order given, rounded once."""
    keys, first, group = np.unique(np.asarray(i, np.int64) * max(cols, 1) + j, return_index=True, return_inverse=True)
    result, sizes, number = np.zeros(keys.size), np.zeros(keys.size), np.bincount(group, minlength=keys.size)
    with np.errstate(all="ignore"):
        np.add.at(sizes, group, abs(v))
        if rule in ("sum", "plus_times", "mean"):
            np.add.at(result, group, v)
            result = result / number if rule == "mean" else result
        elif rule in ("max", "max_times", "min", "min_plus"):
            result[:] = v[first]
            (np.maximum if "max" in rule else np.minimum).at(result, group, v)
        else:
            result = v[first] if rule == "first" else number.astype(float)
        i, j = keys // max(cols, 1), keys % max(cols, 1)
        if halve_diagonal:
            result = np.where(i == j, result / 2, result)
        made = Matrix(rows, cols, i, j, None if rule == "or_and" else result.astype(dtype), dtype)
    made.sizes = sizes
    return made


def product_options(env, rng):
    """Operands and options of a product, the right result, and a way to give the operands new values."""
    m, k = shape(rng)
    n = min(shape(rng)[1], 40000)
    dtype, values = one_of(rng, [np.float32, np.float64]), one_of(rng, ["any", "small", "signed"])
    a, b = (matrix(rng, size=s, dtype=dtype, values=values) for s in ((m, k), (k, n)))
    code = int(one_of(rng, [0, 0, 1, 2, 3, 4]))
    name = "plus_times plus_pair min_plus max_times or_and".split()[code]
    options = env.options(semiring=code, transpose_a=rng.random() < 0.25, transpose_b=rng.random() < 0.25,
                          algorithm=int(rng.integers(3)), to_host=rng.random() < 0.2)
    mask = matrix(rng, size=(m, n)) if rng.random() < 0.35 else None
    if mask is not None:
        options.mask, options.complement = env.keep(mask), rng.random() < 0.5
    stored = [x.transposed() if t else x for x, t in ((a, options.transpose_a), (b, options.transpose_b))]

    def wanted():
        x, y = (s.transposed() if t else s for s, t in zip(stored, (options.transpose_a, options.transpose_b)))
        i, j, p, count = gather_products(x, y, name)
        want = combine(m, n, i, j, p, name, dtype)
        return (want.masked(mask, options.complement) if mask else want), count

    def again(turn):
        for s in stored:
            if s.v is not None:
                s.v = numbers(rng, s.v.size, dtype)
        return wanted()[0]
    want, count = wanted()
    return *stored, options, want, count, again


def expect(true, message):
    if not true:
        raise Failure(message)


def near(got, want, relative, what="values", slack=0):
    """got is want, but for a share of it and an absolute slack; NaN is NaN."""
    got, want = np.asarray(got), np.asarray(want, float)
    RECORD.append(got.tobytes())
    expect(got.shape == want.shape, f"{what}: shape {got.shape}, {want.shape} is right")
    with np.errstate(all="ignore"):
        good = (got == want) | (np.isnan(got) & np.isnan(want)) | \
            (abs(got.astype(float) - want) <= relative * abs(want) + slack)
    if not good.all():
        at = tuple(int(x[0]) for x in np.nonzero(~good))
        raise Failure(f"{what}: at {at} of {got.shape} {got[at]!r}, {want[at]!r} is right; {(~good).sum()} differ")


def compare(got, want, slack=0):
    shapes = (got.rows, got.cols), (want.rows, want.cols)
    expect(shapes[0] == shapes[1], f"shape {shapes[0]}, {shapes[1]} is right")
    expect(got.dtype == want.dtype, f"type {got.dtype}, {want.dtype} is right")
    expect((got.v is None) == (want.v is None), "values where a pattern is right, or the reverse")
    if not np.array_equal(got.keys(), want.keys()):
        more, less = np.setdiff1d(got.keys(), want.keys()), np.setdiff1d(want.keys(), got.keys())
        name = lambda keys: [(int(k) // got.cols, int(k) % got.cols) for k in keys[:3]]
        raise Failure(f"{got.i.size} entries, {want.i.size} are right: too many {name(more)}, missing {name(less)}")
    if got.v is not None:
        unit = np.finfo(got.dtype).eps
        near(got.v, want.v, slack * unit, "values", slack * (4e-16 * want.sizes + 1e-45) if slack else 0)


def take(env, made, free=True):
    """A matrix of the library's, after a look at every promise of the struct."""
    rows, cols, nnz = made.rows, made.cols, made.nnz
    expect(made.space == 0 and made.value_type in (0, 1), f"space {made.space}, type {made.value_type}")
    offsets, columns = env.read(made.row_offsets, rows + 1, np.int64), env.read(made.col_indices, nnz, np.int32)
    expect(offsets[0] == 0 and offsets[-1] == nnz and (np.diff(offsets) >= 0).all(), "offsets do not ascend to nnz")
    rows_of = np.repeat(np.arange(rows), np.diff(offsets))
    expect(((columns >= 0) & (columns < cols)).all(), "a column out of range")
    expect(((np.diff(columns) > 0) | (np.diff(rows_of) > 0)).all(), "columns do not ascend strictly")
    dtype = (np.float32, np.float64)[made.value_type]
    values = env.read(made.values, nnz, dtype) if made.values else None
    RECORD.extend([offsets.tobytes(), columns.tobytes(), b"" if values is None else values.tobytes()])
    if free:
        env.free(made)
    return Matrix(rows, cols, rows_of, columns, values, dtype)
