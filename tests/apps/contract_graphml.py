"""GraphML of networkx through contract, against quotients by networkx.

    contract_graphml.py CONTRACT     in an empty folder; ends with 0 if all is as networkx has it
"""
import random
import subprocess
import sys
from collections import Counter

import networkx as nx

tool = sys.argv[1]


def contract(*arguments):
    done = subprocess.run([tool, *arguments, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def expected(graph, kind, weight):
    """Sums of weights between kinds; an undirected edge within a kind counts twice, a loop once."""
    sums = Counter()
    for a, b, w in graph.edges(data=weight, default=1):
        p, q = graph.nodes[a][kind], graph.nodes[b][kind]
        twice = not graph.is_directed() and p == q and a != b
        sums[(p, q) if graph.is_directed() else frozenset((p, q))] += 2 * w if twice else w
    return sums


def check(graph, number):
    kinds = ["red & blue", "<green>", "gelb 'ü'"]
    for node in graph:
        graph.nodes[node]["kind"] = random.choice(kinds)
        graph.nodes[node]["age"] = random.randrange(100)
    for edge in graph.edges:
        if random.random() < 0.9:
            graph.edges[edge]["cost"] = random.randrange(1, 50)
    nx.write_graphml(graph, "g.graphml")
    lines = contract("g.graphml", "g.graphml", "--label-column", "kind", "--edge-column", "cost", "-o", "-", "--to",
                     "abc",
                     "--node-output", "n.tsv", "--attributes", "g.graphml")
    made = {}
    for line in lines.splitlines():
        p, q, w = line.split("\t")
        made[(p, q) if graph.is_directed() else frozenset((p, q))] = float(w)
    assert made == expected(graph, "kind", "cost"), number
    contract("g.graphml", "g.graphml", "--label-column", "kind", "--edge-column", "cost", "-o", "q.graphml")
    again = nx.read_graphml("q.graphml")
    names = nx.get_node_attributes(again, "name")
    back = {(names[a], names[b]) if again.is_directed() else frozenset((names[a], names[b])): w
            for a, b, w in again.edges(data="weight")}
    assert again.is_directed() == graph.is_directed() and back == made, (number, back, made)
    assert sorted(names.values()) == sorted({kind for _, kind in graph.nodes(data="kind")}), (number, names)
    with open("n.tsv") as table:
        heading, *rows = [line.split("\t") for line in table.read().splitlines()]
    for row in rows:
        kind, size, age = row[0], row[1], row[heading.index("age_mean")]
        ages = [d["age"] for _, d in graph.nodes(data=True) if d["kind"] == kind]
        assert int(size) == len(ages) and abs(float(age) - sum(ages) / len(ages)) < 1e-9, (number, row)


random.seed(3)
for number in range(30):
    graph = nx.gnm_random_graph(random.randrange(2, 40), random.randrange(1, 90), seed=number, directed=number % 2 == 1)
    graph.add_edge(0, 0)
    if number % 3 == 0:
        graph = nx.relabel_nodes(graph, {node: f'node "{node}"' for node in graph})
    check((nx.MultiDiGraph if number % 2 else nx.MultiGraph)(graph) if number % 5 == 0 else graph, number)
