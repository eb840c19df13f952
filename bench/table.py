"""Writes the tables of README.md, docs/guide.md, docs/performance.md, docs/python.md and docs/notebook/*.md from
bench/results/*.json.

usage: python3 -B bench/table.py                           write every table between its markers
       python3 -B bench/table.py --check                   write nothing; status 1 where a table is not up to date
       python3 -B bench/table.py --show RESULT.json...     print the tables of these results
       python3 -B bench/table.py --add RESULT.json REPORT...  add reports of gnn train to a result of the same machine
                                                           and commit; else the result is begun anew

A table stands between <!-- bench:NAME --> and <!-- /bench -->; tables/markers.py lists the names. Everything else of
the files is left alone.
"""
import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tables.add import add_reports  # noqa: E402
from tables.common import ROOT  # noqa: E402
from tables.markers import all_tables, filled, shown  # noqa: E402


def documents():
    return [os.path.join(ROOT, "README.md"),
            *(os.path.join(ROOT, "docs", name) for name in ("guide.md", "performance.md", "python.md")),
            *sorted(glob.glob(os.path.join(ROOT, "docs", "notebook", "*.md")))]


def update(check):
    """Whether a file is, or was, not up to date."""
    made, stale = all_tables(os.path.join(ROOT, "bench", "results")), False
    for path in documents():
        with open(path) as file:
            old = file.read()
        try:
            new = filled(old, made)
        except KeyError as error:
            sys.exit(f"table.py: {os.path.relpath(path, ROOT)} has a marker without a table: {error.args[0]}")
        if new == old:
            continue
        stale = True
        if check:
            print(f"table.py: {os.path.relpath(path, ROOT)} is not up to date: run python3 -B bench/table.py")
            continue
        with open(path, "w") as file:
            file.write(new)
    return stale


def main():
    command, rest = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if command == "--add" and rest:
        add_reports(rest[0], rest[1:])
    elif command == "--show":
        for table in shown(rest):
            print(table, end="\n\n")
    elif command in ("", "--check") and not rest:
        return int(update(command == "--check") and command == "--check")
    else:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
