"""Clusterings beside the files of mcl-gpu, whose bytes are tested against mcl."""

import gzip
import itertools
import math
import subprocess

import numpy as np
import pytest
import scipy.sparse as ss

from spgraph import cluster, graph

networkx = pytest.importorskip("networkx")
pandas = pytest.importorskip("pandas")


def edges(path):
    with gzip.open(path, "rt") as file:
        lines = [line.split() for line in file]
    return [(line[0], line[1], float(line[2]) if len(line) > 2 else 1.0) for line in lines if line]


@pytest.fixture
def hu(data):
    return data("Hu-2007.txt.gz")


@pytest.fixture
def tool(mcl_gpu, tmp_path):
    """tool(path, option ...): the clusters of mcl-gpu as a list of sets of names."""

    def run(path, *options):
        out = tmp_path / "clusters"
        subprocess.run([mcl_gpu, path, *options, "-V", "all", "-q", "x", "-o", str(out)], check=True)
        return [line.split("\t") for line in out.read_text().splitlines()]

    return run


def as_sets(lists):
    return sorted(map(sorted, lists))


@pytest.mark.parametrize("inflation", [1.4, 2.0, 4.0])
def test_a_file_gives_the_clusters_of_the_tool_in_its_order(hu, tool, inflation):
    assert cluster.mcl(hu, inflation).clusters() == tool(hu, "--abc", "-I", str(inflation))


def test_every_kind_of_graph_gives_the_partition_of_the_tool(hu, tool):
    expected = as_sets(tool(hu, "--abc", "-I", "2"))
    triples = edges(hu)
    g = networkx.Graph()
    for u, v, w in triples:  # of repeated edges the heaviest
        g.add_edge(u, v, weight=max(w, g[u][v]["weight"] if g.has_edge(u, v) else 0))
    assert as_sets(cluster.mcl(g).clusters()) == expected
    frame = pandas.DataFrame(triples, columns=["source", "target", "weight"])
    assert as_sets(cluster.mcl(frame).clusters()) == expected
    assert as_sets(cluster.mcl(frame.rename(columns={"weight": "score", "source": "a", "target": "b"}),
                               weight="score").clusters()) == expected
    names = list(g)
    index = {name: i for i, name in enumerate(names)}
    arrays = (np.array([index[u] for u, _, _ in triples]), np.array([index[v] for _, v, _ in triples]),
              np.array([w for _, _, w in triples]))
    named = [[names[i] for i in members] for members in cluster.mcl(arrays).clusters()]
    assert as_sets(named) == expected
    for matrix in (networkx.to_scipy_sparse_array(g), ss.csc_matrix(networkx.to_scipy_sparse_array(g))):
        found = cluster.mcl(matrix)
        assert as_sets([[names[i] for i in members] for members in found.clusters()]) == expected
    assert as_sets(cluster.mcl(graph.read(hu)).clusters()) == expected


@pytest.mark.parametrize("options, arguments", [
    ({"scheme": 2}, ["-scheme", "2"]),
    ({"select": 20, "recover": 30, "prune": 200}, ["-S", "20", "-R", "30", "-P", "200"]),
    ({"transform": "gq(0.5),#knn(10)"}, ["-tf", "gq(0.5),#knn(10)"]), ({"overlap": "keep"}, ["--overlap=keep"]),
    ({"connected": True}, ["--force-connected=y"]), ({"max_iterations": 3}, ["-L", "3"]),
    ({"recover_percent": 50.0, "select": 5}, ["-pct", "50", "-S", "5"])])
def test_options_are_those_of_the_tool(hu, tool, options, arguments):
    assert cluster.mcl(hu, **options).clusters() == tool(hu, "--abc", "-I", "2", *arguments)


def test_scores_of_string(data, tool):
    path = data("4932.protein.physical.links.v12.0.txt.gz")
    found = cluster.mcl(path, min_score=900)
    assert found.clusters() == tool(path, "--min-score", "900", "-I", "2")
    with pytest.raises(ValueError, match="STRING"):
        cluster.mcl(data("Hu-2007.txt.gz"), min_score=10)


