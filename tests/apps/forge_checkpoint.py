"""Makes a checkpoint of mcl-gpu whose numbering names one node twice, with a checksum that is right.

usage: forge_checkpoint.py IN OUT

A checkpoint is a header of 200 bytes, a record for each iteration, the numbering, the offsets, columns and values of the
iterand, and the checksum of the first three parts, one after another, and of a sum over the rows of the iterand
(apps/mcl-gpu/checkpoint.c)."""
import struct
import sys

HEADER = 200
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


def main(source, target):
    """Writes the forged file."""
    with open(source, "rb") as file:
        data = bytearray(file.read())
    rows, nnz, _, _, recorded = struct.unpack_from("<5q", data, 120)
    if struct.unpack_from("<q", data, HEADER - 8)[0] != 1:
        sys.exit("the nodes are not renumbered")
    iterand = len(data) - 8 - 8 * (rows + 1) - 8 * nnz
    order = iterand - 4 * rows
    if recorded == 0 or (order - HEADER) % recorded:
        sys.exit("the parts are not those of a checkpoint")
    total = rows_of(data, iterand, rows, nnz)

    def checksum():
        return mix(mix(mix(mix(1, bytes(data[:HEADER])), bytes(data[HEADER:order])), bytes(data[order:iterand])), total)

    if checksum() != struct.unpack_from("<Q", data, len(data) - 8)[0]:
        sys.exit("the checksum is formed in another way")
    data[order:order + 4] = data[order + 4:order + 8]
    struct.pack_into("<Q", data, len(data) - 8, checksum())
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
