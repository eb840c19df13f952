"""Sparse matrices of scipy, lent to the library without a copy, and its results as matrices of scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Sequence

import numpy as np
import scipy.sparse as ss

from . import _abi, _core
from ._core import F4, F8, I4, I8, Context, Session, address, lib, own
from ._home import Home, as_numpy, lies_here, name_of

_EXACT = float(2**53)  # whole numbers below this are exact in float64


def as_csr(matrix: Any, name: str) -> Any:
    """The matrix in sorted rows without duplicates: itself if it is so."""
    if not ss.issparse(matrix):
        raise TypeError(f"{name} is {type(matrix).__name__}: a sparse matrix of scipy is expected")
    if matrix.ndim != 2:
        raise ValueError(f"{name} has {matrix.ndim} dimension: sparse matrices with 2 are expected")
    if max(matrix.shape) >= 2**31:
        raise OverflowError(f"{name} has the shape {matrix.shape}: dimensions below 2^31 are possible")
    csr = matrix.tocsr()
    rows, nnz = csr.shape[0], int(csr.indptr[-1])
    if (len(csr.indptr) != rows + 1 or csr.indptr[0] != 0 or nnz > min(len(csr.indices), len(csr.data)) or
            (csr.indptr[1:] < csr.indptr[:-1]).any()):
        raise ValueError(f"{name} contradicts itself: {len(csr.indptr)} row offsets, which must ascend from 0, up to "
                         f"{nnz} for {rows} rows and {len(csr.indices)} columns")
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is matrix else csr
        csr.sum_duplicates()
    check_range(csr, name)
    return csr


def check_range(csr: Any, name: str) -> None:
    """Refuses columns outside the matrix. Columns ascend, so those at the ends of rows tell."""
    full = csr.indptr[:-1] < csr.indptr[1:]
    if not full.any():
        return
    first, last = csr.indices[csr.indptr[:-1][full]], csr.indices[csr.indptr[1:][full] - 1]
    if first.min() < 0 or last.max() >= csr.shape[1]:
        raise ValueError(f"{name} has a column outside its shape {csr.shape}")


def require_supported(dtype: np.dtype) -> None:
    """Refuses values that would change: complex and extended ones."""
    if dtype.kind not in "biu" and dtype not in (F4, F8):
        raise NotImplementedError(f"values of type {dtype} are not supported: float32, float64, whole numbers and "
                                  "booleans are")


class Types:
    """The types of a call: `result`, as scipy would have it, and `compute`, in which the library works."""

    def __init__(self, *matrices: Any) -> None:
        self.result = np.result_type(*(m.dtype for m in matrices)).newbyteorder("=")
        self.whole = self.result.kind in "biu"
        require_supported(self.result)
        self.compute = F8 if self.whole else self.result
        self.wide = any(m.indptr.dtype.itemsize == 8 or m.indices.dtype.itemsize == 8 for m in matrices)

    def require_exact(self, bound: float) -> None:
        """Refuses whole numbers whose result might be rounded: the library computes with float64."""
        if self.whole and bound >= _EXACT:
            raise NotImplementedError(f"whole numbers up to {bound:.3g} may not be exact in float64, which holds those "
                                      "below 2^53: convert the matrices to float64 if rounding is acceptable")

    def restore(self, values: np.ndarray) -> np.ndarray:
        """The library's values in the type of the result; whole numbers wrap around as in scipy."""
        if self.result.kind == "b":
            return values != 0
        return values.astype(I8).astype(self.result, copy=False) if self.whole else values


def largest(matrix: Any) -> float:
    """The largest absolute value, 0 without entries."""
    data = matrix.data[: matrix.indptr[-1]]
    return max(abs(float(data.max())), abs(float(data.min()))) if len(data) else 0.0