def test_several_inflations(hu):
    several = cluster.mcl(hu, [1.4, 2, 6])
    assert [found.inflation for found in several] == [1.4, 2, 6]
    for found in several:
        alone = cluster.mcl(hu, found.inflation)
        assert (found.labels == alone.labels).all() and found.iterations == alone.iterations
    assert len(several[0]) < len(several[1]) < len(several[2])
    assert cluster.mcl(hu, []) == []


def test_figures(hu):
    found = cluster.mcl(hu, 2.0)
    g = networkx.Graph()
    for u, v, w in edges(hu):
        if u != v:
            g.add_edge(u, v, weight=float(np.float32(max(w, g[u][v]["weight"] if g.has_edge(u, v) else 0))))
    expected = networkx.community.modularity(g, found.clusters())
    assert math.isclose(found.modularity, expected, rel_tol=1e-6)
    inside = sum(w for u, v, w in g.edges(data="weight")
                 if found.labels[found.nodes.index(u)] == found.labels[found.nodes.index(v)])
    assert math.isclose(found.coverage, inside / sum(w for _, _, w in g.edges(data="weight")), rel_tol=1e-6)
    assert 0 < found.efficiency < 1 and found.converged and found.iterations > 5
    assert found.sizes.sum() == len(found.labels) == len(found.nodes)
    assert (np.diff(found.sizes) <= 0).all() and (np.bincount(found.labels) == found.sizes).all()
    frame = found.to_frame()
    assert list(frame.columns) == ["node", "cluster", "size"] and len(frame) == len(found.nodes)
    assert [list(part["node"]) for _, part in frame.groupby("cluster")] == found.clusters()
    assert "clusters, inflation=2" in repr(found)


def test_progress(hu):
    seen = []
    found = cluster.mcl(hu, progress=seen.append)
    assert [figures.iteration for figures in seen] == list(range(1, found.iterations + 1))
    assert seen[-1].chaos < 1e-4 <= seen[-2].chaos and all(figures.entries > 0 for figures in seen)
    stopped = cluster.mcl(hu, progress=lambda figures: figures.iteration < 3)
    assert stopped.iterations == 3 and not stopped.converged
    with pytest.raises(ZeroDivisionError):
        cluster.mcl(hu, progress=lambda figures: 1 / 0)
    assert (cluster.mcl(hu).labels == found.labels).all()


def test_directions_and_weights():
    row, col, weight = np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([1.0, 2.0, 0.0])
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[1, 2] = 1, 2
    ways = cluster.mcl((row, col, weight), directed=True), cluster.mcl(ss.csr_array(matrix)), cluster.mcl(
        networkx.from_numpy_array(matrix, create_using=networkx.DiGraph))
    both = cluster.mcl((row, col, weight)), cluster.mcl(ss.csr_array(matrix + matrix.T))
    assert len({tuple(found.labels) for found in ways}) == 1
    assert len({tuple(found.labels) for found in both}) == 1
    g = networkx.Graph([(0, 1, {"weight": 9.0}), (1, 2)])
    assert len(cluster.mcl(g, weight=None)) == 1
    stored = ss.csr_array(np.ones((3, 3)))
    stored.data[1] = 0
    assert cluster.mcl(stored).labels.tolist() == [0, 0, 0] and stored.nnz == 9


def test_nothing_and_little():
    assert len(cluster.mcl(ss.csr_array((0, 0)))) == 0
    assert cluster.mcl(ss.csr_array((3, 3))).sizes.tolist() == [1, 1, 1]
    assert cluster.mcl((np.array([], int), np.array([], int))).clusters() == []
    assert cluster.mcl(networkx.path_graph(["a"])).clusters() == [["a"]]


@pytest.mark.parametrize("value, words", [(np.nan, "nan"), (np.inf, "inf"), (-1.0, "-1"), (1e39, "1e\\+39")])
def test_weights_that_cannot_be(value, words):
    matrix = ss.csr_array(np.array([[0, 1.0], [value, 0]]))
    with pytest.raises(ValueError, match=words):
        cluster.mcl(matrix)


