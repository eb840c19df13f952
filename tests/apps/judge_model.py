#!/usr/bin/env python3
"""contract --judge beside the definitions, pair of nodes by pair, and beside networkx, igraph and networkit where they
are installed: random graphs, directed and not, with loops, weights, nodes without a label, weights of nodes.

usage: judge_model.py CONTRACT [CASES]"""
import json, math, os, random, statistics, subprocess, sys, tempfile


def definition(n, edges, labels, directed, loads):
    """edges: {(i, j): weight}, undirected ones with i <= j; labels: None for nodes that do not count."""
    edges = {e: w for e, w in edges.items() if labels[e[0]] is not None and labels[e[1]] is not None}
    a = [[0.0] * n for _ in range(n)]
    for (i, j), w in edges.items():
        a[i][j] += w
        if not directed:
            a[j][i] += w  # a loop has both of its ends at one node
    members = {}
    for i, label in enumerate(labels):
        if label is not None:
            members.setdefault(label, []).append(i)
    ends = sum(map(sum, a))
    outs, ins = [sum(row) for row in a], [sum(column) for column in zip(*a)]
    made = {"nodes": sum(map(len, members.values())), "groups": len(members), "edges": len(edges)}
    made["left_out"] = n - made["nodes"]
    made["weight"] = sum(edges.values())
    cut = [w for (i, j), w in edges.items() if labels[i] != labels[j]]
    made["cut"], made["cut_edges"] = sum(cut), len(cut)
    made["coverage"] = 1 - sum(cut) / made["weight"] if ends else None
    made["modularity"] = sum((a[i][j] - outs[i] * ins[j] / ends) / ends for i in range(n) for j in range(n)
                             if labels[i] is not None and labels[i] == labels[j]) if ends else None
    parts = []
    for group in members.values():
        inner = set(group)
        leaves = sum(a[i][j] for i in group for j in range(n) if j not in inner)
        volume = sum(outs[i] for i in group)
        least = min(volume, ends - volume)
        parts.append(0 if leaves == 0 else leaves / least if least > 1e-9 else 1)
    made["conductance_mean"] = statistics.mean(parts) if parts else None
    made["conductance_worst"] = max(parts) if parts else None
    sizes = sorted(map(len, members.values()))
    if sizes:
        made.update(smallest=sizes[0], largest=sizes[-1], median=statistics.median(sizes),
                    mean=statistics.mean(sizes), alone=sizes.count(1))
    balances = []
    for k in range(len(loads[0]) if n else 0):
        all_loads = [sum(loads[i][k] for i in group) for group in members.values()]
        if sum(all_loads):
            balances.append(max(all_loads) * len(members) / sum(all_loads))
    made["balance"] = max(balances) if balances else None
    return made, members, edges


def close(x, y):
    if x is None or y is None:
        return x is y
    return math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)


def peers(n, edges, members, labels, directed):
    """(name, figure, value) by the programs that are installed; all nodes have labels."""
    if not edges or len(members) < 2:
        return
    try:
        import networkx as nx
        g = nx.DiGraph() if directed else nx.Graph()
        g.add_nodes_from(range(n))
        g.add_weighted_edges_from((i, j, w) for (i, j), w in edges.items())
        yield "networkx", "modularity", nx.community.modularity(g, members.values())
        if not directed and all(nx.volume(g, m, weight="weight") > 0 for m in members.values()):
            each = [nx.conductance(g, m, weight="weight") if len(m) < n else 0 for m in members.values()
                    if nx.volume(g, set(range(n)) - set(m), weight="weight") > 0]
            if len(each) == len(members):
                yield "networkx", "conductance_mean", statistics.mean(each)
    except ImportError:
        pass
    try:
        import igraph
        g = igraph.Graph(n, list(edges), directed=directed)
        yield "igraph", "modularity", g.modularity(labels, weights=list(edges.values()))
    except ImportError:
        pass
    try:
        import networkit as nk
        if directed or any(i == j for i, j in edges):
            return
        g = nk.Graph(n, weighted=True)
        for (i, j), w in edges.items():
            g.addEdge(i, j, w)
        p = nk.Partition(n)
        p.setUpperBound(max(labels) + 1)
        for i, label in enumerate(labels):
            p.addToSubset(label, i)
        yield "networkit", "modularity", nk.community.Modularity().getQuality(p, g)
        yield "networkit", "coverage", nk.community.Coverage().getQuality(p, g)
        yield "networkit", "cut", nk.community.EdgeCut().getQuality(p, g)
    except ImportError:
        pass


