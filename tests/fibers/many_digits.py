"""Pairs of weights whose truth is known from 3000-digit arithmetic, written from the definitions.

The symmetries act, and the networks are evaluated, in ball arithmetic; only the finished weights
are rounded to floats. Nothing here uses the library's symmetries or its networks.
"""

from dataclasses import dataclass

import flint
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights, random_weights

BITS = 10_000
"""What the last scores of six softmax layers do can be 150 digits below the outputs, and more."""
KINDS = (
    *({},) * 3,
    *({"attention": "softmax"},) * 4,
    {"heads": 2},
    {"attention": "softmax", "heads": 2},
    {"skip": "residual"},
    {"attention": "softmax", "skip": "residual"},
    {"mask": "causal"},
    {"attention": "softmax", "mask": "causal"},
    {"skip": "inner"},
    {"attention": "softmax", "skip": "inner"},
)


@dataclass(frozen=True)
class Pair:
    """Two weights, whether they have one function, and how ill-conditioned what moved them was."""

    first: Weights
    second: Weights
    same: bool
    condition: float
    kind: str


def balls(matrix):
    rows, columns = np.shape(matrix)
    return flint.arb_mat(rows, columns, [flint.arb(float(x)) for x in np.ravel(matrix)])


def floats(matrix):
    values = [float(x.mid()) for x in matrix.entries()]
    return np.array(values).reshape(matrix.nrows(), matrix.ncols())


def in_balls(weights):
    """One dictionary a layer and head."""
    return [
        [
            {name: balls(T[h]) for name, T in layer.tensors().items()}
            for h in range(weights.architecture.heads)
        ]
        for layer in weights.layers
    ]


def evaluate(layers, architecture, X):
    """φ(X), or φ(X) − X with a residual skip, in balls."""
    t = X.ncols()
    start = tokens = X
    for heads in layers:
        total = balls(np.zeros((heads[0]["value"].nrows(), t)))
        for head in heads:
            scores = (head["key"] * tokens).transpose() * (head["query"] * tokens)
            rows = [[scores[j, i] for i in range(t)] for j in range(t)]
            for i in range(t):
                seen = range(i + 1) if architecture.mask == "causal" else range(t)
                column = [rows[j][i] for j in range(t)]
                if architecture.attention == "softmax":
                    column = [(x - column[0]).exp() for x in column]
                    whole = sum((column[j] for j in seen), flint.arb(0))
                    column = [x / whole for x in column]
                for j in range(t):
                    rows[j][i] = column[j] if j in seen else flint.arb(0)
            P = flint.arb_mat(rows)
            mixed = tokens * P + tokens if architecture.skip == "inner" else tokens * P
            total = total + head["value"] * mixed
        tokens = tokens + total if architecture.skip == "residual" else total
    return tokens - start if architecture.skip == "residual" else tokens


def invertible(n, generator, condition):
    """A matrix of the given condition; exact in floats, so its inverse is taken in balls."""
    left, right = (np.linalg.qr(generator.standard_normal((n, n)))[0] for _ in range(2))
    return balls(left * np.geomspace(condition**0.5, condition**-0.5, n) @ right)


def moved(layers, architecture, generator, condition, scale):
    """The layers after random symmetries: bases, keys against queries, rescaling, permutation."""
    d = architecture.widths
    C = [balls(np.eye(d[0]))]
    for i in range(1, architecture.depth + 1):
        inner = i < architecture.depth and architecture.skip != "residual"
        C.append(invertible(d[i], generator, condition) if inner else balls(np.eye(d[i])))
    found = []
    for i, heads in enumerate(layers):
        back = C[i].inv()
        new = []
        for head in heads:
            D = invertible(architecture.ranks[i], generator, condition)
            factor = flint.arb(float(scale))
            free = architecture.attention == "lightning" and architecture.skip != "inner"
            size = flint.arb(float(np.exp(generator.normal()))) if free else flint.arb(1)
            new.append(
                {
                    "key": D * head["key"] * back * factor * size,
                    "query": D.inv().transpose() * head["query"] * back * (1 / factor),
                    "value": C[i + 1] * head["value"] * back * (1 / size),
                }
            )
        order = generator.permutation(len(new))
        found.append([new[k] for k in order])
    return found


def rounded(layers, architecture, dtype):
    tensors = [
        {
            name: np.stack([floats(head[name]) for head in heads]).astype(dtype)
            for name in ("query", "key", "value")
        }
        for heads in layers
    ]
    return Weights.from_tensors(architecture, tensors)


def changed(weights, generator):
    """Other weights: all of them, the last scores, one tensor, or all entries of a layer by 1%."""
    architecture = weights.architecture
    fresh = random_weights(architecture, int(generator.integers(2**30)))
    kind = ("all", "last scores", "one tensor", "one percent")[generator.integers(4)]
    i = int(generator.integers(architecture.depth))
    if kind == "last scores":
        i = architecture.depth - 1
    layers = [dict(layer.tensors()) for layer in weights.layers]
    if kind == "all":
        return fresh, kind
    name = "query" if kind == "last scores" else ("query", "key", "value")[generator.integers(3)]
    if kind == "one percent":
        for part, T in layers[i].items():
            layers[i][part] = T * (1 + 1e-2 * generator.standard_normal(T.shape))
    else:
        layers[i][name] = fresh.layers[i].tensors()[name]
    return Weights.from_tensors(architecture, layers), kind


def draw(generator):
    """A random pair: depth to 6, condition to 1e6, both dtypes, sizes 1e±30."""
    fields = dict(KINDS[generator.integers(len(KINDS))])
    l = int(generator.integers(1, 7))
    widths = generator.integers(2, 6, l + 1)
    if fields.get("skip") == "residual":
        widths[:] = widths[0]
    ranks, tokens = generator.integers(1, 4, l), int(generator.integers(2, 5))
    architecture = Architecture(tuple(map(int, widths)), tuple(map(int, ranks)), tokens, **fields)
    dtype = (np.float64, np.float32)[generator.integers(2)]
    condition = 10 ** generator.uniform(0, 6)
    largest = 30 if dtype == np.float64 else 20
    scale = 10.0 ** (generator.uniform(-largest, largest) if generator.integers(2) else 0)
    weights = random_weights(architecture, int(generator.integers(2**30)), dtype=dtype)
    same = bool(generator.integers(2))
    other, kind = (weights, "same") if same else changed(weights, generator)
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    try:
        exact = moved(in_balls(other), architecture, generator, condition, scale)
        size = 8.0 if architecture.attention == "softmax" else 1.0
        X = balls(size * generator.standard_normal((architecture.widths[0], tokens)))
        Y, Z = (evaluate(part, architecture, X) for part in (in_balls(weights), exact))
        distance = max(abs(y - z) for y, z in zip(Y.entries(), Z.entries(), strict=True))
        largest_output = max(abs(y) for y in Y.entries())
        truly_same = distance < largest_output * flint.arb(10) ** -2800
        truly_different = distance > largest_output * flint.arb(10) ** -2500
        assert (truly_same, truly_different) == (same, not same), (architecture, kind)
        return Pair(weights, rounded(exact, architecture, dtype), same, condition, kind)
    finally:
        flint.ctx.prec = before
