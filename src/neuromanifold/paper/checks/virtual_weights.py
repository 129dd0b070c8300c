"""Checks of virtual weights: what leaves them alone, the product and the unrolled sum of them."""

from collections.abc import Iterable
from dataclasses import replace

import jax
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.networks.virtual import (
    VirtualWeights,
    evaluate_recursion,
    evaluate_unrolled,
    evaluate_virtual,
    rescale_virtual,
    unrolled_factor,
)
from neuromanifold.networks.weights import (
    Weights,
    conditioned_weights,
    random_weights,
    replace_layers,
)
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    distance,
    exact_output,
    generic,
    integers,
    normal_input,
    output,
    virtual,
)
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.symmetry.group_element import GroupElement, parts_of

_NETWORKS = [
    Architecture((3, 2, 3), (2, 2), 3),
    Architecture((2, 4, 2), (2, 1), 3),
    Architecture((3, 2, 4), (2, 3), 3, "softmax"),
    Architecture((2, 3, 2, 2), (2, 1, 2), 2),
    Architecture((3, 3, 3), (2, 2), 4, "softmax", mask="causal"),
    Architecture((3, 3, 3), (2, 2), 3, mask="causal"),
]
_BOTTLENECKS = [
    Architecture((3, 2, 3), (2, 2), 3),
    Architecture((4, 2, 2, 3), (2, 1, 2), 3),
    Architecture((3, 3, 3, 3, 3), (2, 2, 2, 2), 3, "softmax"),
]


def value(virtual_weights: VirtualWeights, X: np.ndarray) -> np.ndarray:
    """φ(X) from virtual weights in float64."""
    with jax.enable_x64(True):
        return np.asarray(evaluate_virtual(virtual_weights, X))


@check("eq-8")
def only_virtual_weights(trial: Trial) -> str:
    """The function depends on the weights through (M, L) only (eq-8)."""
    networks = trial.some(_NETWORKS, 3)
    for network in networks:
        W, X = generic(network, trial.seed)
        trial.close(network.name, distance(output(W, X), value(virtual(W), X)), ROUNDING)
    return (
        f"{len(networks)} networks, lightning and softmax, with and without mask, at normal "
        f"inputs, float64 (seed {trial.seed})"
    )


@check("eq-9")
def inter_layer(trial: Trial) -> str:
    """Changing bases between layers leaves (M, L) and the function alone (eq-9)."""
    networks = trial.some(_NETWORKS, 3)
    for network in networks:
        W, X = generic(network, trial.seed)
        moved = _change_of_bases(network, trial.seed).act(W)
        trial.close(f"{network}: φ", distance(output(W, X), output(moved, X)), ROUNDING)
        trial.close(f"{network}: (M, L)", distance(_stacked(W), _stacked(moved)), ROUNDING)
        trial.apart(f"{network}: W", distance(W.flatten(), moved.flatten()), DIFFERENT)
    return (
        f"{len(networks)} networks moved by random C_i of condition number 10, float64 "
        f"(seed {trial.seed})"
    )


def _change_of_bases(network: Architecture, seed: int) -> GroupElement:
    """Random C_1, …, C_{l-1}."""
    family = parts_of(network)["inter_layer"]
    return GroupElement(network, inter_layer=family.random(np.random.default_rng(seed)))


def _stacked(weights: Weights) -> np.ndarray:
    """(M, L) of weights, one below the other."""
    found = virtual(weights)
    return np.concatenate([np.asarray(part) for part in (*found.forms, found.linear)])


@check("lemma-3.5")
def unique_change_of_bases(trial: Trial) -> str:
    """With a bottleneck and rank L = δ the C_i come back from the weights (lemma-3.5).

    L_i' = C_i L_i, and L_i has independent rows, so C_i = L_i' L_i⁺ is the only candidate.
    """
    networks = trial.some(_BOTTLENECKS, 1)
    for network in networks:
        W = conditioned_weights(network, trial.seed)
        element = _change_of_bases(network, trial.seed)
        maps = zip(element.inter_layer, _maps(W), _maps(element.act(W)), strict=False)
        for i, (C, L, L_new) in enumerate(maps, start=1):
            trial.equal(f"{network}: rank L_{i}", len(L), np.linalg.matrix_rank(L))
            trial.close(f"{network}: C_{i}", distance(C, L_new @ np.linalg.pinv(L)), ROUNDING)
    trial.equal("rank L < δ: equal (M, L), no symmetry", True, _unrelated(trial.seed))
    return (
        f"{len(networks)} bottlenecks moved by random C_i, which are found again to "
        f"{ROUNDING:.0e}; and weights with rank L < δ and equal (M, L), which no C_i "
        f"relate (seed {trial.seed})"
    )


