"""The programs of examples/gallery run and print what they are to find."""

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


def test_gcn():
    pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")
    assert float(re.search("accuracy (.*)", run("gcn.py")).group(1)) > 0.8
