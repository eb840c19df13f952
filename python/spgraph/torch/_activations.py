"""MaxK, the activation of MaxK-GNN (Peng et al. 2024), with its gradient."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor

from .. import _abi
from .._core import lib
from ._ops import _TYPES, _by_rows, _lend, _session, _space

_MOST = 65536  # columns, which the library numbers by 16 bits


@torch.library.custom_op("spgraph::maxk", mutates_args=())
def _maxk(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """x with all but the k largest numbers of each row set to 0, and the columns of these."""
    x = _by_rows(x)
    rows, cols = x.shape
    values = x.new_empty((rows, k))
    columns = torch.empty((rows, k), dtype=torch.uint8 if cols <= 256 else torch.int16, device=x.device)
    y = x.new_empty((rows, cols))
    kept = _abi.sp_cbsr(rows, cols, k, values.data_ptr(), columns.data_ptr(), _TYPES[x.dtype], _space(x.device))
    with _session(x.device) as session:
        session.check(lib.sp_maxk(session.handle, _lend(x), kept))
        session.check(lib.sp_maxk_expand(session.handle, kept, _lend(y)))
    return y, columns.long() & 0xFFFF


@_maxk.register_fake
def _(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty((x.shape[0], k), dtype=torch.int64)


def _saves(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _gradients(ctx: Any, g: Tensor, _: Any) -> Any:
    columns, = ctx.saved_tensors
    return torch.zeros_like(g).scatter(1, columns, g.gather(1, columns)), None


_maxk.register_autograd(_gradients, setup_context=_saves)


def maxk(x: Tensor, k: int) -> Tensor:
    """Keep the `k` largest numbers of each row and set all others to 0, in place of ReLU.

    Parameters
    ----------
    x : Tensor
        float32, float64, float16 or bfloat16, with up to 65,536 columns. The last dimension is a row.
    k : int
        1 or more. Rows of at most `k` numbers stay as they are. Among equals those of the lowest columns are kept.

    Returns
    -------
    Tensor
        Of the shape and type of `x`. The gradient reaches the numbers that were kept.

    Examples
    --------
    >>> import torch
    >>> from spgraph.torch import maxk
    >>> maxk(torch.tensor([[3.0, -1.0, 2.0], [-5.0, -4.0, -4.0]]), 2)
    tensor([[ 3.,  0.,  2.],
            [ 0., -4., -4.]])
    """
    k = operator.index(k)
    if k < 1:
        raise ValueError(f"k is {k}: 1 or more is possible")
    if x.dtype not in _TYPES:
        raise NotImplementedError(f"x is {x.dtype}: float32, float64, float16 and bfloat16 are possible")
    if x.dim() == 0:
        raise ValueError("x is a single number: at least one dimension is needed")
    cols = x.shape[-1]
    if k >= cols:
        return x.clone()
    if cols > _MOST:
        raise NotImplementedError(f"x has {cols} columns: up to {_MOST} are possible")
    flat = x.reshape(-1, cols)
    work = flat if x.dtype in (torch.float32, torch.float64) else flat.float()
    return torch.ops.spgraph.maxk(work, k)[0].to(x.dtype).reshape(x.shape)


__all__ = ["maxk"]
