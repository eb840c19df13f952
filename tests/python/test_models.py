"""Models that gnn trained in torch, and the other way."""

import os
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (LARGE=1 make test-python installs it)")

import spgraph.torch as st  # noqa: E402
from conftest import BUILD  # noqa: E402

NODES, FEATURES, CLASSES = 60, 5, 3
KINDS = ["--model gcn", "--model sage", "--model sage-max", "--model gin", "--model gat --heads 3",
         "--model gcn --layers 4 --norm batch --residual", "--model sage --layers 3 --norm layer --jump cat",
         "--model gin --jump last --no-normalise", "--model gat --heads 2 --jump max --residual --norm batch",
         "--model sage-max --layers 1"]


@pytest.fixture
def gnn():
    path = os.path.join(BUILD, "bin", "gnn")
    if not os.path.exists(path):
        pytest.skip("gnn is not built")

    def run(*arguments):
        done = subprocess.run([path, *map(str, arguments), "--device", "cpu"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


@pytest.fixture
def folder(tmp_path):
    """A directed graph with weights and loops, a folder and its tensors."""
    rng = np.random.default_rng(3)
    pairs = np.unique(rng.integers(0, NODES, (400, 2)), axis=0)
    weight = rng.integers(1, 5, len(pairs)) / 4
    x = rng.standard_normal((NODES, FEATURES)).astype(np.float32)
    x[7] = 0
    label = rng.integers(0, CLASSES, NODES)
    d = tmp_path / "d"
    d.mkdir()
    (d / "graph.csv").write_text("".join(f"{s},{t},{w}\n" for (s, t), w in zip(pairs, weight)))
    (d / "features.csv").write_text("a,b,c,d,e\n" + "".join(",".join(map(repr, map(float, row))) + "\n" for row in x))
    (d / "labels.txt").write_text("".join("xyz"[c] + "\n" for c in label))
    return d, torch.from_numpy(x), torch.from_numpy(pairs.T.copy()), torch.from_numpy(weight).float()


def predicted(gnn, folder, model, tmp_path):
    gnn("predict", folder, "--load", model, "--scores", "-o", tmp_path / "scores.npy")
    return torch.from_numpy(np.load(tmp_path / "scores.npy"))


@pytest.mark.parametrize("options", KINDS)
def test_what_gnn_trained_predicts_the_same_in_torch_and_back(gnn, folder, tmp_path, options):
    d, x, edges, weight = folder
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    gnn("train", d, "--split", "8,4", "--hidden", 6, "--epochs", 8, "--save", first, *options.split())
    scores = predicted(gnn, d, first, tmp_path)
    assert scores.std() > 1e-3
    model = st.load_model(first)
    assert model.classes == ("x", "y", "z") and model.features == tuple("abcde") and not model.training
    with torch.no_grad():
        assert torch.allclose(model(x, edges, weight).softmax(1), scores, atol=2e-5)
    st.save_model(model, second)
    assert torch.equal(predicted(gnn, d, second, tmp_path), scores)


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat"])
def test_what_torch_trained_predicts_the_same_in_gnn(gnn, folder, tmp_path, kind):
    d, x, edges, weight = folder
    torch.manual_seed(1)
    model = st.Classifier(kind, FEATURES, CLASSES, 6, layers=3, heads=2, norm="batch", classes=("x", "y", "z"))
    label = torch.randint(CLASSES, (NODES,))
    adam = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(5):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(model(x, edges, weight), label).backward()
        adam.step()
    st.save_model(model, tmp_path / "t.safetensors")
    with torch.no_grad():
        wanted = model.eval()(x, edges, weight).softmax(1)
    assert torch.allclose(predicted(gnn, d, tmp_path / "t.safetensors", tmp_path), wanted, atol=2e-5)
    gnn("train", d, "--split", "8,4", "--epochs", 2, "--resume", tmp_path / "t.safetensors")


def test_files_that_are_no_models_are_refused(folder, gnn, tmp_path):
    path = tmp_path / "a.safetensors"
    st.save_model(st.Classifier("gcn", FEATURES, CLASSES), path)
    raw = path.read_bytes()
    for wrong in (b"", b"{}", raw[:-4], raw.replace(b"layer2.bias", b"layer3.bias"), raw.replace(b"F32", b"F16")):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="this is no model of gnn"):
            st.load_model(path)
    with pytest.raises(ValueError, match="end in .safetensors"):
        st.save_model(st.Classifier("gcn", FEATURES, CLASSES), tmp_path / "a")
    gnn("train", folder[0], "--split", "8,4", "--maxk", 3, "--hidden", 6, "--epochs", 2, "--save", path)
    with pytest.raises(NotImplementedError, match="MaxK"):
        st.load_model(path)