def test_graphs_that_cannot_be(tmp_path):
    for wrong, kind in (([1, 2], TypeError), (ss.csr_array((2, 3)), ValueError), ((np.array([0]),), ValueError),
                        ((np.array([-1]), np.array([0])), ValueError), ((np.array([0.5]), np.array([0])), ValueError),
                        (pandas.DataFrame({"source": ["a", None], "target": ["b", "c"]}), ValueError),
                        (pandas.DataFrame({"a": ["a"], "b": ["b"], "c": [1.0]}), ValueError),
                        (ss.csr_array(np.eye(2, dtype=complex)), TypeError), ("no such file", FileNotFoundError)):
        with pytest.raises(kind):
            cluster.mcl(wrong)
    path = tmp_path / "bad.abc"
    path.write_text("a b 1\na c x\n")
    with pytest.raises(ValueError, match="bad.abc:2: "):
        cluster.mcl(path)


@pytest.mark.parametrize("options", [{"inflation": 1.0}, {"inflation": 31}, {"scheme": 8}, {"overlap": "both"},
                                     {"select": -1}, {"transform": "nothing(1)"}, {"device": "gpu"}, {"format": "xls"}])
def test_options_that_cannot_be(hu, options):
    with pytest.raises(ValueError):
        cluster.mcl(hu, **options)


HITS = "".join(f"{q}\t{s}\t{identity}\t9\t1\t0\t1\t9\t1\t9\t{evalue}\t{bits}\n" for q, s, identity, evalue, bits in (
    ("a", "b", 90, "1e-5", 10), ("b", "c", 10, "1e-90", 10), ("c", "d", 90, "1e-5", 10)))


def test_advice_names_keywords_not_options(tmp_path):
    files = {"hits.m8": (HITS, 'pass format="blast" and.*weight="evalue" or weight="identity"'),
             "edges": ("a,b\nb,c\n", 'pass format="csv"'), "lines": ("a b c d\n", 'pair.* format="abc".*"sif".*"blast"'),
             "heading": ("gene1\tgene2\tscore\nA\tB\t3\n", 'format="abc" for label pairs; with format="csv" it may stay'),
             "empty": ("", 'format="abc"')}
    for name, (text, words) in files.items():
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(ValueError, match=words) as failure:
            cluster.mcl(path)
        assert "--" not in str(failure.value)
    with pytest.raises(ValueError, match='format="csv"'):
        cluster.mcl(tmp_path / "edges", format="abc")
    with pytest.raises(ValueError, match='format="abc"'):
        cluster.mcl(tmp_path / "lines", format="native")
    assert cluster.mcl(tmp_path / "edges", format="csv").clusters() == [["a", "b", "c"]]


def test_the_score_of_hits_is_chosen_by_weight(tmp_path, tool):
    path = tmp_path / "hits.m8"
    path.write_text(HITS)
    assert graph.read(path, format="blast").matrix.toarray()[0, 1] == 10
    for score, weight in (("bits", 10), ("evalue", 5), ("identity", 90)):
        assert graph.read(path, format="blast", weight=score).matrix.toarray()[0, 1] == weight
        assert cluster.mcl(path, format="blast", weight=score).clusters() == tool(str(path), "--blast", score)
    with pytest.raises(ValueError, match="weight"):
        cluster.mcl(path, format="blast", weight="score")


