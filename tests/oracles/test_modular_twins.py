"""Attention over GF(p) against naive twins: plain integers mod p, loops, and dual numbers.

A twin is written straight from the definition of the layer, entry by entry. Its derivative in one
direction comes from dual numbers a + b ε with ε² = 0, and is compared with the rows uᵀJ that JAX's
reverse mode gives when its jaxpr is evaluated over the field.
"""

import hashlib
from dataclasses import dataclass

import flint
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuromanifold.algebra.modular import (
    FormalElements,
    Source,
    obligations,
    over_prime_field,
    relations_of,
    rows_over_prime_field,
)
from neuromanifold.algebra.prime_field import PrimeField

FIELD = PrimeField()
P = FIELD.modulus
SEED, LABEL = 21, "twin"
EXP = FormalElements(FIELD, SEED, LABEL)


@dataclass(frozen=True)
class Dual:
    """a + b ε mod p."""

    a: int
    b: int = 0

    def __add__(self, other):
        return Dual((self.a + other.a) % P, (self.b + other.b) % P)

    def __sub__(self, other):
        return Dual((self.a - other.a) % P, (self.b - other.b) % P)

    def __mul__(self, other):
        return Dual(self.a * other.a % P, (self.a * other.b + self.b * other.a) % P)

    def inverse(self):
        i = pow(self.a, -1, P)
        return Dual(i, -self.b * i * i % P)

    def exp(self):
        e = element(self.a)
        return Dual(e, e * self.b % P)


def element(a):
    """The formal exponential of a, as documented, in plain integers."""
    if a % P == 0:
        return 1
    digest = hashlib.shake_256(f"neuromanifold formal exponentials 1|{SEED}|{LABEL}".encode())
    keys, word = digest.digest(16), a % P
    for key in (keys[:8], keys[8:]):
        word ^= int.from_bytes(key, "little")
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        word ^= word >> 31
    return 1 + word % (P - 1)


def total(terms):
    result = Dual(0)
    for term in terms:
        result = result + term
    return result


def score(Q, K, X, j, i):
    """(K x_j)·(Q x_i)."""
    d = range(len(X))
    return total(
        total(k[m] * X[m][j] for m in d) * total(q[m] * X[m][i] for m in d)
        for q, k in zip(Q, K, strict=True)
    )


def twin_weights(kind, Q, K, X, i):
    """The weights with which token i attends to each token."""
    tokens = range(i + 1) if kind == "causal" else range(len(X[0]))
    scores = [score(Q, K, X, j, i) for j in tokens]
    if kind == "lightning":
        return scores
    powers = [(s - scores[0]).exp() for s in scores]
    return [power * total(powers).inverse() for power in powers]


def twin_layer(kind, heads, X):
    width, t = len(heads[0][2]), len(X[0])
    output = [[Dual(0)] * t for _ in range(width)]
    for Q, K, V in heads:
        for i in range(t):
            for j, weight in enumerate(twin_weights(kind, Q, K, X, i)):
                for r in range(width):
                    value = total(V[r][m] * X[m][j] for m in range(len(X)))
                    output[r][i] = output[r][i] + weight * value
    return output


def twin_network(kind, layers, X):
    for heads in layers:
        X = twin_layer(kind, heads, X)
    return X


def jax_layer(kind, heads, X):
    """The same layer in JAX, all heads at once; `heads` holds Q, K, V with a leading head axis."""
    Q, K, V = heads

    def head(q, k, v):
        s = (k @ X).T @ (q @ X)
        if kind == "causal":
            s = jnp.where(np.triu(np.ones(s.shape, bool)), s, -jnp.inf)
        return v @ X @ (s if kind == "lightning" else jax.nn.softmax(s, axis=0))

    return jnp.sum(jax.vmap(head)(Q, K, V), axis=0)


def jax_network(kind, layers, X):
    for heads in layers:
        X = jax_layer(kind, heads, X)
    return X


def rows(kind):
    """For each input X and cotangent u the row uᵀJ of the Jacobian in the weights."""

    def row(weights, X, u):
        return jax.vjp(lambda w: jax_network(kind, w, X), weights)[1](u)[0]

    return jax.vmap(row, in_axes=(None, 0, 0))


def draw(widths, ranks, heads, t, inputs):
    weights = []
    for i, a in enumerate(ranks):
        d, d_next = widths[i], widths[i + 1]
        shapes = [(heads, a, d), (heads, a, d), (heads, d_next, d)]
        weights.append([FIELD.random(1, f"layer {i} {k}", s) for k, s in enumerate(shapes)])
    X = FIELD.random(1, "inputs", (inputs, widths[0], t))
    return weights, X, FIELD.random(1, "cotangents", (inputs, widths[-1], t))


def duals(values, directions):
    if values.ndim == 0:
        return Dual(int(values) % P, int(directions) % P)
    return [duals(v, b) for v, b in zip(values, directions, strict=True)]


