"""Models as `gnn train` makes them, whose weights go from one to the other as safetensors."""

from __future__ import annotations

import json
import os
from typing import Any, Optional, Sequence, Union

import torch
from torch import Tensor

from ._layers import GATConv, GCNConv, GINConv, SAGEConv

MODELS = ("gcn", "sage", "sage-max", "gin", "gat")
NORMS = ("none", "batch", "layer")
JUMPS = ("none", "last", "cat", "max")
TASKS = ("node", "link")


class Classifier(torch.nn.Module):
    """A model of `gnn train`, with its parameters: layers, and between them norm, activation, dropout and residual.

    Parameters
    ----------
    model : {"gcn", "sage", "sage-max", "gin", "gat"}
    inputs, outputs : int
        Features, classes.
    hidden : int
        Columns between layers; for gat of each head.
    layers : int
    heads : int
        Of gat; the last layer has one.
    norm : {"none", "batch", "layer"}
    residual : bool
        Add the output of a layer to that of the next one.
    jump : {"none", "last", "cat", "max"}
        Classes by the outputs of all layers.
    dropout, input_dropout, attention_dropout : float
    normalised_features : bool
        Divide each row of features by the sum of its magnitudes.
    several_classes_a_node, undirected : bool
        What `gnn predict` has to know: nodes can have several classes; each edge of its folder stands for both
        directions.
    classes, features : sequence of str
        Their names, or nothing.
    task : {"node", "link"}
        What the outputs are: logits of the classes of nodes, or numbers of nodes, whose dot products are the logits of
        links.

    Notes
    -----
    `forward` takes x, an edge_index of sources and targets without repeated edges, both directions of each if the
    graph is undirected, and for gcn the weights of edges. It returns logits. Loops are taken as gnn takes them.
    """

    def __init__(self, model: str, inputs: int, outputs: int, hidden: int = 16, layers: int = 2, heads: int = 8,
                 norm: str = "none", residual: bool = False, jump: str = "none", dropout: float = 0.5,
                 input_dropout: float = 0.0, attention_dropout: float = 0.0, normalised_features: bool = True,
                 several_classes_a_node: bool = False, undirected: bool = False, classes: Sequence[str] = (),
                 features: Sequence[str] = (), task: str = "node") -> None:
        super().__init__()
        for value, known in ((model, MODELS), (norm, NORMS), (jump, JUMPS), (task, TASKS)):
            if value not in known:
                raise ValueError(f"{value!r} is none of {', '.join(known)}")
        if (classes and len(classes) != outputs) or (features and len(features) != inputs):
            raise ValueError("there must be as many names as classes, and as features, or none")
        self.model, self.inputs, self.outputs, self.hidden, self.layers = model, inputs, outputs, hidden, layers
        self.heads, self.norm, self.residual, self.jump = heads, norm, residual, jump
        self.dropout, self.input_dropout, self.attention_dropout = dropout, input_dropout, attention_dropout
        self.normalised_features, self.several_classes_a_node = normalised_features, several_classes_a_node
        self.undirected, self.classes, self.features = undirected, tuple(classes), tuple(features)
        self.task = task
        self.width = hidden * heads if model == "gat" else hidden
        hidden_layers = layers if jump != "none" else layers - 1
        self.convs = torch.nn.ModuleList(
            self._conv(inputs if i == 0 else self.width, i < hidden_layers) for i in range(layers))
        make: Any = {"none": None, "batch": torch.nn.BatchNorm1d, "layer": torch.nn.LayerNorm}[norm]
        self.norms: Any = torch.nn.ModuleList(make(self.width) for _ in range(hidden_layers)) if make else None
        self.readout: Any = None
        if jump != "none":
            self.readout = torch.nn.Linear(self.width * (layers if jump == "cat" else 1), outputs)
        self._edges: Any = None

    def _conv(self, inputs: int, inner: bool) -> torch.nn.Module:
        outputs = self.hidden if inner else self.outputs
        if self.model == "gcn":
            return GCNConv(inputs, outputs, add_self_loops=False)
        if self.model == "gin":
            return GINConv(torch.nn.Sequential(torch.nn.Linear(inputs, self.hidden), torch.nn.ReLU(),
                                               torch.nn.Linear(self.hidden, outputs)))
        if self.model == "gat":
            return GATConv(inputs, outputs, self.heads if inner else 1, concat=inner, dropout=self.attention_dropout)
        return SAGEConv(inputs, outputs, aggr="max" if self.model == "sage-max" else "mean")

    def _prepare(self, edge_index: Tensor, weight: Optional[Tensor], nodes: int) -> tuple[Tensor, Optional[Tensor]]:
        """The edges that the layers take, kept for the next call: gcn adds 1 to each loop, sage and gin drop loops."""
        if self.model != "gcn":
            weight = None
        key = (edge_index, edge_index._version, weight, None if weight is None else weight._version, nodes)
        if self._edges is not None and all(a is b or (isinstance(a, int) and a == b)
                                           for a, b in zip(self._edges[0], key)):
            return self._edges[1]
        made = edge_index
        if self.model == "gcn":
            loops = torch.arange(nodes, device=edge_index.device).expand(2, -1)
            made = torch.cat([edge_index, loops], 1)
            ones = torch.ones(nodes if weight is not None else made.shape[1], device=edge_index.device)
            weight = ones if weight is None else torch.cat([weight, ones.to(weight.dtype)])
        elif self.model != "gat":
            made = edge_index[:, edge_index[0] != edge_index[1]]
        self._edges = (key, (made, weight))
        return made, weight

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Optional[Tensor] = None) -> Tensor:
        """The logits of all nodes."""
        edges, weight = self._prepare(edge_index, edge_weight, x.shape[0])
        if self.normalised_features:
            sums = x.abs().sum(1, keepdim=True)
            x = x / torch.where(sums > 0, sums, torch.ones_like(sums))
        x = torch.nn.functional.dropout(x, self.input_dropout, self.training)
        outputs: list[Tensor] = []
        for i, conv in enumerate(self.convs):
            z = conv(x, edges, weight) if self.model == "gcn" else conv(x, edges)
            if i == self.layers - 1 and self.readout is None:
                return z
            if self.norms is not None:
                z = self.norms[i](z)
            z = torch.nn.functional.elu(z) if self.model == "gat" else z.relu()
            z = torch.nn.functional.dropout(z, self.dropout, self.training)
            x = z + x if self.residual and i > 0 else z
            outputs.append(x)
        if self.jump == "cat":
            x = torch.cat(outputs, 1)
        elif self.jump == "max":
            x = torch.stack(outputs).amax(0)
        logits: Tensor = self.readout(x)
        return logits

    def _tensors(self) -> dict[str, tuple[Tensor, bool]]:
        """The tensors of the file, and whether torch has them transposed. The others are rows in the file."""
        tensors: dict[str, tuple[Tensor, bool]] = {}
        c: Any  # layers of all kinds, whose parts torch's types do not tell
        for i, c in enumerate(self.convs):
            at = f"layer{i + 1}."
            if self.model == "gcn":
                tensors |= {at + "weight": (c.lin.weight, True), at + "bias": (c.bias, False)}
            elif self.model == "gin":
                for n, lin in ((1, c.nn[0]), (2, c.nn[2])):
                    tensors |= {f"{at}weight_{n}": (lin.weight, True), f"{at}bias_{n}": (lin.bias, False)}
            elif self.model == "gat":
                tensors |= {at + "weight": (c.lin.weight, True), at + "attention_left": (c.att_dst, False),
                            at + "attention_right": (c.att_src, False), at + "bias": (c.bias, False)}
            else:
                tensors |= {at + "weight_self": (c.lin_r.weight, True),
                            at + "weight_neighbours": (c.lin_l.weight, True), at + "bias": (c.lin_l.bias, False)}
            if self.norms is not None and i < len(self.norms):
                norm: Any = self.norms[i]
                tensors |= {at + "norm_scale": (norm.weight, False), at + "norm_shift": (norm.bias, False)}
                if self.norm == "batch":
                    tensors |= {at + "norm_mean": (norm.running_mean, False),
                                at + "norm_variance": (norm.running_var, False)}
        if self.readout is not None:
            tensors |= {"jump.weight": (self.readout.weight, True), "jump.bias": (self.readout.bias, False)}
        return tensors


