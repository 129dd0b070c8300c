"""Matrices of residues that carry their derivatives, and attention networks written with them.

A naive twin: forward-mode differentiation in plain NumPy integers, and python-flint for the rank.
It shares no code with the library but the description of the network.
"""

from dataclasses import dataclass

import numpy as np
from flint import nmod_mat

# Sums of fewer than 2^20 products of residues stay below 2^60, so int64 does not overflow.
PRIME = 1048573


@dataclass(frozen=True)
class Dual:
    """A matrix mod p and its derivatives in the directions of all parameters."""

    value: np.ndarray
    tangent: np.ndarray

    def __matmul__(self, other):
        return Dual(
            self.value @ other.value % PRIME,
            (self.tangent @ other.value % PRIME + self.value @ other.tangent % PRIME) % PRIME,
        )

    def __add__(self, other):
        return Dual((self.value + other.value) % PRIME, (self.tangent + other.tangent) % PRIME)

    @property
    def T(self):
        return Dual(self.value.T, np.swapaxes(self.tangent, -1, -2))

    def masked(self, mask):
        return Dual(self.value * mask, self.tangent * mask)

    def flat_tangents(self):
        return self.tangent.reshape(len(self.tangent), -1)


def constant(value, directions):
    return Dual(value, np.zeros((directions, *value.shape), dtype=np.int64))


def random_matrices(shapes, rng):
    """One random matrix for each shape, each of its entries a parameter."""
    directions = sum(rows * columns for rows, columns in shapes)
    offset, matrices = 0, []
    for rows, columns in shapes:
        size = rows * columns
        tangent = np.zeros((directions, size), dtype=np.int64)
        tangent[offset : offset + size] = np.eye(size, dtype=np.int64)
        offset += size
        value = rng.integers(0, PRIME, (rows, columns))
        matrices.append(Dual(value, tangent.reshape(directions, rows, columns)))
    return matrices


def random_layers(architecture, rng):
    """For each layer and head the random pair (A, V), as duals in all weights."""
    shapes = [
        shape[1:]
        for layer in architecture.shapes
        for _ in range(architecture.heads)
        for shape in layer.values()
    ]
    matrices = iter(random_matrices(shapes, rng))
    layers = []
    for layer in architecture.shapes:
        heads = []
        for _ in range(architecture.heads):
            weights = {name: next(matrices) for name in layer}
            V = weights["value"]
            if "output" in weights:
                V = weights["output"] @ V
            heads.append((weights["key"].T @ weights["query"], V))
        layers.append(heads)
    return layers


def rank(rows):
    rows = np.asarray(rows)
    return nmod_mat(*rows.shape, [int(x) for x in rows.ravel()], PRIME).rank()


def network_rank(architecture, seed=0):
    """The rank of the network's Jacobian at random weights, from one random row an input."""
    rng = np.random.default_rng(seed)
    layers = random_layers(architecture, rng)
    rows = []
    for _ in range(architecture.parameters + 8):
        size = (architecture.widths[0], architecture.tokens)
        X = constant(rng.integers(0, PRIME, size), architecture.parameters)
        for heads in layers:
            X = _layer(X, heads, architecture, rng)
        cotangent = rng.integers(0, PRIME, X.value.size)
        rows.append(X.flat_tangents() @ cotangent % PRIME)
    return rank(rows)


def _layer(X, heads, architecture, rng):
    t = architecture.tokens
    mask = np.ones((t, t), dtype=np.int64)
    if architecture.mask == "causal":
        mask = np.triu(mask)
    terms = [X] if architecture.skip == "residual" else []
    for A, V in heads:
        P = (X.T @ A @ X).masked(mask)
        if architecture.attention == "softmax":
            P = _softmax(P, mask, rng)
        if architecture.skip == "inner":
            P = P + constant(np.eye(t, dtype=np.int64), architecture.parameters)
        terms.append(V @ (X @ P))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _softmax(scores, mask, rng):
    """exp as an independent random residue for each score, e' = e s', then normalised columns.

    A column sum that happens to vanish raises ValueError: take another seed.
    """
    E = rng.integers(1, PRIME, scores.value.shape) * mask
    dE = E * scores.tangent % PRIME
    inverse = np.array([pow(int(total), -1, PRIME) for total in E.sum(0) % PRIME])
    P = E * inverse % PRIME
    dlog = dE.sum(1) % PRIME * inverse % PRIME
    return Dual(P, (dE * inverse % PRIME - P * dlog[:, None, :] % PRIME) % PRIME)
