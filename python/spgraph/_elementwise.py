"""Operations between products. Each takes matrices of scipy or cupy, or sparse CSR tensors of torch, where they lie."""

from __future__ import annotations

from typing import Any

from . import _abi
from ._core import lib, real, whole
from ._device import home_of
from ._home import Target


def _unary(a: Any, call: Any) -> Any:
    """Lends `a`, and takes what call(context, a, result) makes of it."""
    home = home_of({"a": a})
    home.require_exact(home.largest("a"))
    lent = home.lend("a")
    return home.run(lambda session, c: call(session.handle, lent, c))


def transpose(a: Any, out: Any = None) -> Any:
    """Transpose a sparse matrix, on all processors.

    Parameters
    ----------
    a : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
    out : as `a`, optional
        A matrix in compressed rows whose arrays take the result: of its shape, number of entries and type, float32 or
        float64. Columns that are not int32 are converted. What it holds is not read.

    Returns
    -------
    sparse array, matrix or tensor
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
    home = home_of({"a": a})
    target = Target(home, out, tuple(a.shape)[::-1])
    lent = home.lend("a")
    with home.session() as session:
        session.check(lib.sp_csr_transpose_into(session.handle, lent, target.struct))
    return target.take()


def add(a: Any, b: Any, alpha: float = 1.0, beta: float = 1.0) -> Any:
    """Add two sparse matrices: alpha * a + beta * b.

    Parameters
    ----------
    a, b : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
        Of the same shape.
    alpha, beta : float
        Factors. Whole numbers stay whole only if both factors are; otherwise the result is float64.

    Returns
    -------
    sparse array, matrix or tensor
        Of the class and format of `a`, with an entry wherever `a` or `b` has one. Unlike in scipy, entries that cancel
        to zero stay; `eliminate_zeros` drops them.
    """
    alpha, beta = real(alpha, "alpha"), real(beta, "beta")
    home = home_of({"a": a, "b": b})
    if alpha.is_integer() and beta.is_integer():
        most = home.largest("a"), home.largest("b")
        home.require_exact(max(*most, abs(alpha) * most[0] + abs(beta) * most[1]))
    else:
        home.become_real()
    x, y = home.lend("a"), home.lend("b")
    return home.run(lambda session, c: lib.sp_csr_add(session.handle, alpha, x, beta, y, c))


def hadamard(a: Any, b: Any) -> Any:
    """Multiply two sparse matrices entry by entry.

    Parameters
    ----------
    a, b : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
        Of the same shape.

    Returns
    -------
    sparse array, matrix or tensor
        Of the class and format of `a`, with an entry where both have one.
    """
    home = home_of({"a": a, "b": b})
    most = home.largest("a"), home.largest("b")
    home.require_exact(max(*most, most[0] * most[1]))
    x, y = home.lend("a"), home.lend("b")
    return home.run(lambda session, c: lib.sp_csr_hadamard(session.handle, x, y, c))


def triu(a: Any, k: int = 0) -> Any:
    """Select the upper triangle of a sparse matrix.

    Parameters
    ----------
    a : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
    k : int
        The lowest diagonal that stays: 0 the main one, 1 the one above it.

    Returns
    -------
    sparse array, matrix or tensor
        Of the class and format of `a`.
    """
    bound = float(whole(k, "k"))
    return _unary(a, lambda handle, x, c: lib.sp_csr_select(handle, x, _abi.SP_SELECT_UPPER, bound, c))


def tril(a: Any, k: int = 0) -> Any:
    """Select the lower triangle of a sparse matrix.

    Parameters
    ----------
    a : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
    k : int
        The highest diagonal that stays: 0 the main one, -1 the one below it.

    Returns
    -------
    sparse array, matrix or tensor
        Of the class and format of `a`.
    """
    bound = float(whole(k, "k"))
    return _unary(a, lambda handle, x, c: lib.sp_csr_select(handle, x, _abi.SP_SELECT_LOWER, bound, c))


def top_k(a: Any, k: int) -> Any:
    """Select the k largest entries of each row.

    Parameters
    ----------
    a : sparse array or matrix of scipy or cupy, or sparse CSR tensor of torch
    k : int
        Rows with at most `k` entries stay whole. Among equals the lowest columns stay.

    Returns
    -------
    sparse array, matrix or tensor
        Of the class and format of `a`.
    """
    count = whole(k, "k")
    return _unary(a, lambda handle, x, c: lib.sp_csr_top_k(handle, x, count, c))
