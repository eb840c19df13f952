"""How libsparse.py calls the library, watches what it writes, and runs its cases in forked children."""
import argparse
import collections
import ctypes as C
import json
import os
import re
import select
import signal
import tempfile
import traceback

import numpy as np

import libsparse_call as call
from libsparse_call import Csr, DenseArray, Failure, Matrix, Refused, STATUS, expect, one_of

libc = C.CDLL(None)
for function in (libc.malloc, libc.realloc):
    function.restype = C.c_void_p
libc.malloc.argtypes, libc.realloc.argtypes, libc.free.argtypes = [C.c_size_t], [C.c_void_p, C.c_size_t], [C.c_void_p]


def load(path):
    lib = C.CDLL(path)
    for name, letters in call.CALLS.items():
        getattr(lib, name).argtypes = [call.KINDS[letter] for letter in letters]
    for name in ("sp_last_error", "sp_version", "sp_status_string"):
        getattr(lib, name).restype = C.c_char_p
    for name in ("sp_spgemm_plan_info", "sp_spmm_plan_info"):
        getattr(lib, name).restype = C.c_void_p
    if hasattr(lib, "sp_context_interrupted"):  # younger than the others
        lib.sp_context_interrupted.argtypes, lib.sp_context_interrupted.restype = [C.c_void_p], C.c_bool
    lib.sp_free.argtypes = lib.sp_csr_free.argtypes = lib.sp_dense_free.argtypes = lib.sp_cbsr_free.argtypes = \
        [C.c_void_p] * 2
    return lib


