"""Sparse matrices of torch and cupy: lent where they lie, with results of the same kind.

Work on a GPU is ordered after and before that of the stream that is current in torch or cupy. Results are in memory of
torch or cupy, so these free them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np

from . import _abi
from ._core import I4, I8, Session, lib

_TYPES = {"float32": _abi.SP_F32, "float64": _abi.SP_F64}
_DEFAULT_STREAM = 1  # cudaStreamLegacy, where the interface of arrays has 0


class Home:
    """Who has the matrices of a call: the parts that differ between torch and cupy."""

    device: Any
    wide: bool  # whether results have indices of 64 bits

    def __init__(self) -> None:
        self.keep: list[Any] = []
        self.space = _abi.SP_DEVICE

    def parts(self, matrix: Any, name: str) -> tuple[Any, Any, Any]:
        """Row offsets of 64 bits, columns of 32 bits and values, of a matrix with ascending columns."""
        raise NotImplementedError

    def session(self) -> Any:
        """The time of a call, in the order of the current stream."""
        raise NotImplementedError

    def empty(self, count: int, dtype: Any) -> Any:
        raise NotImplementedError

    def assemble(self, shape: tuple[int, int], offsets: Any, columns: Any, values: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def address(array: Any) -> int:
        raise NotImplementedError

    def lend(self, matrix: Any, name: str, pattern: bool = False) -> _abi.sp_csr:
        """The library's struct of a matrix."""
        offsets, columns, values = arrays = self.parts(matrix, name)
        self.keep.append(arrays)
        type_name = str(values.dtype).rpartition(".")[2]
        if type_name not in _TYPES and not pattern:
            raise NotImplementedError(f"{name} has values of type {type_name}: float32 and float64 are supported here")
        return _abi.sp_csr(matrix.shape[0], matrix.shape[1], len(columns), self.address(offsets),
                           self.address(columns), None if pattern else self.address(values), _TYPES.get(type_name, _abi.SP_F64),
                           self.space)

    def run(self, call: Callable[[Session, _abi.sp_csr], int]) -> Any:
        """What a call of the library makes, as a matrix of this home."""
        c = _abi.sp_csr()
        with self.session() as session:
            session.check(call(session, c))
            try:
                value_type = np.dtype(np.float32 if c.value_type == _abi.SP_F32 else np.float64)
                offsets = self._copy(session, c.row_offsets, c.rows + 1, I8, c.space)
                columns = self._copy(session, c.col_indices, c.nnz, I4, c.space)
                values = self._copy(session, c.values, c.nnz, value_type, c.space)
                shape = (c.rows, c.cols)
            finally:
                lib.sp_csr_free(session.handle, c)
        return self.assemble(shape, offsets, columns, values)

    def _copy(self, session: Session, pointer: int | None, count: int, dtype: Any, space: int) -> Any:
        made = self.empty(count, dtype)
        if pointer is None:  # the values of a pattern
            made[:] = 1
        elif count:
            session.check(lib.sp_array_copy(session.handle, count, dtype.itemsize, self.address(made), self.space,
                                            pointer, space))
        return made


