"""MaxK, the activation of MaxK-GNN (Peng et al. 2024), alone and within a product, with its gradient.

Within a product the k kept numbers of each row, and the columns that they have, are tensors of k columns: neighbours
gather these and no zeros. Columns are uint8 up to 256, else int16 with the bits of uint16, as the library has them.
"""

# Annotations are no texts here: torch 2.4 reads the types of operators from them.
from typing import Any, Optional

import torch
from torch import Tensor

from .. import _abi
from .._core import Session, lib, whole
from ._matrix import SparseMatrix, _work_type, mean_of, spmm
from ._ops import _TYPES, Pattern, _by_rows, _check, _in_one_piece, _lend, _pattern, _patterns, _Plan, _session, _space

_MOST = 65536  # columns, which the library numbers by 16 bits


def _columns(rows: int, k: int, cols: int, device: torch.device) -> Tensor:
    return torch.empty((rows, k), dtype=torch.uint8 if cols <= 256 else torch.int16, device=device)


def _kept(values: Tensor, columns: Tensor, cols: int) -> _abi.sp_cbsr:
    """The library's struct of kept numbers."""
    return _abi.sp_cbsr(values.shape[0], cols, values.shape[1], values.data_ptr(), columns.data_ptr(),
                        _TYPES[values.dtype], _space(values.device))


