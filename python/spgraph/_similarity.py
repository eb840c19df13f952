"""Similarity joins: the most similar rows of sparse matrices."""

from __future__ import annotations

from typing import Any

from . import _abi
from ._core import lib, real, whole
from ._device import home_of
from ._matrix import choose

METRICS = ("cosine", "dot")


def similarity(a: Any, b: Any = None, top_k: int | None = None, threshold: float | None = None,
               metric: str = "cosine", self_join: bool | None = None, device: str | None = None) -> Any:
    """Find the most similar rows of two sparse matrices.

    Parameters
    ----------
    a, b : sparse array or matrix of scipy, or sparse matrix of cupy, or sparse CSR tensor of torch
        With the same number of columns, such as the features of items, and finite values. Without `b` the rows of `a`
        are compared with each other. Those on a GPU are compared there, and it is not checked that values are finite.
    top_k : int, optional
        Keep the `top_k` most similar rows of `b` for each row of `a`, among equals those of the lowest numbers.
    threshold : float, optional
        Keep only similarities of at least this.
    metric : {"cosine", "dot"}
        The cosine of the angle between two rows, or their product.
    self_join : bool, optional
        Leave out the similarity of each row with itself. By default where there is no `b`.
    device : str, optional
        Where matrices of scipy are compared: "cpu" (the default), "cuda", "cuda:N" or "auto". The result is one of
        scipy with the same bits. A GPU needs a library built with ``CUDA=1``. Tensors and matrices of
        cupy are compared where they lie.

    Returns
    -------
    sparse array, matrix or tensor
        Rows of `a` x rows of `b`, of the class and format of `a`. Row i has the similarities that are kept, never those
        that are 0. Cosines of whole numbers are float64.

    Notes
    -----
    The product of the matrices is never in memory, nor is a row of it: similarities are compared with the smallest that
    can still be kept where they are summed. Cosines of float32 matrices are accurate to about 1e-7, so a row may have
    0.9999999 with its like. The result does not depend on the number of threads.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import spgraph
    >>> words = sp.csr_array([[1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 1.0, 1.0]])
    >>> spgraph.similarity(words, top_k=1).toarray().round(2)
    array([[0.  , 0.95, 0.  , 0.  ],
           [0.95, 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.71],
           [0.  , 0.  , 0.71, 0.  ]])
    """
    if top_k is not None and whole(top_k, "top_k") < 1:
        raise ValueError(f"top_k is {top_k}: 1 or more is possible")
    least = float("-inf") if threshold is None else real(threshold, "threshold")
    if least != least:
        raise ValueError("threshold is nan: nothing would be at least that")
    options = _abi.sp_similarity_options(metric=choose(METRICS, metric, "metric"),
                                         top_k=top_k or 0,
                                         threshold=least,
                                         skip_self=b is None if self_join is None else bool(self_join))
    home = home_of({"a": a} if b is None else {"a": a, "b": b}, device=device)
    other = "a" if b is None else "b"
    for name in dict.fromkeys(("a", other)):
        home.require_finite(name)
    if metric == "cosine":
        home.become_real()
    else:
        most = home.largest("a"), home.largest(other)
        home.require_exact(max(*most, most[0] * most[1] * a.shape[1]))
    left = home.lend("a")
    right = left if b is None else home.lend("b")
    return home.run(lambda session, c: lib.sp_similarity(session.handle, left, right, options, c, None))