def _rows(tensor: Tensor, transposed: bool) -> Tensor:
    """As the file has it, with two dimensions."""
    tensor = tensor.detach()
    return tensor.t() if transposed else tensor.reshape(-1, tensor.shape[-1])


def _flag(texts: dict[str, str], key: str) -> bool:
    return texts.get(key) == "yes"


def load_model(path: Union[str, os.PathLike[str]]) -> Classifier:
    """The model of a file that `gnn train --save F.safetensors` or `save_model` wrote, ready to predict.

    Raises
    ------
    ValueError
        The file is no such model; the sentence says why.
    NotImplementedError
        The model keeps the largest numbers of each row (`--maxk`).
    """
    with open(path, "rb") as file:
        raw = file.read()
    length = int.from_bytes(raw[:8], "little")
    try:
        header = json.loads(raw[8:8 + length])
        texts = header.pop("__metadata__")
        if "maxk" in texts:
            raise NotImplementedError(f"{path}: a model with MaxK; gnn predict takes it")
        count: dict[str, Any] = {key: int(texts[key]) for key in ("inputs", "outputs", "hidden", "layers")}
        rates: dict[str, Any] = {key: float(texts.get(key, 0))
                                 for key in ("dropout", "input_dropout", "attention_dropout")}
        model = Classifier(
            texts["model"], **count, **rates, heads=int(texts.get("heads", 8)), norm=texts.get("norm", "none"),
            jump=texts.get("jump", "none"), residual=_flag(texts, "residual"),
            normalised_features=_flag(texts, "normalised_features"), undirected=_flag(texts, "undirected"),
            several_classes_a_node=_flag(texts, "several_classes_a_node"),
            task=texts.get("task", "node"), classes=texts.get("classes", "").split("\n")[:-1],
            features=texts.get("features", "").split("\n")[:-1])
        wanted = model._tensors()
        if set(wanted) != set(header):
            raise ValueError(f"its tensors are not those of its model: {', '.join(sorted(set(wanted) ^ set(header)))}")
        for name, (tensor, transposed) in wanted.items():
            shape, (begin, end) = header[name]["shape"], header[name]["data_offsets"]
            rows = _rows(tensor, transposed)
            if list(shape) not in (list(rows.shape), list(tensor.shape)) or header[name]["dtype"] != "F32":
                raise ValueError(f"{name} is not F32 of {list(rows.shape)}")
            numbers = torch.frombuffer(bytearray(raw[8 + length + begin:8 + length + end]), dtype=torch.float32)
            rows.copy_(numbers.reshape(rows.shape))
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        if isinstance(error, NotImplementedError):
            raise
        raise ValueError(f"{path}: this is no model of gnn: {error}") from error
    return model.eval()