# ---- the activation ----------------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::maxk", mutates_args=())
def _maxk(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """x with all but the k largest numbers of each row set to 0, and the columns of these."""
    x = _by_rows(x)
    values, columns = x.new_empty((x.shape[0], k)), _columns(x.shape[0], k, x.shape[1], x.device)
    y = x.new_empty(x.shape)
    kept = _kept(values, columns, x.shape[1])
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

# ---- the kept numbers alone --------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::maxk_kept", mutates_args=())
def _maxk_kept(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest numbers of each row and their columns, which ascend."""
    x = _by_rows(x)
    values, columns = x.new_empty((x.shape[0], k)), _columns(x.shape[0], k, x.shape[1], x.device)
    with _session(x.device) as session:
        session.check(lib.sp_maxk(session.handle, _lend(x), _kept(values, columns, x.shape[1])))
    return values, columns


@_maxk_kept.register_fake
def _(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    return x.new_empty((x.shape[0], k)), _columns(x.shape[0], k, x.shape[1], x.device)


def _maxk_kept_saves(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.cols = inputs[0].shape[1]
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _maxk_kept_gradients(ctx: Any, g: Tensor, _: Any) -> Any:
    return torch.ops.spgraph.maxk_expand(g, ctx.saved_tensors[0], ctx.cols), None


_maxk_kept.register_autograd(_maxk_kept_gradients, setup_context=_maxk_kept_saves)


@torch.library.custom_op("spgraph::maxk_expand", mutates_args=())
def _maxk_expand(values: Tensor, columns: Tensor, cols: int) -> Tensor:
    """The dense tensor with the values at their columns and 0 elsewhere."""
    values, columns = values.contiguous(), columns.contiguous()
    x = values.new_empty((values.shape[0], cols))
    with _session(x.device) as session:
        session.check(lib.sp_maxk_expand(session.handle, _kept(values, columns, cols), _lend(x)))
    return x


@_maxk_expand.register_fake
def _(values: Tensor, columns: Tensor, cols: int) -> Tensor:
    return values.new_empty((values.shape[0], cols))


def _maxk_expand_saves(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1])


def _maxk_expand_gradients(ctx: Any, g: Tensor) -> Any:
    return g.gather(1, ctx.saved_tensors[0].long() & 0xFFFF), None, None


_maxk_expand.register_autograd(_maxk_expand_gradients, setup_context=_maxk_expand_saves)

# ---- products ----------------------------------------------------------------------------------------------


def _plan(pattern: Pattern, session: Session, x: Tensor, values: Optional[Tensor], transpose: bool) -> _Plan:
    """The plan of sums, which on a GPU gets blocks for kept numbers at its first such product."""
    plan = pattern.plan(session, x, values, "sum", transpose)
    if not plan.for_kept and x.is_cuda and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("the first product of this kind prepares the matrix, which a CUDA graph cannot capture: run "
                           "the step once before the capture")
    plan.for_kept = True
    return plan


@torch.library.custom_op("spgraph::spmm_kept", mutates_args=())
def _spmm_kept(kept: Tensor, columns: Tensor, values: Optional[Tensor], cols: int, matrix: int, rows: int,
               transpose: bool) -> Tensor:
    """A @ x, or A.T @ x, for the x of `cols` columns that has the kept numbers; `rows` are those of the result."""
    pattern = _pattern(matrix)
    _check(pattern, kept, values, pattern.shape[0 if transpose else 1])
    kept, columns, values = kept.contiguous(), columns.contiguous(), _in_one_piece(values)
    y = kept.new_empty((rows, cols))
    with _session(y.device) as session:
        plan = _plan(pattern, session, y, values, transpose)
        session.check(lib.sp_maxk_spmm(plan.handle, 1.0, _kept(kept, columns, cols), 0.0, _lend(y)))
    return y


@_spmm_kept.register_fake
def _(kept: Tensor, columns: Tensor, values: Optional[Tensor], cols: int, matrix: int, rows: int,
      transpose: bool) -> Tensor:
    return kept.new_empty((rows, cols))


def _holds(ctx: Any, matrix: int, transpose: bool) -> None:
    """Keeps a pattern as long as gradients of its products may be asked for."""
    ctx.matrix, ctx.transpose = matrix, transpose
    ctx.held = _patterns.get(matrix) if isinstance(matrix, int) else None


def _to_values(ctx: Any, gathered: Tensor, columns: Tensor, other: Tensor, values: Tensor, gathers: bool) -> Tensor:
    """The gradient of A's values: the products of the rows of `other` with those that have the kept numbers, which A's
    columns name (with `gathers`), or its rows."""
    x = torch.ops.spgraph.maxk_expand(gathered, columns, other.shape[1])
    left, right = (other, x) if gathers else (x, other)
    return torch.ops.spgraph.sddmm(left, right, ctx.matrix, values.shape[0])


def _spmm_kept_saves(ctx: Any, inputs: Any, output: Any) -> None:
    kept, columns, values, _, matrix, _, transpose = inputs
    ctx.kept_rows = kept.shape[0]
    ctx.save_for_backward(kept if values is not None and values.requires_grad else None, columns, values)
    _holds(ctx, matrix, transpose)


def _spmm_kept_gradients(ctx: Any, g: Tensor) -> Any:
    kept, columns, values = ctx.saved_tensors
    to_kept = to_values = None
    if ctx.needs_input_grad[0]:
        to_kept = torch.ops.spgraph.spmm_at(g, columns, values, ctx.matrix, not ctx.transpose)
    if values is not None and ctx.needs_input_grad[2]:
        to_values = _to_values(ctx, kept, columns, g, values, not ctx.transpose)
    return to_kept, None, to_values, None, None, None, None


_spmm_kept.register_autograd(_spmm_kept_gradients, setup_context=_spmm_kept_saves)


@torch.library.custom_op("spgraph::spmm_at", mutates_args=())
def _spmm_at(x: Tensor, columns: Tensor, values: Optional[Tensor], matrix: int, transpose: bool) -> Tensor:
    """The entries of A @ x, or of A.T @ x, at the columns of each row. This is the gradient of spmm_kept."""
    pattern = _pattern(matrix)
    _check(pattern, x, values, pattern.shape[0 if transpose else 1])
    x, columns, values = _by_rows(x), columns.contiguous(), _in_one_piece(values)
    found = x.new_empty(columns.shape)
    with _session(x.device) as session:
        plan = _plan(pattern, session, x, values, transpose)
        session.check(lib.sp_maxk_spmm_backward(plan.handle, _lend(x), _kept(found, columns, x.shape[1])))
    return found


@_spmm_at.register_fake
def _(x: Tensor, columns: Tensor, values: Optional[Tensor], matrix: int, transpose: bool) -> Tensor:
    return x.new_empty(columns.shape)


def _spmm_at_saves(ctx: Any, inputs: Any, output: Any) -> None:
    x, columns, values, matrix, transpose = inputs
    ctx.shape = x.shape
    ctx.save_for_backward(x if values is not None and values.requires_grad else None, columns, values)
    _holds(ctx, matrix, transpose)


def _spmm_at_gradients(ctx: Any, g: Tensor) -> Any:
    x, columns, values = ctx.saved_tensors
    to_x = to_values = None
    if ctx.needs_input_grad[0]:
        to_x = torch.ops.spgraph.spmm_kept(g, columns, values, ctx.shape[1], ctx.matrix, ctx.shape[0],
                                           not ctx.transpose)
    if values is not None and ctx.needs_input_grad[2]:
        to_values = _to_values(ctx, g, columns, x, values, ctx.transpose)
    return to_x, None, to_values, None, None


_spmm_at.register_autograd(_spmm_at_gradients, setup_context=_spmm_at_saves)

# ---- what programs call ------------------------------------------------------------------------------------


def _check_maxk(x: Tensor, k: int) -> int:
    k = whole(k, "k")
    if k < 1:
        raise ValueError(f"k is {k}: 1 or more is possible")
    if x.dtype not in _TYPES:
        raise NotImplementedError(f"x is {x.dtype}: float32, float64, float16 and bfloat16 are possible")
    if k < x.shape[-1] and x.shape[-1] > _MOST:
        raise NotImplementedError(f"x has {x.shape[-1]} columns: up to {_MOST} are possible")
    return k


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

    See Also
    --------
    spmm_maxk : The product of a sparse matrix with the numbers that are kept.

    Examples
    --------
    >>> import torch
    >>> from spgraph.torch import maxk
    >>> maxk(torch.tensor([[3.0, -1.0, 2.0], [-5.0, -4.0, -4.0]]), 2)
    tensor([[ 3.,  0.,  2.],
            [ 0., -4., -4.]])
    """
    if x.dim() == 0:
        raise ValueError("x is a single number: at least one dimension is needed")
    k = _check_maxk(x, k)
    cols = x.shape[-1]
    if k >= cols:
        return x.clone()
    work = x.reshape(-1, cols).to(_work_type(x))
    return torch.ops.spgraph.maxk(work, k)[0].to(x.dtype).reshape(x.shape)


def spmm_maxk(a: SparseMatrix, x: Tensor, k: int, reduce: str = "sum") -> Tensor:
    """Multiply a sparse matrix by the `k` largest numbers of each row of a dense tensor.

    The result is that of ``spmm(a, maxk(x, k), reduce)``, up to the order of sums. Here each entry of `a` gathers `k`
    numbers and no zeros, and so it does on the way back.

    Parameters
    ----------
    a : SparseMatrix
    x : Tensor
        float32, float64, float16 or bfloat16, with a row for each column of `a` and up to 65,536 columns. The result
        has its type; sums are float32, for float64 they are float64.
    k : int
        1 or more, as for `maxk`.
    reduce : {"sum", "mean"}
        How the rows of x that a row of `a` names, times its values, are combined. A row without entries gives 0.

    Returns
    -------
    Tensor
        With gradients for `x`, which reach the numbers that were kept, and for the values of `a`.

    See Also
    --------
    maxk : The numbers that are kept.
    spmm : The product with all numbers.

    Examples
    --------
    >>> import torch
    >>> from spgraph.torch import SparseMatrix, spmm_maxk
    >>> a = SparseMatrix.from_edge_index(torch.tensor([[0, 1, 1], [0, 0, 1]]))
    >>> spmm_maxk(a, torch.tensor([[3.0, -1.0, 2.0], [-5.0, -4.0, 1.0]]), 1)
    tensor([[3., 0., 1.],
            [0., 0., 1.]])
    """
    if reduce not in ("add", "sum", "mean"):
        raise ValueError(f"reduce is {reduce!r}: sum and mean are possible")
    if x.dim() != 2 or x.shape[0] != a.shape[1]:
        raise ValueError(f"x has the shape {tuple(x.shape)}: two dimensions and {a.shape[1]} rows are needed")
    k = _check_maxk(x, k)
    if k >= x.shape[1]:
        return spmm(a, x, reduce)
    values = a.values if a.values is not None else a.counts
    if values is not None:
        values = values.to(_work_type(x))
    kept, columns = torch.ops.spgraph.maxk_kept(x.to(_work_type(x)), k)
    y = torch.ops.spgraph.spmm_kept(kept, columns, values, x.shape[1], a._number, a.shape[0], a.transposed)
    return (mean_of(a, y) if reduce == "mean" else y).to(x.dtype)


__all__ = ["maxk", "spmm_maxk"]
