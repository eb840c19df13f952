"""Makes a checkpoint of mcl-gpu whose numbering names one node twice, with a checksum that is right.

usage: forge_checkpoint.py IN OUT

A checkpoint is a header of 200 bytes, a record for each iteration, the numbering, the offsets, columns and values of the
iterand, and the checksum of these six parts, one after another (apps/mcl-gpu/checkpoint.c)."""
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


def main(source, target):
    """Writes the forged file."""
    with open(source, "rb") as file:
        data = bytearray(file.read())
    rows, nnz, _, _, recorded = struct.unpack_from("<5q", data, 120)
    if struct.unpack_from("<q", data, HEADER - 8)[0] != 1:
        sys.exit("the nodes are not renumbered")
    sizes = [HEADER, 0, 4 * rows, 8 * (rows + 1), 4 * nnz, 4 * nnz]
    sizes[1] = len(data) - 8 - sum(sizes)
    if recorded == 0 or sizes[1] % recorded:
        sys.exit("the parts are not those of a checkpoint")
    order = HEADER + sizes[1]
    checksum, at = 1, 0
    for size in sizes:
        checksum = mix(checksum, bytes(data[at:at + size]))
        at += size
    if checksum != struct.unpack_from("<Q", data, at)[0]:
        sys.exit("the checksum is formed in another way")
    data[order:order + 4] = data[order + 4:order + 8]
    checksum, at = 1, 0
    for size in sizes:
        checksum = mix(checksum, bytes(data[at:at + size]))
        at += size
    struct.pack_into("<Q", data, at, checksum)
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
