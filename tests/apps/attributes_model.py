"""Attributes of groups, from the definitions: checks a table of contract --node-output.

usage: attributes_model.py LABELS TABLE RULE OUTPUT

LABELS has NODE GROUP a line in the order of the nodes. TABLE is a CSV file whose first column names the nodes. RULE is
that of all columns that it fits, else the mode."""
import csv
import math
import statistics
import sys

RULES = {"sum": sum, "mean": lambda v: sum(v) / len(v), "min": min, "max": max, "first": lambda v: v[0],
         "mode": lambda v: max(v, key=v.count),  # max gives the first of equals
         "median": statistics.median, "count": len}


def main(labels, table, rule, output):
    """Exits with a sentence if a value differs."""
    with open(labels, encoding="utf-8") as file:
        groups = dict(line.split() for line in file)
    with open(table, newline="", encoding="utf-8") as file:
        heading, *rows = csv.reader(file)
    with open(output, newline="", encoding="utf-8") as file:
        names, *found = [line.rstrip("\n").split("\t") for line in file]
    row_of = {row[0]: row for row in rows}
    for column in range(1, len(heading)):
        texts = {group: [] for group in groups.values()}
        for node, group in groups.items():
            text = row_of[node][column] if node in row_of else ""
            if text not in ("", "NA"):
                texts[group].append(text)
        try:
            values = {group: [float(text) for text in own] for group, own in texts.items()}
            own_rule = rule
        except ValueError:
            values = texts
            own_rule = rule if rule in ("first", "mode", "count") else "mode"
        place = names.index(f"{heading[column]}_{own_rule}")
        for line in found:
            own, got = values[line[0]], line[place]
            wanted = RULES[own_rule](own) if own or own_rule == "count" else None
            if wanted is None or isinstance(wanted, str):
                same = got == (wanted or "NA")
            else:
                same = math.isclose(float(got), wanted, rel_tol=1e-12, abs_tol=1e-12)
            if not same:
                sys.exit(f"{heading[column]} of {line[0]}: {got} instead of {wanted}")


if __name__ == "__main__":
    main(*sys.argv[1:])