def _maps(weights: Weights) -> list[np.ndarray]:
    """L_1, …, L_l."""
    maps: list[np.ndarray] = []
    for layer in weights.layers:
        V = np.asarray(layer.value_maps()[0])
        maps.append(V @ maps[-1] if maps else V)
    return maps


def _unrelated(seed: int) -> bool:
    """Rank L < δ: weights with equal (M, L) that no inter-layer symmetry relates.

    V_1 has rows v and 0, so column 2 of V_2 is never used. A symmetry V_2' = V_2 C^{-1} keeps the
    column space of V_2; here a column 2 outside of it is put in.
    """
    network = Architecture((3, 2, 3), (1, 1), 3)
    drawn = conditioned_weights(network, seed)
    V_1, V = (np.array(layer.value[0]) for layer in drawn.layers)
    V_1[1] = 0.0
    changed = np.stack([V[:, 0], np.cross(V[:, 0], V[:, 1])], axis=1)
    W, other = (
        replace_layers(drawn, [{"value": V_1[None]}, {"value": V_2[None]}]) for V_2 in (V, changed)
    )
    same = distance(_stacked(W), _stacked(other)) <= ROUNDING
    return bool(same and np.linalg.matrix_rank(np.concatenate([V, changed], axis=1)) == 3)


@check("eq-13")
def rescalings(trial: Trial) -> str:
    """M_i' = λ_i M_i, L' = ρ L keep φ iff ∏ λ_i^(3^(l−i)) = 1/ρ (eq-13).

    With powers of two for λ every product is exact, so both sides agree to the last bit.
    """
    networks = trial.some([one for one in _NETWORKS if one.attention == "lightning"], 2)
    for network in networks:
        W, X = virtual(random_weights(network, trial.seed)), normal_input(network, trial.seed)
        moved = rescale_virtual(W, tuple(2.0 ** (-1) ** i for i in range(network.depth)))
        trial.equal(f"{network}: kept", value(W, X), value(moved, X))
        wrong = VirtualWeights(moved.forms, 2 * np.asarray(moved.linear), network)
        trial.apart(f"{network}: another ρ", distance(value(W, X), value(wrong, X)), DIFFERENT)
    return (
        f"{len(networks)} networks with λ_i = 2 or 1/2, to the last bit, and with another ρ, "
        f"which changes the function (seed {trial.seed})"
    )


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
    exact, networks = trial.cases, trial.some(_NUMERIC, 1)
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
        f"{trial.cases} layers of {len(networks)} networks, X_i X_iᵀ from the layers against "
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


def with_zeros(network: Architecture, zeros: Iterable[str], seed: int) -> Weights:
    """Random weights, some of the tensors zero."""
    drawn = random_weights(network, seed)
    layers = [
        {name: 0 * T for name, T in layer.arrays().items() if f"{name} {i}" in zeros}
        for i, layer in enumerate(drawn.layers, start=1)
    ]
    return replace_layers(drawn, layers)


_SOFTMAX = Architecture((3, 3, 3), (2, 2), 3, "softmax")
_LIGHTNING = Architecture((3, 3, 3), (2, 2), 3)
SPECIAL = [
    # dA_1 = dK_1ᵀ Q_1 has 2·3 dimensions, L has 9, and M_2 is not seen
    (_SOFTMAX, ("key 1",), 15),
    (_SOFTMAX, ("query 1", "key 1"), 9),
    (_SOFTMAX, ("key 2",), 9 + 8 + 6),
    (_SOFTMAX, ("value 1",), 9),
    (replace(_SOFTMAX, skip="inner"), ("value 2",), 9),
    # degree 3 in M_1, degree 1 in M_2 and in L
    (_LIGHTNING, ("key 1",), 0),
    (_LIGHTNING, ("key 2",), 6),
    (_LIGHTNING, ("value 2",), 9),
    (_LIGHTNING, ("key 2", "value 2"), 0),
    (replace(_LIGHTNING, skip="inner"), ("key 1",), 6 + 8 + 9),
]


@check("virtual-rank")
def special_weights(trial: Trial) -> str:
    """Local dimensions where some weights vanish are those of what is seen there (virtual-rank)."""
    for network, zeros, dimension in SPECIAL[::3] if trial.quick else SPECIAL:
        proof = certify(network, weights=with_zeros(network, zeros, trial.seed), seed=trial.seed)
        found = (proof.lower, proof.upper)
        trial.equal(f"{network}, zero {', '.join(zeros)}", (dimension, dimension), found)
    return (
        f"exact ranks and bounds at {trial.cases} weights with zeros, counted by hand "
        f"(seed {trial.seed})"
    )
