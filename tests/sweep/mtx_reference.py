"""Compares the reader of Matrix Market graphs with a reader of its own, on random files that are damaged at random.

usage: mtx_reference.py libspgraph.so [--cases N] [--seed S]

The reader here is written from docs/formats.md alone, with regular expressions in place of a scanner. Both must accept
the same files, with the same entries."""
import argparse
import ctypes as C
import importlib.util
import math
import os
import random
import re
import struct
import sys
import tempfile

NUMBER = re.compile(rb"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\Z")
INDEX = re.compile(rb"\d+\Z")
MOST = 2**31 - 1
F32 = 3.4028234663852886e38


class Wrong(Exception):
    """Why the reference refuses the file."""


def require(true, why):
    if not true:
        raise Wrong(why)


def words(line):
    return [w for w in re.split(rb"[ \t\v\f\r]+", line) if w]


def index(word, least, most):
    require(INDEX.match(word), "an index")
    number = int(word)
    require(least <= number <= most, "an index out of range")
    return number


def header(lines):
    """(field, symmetry, size, entries, lines of the header)"""
    banner = [w.lower() for w in words(lines[0])]
    require(len(banner) >= 5 and banner[0] in (b"%%matrixmarket", b"%matrixmarket"), "no banner")
    require(banner[1:3] == [b"matrix", b"coordinate"], "another object or form")
    require(banner[3] in (b"real", b"integer", b"pattern"), "another field")
    require(banner[4] in (b"general", b"symmetric", b"skew-symmetric"), "another symmetry")
    at = 1
    while at < len(lines) and (not words(lines[at]) or lines[at].startswith(b"%")):
        at += 1
    require(at < len(lines), "no size line")
    sizes = words(lines[at])
    require(len(sizes) == 3, "a size line of another length")
    rows, columns, entries = index(sizes[0], 0, MOST), index(sizes[1], 0, MOST), index(sizes[2], 0, 2**63 - 1)
    require(rows == columns, "not square")
    return banner[3], banner[4], rows, entries, at + 1


def value_of(word, field):
    require(NUMBER.match(word), "a value")
    value = float(word)
    require(abs(value) <= F32, "a large value")
    require(field != b"integer" or value == math.trunc(value), "no integer")
    return struct.unpack("<f", struct.pack("<f", value))[0]


def reference(data):
    """(size, symmetric, arcs in the order of the file: from column to row, with its weight as f32)"""
    require(b"\0" not in data, "a NUL byte")
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    lines = data.split(b"\n")
    field, symmetry, size, announced, at = header(lines)
    arcs, seen, entries = [], {}, 0
    for line in lines[at:]:
        fields = words(line)
        if not fields or fields[0].startswith(b"%"):
            continue
        require(len(fields) == (2 if field == b"pattern" else 3), "another number of fields")
        row, col = index(fields[0], 1, size) - 1, index(fields[1], 1, size) - 1
        value = 1.0 if field == b"pattern" else value_of(fields[2], field)
        entries += 1
        if value == 0:
            continue
        if symmetry != b"general" and row != col:
            require(seen.setdefault((min(row, col), max(row, col)), row < col) == (row < col), "a mirror image")
        if symmetry == b"skew-symmetric":
            require(row != col, "a diagonal entry")
            arcs.append((row, col, -value))
        arcs.append((col, row, value))
    require(entries == announced, "another number of entries")
    return size, symmetry == b"symmetric", arcs


