"""Common functions can be evaluated over a prime field with the JAX that is installed.

When a later JAX writes one of them with another primitive, this says which one is new.
"""

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.errors import NotCoveredError


def attention(w, X):
    return w @ X @ jax.nn.softmax(X.T @ w @ X / 2.0, axis=0)


def masked(w, X):
    scores = jnp.where(jnp.triu(jnp.ones((3, 3), bool)), X.T @ w @ X, -jnp.inf)
    return X @ jax.nn.softmax(scores, axis=0)


def heads(w, X):
    parts = w.reshape(3, 3, 1)
    return jnp.einsum("hij,ja->hia", jnp.swapaxes(parts, 1, 2) ** 2, X).sum(0)


def scanned(w, X):
    def step(carry, column):
        carry = carry + w @ column
        return carry, carry * column

    return jax.lax.scan(step, jnp.zeros(3), X.T)[1]


def arranged(w, X):
    rows = jnp.concatenate([w[1:], jnp.flip(w[:1])])
    return jnp.pad(rows @ X, ((0, 1), (0, 0))) + jnp.stack([X[0]] * 4) / (1 + jnp.cumsum(X, 0)[-1])


FUNCTIONS = (attention, masked, heads, scanned, arranged)


def unknown(function):
    """Why the derivative of a function cannot be evaluated, or None."""

    def row(w, X, u):
        return jax.vjp(lambda v: function(v, X), w)[1](u)[0]

    with jax.enable_x64(True):
        w, X = (jax.ShapeDtypeStruct((3, 3), np.float64) for _ in range(2))
        u = jax.eval_shape(function, w, X)
    try:
        over_prime_field(row, w, X, u)
    except NotCoveredError as error:
        return f"{function.__name__}: {error}"
    return None


def test_no_primitive_of_common_functions_is_new():
    new = [sentence for function in FUNCTIONS if (sentence := unknown(function))]
    assert not new, f"jax {jax.__version__} writes these functions otherwise: {'; '.join(new)}"


def test_an_unknown_primitive_is_named():
    assert "`digamma`" in str(unknown(lambda w, X: jax.lax.lgamma(w) @ X))
