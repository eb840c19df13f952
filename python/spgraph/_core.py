"""The library, its contexts and errors, and what passes between NumPy's memory and its own."""

from __future__ import annotations

import collections
import ctypes
import operator
import os
import signal
import threading
from typing import Any, NoReturn

import numpy as np

from . import _abi

_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libspgraph.so")


def _open() -> ctypes.CDLL:
    """Opens the library, with threads of OpenMP that sleep while they wait.

    Threads that spin cost whole time slices if other processes need the processors: on two processors with six other
    processes a product of 1.5 ms took 60 ms. The wheel's OpenMP reads the variable as it is loaded, and nobody else.
    """
    chosen = "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ
    if not chosen:
        os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        return ctypes.CDLL(_PATH)
    finally:
        if not chosen:
            del os.environ["OMP_WAIT_POLICY"]


def _require_same(what: str, library: object, package: object) -> None:
    if library != package:
        raise ImportError(f"spgraph: {_PATH} has {what} {library}, this package needs {package}; install the wheel "
                          "again")


def _check(library: ctypes.CDLL) -> None:
    """Refuses a library made from other headers than the package: calls would read and write beside its structs."""
    try:
        library.sp_version.restype = ctypes.c_char_p
        library.sp_abi.restype = ctypes.c_int
        library.spgraph_struct_sizes.restype = ctypes.POINTER(ctypes.c_int32)
    except AttributeError as failure:
        raise ImportError(f"spgraph: {_PATH} is not the library of this package ({failure}); install the wheel "
                          "again") from failure
    _require_same("version", library.sp_version().decode(), _abi.SP_VERSION)
    _require_same("ABI", library.sp_abi(), _abi.SP_ABI)
    sizes = library.spgraph_struct_sizes()  # a 0 ends them, which is no struct's size
    for i, struct in enumerate(_abi.STRUCTS):
        _require_same(f"a struct {struct.__name__} of size", sizes[i], ctypes.sizeof(struct))
    if sizes[len(_abi.STRUCTS)] != 0:
        raise ImportError(f"spgraph: {_PATH} has more structs than this package knows; install the wheel again")


def _load() -> ctypes.CDLL:
    try:
        library = _open()
    except OSError as failure:
        raise ImportError(f"spgraph: {_PATH} cannot be loaded ({failure}); install the wheel: make wheel") from failure
    _check(library)
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    library.spgraph_interrupt_begin.restype = ctypes.c_void_p
    library.spgraph_interrupt_begin.argtypes = library.spgraph_interrupt_end.argtypes = [ctypes.c_void_p]
    return library


lib = _load()

# ---- errors ------------------------------------------------------------------------------------------------

_EXCEPTIONS: dict[int, type[BaseException]] = {
    _abi.SP_ERROR_ARGUMENT: ValueError,
    _abi.SP_ERROR_MATRIX: ValueError,
    _abi.SP_ERROR_NOT_FINITE: ValueError,
    _abi.SP_ERROR_OVERFLOW: OverflowError,
    _abi.SP_ERROR_HOST_MEMORY: MemoryError,
    _abi.SP_ERROR_DEVICE_MEMORY: MemoryError,
    _abi.SP_ERROR_UNSUPPORTED: NotImplementedError,
    _abi.SP_ERROR_INTERRUPTED: KeyboardInterrupt,
}


def fail(status: int, handle: ctypes.c_void_p | None) -> NoReturn:
    """Raises the exception of a status, with the sentence of the context."""
    sentence = lib.sp_last_error(handle).decode(errors="replace")
    raise _EXCEPTIONS.get(status, RuntimeError)(sentence or lib.sp_status_string(status).decode())


# ---- arguments ---------------------------------------------------------------------------------------------


def whole(value: Any, name: str) -> int:
    """A whole number that the library's type holds: ctypes would drop the bits of larger ones."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: a whole number is expected") from None
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"{name} is {number}: whole numbers of 64 bits are possible")
    return number


def real(value: Any, name: str) -> float:
    """A number as a float, but no text, which float() takes."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} is {value!r}: a number is expected")


# ---- contexts ----------------------------------------------------------------------------------------------


