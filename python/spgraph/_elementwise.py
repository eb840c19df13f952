"""Operations between products."""

from __future__ import annotations

from typing import Any

from . import _abi
from ._core import Session, lib, real, whole
from ._matrix import Target, Types, as_csr, largest, lend, take


def _unary(a: Any, call: Any) -> Any:
    """Lends `a`, and takes what call(session, a, result) makes of it."""
    csr = as_csr(a, "a")
    types = Types(csr)
    types.require_exact(largest(csr) if types.whole else 0)
    keep: list[Any] = []
    lent, c = lend(csr, types.compute, keep), _abi.sp_csr()
    with Session() as session:
        session.check(call(session.handle, lent, c))
        return take(session, c, types, a)


def transpose(a: Any, out: Any = None) -> Any:
    """Transpose a sparse matrix, on all processors.

    Parameters
    ----------
    a : sparse array or matrix of scipy
    out : sparse array or matrix, optional
        A matrix in compressed rows whose arrays take the result: of its shape, number of entries and type, float32 or
        float64, with int32 columns. What it holds is not read.

    Returns
    -------
    sparse array or matrix
        `out`, or a new one of the class and format of `a`. Columns ascend.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import spgraph
    >>> a = sp.csr_array([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0]])
    >>> spgraph.transpose(a).toarray()
    array([[0., 0.],
           [1., 0.],
           [2., 3.]])
    """
    if out is None:
        return _unary(a, lib.sp_csr_transpose)
    csr = as_csr(a, "a")
    types = Types(csr)
    keep: list[Any] = []
    lent, target = lend(csr, types.compute, keep), Target(out, csr.shape[::-1], types)
    with Session() as session:
        session.check(lib.sp_csr_transpose_into(session.handle, lent, target.struct))
    return target.take()


def add(a: Any, b: Any, alpha: float = 1.0, beta: float = 1.0) -> Any:
    """Add two sparse matrices: alpha * a + beta * b.

    Parameters
    ----------
    a, b : sparse array or matrix of scipy
        Of the same shape.
    alpha, beta : float
        Factors. Whole numbers stay whole only if both factors are; otherwise the result is float64.

    Returns
    -------
    sparse array or matrix
        Of the class and format of `a`, with an entry wherever `a` or `b` has one. Unlike in scipy, entries that cancel
        to zero stay; `eliminate_zeros` drops them.
    """
    x, y, alpha, beta = as_csr(a, "a"), as_csr(b, "b"), real(alpha, "alpha"), real(beta, "beta")
    types = Types(x, y)
    if types.whole and alpha.is_integer() and beta.is_integer():
        types.require_exact(max(largest(x), largest(y), abs(alpha) * largest(x) + abs(beta) * largest(y)))
    elif types.whole:
        types.whole, types.result = False, types.compute
    keep: list[Any] = []
    lent_a, lent_b, c = lend(x, types.compute, keep), lend(y, types.compute, keep), _abi.sp_csr()
    with Session() as session:
        session.check(lib.sp_csr_add(session.handle, alpha, lent_a, beta, lent_b, c))
        return take(session, c, types, a)


def hadamard(a: Any, b: Any) -> Any:
    """Multiply two sparse matrices entry by entry.

    Parameters
    ----------
    a, b : sparse array or matrix of scipy
        Of the same shape.

    Returns
    -------
    sparse array or matrix
        Of the class and format of `a`, with an entry where both have one.
    """
    x, y = as_csr(a, "a"), as_csr(b, "b")
    types = Types(x, y)
    if types.whole:
        types.require_exact(max(largest(x), largest(y), largest(x) * largest(y)))
    keep: list[Any] = []
    lent_a, lent_b, c = lend(x, types.compute, keep), lend(y, types.compute, keep), _abi.sp_csr()
    with Session() as session:
        session.check(lib.sp_csr_hadamard(session.handle, lent_a, lent_b, c))
        return take(session, c, types, a)


def triu(a: Any, k: int = 0) -> Any:
    """Select the upper triangle of a sparse matrix.

    Parameters
    ----------
    a : sparse array or matrix of scipy
    k : int
        The lowest diagonal that stays: 0 the main one, 1 the one above it.

    Returns
    -------
    sparse array or matrix
        Of the class and format of `a`.
    """
    bound = float(whole(k, "k"))
    return _unary(a, lambda handle, x, c: lib.sp_csr_select(handle, x, _abi.SP_SELECT_UPPER, bound, c))


def tril(a: Any, k: int = 0) -> Any:
    """Select the lower triangle of a sparse matrix.

    Parameters
    ----------
    a : sparse array or matrix of scipy
    k : int
        The highest diagonal that stays: 0 the main one, -1 the one below it.

    Returns
    -------
    sparse array or matrix
        Of the class and format of `a`.
    """
    bound = float(whole(k, "k"))
    return _unary(a, lambda handle, x, c: lib.sp_csr_select(handle, x, _abi.SP_SELECT_LOWER, bound, c))


def top_k(a: Any, k: int) -> Any:
    """Select the k largest entries of each row.

    Parameters
    ----------
    a : sparse array or matrix of scipy
    k : int
        Rows with at most `k` entries stay whole. Among equals the lowest columns stay.

    Returns
    -------
    sparse array or matrix
        Of the class and format of `a`.
    """
    count = whole(k, "k")
    return _unary(a, lambda handle, x, c: lib.sp_csr_top_k(handle, x, count, c))
