"""Products of two sparse matrices."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from . import _abi
from ._core import Unique, lib, real, whole
from ._device import home_of
from ._home import Home, extent, is_real
from ._matrix import choose

SEMIRINGS = ("plus_times", "plus_pair", "min_plus", "max_times", "or_and")


def _require_exact(home: Home, semiring: str, transposed: bool) -> None:
    """Whole numbers are computed in float64: refuses operands whose sums may not fit."""
    if not home.whole or semiring in ("plus_pair", "or_and"):
        return
    x, y = home.largest("a"), home.largest("b")
    home.require_exact(max(x, y))
    if semiring == "min_plus":
        home.require_exact(x + y)
    else:
        a = home.matrices["a"]
        terms = a.shape[0] if transposed else int(np.diff(a.indptr).max(initial=0))
        home.require_exact(x * y * (terms if semiring == "plus_times" else 1))


class _Operands:
    """The operands of a product, checked and lent, and its options."""

    def __init__(self, a: Any, b: Any, semiring: str, mask: Any, complement: bool, transpose_a: bool,
                 transpose_b: bool, device: str | None) -> None:
        number = choose(SEMIRINGS, semiring, "semiring")
        self.home = home = home_of({"a": a, "b": b}, {} if mask is None else {"mask": mask}, device)
        self.reads_values = semiring not in ("plus_pair", "or_and")
        _require_exact(home, semiring, transpose_a)
        if semiring == "plus_pair" and home.whole:
            home.become(np.int64)
        if semiring == "or_and":
            home.become(bool)
        self.a, self.b = (home.lend(name, not self.reads_values) for name in ("a", "b"))
        self.options = _abi.sp_spgemm_options(semiring=number, transpose_a=bool(transpose_a),
                                              transpose_b=bool(transpose_b), complement=bool(complement),
                                              to_host=home.space == _abi.SP_HOST)
        if mask is not None:
            self.options.mask = ctypes.pointer(home.lend("mask", pattern=True))


def matmul(a: Any, b: Any, *, semiring: str = "plus_times", mask: Any = None, complement: bool = False,
           transpose_a: bool = False, transpose_b: bool = False, top_k: int | None = None,
           device: str | None = None) -> Any:
    """Multiply two sparse matrices.

    Parameters
    ----------
    a, b : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
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
    o = _Operands(a, b, semiring, mask, complement, transpose_a, transpose_b, device)
    if top_k is None:
        return o.home.run(lambda session, c: lib.sp_spgemm(session.handle, o.a, o.b, o.options, c, None))
    k = whole(top_k, "top_k")
    return o.home.run(lambda session, c: lib.sp_spgemm_top_k(session.handle, o.a, o.b, k, o.options, c, None))


class Plan(Unique):
    """A plan of the library, with its context, which one thread at a time uses."""

    def __init__(self, home: Home) -> None:
        self._home, self._context = home, home.context()
        self._lock = threading.Lock()
        self._plan = ctypes.c_void_p()

    _free: Any = None  # the library's function

    def __del__(self) -> None:
        if getattr(self, "_plan", None):
            self._home.release(self._free, self._plan, self._context)


