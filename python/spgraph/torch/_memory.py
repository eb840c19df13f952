"""Device memory of products: a pool of the library's own, or torch's caching allocator."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

import torch

from .. import _abi, _core
from .._core import lib
from . import _ops


def _allocate(user: Any, size: int, device: int, stream: Optional[int]) -> Optional[int]:
    """A block for work in a stream; None, where torch has an exception, becomes the library's MemoryError."""
    try:
        return torch.cuda.caching_allocator_alloc(size, device, stream or 0)
    except BaseException:
        return None


def _release(user: Any, block: int, size: int, device: int, stream: Optional[int]) -> None:
    try:
        torch.cuda.caching_allocator_delete(block)
    except BaseException:
        pass  # torch ends before the library's contexts, at exit, and has freed everything then


def _allocator() -> _abi.sp_device_allocator:
    fields: Any = _abi.sp_device_allocator._fields_
    types = dict(fields)
    return _abi.sp_device_allocator(types["allocate"](_allocate), types["release"](_release))


# Kept for ever: plans, and with them contexts, may live longer than everything else here.
TORCH = _allocator()


def use_torch_memory(enabled: bool = True) -> None:
    """Let products on GPUs take their memory from torch's caching allocator.

    By default the library has a pool of its own for each GPU. It keeps what it once needed for later products, and
    torch cannot use it meanwhile: `empty_cache` gives it back. With torch's allocator both share one pool: what either
    frees the other can use, `torch.cuda.memory_summary` counts it, and `torch.cuda.set_per_process_memory_fraction`
    bounds it. Each allocation then takes some microseconds more, because it goes through Python. Results are the same.

    Parameters
    ----------
    enabled : bool
        False goes back to the library's own pool. Plans that matrices have made already keep their memory; new ones
        are made at the next product.
    """
    with _ops._lock:
        _ops.source = TORCH if enabled else None
    empty_cache()


def empty_cache() -> None:
    """Give memory that the library keeps for later products back to the GPUs, as `torch.cuda.empty_cache` does.

    It waits for the work that is queued, and cannot be captured into a CUDA graph.
    """
    with _ops._lock:
        for context in _ops._contexts.values():
            status = lib.sp_context_trim(context.handle)
            if status:
                _core.fail(status, context.handle)
    _core.trim_idle()