class Library:
    """The reader of the library, by the structs of the Python package."""

    def __init__(self, path):
        place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/spgraph/_abi.py")
        spec = importlib.util.spec_from_file_location("_abi", place)
        self.abi = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.abi)
        self.lib = C.CDLL(path)
        for name in "sp_context_create sp_last_error io_read_graph io_graph_free io_graph_spread".split():
            result, arguments = self.abi.FUNCTIONS.get(name, (C.c_int, None))
            function = getattr(self.lib, name)
            function.restype = result
            if arguments is not None:
                function.argtypes = arguments
        self.context = C.c_void_p()
        options = self.abi.sp_context_options(device=b"cpu", threads=2)
        if self.lib.sp_context_create(options, C.byref(self.context)):
            sys.exit("no context")

    def read(self, path):
        options = self.abi.io_read_options(format=self.abi.IO_MTX, any_sign=True, values=self.abi.SP_F32)
        graph = self.abi.io_graph()
        if self.lib.io_read_graph(self.context, path, options, graph):
            raise Wrong(self.lib.sp_last_error(self.context).decode(errors="replace"))
        try:
            def array(kind, place):
                return list((kind * graph.arcs).from_address(place)) if place else None
            weights = array(C.c_float, graph.weights) or [1.0] * graph.arcs
            return graph.nodes, graph.symmetric, list(zip(array(C.c_int32, graph.tails) or [],
                                                          array(C.c_int32, graph.heads) or [], weights))
        finally:
            self.lib.io_graph_free(self.context, graph)


# ---- files ---------------------------------------------------------------------------------------------------


def make(rng):
    """A file that both accept."""
    field = rng.choice(["real", "integer", "pattern"])
    symmetry = rng.choice(["general", "general", "symmetric", "skew-symmetric"])
    size, lines = rng.choice([1, 2, 5, 12, 1000]), []
    for _ in range(rng.choice([0, 1, 4, 30])):
        row, col = rng.randint(1, size), rng.randint(1, size)
        if symmetry != "general" and row < col:
            row, col = col, row
        if symmetry == "skew-symmetric" and row == col:
            continue
        value = {"real": rng.choice(["1.5", "-2e3", ".25", "7.", "1e-50", "3.4e38", "0.1"]),
                 "integer": str(rng.randint(-9, 99)), "pattern": ""}[field]
        lines.append(f"{row} {col} {value}".strip())
    comments = ["% a comment"] * rng.randint(0, 2)
    head = rng.choice(["%%MatrixMarket", "%MatrixMarket", "%%matrixmarket"])
    whole = [f"{head} matrix coordinate {field} {symmetry}", *comments, f"{size} {size} {len(lines)}", *lines]
    return (rng.choice(["\n", "\n", "\r\n"]).join(whole) + rng.choice(["\n", ""])).encode()


PIECES = [b"\n", b" ", b"\t", b"\r", b"%", b"0", b"1", b"9", b"-", b"+", b".", b"e", b"e9", b"nan", b"inf", b"0x1",
          b"\x0b", b"\x0c", b"\0", b"\xef\xbb\xbf", b"\xff", b",", b"1e400", b"2147483648", b"9223372036854775808",
          b"%%MatrixMarket", b"symmetric", b"general", b"00000000001", b"1 1 1\n", b"\n\n", b"# \n"]


def damage(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at, end = rng.randint(0, len(data)), 0
        end = min(len(data), at + rng.choice([0, 1, 1, 2, 8]))
        how = rng.randrange(4)
        if how == 0:
            data[at:end] = b""
        elif how == 1:
            data[at:at] = rng.choice(PIECES)
        elif how == 2:
            data[at:end] = rng.choice(PIECES)
        else:
            data[at:at] = data[rng.randint(0, len(data)):][:rng.choice([1, 5, 20])]
    return bytes(data)


def outcome(read, argument):
    try:
        return read(argument), None
    except Wrong as wrong:
        return None, str(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    rng, library = random.Random(options.seed), Library(options.library)
    accepted = differ = 0
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "g.mtx").encode()
        for case in range(options.cases):
            data = damage(rng, make(rng))
            with open(path, "wb") as file:
                file.write(data)
            (ours, no), (theirs, why) = outcome(library.read, path), outcome(reference, data)
            if ours == theirs:
                accepted += ours is not None
                continue
            differ += 1
            if differ <= 10:
                print(f"case {case}: {data!r}\n  the library: {ours or no}\n  the reference: {theirs or why}")
    print(f"{options.cases} files, both accept {accepted}, {differ} differ")
    return differ > 0 or accepted == 0


if __name__ == "__main__":
    sys.exit(main())
