"""The nearest neighbours, by cosine, of each row of a scipy matrix: calls libsparse by ctypes, without a binding.

    LD_LIBRARY_PATH=/usr/local/lib python3 neighbours.py      compares with scipy and says how long both took

Needs numpy and scipy (Debian: python3-scipy). Cosines are formed in blocks of rows, so that they need not all fit.
"""
import ctypes
import time

import numpy
import scipy.sparse

SP_HOST = 0
lib = ctypes.CDLL("libsparse.so.0")
lib.sp_last_error.restype = ctypes.c_char_p


class Csr(ctypes.Structure):  # sp_csr
    _fields_ = [(name, ctypes.c_int64) for name in ("rows", "cols", "nnz")] + \
               [(name, ctypes.c_void_p) for name in ("row_offsets", "col_indices", "values")] + \
               [(name, ctypes.c_int) for name in ("value_type", "space")]


class SpgemmOptions(ctypes.Structure):  # sp_spgemm_options
    _fields_ = [("semiring", ctypes.c_int), ("transpose_a", ctypes.c_bool), ("transpose_b", ctypes.c_bool),
                ("mask", ctypes.POINTER(Csr)), ("complement", ctypes.c_bool), ("algorithm", ctypes.c_int),
                ("aia", ctypes.c_int), ("to_host", ctypes.c_bool)]


class Context:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        if lib.sp_context_create(None, ctypes.byref(self.handle)):
            raise RuntimeError(lib.sp_last_error(None).decode())

    def __del__(self):
        lib.sp_context_destroy(self.handle)

    def call(self, function, *arguments):
        if function(self.handle, *arguments):
            raise RuntimeError(lib.sp_last_error(self.handle).decode())


def lend(a):
    """A struct for the arrays of a sorted scipy matrix, without copying them (except offsets of 32 bits)."""
    offsets, columns = a.indptr.astype(numpy.int64, copy=False), a.indices.astype(numpy.int32, copy=False)
    lent = Csr(*a.shape, a.nnz, offsets.ctypes.data, columns.ctypes.data, a.data.ctypes.data,
               {"float32": 0, "float64": 1}[a.dtype.name], SP_HOST)
    lent.arrays = offsets, columns, a.data  # keeps the arrays alive as long as the struct
    return lent


def take(context, made):
    """Converts a matrix of the library, in either space, to one of scipy, and frees it."""
    host = Csr()
    context.call(lib.sp_csr_copy, ctypes.byref(made), SP_HOST, ctypes.byref(host))

    def copy(address, count, kind):
        return numpy.array((kind * count).from_address(address))

    parts = (copy(host.values, host.nnz, (ctypes.c_float, ctypes.c_double)[host.value_type]),
             copy(host.col_indices, host.nnz, ctypes.c_int32),
             copy(host.row_offsets, host.rows + 1, ctypes.c_int64))
    taken = scipy.sparse.csr_matrix(parts, shape=(host.rows, host.cols))
    for matrix in made, host:
        lib.sp_csr_free(context.handle, ctypes.byref(matrix))
    return taken


def unit_rows(x):
    norms = numpy.sqrt(numpy.asarray(x.multiply(x).sum(axis=1)).ravel())
    unit = scipy.sparse.csr_matrix(scipy.sparse.diags(1 / numpy.where(norms > 0, norms, 1)) @ x)
    unit.sort_indices()
    return unit


def nearest(context, x, k):
    """The k largest cosines of each row of x to the others, of X·Xᵀ of unit rows without its diagonal."""
    a, diagonal, largest = lend(unit_rows(x)), lend(scipy.sparse.identity(x.shape[0], format="csr")), Csr()
    options = SpgemmOptions(transpose_b=True, mask=ctypes.pointer(diagonal), complement=True)
    context.call(lib.sp_spgemm_top_k, ctypes.byref(a), ctypes.byref(a), ctypes.c_int64(k), ctypes.byref(options),
                 ctypes.byref(largest), None)
    return take(context, largest)


def main():
    x = scipy.sparse.random(3000, 1000, 0.02, "csr", random_state=1)
    began = time.perf_counter()
    found = nearest(Context(), x, 10)
    middle = time.perf_counter()
    cosines = (unit_rows(x) @ unit_rows(x).T).toarray()
    numpy.fill_diagonal(cosines, 0)
    best = numpy.sort(cosines, axis=1)[:, -10:]
    ended = time.perf_counter()
    same = numpy.allclose(numpy.sort(found.toarray(), axis=1)[:, -10:], best)
    print("as scipy" if same else "not as scipy", f"({middle - began:.2f} and {ended - middle:.2f} s)")
    return not same


if __name__ == "__main__":
    raise SystemExit(main())
