"""A cupy whose arrays lie in host memory: runs what spgraph does with matrices of cupy where there is no GPU."""

import sys
import types

import numpy as np
import scipy.sparse as ss

from spgraph import _abi, _core, _device


class Device:
    """GPU 0, which is current between enter and exit."""

    id = 0
    depth = 0

    def __enter__(self):
        Device.depth += 1

    def __exit__(self, *_):
        Device.depth -= 1


class ndarray(np.ndarray):
    device = Device()

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.__array_interface__["data"][0])

    @property
    def __cuda_array_interface__(self):
        return self.__array_interface__

    def __array_finalize__(self, _):
        """Made of anything."""

    def get(self):
        return np.array(self)


class Sparse:
    def __setattr__(self, name, value):
        super().__setattr__(name, asarray(value) if name in ("data", "indices", "indptr") else value)

    def get(self):
        return ss.csr_matrix((self.data.get(), self.indices.get(), self.indptr.get()), self.shape)


class csr_matrix(Sparse, ss.csr_matrix):
    pass


class csr_array(Sparse, ss.csr_array):
    pass


def asarray(x, dtype=None):
    return np.asarray(getattr(x, "given", x), dtype).view(ndarray)


def install(monkeypatch):
    """Puts it into the place of cupy. Returns the streams in which the library has worked."""
    streams = []

    class Library:
        @staticmethod
        def sp_context_set_stream(_, stream):
            assert Device.depth > 0
            streams.append(stream)
            return 0

    def session(device, context=None):
        assert device == "cuda:0"
        return _core.Session("cpu", context)

    def context(device):
        assert device == "cuda:0"
        return _core.Context("cpu")

    stream = types.SimpleNamespace(ptr=77, is_capturing=lambda: False)
    cupy = types.ModuleType("cupy")
    cupy.ndarray, cupy.asarray, cupy.from_dlpack = ndarray, asarray, asarray
    cupy.ascontiguousarray = lambda x, dtype: np.ascontiguousarray(x, dtype).view(ndarray)
    cupy.empty = lambda shape, dtype: np.empty(shape, dtype).view(ndarray)
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    sparse = types.ModuleType("cupyx.scipy.sparse")
    sparse.csr_matrix = sparse.spmatrix = csr_matrix
    sparse.csr_array = sparse.sparray = csr_array
    scipy = types.ModuleType("cupyx.scipy")
    scipy.sparse = sparse
    for name, module in (("cupy", cupy), ("cupyx", types.ModuleType("cupyx")), ("cupyx.scipy", scipy),
                         ("cupyx.scipy.sparse", sparse)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_device.Cupy, "space", _abi.SP_HOST)
    for name, made in (("lib", Library), ("Session", session), ("Context", context)):
        monkeypatch.setattr(_device, name, made)
    return streams
