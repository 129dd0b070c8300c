"""Networks beyond the paper's, each as data and a function: a row here meets every law.

Tokens are columns, as in the library. Rotations are by the angle of (3 + 4i)/5, whose powers are
rational, so that the exact engine reads them as they are meant.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

import neuromanifold as nm
from architectures import ARCHITECTURES
from neuromanifold.symmetry.groups import GL, Monomial, RotationCommutant, WithTranslations

TOKENS = 3


def shapes(**sizes):
    return {name: jax.ShapeDtypeStruct(shape, np.float64) for name, shape in sizes.items()}


def tokens(d):
    return jax.ShapeDtypeStruct((d, TOKENS), np.float64)


def attend(scores, values):
    """Σ_j P_ji v_j with P the softmax of scores (j, i) over j."""
    return values @ jax.nn.softmax(scores, axis=-2)


def grouped_query():
    """Two key-value heads, each with two queries."""
    d, n = 3, 2
    stream, out = nm.Space("stream", d), nm.Space("output", d)
    groups, members = nm.Space("groups", 2), nm.Space("queries of a group", 2)
    keys = nm.Space("keys", n, GL(n), over=(groups,))
    values = nm.Space("values", n, GL(n), over=(groups,))

    def f(w, X):
        q, k, v = w["query"] @ X, w["key"] @ X, w["value"] @ X
        mixed = attend(k.mT[:, None] @ q, v[:, None])
        return (w["output"] @ mixed).sum((0, 1))

    return nm.network(
        f,
        shapes(query=(2, 2, n, d), key=(2, n, d), value=(2, n, d), output=(2, 2, d, n)),
        tokens(d),
        spaces={
            "query": (groups, members, keys.dual, stream.dual),
            "key": (groups, keys, stream.dual),
            "value": (groups, values, stream.dual),
            "output": (groups, members, out, values.dual),
        },
        name="grouped-query attention",
    )


def rotations(n, rotated, pairing):
    """One n × n rotation a token; plane k turns k + 1 times as fast as the first."""
    found = np.stack([np.eye(n)] * TOKENS)
    for k, (i, j) in enumerate(RotationCommutant(n, rotated, pairing).planes):
        for token in range(TOKENS):
            c, s = power(token * (k + 1))
            found[token][np.ix_([i, j], [i, j])] = [[c, -s], [s, c]]
    return found


def power(exponent):
    """Real and imaginary part of ((3 + 4i)/5)^exponent."""
    c, s = Fraction(1), Fraction(0)
    for _ in range(exponent):
        c, s = (3 * c - 4 * s) / 5, (4 * c + 3 * s) / 5
    return float(c), float(s)


def rotary(d, n, rotated, pairing, name):
    stream, out, heads = nm.Space("stream", d), nm.Space("output", d), nm.Space("heads", 2)
    keys = nm.Space("keys", n, RotationCommutant(n, rotated, pairing), over=(heads,))
    values = nm.Space("values", 2, GL(2), over=(heads,))
    turns = rotations(n, rotated, pairing)

    def f(w, X):
        q = jnp.einsum("tmn,hnt->hmt", turns, w["query"] @ X)
        k = jnp.einsum("tmn,hnt->hmt", turns, w["key"] @ X)
        return (w["output"] @ attend(k.mT @ q, w["value"] @ X)).sum(0)

    return nm.network(
        f,
        shapes(query=(2, n, d), key=(2, n, d), value=(2, 2, d), output=(2, d, 2)),
        tokens(d),
        spaces={
            "query": (heads, keys.dual, stream.dual),
            "key": (heads, keys, stream.dual),
            "value": (heads, values, stream.dual),
            "output": (heads, out, values.dual),
        },
        name=name,
    )


def all_biases():
    """Softmax does not see a constant added to a column of scores, so the key bias is dead."""
    d, n = 3, 2
    stream, out, heads = nm.Space("stream", d), nm.Space("output", d), nm.Space("heads", 2)
    keys = nm.Space("keys", n, WithTranslations(GL(n)), over=(heads,))
    values = nm.Space("values", n, WithTranslations(GL(n)), over=(heads,))

    def f(w, X):
        q, k, v = (w[a] @ X + w[f"{a}_bias"][..., None] for a in ("query", "key", "value"))
        return (w["output"] @ attend(k.mT @ q, v)).sum(0) + w["output_bias"][:, None]

    return nm.network(
        f,
        shapes(
            query=(2, n, d), query_bias=(2, n), key=(2, n, d), key_bias=(2, n),
            value=(2, n, d), value_bias=(2, n), output=(2, d, n), output_bias=(d,),
        ),
        tokens(d),
        spaces={
            "query": (heads, keys.dual, stream.dual),
            "query_bias": (heads, keys.dual),
            "key": (heads, keys, stream.dual),
            "key_bias": (heads, keys.point),
            "value": (heads, values, stream.dual),
            "value_bias": (heads, values.point),
            "output": (heads, out, values.dual),
            "output_bias": (out,),
        },
        absorbs={"output_bias": ("output",)},
        name="attention with all biases",
    )  # fmt: skip


def linear_attention():
    """Weights φ(K x_j)·φ(Q x_i), normalised, with the feature map φ(z) = 1 + z²."""
    d, n = 3, 2
    stream, out = nm.Space("stream", d), nm.Space("output", d)
    features = nm.Space("features", n, Monomial(n, "sign", permute=True))
    values = nm.Space("values", 2, GL(2))

    def f(w, X):
        q, k = 1 + (w["query"] @ X) ** 2, 1 + (w["key"] @ X) ** 2
        P = k.T @ q
        return w["output"] @ (w["value"] @ X) @ (P / P.sum(0))

    return nm.network(
        f,
        shapes(query=(n, d), key=(n, d), value=(2, d), output=(d, 2)),
        tokens(d),
        spaces={
            "query": (features, stream.dual),
            "key": (features, stream.dual),
            "value": (values, stream.dual),
            "output": (out, values.dual),
        },
        name="linear attention with features 1 + x²",
    )


def gated_mlp():
    """down (up x ⊙ SiLU(gate x)): a neuron's up and down share a factor, its gate does not."""
    d, width = 3, 4
    stream, out = nm.Space("stream", d), nm.Space("output", 2)
    neurons = nm.Space("neurons", width, Monomial(width, "nonzero", permute=True))

    def f(w, x):
        gate = w["gate"] @ x
        return w["down"] @ ((w["up"] @ x) * gate / (1 + jnp.exp(-gate)))

    return nm.network(
        f,
        shapes(up=(width, d), gate=(width, d), down=(2, width)),
        jax.ShapeDtypeStruct((d,), np.float64),
        spaces={
            "up": (neurons, stream.dual),
            "gate": (neurons.power(0), stream.dual),
            "down": (out, neurons.dual),
        },
        name="gated MLP",
    )


