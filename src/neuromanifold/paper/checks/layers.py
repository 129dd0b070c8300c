"""Checks of the layers: the definition, in tokens and in matrices, lightning and softmax."""

from functools import partial
from math import prod

import jax
import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.architecture import Architecture
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import Weights, conditioned_weights, random_weights
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    as_integers,
    distance,
    exact_output,
    integer_input,
    integer_weights,
    normal_input,
    output,
    token_loop,
)
from neuromanifold.paper.checks.evidence import (
    Case,
    Check,
    Counterexample,
    Finding,
    apart,
    close,
    equal,
)

_SIZES = [(1, 1, 1, 1), (2, 1, 2, 2), (3, 2, 2, 3), (2, 3, 4, 3), (4, 4, 2, 5), (3, 5, 3, 2)]


def _layers(quick: bool, attention_kind: str = "lightning") -> list[Architecture]:
    sizes = _SIZES[1:3] if quick else _SIZES
    return [
        Architecture((d, d_out), (a,), t, attention_kind)  # type: ignore[bad-argument-type]
        for d, d_out, a, t in sizes
    ]


def lightning_layer(quick: bool, seed: int) -> Finding:
    """A layer is linear in Q, K and V, cubic in X, and takes time linear in t (def-1)."""
    cases: list[Case] = []
    layers = _layers(quick)
    for layer in layers:
        W, X = integer_weights(layer, seed), integer_input(layer, seed)
        Y = output(W, X)
        cases.append(equal(f"{layer}: token loop", exact_output(W, X).astype(np.float64), Y))
        cases.append(equal(f"{layer}: cubic in X", 8 * Y, output(W, 2 * X)))
        for name in ("query", "key", "value"):
            more = integer_weights(layer, seed + 1)
            total = _replaced(W, name, _tensor(W, name) + _tensor(more, name))
            parts = Y + output(_replaced(W, name, _tensor(more, name)), X)
            cases.append(equal(f"{layer}: linear in {name}", parts, output(total, X)))
    largest = {t: _largest_array(t) for t in (64, 128, 256)}
    linear = [equal(f"memory at {t} tokens", t // 64 * largest[64], largest[t]) for t in largest]
    return Finding(
        checked=f"{len(layers)} layers with integer weights, exactly, against a loop over tokens "
        f"in Python integers (seed {seed}); size of the largest array for 64 to 256 tokens",
        cases=[*cases, *linear],
        numbers={"largest array by tokens": largest},
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


def token_by_token(quick: bool, seed: int) -> Finding:
    """Token i of the output is Σ_j (x_jᵀ A x_i) V x_j (eq-1)."""
    layers = _layers(quick)
    cases = []
    for layer in layers:
        W, X = integer_weights(layer, seed), integer_input(layer, seed)
        (exact,) = as_integers(W).layers
        loop = token_loop(exact, np.vectorize(int, otypes=[object])(X), layer)
        cases.append(equal(layer.name, loop.astype(np.float64), output(W, X)))
    return Finding(f"{len(layers)} layers with integer weights, exactly (seed {seed})", cases)


def in_matrices(quick: bool, seed: int) -> Finding:
    """The layer is V X Xᵀ Kᵀ Q X (eq-2)."""
    layers = _layers(quick)
    cases = []
    for layer in layers:
        W, X = integer_weights(layer, seed), integer_input(layer, seed)
        Q, K, V = (_tensor(W, name)[0] for name in ("query", "key", "value"))
        cases.append(equal(layer.name, V @ X @ X.T @ K.T @ Q @ X, output(W, X)))
    return Finding(
        f"{len(layers)} layers with integer weights and inputs, exactly (seed {seed})", cases
    )


def attention_matrix(quick: bool, seed: int) -> Finding:
    """A = Kᵀ Q has rank at most a, min(a, d) in general, and only A matters (eq-3)."""
    field = PrimeField()
    cases: list[Case] = []
    sizes = [(d, a) for d in range(1, 3 if quick else 5) for a in range(1, 5)]
    for d, a in sizes:
        layer = Architecture((d, 2), (a,), 2)
        K, Q = (field.random(seed, f"{name} {d} {a}", (a, d)) for name in ("key", "query"))
        cases.append(equal(f"rank A, {layer}", min(a, d), rank(field.matmul(K.T, Q), field)))
        W, X = integer_weights(layer, seed), integer_input(layer, seed)
        A = _tensor(W, "key")[0].T @ _tensor(W, "query")[0]
        wide = Architecture((d, 2), (d,), 2)
        tensors = {"query": A[None], "key": np.eye(d)[None], "value": _tensor(W, "value")}
        same = Weights.from_tensors(wide, [tensors])
        cases.append(equal(f"K = 1, Q = A, {layer}", output(W, X), output(same, X)))
    return Finding(f"{len(sizes)} sizes (d, a), exactly (seed {seed})", cases)


def normalised_layer(quick: bool, seed: int) -> Finding:
    """Value V x_j counts S(x_jᵀ A x_i), divided by the sum over j; S(x) = exp(x/τ) (eq-15)."""
    layers = [
        *_layers(quick, "softmax"),
        Architecture((3, 2), (2,), 4, "softmax", temperature=0.5),
    ]
    cases = []
    for layer in layers:
        W, X = conditioned_weights(layer, seed), normal_input(layer, seed)
        error = distance(token_loop(W.layers[0], X, layer), output(W, X))
        cases.append(close(layer.name, error, ROUNDING))
    swapped, layer = _as_printed(seed)
    cases.append(apart("the printed order of query and key", swapped, DIFFERENT))
    return Finding(
        checked=f"{len(layers)} softmax layers at normal inputs against a loop over tokens, "
        f"float64 (seed {seed})",
        cases=cases,
        counterexample=Counterexample(
            text="With x_iᵀ A x_j as printed, in place of x_jᵀ A x_i, the outputs of "
            f"{layer} (seed {seed}) differ by {swapped:.2g} of their size: query and key are "
            "swapped against Definition 1.",
            refutes=swapped >= DIFFERENT,
            numbers={"relative distance": swapped},
        ),
    )


def _as_printed(seed: int) -> tuple[float, Architecture]:
    """How far the printed order of indices is from the definition: swapped queries and keys."""
    layer = Architecture((3, 2), (2,), 4, "softmax")
    W, X = conditioned_weights(layer, seed), normal_input(layer, seed)
    swapped = _replaced(_replaced(W, "query", _tensor(W, "key")), "key", _tensor(W, "query"))
    return distance(token_loop(swapped.layers[0], X, layer), output(W, X)), layer


CHECKS: dict[str, Check] = {
    "def-1": lightning_layer,
    "eq-1": token_by_token,
    "eq-2": in_matrices,
    "eq-3": attention_matrix,
    "eq-15": normalised_layer,
}
