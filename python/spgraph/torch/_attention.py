"""Attention over the entries of a sparse matrix, by several heads at a time: scores, softmax, weighted sums.

Numbers of entries have a row for each head, so that those of one head are what a plan takes as values. Features have
the columns of the heads side by side.
"""

from typing import Any

import torch
from torch import Tensor

from .._core import lib
from ._matrix import SparseMatrix, _work_type
from ._ops import _by_rows, _check, _lend, _pattern, _patterns, _session, _space

_WIDE = (torch.float32, torch.float64)


def _holds(ctx: Any, number: int) -> None:
    """Keeps a pattern as long as gradients of its products may be asked for."""
    ctx.matrix = number
    ctx.held = _patterns.get(number) if isinstance(number, int) else None


def _check_entries(name: str, values: Tensor, entries: int, device: torch.device) -> None:
    if values.dtype not in _WIDE or values.dim() != 2 or values.shape[1] != entries or values.device != device:
        raise ValueError(f"{name} are {values.dtype} of the shape {tuple(values.shape)} on {values.device}: float32 or "
                         f"float64, a row for each head, {entries} columns and {device} are needed")


# ---- sums of both ends -------------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::edge_sums", mutates_args=())
def edge_sums(left: Tensor, right: Tensor, matrix: int, entries: int) -> Tensor:
    """left[i, h] + right[j, h] for each head h and entry (i, j)."""
    pattern = _pattern(matrix)
    _check(pattern, left, None, pattern.shape[0], "left")
    _check(pattern, right, None, pattern.shape[1], "right")
    return left.t().index_select(1, pattern.rows()) + right.t().index_select(1, pattern.columns)


@edge_sums.register_fake
def _(left: Tensor, right: Tensor, matrix: int, entries: int) -> Tensor:
    return left.new_empty((left.shape[1], entries))


def _edge_sums_saves(ctx: Any, inputs: Any, output: Any) -> None:
    left, right, matrix, _ = inputs
    ctx.rows = left.shape[0], right.shape[0]
    _holds(ctx, matrix)


def _edge_sums_gradients(ctx: Any, g: Tensor) -> Any:
    rows, cols = ctx.rows
    heads, found = g.shape[0], []
    for wanted, x_rows, y_rows, transpose in ((ctx.needs_input_grad[0], cols, rows, False),
                                              (ctx.needs_input_grad[1], rows, cols, True)):
        found.append(torch.ops.spgraph.spmm_heads(g.new_ones((x_rows, heads)), g, ctx.matrix, y_rows, transpose)
                     if wanted else None)
    return found[0], found[1], None, None


edge_sums.register_autograd(_edge_sums_gradients, setup_context=_edge_sums_saves)

# ---- softmax -----------------------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::edge_softmax", mutates_args=())
def _edge_softmax(scores: Tensor, matrix: int) -> Tensor:
    """The softmax over the entries of each row, for each head."""
    pattern = _pattern(matrix)
    _check_entries("scores", scores, len(pattern.columns), pattern.columns.device)
    made = scores.clone(memory_format=torch.contiguous_format)
    with _session(scores.device) as session:
        session.check(lib.sp_edge_softmax(session.handle, pattern.lend(made.dtype == torch.float64), len(made),
                                          made.data_ptr()))
    return made


@_edge_softmax.register_fake
def _(scores: Tensor, matrix: int) -> Tensor:
    return scores.new_empty(scores.shape)


@torch.library.custom_op("spgraph::edge_softmax_gradient", mutates_args=())
def _edge_softmax_gradient(g: Tensor, softmax: Tensor, matrix: int) -> Tensor:
    pattern = _pattern(matrix)
    made, softmax = g.clone(memory_format=torch.contiguous_format), softmax.contiguous()
    with _session(g.device) as session:
        session.check(lib.sp_edge_softmax_backward(session.handle, pattern.lend(made.dtype == torch.float64), len(made),
                                                   softmax.data_ptr(), made.data_ptr()))
    return made


@_edge_softmax_gradient.register_fake
def _(g: Tensor, softmax: Tensor, matrix: int) -> Tensor:
    return g.new_empty(g.shape)


def _softmax_saves(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output)
    _holds(ctx, inputs[1])


def _softmax_gradients(ctx: Any, g: Tensor) -> Any:
    return torch.ops.spgraph.edge_softmax_gradient(g, ctx.saved_tensors[0], ctx.matrix), None


_edge_softmax.register_autograd(_softmax_gradients, setup_context=_softmax_saves)

