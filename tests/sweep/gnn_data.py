"""Small random data for gnn, in all the layouts that docs/formats.md names, and what they must be read as."""
import gzip
import json
import os
import pickle
import shutil
import struct
import subprocess
import zlib

import numpy as np
import scipy.sparse as sparse

SPLITS = ["unused", "train", "val", "test"]


def one_of(rng, values):
    return values[int(rng.integers(len(values)))]


class Data:
    """edges: SOURCE, TARGET, WEIGHT as listed; adjacency: row i has what node i hears from, as it must be read."""
    def __init__(self, rng, directed=None, weighted=None, loops=True, repeats=True, several=None, names=None, least=1):
        self.rng, self.n = rng, int(rng.integers(least, (6, 30)[rng.integers(2)] + least))
        self.directed = rng.random() < 0.6 if directed is None else directed
        self.weighted = rng.random() < 0.4 if weighted is None else weighted
        n, count = self.n, int(rng.integers(0, 4 * self.n + 1))
        pairs = rng.integers(0, n, (count, 2))
        if rng.random() < 0.3:
            pairs[:, 1] = pairs[:, 1] * (n // 2) // max(n, 1)  # the nodes above hear nothing
        if not loops:
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        weights = np.ones(len(pairs))
        if self.weighted:
            weights = rng.integers(0 if rng.random() < 0.2 else 1, 12, len(pairs)) / 4
        self.edges = list(zip(*pairs.T.tolist(), weights.tolist())) if len(pairs) else []
        if not repeats or not self.directed:
            self.edges = [(s, t, w) for (s, t), w in {(s, t): w for s, t, w in self.edges}.items()]
        if not self.directed:
            self.edges = [e for (s, t), w in {(min(s, t), max(s, t)): w for s, t, w in self.edges}.items()
                          for e in {(s, t, w), (t, s, w)}]
        self.adjacency = self.read(self.edges)
        self.make_features()
        self.make_labels(rng.random() < 0.15 if several is None else several,
                         rng.random() < 0.3 if names is None else names)
        self.split = rng.integers(1, 4, n)
        self.split[(self.labels < 0 if not self.several else np.zeros(n, bool)) | (rng.random(n) < 0.1)] = 0
        self.split[0] = 1

    def read(self, edges):
        """Repeated edges are summed, unless all weights are 1; weight 0 is no edge."""
        a = np.zeros((self.n, self.n))
        for s, t, w in edges:
            a[t, s] += w
        return np.minimum(a, 1) if all(w == 1 for _, _, w in edges) else a

    def make_features(self):
        rng, columns = self.rng, int(self.rng.integers(1, 12))
        x = rng.normal(size=(self.n, columns)) * (rng.random((self.n, columns)) < one_of(rng, [0.3, 1]))
        if rng.random() < 0.3:
            x = np.round(x)
        self.features = x.astype(np.float32)

    def make_labels(self, several, names):
        rng, self.classes = self.rng, int(self.rng.integers(1, 6))
        self.several, self.names = several, None
        if several:
            self.classes += 1
            self.labels = (rng.random((self.n, self.classes)) < 0.4).astype(int)
            return
        self.labels = rng.integers(-1 if rng.random() < 0.3 else 0, self.classes, self.n)
        self.labels[0] = self.classes - 1
        if names and (self.labels >= 0).any():
            pool = sorted(rng.permutation(["Zoo", "apple", "b-1", "élan", "x2y", "Apple", "nano", "_"])[:self.classes],
                          key=lambda name: name.encode())
            used = np.unique(self.labels[self.labels >= 0])
            self.names = [pool[c] for c in used]
            self.labels = np.where(self.labels < 0, -1, np.searchsorted(used, self.labels))
            self.classes = len(used)


def pack(rng, path, data, text=True):
    """Writes, now and then compressed."""
    data = data.encode() if isinstance(data, str) else data
    if text and rng.random() < 0.1:
        data = data.replace(b"\n", b"\r\n")
    how = rng.random()
    if how < 0.1:
        path, data = path + ".gz", gzip.compress(data)
    elif how < 0.2 and shutil.which("zstd"):
        path, data = path + ".zst", subprocess.run(["zstd", "-qc"], input=data, capture_output=True).stdout
    with open(path, "wb") as file:
        file.write(data)
    return path


def saved(save, *arguments, **named):
    import io
    buffer = io.BytesIO()
    save(buffer, *arguments, **named)
    return buffer.getvalue()


def number(x):
    return f"{x:.9g}"


def csr_file(rng, a, shuffle=True):
    """A scipy archive with rows in any order and, where sums allow it, entries in two parts."""
    a = sparse.csr_matrix(a)
    if shuffle and a.nnz:
        for i in range(a.shape[0]):
            at = slice(a.indptr[i], a.indptr[i + 1])
            order = rng.permutation(a.indptr[i + 1] - a.indptr[i])
            a.indices[at], a.data[at] = a.indices[at][order], a.data[at][order]
    if rng.random() < 0.5:
        a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    return saved(sparse.save_npz, a, compressed=bool(rng.integers(2)))


def write_graph(d, folder, kind=None, stem="graph"):
    """The graph in one of its layouts; returns the file."""
    rng, kinds = d.rng, ["list"] * 3 + ["mtx", "npz", "bin"]
    symmetric = (d.adjacency == d.adjacency.T).all()
    a = d.adjacency
    if symmetric and not np.diag(a).any():
        kinds += ["metis"]
    if symmetric:
        kinds += ["symmetric", "mci"]
    kind = kind or one_of(rng, kinds)
    entries = [(int(i), int(j), a[i, j]) for i, j in zip(*np.nonzero(a))]
    whole = all(w == 1 for _, _, w in entries)
    path = lambda ending: os.path.join(folder, stem + ending)
    if kind == "list":
        return write_list(d, path)
    if kind in ("mtx", "symmetric"):
        if kind == "symmetric":
            entries = [e for e in entries if e[0] >= e[1]]
        entries = [entries[k] for k in rng.permutation(len(entries))]
        field = "pattern" if whole and rng.random() < 0.7 else "real"
        lines = [f"%%MatrixMarket matrix coordinate {field} {'symmetric' if kind == 'symmetric' else 'general'}",
                 "% a comment", f"{d.n} {d.n} {len(entries)}"]
        lines += [f"{i + 1} {j + 1}" + ("" if field == "pattern" else " " + number(w)) for i, j, w in entries]
        return pack(rng, path(".mtx"), "\n".join(lines) + "\n")
    if kind == "npz":
        dtype = one_of(rng, [bool, np.float32, np.int64]) if whole else one_of(rng, [np.float32, np.float64])
        return pack(rng, path(".npz"), csr_file(rng, a.astype(dtype)), text=False)
    if kind == "metis":
        count = len(entries) // 2
        lines = ["% nodes, edges, format", f"{d.n} {count}" + ("" if whole else " 001")]
        lines += [" ".join(f"{j + 1}" + ("" if whole else " " + number(a[i, j])) for j in np.flatnonzero(a[i]))
                  for i in range(d.n)]
        return pack(rng, path(one_of(rng, [".metis", ".graph"])), "\n".join(lines) + "\n")
    if kind == "mci":
        columns = [" ".join([str(i)] + [f"{j}:{number(a[i, j])}" for j in np.flatnonzero(a[i])] + ["$"])
                   for i in range(d.n)]
        return pack(rng, path(".mci"), f"(mclheader\nmcltype matrix\ndimensions {d.n}x{d.n}\n)\n(mclmatrix\nbegin\n" +
                    "\n".join(columns) + "\n)\n", text=False)
    header = b"\x89SPCSR\r\n" + struct.pack("<IIqqqq", 1, 0 if whole else 1, d.n, d.n, len(entries), 0)
    offsets = np.concatenate([[0], np.cumsum((a != 0).sum(1))]).astype("<i8").tobytes()
    body = offsets + np.nonzero(a)[1].astype("<i4").tobytes() + (b"" if whole else a[a != 0].astype("<f4").tobytes())
    return pack(rng, path(".bin"), header + struct.pack("<II", zlib.crc32(header), 0) + body +
                struct.pack("<II", zlib.crc32(body), 0), text=False)


def write_list(d, path):
    rng, mark = d.rng, one_of(d.rng, [",", ";", "\t", " "])
    edges = [d.edges[k] for k in rng.permutation(len(d.edges))]
    lines = [mark.join([str(s), str(t)] + ([number(w)] if d.weighted or rng.random() < 0.02 else []))
             for s, t, w in edges]
    if rng.random() < 0.3:
        lines.insert(0, mark.join(["source", "target"] + ["weight"] * d.weighted))
    for _ in range(int(rng.integers(3))):
        lines.insert(int(rng.integers(len(lines) + 1)), one_of(rng, ["# a comment", "% another", ""]))
    end = "\n" * bool(lines and rng.random() < 0.9)
    return pack(rng, path(one_of(rng, [".tsv", ".csv", ".txt"])), "\n".join(lines) + end)


def write_features(d, folder, kind=None, stem="features"):
    """The features in one of their layouts; returns the file and whether it is sparse."""
    rng, x = d.rng, d.features
    kind = kind or one_of(rng, ["text", "npy", "npz", "array", "coordinate"])
    path = lambda ending: os.path.join(folder, stem + ending)
    if kind == "text":
        mark = one_of(rng, [",", ";", "\t", " "])
        lines = [mark.join(map(number, row)) for row in x]
        if rng.random() < 0.3:
            lines.insert(0, mark.join(f"f{k}" for k in range(x.shape[1])))
        return pack(rng, path(".csv"), "\n".join(lines) + "\n"), False
    if kind == "npy":
        types = [np.float32, np.float64, ">f4", ">f8"] + [np.int8, np.int64, ">i2"] * bool((x == np.round(x)).all())
        order = one_of(rng, [np.ascontiguousarray, np.asfortranarray])
        return pack(rng, path(".npy"), saved(np.save, order(x.astype(one_of(rng, types)))), text=False), False
    if kind == "npz":
        return pack(rng, path(".npz"), csr_file(rng, x), text=False), True
    if kind == "array":
        lines = ["%%MatrixMarket matrix array real general", f"{x.shape[0]} {x.shape[1]}"]
        lines += [number(v) for v in x.T.ravel()]
        return pack(rng, path(".mtx"), "\n".join(lines) + "\n"), False
    at = np.argwhere(x)
    at = at[rng.permutation(len(at))]
    lines = ["%%MatrixMarket matrix coordinate real general", f"{x.shape[0]} {x.shape[1]} {len(at)}"]
    lines += [f"{i + 1} {j + 1} {number(x[i, j])}" for i, j in at]
    return pack(rng, path(".mtx"), "\n".join(lines) + "\n"), True


def write_labels(d, folder, stem="labels", plain=False):
    """The labels in one of their layouts; returns the file and the number of classes that it tells."""
    rng, y = d.rng, d.labels
    path = lambda ending: os.path.join(folder, stem + ending)
    if d.several:
        if rng.random() < 0.5:
            y = y.astype(one_of(rng, [bool, np.uint8, np.int64, np.float32]))
            return pack(rng, path(".npy"), saved(np.save, y), text=False), d.classes
        at = np.argwhere(y)
        lines = ["%%MatrixMarket matrix coordinate pattern general", f"{d.n} {d.classes} {len(at)}"]
        return pack(rng, path(".mtx"), "\n".join(lines + [f"{i + 1} {c + 1}" for i, c in at]) + "\n"), d.classes
    words = [d.names[c] if d.names and c >= 0 else str(c) for c in y]
    if d.names and y[0] < 0 or not plain and d.names is None and rng.random() < 0.4:
        if d.names is None:
            kind = one_of(rng, [np.int8, np.int32, np.int64, ">i4"] + [np.uint8] * bool((y >= 0).all()))
            y = y.astype(kind).reshape((-1, 1) if rng.random() < 0.2 else -1)
            return pack(rng, path(".npy"), saved(np.save, y), text=False), int(max(y.max(), -1)) + 1
        words[0] = d.names[0]  # the first one says that there are names
        d.labels[0] = 0
    if not plain and rng.random() < 0.2:
        words.insert(0, "label")
        if d.names:
            words.pop(0)
    return pack(rng, path(".txt"), "\n".join(words) + "\n"), d.classes if d.names else int(max(y.max(), -1)) + 1


def write_split(d, folder):
    rng, kind = d.rng, one_of(d.rng, ["lists", "words", "numbers", "npy", "arrays"])
    put = lambda name, lines: pack(rng, os.path.join(folder, name), "".join(f"{line}\n" for line in lines))
    if kind in ("lists", "arrays"):
        for code, name in enumerate(SPLITS[1:], 1):
            nodes = rng.permutation(np.flatnonzero(d.split == code))
            if not nodes.size:
                continue
            if kind == "arrays":
                pack(rng, os.path.join(folder, name + ".npy"), saved(np.save, nodes), text=False)
            else:
                put(name + ".txt", nodes)
    elif kind == "npy":
        codes = d.split.astype(one_of(rng, [np.uint8, np.int64]))
        pack(rng, os.path.join(folder, "split.npy"), saved(np.save, codes), text=False)
    else:
        put("split.txt", [SPLITS[c] for c in d.split] if kind == "words" else d.split)


def write_folder(d, folder, **kinds):
    """A whole folder; sets d.classes to what its files tell."""
    os.makedirs(folder)
    write_graph(d, folder, kinds.get("graph"))
    d.sparse = write_features(d, folder, kinds.get("features"))[1]
    d.classes = write_labels(d, folder, plain=kinds.get("plain", False))[1]
    write_split(d, folder)


# ---- folders and archives of others

def write_saint(d, folder):
    os.makedirs(folder)
    whole = (d.adjacency[d.adjacency != 0] == 1).all()
    with open(f"{folder}/adj_full.npz", "wb") as file:
        file.write(csr_file(d.rng, d.adjacency.astype(bool if whole else np.float32)))
    np.save(f"{folder}/feats.npy", d.features.astype(one_of(d.rng, [np.float32, np.float64])))
    order = d.rng.permutation(d.n).tolist()
    json.dump({str(i): d.labels[i].tolist() for i in order}, open(f"{folder}/class_map.json", "w"))
    json.dump({name: d.rng.permutation(np.flatnonzero(d.split == code)).tolist()
               for code, name in ((1, "tr"), (2, "va"), (3, "te"))}, open(f"{folder}/role.json", "w"))


def write_benchmark(d, path):
    a, x, members = sparse.csr_matrix(d.adjacency.astype(np.float32)), sparse.csr_matrix(d.features), {}
    if d.rng.random() < 0.3:
        np.savez(path, adj_matrix=np.array(a, object), node_attr=np.array(x, object), node_label=d.labels)
        return True
    for name, m in (("adj", a), ("attr", x)):
        members.update({f"{name}_data": m.data, f"{name}_indices": m.indices, f"{name}_indptr": m.indptr,
                        f"{name}_shape": np.array(m.shape)})
    dense = d.rng.random() < 0.3
    if dense:
        members = {k: v for k, v in members.items() if not k.startswith("attr")} | {"attr_matrix": d.features}
    one_of(d.rng, [np.savez, np.savez_compressed])(path, **members, labels=d.labels)
    return not dense


def write_planetoid(d, folder):
    """Nodes of .allx, then those of .test.index in the order of .tx; a ring of neighbours as lists."""
    os.makedirs(folder)
    rng, n = d.rng, d.n
    tests = rng.permutation(np.arange(n - max(1, n // 4), n))
    rest, train = n - tests.size, max(1, n // 3)
    one_hot = np.eye(d.classes, dtype=np.int32)[d.labels]
    graph = {i: [] for i in range(n)}
    for s, t, _ in d.edges:
        graph[s].append(t)
    x = sparse.csr_matrix(d.features)
    parts = dict(x=x[:train], y=one_hot[:train], allx=x[:rest], ally=one_hot[:rest], tx=x[tests], ty=one_hot[tests],
                 graph=graph)
    for name, part in parts.items():
        pickle.dump(part, open(f"{folder}/ind.tiny.{name}", "wb"), protocol=int(rng.integers(2, 5)))
    open(f"{folder}/ind.tiny.test.index", "w").write("".join(f"{i}\n" for i in tests))
    d.split = np.zeros(n, int)
    d.split[:train], d.split[train:min(rest, train + 500)], d.split[tests] = 1, 2, 3