def polynomial_mlp():
    """W₂ (W₁ x)²: a factor of a neuron's input comes out squared."""
    hidden, stream, out = 2, nm.Space("input", 3), nm.Space("output", 2)
    neurons = nm.Space("neurons", hidden, Monomial(hidden, "nonzero", permute=True))
    return nm.network(
        lambda w, x: w["second"] @ (w["first"] @ x) ** 2,
        shapes(first=(hidden, 3), second=(2, hidden)),
        jax.ShapeDtypeStruct((3,), np.float64),
        spaces={"first": (neurons, stream.dual), "second": (out, neurons.power(-2))},
        name="polynomial MLP",
    )


def mixed_block():
    """A block: grouped queries with partial rotary positions, then a gated MLP, both residual."""
    d, n, width = 3, 3, 2
    stream = nm.Space("stream", d)
    members = nm.Space("queries", 2)
    keys = nm.Space("keys", n, RotationCommutant(n, 2, "halves"))
    values = nm.Space("values", 2, GL(2))
    neurons = nm.Space("neurons", width, Monomial(width, "nonzero"))
    turns = rotations(n, 2, "halves")

    def f(w, X):
        q = jnp.einsum("tmn,hnt->hmt", turns, w["query"] @ X)
        k = jnp.einsum("tmn,nt->mt", turns, w["key"] @ X)
        X = X + (w["output"] @ attend(k.T @ q, w["value"] @ X)).sum(0)
        gate = w["gate"] @ X
        return X + w["down"] @ ((w["up"] @ X) * gate / (1 + jnp.exp(-gate)))

    return nm.network(
        f,
        shapes(
            query=(2, n, d), key=(n, d), value=(2, d), output=(2, d, 2),
            up=(width, d), gate=(width, d), down=(d, width),
        ),
        tokens(d),
        spaces={
            "query": (members, keys.dual, stream.dual),
            "key": (keys, stream.dual),
            "value": (values, stream.dual),
            "output": (members, stream, values.dual),
            "up": (neurons, stream.dual),
            "gate": (neurons.power(0), stream.dual),
            "down": (stream, neurons.dual),
        },
        name="grouped rotary attention and a gated MLP",
    )  # fmt: skip


EXTENSIONS = (
    grouped_query(),
    rotary(4, 4, 4, "halves", "rotary positions"),
    rotary(3, 3, 2, "neighbours", "partial rotary positions"),
    all_biases(),
    linear_attention(),
    gated_mlp(),
    polynomial_mlp(),
    mixed_block(),
)
"""What the paper does not have."""

NETWORKS = (*(nm.network(architecture) for architecture in ARCHITECTURES), *EXTENSIONS)
"""The one table of networks."""
