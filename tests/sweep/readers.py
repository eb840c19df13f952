"""Readers of what `contract` writes, each written from the description of the format alone.

Each returns (number of groups or None, names or None, cells), cells being a dictionary of (row, column) -> Fraction,
with both directions of an edge that the format lists once.
"""

import re
import struct
import zlib
from fractions import Fraction

from common import Wrong

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?$")


def number(text):
    """A number as the documents say that it is written: the fewest digits from which the same double comes back."""
    if not NUMBER.match(text):
        raise Wrong(f"no number: {text!r}")
    value = float(text)
    if value.is_integer() and abs(value) < 9007199e9 and not re.fullmatch(r"-?\d+", text):
        raise Wrong(f"a whole number with a point or an exponent: {text!r}")
    digits = re.sub(r"e.*|[-.]", "", text).strip("0")
    if len(digits) > len(re.sub(r"e.*|[-.]", "", repr(value)).strip("0")):
        raise Wrong(f"more digits than needed: {text!r}")
    return Fraction(value)


def put(cells, cell, value, mirrored=False):
    if cell in cells:
        raise Wrong(f"entry {cell} is written twice")
    cells[cell] = value
    if mirrored and cell[0] != cell[1]:
        put(cells, cell[::-1], value)


def read_mtx(text, _):
    lines = text.split("\n")
    head = lines[0].split()
    if head[:3] != ["%%MatrixMarket", "matrix", "coordinate"] or lines[-1] != "":
        raise Wrong(f"no Matrix Market file: {lines[0]!r}")
    rows, columns, entries = map(int, lines[1].split())
    if rows != columns or entries != len(lines) - 3:
        raise Wrong(f"the header says {lines[1]!r}, entries are {len(lines) - 3}")
    cells, field = {}, head[3]
    for line in lines[2:-1]:
        i, j, *value = line.split()
        if int(i) < int(j) and head[4] == "symmetric":
            raise Wrong(f"above the diagonal of a symmetric matrix: {line!r}")
        if field == "integer" and not re.fullmatch(r"-?\d+", value[0]):
            raise Wrong(f"an integer matrix has {value[0]!r}")
        put(cells, (int(i) - 1, int(j) - 1), Fraction(1) if field == "pattern" else number(value[0]),
            head[4] == "symmetric")
    if field == "real" and cells and all(value.denominator == 1 and abs(value) < 2**53 for value in cells.values()):
        raise Wrong("all values are whole, but the field is real")
    return rows, None, cells


def read_edges(text, undirected):
    """abc, where an undirected graph has each edge once, and tsv (`undirected` false)."""
    cells = {}
    for line in text.splitlines():
        source, target, *value = line.split("\t")
        put(cells, (source, target), number(value[0]) if value else Fraction(1), undirected)
    return None, None, cells


def read_mcl(text, _):
    head, body = text.split("(mclmatrix\nbegin\n")
    rows, columns = map(int, re.search(r"dimensions (\d+)x(\d+)", head).groups())
    cells, tokens, column = {}, body.rsplit(")", 1)[0].split(), None
    for token in tokens:
        if column is None:
            column = int(token)
        elif token == "$":
            column = None
        else:
            row, _, value = token.partition(":")
            put(cells, (column, int(row)), number(value) if value else Fraction(1))
    if rows != columns:
        raise Wrong(f"dimensions {rows}x{columns}")
    return rows, None, cells


def read_metis(text, _):
    """Also returns weights and sizes of nodes, as the attribute of the function's answer: a fourth item."""
    lines = [line for line in text.split("\n")[:-1] if not line.startswith("%")]
    n, edges, *rest = lines[0].split()
    form = (rest[0] if rest else "").zfill(3)
    constraints = int(rest[1]) if len(rest) > 1 else int(form[1])
    n, cells, sizes, weights = int(n), {}, [], []
    if len(lines) != n + 1:
        raise Wrong(f"{len(lines) - 1} lines of nodes, the header says {n}")
    for v, line in enumerate(lines[1:]):
        fields = line.split()
        sizes.append(int(fields.pop(0)) if form[0] == "1" else 1)
        weights.append(tuple(int(fields.pop(0)) for _ in range(constraints)) or (1,))
        step = 2 if form[2] == "1" else 1
        for at in range(0, len(fields), step):
            put(cells, (v, int(fields[at]) - 1), number(fields[at + 1]) if step == 2 else Fraction(1))
    if len(cells) != 2 * int(edges) or any(cells.get((j, i)) != value for (i, j), value in cells.items()):
        raise Wrong(f"no METIS graph: {len(cells)} entries for {edges} edges, or they are not symmetric")
    return n, None, cells, (weights, sizes if form[0] == "1" else None)


def read_bin(data, _):
    version, flags, rows, columns, entries, text = struct.unpack_from("<II4q", data, 8)
    check, at = struct.unpack_from("<II", data, 48)[0], 56
    if data[:8] != b"\x89SPCSR\r\n" or version != 1 or check != zlib.crc32(data[:48]):
        raise Wrong("the header of the binary matrix is wrong")
    starts = struct.unpack_from(f"<{rows + 1}q", data, at)
    at += 8 * (rows + 1)
    where = struct.unpack_from(f"<{entries}i", data, at)
    at += 4 * entries
    kind = flags & 3
    values = struct.unpack_from(f"<{entries}{'f' if kind == 1 else 'd'}", data, at) if kind else [1] * entries
    at += {0: 0, 1: 4, 2: 8}[kind] * entries
    names = None
    if flags & 8:
        lengths = struct.unpack_from(f"<{rows}i", data, at)
        at, names = at + 4 * rows, []
        for length in lengths:
            names.append(data[at:at + length].decode())
            at += length
        if sum(lengths) != text:
            raise Wrong("the bytes of the names are not those of the header")
    if at + 8 != len(data) or struct.unpack_from("<I", data, at)[0] != zlib.crc32(data[56:at]):
        raise Wrong("the binary matrix has a wrong length or checksum")
    cells = {}
    for row in range(rows):
        for e in range(starts[row], starts[row + 1]):
            if e > starts[row] and where[e] <= where[e - 1]:
                raise Wrong("columns do not ascend")
            put(cells, (row, where[e]), Fraction(values[e]))
    if flags & 4 and any(cells.get((j, i)) != value for (i, j), value in cells.items()):
        raise Wrong("the flag says undirected, but the matrix is not symmetric")
    return rows, names, cells


READERS = {"mtx": read_mtx, "abc": read_edges, "tsv": read_edges, "mcl": read_mcl, "metis": read_metis, "bin": read_bin}