def twin_weights_of(weights, directions):
    """For each layer the list of heads (Q, K, V), as dual numbers."""
    return [
        list(zip(*(duals(w, b) for w, b in zip(layer, along, strict=True)), strict=True))
        for layer, along in zip(weights, directions, strict=True)
    ]


NETWORKS = [
    ("lightning", (2, 3), (2,), 1, 3),
    ("lightning", (3, 2, 2), (1, 2), 1, 2),
    ("lightning", (2, 2), (1,), 2, 2),
    ("softmax", (2, 3), (2,), 1, 3),
    ("softmax", (2, 2, 2), (1, 2), 1, 2),
    ("softmax", (2, 2), (2,), 2, 3),
    ("causal", (2, 2, 2), (2, 1), 2, 3),
]


@pytest.mark.statement("softmax-exact")
@pytest.mark.parametrize(("kind", "widths", "ranks", "heads", "t"), NETWORKS)
def test_values_agree_with_the_plain_integer_twin(kind, widths, ranks, heads, t):
    weights, X, _ = draw(widths, ranks, heads, t, 1)
    modular = over_prime_field(lambda w, x: jax_network(kind, w, x), weights, X[0])
    found = modular(FIELD, weights, X[0], elements=EXP)
    zeros = jax.tree.map(np.zeros_like, weights)
    twin = twin_network(kind, twin_weights_of(weights, zeros), duals(X[0], np.zeros_like(X[0])))
    expected = FIELD.from_integers([[entry.a for entry in row] for row in twin])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.statement("softmax-exact")
@pytest.mark.parametrize(("kind", "widths", "ranks", "heads", "t"), NETWORKS)
def test_jacobian_rows_agree_with_dual_numbers_in_every_direction(kind, widths, ranks, heads, t):
    weights, X, u = draw(widths, ranks, heads, t, 2)
    modular = over_prime_field(rows(kind), weights, X, u)
    found = jax.tree.leaves(modular(FIELD, weights, X, u, elements=EXP))
    J = np.concatenate([leaf.reshape(2, -1) for leaf in found], axis=1)
    leaves, structure = jax.tree.flatten(weights)
    sizes = [leaf.size for leaf in leaves]
    for k in range(sum(sizes)):
        unit = np.split(np.eye(sum(sizes))[k], np.cumsum(sizes)[:-1])
        shaped = [b.reshape(leaf.shape) for b, leaf in zip(unit, leaves, strict=True)]
        along = twin_weights_of(weights, jax.tree.unflatten(structure, shaped))
        for n in range(2):
            twin = twin_network(kind, along, duals(X[n], np.zeros_like(X[n])))
            entry = sum(int(u[n, r, i]) * twin[r][i].b for r in range(widths[-1]) for i in range(t))
            assert J[n, k] == FIELD.from_integers(entry)


def rank(matrix):
    entries = [int(x) % P for x in matrix.ravel()]
    return flint.nmod_mat(*matrix.shape, entries, P).rank()


# Dimensions of equations 7, 14 and 16, and of two lightning heads.
DIMENSIONS = [
    ("lightning", (3, 3), (2,), 1, 3, 16),
    ("lightning", (3, 3, 3), (2, 2), 1, 3, 23),
    ("softmax", (3, 3, 3), (2, 2), 1, 3, 25),
    ("softmax", (4, 4, 4), (2, 2), 1, 3, 40),
    ("causal", (3, 3, 3), (2, 2), 1, 3, 25),
    ("lightning", (3, 3), (3,), 2, 2, 32),
]


@pytest.mark.statement("conj-3.10")
@pytest.mark.parametrize(("kind", "widths", "ranks", "heads", "t", "dimension"), DIMENSIONS)
def test_ranks_are_the_known_dimensions(kind, widths, ranks, heads, t, dimension):
    weights, X, u = draw(widths, ranks, heads, t, dimension + 8)
    modular = over_prime_field(rows(kind), weights, X, u)
    found = jax.tree.leaves(modular(FIELD, weights, X, u, elements=EXP))
    J = np.concatenate([leaf.reshape(len(X), -1) for leaf in found], axis=1)
    assert rank(J) == dimension


@pytest.mark.statement("softmax-exact")
def test_the_exponents_of_two_layers_are_independent():
    weights, X, _ = draw((2, 2, 2), (2, 2), 1, 3, 20)
    rows = rows_over_prime_field(lambda w, x: jax_network("causal", w, x), weights, X[0], 20)
    check, _ = obligations(rows, Source(FIELD, SEED, LABEL), relations_of(rows, FIELD))
    # Each layer has 6 entries that are not masked, and subtracts the first of each of 3 columns.
    assert (check.columns, check.rank, check.relations) == (2 * (6 - 3), 6, 0)