class Env:
    """A context, and everything that was lent to it. `fail_at`: which allocation fails, with all that follow."""
    def __init__(self, lib, threads, mode="normal", fail_at=None, budget=0):
        self.lib, self.mode, self.kept, self.plans, self.cbsrs, self.owned = lib, mode, [], [], [], []
        self.live, self.fail_at, self.flag = set(), fail_at, C.c_int(0)
        options = call.ContextOptions(None, threads, budget, None, None, C.addressof(self.flag))
        device = C.create_string_buffer(b"cpu")
        options.device = C.addressof(device)
        if mode == "memory":
            options.allocator = C.addressof(self.allocator())
        self.kept += [options, device]
        self.context = C.c_void_p()
        expect(lib.sp_context_create(C.byref(options), C.byref(self.context)) == 0, "no context")
        expect(lib.sp_context_threads(self.context) == threads, "the context has other threads")
        self.armed = True
        self.flag.value = mode == "interrupt"
        if hasattr(lib, "sp_context_interrupted"):
            expect(lib.sp_context_interrupted(self.context) == (mode == "interrupt"), "sp_context_interrupted is wrong")

    def allocator(self):
        self.armed = False

        def allocate(_, size):
            if self.armed:
                self.fail_at -= 1
                if self.fail_at < 0:
                    return None
            pointer = libc.malloc(max(size, 1))
            self.live.add(pointer)
            return pointer

        def release(_, pointer):
            if pointer:
                self.live.discard(pointer)
                libc.free(pointer)

        def resize(_, pointer, size):
            if self.armed:
                self.fail_at -= 1
                if self.fail_at < 0:
                    return None
            moved = libc.realloc(pointer, max(size, 1))
            self.live.discard(pointer)
            self.live.add(moved)
            return moved
        functions = [C.CFUNCTYPE(C.c_void_p, C.c_void_p, C.c_size_t)(allocate),
                     C.CFUNCTYPE(None, C.c_void_p, C.c_void_p)(release),
                     C.CFUNCTYPE(C.c_void_p, C.c_void_p, C.c_void_p, C.c_size_t)(resize)]
        made = call.Allocator(C.cast(functions[0], C.c_void_p), C.cast(functions[1], C.c_void_p), None,
                              C.cast(functions[2], C.c_void_p))
        self.kept += [functions, made]
        return made

    def close(self):
        for kind, plan in self.plans:
            getattr(self.lib, f"sp_{kind}_plan_free")(plan)
        for kept in self.cbsrs:
            self.lib.sp_cbsr_free(self.context, C.byref(kept))
        for owned in self.owned:
            if isinstance(owned, Csr):
                self.lib.sp_csr_free(self.context, C.byref(owned))
            else:
                self.lib.sp_free(self.context, owned)
        self.lib.sp_context_destroy(self.context)

    def keep(self, x):
        """The address of a matrix, an array or a struct, which lives as long as the context."""
        made = x.struct() if isinstance(x, (Matrix, DenseArray)) else x
        self.kept += [x, made, x.v if isinstance(x, Matrix) else None]
        return made.ctypes.data if isinstance(made, np.ndarray) else C.addressof(made)

    def bytes_of(self, x):
        if isinstance(x, Matrix):
            return b"" if x.v is None else x.v.tobytes()
        if isinstance(x, DenseArray):
            return x.values.tobytes()
        return x.tobytes() if isinstance(x, np.ndarray) else bytes(x)

    def call(self, name, *arguments, out=(), empty=False):
        """Calls; outputs hold junk before, and still do if it fails. Inputs must stay as they are."""
        for x in out:
            if isinstance(x, Csr) and not any(bytes(x)) and name != "sp_spgemm_plan_execute":
                C.memset(C.byref(x), 0xab, C.sizeof(x))
            elif isinstance(x, C.c_void_p):
                x.value = 0xababab
        infos = [x for x in arguments if isinstance(x, (call.Info, call.ContractInfo))]
        inputs = [x for x in arguments if isinstance(x, (Matrix, DenseArray, np.ndarray)) and
                  not any(x is y for y in out)]
        before = [[self.bytes_of(x) for x in group] for group in (list(out) + infos, inputs)]
        status = self.bare(name, *arguments)
        expect(0 <= status < len(STATUS), f"status {status}")
        what = name + " " + STATUS[status]
        expect([self.bytes_of(x) for x in inputs] == before[1], f"{what}: an input changed")
        if status == 0:
            return
        said = self.lib.sp_last_error(self.context).decode()
        expect(said and "\n" not in said, f"{what}: no sentence, but {said!r}")
        if empty:
            expect(not out[0].value, f"{what} left the plan other than NULL: {said}")
        else:
            for x, old in zip(list(out) + infos, before[0]):
                expect(self.bytes_of(x) == old, f"{what} wrote to an output ({type(x).__name__}): {said}")
        allowed = {"memory": (5,), "interrupt": (10,), "budget": (5, 6)}.get(self.mode, ())
        expect(self.mode == "normal" or status in allowed, f"{what} with {self.mode}: {said}")
        raise Refused(f"{what}: {said}")

    call_plan = call

    def bare(self, name, *arguments):
        """Calls with matrices, arrays and structs turned into pointers; the status."""
        letters, given = call.CALLS[name], []
        for x in arguments:
            pointer = isinstance(x, (Matrix, DenseArray, np.ndarray, C.Structure))
            given.append(self.keep(x) if pointer else x)
        if letters[0] == "c":
            given.insert(0, self.context)
        return getattr(self.lib, name)(*[C.byref(x) if isinstance(x, C.c_void_p) and at and letters[at] == "p" else x
                                         for at, x in enumerate(given)])

    def refused(self, name, *arguments, statuses):
        status = self.bare(name, *arguments)
        expect(status in statuses, f"{name} said {STATUS[status]}, {STATUS[statuses[0]]} is right")
        expect(self.lib.sp_last_error(self.context), f"{name}: no sentence")

    def read(self, address, count, dtype):
        if not count:
            return np.zeros(0, dtype)
        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(C.string_at(address, size), dtype).copy()

    def free(self, made):
        self.lib.sp_csr_free(self.context, C.byref(made))
        expect(not any(bytes(made)), "sp_csr_free left the struct as it was")

    def read_dense(self, d):
        x = DenseArray(np.zeros((d.rows, d.cols)), d.stride, d.type)
        x.values[:] = self.read(d.values, d.rows * d.stride, x.values.dtype).reshape(d.rows, d.stride)
        self.lib.sp_dense_free(self.context, C.byref(d))
        return x.numbers()

    def cbsr(self, rows, cols, k, kind):
        made = call.Cbsr()
        self.call("sp_cbsr_create", rows, cols, k, kind, made)
        self.cbsrs.append(made)
        return made

    def read_cbsr(self, kept):
        kind = np.uint8 if kept.cols <= 256 else np.uint16
        arrays = [self.read(kept.columns, kept.rows * kept.k, kind),
                  self.read(kept.values, kept.rows * kept.k, (np.float32, np.float64)[kept.type])]
        return [x.reshape(kept.rows, kept.k) for x in arrays]

    def plan(self, kind, plan):
        self.plans.insert(0, (kind, plan))
        return plan

    def plan_info(self, name, plan):
        return call.Info.from_address(getattr(self.lib, name)(plan))

    def options(self, **o):
        return call.Options(**o)

    def epilogue(self, e):
        return call.Epilogue(**e)

    def contract_options(self, *o):
        return call.ContractOptions(*o)

    def spmm_options(self, *o):
        return call.SpmmOptions(*o)

    def info(self):
        return call.Info()

    def contract_info(self):
        return call.ContractInfo()

    def markov_rows(self, n):
        return (call.MarkovRow * n)()

    def pointer(self):
        return C.c_void_p()


