"""Every activation and norm: the exact rank is the float rank, and every obligation is met."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from formal_ranks import exact_rank, float_rank

ACTIVATIONS = {
    "acosh": lambda x: jnp.arccosh(2 + x),
    "asinh": jnp.arcsinh,
    "atanh": lambda x: jnp.arctanh(x / 9),
    "cos": jnp.cos,
    "cosh": jnp.cosh,
    "erf": jax.scipy.special.erf,
    "erfc": jax.scipy.special.erfc,
    "exp": jnp.exp,
    "exp2": jnp.exp2,
    "expm1": jnp.expm1,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu by tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "log": lambda x: jnp.log(1 + x * x),
    "log1p": lambda x: jnp.log1p(x * x),
    "log of a sum of exponentials": lambda x: x * jax.nn.logsumexp(x),
    "local response norm": lambda x: x / (1 + 1e-4 * jnp.sum(x * x)) ** 0.75,
    "log-softmax": lambda x: jax.nn.log_softmax(x),
    "mish": jax.nn.mish,
    "power −1/2": lambda x: (1 + x * x) ** -0.5,
    "power −5/8": lambda x: (1 + x * x) ** -0.625,
    "power 3/2": lambda x: (1 + x * x) ** 1.5,
    "powers of every entry": lambda x: x ** np.array([2.0, 3.0]),
    "powers of 2": lambda x: 2.0**x,
    "rsqrt": lambda x: x * jax.lax.rsqrt(2 + x * x),
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "sin": jnp.sin,
    "sinh": jnp.sinh,
    "softmax": lambda x: x * jax.nn.softmax(x),
    "softplus": jax.nn.softplus,
    "sqrt": lambda x: jnp.sqrt(1 + x * x),
    "squareplus": jax.nn.squareplus,
    "tan": lambda x: jnp.tan(x / 9),
    "tanh": jnp.tanh,
}


@pytest.mark.statement("field-rank")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_layer_of_two_neurons_has_its_float_rank(name):
    activation = ACTIVATIONS[name]

    def layer(w, x):
        return w["out"] @ activation(w["in"] @ x + w["bias"])

    weights = {"in": np.zeros((2, 2)), "bias": np.zeros(2), "out": np.zeros((2, 2))}
    found, checks = exact_rank(layer, weights, np.zeros(2))
    assert all(check.met for check in checks.values()), checks
    assert found == float_rank(layer, weights, np.zeros(2))


def rms(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * gain


def layer_norm(x, gain, shift):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * gain + shift


def gated(w, X):
    """An RMS norm before attention and before a gated layer."""
    Y = rms(X, w["g"])
    scores = (Y @ w["Q"]) @ (Y @ w["K"]).T / np.sqrt(2.0)
    X = X + jax.nn.softmax(scores, axis=-1) @ (Y @ w["V"]) @ w["O"]
    Y = rms(X, w["h"])
    return X + (jax.nn.silu(Y @ w["G"]) * (Y @ w["U"])) @ w["D"]


def normed(w, X):
    """A layer norm before and after an exact GELU."""
    Y = jax.nn.gelu(layer_norm(X, w["g"], w["b"]) @ w["A"], approximate=False)
    return layer_norm(Y @ w["B"], w["h"], w["c"])


def zeros(**shapes):
    return {name: np.zeros(shape) for name, shape in shapes.items()}


BLOCKS = {
    "gated": (
        gated,
        zeros(g=3, h=3, Q=(3, 1), K=(3, 1), V=(3, 2), O=(2, 3), G=(3, 2), U=(3, 2), D=(2, 3)),
        np.zeros((2, 3)),
    ),
    "normed": (normed, zeros(g=3, b=3, A=(3, 2), B=(2, 3), h=3, c=3), np.zeros(3)),
    "norm alone": (
        lambda w, x: w[0] / jnp.linalg.norm(x + w[1]),
        (np.zeros(()), np.zeros(2)),
        np.zeros(2),
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_with_norms_have_their_float_rank(name):
    f, weights, sample = BLOCKS[name]
    found, checks = exact_rank(f, weights, sample)
    assert all(check.met for check in checks.values()), checks
    assert checks["square roots"].columns > 0
    assert found == float_rank(f, weights, sample, inputs=120)