def test_the_weight_of_files_is_chosen_by_name(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,conf,n\na,b,0.5,1\nb,c,0.25,1\n")
    with pytest.warns(UserWarning, match="weight.*one of conf, n, or weight=None") as warned:
        assert graph.read(path).matrix.data.tolist() == [1] * 4
    assert warned[0].filename == __file__
    assert graph.read(path, weight="conf").matrix.data.tolist() == [0.5, 0.5, 0.25, 0.25]
    with pytest.raises(ValueError, match='no column "typo"; there are: source, target, conf, n'):
        cluster.mcl(path, weight="typo")
    with pytest.raises(TypeError, match="weight is 3"):
        cluster.mcl(path, weight=3)
    path = tmp_path / "pairs.abc"
    path.write_text("a b 5\na b 7\n")
    assert graph.read(path, weight=None).matrix.data.tolist() == [1, 1]
    assert graph.read(path, weight=None, combine="sum").matrix.data.tolist() == [2, 2]
    with pytest.raises(ValueError, match="label pairs, and only in tables.*leave weight out"):
        graph.read(path, weight="conf")


def test_directions_of_cytoscape_are_left_out_with_a_warning(tmp_path):
    path = tmp_path / "network.graphml"
    path.write_text("""<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
        <key attr.name="shared name" attr.type="string" for="node" id="shared name"/><graph edgedefault="directed">
        <node id="1"><data key="shared name">a</data></node><node id="2"><data key="shared name">b</data></node>
        <edge source="1" target="2"/></graph></graphml>""")
    with pytest.warns(UserWarning, match="Cytoscape calls every network directed, so edges count in both directions"):
        assert graph.read(path).matrix.nnz == 2
    with pytest.raises(ValueError, match="'tsv'"):
        graph.read(path, format="tsv")


def test_a_weight_that_no_edge_has(recwarn):
    g = networkx.Graph([("a", "b", {"score": 3.0, "kind": "pp"}), ("b", "c", {"n": 2})])
    with pytest.raises(ValueError, match="no edge of the graph has 'typo'; edges have score, kind, n"):
        cluster.mcl(g, weight="typo")
    with pytest.raises(ValueError, match="edges have no attributes, so pass weight=None"):
        cluster.mcl(networkx.path_graph(3), weight="typo")
    assert not recwarn.list
    cluster.mcl(g)
    assert "pass weight='score' or 'n', or weight=None" in str(recwarn.pop(UserWarning).message)
    cluster.mcl(networkx.path_graph(3))
    cluster.mcl(g, weight=None)
    cluster.mcl(networkx.empty_graph(3), weight="typo")
    cluster.mcl(g, weight="n")  # where only some edges have it, others weigh 1, as in networkx
    assert not recwarn.list
    matrix = graph.contract(networkx.Graph([(0, 1, {"weight": 5.0}), (1, 2, {"n": 2})]), [0, 1, 2])
    assert matrix.toarray().tolist() == [[0, 5, 0], [5, 0, 1], [0, 1, 0]]


def test_a_weight_that_no_edge_of_igraph_has(recwarn):
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    g = igraph.Graph([(0, 1), (1, 2)], edge_attrs={"score": [1.0, 2.0], "kind": ["x", "y"]})
    with pytest.raises(ValueError, match="no edge of the graph has 'typo'; edges have score, kind"):
        cluster.mcl(g, weight="typo")
    cluster.mcl(g)
    assert "pass weight='score', or weight=None" in str(recwarn.pop(UserWarning).message)
    cluster.mcl(g, weight="score")
    assert not recwarn.list


def test_comparisons(rng):
    a, b = rng.integers(0, 7, 200), rng.integers(0, 5, 200) * 10
    found = cluster.compare(a, b)
    pairs = {(x, y): int(((a == x) & (b == y)).sum()) for x, y in itertools.product(set(a), set(b))}
    assert found.moved[0] == sum((a == x).sum() - max(pairs[x, y] for y in set(b)) for x in set(a))
    assert found.moved[1] == sum((b == y).sum() - max(pairs[x, y] for x in set(a)) for y in set(b))
    entropy = sum(n / 200 * math.log((a == x).sum() / n) for (x, _), n in pairs.items() if n)
    assert math.isclose(found.information[0], entropy, rel_tol=1e-12)
    assert found.split_join == sum(found.moved)
    assert cluster.compare(a, a) == ((0, 0), (0.0, 0.0))
    with pytest.raises(ValueError, match="cannot be compared"):
        cluster.compare(a, b[:9])
    with pytest.raises(ValueError, match="label -1"):
        cluster.compare(a, np.full(200, -1))


def test_graphs_of_igraph_and_back(hu, tool):
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    best = {}
    for u, v, w in edges(hu):
        best[min(u, v), max(u, v)] = max(w, best.get((min(u, v), max(u, v)), 0))
    g = igraph.Graph.TupleList([(u, v, w) for (u, v), w in best.items()], edge_attrs=["weight"])
    found = cluster.mcl(g)
    assert as_sets(found.clusters()) == as_sets(tool(hu, "--abc", "-I", "2"))
    made = found.to_igraph(g)
    assert as_sets([g.vs[member]["name"] for member in members] for members in made) == as_sets(found.clusters())
    assert made.graph is g and len(made) == len(found)
    other = g.permute_vertices(list(range(g.vcount()))[::-1])  # names tell which vertex is which
    by_name = found.to_igraph(other)
    assert as_sets([other.vs[member]["name"] for member in members] for members in by_name) == as_sets(found.clusters())
    assert found.to_igraph().membership == found.labels.tolist()
    assert found.to_igraph().graph.vs["name"] == found.nodes
    for wrong, message in ((igraph.Graph(n=3), "3 vertices"), (igraph.Graph(n=g.vcount(), vertex_attrs={
            "name": [str(-i) for i in range(g.vcount())]}), "no vertex called")):
        with pytest.raises(ValueError, match=message):
            found.to_igraph(wrong)
    with pytest.raises(ValueError, match="'score'"):
        cluster.mcl(g, weight="score")
    g.es[0]["weight"] = None
    with pytest.raises(ValueError, match="an edge of the graph has no 'weight'"):
        cluster.mcl(g)
    assert len(cluster.mcl(igraph.Graph(), 2.0)) == 0
    arcs = igraph.Graph([(0, 1), (1, 2), (2, 0), (3, 2)], directed=True)
    assert (graph.contract(arcs, range(4)).toarray() == arcs.get_adjacency().data).all()
    assert (graph.contract(arcs.as_undirected(), range(4)).toarray() == arcs.as_undirected().get_adjacency().data).all()
    digraph = networkx.DiGraph(arcs.get_edgelist())
    assert (graph.contract(digraph, range(4)).toarray() == networkx.to_numpy_array(digraph)).all()


def test_nodes_in_several_clusters_make_a_cover_in_igraph():
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    path = igraph.Graph([(0, 1), (1, 2), (2, 3), (3, 4)])
    found = cluster.mcl(path, 1.9, overlap="keep")
    assert len(found.members) > 5
    cover = found.to_igraph(path)
    assert isinstance(cover, igraph.VertexCover) and as_sets(cover) == as_sets(found.clusters())


def test_clusterings_of_cdlib():
    cdlib = pytest.importorskip("cdlib", reason="cdlib is not installed (LARGE=1 make test-python installs it)")
    g = networkx.karate_club_graph()
    found = cluster.mcl(g, weight=None)
    made = found.to_cdlib(g)
    assert isinstance(made, cdlib.NodeClustering) and as_sets(made.communities) == as_sets(found.clusters())
    assert made.method_name == "mcl" and made.method_parameters == {"inflation": 2.0} and not made.overlap


def test_neighbours_of_cells(rng):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    weights = ss.random(40, 40, 0.1, "csr", dtype=np.float32, random_state=1)
    weights = ((weights + weights.T) / 2).tocsr()
    cells = anndata.AnnData(np.zeros((40, 2), np.float32))
    cells.obs_names = [f"cell {i}" for i in range(40)]
    with pytest.raises(ValueError, match="scanpy.pp.neighbors"):
        cluster.mcl(cells)
    cells.obsp["connectivities"] = weights
    found = cluster.mcl(cells)
    assert (found.labels == cluster.mcl(weights).labels).all() and found.nodes == list(cells.obs_names)
    ones = weights.copy()
    ones.data[:] = 1
    assert (cluster.mcl(cells, weight=None).labels == cluster.mcl(ones).labels).all()
    assert (cells.obsp["connectivities"] != weights).nnz == 0  # unchanged
    cells.obsp["other"] = ones
    assert (cluster.mcl(cells, weight="other").labels == cluster.mcl(ones).labels).all()
    cells.uns["neighbors"] = {"connectivities_key": "other"}
    assert (cluster.mcl(cells).labels == cluster.mcl(ones).labels).all()
