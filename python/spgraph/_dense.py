"""Products of a sparse matrix with dense ones."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import scipy.sparse as ss

from . import _abi
from ._core import F4, F8, Context, Session, Unique, address, lib, real, whole
from ._matrix import Types, as_csr, choose, lend

REDUCTIONS = ("sum", "mean", "max", "min")
_TYPES = {F4: _abi.SP_DENSE_F32, F8: _abi.SP_DENSE_F64, np.dtype(np.float16): _abi.SP_DENSE_F16}


def _lines(x: np.ndarray) -> tuple[int, int] | None:
    """The layout and the distance of the rows (or of the columns) with which the library can take an array, if it can."""
    if x.dtype not in _TYPES or not x.flags.aligned or any(step < 0 or step % x.itemsize for step in x.strides):
        return None
    (rows, cols), (down, across) = x.shape[-2:], (step // x.itemsize for step in x.strides[-2:])
    if x.size == 0:  # its strides may be anything
        return _abi.SP_ROW_MAJOR, cols
    if (cols <= 1 or across == 1) and (rows <= 1 or down >= cols):
        return _abi.SP_ROW_MAJOR, max(down, cols) if rows > 1 else cols
    if (rows <= 1 or down == 1) and (cols <= 1 or across >= rows):
        return _abi.SP_COLUMN_MAJOR, max(across, rows) if cols > 1 else rows
    return None


def _lend_dense(x: np.ndarray) -> _abi.sp_dense:
    """The library's struct of an array of two dimensions, or of three: a batch."""
    lines = _lines(x)
    assert lines is not None
    batch, apart = (x.shape[0], x.strides[0] // x.itemsize) if x.ndim == 3 else (0, 0)
    return _abi.sp_dense(x.shape[-2], x.shape[-1], lines[1], address(x), _TYPES[x.dtype], _abi.SP_HOST, lines[0], batch,
                         apart)


class SpmmPlan(Unique):
    """Product of one sparse matrix with many dense ones: Y = alpha * A @ X + beta * Y.

    Parameters
    ----------
    a : sparse array or matrix of scipy
        float32 or float64; whole numbers and booleans are converted to float64. It must not change while the plan is
        used.
    width : int
        The expected number of columns of X. Other numbers work, less fast.
    reduce : {"sum", "mean", "max", "min"}
        How the rows of X that a row of A names, times its values, are combined. "mean" divides the sum by the number of
        entries. A row without entries gives 0.
    transpose : bool
        Multiply the transpose of A.

    Notes
    -----
    float32 matrices take X of float32 or float16, float64 matrices X of float64; other X are converted. Sums are
    float64 if X is float64, else float32.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> import spgraph
    >>> a = sp.csr_array([[0.0, 1.0], [2.0, 3.0]])
    >>> plan = spgraph.SpmmPlan(a, 2)
    >>> plan(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 3.,  4.],
           [11., 16.]])
    """

    def __init__(self, a: Any, width: int, *, reduce: str = "sum", transpose: bool = False) -> None:
        csr = as_csr(a, "a")
        self._compute = Types(csr).compute
        self._keep: list[Any] = []
        self._lent = lend(csr, self._compute, self._keep)
        self._rows, self._cols = csr.shape[::-1] if transpose else csr.shape
        options = _abi.sp_spmm_options(reduce=choose(REDUCTIONS, reduce, "reduce"), transpose=bool(transpose),
                                       deterministic=True)
        self._context = Context()
        self._lock = threading.Lock()
        self._plan = ctypes.c_void_p()
        with Session(context=self._context) as session:
            session.check(lib.sp_spmm_plan_create(session.handle, self._lent, whole(width, "width"), options,
                                                  ctypes.byref(self._plan)))

    def __call__(self, x: Any, out: np.ndarray | None = None, alpha: float = 1.0, beta: float = 0.0) -> np.ndarray:
        """Form the product.

        Parameters
        ----------
        x : array
            A matrix with as many rows as `a` has columns; a vector, which gives a vector; or three dimensions (batch,
            rows, columns), which give as many products. Arrays by rows or by columns are read where they are.
        out : ndarray, optional
            Where the result is written, of its type: rows one after another, or columns. It is read unless `beta` is 0.
        alpha, beta : float
            Factors of the product and of the previous content of `out`.

        Returns
        -------
        ndarray
            `out`, or a new array. float16 gives float16.
        """
        if ss.issparse(x):
            raise TypeError("x is a sparse matrix: matmul multiplies two of them, SpmmPlan takes a dense x")
        x = np.asarray(x)
        if x.dtype.kind not in "biuf":
            raise NotImplementedError(f"x of type {x.dtype} is not supported: real numbers are")
        if x.ndim not in (1, 2, 3):
            raise ValueError(f"x has {x.ndim} dimensions: 1 to 3 are possible")
        flat = x.ndim == 1
        columns = x[:, None] if flat else x
        if columns.shape[-2] != self._cols:
            raise ValueError(f"x has the shape {x.shape}: {self._cols} rows are needed, one for each column of a")
        half = self._compute == F4 and x.dtype == np.float16
        if not _lines(columns) or (columns.dtype != self._compute and not half):
            columns = np.ascontiguousarray(columns, np.float16 if half else self._compute)
        if out is None:
            if beta != 0:
                raise ValueError(f"beta is {beta}, which needs out")
            out = np.empty((*columns.shape[:-2], self._rows, columns.shape[-1]), columns.dtype)
            target = out
            out = out[:, 0] if flat else out
        else:
            if not isinstance(out, np.ndarray):
                raise TypeError(f"out is {type(out).__name__}: an array of numpy is expected")
            target = out[:, None] if flat and out.ndim == 1 else out
            shape = (*columns.shape[:-2], self._rows, columns.shape[-1])
            if target.ndim < 2 or not _lines(target) or not target.flags.writeable:
                raise ValueError("out must be a writable array of float32, float64 or float16, rows or columns one "
                                 "after another")
            if target.shape != shape:
                raise ValueError(f"out has the shape {out.shape}: the result has {shape}")
        alpha, beta = real(alpha, "alpha"), real(beta, "beta")
        if target.size == 0:
            return out
        with self._lock, Session(context=self._context) as session:
            session.check(lib.sp_spmm_execute(self._plan, alpha, _lend_dense(columns), beta,
                                              _lend_dense(target)))
        return out

    def __del__(self, free: Any = lib.sp_spmm_plan_free) -> None:
        if getattr(self, "_plan", None):
            free(self._plan)
