"""Sparse matrices of torch: patterns with values, made from edge lists, sparse tensors and matrices of scipy."""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
import torch
from torch import Tensor

from .. import _abi
from .._core import F8, lib, whole
from .._matrix import as_csr
from ._ops import Pattern, _session, _space, require_tensor  # which also registers the operators

_INDICES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class SparseMatrix:
    """A sparse matrix for products with tensors, on the device of its tensors.

    Plans for products are made at their first use and are kept, so make a matrix once and multiply often. Matrices of
    one pattern (`t`, `with_values`) share them. Values may change in place, but not through ``values.data``, which
    torch does not count as a change. Make matrices outside of compiled code, and call `spmm` in it rather than ``@``.

    Attributes
    ----------
    shape : tuple of two int
    values : Tensor or None
        A number for each entry, in the order of the pattern's rows. None stands for ones. If it requires a gradient, it
        gets one.
    """

    def __init__(self, pattern: Pattern, values: Optional[Tensor] = None, *, transposed: bool = False,
                 counts: Optional[Tensor] = None) -> None:
        self.pattern, self.values, self.transposed = pattern, values, transposed
        self.counts = counts  # the number of edges of each entry, if an edge list names some twice
        self._number, self._entries = pattern.number, len(pattern.columns)
        self.shape = pattern.shape[::-1] if transposed else pattern.shape
        if not torch.compiler.is_compiling():
            for lasting in (values, counts):
                if lasting is not None:
                    pattern.expect(lasting)

    def __reduce__(self) -> Any:
        return _remake, (self.pattern, self.values, self.transposed, self.counts)

    @classmethod
    def from_edge_index(cls, edge_index: Tensor, weight: Optional[Tensor] = None,
                        size: Union[int, tuple[int, int], None] = None) -> SparseMatrix:
        """Make a matrix from a list of edges, as PyG has it.

        Parameters
        ----------
        edge_index : Tensor of int64, 2 x edges
            Sources and targets. Row i of the matrix has the sources of the edges that end at node i.
        weight : Tensor, optional
            A number for each edge, which may require a gradient. Weights of equal edges are added; without weights
            such edges count as often as they are there.
        size : int or (int, int), optional
            The number of nodes, or of sources and of targets. The largest node and one more by default.

        Returns
        -------
        SparseMatrix
            Targets x sources.
        """
        require_tensor(edge_index, "edge_index")
        if weight is not None:
            require_tensor(weight, "weight")
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype not in _INDICES:
            raise ValueError(f"edge_index is {edge_index.dtype} of the shape {tuple(edge_index.shape)}: whole numbers "
                             "of the shape (2, edges) are expected")
        if weight is not None and weight.shape != edge_index.shape[1:]:
            raise ValueError(f"weight has the shape {tuple(weight.shape)}: {edge_index.shape[1]} edges have a number "
                             "each")
        if size is None:
            size = int(edge_index.max()) + 1 if edge_index.numel() else 0
        sources, targets = size if isinstance(size, (tuple, list)) and len(size) == 2 else (size, size)
        sources, targets = whole(sources, "size"), whole(targets, "size")
        if not 0 <= min(sources, targets) <= max(sources, targets) < 2**31:
            raise ValueError(f"size is {size}: 0 to {2**31 - 1} nodes are possible")
        if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index[0].max()) >= sources or
                                   int(edge_index[1].max()) >= targets):
            raise ValueError(f"edge_index has a node outside {sources} sources and {targets} targets")
        offsets, columns, entry = _sorted(edge_index[1], edge_index[0], targets, sources)
        pattern = Pattern(offsets, columns, sources)
        if len(columns) == edge_index.shape[1]:  # each entry is one edge
            if weight is None:
                return cls(pattern)
            order = torch.empty_like(entry).scatter_(0, entry, torch.arange(len(entry), device=entry.device))
            return cls(pattern, weight[order])
        counts = torch.zeros(len(columns), device=entry.device).index_add_(0, entry, torch.ones(
            len(entry), device=entry.device))
        if weight is not None:
            weight = weight.new_zeros(len(columns)).index_add(0, entry, weight)
        return cls(pattern, weight, counts=counts)

    @classmethod
    def from_torch(cls, tensor: Tensor) -> SparseMatrix:
        """Make a matrix from a sparse tensor (CSR, CSC or COO) of two dimensions. Its values keep their gradients."""
        require_tensor(tensor, "tensor")
        if tensor.layout == torch.sparse_csc:
            return cls.from_torch(torch.sparse_csr_tensor(tensor.ccol_indices(), tensor.row_indices(), tensor.values(),
                                                          tensor.shape[::-1])).t()
        if tensor.layout == torch.sparse_coo:
            tensor = tensor.coalesce()
            row, column = tensor.indices()
            offsets = _offsets(row, tensor.shape[0])
        elif tensor.layout == torch.sparse_csr:
            offsets, column = tensor.crow_indices(), tensor.col_indices()
        else:
            raise TypeError(f"a tensor of the layout {tensor.layout}: sparse CSR, CSC and COO tensors are possible")
        if tensor.dim() != 2 or tensor.values().dim() != 1:
            raise ValueError(f"a sparse tensor of the shape {tuple(tensor.shape)}: two dimensions, and a number for "
                             "each entry, are possible")
        check_sound(offsets.long(), column, tensor.shape[1])
        pattern = Pattern(offsets.long().contiguous(), column.int().contiguous(), tensor.shape[1])
        return cls(pattern, tensor.values())

    @classmethod
    def from_scipy(cls, matrix: Any, device: Any = "cpu") -> SparseMatrix:
        """Make a matrix from one of scipy. Whole numbers and booleans become float32."""
        csr = as_csr(matrix, "matrix")
        nnz = int(csr.indptr[-1])
        data = csr.data[:nnz]
        if data.dtype.kind not in "biuf":
            raise NotImplementedError(f"values of type {data.dtype} are not supported: real numbers are")
        values = np.ascontiguousarray(data, F8 if data.dtype == F8 else np.float32)
        pattern = Pattern(torch.from_numpy(csr.indptr.astype(np.int64)).to(device),
                          torch.from_numpy(csr.indices[:nnz].astype(np.int32)).to(device), csr.shape[1])
        return cls(pattern, torch.from_numpy(values.copy()).to(device))

    @property
    def device(self) -> torch.device:
        """Where the matrix lies."""
        return self.pattern.columns.device

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self._entries

    def t(self) -> SparseMatrix:
        """The transpose, of the same tensors and plans."""
        return SparseMatrix(self.pattern, self.values, transposed=not self.transposed, counts=self.counts)

    def with_values(self, values: Optional[Tensor]) -> SparseMatrix:
        """The same pattern with other values, in the order of `values`."""
        if values is not None:
            require_tensor(values, "values")
        if values is not None and values.shape != (self.nnz,):
            raise ValueError(f"values have the shape {tuple(values.shape)}: the matrix has {self.nnz} entries")
        return SparseMatrix(self.pattern, values, transposed=self.transposed, counts=self.counts)

    def to(self, device: Any) -> SparseMatrix:
        """The matrix on another device."""
        if torch.device(device) == self.device:
            return self
        pattern = Pattern(self.pattern.offsets.to(device), self.pattern.columns.to(device), self.pattern.shape[1])
        return SparseMatrix(pattern, None if self.values is None else self.values.to(device),
                            transposed=self.transposed, counts=None if self.counts is None else self.counts.to(device))

    def edge_index(self) -> Tensor:
        """The entries as a list of edges, columns (sources) above rows (targets), in the order of `values`."""
        ends = (self.pattern.rows(), self.pattern.columns.long())
        return torch.stack(ends if self.transposed else ends[::-1])

    def degrees(self) -> Tensor:
        """The number of edges of each row."""
        if self.counts is None and not self.transposed:
            return self.pattern.offsets.diff()
        ones = torch.ones(self.nnz, device=self.device) if self.counts is None else self.counts
        return torch.zeros(self.shape[0], device=self.device).index_add_(0, self.edge_index()[1], ones)

    def __matmul__(self, x: Tensor) -> Tensor:
        return spmm(self, x)

    def __repr__(self) -> str:
        return (f"SparseMatrix({self.shape[0]} x {self.shape[1]}, {self.nnz} entries, "
                f"{'ones' if self.values is None else self.values.dtype}, {self.device})")