def write_metis(path, n, edges, loads):
    rows = [[] for _ in range(n)]
    for (i, j), w in edges.items():
        rows[i] += [j + 1, int(w)]
        rows[j] += [i + 1, int(w)]
    with open(path, "w") as f:
        print(n, len(edges), "011", len(loads[0]), file=f)
        for i in range(n):
            print(*loads[i], *rows[i], file=f)


def write_mtx(path, n, edges, directed):
    with open(path, "w") as f:
        print("%%MatrixMarket matrix coordinate real", "general" if directed else "symmetric", file=f)
        print(n, n, len(edges), file=f)
        for (i, j), w in edges.items():
            print(*((i + 1, j + 1) if directed else (j + 1, i + 1)), w, file=f)


def main():
    tool, cases = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    failed, compared = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(cases):
            rng = random.Random(seed)
            n, kind = rng.randint(1, 40), rng.choice(["undirected", "directed", "metis"])
            directed, whole, dropped = kind == "directed", kind == "metis" or rng.random() < 0.5, rng.random() < 0.3
            edges = {}
            for _ in range(rng.randint(0, 4 * n)):
                i, j = rng.randrange(n), rng.randrange(n)
                if kind == "metis" and i == j:
                    continue
                i, j = (i, j) if directed else (min(i, j), max(i, j))
                edges[i, j] = rng.randint(1, 9) if whole else rng.random()
            groups = rng.choice([1, 2, 5, n])
            labels = [None if dropped and rng.random() < 0.2 else rng.randrange(groups) for _ in range(n)]
            loads = [[rng.randint(0, 9) for _ in range(1 + seed % 3)] for _ in range(n)]
            if kind == "metis":
                path = os.path.join(folder, "g.graph")
                write_metis(path, n, edges, loads)
            else:
                loads, path = [[1]] * n, os.path.join(folder, "g.mtx")
                write_mtx(path, n, edges, directed)
            with open(os.path.join(folder, "labels"), "w") as f:
                for label in labels:
                    print(-1 if label is None else label, file=f)
            run = subprocess.run([tool, path, os.path.join(folder, "labels"), "--labels", "list", "--base", "0",
                                  "--unlabelled", "drop", "--judge", "json"], capture_output=True, text=True)
            if run.returncode:
                print(f"seed {seed}: {run.stderr}")
                failed += 1
                continue
            got = json.loads(run.stdout)
            wanted, members, kept = definition(n, edges, labels, directed, loads)
            for name, value in wanted.items():
                if not close(got[name], value):
                    print(f"seed {seed}, {kind}: {name} is {got[name]}, by definition {value}")
                    failed += 1
            if got["worst_group"] is not None and got["groups"] != len(members):
                failed += 1
            if None not in labels:
                for peer, name, value in peers(n, kept, members, labels, directed):
                    compared[peer] = compared.get(peer, 0) + 1
                    if not close(got[name], value):
                        print(f"seed {seed}, {kind}: {name} is {got[name]}, by {peer} {value}")
                        failed += 1
    for peer in ("networkx", "igraph", "networkit"):
        print(f"{peer}: {compared[peer]} figures compared" if peer in compared else f"skipped: {peer} is not installed")
    sys.exit(failed > 0)


main()
