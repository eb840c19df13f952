"""Sparse matrices of scipy, lent to the library without a copy, and its results as matrices of scipy."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import scipy.sparse as ss

from . import _abi
from ._core import F4, F8, I4, I8, Session, address, lib, own

_EXACT = float(2**53)  # whole numbers below this are exact in float64


def as_csr(matrix: Any, name: str) -> Any:
    """The matrix in sorted rows without duplicates: itself if it is so."""
    if not ss.issparse(matrix):
        advice = ", SpmmPlan multiplies dense ones" if isinstance(matrix, np.ndarray) else ""
        raise TypeError(f"{name} is {type(matrix).__name__}: a sparse matrix of scipy is expected{advice}")
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


class Types:
    """The types of a call: `result`, as scipy would have it, and `compute`, in which the library works."""

    def __init__(self, *matrices: Any) -> None:
        self.result = np.result_type(*(m.dtype for m in matrices)).newbyteorder("=")
        self.whole = self.result.kind in "biu"
        if not self.whole and self.result not in (F4, F8):
            raise NotImplementedError(f"values of type {self.result} are not supported: float32, float64, whole "
                                      "numbers and booleans are")
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


def lend(csr: Any, compute: np.dtype, keep: list[Any], pattern: bool = False) -> _abi.sp_csr:
    """The library's struct of a matrix. Arrays of the right types are lent, others converted; `keep` holds them."""
    nnz = int(csr.indptr[-1])
    offsets = np.ascontiguousarray(csr.indptr, I8)
    columns = np.ascontiguousarray(csr.indices[:nnz], I4)
    values = None if pattern else np.ascontiguousarray(csr.data[:nnz], compute)
    keep += [offsets, columns, values]
    return _abi.sp_csr(csr.shape[0], csr.shape[1], nnz, address(offsets), address(columns),
                       None if values is None else address(values),
                       _abi.SP_F32 if compute == F4 else _abi.SP_F64, _abi.SP_HOST)


def take(session: Session, c: _abi.sp_csr, types: Types, like: Any) -> Any:
    """A result of the library as a matrix of scipy in the format of `like`, which owns the library's memory."""
    context = session.context
    offsets = own(context, c.row_offsets, c.rows + 1, I8)
    columns = own(context, c.col_indices, c.nnz, I4)
    if c.values:
        values = types.restore(own(context, c.values, c.nnz, F4 if c.value_type == _abi.SP_F32 else F8))
    else:
        values = np.ones(c.nnz, types.result)
    return assemble((c.rows, c.cols), offsets, columns, values, types.wide, like)


class Target:
    """A matrix of the caller whose arrays a call fills: `struct`, in which nnz is the room for entries."""

    def __init__(self, out: Any, shape: tuple[int, int], types: Types) -> None:
        if getattr(out, "format", None) != "csr" or types.result not in (F4, F8) or out.dtype != types.result:
            raise ValueError(f"out must be a matrix in compressed rows of the type of the result, float32 or float64; "
                             f"the result has {types.result}")
        if out.shape != shape:
            raise ValueError(f"out has the shape {out.shape}: the result has {shape}")
        if out.indices.dtype != I4 or any(not part.flags.c_contiguous or not part.flags.writeable
                                          for part in (out.indptr, out.indices, out.data)):
            raise ValueError("the arrays of out must be writable, one number after another, and the columns int32")
        self.out = out
        self.offsets = out.indptr if out.indptr.dtype == I8 else np.empty(shape[0] + 1, I8)
        self.struct = _abi.sp_csr(*shape, min(len(out.indices), len(out.data)), address(self.offsets),
                                  address(out.indices), address(out.data),
                                  _abi.SP_F32 if types.result == F4 else _abi.SP_F64, _abi.SP_HOST)

    def take(self) -> Any:
        """The matrix after the call."""
        if self.offsets is not self.out.indptr:
            self.out.indptr[:] = self.offsets
        self.out.has_sorted_indices = self.out.has_canonical_format = True
        return self.out


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
             like: Any) -> Any:
    """A matrix from sorted rows, without the scans of scipy's constructor."""
    index = I8 if wide or len(columns) >= 2**31 else I4
    made = (ss.csr_array if isinstance(like, ss.sparray) else ss.csr_matrix)(shape, dtype=values.dtype)
    made.indptr = offsets.astype(index, copy=False)
    made.indices = columns.astype(index, copy=False)
    made.data = values
    made.has_sorted_indices = made.has_canonical_format = True
    return made if like.format == "csr" else made.asformat(like.format)


def choose(names: Sequence[str], value: str, what: str) -> int:
    """The number of a name among `names`."""
    try:
        return names.index(value)
    except ValueError:
        raise ValueError(f"{what} is {value!r}: {', '.join(names)} are possible") from None
