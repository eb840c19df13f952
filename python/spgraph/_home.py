"""Who has the matrices of a call: scipy, torch or cupy. Functions are written once, in terms of a `Home`.

Sparse matrices are lent where they lie, and results are of the same kind. Dense operands can come from any library:
they are taken by DLPack, the CUDA array interface or NumPy's.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _abi
from ._core import F4, F8, I4, I8, Context, Session, lib

_TYPES = {"float32": _abi.SP_F32, "float64": _abi.SP_F64}
_REAL = re.compile(r"(bool|u?int|b?float)\d*")
_WHOLE = re.compile(r"u?int\d+")
_HERE = (1, 3)  # devices of DLPack whose memory the processor reads: kDLCPU, kDLCUDAHost


class Home:
    """The matrices of a call and what differs between libraries: how arrays are read, made and assembled.

    Types are called by their names, such as "float32". `xp` is numpy or cupy; that of torch overrides what uses it.
    """

    xp: Any
    arrays: str  # what its dense arrays are, for messages
    space: int
    has_spare_room = False  # whether the arrays of a matrix may be longer than its number of entries
    whole = False  # whether values are whole numbers, which the library computes in float64
    compute: str  # the type in which the library works, and that of the result, if values are real
    result: str

    def __init__(self, matrices: dict[str, Any]) -> None:
        self.matrices = matrices
        self.keep: list[Any] = []  # arrays that are lent

    # ---- whole numbers, which only matrices of scipy have

    def largest(self, name: str) -> float:
        """The largest absolute value of a matrix of whole numbers."""
        return 0.0

    def require_exact(self, bound: float) -> None:
        """Refuses whole numbers whose result might be rounded."""

    def become_real(self) -> None:
        """From here on the result of whole numbers is float64."""

    def become(self, dtype: Any) -> None:
        """From here on values are of this type. Tensors and matrices of cupy keep theirs."""

    def require_finite(self, name: str) -> None:
        """Refuses infinite values and NaN in matrices of scipy."""

    # ---- sparse matrices

    def parts(self, name: str) -> tuple[Any, Any, Any]:
        """Row offsets of 64 bits, columns of 32 bits and values, of a matrix with ascending columns."""
        raise NotImplementedError

    def open(self, matrix: Any) -> tuple[Any, Any, Any] | None:
        """Offsets, columns and values of a matrix in compressed rows of this library as they are; None for others."""
        raise NotImplementedError

    def lend(self, name: str, pattern: bool = False) -> _abi.sp_csr:
        """The library's struct of a matrix, which is lent once."""
        shape = self.matrices[name].shape
        arrays = self.parts(name)
        del self.matrices[name]
        return self.lend_parts(shape, *arrays, name, pattern)

    def lend_parts(self, shape: Any, offsets: Any, columns: Any, values: Any, name: str,
                   pattern: bool = False) -> _abi.sp_csr:
        """The library's struct of arrays."""
        kind = self.type_of(values)
        if kind not in _TYPES and not pattern:
            raise NotImplementedError(f"{name} has values of type {kind}: float32 and float64 are supported here")
        self.keep += (offsets, columns, values)
        return _abi.sp_csr(shape[0], shape[1], len(columns), self.address(offsets), self.address(columns),
                           None if pattern else self.address(values), _TYPES.get(kind, _abi.SP_F64), self.space)

    # ---- calls

    def context(self) -> Context:
        """A context for a plan."""
        raise NotImplementedError

    def session(self, context: Context | None = None) -> Any:
        """The time of a call, in the order of the current stream."""
        raise NotImplementedError

    def release(self, free: Callable[[Any], None], plan: Any, context: Context) -> None:
        """Frees a plan: at once, or, on a GPU, when no other thread and no capture of a CUDA graph can be disturbed."""
        free(plan)

    def run(self, call: Callable[[Session, _abi.sp_csr], int], context: Context | None = None) -> Any:
        """What a call of the library makes, as a matrix of this home."""
        c = _abi.sp_csr()
        with self.session(context) as session:
            session.check(call(session, c))
            made = self.collect(session, c)
        return self.assemble(*made)

    def collect(self, session: Session, c: _abi.sp_csr) -> tuple[tuple[int, int], Any, Any, Any]:
        """The shape and the arrays of a result in memory of this home: copies, and the library's are freed."""
        try:
            value_type = F4 if c.value_type == _abi.SP_F32 else F8
            return ((c.rows, c.cols), self._copy(session, c.row_offsets, c.rows + 1, I8, c.space),
                    self._copy(session, c.col_indices, c.nnz, I4, c.space),
                    self._copy(session, c.values, c.nnz, value_type, c.space))
        finally:
            lib.sp_csr_free(session.handle, c)

    def _copy(self, session: Session, pointer: int | None, count: int, dtype: np.dtype, space: int) -> Any:
        made = self.empty(count, dtype.name)
        if pointer is None:  # the values of a pattern
            made[:] = 1
        elif count:
            session.check(lib.sp_array_copy(session.handle, count, dtype.itemsize, self.address(made), self.space,
                                            pointer, space))
        return made

    def assemble(self, shape: tuple[int, int], offsets: Any, columns: Any, values: Any) -> Any:
        raise NotImplementedError

    # ---- dense arrays

    def array(self, x: Any, name: str, move: bool = False) -> Any:
        """An array of this library, of any numbers that another library, or nobody, has made an array of.

        It must lie where the matrices do. With `move` one in host memory is copied there.
        """
        raise NotImplementedError

    def require_array(self, x: Any, name: str) -> None:
        """Refuses what is no array of this library where the matrices lie."""
        raise NotImplementedError

    def type_of(self, x: Any) -> str:
        return name_of(x.dtype)

    def steps(self, x: Any) -> tuple[int, ...] | None:
        """The distance of neighbours in each dimension, in elements; None if these are not aligned."""
        width, strides = x.itemsize, x.strides
        if any(step % width for step in strides):
            return None
        return tuple(step // width for step in strides)

    def cast(self, x: Any, dtype: str) -> Any:
        """The array, or a copy, by rows and of another type."""
        return self.xp.ascontiguousarray(x, dtype)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return self.xp.empty(shape, dtype)

    def address(self, array: Any) -> int:
        raise NotImplementedError

    def is_writable(self, array: Any) -> bool:
        return True

    def is_contiguous(self, array: Any) -> bool:
        """Whether an array lies in one piece, row by row."""
        return bool(array.flags.c_contiguous)

    def has_written(self, *arrays: Any) -> None:
        """Tells the arrays' library that their numbers have changed."""


class Target:
    """A matrix of the caller whose arrays a call fills: `struct`, in which nnz is the room for entries."""

    def __init__(self, home: Home, out: Any, shape: tuple[int, int]) -> None:
        parts = home.open(out)
        if parts is None or home.result not in _TYPES or home.type_of(parts[2]) != home.result:
            raise ValueError("out must be a matrix in compressed rows of the type of the result, float32 or float64, "
                             f"of the library of the operands; the result has {home.result}")
        if tuple(out.shape) != shape:
            raise ValueError(f"out has the shape {tuple(out.shape)}: the result has {shape}")
        if not all(home.is_writable(part) and home.is_contiguous(part) for part in parts):
            raise ValueError("the arrays of out must be writable, one number after another")
        self.home, self.out, self.parts = home, out, parts
        self.offsets, self.columns = (part if home.type_of(part) == dtype else home.empty(len(part), dtype)
                                      for part, dtype in zip(parts, ("int64", "int32")))
        self.struct = _abi.sp_csr(*shape, min(len(parts[1]), len(parts[2])), home.address(self.offsets),
                                  home.address(self.columns), home.address(parts[2]), _TYPES[home.result], home.space)

    def take(self) -> Any:
        """The matrix after the call."""
        room = min(len(self.parts[1]), len(self.parts[2]))
        if self.struct.nnz != room and not self.home.has_spare_room:
            raise ValueError(f"out has {room} entries: the result has {self.struct.nnz}")
        for made, part in zip((self.offsets, self.columns), self.parts):
            if made is not part:
                part[:] = made
        self.home.has_written(*self.parts)
        for flag in ("has_sorted_indices", "has_canonical_format"):
            if hasattr(type(self.out), flag):  # the matrix itself would look for an answer
                setattr(self.out, flag, True)
        return self.out


@functools.lru_cache(None)
def name_of(dtype: np.dtype) -> str:
    """The name of a type, which NumPy puts together each time."""
    return dtype.name


@functools.lru_cache(None)
def is_real(kind: str) -> bool:
    """Whether a name is that of a type of real numbers."""
    return _REAL.fullmatch(kind) is not None


def is_whole(kind: str) -> bool:
    """Whether a name is that of a type of whole numbers."""
    return _WHOLE.fullmatch(kind) is not None


def lies_here(x: Any) -> bool:
    """Whether the processor can read an array of any library."""
    if hasattr(x, "__cuda_array_interface__"):
        return False
    return not hasattr(x, "__dlpack_device__") or x.__dlpack_device__()[0] in _HERE


def as_numpy(x: Any) -> np.ndarray:
    """An array in host memory of any library, or a list of numbers, as NumPy's."""
    if hasattr(x, "__dlpack__") and not any(hasattr(x, name) for name in ("__array__", "__array_interface__")):
        return np.from_dlpack(x)
    made = np.asarray(x)
    return made if made.dtype.isnative else made.astype(made.dtype.newbyteorder("="))


def extent(home: Home, x: Any) -> tuple[int, int]:
    """Where an array in one piece begins and ends."""
    begin = home.address(x)
    return begin, begin + x.nbytes


def size(x: Any) -> int:
    return math.prod(x.shape)