# ---- running

def run_case(lib, cases, seed, number):
    """One case in all its ways; returns what is to be said, as a letter and a text."""
    case, draw = cases[number % len(cases)], np.random.default_rng([seed, number, 1])
    mode = one_of(draw, ["normal"] * 16 + ["memory", "memory", "interrupt", "budget"])
    if case.__name__ == "arguments":
        mode = "normal"
    ways = [1, 2] + [2] * (draw.random() < 0.2) if mode == "normal" else [int(draw.integers(1, 3))]
    records = []
    for threads in ways:
        call.RECORD.clear()
        env = Env(lib, threads, mode, int(draw.integers(0, 12)), int(draw.integers(1, 5000)) * (mode == "budget"))
        try:
            case(env, np.random.default_rng([seed, number]))
        except Refused as refusal:
            env.close()
            if mode == "normal":
                return "S", f"{refusal}"
            expect(not env.live, f"{len(env.live)} blocks of memory are left after {refusal}")
            return "P", mode
        env.close()
        expect(not env.live, f"{len(env.live)} blocks of memory are left")
        records.append(list(call.RECORD))
    expect(all(r == records[0] for r in records), f"other bits with {ways} threads")
    return "P", mode


def child(path, cases, seed, todo, pipe):
    quiet = tempfile.TemporaryFile()
    for stream in (1, 2):
        os.dup2(quiet.fileno(), stream)
    lib = load(path)
    for number in todo:
        os.write(pipe, json.dumps([number, "B", ""]).encode() + b"\n")
        at = os.fstat(quiet.fileno()).st_size
        try:
            letter, text = run_case(lib, cases, seed, number)
            if os.fstat(quiet.fileno()).st_size > at:
                quiet.seek(at)
                letter, text = "F", "the library printed " + repr(quiet.read(200))
        except Failure as failure:
            letter, text = "F", str(failure)
        except Exception as fault:  # a fault of this script, which must not pass for one of the library
            where = traceback.extract_tb(fault.__traceback__)[-1]
            letter, text = "F", f"{type(fault).__name__} in the sweep itself, {where.name}:{where.lineno}: {fault}"
        os.write(pipe, json.dumps([number, letter, text[:600]]).encode() + b"\n")
    os._exit(0)


def results(path, cases, seed, todo):
    """What became of each case; a child that dies or hangs fails the case it was at."""
    todo = list(todo)
    while todo:
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            os.close(reading)
            child(path, cases, seed, todo[:100], writing)
        os.close(writing)
        rest, begun, ended, left = b"", None, "ended", len(todo)
        while True:
            if not select.select([reading], [], [], 60)[0]:
                ended = "hung for a minute"
                os.kill(process, signal.SIGKILL)
                break
            got = os.read(reading, 65536)
            if not got:
                break
            *lines, rest = (rest + got).split(b"\n")
            for number, letter, text in map(json.loads, lines):
                begun = number if letter == "B" else None
                if letter != "B":
                    todo.remove(number)
                    yield number, letter, text
        os.close(reading)
        status = os.waitpid(process, 0)[1]
        if begun is not None:
            todo.remove(begun)
            died = signal.Signals(status & 127).name if status & 127 else f"exit {status >> 8}"
            yield begun, "F", f"the process {ended}: {died}"
        if len(todo) == left:
            raise SystemExit(f"no case could be run with {path}")


def run_sweep(cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}", flush=True)
    counts, refusals = collections.Counter(), collections.Counter()
    todo = range(given.cases) if given.only is None else [given.only]
    for number, letter, text in results(os.path.abspath(given.library), cases, seed, todo):
        counts[letter] += 1
        if letter == "F":
            print(f"case {number}: {cases[number % len(cases)].__name__}: {text}", flush=True)
        if letter == "S":
            refusals[re.sub(r"-?\d+(\.\d+)?", "N", text)] += 1
    for message, count in refusals.most_common():
        print(f"refused {count}: {message}")
    print(f"{counts['P']} passed, {counts['F']} failed, {counts['S']} skipped")
    return bool(counts["F"])
