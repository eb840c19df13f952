"""scipy as a peer of sparse-bench, which runs this script for each case (--peers scipy, BENCH_SCIPY=bench/scipy_peer.py).

usage: scipy_peer.py OPERATION TYPE CASE RESULT REPEAT LIMIT

  OPERATION  spgemm, spgemm-unsorted: A·B, its columns in order or as they come; contract: S·G·Sᵀ, S and its transpose
             made before; contract-relabelled: G's triples with labels for indices, made CSR; spmm: A·X; version
  TYPE       of values: f32, f64
  CASE       six numbers of 64 bits: rows of A, its columns, columns of B, groups or columns of X, entries of A, of B,
             whether B is A (then B is left out); a matrix is offsets and columns of 32 bits, and values; G is followed
             by labels of 32 bits, A by X
  RESULT     rows and entries in 64 bits, and the arrays of the matrix; Y alone
  prints     "name NAME" (version), "seconds S" a sample; "failed SENTENCE", with status 1

scipy multiplies on one thread. One call before the samples is not counted. A sample has the result made and released; of
spmm it is the mean of as many products as take some milliseconds."""
import sys
import time

SAMPLE_SECONDS = 5e-3  # as those of sparse-bench spmm


def samples(product, repeat, limit, batched):
    """Seconds of up to `repeat` samples that together stay within `limit`, and the result."""
    begin = time.perf_counter()
    result, taken = product(), []
    first = time.perf_counter() - begin
    count = max(1, min(500, int(SAMPLE_SECONDS / first))) if batched else 1
    while len(taken) < repeat and (not taken or sum(taken) * count < limit):
        begin = time.perf_counter()
        for _ in range(count):
            product()
        taken.append((time.perf_counter() - begin) / count)
    return taken, result


class Case:
    """The operands' file."""

    def __init__(self, path, values):
        self.file, self.values = open(path, "rb"), values
        self.rows, self.inner, self.cols, self.nnz, self.right_nnz, self.same = self.numbers(np.int64, 6).tolist()

    def numbers(self, kind, count):
        return np.fromfile(self.file, kind, count)

    def matrix(self, rows, cols, nnz):
        offsets, columns = self.numbers(np.int32, rows + 1), self.numbers(np.int32, nnz)
        return sparse.csr_array((self.numbers(self.values, nnz), columns, offsets), shape=(rows, cols))


def in_order(matrix):
    matrix.sort_indices()
    return matrix


def products(case, ordered):
    """A·B."""
    a = case.matrix(case.rows, case.inner, case.nnz)
    b = a if case.same else case.matrix(case.inner, case.cols, case.right_nnz)
    return (lambda: in_order(a @ b)) if ordered else (lambda: a @ b)


def quotient(case, relabelled):
    """S·G·Sᵀ, or what is the same, triples with labels in place of indices, of which equal ones are added."""
    nodes, groups = case.rows, case.cols
    graph, labels = case.matrix(nodes, nodes, case.nnz), case.numbers(np.int32, nodes)
    if relabelled:
        def made():
            triples = graph.tocoo(copy=False)
            places = labels[triples.row], labels[triples.col]
            return sparse.coo_array((triples.data, places), shape=(groups, groups)).tocsr()  # adds and sorts
        return made
    ones = np.ones(nodes, case.values)
    s = sparse.csr_array((ones, (labels, np.arange(nodes, dtype=np.int32))), shape=(groups, nodes))
    transposed = s.T.tocsr()
    return lambda: in_order(s @ graph @ transposed)


def dense_product(case):
    """A·X."""
    a = case.matrix(case.rows, case.inner, case.nnz)
    x = case.numbers(case.values, case.inner * case.cols).reshape(case.inner, case.cols)
    return lambda: a @ x


def write(result, path, values):
    with open(path, "wb") as file:
        if isinstance(result, np.ndarray):
            np.ascontiguousarray(result, values).tofile(file)
            return
        np.array([result.shape[0], result.nnz], np.int64).tofile(file)
        for array, kind in ((result.indptr, np.int32), (result.indices, np.int32), (result.data, values)):
            array.astype(kind, copy=False).tofile(file)


def main(operation, value_type, path, result_path, repeat, limit):
    if operation == "version":
        print(f"name scipy {scipy.__version__}\nseconds 0")
        return
    values = {"f32": np.float32, "f64": np.float64}[value_type]
    case = Case(path, values)
    makers = {"spgemm": lambda: products(case, True), "spgemm-unsorted": lambda: products(case, False),
              "contract": lambda: quotient(case, False), "contract-relabelled": lambda: quotient(case, True),
              "spmm": lambda: dense_product(case)}
    taken, result = samples(makers[operation](), int(repeat), float(limit), operation == "spmm")
    write(result, result_path, values)
    for seconds in taken:
        print(f"seconds {seconds:.9f}")


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    try:
        import numpy as np
        import scipy
        from scipy import sparse
        main(*sys.argv[1:])
    except ImportError as error:
        print(f"failed {error}: install scipy, or name a Python that has it by PYTHON")
        sys.exit(1)
    except MemoryError:
        print("failed there is not enough memory")
        sys.exit(1)