# ---- weighted sums -----------------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::spmm_heads", mutates_args=())
def _spmm_heads(x: Tensor, values: Tensor, matrix: int, rows: int, transpose: bool) -> Tensor:
    """A_h @ x_h, or A_h.T @ x_h, for each head h, which has values and columns of x of its own."""
    pattern, heads = _pattern(matrix), values.shape[0]
    _check_entries("values", values, len(pattern.columns), x.device)
    if heads == 0 or x.shape[1] % heads:
        raise ValueError(f"x has {x.shape[1]} columns, which {heads} heads cannot share")
    _check(pattern, x, values[0], pattern.shape[0 if transpose else 1])
    x, values = _by_rows(x), values.contiguous()
    y = x.new_empty((rows, x.shape[1]))
    with _session(x.device) as session:
        plan = pattern.plan(session, x[:, :x.shape[1] // heads], None, "sum", transpose, True)
        session.check(lib.sp_spmm_execute_heads(plan.handle, values.data_ptr(), _space(x.device), 1.0, _lend(x, heads),
                                                0.0, _lend(y, heads)))
    return y


@_spmm_heads.register_fake
def _(x: Tensor, values: Tensor, matrix: int, rows: int, transpose: bool) -> Tensor:
    return x.new_empty((rows, x.shape[1]))


def _spmm_heads_saves(ctx: Any, inputs: Any, output: Any) -> None:
    x, values, matrix, _, ctx.transpose = inputs
    ctx.x_rows = x.shape[0]
    ctx.save_for_backward(x, values)
    _holds(ctx, matrix)


def _spmm_heads_gradients(ctx: Any, g: Tensor) -> Any:
    x, values = ctx.saved_tensors
    to_x = to_values = None
    if ctx.needs_input_grad[0]:
        to_x = torch.ops.spgraph.spmm_heads(g, values, ctx.matrix, ctx.x_rows, not ctx.transpose)
    if ctx.needs_input_grad[1]:
        left, right = (x, g) if ctx.transpose else (g, x)
        to_values = torch.ops.spgraph.sddmm_heads(left.to(values.dtype), right.to(values.dtype), ctx.matrix,
                                                  values.shape[1], values.shape[0])
    return to_x, to_values, None, None, None


_spmm_heads.register_autograd(_spmm_heads_gradients, setup_context=_spmm_heads_saves)


@torch.library.custom_op("spgraph::sddmm_heads", mutates_args=())
def _sddmm_heads(x: Tensor, y: Tensor, matrix: int, entries: int, heads: int) -> Tensor:
    """x_h[i] · y_h[j] for each head h and entry (i, j)."""
    pattern = _pattern(matrix)
    _check(pattern, x, None, pattern.shape[0])
    _check(pattern, y, None, pattern.shape[1], "y")
    x, y = _by_rows(x), _by_rows(y)
    values = x.new_empty((heads, entries))
    with _session(x.device) as session:
        session.check(lib.sp_sddmm(session.handle, pattern.lend(x.dtype == torch.float64), _lend(x, heads),
                                   _lend(y, heads), values.data_ptr()))
    return values


@_sddmm_heads.register_fake
def _(x: Tensor, y: Tensor, matrix: int, entries: int, heads: int) -> Tensor:
    return x.new_empty((heads, entries))


def _sddmm_heads_saves(ctx: Any, inputs: Any, output: Any) -> None:
    x, y, matrix, _, _ = inputs
    ctx.save_for_backward(x, y)
    _holds(ctx, matrix)


def _sddmm_heads_gradients(ctx: Any, g: Tensor) -> Any:
    x, y = ctx.saved_tensors
    found = [torch.ops.spgraph.spmm_heads(of, g, ctx.matrix, to.shape[0], transpose) if wanted else None
             for of, to, transpose, wanted in ((y, x, False, ctx.needs_input_grad[0]),
                                               (x, y, True, ctx.needs_input_grad[1]))]
    return found[0], found[1], None, None, None


_sddmm_heads.register_autograd(_sddmm_heads_gradients, setup_context=_sddmm_heads_saves)

# ---- what layers call --------------------------------------------------------------------------------------


def edge_softmax(a: SparseMatrix, scores: Tensor) -> Tensor:
    """The softmax over the entries of each row of a matrix.

    Parameters
    ----------
    a : SparseMatrix
        Its values are not read. It must not be a transpose (`t`).
    scores : Tensor
        float32 or float64, a number for each entry in the order of ``a.values``, or a row of these for each head.

    Returns
    -------
    Tensor
        As `scores`, with gradients. The numbers of each row of the matrix are positive and add up to 1.
    """
    if a.transposed:
        raise NotImplementedError("the softmax over the rows of a transpose is not supported: make a matrix of the "
                                  "reversed edges")
    rows = scores[None] if scores.dim() == 1 else scores
    made = torch.ops.spgraph.edge_softmax(rows, a._number)
    return made[0] if scores.dim() == 1 else made


def attention(a: SparseMatrix, left: Tensor, right: Tensor, slope: float) -> Tensor:
    """The softmax of leakyrelu(left[i] + right[j]) over rows, heads x entries; repeated edges count each time."""
    wide = _work_type(left)
    scores = torch.ops.spgraph.edge_sums(left.to(wide), right.to(wide), a._number, a._entries)
    scores = torch.nn.functional.leaky_relu(scores, slope)
    if a.counts is not None:
        scores = scores + a.counts.log().to(wide)
    return edge_softmax(a, scores)


def spmm_heads(a: SparseMatrix, weights: Tensor, x: Tensor) -> Tensor:
    """Multiply a sparse matrix by a dense tensor, with values of its own for each head.

    Parameters
    ----------
    a : SparseMatrix
        Its values are not read.
    weights : Tensor, heads x entries
        The values for each head, in the order of ``a.values``.
    x : Tensor
        As for `spmm`; the columns of the heads are side by side.

    Returns
    -------
    Tensor
        The heads' products side by side, with gradients for `weights` and `x`.
    """
    return torch.ops.spgraph.spmm_heads(x, weights.to(_work_type(x)), a._number, a.shape[0], a.transposed)


__all__ = ["attention", "edge_softmax", "spmm_heads"]
