"""The products as operators of torch, `torch.ops.spgraph.*`, with their gradients.

An operator takes a pattern by its number, because operators take tensors and numbers only. Products of tensors on the
CPU run on the library's threads. Those on a GPU are queued in the library's stream, which waits for torch's current
stream, and which torch's stream then waits for. No symbol of torch is linked: the library gets addresses.
"""

import collections
import contextlib
import ctypes
import itertools
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch import Tensor

from .. import _abi, _core
from .._core import Context, Session, lib

REDUCTIONS = {"sum": _abi.SP_REDUCE_SUM, "max": _abi.SP_REDUCE_MAX, "min": _abi.SP_REDUCE_MIN}
_TYPES = {torch.float32: _abi.SP_DENSE_F32, torch.float64: _abi.SP_DENSE_F64, torch.float16: _abi.SP_DENSE_F16,
          torch.bfloat16: _abi.SP_DENSE_BF16}

_lock = threading.RLock()  # one thread at a time uses a context
_contexts: dict[tuple[str, int, bool], Context] = {}
source: Optional[_abi.sp_device_allocator] = None  # of device memory; None: a pool of the library's own
_numbers = itertools.count()
_patterns: weakref.WeakValueDictionary[int, "Pattern"] = weakref.WeakValueDictionary()
# Plans and samplers on GPUs that the next session frees: the collector may end them in any thread and in a capture.
_unused: collections.deque[tuple[Any, ctypes.c_void_p]] = collections.deque()


def _context(device: torch.device) -> Context:
    name, lender = ("cpu", None) if device.type == "cpu" else (f"cuda:{device.index or 0}", source)
    key = (name, _core._threads, lender is not None)
    if key not in _contexts:
        _contexts[key] = Context(name, lender)
    return _contexts[key]


@contextlib.contextmanager
def _session(device: torch.device, context: Optional[Context] = None) -> Iterator[Session]:
    """A session whose work is ordered after and before that of torch's current stream; in the device's context or in
    the one of a sampler or plan."""
    if device.type == "cpu":
        with _lock, Session(context=context or _context(device)) as session:
            yield session
        return
    with _lock, torch.cuda.device(device), Session(context=context or _context(device)) as session:
        if not torch.cuda.is_current_stream_capturing():
            while _unused:
                free, handle = _unused.popleft()
                free(handle)
        current = torch.cuda.current_stream(device)
        own = torch.cuda.ExternalStream(lib.sp_context_stream(session.handle), device=device)
        own.wait_stream(current)
        try:
            yield session
        finally:
            current.wait_stream(own)


def _space(device: torch.device) -> int:
    return _abi.SP_HOST if device.type == "cpu" else _abi.SP_DEVICE


def _lend(x: Tensor, heads: int = 1) -> _abi.sp_dense:
    """The library's struct; with several heads a batch of them, which are columns side by side."""
    width = x.shape[1] // heads
    return _abi.sp_dense(x.shape[0], width, max(x.stride(0), x.shape[1]), x.data_ptr(), _TYPES[x.dtype],
                         _space(x.device), _abi.SP_ROW_MAJOR, *((heads, width) if heads > 1 else (0, 0)))


def _by_rows(x: Tensor) -> Tensor:
    """The tensor, or a copy with rows one after another, each in one piece."""
    rows, cols = x.shape
    fits = (cols <= 1 or x.stride(1) == 1) and (rows <= 1 or x.stride(0) >= cols)
    return x if fits else x.contiguous()


def _in_one_piece(values: Optional[Tensor]) -> Optional[Tensor]:
    """The values one after another, for a session to come: its stream does not wait for what torch copies during it."""
    return None if values is None else values.contiguous()


class Owner:
    """Who frees a handle of the library; on a GPU the next session does. `free` is the library's function."""

    handle: ctypes.c_void_p
    on_gpu: bool
    free: Any

    def __del__(self, keep: Any = _unused.append) -> None:
        if getattr(self, "handle", None):
            if self.on_gpu:
                keep((self.free, self.handle))
            else:
                self.free(self.handle)


