"""What the networks of gnn compute, plainly in f64, from the numbers of a saved model."""
import struct

import numpy as np

MODELS = ["gcn", "sage", "sage-max", "gin", "gat"]


def saved_parameters(path):
    """The parameters that count of a model; its file's layout is not documented: None where it looks different."""
    data = open(path, "rb").read()
    if data[:12] != b"gnn-save\x03\0\0\0" or len(data) < 296:
        return None
    count = struct.unpack_from("<q", data, 264)[0]
    if not 0 < count < 1 << 20 or len(data) < 296 + 16 * count:
        return None
    return np.frombuffer(data, "<f4", count, 296 + 4 * count).astype(float)


def softmax(z):
    z = np.exp(z - z.max(1, keepdims=True))
    return z / z.sum(1, keepdims=True)


def relu(x):
    return np.maximum(x, 0)


def keep_largest(x, k):
    kept = np.argsort(-x, axis=1, kind="stable")[:, :k]
    y = np.zeros_like(x)
    np.put_along_axis(y, kept, np.take_along_axis(x, kept, 1), 1)
    return y


def attention(z, heads, to, since, present):
    """z combined by a softmax of leaky scores over what each node hears, head by head."""
    width, out = z.shape[1] // heads, np.zeros_like(z)
    for h in range(heads):
        part = z[:, h * width:(h + 1) * width]
        e = (part @ to[h])[:, None] + (part @ since[h])[None, :]
        e = np.where(present, np.where(e > 0, e, 0.2 * e), -np.inf)
        out[:, h * width:(h + 1) * width] = softmax(e) @ part
    return out


def scores(model, parameters, adjacency, features, sizes, inner, heads=1, maxk=0, normalise=True, several=False):
    """The probability of each class of each node. `sizes`: columns of the features, of hidden layers, classes;
    `inner`: those within a layer of gin."""
    x, a, n = features.astype(float), adjacency, adjacency.shape[0]
    if normalise:
        total = abs(x).sum(1, keepdims=True)
        x = x / np.where(total > 0, total, 1)
    loops = a + np.eye(n)
    symmetric = loops / np.sqrt(loops.sum(1))[:, None] / np.sqrt(loops.sum(1))[None, :]
    present = (a != 0) & ~np.eye(n, dtype=bool)
    mean = present / np.maximum(present.sum(1), 1)[:, None]
    at = 0

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return parameters[at - int(np.prod(shape)):at].reshape(shape)
    for layer, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
        last = layer == len(sizes) - 2
        if maxk and not last:  # what neighbours hear keeps maxk numbers a row
            if model == "gcn":
                x = symmetric @ keep_largest(x @ take(fan_in, fan_out) + take(fan_out), maxk)
            else:
                x, others = x @ take(fan_in, fan_out), x @ take(fan_in, fan_out)
                x = x + mean @ keep_largest(others + take(fan_out), maxk)
            continue
        if model == "gcn":
            x = symmetric @ (x @ take(fan_in, fan_out)) + take(fan_out)
        elif model in ("sage", "sage-max"):
            own, others, bias = take(fan_in, fan_out), take(fan_in, fan_out), take(fan_out)
            if model == "sage":
                heard = mean @ x
            else:
                heard = np.array([x[p].max(0) if p.any() else 0 * x[0] for p in present])
            x = x @ own + heard @ others + bias
        elif model == "gin":
            x = relu((present + np.eye(n)) @ x @ take(fan_in, inner) + take(inner))
            x = x @ take(inner, fan_out) + take(fan_out)
        else:
            k = 1 if last else heads
            z = x @ take(fan_in, fan_out)
            to, since = take(k, fan_out // k), take(k, fan_out // k)
            x = attention(z, k, to, since, present | np.eye(n, dtype=bool)) + take(fan_out)
        if not last:
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0))) if model == "gat" else relu(x)
    assert at == parameters.size, (at, parameters.size)
    return 1 / (1 + np.exp(-x)) if several else softmax(x)


def accuracy(d, p, part):
    """The share of the part's nodes that are right, or micro F1; None where there are none."""
    part = part & (np.ones(d.n, bool) if d.several else d.labels >= 0)
    if not part.any():
        return None
    if not d.several:
        return float((p[part].argmax(1) == d.labels[part]).mean())
    got, want = p[part] > 0.5, d.labels[part] == 1
    return float(2 * (got & want).sum() / (got.sum() + want.sum())) if got.any() or want.any() else None


def loss(d, p, part):
    part = part & (np.ones(d.n, bool) if d.several else d.labels >= 0)
    if not part.any():
        return None
    q = np.clip(p, 1e-300, 1)
    if d.several:
        return float(-np.where(d.labels == 1, np.log(q), np.log(np.clip(1 - p, 1e-300, 1)))[part].mean())
    return float(-np.log(q[part, d.labels[part]]).mean())