class MatmulPlan(Plan):
    """Product of two matrices whose values change while their patterns stay the same.

    Parameters
    ----------
    a, b, semiring, mask, complement, transpose_a, transpose_b, device
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

    _free = lib.sp_spgemm_plan_free

    def __init__(self, a: Any, b: Any, *, semiring: str = "plus_times", mask: Any = None, complement: bool = False,
                 transpose_a: bool = False, transpose_b: bool = False, device: str | None = None) -> None:
        for name, matrix in (("a", a), ("b", b)):
            if getattr(matrix, "format", "csr") != "csr" or not getattr(matrix, "has_canonical_format", True):
                raise ValueError(f"{name} is not in compressed rows with ascending columns and no duplicates: call "
                                 "tocsr() and sum_duplicates()")
        self._operands = o = _Operands(a, b, semiring, mask, complement, transpose_a, transpose_b, device)
        if o.home.whole and o.reads_values:
            raise NotImplementedError("plans are for float32 and float64 values")
        super().__init__(o.home)
        self._pattern: Any = None
        self._extents = [extent(o.home, array) for array in o.home.keep]
        with o.home.session(self._context) as session:
            session.check(lib.sp_spgemm_plan_create(session.handle, o.a, o.b, o.options, ctypes.byref(self._plan)))
            info = ctypes.cast(lib.sp_spgemm_plan_info(self._plan), ctypes.POINTER(_abi.sp_spgemm_info)).contents
            self.nnz, self.products = info.nnz, info.products

    def __call__(self, a_values: Any = None, b_values: Any = None, out: Any = None, alpha: float = 1.0,
                 beta: float = 0.0) -> Any:
        """Form the product.

        Parameters
        ----------
        a_values, b_values : array, optional
            Values of `a` and `b` in the order of their entries. The matrices' own values by default. Arrays of any
            library are possible that lie where the matrices do, see `SpmmPlan`.
        out : as `a`, optional
            An earlier result of the plan, or one with its entries: its values are replaced. They are read unless `beta`
            is 0.
        alpha, beta : float
            Factors of the product and of the previous values of `out`, for sums.

        Returns
        -------
        sparse array, matrix or tensor
            `out`, or a new one as of `matmul`.
        """
        home = self._home
        x = self._operand("a_values", self._operands.a, a_values)
        y = self._operand("b_values", self._operands.b, b_values)
        alpha, beta = real(alpha, "alpha"), real(beta, "beta")

        def execute(session: Any, c: _abi.sp_csr) -> int:
            return lib.sp_spgemm_plan_execute(self._plan, alpha, x[0], y[0], beta, c)

        if out is None:
            with self._lock:
                return home.run(execute, self._context)
        struct, values = self._lend_out(out, (x[1], y[1]))
        with self._lock, home.session(self._context) as session:
            session.check(execute(session, struct))
        home.has_written(values)
        return out

    def _operand(self, name: str, struct: _abi.sp_csr, values: Any) -> tuple[_abi.sp_csr, Any]:
        """An operand with other values, and these."""
        if values is None or not struct.values:
            return struct, None
        home, copy = self._home, _abi.sp_csr.from_buffer_copy(struct)
        given = home.array(values, name)
        if not is_real(home.type_of(given)):
            raise TypeError(f"{name} are of type {home.type_of(given)}: real numbers are expected")
        array = home.cast(given, home.compute)
        if tuple(array.shape) != (copy.nnz,):
            raise ValueError(f"{name} has the shape {tuple(array.shape)}: the matrix has {copy.nnz} entries")
        copy.values = home.address(array)
        return copy, array

    def _lend_out(self, out: Any, operands: tuple[Any, ...]) -> tuple[_abi.sp_csr, Any]:
        """A matrix whose values the plan replaces, and these. Its entries must be those of the product, which the first
        call forms.
        """
        home = self._home
        parts = home.open(out)
        if parts is None or home.result not in ("float32", "float64") or home.type_of(parts[2]) != home.result:
            raise ValueError("out must be a matrix in compressed rows of the type of the result, float32 or float64, "
                             "of the library of the operands")
        if self._pattern is None:
            made = self()
            found: Any = home.open(made)
            self._pattern = tuple(made.shape), found[:2], (home.cast(found[0], "int64"), home.cast(found[1], "int32"))
        shape, pattern, lent = self._pattern
        if tuple(out.shape) != shape or any(mine.shape != theirs.shape or not (mine == theirs).all()
                                            for mine, theirs in zip(parts[:2], pattern)):
            raise ValueError("out does not have the entries of the product: pass a result of the plan")
        values = parts[2]
        if len(values) != self.nnz or not (home.is_writable(values) and home.is_contiguous(values)):
            raise ValueError("the values of out must be writable, one after another")
        begin, end = extent(home, values)
        given = [extent(home, array) for array in operands if array is not None]
        if any(begin < other_end and other < end for other, other_end in (*self._extents, *given)):
            raise ValueError("out has the values of an operand")
        return _abi.sp_csr(*shape, self.nnz, *map(home.address, (*lent, values)), self._operands.a.value_type,
                           home.space), values
