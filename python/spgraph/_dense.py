"""Products of a sparse matrix with dense ones."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _abi
from ._core import lib, real, whole
from ._device import home_of, is_sparse
from ._home import Home, is_real, size
from ._matrix import choose
from ._products import Plan

REDUCTIONS = ("sum", "mean", "max", "min")
_TYPES = {"float32": _abi.SP_DENSE_F32, "float64": _abi.SP_DENSE_F64, "float16": _abi.SP_DENSE_F16,
          "bfloat16": _abi.SP_DENSE_BF16}
_HALF = ("float16", "bfloat16")


def _lend_dense(home: Home, x: Any) -> _abi.sp_dense | None:
    """The library's struct of an array of two dimensions, or of three: a batch. None if the library cannot read it."""
    steps, kind = home.steps(x), _TYPES.get(home.type_of(x))
    if kind is None or steps is None or min(steps) < 0:
        return None
    (rows, cols), (down, across) = x.shape[-2:], steps[-2:]
    layout = _abi.SP_ROW_MAJOR
    if size(x) == 0:  # its strides may be anything
        apart = cols
    elif (cols <= 1 or across == 1) and (rows <= 1 or down >= cols):
        apart = max(down, cols) if rows > 1 else cols
    elif (rows <= 1 or down == 1) and (cols <= 1 or across >= rows):
        layout, apart = _abi.SP_COLUMN_MAJOR, max(across, rows) if cols > 1 else rows
    else:
        return None
    batch = (x.shape[0], steps[0]) if x.ndim == 3 else (0, 0)
    return _abi.sp_dense(rows, cols, apart, home.address(x), kind, home.space, layout, *batch)


class SpmmPlan(Plan):
    """Product of one sparse matrix with many dense ones: Y = alpha * A @ X + beta * Y.

    Parameters
    ----------
    a : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
        float32 or float64; whole numbers and booleans (scipy) are converted to float64. It must not change while the
        plan is used.
    width : int
        The expected number of columns of X. Other numbers work, less fast.
    reduce : {"sum", "mean", "max", "min"}
        How the rows of X that a row of A names, times its values, are combined. "mean" divides the sum by the number of
        entries. A row without entries gives 0.
    transpose : bool
        Multiply the transpose of A.
    device : str, optional
        Where a matrix of scipy is multiplied: "cpu" (the default), "cuda", "cuda:N" or "auto". X and the result are in
        host memory. Tensors and matrices of cupy are multiplied where they lie.

    Notes
    -----
    float32 matrices take X of float32, float16 or (torch) bfloat16, float64 matrices X of float64; other X are
    converted. Sums are float64 if X is float64, else float32.

    X can be an array of any library. Beside a matrix of scipy, or a tensor on the CPU, it is read by NumPy's
    interfaces or DLPack (``__dlpack__``). Beside a matrix of cupy, or a tensor on a GPU, it must lie on that GPU, and
    is read by DLPack or the CUDA array interface (``__cuda_array_interface__``) in the order of its stream. The result
    is an array of numpy or cupy, or a tensor, as the matrix is; other libraries read it by the same interfaces. On a
    GPU this needs torch or cupy, because the result is in their memory. There are no gradients: `spgraph.torch.spmm`
    has them.

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

    _free = lib.sp_spmm_plan_free

    def __init__(self, a: Any, width: int, *, reduce: str = "sum", transpose: bool = False,
                 device: str | None = None) -> None:
        home = home_of({"a": a}, device=device)
        options = _abi.sp_spmm_options(reduce=choose(REDUCTIONS, reduce, "reduce"), transpose=bool(transpose),
                                       deterministic=True)
        self._rows, self._cols = tuple(a.shape)[::-1] if transpose else tuple(a.shape)
        self._lent = home.lend("a")
        super().__init__(home)
        with home.session(self._context) as session:
            session.check(lib.sp_spmm_plan_create(session.handle, self._lent, whole(width, "width"), options,
                                                  ctypes.byref(self._plan)))

    def __call__(self, x: Any, out: Any = None, alpha: float = 1.0, beta: float = 0.0) -> Any:
        """Form the product.

        Parameters
        ----------
        x : array
            A matrix with as many rows as `a` has columns; a vector, which gives a vector; or three dimensions (batch,
            rows, columns), which give as many products. Arrays by rows or by columns are read where they are.
        out : ndarray or tensor, optional
            Where the result is written, of its type: rows one after another, or columns. It is read unless `beta` is 0.
        alpha, beta : float
            Factors of the product and of the previous `out`.

        Returns
        -------
        ndarray or tensor
            `out`, or a new array of the type that X has, or is converted to.
        """
        home = self._home
        if is_sparse(x):
            raise TypeError("x is a sparse matrix: matmul multiplies two of them, SpmmPlan takes a dense x")
        x = home.array(x, "x")
        kind = home.type_of(x)
        if not is_real(kind):
            raise NotImplementedError(f"x of type {kind} is not supported: real numbers are")
        if x.ndim not in (1, 2, 3):
            raise ValueError(f"x has {x.ndim} dimensions: 1 to 3 are possible")
        flat = x.ndim == 1
        columns = x[:, None] if flat else x
        if columns.shape[-2] != self._cols:
            raise ValueError(f"x has the shape {tuple(x.shape)}: {self._cols} rows are needed, one for each column of "
                             "a")
        half = kind in _HALF and home.compute == "float32"
        lent = _lend_dense(home, columns) if half or kind == home.compute else None
        if lent is None:
            columns = home.cast(columns, kind if half else home.compute)
            lent = _lend_dense(home, columns)
        shape = (*columns.shape[:-2], self._rows, columns.shape[-1])
        if out is None:
            if beta != 0:
                raise ValueError(f"beta is {beta}, which needs out")
            target = home.empty(shape, columns.dtype)
            out = target[:, 0] if flat else target
        else:
            home.require_array(out, "out")
            target = out[:, None] if flat and out.ndim == 1 else out
        filled = _lend_dense(home, target) if target.ndim >= 2 and home.is_writable(out) else None
        if filled is None:
            raise ValueError("out must be a writable array of float32, float64 or float16, rows or columns one after "
                             "another")
        if tuple(target.shape) != shape:
            raise ValueError(f"out has the shape {tuple(out.shape)}: the result has {shape}")
        alpha, beta = real(alpha, "alpha"), real(beta, "beta")
        if size(target) == 0:
            return out
        with self._lock, home.session(self._context) as session:
            session.check(lib.sp_spmm_execute(self._plan, alpha, lent, beta, filled))
        home.has_written(out)
        return out
