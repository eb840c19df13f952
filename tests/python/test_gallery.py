"""The programs of examples/gallery run and print what they are to find."""

import gzip
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT


def run(name, *arguments):
    ran = subprocess.run([sys.executable, "-W", "ignore", os.path.join(ROOT, "examples", "gallery", name), *arguments],
                         capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_inflation_sweep(data):
    lines = run("inflation_sweep.py", data("Hu-2007.txt.gz")).splitlines()[1:]
    clusters = [int(line.split()[1]) for line in lines]
    assert len(lines) == 4 and clusters == sorted(clusters) and clusters[0] == 86


def test_similar_names(tmp_path):
    names = tmp_path / "names"
    names.write_text("Bayerische Motoren Werke\nBayerische Motorenwerke\nSiemens AG\nSiemens A.G.\nSiemens\n"
                     "Deutsche Bahn\nDeutsche Bahn AG\nZeiss\n")
    found = {frozenset(line.split(", ")) for line in run("similar_names.py", str(names)).splitlines()}
    assert frozenset({"Bayerische Motoren Werke", "Bayerische Motorenwerke"}) in found
    assert frozenset({"Deutsche Bahn", "Deutsche Bahn AG"}) in found
    assert frozenset({"Siemens AG", "Siemens A.G.", "Siemens"}) in found
    assert not any("Zeiss" in group for group in found)


def test_network_measures(data):
    networkx = pytest.importorskip("networkx", minversion="3.4")
    from spgraph import graph

    said = run("network_measures.py", data("Hu-2007.txt.gz"))
    g = networkx.from_scipy_sparse_array(graph.read(data("Hu-2007.txt.gz")).matrix)
    assert f"{sum(networkx.triangles(g).values()) // 3} triangles, transitivity {networkx.transitivity(g):.3f}" in said


def test_gcn(data):
    pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    assert float(re.search("test accuracy (.*)", run("gcn.py", data("cora"))).group(1)) > 0.78


def test_cells():
    pytest.importorskip("scanpy", reason="scanpy is not installed (LARGE=1 make test-python installs it)")
    said = run("cells.py")
    clusters = [int(count) for count in re.findall(r"(\d+) clusters", said)]
    assert said.startswith("900 cells") and len(clusters) == 3 and 6 <= clusters[0] <= clusters[1] <= clusters[2]
    assert all(float(share) > 95 for share in re.findall(r"([\d.]+) % of the cells", said))  # at random 1/6 are


def test_sampling(data):
    pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    said = run("sampling.py", data("cora"))
    assert "5 minibatches" in said and float(re.search("accuracy (.*)", said).group(1)) > 0.7


def test_string_clusters(data, tmp_path):
    links, picture = data("4932.protein.physical.links.v12.0.txt.gz"), tmp_path / "complexes.png"
    said = run("string_clusters.py", links)
    head = re.match(r"(\d+) proteins, (\d+) links, (\d+) clusters, (\d+) of at least 5", said)
    with gzip.open(links, "rt") as file:
        rows = [line.split() for line in file][1:]
    strong = {frozenset(row[:2]) for row in rows if int(row[2]) >= 700}
    assert int(head.group(1)) == len(set().union(*strong)) and int(head.group(2)) == len(strong)
    assert len(said.splitlines()) == 6
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run("string_clusters.py", links, str(picture))
    assert picture.read_bytes()[:4] == b"\x89PNG" and picture.stat().st_size > 10000


def test_pagerank(data):
    networkx = pytest.importorskip("networkx", minversion="3.4")
    from spgraph import graph

    network = graph.read(data("Hu-2007.txt.gz"))
    g = networkx.from_scipy_sparse_array(network.matrix)
    lines = run("pagerank.py", data("Hu-2007.txt.gz"), "YPL240C").splitlines()
    start = network.nodes.index("YPL240C")
    for line, begin in zip(lines, (None, {start: 1})):
        rank = networkx.pagerank(g, personalization=begin, tol=1e-9, max_iter=500)
        for found in line.split(": ")[1].split(", "):
            name, value = found.split()
            assert abs(rank[network.nodes.index(name)] - float(value)) < 1e-4
    assert len(lines) == 2


def test_triangles(data):
    networkx = pytest.importorskip("networkx", minversion="3.4")
    from spgraph import graph

    network = graph.read(data("Hu-2007.txt.gz"))
    g = networkx.from_scipy_sparse_array(network.matrix)
    g.remove_edges_from(list(networkx.selfloop_edges(g)))
    said = run("triangles.py", data("Hu-2007.txt.gz"))
    count = networkx.triangles(g)
    assert f"{sum(count.values()) // 3} triangles, transitivity {networkx.transitivity(g):.4f}" in said
    first = max(count, key=count.get)
    assert f"in most: {network.nodes[first]} {count[first]}" in said
    k, size = map(int, re.search(r"a (\d+)-truss of (\d+) nodes", said).groups())
    assert len(networkx.k_truss(g, k)) == size and len(networkx.k_truss(g, k + 1)) == 0


def test_road_network():
    said = run("road_network.py", "60")
    crossings, roads, fewer, less = map(int, re.search(
        r"(\d+) crossings, (\d+) roads; without bends (\d+) and (\d+)", said).groups())
    assert crossings == 3600 and fewer < crossings and less < roads
    assert roads - less >= crossings - fewer  # where two nodes become one, at least the road between them goes
    assert said.splitlines()[1].startswith("9 districts")


def test_partition(data):
    said = run("partition.py", data("Hu-2007.txt.gz"))
    left, right, cut = re.search(r"sides of (\d+) and (\d+) nodes; (.*) % of", said).groups()
    nodes = int(said.split()[0])
    assert int(left) + int(right) == nodes and abs(int(left) - int(right)) < nodes / 4
    assert 0 < float(cut) < 10  # a cut at random has half of the weight