class _Plan(Owner):
    """A plan of the library and the values that it has."""

    free = staticmethod(lib.sp_spmm_plan_free)

    def __init__(self, session: Session, a: _abi.sp_csr, width: int, reduce: str, transpose: bool) -> None:
        self.handle = ctypes.c_void_p()
        self.on_gpu = a.space == _abi.SP_DEVICE
        self.for_kept = False
        self.values: Optional[Tensor] = None
        self.version = -1
        options = _abi.sp_spmm_options(reduce=REDUCTIONS[reduce], transpose=transpose, deterministic=True)
        session.check(lib.sp_spmm_plan_create(session.handle, a, width, options, ctypes.byref(self.handle)))

    def set_values(self, session: Session, values: Tensor, lasting: bool) -> None:
        """Gives the plan values, unless they are lasting ones that it has already. Those with a gradient change nearly
        always."""
        assert values.is_contiguous()
        version = values._version if lasting and not values.is_inference() and not values.requires_grad else -1
        old = self.values
        if old is None or version < 0 or version != self.version or values.data_ptr() != old.data_ptr():
            session.check(lib.sp_spmm_plan_set_values(self.handle, values.data_ptr(), _space(values.device)))
            self.values, self.version = values.detach(), version  # held, so that nothing else gets its address


def require_tensor(x: Any, name: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is {type(x).__name__}: a tensor is expected")


class Pattern:
    """Where a matrix has entries: row offsets (int64) and ascending columns (int32), and the plans made for them."""

    def __init__(self, offsets: Tensor, columns: Tensor, cols: int) -> None:
        self.offsets, self.columns = offsets, columns
        self.shape = (len(offsets) - 1, cols)
        self.number = next(_numbers)
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._rows: Optional[Tensor] = None
        self._lasting: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()  # by address
        _patterns[self.number] = self

    def __reduce__(self) -> Any:  # without plans, and with a number of its own
        return Pattern, (self.offsets, self.columns, self.shape[1])

    def expect(self, values: Tensor) -> None:
        """These are a matrix's values, whose changes torch counts. Those that compiled code makes are written over in
        place, and nobody counts it."""
        self._lasting[values.data_ptr()] = values

    def lend(self, wide: bool) -> _abi.sp_csr:
        """The library's struct, without values."""
        return _abi.sp_csr(self.shape[0], self.shape[1], len(self.columns), self.offsets.data_ptr(),
                           self.columns.data_ptr(), None, _abi.SP_F64 if wide else _abi.SP_F32,
                           _space(self.columns.device))

    def rows(self) -> Tensor:
        """The row of each entry; made at the first use and kept."""
        if self._rows is None:
            self._rows = torch.repeat_interleave(torch.arange(self.shape[0], device=self.columns.device),
                                                 self.offsets.diff(), output_size=len(self.columns))
        return self._rows

    def plan(self, session: Session, x: Tensor, values: Optional[Tensor], reduce: str, transpose: bool,
             heads: bool = False) -> _Plan:
        """The plan for a product, made at its first use. The values, which several heads give it, are in one piece."""
        wide = x.dtype == torch.float64
        key = (session.context.key, wide, reduce, transpose, values is None, heads)
        if key not in self._plans:
            if x.is_cuda and torch.cuda.is_current_stream_capturing():
                raise RuntimeError("the first product of this kind prepares the matrix, which a CUDA graph cannot "
                                   "capture: run the step once before the capture")
            self._plans[key] = _Plan(session, self.lend(wide), x.shape[1], reduce, transpose)
        if values is not None and len(values):
            # A graph is replayed after other values of this plan: it sets its own.
            lasting = (values.data_ptr() in self._lasting and
                       not (x.is_cuda and torch.cuda.is_current_stream_capturing()))
            self._plans[key].set_values(session, values, lasting)
        return self._plans[key]


def _pattern(number: int) -> Pattern:
    try:
        return _patterns[number]
    except KeyError:
        raise RuntimeError("the sparse matrix of this product no longer exists: keep it as long as its gradients are "
                           "needed") from None


def _check(pattern: Pattern, x: Tensor, values: Optional[Tensor], rows: int, name: str = "x") -> None:
    if x.dtype not in _TYPES:
        raise NotImplementedError(f"{name} is {x.dtype}: float32, float64, float16 and bfloat16 are possible")
    if x.dim() != 2 or x.shape[0] != rows:
        raise ValueError(f"{name} has the shape {tuple(x.shape)}: {rows} rows are needed")
    if x.device != pattern.columns.device:
        raise ValueError(f"{name} lies on {x.device}, the matrix on {pattern.columns.device}")
    if values is not None:
        wanted = torch.float64 if x.dtype == torch.float64 else torch.float32
        if values.shape != pattern.columns.shape or values.dtype != wanted or values.device != x.device:
            raise ValueError(f"values are {values.dtype} of the shape {tuple(values.shape)} on {values.device}: "
                             f"{wanted}, {tuple(pattern.columns.shape)} and {x.device} are needed")


# ---- sums --------------------------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::spmm", mutates_args=())
def spmm(x: Tensor, values: Optional[Tensor], matrix: int, rows: int, transpose: bool) -> Tensor:
    """A @ x, or A.T @ x; `rows` are those of the result."""
    pattern = _pattern(matrix)
    _check(pattern, x, values, pattern.shape[0 if transpose else 1])
    x, values = _by_rows(x), _in_one_piece(values)
    y = x.new_empty((rows, x.shape[1]))
    with _session(x.device) as session:
        plan = pattern.plan(session, x, values, "sum", transpose)
        session.check(lib.sp_spmm_execute(plan.handle, 1.0, _lend(x), 0.0, _lend(y)))
    return y


@spmm.register_fake
def _(x: Tensor, values: Optional[Tensor], matrix: int, rows: int, transpose: bool) -> Tensor:
    return x.new_empty((rows, x.shape[1]))


def _spmm_saves(ctx: Any, inputs: Any, output: Any) -> None:
    x, values, ctx.matrix, ctx.rows, ctx.transpose = inputs
    ctx.x_rows = x.shape[0]
    ctx.save_for_backward(x if values is not None and values.requires_grad else None, values)
    ctx.held = _patterns.get(ctx.matrix) if isinstance(ctx.matrix, int) else None


def _spmm_gradients(ctx: Any, g: Tensor) -> Any:
    x, values = ctx.saved_tensors
    to_x = to_values = None
    if ctx.needs_input_grad[0]:
        to_x = torch.ops.spgraph.spmm(g, values, ctx.matrix, ctx.x_rows, not ctx.transpose)
    if values is not None and ctx.needs_input_grad[1]:
        left, right = (x, g) if ctx.transpose else (g, x)
        to_values = torch.ops.spgraph.sddmm(left.to(values.dtype), right.to(values.dtype), ctx.matrix, values.shape[0])
    return to_x, to_values, None, None, None


spmm.register_autograd(_spmm_gradients, setup_context=_spmm_saves)


# ---- sampled products --------------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::sddmm", mutates_args=())
def sddmm(x: Tensor, y: Tensor, matrix: int, entries: int) -> Tensor:
    """x[i] · y[j] for each entry (i, j)."""
    pattern = _pattern(matrix)
    _check(pattern, x, None, pattern.shape[0])
    _check(pattern, y, None, pattern.shape[1], "y")
    if x.dtype != y.dtype or x.dtype not in (torch.float32, torch.float64) or x.shape[1] != y.shape[1]:
        raise ValueError(f"x is {x.dtype} with {x.shape[1]} columns and y {y.dtype} with {y.shape[1]}: both must be "
                         "float32 or float64 and have the same number of columns")
    x, y = _by_rows(x), _by_rows(y)
    values = x.new_empty(entries)
    with _session(x.device) as session:
        session.check(lib.sp_sddmm(session.handle, pattern.lend(x.dtype == torch.float64), _lend(x), _lend(y),
                                   values.data_ptr()))
    return values


@sddmm.register_fake
def _(x: Tensor, y: Tensor, matrix: int, entries: int) -> Tensor:
    return x.new_empty(entries)


def _sddmm_saves(ctx: Any, inputs: Any, output: Any) -> None:
    x, y, ctx.matrix, _ = inputs
    ctx.save_for_backward(x, y)
    ctx.held = _patterns.get(ctx.matrix) if isinstance(ctx.matrix, int) else None


def _sddmm_gradients(ctx: Any, g: Tensor) -> Any:
    x, y = ctx.saved_tensors
    to_x = torch.ops.spgraph.spmm(y, g, ctx.matrix, x.shape[0], False) if ctx.needs_input_grad[0] else None
    to_y = torch.ops.spgraph.spmm(x, g, ctx.matrix, y.shape[0], True) if ctx.needs_input_grad[1] else None
    return to_x, to_y, None, None


sddmm.register_autograd(_sddmm_gradients, setup_context=_sddmm_saves)


# ---- maxima and minima -------------------------------------------------------------------------------------


@torch.library.custom_op("spgraph::spmm_extreme", mutates_args=())
def spmm_extreme(x: Tensor, values: Optional[Tensor], matrix: int, rows: int, transpose: bool,
                 reduce: str) -> tuple[Tensor, Tensor]:
    """The maxima or minima of the rows of x that a row names, times its values, and the entries that gave them."""
    pattern = _pattern(matrix)
    _check(pattern, x, values, pattern.shape[0 if transpose else 1])
    x, values = _by_rows(x), _in_one_piece(values)
    y = x.new_empty((rows, x.shape[1]))
    argument = torch.empty((rows, x.shape[1]), dtype=torch.int64, device=x.device)
    with _session(x.device) as session:
        plan = pattern.plan(session, x, values, reduce, transpose)
        session.check(lib.sp_spmm_execute_argument(plan.handle, _lend(x), _lend(y), argument.data_ptr()))
    return y, argument


@spmm_extreme.register_fake
def _(x: Tensor, values: Optional[Tensor], matrix: int, rows: int, transpose: bool,
      reduce: str) -> tuple[Tensor, Tensor]:
    y = x.new_empty((rows, x.shape[1]))
    return y, y.new_empty(y.shape, dtype=torch.int64)


@torch.library.custom_op("spgraph::spmm_extreme_gradients", mutates_args=())
def _extreme_gradients(g: Tensor, x: Tensor, values: Optional[Tensor], argument: Tensor, matrix: int,
                       transpose: bool) -> tuple[Tensor, Tensor]:
    """The gradients of spmm_extreme for x and for the values (empty without values)."""
    pattern = _pattern(matrix)
    none, entry = argument < 0, argument.clamp(min=0)
    ends = pattern.columns.long()
    if transpose:
        ends = pattern.rows()
    if len(ends) == 0:
        return torch.zeros_like(x), x.new_zeros(0, dtype=None if values is None else values.dtype)
    source = ends[entry]
    scaled = (g if values is None else g * values[entry].to(g.dtype)).masked_fill(none, 0)
    to_x = x.new_zeros(x.shape).scatter_add_(0, source, scaled)
    if values is None:
        return to_x, x.new_zeros(0)
    parts = (g * x.gather(0, source)).masked_fill(none, 0).to(values.dtype)
    return to_x, values.new_zeros(values.shape).index_add_(0, entry.reshape(-1), parts.reshape(-1))


@_extreme_gradients.register_fake
def _(g: Tensor, x: Tensor, values: Optional[Tensor], argument: Tensor, matrix: int,
      transpose: bool) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(0) if values is None else values.new_empty(values.shape)


def _extreme_saves(ctx: Any, inputs: Any, output: Any) -> None:
    x, values, ctx.matrix, _, ctx.transpose, _ = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(x, values, output[1])
    ctx.held = _patterns.get(ctx.matrix) if isinstance(ctx.matrix, int) else None


def _extreme_backward(ctx: Any, g: Tensor, _: Any) -> Any:
    x, values, argument = ctx.saved_tensors
    to_x, to_values = torch.ops.spgraph.spmm_extreme_gradients(g, x, values, argument, ctx.matrix, ctx.transpose)
    return to_x, None if values is None else to_values, None, None, None, None


spmm_extreme.register_autograd(_extreme_backward, setup_context=_extreme_saves)