class Torch(Home):
    """Sparse CSR tensors, on the CPU or a GPU."""

    def __init__(self, matrices: list[Any]) -> None:
        super().__init__()
        self.device = matrices[0].device
        if any(m.device != self.device for m in matrices):
            raise ValueError(f"the tensors lie on {', '.join(str(m.device) for m in matrices)}: one device is needed")
        if any(m.requires_grad for m in matrices):
            raise NotImplementedError("products of two sparse tensors have no gradients: detach() them")
        self.wide = True
        self.space = _abi.SP_HOST if self.device.type == "cpu" else _abi.SP_DEVICE

    def parts(self, matrix: Any, name: str) -> tuple[Any, Any, Any]:
        import torch

        from .torch._matrix import check_sound

        if matrix.layout != torch.sparse_csr or matrix.dim() != 2 or matrix.values().dim() != 1:
            raise TypeError(f"{name} is a tensor of the layout {matrix.layout} and the shape {tuple(matrix.shape)}: "
                            "sparse CSR tensors of two dimensions are possible (to_sparse_csr)")
        offsets, columns = matrix.crow_indices(), matrix.col_indices()
        self.wide = self.wide and columns.dtype == torch.int64
        offsets, columns = offsets.long().contiguous(), columns.int().contiguous()
        check_sound(offsets, columns, matrix.shape[1])
        return offsets, columns, matrix.values().contiguous()

    def session(self) -> Any:
        from .torch._ops import _session

        return _session(self.device)

    def empty(self, count: int, dtype: Any) -> Any:
        import torch

        return torch.empty(count, dtype=getattr(torch, str(dtype)), device=self.device)

    def assemble(self, shape: tuple[int, int], offsets: Any, columns: Any, values: Any) -> Any:
        import torch

        index = torch.int64 if self.wide or len(columns) >= 2**31 else torch.int32
        return torch.sparse_csr_tensor(offsets.to(index), columns.to(index), values, shape, check_invariants=False)

    @staticmethod
    def address(array: Any) -> int:
        return array.data_ptr()


class Cupy(Home):
    """Matrices and arrays of cupyx.scipy.sparse."""

    def __init__(self, matrices: list[Any]) -> None:
        from cupyx.scipy import sparse

        super().__init__()
        self.device = matrices[0].data.device
        self.kind = sparse.csr_array if isinstance(matrices[0], getattr(sparse, "sparray", ())) else sparse.csr_matrix

    def parts(self, matrix: Any, name: str) -> tuple[Any, Any, Any]:
        csr = matrix.tocsr()
        if csr.data.device != self.device:
            raise ValueError(f"{name} lies on GPU {csr.data.device.id}: {self.device.id} is needed, as for a")
        if not csr.has_canonical_format:
            csr = csr.copy() if csr is matrix else csr
            csr.sum_duplicates()
        return csr.indptr.astype(I8), csr.indices.astype(I4, copy=False), csr.data

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        import cupy

        with self.device, Session(f"cuda:{self.device.id}") as session:
            stream = cupy.cuda.get_current_stream().ptr or _DEFAULT_STREAM
            session.check(lib.sp_context_set_stream(session.handle, stream))
            try:
                yield session
            finally:
                lib.sp_context_set_stream(session.handle, None)

    def empty(self, count: int, dtype: Any) -> Any:
        import cupy

        return cupy.empty(count, dtype)

    def assemble(self, shape: tuple[int, int], offsets: Any, columns: Any, values: Any) -> Any:
        index = I8 if len(columns) >= 2**31 else I4
        made = self.kind(shape, dtype=values.dtype)
        made.indptr, made.indices, made.data = offsets.astype(index), columns.astype(index, copy=False), values
        made.has_canonical_format = True
        return made

    @staticmethod
    def address(array: Any) -> int:
        return array.__cuda_array_interface__["data"][0]


def refuse_device(device: str | None) -> None:
    """Tensors and matrices of cupy are on a device already."""
    if device is not None:
        raise ValueError(f"device is {device!r}: that is for matrices of scipy; tensors and matrices of cupy are "
                         "computed where they lie")


def home_of(*matrices: Any) -> Home | None:
    """Who has the matrices: torch or cupy, which the caller has imported then; None for scipy. None is left out."""
    given = [m for m in matrices if m is not None]
    for module, names, home in (("torch", ("Tensor",), Torch), ("cupyx.scipy.sparse", ("spmatrix", "sparray"), Cupy)):
        kinds = tuple(getattr(sys.modules.get(module), name, ()) for name in names)
        theirs = [isinstance(m, kinds) for m in given]
        if all(theirs):
            return home(given)
        if any(theirs):
            raise TypeError(f"matrices of {' and '.join(type(m).__module__ for m in given)}: all must be of one "
                            "library")
    return None