def _remake(pattern: Pattern, values: Optional[Tensor], transposed: bool, counts: Optional[Tensor]) -> SparseMatrix:
    return SparseMatrix(pattern, values, transposed=transposed, counts=counts)


def _offsets(rows: Tensor, count: int) -> Tensor:
    """The row offsets of ascending rows."""
    return torch.searchsorted(rows.contiguous(), torch.arange(count + 1, device=rows.device))


def check_sound(offsets: Tensor, columns: Tensor, cols: int) -> None:
    """Refuses what torch does not check: offsets and columns outside the matrix, and columns that do not ascend."""
    wrong = (offsets[0] != 0) | (offsets[-1] != len(columns)) | (offsets.diff() < 0).any()
    if columns.numel():
        wrong = wrong | (columns.min() < 0) | (columns.max() >= cols)
    if bool(wrong):
        raise ValueError(f"the tensor contradicts itself: its offsets must ascend from 0 to {len(columns)}, and its "
                         f"columns be below {cols}")
    if columns.numel() and bool(((columns[1:] <= columns[:-1]) & _within(offsets, len(columns))).any()):
        raise ValueError("the columns of the tensor do not ascend within its rows")


def _within(offsets: Tensor, count: int) -> Tensor:
    """For each entry but the first whether its row is that of the entry before."""
    first = torch.zeros(count + 1, dtype=torch.bool, device=offsets.device)
    first[offsets[:-1]] = True
    return ~first[1:count]


