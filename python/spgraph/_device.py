"""Sparse matrices of torch and cupy: lent where they lie, with results of the same kind.

Work on a GPU is ordered after and before that of the stream that is current in torch or cupy. Results are in memory of
torch or cupy, so these free them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import scipy.sparse as ss

from . import _abi, _core
from ._core import I4, I8, Context, Session, lib
from ._home import Home, as_numpy, lies_here
from ._matrix import Scipy

_DEFAULT_STREAM = 1  # cudaStreamLegacy, where the interface of arrays has 0


class Torch(Home):
    """Sparse CSR tensors, on the CPU or a GPU."""

    arrays = "a tensor"

    def __init__(self, matrices: dict[str, Any], others: dict[str, Any]) -> None:
        super().__init__({**matrices, **others})
        given = list(self.matrices.values())
        self.device = given[0].device
        if any(m.device != self.device for m in given):
            raise ValueError(f"the tensors lie on {', '.join(str(m.device) for m in given)}: one device is needed")
        if any(m.requires_grad for m in given):
            raise NotImplementedError("sparse tensors get no gradients here: detach() them")
        self.wide = True  # whether results have indices of 64 bits
        self.compute = self.result = self.type_of(given[0])
        self.space = _abi.SP_HOST if self.device.type == "cpu" else _abi.SP_DEVICE

    def parts(self, name: str) -> tuple[Any, Any, Any]:
        from .torch._matrix import check_sound

        matrix = self.matrices[name]
        opened = self.open(matrix)
        if opened is None:
            raise TypeError(f"{name} is a tensor of the layout {matrix.layout} and the shape {tuple(matrix.shape)}: "
                            "sparse CSR tensors of two dimensions are possible (to_sparse_csr)")
        offsets, columns, values = opened
        self.wide = self.wide and self.type_of(columns) == "int64"
        offsets, columns = offsets.long().contiguous(), columns.int().contiguous()
        check_sound(offsets, columns, matrix.shape[1])
        return offsets, columns, values.contiguous()

    def open(self, matrix: Any) -> tuple[Any, Any, Any] | None:
        import torch

        if (not isinstance(matrix, torch.Tensor) or matrix.layout != torch.sparse_csr or matrix.dim() != 2 or
                matrix.values().dim() != 1):
            return None
        self.require_array(matrix, "the matrix")
        return matrix.crow_indices(), matrix.col_indices(), matrix.values()

    def context(self) -> Context:
        from .torch._ops import _context, _lock, _unused

        self._ended = _unused
        with _lock:
            return _context(self.device)

    def session(self, context: Context | None = None) -> Any:
        from .torch._ops import _session

        return _session(self.device, context)

    def release(self, free: Callable[[Any], None], plan: Any, context: Context) -> None:
        if self.device.type == "cpu":
            free(plan)
        else:
            self._ended.append((free, plan))

    def assemble(self, shape: tuple[int, int], offsets: Any, columns: Any, values: Any) -> Any:
        import torch

        index = torch.int64 if self.wide or len(columns) >= 2**31 else torch.int32
        return torch.sparse_csr_tensor(offsets.to(index), columns.to(index), values, shape, check_invariants=False)

    def array(self, x: Any, name: str, move: bool = False) -> Any:
        import torch

        if isinstance(x, torch.Tensor):
            made = x
        elif lies_here(x):
            given = as_numpy(x)  # torch shares memory that can be written, in ascending order
            shared = given.flags.writeable and min(given.strides, default=0) >= 0
            made = torch.from_numpy(given if shared else given.copy())
        elif hasattr(x, "__dlpack__"):
            made = torch.from_dlpack(x)
        else:
            made = self._from_interface(x, name)
        if move and made.device.type == "cpu":
            made = made.to(self.device)
        self.require_array(made, name)
        return made

    def _from_interface(self, x: Any, name: str) -> Any:
        """An array by the CUDA array interface, in the order of its stream, which torch does not look at. There 1 is the
        default stream, and 2 that of the producer's thread, for which torch has no name."""
        import torch

        if self.device.type != "cuda":
            raise ValueError(f"{name} lies on a GPU: {self.device} is needed, as for the sparse matrix")
        stream = x.__cuda_array_interface__.get("stream")
        if stream == 2:
            torch.cuda.synchronize(self.device)
        elif stream is not None:
            theirs = (torch.cuda.default_stream(self.device) if stream == 1 else
                      torch.cuda.ExternalStream(stream, self.device))
            torch.cuda.current_stream(self.device).wait_stream(theirs)
        return torch.as_tensor(x, device=self.device)

    def require_array(self, x: Any, name: str) -> None:
        import torch

        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} is {type(x).__name__}: {self.arrays} is expected")
        if x.device != self.device:
            raise ValueError(f"{name} lies on {x.device}: {self.device} is needed, as for the sparse matrix")
        if x.requires_grad:
            raise NotImplementedError(f"{name} would get no gradients here: detach() it, or see spgraph.torch")

    def type_of(self, x: Any) -> str:
        return str(x.dtype).rpartition(".")[2]

    def steps(self, x: Any) -> tuple[int, ...]:
        return x.stride()

    def cast(self, x: Any, dtype: str) -> Any:
        import torch

        return x.to(getattr(torch, dtype)).contiguous()

    def empty(self, shape: Any, dtype: Any) -> Any:
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype) if isinstance(dtype, str) else dtype, device=self.device)

    def address(self, array: Any) -> int:
        return array.data_ptr()

    def is_contiguous(self, array: Any) -> bool:
        return array.is_contiguous()

    def has_written(self, *arrays: Any) -> None:
        import torch

        for array in arrays:
            if not array.is_inference():
                torch.autograd.graph.increment_version(array)


