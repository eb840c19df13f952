"""Arrays and sparse matrices that contract reads and writes, against scipy.

    contract_arrays.py CONTRACT     in an empty folder; ends with 0 if all is as scipy has it
"""
import subprocess
import sys

import numpy as np
import scipy.sparse as sp

tool = sys.argv[1]


def contract(*arguments, input=None):
    done = subprocess.run([tool, *arguments, "--quiet"], capture_output=True, input=input)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def quotient(matrix, labels):
    """S A S' by scipy."""
    nodes, groups = len(labels), int(labels.max(initial=-1)) + 1
    members = sp.csr_array((np.ones(nodes), (labels, np.arange(nodes))), shape=(groups, nodes))
    return (members @ sp.csr_array(matrix).astype(float) @ members.T).toarray()


def graph(random, nodes, dtype, symmetric):
    dense = np.ceil(20 * random.random((nodes, nodes))) * (random.random((nodes, nodes)) < 0.2)
    return np.maximum(dense, dense.T).astype(dtype) if symmetric else dense.astype(dtype)


def check_kinds(random):
    kinds = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix]
    for kind in kinds:
        for dtype in (float, np.float32, np.int64, np.int32, np.uint8, bool):
            matrix = kind(graph(random, 30, dtype, random.random() < 0.5))
            labels = random.integers(0, 6, 30)
            labels[random.integers(30)] = 0
            sp.save_npz("a.npz", matrix, compressed=random.random() < 0.5)
            np.save("labels.npy", labels.astype(random.choice(["i1", ">i2", "i4", "i8", "u2", "f4", "f8"])))
            contract("a.npz", "labels.npy", "-o", "c.npz")
            made = sp.load_npz("c.npz")
            assert made.format == "csr" and made.has_canonical_format
            np.testing.assert_array_equal(made.toarray(), quotient(matrix, labels), str((kind, dtype)))


def check_odd_entries():
    """Unsorted rows, repeated entries and zeros; coordinates in one array; edges alone."""
    rows, columns, values = [2, 0, 0, 2, 1], [1, 2, 1, 1, 1], [1.5, 2, 0, 4, -1]
    repeated = sp.coo_array((values, (rows, columns)), shape=(3, 3))
    sp.save_npz("a.npz", repeated)
    np.save("labels.npy", np.array([0, 1, 2]))
    contract("a.npz", "labels.npy", "-o", "c.npz")
    np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), repeated.toarray())
    np.savez("a.npz", format=b"coo", shape=(3, 3), data=values, coords=np.array([rows, columns]))
    contract("a.npz", "labels.npy", "-o", "c.npz")
    np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), repeated.toarray())
    np.savez("a.npz", format="csr", shape=(3, 3), data=[1, 2, 3], indices=[2, 0, 1], indptr=[0, 3, 3, 3])
    contract("a.npz", "labels.npy", "-o", "c.npz")
    np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), [[2, 3, 1], [0, 0, 0], [0, 0, 0]])
    sp.save_npz("a.npz", sp.csr_array((0, 0)))
    np.save("labels.npy", np.array([], dtype=int))
    contract("a.npz", "labels.npy", "-o", "c.npz")
    assert sp.load_npz("c.npz").shape == (0, 0)


def check_directions(random):
    """A symmetric matrix is an undirected graph, whose edges label pairs list once."""
    dense = graph(random, 12, float, True)
    sp.save_npz("a.npz", sp.csr_array(dense))
    np.save("labels.npy", np.arange(12))
    once = contract("a.npz", "labels.npy", "-o", "-", "--to", "abc").decode().splitlines()
    assert len(once) == np.count_nonzero(np.triu(dense)), once
    assert once[0].split("\t")[0] == "0"
    twice = contract("a.npz", "labels.npy", "-o", "-", "--to", "abc", "--directed").decode().splitlines()
    assert len(twice) == np.count_nonzero(dense)
    contract("a.npz", "labels.npy", "-o", "c.npz", "--undirected")
    np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), dense)
    sp.save_npz("a.npz", sp.csr_array(np.triu(dense, 1)))
    contract("a.npz", "labels.npy", "-o", "c.npz", "--undirected")
    np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), dense - np.diag(np.diag(dense)))
    dense[0, 5] += 1
    sp.save_npz("a.npz", sp.csr_array(dense))
    lines = contract("a.npz", "labels.npy", "-o", "-", "--to", "abc").decode().splitlines()
    entries = {(int(a), int(b)): float(w) for a, b, w in (line.split("\t") for line in lines)}
    assert entries == {(i, j): dense[i, j] for i, j in zip(*np.nonzero(dense))}


def check_maps(random):
    dense = graph(random, 40, float, True)
    sp.save_npz("a.npz", sp.csr_array(dense))
    contract("a.npz", "-o", "h.npz", "--repeat", "two-hop", "--levels", "2")
    total, levels = np.load("h.npz.total.npy"), [np.load(f"h.npz.level{k}.npy") for k in (1, 2)]
    assert total.shape == (40,) and total.dtype.kind == "i"
    np.testing.assert_array_equal(levels[1][levels[0]], total)
    np.testing.assert_array_equal(sp.load_npz("h.npz").toarray(), quotient(dense, total))
    contract("a.npz", "h.npz.total.npy", "-o", "c.npz")
    np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), sp.load_npz("h.npz").toarray())


def check_labels():
    """Unassigned nodes, names, and a graph whose nodes are named by numbers."""
    sp.save_npz("a.npz", sp.csr_array(np.ones((4, 4))))
    for labels in ([3, -1, 1, 1], [3, np.nan, 1, 1]):
        np.save("labels.npy", np.array(labels))
        contract("a.npz", "labels.npy", "-o", "c.npz", "--unlabelled", "drop", "--compact")
        np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), [[4, 2], [2, 1]])
    for kind in ("U", "S"):
        np.save("labels.npy", np.array(["left", "right", "right", "left"], dtype=kind))
        lines = contract("a.npz", "labels.npy", "-o", "-", "--to", "abc")
        assert lines == b"left\tleft\t4\nleft\tright\t4\nright\tright\t4\n", lines
    with open("edges.txt", "w") as edges:
        edges.write("2 0 5\n1 2 7\n")
    np.save("labels.npy", np.array([10, 11, 12]))
    lines = contract("edges.txt", "labels.npy", "-o", "-", "--to", "abc")
    assert lines == b"10\t12\t5\n11\t12\t7\n", lines


def check_streams(random):
    dense = graph(random, 9, float, False)
    sp.save_npz("a.npz", sp.csr_array(dense))
    np.save("labels.npy", np.arange(9) // 2)
    with open("a.npz", "rb") as file:
        packed = file.read()
    with open("c.npz", "wb") as file:
        file.write(contract("-", "labels.npy", "-o", "-", "--to", "npz", input=packed))
    np.testing.assert_array_equal(sp.load_npz("c.npz").toarray(), quotient(dense, np.arange(9) // 2))


random = np.random.default_rng(5)
check_kinds(random)
check_odd_entries()
check_directions(random)
check_maps(random)
check_labels()
check_streams(random)