def _sorted(row: Tensor, column: Tensor, rows: int, cols: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row offsets and columns of a list of coordinates, and the entry of each coordinate."""
    count, device = len(row), row.device
    if count:
        places = torch.arange(count, device=device, dtype=torch.float64)
        offsets, columns, order = _assembled(row, column, places, rows, cols)
        if len(columns) == count:
            entry = torch.empty(count, dtype=torch.int64, device=device)
            return offsets, columns, entry.scatter_(0, order.long(), torch.arange(count, device=device))
    keys, entry = torch.unique(row * cols + column, return_inverse=True)
    return _offsets(keys // max(cols, 1), rows), (keys % max(cols, 1)).int(), entry


def _assembled(row: Tensor, column: Tensor, values: Tensor, rows: int, cols: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row offsets, columns and values of triples in order, made where they are; at each place the first value."""
    row, column = row.long().contiguous(), column.long().contiguous()
    triples = _abi.sp_coo(rows, cols, len(row), row.data_ptr(), column.data_ptr(), values.data_ptr(), _abi.SP_I64,
                          _abi.SP_F64, _space(row.device))
    made = _abi.sp_csr()
    with _session(row.device) as session:
        session.check(lib.sp_csr_from_coo(session.handle, triples, _abi.SP_COMBINE_FIRST, False, made))
        try:
            parts = []
            for pointer, count, dtype in ((made.row_offsets, rows + 1, torch.int64),
                                          (made.col_indices, made.nnz, torch.int32),
                                          (made.values, made.nnz, torch.float64)):
                part = torch.empty(count, dtype=dtype, device=row.device)
                if count:
                    session.check(lib.sp_array_copy(session.handle, count, part.element_size(), part.data_ptr(),
                                                    made.space, pointer, made.space))
                parts.append(part)
        finally:
            lib.sp_csr_free(session.handle, made)
    return parts[0], parts[1], parts[2]


def _work_type(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def mean_of(a: SparseMatrix, sums: Tensor) -> Tensor:
    """The means of the rows of a product with a matrix; a row without entries stays 0."""
    return sums / a.degrees().clamp(min=1).to(sums.dtype)[:, None]


def spmm(a: SparseMatrix, x: Tensor, reduce: str = "sum") -> Tensor:
    """Multiply a sparse matrix and a dense tensor.

    Parameters
    ----------
    a : SparseMatrix
    x : Tensor
        float32, float64, float16 or bfloat16, with a row for each column of `a`. The result has its type; sums are
        float32, for float64 they are float64. A tensor of one dimension gives one. One of three dimensions, (batch,
        rows, features), gives as many products; it is copied, so that all features of a row take one product.
    reduce : {"sum", "mean", "max", "min"}
        How the rows of x that a row of `a` names, times its values, are combined. A row without entries gives 0.

    Returns
    -------
    Tensor
        With gradients for `x` and for the values of `a`.
    """
    require_tensor(x, "x")
    if reduce in ("add", "sum", "mean"):
        values = a.values if a.values is not None else a.counts
    elif reduce in ("max", "min"):
        if a.counts is not None and a.values is not None:
            raise NotImplementedError(f"the {reduce} over edges that are there twice, with weights, is not supported: "
                                      "coalesce the edges")
        values = a.values
    else:
        raise ValueError(f"reduce is {reduce!r}: sum, mean, max and min are possible")
    if x.dim() == 3:
        flat = x.transpose(0, 1).reshape(x.shape[1], x.shape[0] * x.shape[2])
        return spmm(a, flat, reduce).reshape(a.shape[0], x.shape[0], x.shape[2]).transpose(0, 1)
    columns = x[:, None] if x.dim() == 1 else x
    if values is not None:
        values = values.to(_work_type(x))
    if reduce in ("max", "min"):
        y = torch.ops.spgraph.spmm_extreme(columns, values, a._number, a.shape[0], a.transposed, reduce)[0]
    else:
        y = torch.ops.spgraph.spmm(columns, values, a._number, a.shape[0], a.transposed)
    if reduce == "mean":
        y = mean_of(a, y)
    return y[:, 0] if x.dim() == 1 else y


def sddmm(a: SparseMatrix, x: Tensor, y: Tensor) -> Tensor:
    """The sampled product x @ y.T: x[i] · y[j] for each entry (i, j) of a matrix.

    Parameters
    ----------
    a : SparseMatrix
        Its values are not read.
    x, y : Tensor
        float32 or float64, with a row for each row, for each column of `a`.

    Returns
    -------
    Tensor
        A number for each entry, in the order of ``a.values``, with gradients for `x` and `y`.
    """
    if a.transposed:
        x, y = y, x
    return torch.ops.spgraph.sddmm(x, y, a._number, a._entries)


__all__ = ["SparseMatrix", "sddmm", "spmm"]