class Cupy(Home):
    """Matrices and arrays of cupyx.scipy.sparse."""

    arrays = "an array of cupy"
    space = _abi.SP_DEVICE

    def __init__(self, matrices: dict[str, Any], others: dict[str, Any]) -> None:
        import cupy
        from cupyx.scipy import sparse

        super().__init__({**matrices, **others})
        self.xp = cupy
        first = next(iter(matrices.values()))
        self.device = first.data.device
        self.compute = self.result = self.type_of(first)
        self.kind = sparse.csr_array if isinstance(first, getattr(sparse, "sparray", ())) else sparse.csr_matrix

    def parts(self, name: str) -> tuple[Any, Any, Any]:
        matrix = self.matrices[name]
        csr = matrix.tocsr()
        self.require_array(csr.data, name)
        if not csr.has_canonical_format:
            csr = csr.copy() if csr is matrix else csr
            csr.sum_duplicates()
        return csr.indptr.astype(I8), csr.indices.astype(I4, copy=False), csr.data

    def open(self, matrix: Any) -> tuple[Any, Any, Any] | None:
        if getattr(matrix, "format", None) != "csr" or not isinstance(matrix.data, self.xp.ndarray):
            return None
        self.require_array(matrix.data, "the matrix")
        return matrix.indptr, matrix.indices, matrix.data

    def context(self) -> Context:
        with self.device:
            return Context(f"cuda:{self.device.id}")

    @contextlib.contextmanager
    def session(self, context: Context | None = None) -> Iterator[Session]:
        with self.device, Session(f"cuda:{self.device.id}", context) as session:
            stream = self.xp.cuda.get_current_stream()
            if not (stream.ptr and stream.is_capturing()):
                _core.free_unused()
            session.check(lib.sp_context_set_stream(session.handle, stream.ptr or _DEFAULT_STREAM))
            try:
                yield session
            finally:
                lib.sp_context_set_stream(session.handle, None)

    def release(self, free: Callable[[Any], None], plan: Any, context: Context) -> None:
        _core.unused.append((free, plan, context))

    def assemble(self, shape: tuple[int, int], offsets: Any, columns: Any, values: Any) -> Any:
        index = I8 if len(columns) >= 2**31 else I4
        made = self.kind(shape, dtype=values.dtype)
        made.indptr, made.indices, made.data = offsets.astype(index), columns.astype(index, copy=False), values
        made.has_canonical_format = True
        return made

    def array(self, x: Any, name: str, move: bool = False) -> Any:
        cupy = self.xp
        if not isinstance(x, cupy.ndarray):
            with self.device:
                if not lies_here(x):  # DLPack orders the streams of both, also of those that give none by the interface
                    x = cupy.from_dlpack(x) if hasattr(x, "__dlpack__") else cupy.asarray(x)
                elif move:
                    x = cupy.asarray(as_numpy(x))
        self.require_array(x, name)
        return x

    def require_array(self, x: Any, name: str) -> None:
        if not isinstance(x, self.xp.ndarray):
            raise TypeError(f"{name} is {type(x).__name__}: {self.arrays} is expected, or another array on that GPU")
        if x.device != self.device:
            raise ValueError(f"{name} lies on GPU {x.device.id}: {self.device.id} is needed, as for the sparse matrix")

    def empty(self, shape: Any, dtype: Any) -> Any:
        with self.device:
            return self.xp.empty(shape, dtype)

    def address(self, array: Any) -> int:
        return array.data.ptr


_LIBRARIES: tuple[tuple[str, tuple[str, ...], Callable[..., Home]], ...] = (
    ("torch", ("Tensor",), Torch), ("cupyx.scipy.sparse", ("spmatrix", "sparray"), Cupy))


def _kinds(module: str, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The classes of a module, which is only there if somebody has imported it."""
    there = sys.modules.get(module)
    return tuple(getattr(there, name, ()) for name in names) if there else ()


def is_sparse(x: Any) -> bool:
    """Whether this is a sparse matrix or tensor of one of the three libraries."""
    if ss.issparse(x):
        return True
    if isinstance(x, _kinds("torch", ("Tensor",))):
        return not str(x.layout).endswith("strided")
    return isinstance(x, _kinds("cupyx.scipy.sparse", ("spmatrix", "sparray")))


def home_of(matrices: dict[str, Any], others: dict[str, Any] | None = None, device: str | None = None) -> Home:
    """Who has matrices, by the names of the arguments: scipy, or torch or cupy, which the caller has imported then.

    The values of `others`, such as masks, do not decide the type of the result. A device is for matrices of scipy.
    """
    others = others or {}
    given = [*matrices.values(), *others.values()]
    for module, names, home in _LIBRARIES:
        kinds = _kinds(module, names)
        theirs = [isinstance(m, kinds) for m in given] if kinds else ()
        if not any(theirs):
            continue
        if not all(theirs):
            raise TypeError(f"matrices of {' and '.join(type(m).__module__ for m in given)}: all must be of one "
                            "library")
        if device is not None:
            raise ValueError(f"device is {device!r}: that is for matrices of scipy; tensors and matrices of cupy are "
                             "computed where they lie")
        return home(matrices, others)
    return Scipy(matrices, others, device)


__all__ = ["home_of", "is_sparse"]