def save_model(model: Classifier, path: Union[str, os.PathLike[str]]) -> None:
    """Write the model for `gnn predict --load` and `gnn train --resume`; the name of the file ends in .safetensors."""
    if not os.fspath(path).endswith(".safetensors"):
        raise ValueError(f"{path}: gnn takes weights from files whose names end in .safetensors")
    texts = {"format": "gnn", "task": model.task, "model": model.model, "norm": model.norm, "jump": model.jump}
    texts |= {key: str(getattr(model, key)) for key in ("layers", "inputs", "hidden", "outputs", "dropout",
                                                        "input_dropout", "attention_dropout")}
    texts |= {key: "yes" if getattr(model, key) else "no" for key in ("residual", "normalised_features", "undirected",
                                                                      "several_classes_a_node")}
    if model.model == "gat":
        texts["heads"] = str(model.heads)
    for key in ("classes", "features"):
        if getattr(model, key):
            texts[key] = "".join(f"{name}\n" for name in getattr(model, key))
    header: dict[str, Any] = {"__metadata__": texts}
    data = b""
    for name, (tensor, transposed) in model._tensors().items():
        rows = _rows(tensor, transposed).to("cpu", torch.float32).contiguous()
        part = rows.numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(rows.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


__all__ = ["Classifier", "load_model", "save_model"]