class Unique:
    """What has a handle of the library, which a copy would free again."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} can be neither copied nor pickled: make another one")


class Context(Unique):
    """A context of the library with its interrupt flag. One thread at a time uses it."""

    __slots__ = ("handle", "flag", "address", "key")

    def __init__(self, device: str = "cpu", device_allocator: _abi.sp_device_allocator | None = None) -> None:
        self.key = (device, _threads, device_allocator is not None)
        self.flag = ctypes.c_int(0)
        self.address = ctypes.addressof(self.flag)
        self.handle = ctypes.c_void_p()
        options = _abi.sp_context_options(device=device.encode(), threads=_threads, interrupt=self.address)
        if device_allocator is not None:
            options.device_allocator = ctypes.pointer(device_allocator)
        status = lib.sp_context_create(options, ctypes.byref(self.handle))
        if status:
            fail(status, None)

    def __del__(self, release: Any = lib.sp_context_destroy) -> None:
        release(self.handle)


_idle: dict[tuple[str, int, bool], list[Context]] = {}
_threads = 0


def set_threads(threads: int) -> None:
    """Set the number of threads of all later calls.

    Parameters
    ----------
    threads : int
        0 means all processors, which is the default. Results have the same bits for any number.
    """
    global _threads
    number, most = whole(threads, "threads"), max(1024, os.cpu_count() or 1)
    if not 0 <= number <= most:
        raise ValueError(f"{number} threads: 0 to {most} are possible")
    _threads = number


def device_name(device: Any) -> str:
    """A device of the caller; the CPU by default."""
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device is {device!r}: a text such as 'cpu', 'cuda' or 'cuda:1' is expected")
    return "cpu" if device is None else device


def get_threads() -> int:
    """Return the number of threads that calls use.

    Returns
    -------
    int
        1 in a forked child whose parent had several threads: OpenMP's threads do not survive a fork.
    """
    with Session() as session:
        return int(lib.sp_context_threads(session.handle))


class Session:
    """The time of one or more calls on one context, during which Ctrl-C sets the context's flag.

    Contexts are kept for later sessions; each thread has one of its own as long as it is in a session.
    """

    __slots__ = ("context", "handle", "outer", "watches", "device", "keep")

    def __init__(self, device: str | None = None, context: Context | None = None) -> None:
        self.device = device_name(device)
        self.context: Any = context
        self.keep = context is not None
        self.watches = False

    def __enter__(self) -> Session:
        if self.context is None:
            key = (self.device, _threads, False)
            try:
                self.context = _idle[key].pop()
            except (KeyError, IndexError):
                self.context = Context(self.device)
        self.handle = self.context.handle
        self.context.flag.value = 0
        if (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            self.outer = lib.spgraph_interrupt_begin(self.context.address)
            self.watches = True
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if self.watches:
            lib.spgraph_interrupt_end(self.outer)
        interrupted = self.watches and self.context.flag.value and kind is None
        if not self.keep:
            _idle.setdefault(self.context.key, []).append(self.context)
        if interrupted:
            raise KeyboardInterrupt("interrupted")

    def check(self, status: int) -> None:
        """Raises the exception of a status that is not success."""
        if status:
            fail(status, self.handle)


def trim_idle() -> None:
    """Gives device memory that contexts keep back. Those that other threads are using keep theirs."""
    for contexts in list(_idle.values()):
        taken: list[Context] = []
        try:
            while contexts:
                taken.append(contexts.pop())
                status = lib.sp_context_trim(taken[-1].handle)
                if status:
                    fail(status, taken[-1].handle)
        except IndexError:
            pass  # another thread took the last one
        finally:
            contexts += taken


# Plans on GPUs with contexts of their own, and how to free them. The collector may end plans while a CUDA graph is
# captured, which must not free: a later call on a GPU does.
unused: collections.deque[tuple[Any, Any, Context]] = collections.deque()


def free_unused() -> None:
    """Frees the plans that have ended."""
    while unused:
        try:
            free, plan, context = unused.popleft()
        except IndexError:
            return  # another thread took the last one
        free(plan)
        del context  # it ends with its plan


# ---- memory ------------------------------------------------------------------------------------------------


class Block(Unique):
    """An array of the library, which it frees when NumPy no longer needs it.

    It holds the library's context by itself, because the collector ends the objects of a cycle in any order.
    """

    __slots__ = ("context", "handle", "pointer", "__array_interface__", "__weakref__")

    def __init__(self, context: Context, pointer: int, count: int, dtype: np.dtype) -> None:
        lib.sp_context_retain(context.handle)
        self.context, self.handle, self.pointer = context, context.handle, pointer
        self.__array_interface__ = {"shape": (count,), "typestr": dtype.str, "data": (pointer, False), "version": 3}

    def __del__(self, free: Any = lib.sp_free, release: Any = lib.sp_context_destroy) -> None:
        if getattr(self, "handle", None):  # torch.compile makes objects without their parts
            free(self.handle, self.pointer)
            release(self.handle)


def own(context: Context, pointer: int, count: int, dtype: np.dtype) -> np.ndarray:
    """The library's array as NumPy's, which owns it from here on."""
    return np.asarray(Block(context, pointer, count, dtype))


def view(pointer: int | None, count: int, dtype: np.dtype) -> np.ndarray:
    """A copy of an array that stays the library's."""
    if count == 0 or not pointer:
        return np.empty(0, dtype)
    memory: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(memory, dtype).copy()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


I4, I8, F4, F8 = (np.dtype(name) for name in ("<i4", "<i8", "<f4", "<f8"))
