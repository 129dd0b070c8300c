"""Checks of the network as a product and as an unrolled sum of its virtual weights."""

import jax
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import evaluate_recursion, evaluate_unrolled, unrolled_factor
from neuromanifold.networks.weights import Weights
from neuromanifold.paper.checks.evaluation import (
    ROUNDING,
    distance,
    exact_output,
    generic,
    integers,
    output,
    virtual,
)
from neuromanifold.paper.checks.trial import Trial, check

_EXACT = [
    Architecture((2, 1), (2,), 2),
    Architecture((2, 2, 1), (1, 2), 2),
    Architecture((3, 2, 2), (2, 2), 2),
    Architecture((1, 2, 1, 1), (1, 1, 1), 2),
]
_NUMERIC = [
    Architecture((3, 2, 3), (2, 2), 3),
    Architecture((2, 3, 2, 2), (2, 1, 2), 2),
    Architecture((2, 2, 2, 2, 2), (2, 2, 2, 2), 3),
]


def _recursion(weights: Weights, X: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(evaluate_recursion(virtual(weights), X))


@check("eq-11")
def product_formula(trial: Trial) -> str:
    """φ(X) = L X ∏ D_{l-i} Xᵀ M_{l-i+1} X, exactly for integers (eq-11)."""
    networks = trial.some(_EXACT, 2)
    for network in networks:
        W, X = integers(network, trial.seed, 1)
        trial.equal(network.name, exact_output(W, X).astype(np.float64), _recursion(W, X))
    return (
        f"{len(networks)} networks of integer weights, exactly, against a loop over tokens in "
        f"Python integers (seed {trial.seed})"
    )


@check("lemma-3.6")
def network_from_virtual_weights(trial: Trial) -> str:
    """A lightning network is the product that the recursion builds (lemma-3.6)."""
    product_formula(trial)
    exact, networks = len(trial.cases), trial.some(_NUMERIC, 1)
    for network in networks:
        W, X = generic(network, trial.seed)
        trial.close(network.name, distance(output(W, X), _recursion(W, X)), ROUNDING)
    return (
        f"{exact} networks of integer weights exactly, and {len(networks)} of depth 2 "
        f"to {networks[-1].depth} in float64 (seed {trial.seed})"
    )


@check("eq-10")
def recursion(trial: Trial) -> str:
    """D_i of the recursion is what layer i shows of its tokens (eq-10).

    The output of layer i is X_i = L_i X Z_i, and D_i = Z_i Z_iᵀ: so X_i X_iᵀ = L_i X D_i Xᵀ L_iᵀ.
    The left side is computed layer by layer, the right side from the recursion.
    """
    networks = trial.some(_NUMERIC, 1)
    for network in networks:
        W, X = generic(network, trial.seed)
        D, L = np.eye(network.tokens), np.eye(network.widths[0])
        for i, M in enumerate(virtual(W).forms):
            G = X.T @ M @ X
            D = D @ G @ D @ G.T @ D
            L = np.asarray(W.layers[i].value_maps()[0]) @ L
            shape = Architecture(network.widths[: i + 2], network.ranks[: i + 1], network.tokens)
            X_i = output(Weights(W.layers[: i + 1], shape), X)
            error = distance(X_i @ X_i.T, L @ X @ D @ X.T @ L.T)
            trial.close(f"{network}: layer {i + 1}", error, ROUNDING)
    return (
        f"{len(trial.cases)} layers of {len(networks)} networks, X_i X_iᵀ from the layers against "
        f"L_i X D_i Xᵀ L_iᵀ, float64 (seed {trial.seed})"
    )


def word(depth: int) -> list[tuple[int, bool]]:
    """The forms of the product in order, by writing the recursion out (eq-10, eq-11).

    D_i = D_{i-1} M_i D_{i-1} M_iᵀ D_{i-1} as words, and φ = D_{l-1} M_l ⋯ D_0 M_1; a letter is its
    layer and whether it is transposed.
    """
    D: list[list[tuple[int, bool]]] = [[]]
    for i in range(1, depth):
        D.append([*D[-1], (i, False), *D[-1], (i, True), *D[-1]])
    return [letter for i in range(depth, 0, -1) for letter in [*D[i - 1], (i, False)]]


def tree_factors(depth: int) -> list[tuple[int, bool]]:
    """Layer and transposition of M̃_1, …, M̃_{l̃−1} and of the last form M_1 (eq-12, fig-2)."""
    return [*(unrolled_factor(j) for j in range(1, (3**depth - 1) // 2)), (1, False)]


@check("eq-12")
def unrolled_sum(trial: Trial) -> str:
    """The forms stand in the order of the base-3 rule, and the sum is the network (eq-12)."""
    deepest = 4 if trial.quick else 7
    for depth in range(1, deepest + 1):
        trial.equal(f"depth {depth}: the rule", word(depth), tree_factors(depth))
    networks = trial.some(_EXACT, 2)
    for network in networks:
        W, X = integers(network, trial.seed, 1)
        exact = exact_output(W, X).astype(np.float64)
        trial.equal(f"{network}: the sum", exact, evaluate_unrolled(virtual(W), X))
    return (
        f"the base-3 rule against the recursion written out for depths 1 to {deepest}; the sum, "
        f"term by term, for {len(networks)} networks of integer weights, exactly "
        f"(seed {trial.seed})"
    )
