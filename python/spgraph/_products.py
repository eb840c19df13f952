"""Products of two sparse matrices."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from . import _abi
from ._core import F4, F8, Context, Session, Unique, lib, real, whole
from ._device import Home, home_of, refuse_device
from ._matrix import Types, as_csr, choose, largest, lend, take, to_host

SEMIRINGS = ("plus_times", "plus_pair", "min_plus", "max_times", "or_and")


def _longest_row(csr: Any) -> int:
    return int(np.diff(csr.indptr).max()) if csr.shape[0] else 0


class _Operands:
    """The operands of a product, checked and lent, and its options."""

    def __init__(self, a: Any, b: Any, semiring: str, mask: Any, complement: bool, transpose_a: bool,
                 transpose_b: bool) -> None:
        self.a, self.b = as_csr(a, "a"), as_csr(b, "b")
        self.types = Types(self.a, self.b)
        number = choose(SEMIRINGS, semiring, "semiring")
        self.semiring = semiring
        if semiring == "plus_pair" and self.types.whole:
            self.types.result = np.dtype(np.int64)
        if semiring == "or_and":
            self.types.result = np.dtype(bool)
        self.transposed = bool(transpose_a)
        self.keep: list[Any] = []
        pattern = semiring in ("plus_pair", "or_and")
        self.lent_a = lend(self.a, self.types.compute, self.keep, pattern)
        self.lent_b = lend(self.b, self.types.compute, self.keep, pattern)
        self.options = _abi.sp_spgemm_options(semiring=number, transpose_a=bool(transpose_a),
                                              transpose_b=bool(transpose_b), complement=bool(complement), to_host=True)
        if mask is not None:
            self.mask = lend(as_csr(mask, "mask"), self.types.compute, self.keep, pattern=True)
            self.options.mask = ctypes.pointer(self.mask)

    def require_exact(self, a_values: np.ndarray | None = None, b_values: np.ndarray | None = None) -> None:
        """Whole numbers are computed in float64: refuses operands whose sums may not fit."""
        if not self.types.whole or self.semiring in ("plus_pair", "or_and"):
            return
        x, y = largest(self.a), largest(self.b)
        self.types.require_exact(max(x, y))
        if self.semiring == "min_plus":
            self.types.require_exact(x + y)
        else:
            terms = self.a.shape[0] if self.transposed else _longest_row(self.a)
            self.types.require_exact(x * y * (terms if self.semiring == "plus_times" else 1))


def matmul(a: Any, b: Any, *, semiring: str = "plus_times", mask: Any = None, complement: bool = False,
           transpose_a: bool = False, transpose_b: bool = False, top_k: int | None = None,
           device: str | None = None) -> Any:
    """Multiply two sparse matrices.

    Parameters
    ----------
    a, b : sparse array or matrix of scipy, or sparse matrix of cupy, or sparse CSR tensor of torch
        float32 or float64, whole numbers or booleans (scipy). Matrices in compressed rows without duplicates are not
        copied. Those on a GPU are multiplied there, in the order of the stream that is current in cupy or torch.
    semiring : {"plus_times", "plus_pair", "min_plus", "max_times", "or_and"}
        How products are formed and combined. "plus_pair" counts the products of each entry and "or_and" says where
        there is one; both read no values. "min_plus" is the least sum, "max_times" the largest product.
    mask : as `a`, optional
        The result only has entries where the mask has one, of any value. With `complement`: where it has none.
    complement : bool
        Turns the mask round.
    transpose_a, transpose_b : bool
        Multiply the transpose of `a`, of `b`.
    top_k : int, optional
        Keep the `top_k` largest entries of each row, among equals those of the lowest columns. The whole product is
        never in memory.
    device : str, optional
        Where matrices of scipy are multiplied: "cpu" (the default), "cuda", "cuda:N" or "auto". The result is one of
        scipy with the same bits. A GPU needs a library built with ``CUDA=1``. Tensors and matrices of
        cupy are multiplied where they lie.

    Returns
    -------
    sparse array, matrix or tensor
        Of the class and format of `a` (cupy: compressed rows). Columns ascend. Matrices of scipy own the library's
        memory, which is not copied.

    Raises
    ------
    ValueError
        The shapes do not fit, or a matrix contradicts itself.
    NotImplementedError
        Complex and extended types. Whole numbers if a sum might exceed 2**53, above which float64 rounds.
    MemoryError
        There is no memory for the result.
    KeyboardInterrupt
        Ctrl-C ends long products.

    Notes
    -----
    Sums are float64 for all types, run in ascending order of columns, and are rounded once. So the bits depend on
    neither the number of threads nor the machine. As in scipy, the type is that of NumPy's promotion. Whole numbers are
    exact. ("plus_pair" of whole numbers gives int64, "or_and" gives booleans.) Unlike in scipy, entries that cancel to
    zero stay; `eliminate_zeros` drops them. The interpreter runs other threads meanwhile.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import spgraph
    >>> a = sp.csr_array([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]])
    >>> spgraph.matmul(a, a).toarray()
    array([[ 8.,  0.,  3.],
           [12.,  0.,  0.],
           [ 0.,  4.,  8.]])
    >>> spgraph.matmul(a, a, semiring="min_plus", mask=a).toarray()
    array([[0., 0., 4.],
           [0., 0., 0.],
           [0., 0., 0.]])
    """
    home = home_of(a, b, mask)
    if home is not None:
        refuse_device(device)
        return _matmul_at(home, a, b, choose(SEMIRINGS, semiring, "semiring"), mask, complement, transpose_a,
                          transpose_b, top_k)
    o = _Operands(a, b, semiring, mask, complement, transpose_a, transpose_b)
    o.require_exact()
    c = _abi.sp_csr()
    with Session(device) as session:
        if top_k is None:
            session.check(lib.sp_spgemm(session.handle, o.lent_a, o.lent_b, o.options, c, None))
        else:
            session.check(lib.sp_spgemm_top_k(session.handle, o.lent_a, o.lent_b, whole(top_k, "top_k"), o.options, c,
                                              None))
        return take(session, to_host(session, c), o.types, a)


def _matmul_at(home: Home, a: Any, b: Any, semiring: int, mask: Any, complement: bool, transpose_a: bool,
               transpose_b: bool, top_k: int | None) -> Any:
    """The product of matrices of torch or cupy."""
    options = _abi.sp_spgemm_options(semiring=semiring, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b),
                                     complement=bool(complement))
    pattern = SEMIRINGS[semiring] in ("plus_pair", "or_and")
    x, y = home.lend(a, "a", pattern), home.lend(b, "b", pattern)
    if mask is not None:
        options.mask = ctypes.pointer(home.lend(mask, "mask", pattern=True))
    if top_k is None:
        return home.run(lambda session, c: lib.sp_spgemm(session.handle, x, y, options, c, None))
    k = whole(top_k, "top_k")
    return home.run(lambda session, c: lib.sp_spgemm_top_k(session.handle, x, y, k, options, c, None))


class MatmulPlan(Unique):
    """Product of two matrices whose values change while their patterns stay the same.

    Parameters
    ----------
    a, b, semiring, mask, complement, transpose_a, transpose_b
        As for `matmul`. `a` and `b` must be in compressed rows, with ascending columns and without duplicates, so that
        the order of their values is known.

    Attributes
    ----------
    nnz : int
        Number of entries of the result.
    products : int
        Number of multiplications.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> import spgraph
    >>> a = sp.csr_array(np.eye(3))
    >>> plan = spgraph.MatmulPlan(a, a)
    >>> plan(np.array([1.0, 2.0, 3.0]), np.array([10.0, 10.0, 10.0])).diagonal()
    array([10., 20., 30.])
    """

    def __init__(self, a: Any, b: Any, *, semiring: str = "plus_times", mask: Any = None, complement: bool = False,
                 transpose_a: bool = False, transpose_b: bool = False) -> None:
        for name, matrix in (("a", a), ("b", b)):
            if getattr(matrix, "format", None) != "csr" or not matrix.has_canonical_format:
                raise ValueError(f"{name} is not in compressed rows with ascending columns and no duplicates: call "
                                 "tocsr() and sum_duplicates()")
        self._operands = o = _Operands(a, b, semiring, mask, complement, transpose_a, transpose_b)
        if o.types.whole and semiring not in ("plus_pair", "or_and"):
            raise NotImplementedError("plans are for float32 and float64 values")
        self._like = a[:0]
        self._pattern: Any = None
        self._context = Context()
        self._lock = threading.Lock()
        self._plan = ctypes.c_void_p()
        with Session(context=self._context) as session:
            session.check(lib.sp_spgemm_plan_create(session.handle, o.lent_a, o.lent_b, o.options,
                                                    ctypes.byref(self._plan)))
            info = ctypes.cast(lib.sp_spgemm_plan_info(self._plan), ctypes.POINTER(_abi.sp_spgemm_info)).contents
            self.nnz, self.products = info.nnz, info.products

    def __call__(self, a_values: Any = None, b_values: Any = None, out: Any = None, alpha: float = 1.0,
                 beta: float = 0.0) -> Any:
        """Form the product.

        Parameters
        ----------
        a_values, b_values : array, optional
            Values of `a` and `b` in the order of their entries. The matrices' own values by default.
        out : sparse array or matrix, optional
            An earlier result of the plan, or one with its entries: its values are replaced. They are read unless `beta`
            is 0.
        alpha, beta : float
            Factors of the product and of the previous values of `out`, for sums.

        Returns
        -------
        sparse array or matrix
            `out`, or a new one as of `matmul`.
        """
        o, keep = self._operands, []
        lent = []
        for name, struct, values in (("a_values", o.lent_a, a_values), ("b_values", o.lent_b, b_values)):
            copy = _abi.sp_csr.from_buffer_copy(struct)
            if values is not None and copy.values:
                given = np.asarray(values)
                if given.dtype.kind not in "biuf":
                    raise TypeError(f"{name} are of type {given.dtype}: real numbers are expected")
                array = np.ascontiguousarray(given, o.types.compute)
                if array.shape != (copy.nnz,):
                    raise ValueError(f"{name} has the shape {array.shape}: the matrix has {copy.nnz} entries")
                keep.append(array)
                copy.values = array.ctypes.data
            lent.append(copy)
        c = _abi.sp_csr() if out is None else self._lend_out(out, keep)
        with self._lock, Session(context=self._context) as session:
            session.check(lib.sp_spgemm_plan_execute(self._plan, real(alpha, "alpha"), lent[0], lent[1],
                                                     real(beta, "beta"), c))
            return take(session, c, o.types, self._like) if out is None else out

    def _lend_out(self, out: Any, keep: list[Any]) -> _abi.sp_csr:
        """A matrix whose values the plan replaces. Its entries must be those of the product, which the first call forms.
        """
        o = self._operands
        if getattr(out, "format", None) != "csr" or o.types.result not in (F4, F8) or out.dtype != o.types.result:
            raise ValueError("out must be a matrix in compressed rows of the type of the result, float32 or float64")
        if self._pattern is None:
            self._pattern = self()
        if (out.shape != self._pattern.shape or not np.array_equal(out.indptr, self._pattern.indptr) or
                not np.array_equal(out.indices, self._pattern.indices)):
            raise ValueError("out does not have the entries of the product: pass a result of the plan")
        if len(out.data) != self.nnz or not out.data.flags.c_contiguous or not out.data.flags.writeable:
            raise ValueError("the values of out must be writable, one after another")
        if any(array is not None and np.may_share_memory(out.data, array) for array in o.keep + keep):
            raise ValueError("out has the values of an operand")
        struct = lend(self._pattern, o.types.compute, keep)
        struct.values = out.data.ctypes.data
        return struct

    def __del__(self, free: Any = lib.sp_spgemm_plan_free) -> None:
        if getattr(self, "_plan", None):
            free(self._plan)
