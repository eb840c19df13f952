"""Makes a checkpoint of mcl-gpu that no run writes, with a checksum that is right.

usage: forge_checkpoint.py IN OUT WHAT

WHAT is `order`: the numbering names one node twice; or a number of the header that cannot be: inflation, mark,
iterations, input (the entries of the start matrix); or `value`: a number of the iterand is infinite.

A checkpoint is a header of 200 bytes, a record for each iteration, the numbering, the offsets, columns and values of the
iterand, and the checksum of the first three parts, one after another, and of a sum over the rows of the iterand
(apps/mcl-gpu/checkpoint.c)."""
import struct
import sys

HEADER = 200
NUMBERS = {"inflation": (160, "<d", float("nan")), "mark": (168, "<d", 1e300), "iterations": (144, "<q", 1 << 62),
           "input": (136, "<q", -1)}
ALL = (1 << 64) - 1


def mix(checksum, part):
    """The checksum with one more part."""
    whole = len(part) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", part[:whole]):
        checksum = (checksum ^ word) * 0x9E3779B97F4A7C15 & ALL
        checksum ^= checksum >> 29
    rest = part[whole:]
    last = int.from_bytes(bytes([len(rest)]) + rest, "little")
    checksum = (checksum ^ last) * 0xD6E8FEB86659FD93 & ALL
    return checksum ^ checksum >> 32


def rows_of(data, at, rows, nnz):
    """The sum over the rows of the iterand whose offsets begin at `at`."""
    offsets = struct.unpack_from(f"<{rows + 1}q", data, at)
    columns = at + 8 * (rows + 1)
    values = columns + 4 * nnz
    total = 0
    for row in range(rows):
        begin, end = 4 * offsets[row], 4 * offsets[row + 1]
        if begin < end:
            total += mix(mix(row + 1, bytes(data[columns + begin:columns + end])),
                         bytes(data[values + begin:values + end]))
    return struct.pack("<Q", total & ALL)


def main(source, target, what):
    """Writes the forged file."""
    with open(source, "rb") as file:
        data = bytearray(file.read())
    rows, nnz, _, _, recorded = struct.unpack_from("<5q", data, 120)
    ordered = struct.unpack_from("<q", data, HEADER - 8)[0]
    if what == "order" and ordered != 1:
        sys.exit("the nodes are not renumbered")
    iterand = len(data) - 8 - 8 * (rows + 1) - 8 * nnz
    order = iterand - 4 * rows * ordered
    if recorded == 0 or (order - HEADER) % recorded:
        sys.exit("the parts are not those of a checkpoint")
    total = rows_of(data, iterand, rows, nnz)

    def checksum():
        figures = mix(mix(1, bytes(data[:HEADER])), bytes(data[HEADER:order]))
        return mix(mix(figures, bytes(data[order:iterand])) if ordered else figures, total)

    if checksum() != struct.unpack_from("<Q", data, len(data) - 8)[0]:
        sys.exit("the checksum is formed in another way")
    if what == "order":
        data[order:order + 4] = data[order + 4:order + 8]
    elif what == "value":
        struct.pack_into("<f", data, len(data) - 12, float("inf"))
        total = rows_of(data, iterand, rows, nnz)
    else:
        place, kind, value = NUMBERS[what]
        struct.pack_into(kind, data, place, value)
    struct.pack_into("<Q", data, len(data) - 8, checksum())
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
