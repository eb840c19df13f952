"""A peer's program as bench/peers/peer.cuh has it, for the tests of sparse-bench: multiplies term by term.

usage: published_peer.py FAULT CASE RESULT REPEAT LIMIT     FAULT: none, value, entry, crash, refuse, silent"""
import os
import struct
import sys
from array import array


def read_matrix(file, rows, nnz):
    """A list of {column: value} a row."""
    offsets, columns, values = array("i"), array("i"), array("d")
    offsets.fromfile(file, rows + 1)
    columns.fromfile(file, nnz)
    values.fromfile(file, nnz)
    return [list(zip(columns[b:e], values[b:e])) for b, e in zip(offsets, offsets[1:])]


def product(a, b):
    """The rows of A·B, columns in ascending order."""
    made = []
    for row in a:
        sums = {}
        for k, weight in row:
            for column, value in b[k]:
                sums[column] = sums.get(column, 0.0) + weight * value
        made.append(sorted(sums.items()))
    return made


def main(fault, case, result, repeat, limit):
    """Reads, multiplies, prints, writes."""
    assert float(limit) > 0
    print("name Python's loop", flush=True)
    if fault == "crash":
        os.abort()
    if fault == "refuse":
        print("failed it will not")
        return 1
    with open(case, "rb") as file:
        rows, inner, _, nnz_a, nnz_b, same = struct.unpack("6q", file.read(48))
        a = read_matrix(file, rows, nnz_a)
        b = a if same else read_matrix(file, inner, nnz_b)
    c = product(a, b)
    if fault == "silent":
        return 0
    if fault == "value":
        c[0][0] = (c[0][0][0], c[0][0][1] + 1)
    if fault == "entry":
        c[0].pop()
    entries = [entry for row in c for entry in row]
    offsets = [0]
    for row in c:
        offsets.append(offsets[-1] + len(row))
    with open(result, "wb") as file:
        file.write(struct.pack("2q", rows, len(entries)))
        array("i", offsets).tofile(file)
        array("i", [e[0] for e in entries]).tofile(file)
        array("d", [e[1] for e in entries]).tofile(file)
    for i in range(int(repeat)):
        print(f"seconds {0.25 + i}")
    print("peak 1234")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
