"""Checks of the layers: the definition, in tokens and in matrices, lightning and softmax."""

from functools import partial
from math import prod

import jax
import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.architecture import Architecture, Attention
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import Weights, random_weights
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    as_integers,
    distance,
    exact_output,
    generic,
    integers,
    output,
    token_loop,
)
from neuromanifold.paper.checks.trial import Trial, check

_SIZES = [(1, 1, 1, 1), (2, 1, 2, 2), (3, 2, 2, 3), (2, 3, 4, 3), (4, 4, 2, 5), (3, 5, 3, 2)]


def _layers(trial: Trial, kind: Attention = "lightning") -> list[Architecture]:
    sizes = trial.some(_SIZES, 2, first=1)
    return [Architecture((d, d_out), (a,), t, kind) for d, d_out, a, t in sizes]


@check("def-1")
def lightning_layer(trial: Trial) -> str:
    """A layer is linear in Q, K and V, cubic in X, and takes time linear in t (def-1)."""
    layers = _layers(trial)
    for layer in layers:
        W, X = integers(layer, trial.seed)
        more, _ = integers(layer, trial.seed + 1)
        Y = output(W, X)
        trial.equal(f"{layer}: token loop", exact_output(W, X).astype(np.float64), Y)
        trial.equal(f"{layer}: cubic in X", 8 * Y, output(W, 2 * X))
        for name in ("query", "key", "value"):
            total = _replaced(W, name, _tensor(W, name) + _tensor(more, name))
            parts = Y + output(_replaced(W, name, _tensor(more, name)), X)
            trial.equal(f"{layer}: linear in {name}", parts, output(total, X))
    largest = {t: _largest_array(t) for t in (64, 128, 256)}
    for t in largest:
        trial.equal(f"memory at {t} tokens", t // 64 * largest[64], largest[t])
    trial.numbers["largest array by tokens"] = largest
    return (
        f"{len(layers)} layers with integer weights, exactly, against a loop over tokens "
        f"in Python integers (seed {trial.seed}); size of the largest array for 64 to 256 tokens"
    )


def _largest_array(tokens: int) -> int:
    """The entries of the largest array that the layer makes: no t × t matrix among them."""
    layer = Architecture((4, 4), (2,), tokens)
    program = jax.make_jaxpr(partial(attention, random_weights(layer, 0, dtype=np.float32)))(
        np.zeros((4, tokens), np.float32)
    )
    return max(prod(var.aval.shape) for eqn in program.eqns for var in eqn.outvars)


def _tensor(weights: Weights, name: str) -> np.ndarray:
    return np.asarray(weights.layers[0].tensors()[name])


def _replaced(weights: Weights, name: str, tensor: np.ndarray) -> Weights:
    tensors = {key: np.asarray(part) for key, part in weights.layers[0].tensors().items()}
    return Weights.from_tensors(weights.architecture, [{**tensors, name: tensor}])


@check("eq-1")
def token_by_token(trial: Trial) -> str:
    """Token i of the output is Σ_j (x_jᵀ A x_i) V x_j (eq-1)."""
    layers = _layers(trial)
    for layer in layers:
        W, X = integers(layer, trial.seed)
        (exact,) = as_integers(W).layers
        loop = token_loop(exact, np.vectorize(int, otypes=[object])(X), layer)
        trial.equal(layer.name, loop.astype(np.float64), output(W, X))
    return f"{len(layers)} layers with integer weights, exactly (seed {trial.seed})"


@check("eq-2")
def in_matrices(trial: Trial) -> str:
    """The layer is V X Xᵀ Kᵀ Q X (eq-2)."""
    layers = _layers(trial)
    for layer in layers:
        W, X = integers(layer, trial.seed)
        Q, K, V = (_tensor(W, name)[0] for name in ("query", "key", "value"))
        trial.equal(layer.name, V @ X @ X.T @ K.T @ Q @ X, output(W, X))
    return f"{len(layers)} layers with integer weights and inputs, exactly (seed {trial.seed})"


@check("eq-3")
def attention_matrix(trial: Trial) -> str:
    """A = Kᵀ Q has rank at most a, min(a, d) in general, and only A matters (eq-3)."""
    field, seed = PrimeField(), trial.seed
    sizes = [(d, a) for d in range(1, 3 if trial.quick else 5) for a in range(1, 5)]
    for d, a in sizes:
        layer = Architecture((d, 2), (a,), 2)
        K, Q = (field.random(seed, f"{name} {d} {a}", (a, d)) for name in ("key", "query"))
        trial.equal(f"rank A, {layer}", min(a, d), rank(field.matmul(K.T, Q), field))
        W, X = integers(layer, seed)
        A = _tensor(W, "key")[0].T @ _tensor(W, "query")[0]
        tensors = {"query": A[None], "key": np.eye(d)[None], "value": _tensor(W, "value")}
        same = Weights.from_tensors(Architecture((d, 2), (d,), 2), [tensors])
        trial.equal(f"K = 1, Q = A, {layer}", output(W, X), output(same, X))
    return f"{len(sizes)} sizes (d, a), exactly (seed {seed})"


@check("eq-15")
def normalised_layer(trial: Trial) -> str:
    """Value V x_j counts S(x_jᵀ A x_i), divided by the sum over j; S(x) = exp(x/τ) (eq-15)."""
    layers = _layers(trial, "softmax")
    layers.append(Architecture((3, 2), (2,), 4, "softmax", temperature=0.5))
    for layer in layers:
        W, X = generic(layer, trial.seed)
        trial.close(layer.name, distance(token_loop(W.layers[0], X, layer), output(W, X)), ROUNDING)
    layer = Architecture((3, 2), (2,), 4, "softmax")
    W, X = generic(layer, trial.seed)
    printed = _replaced(_replaced(W, "query", _tensor(W, "key")), "key", _tensor(W, "query"))
    swapped = distance(token_loop(printed.layers[0], X, layer), output(W, X))
    trial.apart("the printed order of query and key", swapped, DIFFERENT)
    trial.refute(
        f"With x_iᵀ A x_j as printed, in place of x_jᵀ A x_i, the outputs of {layer} (seed "
        f"{trial.seed}) differ by {swapped:.2g} of their size: query and key are swapped against "
        "Definition 1.",
        swapped >= DIFFERENT,
        {"relative distance": swapped},
    )
    return (
        f"{len(layers)} softmax layers at normal inputs against a loop over tokens, "
        f"float64 (seed {trial.seed})"
    )