class Scipy(Home):
    """Matrices of scipy. With a device the library moves them there for the call, and the result back."""

    xp = np
    arrays = "an array of numpy"
    space = _abi.SP_HOST
    has_spare_room = True

    def __init__(self, matrices: dict[str, Any], others: dict[str, Any], device: str | None) -> None:
        """The types of `others`, such as masks, do not count."""
        given = {**matrices, **others}
        for name, matrix in given.items():
            if not ss.issparse(matrix):
                advice = "; SpmmPlan multiplies dense ones" if isinstance(matrix, np.ndarray) else ""
                raise TypeError(f"{name} is {type(matrix).__name__}: a sparse matrix of scipy or cupy, or a sparse CSR "
                                f"tensor of torch, is expected{advice}")
        super().__init__({name: as_csr(matrix, name) for name, matrix in given.items()})
        self.form = form_of(next(iter(given.values())))
        self.types = Types(*(self.matrices[name] for name in matrices))
        self.device = device

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.types.whole

    @property
    def compute(self) -> str:  # type: ignore[override]
        return name_of(self.types.compute)

    @property
    def result(self) -> str:  # type: ignore[override]
        return name_of(self.types.result)

    def largest(self, name: str) -> float:
        return largest(self.matrices[name]) if self.types.whole else 0.0

    def require_exact(self, bound: float) -> None:
        self.types.require_exact(bound)

    def become_real(self) -> None:
        if self.types.whole:
            self.types.whole, self.types.result = False, self.types.compute

    def become(self, dtype: Any) -> None:
        self.types.result = np.dtype(dtype)

    def require_finite(self, name: str) -> None:
        matrix = self.matrices[name]
        finite = np.isfinite(matrix.data[: matrix.indptr[-1]])
        if not finite.all():
            entry = int(np.argmin(finite))
            row = int(np.searchsorted(matrix.indptr, entry, "right")) - 1
            raise ValueError(f"{name} has the value {matrix.data[entry]} in row {row}, column {matrix.indices[entry]}: "
                             "values must be finite")

    def parts(self, name: str) -> tuple[Any, Any, Any]:
        csr = self.matrices[name]
        nnz = int(csr.indptr[-1])
        return (np.ascontiguousarray(csr.indptr, I8), np.ascontiguousarray(csr.indices[:nnz], I4),
                csr.data[:nnz])

    def lend_parts(self, shape: Any, offsets: Any, columns: Any, values: Any, name: str,
                   pattern: bool = False) -> _abi.sp_csr:
        if pattern:
            values = np.empty(0, self.types.compute)  # which are not read
        else:
            require_supported(values.dtype.newbyteorder("="))
            values = np.ascontiguousarray(values, self.types.compute)
        return super().lend_parts(shape, offsets, columns, values, name, pattern)

    def open(self, matrix: Any) -> tuple[Any, Any, Any] | None:
        return (matrix.indptr, matrix.indices, matrix.data) if ss.issparse(matrix) and matrix.format == "csr" else None

    def context(self) -> Context:
        return Context(_core.device_name(self.device))

    def session(self, context: Context | None = None) -> Session:
        if self.device not in (None, "cpu"):
            _core.free_unused()
        return Session(self.device, context)

    def release(self, free: Callable[[Any], None], plan: Any, context: Context) -> None:
        if self.device in (None, "cpu"):
            free(plan)
        else:
            _core.unused.append((free, plan, context))

    def collect(self, session: Session, c: _abi.sp_csr) -> tuple[tuple[int, int], Any, Any, Any]:
        here = to_host(session, c)
        return (here.rows, here.cols), *collect(session, here, self.types)

    def assemble(self, shape: tuple[int, int], offsets: Any, columns: Any, values: Any) -> Any:
        return assemble(shape, offsets, columns, values, self.types.wide, self.form)

    def array(self, x: Any, name: str, move: bool = False) -> np.ndarray:
        if isinstance(x, np.ndarray) and x.dtype.isnative:
            return x
        if not lies_here(x):
            raise ValueError(f"{name} lies on a GPU, but the matrix does not: copy {name} to host memory, or make the "
                             "matrix one of torch or cupy on that GPU")
        return as_numpy(x)

    def require_array(self, x: Any, name: str) -> None:
        if not isinstance(x, np.ndarray):
            raise TypeError(f"{name} is {type(x).__name__}: {self.arrays} is expected")

    def steps(self, x: np.ndarray) -> tuple[int, ...] | None:
        return super().steps(x) if x.flags.aligned else None

    def address(self, array: np.ndarray) -> int:
        return address(array)

    def is_writable(self, array: np.ndarray) -> bool:
        return array.flags.writeable


def lend(csr: Any, compute: np.dtype, keep: list[Any]) -> _abi.sp_csr:
    """The library's struct of a matrix. Arrays of the right types are lent, others converted; `keep` holds them."""
    nnz = int(csr.indptr[-1])
    offsets = np.ascontiguousarray(csr.indptr, I8)
    columns = np.ascontiguousarray(csr.indices[:nnz], I4)
    values = np.ascontiguousarray(csr.data[:nnz], compute)
    keep += [offsets, columns, values]
    return _abi.sp_csr(csr.shape[0], csr.shape[1], nnz, address(offsets), address(columns), address(values),
                       _abi.SP_F32 if compute == F4 else _abi.SP_F64, _abi.SP_HOST)


def collect(session: Session, c: _abi.sp_csr, types: Types) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays of a result in host memory, which own the library's."""
    context = session.context
    offsets = own(context, c.row_offsets, c.rows + 1, I8)
    columns = own(context, c.col_indices, c.nnz, I4)
    if c.values:
        return offsets, columns, types.restore(own(context, c.values, c.nnz,
                                                   F4 if c.value_type == _abi.SP_F32 else F8))
    return offsets, columns, np.ones(c.nnz, types.result)


def take(session: Session, c: _abi.sp_csr, types: Types, like: Any) -> Any:
    """A result of the library as a matrix of scipy in the format of `like`, which owns the library's memory."""
    return assemble((c.rows, c.cols), *collect(session, c, types), types.wide, form_of(like))


def form_of(matrix: Any) -> tuple[type, str]:
    """The class in compressed rows, and the format, that a result like a matrix has."""
    return ss.csr_array if isinstance(matrix, ss.sparray) else ss.csr_matrix, matrix.format


def to_host(session: Session, c: _abi.sp_csr) -> _abi.sp_csr:
    """A result of the library in host memory: itself, or a copy of one on a GPU, which is freed."""
    if c.space == _abi.SP_HOST:
        return c
    here = _abi.sp_csr()
    try:
        session.check(lib.sp_csr_copy(session.handle, c, _abi.SP_HOST, here))
    finally:
        lib.sp_csr_free(session.handle, c)
    return here


def assemble(shape: tuple[int, int], offsets: np.ndarray, columns: np.ndarray, values: np.ndarray, wide: bool,
             form: tuple[type, str]) -> Any:
    """A matrix from sorted rows, without the scans of scipy's constructor."""
    index = I8 if wide or len(columns) >= 2**31 else I4
    made: Any = form[0](shape, dtype=values.dtype)
    made.indptr = offsets.astype(index, copy=False)
    made.indices = columns.astype(index, copy=False)
    made.data = values
    made.has_sorted_indices = made.has_canonical_format = True
    return made if form[1] == "csr" else made.asformat(form[1])


def choose(names: Sequence[str], value: str, what: str) -> int:
    """The number of a name among `names`; "" is none."""
    if value and value in names:
        return names.index(value)
    raise ValueError(f"{what} is {value!r}: {', '.join(filter(None, names))} are possible")
