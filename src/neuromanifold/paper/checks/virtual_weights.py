"""Checks of virtual weights, and of what leaves them or the function unchanged."""

from collections.abc import Iterable
from dataclasses import replace

import jax
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.networks.virtual import VirtualWeights, evaluate_virtual, rescale_virtual
from neuromanifold.networks.weights import Weights, conditioned_weights, random_weights
from neuromanifold.paper.checks.evaluation import (
    DIFFERENT,
    ROUNDING,
    distance,
    normal_input,
    output,
    virtual,
)
from neuromanifold.paper.checks.evidence import Case, Check, Finding, apart, close, equal
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


def only_virtual_weights(quick: bool, seed: int) -> Finding:
    """The function depends on the weights through (M, L) only (eq-8)."""
    networks = _NETWORKS[:3] if quick else _NETWORKS
    cases = []
    for network in networks:
        W, X = conditioned_weights(network, seed), normal_input(network, seed)
        error = distance(output(W, X), value(virtual(W), X))
        cases.append(close(network.name, error, ROUNDING))
    return Finding(
        f"{len(networks)} networks, lightning and softmax, with and without mask, at normal "
        f"inputs, float64 (seed {seed})",
        cases,
    )


def inter_layer(quick: bool, seed: int) -> Finding:
    """Changing bases between layers leaves (M, L) and the function alone (eq-9)."""
    networks = _NETWORKS[:3] if quick else _NETWORKS
    cases: list[Case] = []
    for network in networks:
        W, X = conditioned_weights(network, seed), normal_input(network, seed)
        moved = _moved(W, seed)
        cases.append(close(f"{network}: φ", distance(output(W, X), output(moved, X)), ROUNDING))
        before, after = virtual(W), virtual(moved)
        error = distance(_stacked(before), _stacked(after))
        cases.append(close(f"{network}: (M, L)", error, ROUNDING))
        cases.append(apart(f"{network}: W", distance(W.flatten(), moved.flatten()), DIFFERENT))
    return Finding(
        f"{len(networks)} networks moved by random C_i of condition number 10, float64 "
        f"(seed {seed})",
        cases,
    )


def _moved(weights: Weights, seed: int) -> Weights:
    return _change_of_bases(weights.architecture, seed).act(weights)


def _change_of_bases(network: Architecture, seed: int) -> GroupElement:
    """Random C_1, …, C_{l-1}."""
    family = parts_of(network)["inter_layer"]
    return GroupElement(network, inter_layer=family.random(np.random.default_rng(seed)))


def _stacked(virtual_weights: VirtualWeights) -> np.ndarray:
    parts = (*virtual_weights.forms, virtual_weights.linear)
    return np.concatenate([np.asarray(part) for part in parts])


def unique_change_of_bases(quick: bool, seed: int) -> Finding:
    """With a bottleneck and rank L = δ the C_i come back from the weights (lemma-3.5).

    L_i' = C_i L_i, and L_i has independent rows, so C_i = L_i' L_i⁺ is the only candidate.
    """
    networks = _BOTTLENECKS[:1] if quick else _BOTTLENECKS
    cases: list[Case] = []
    for network in networks:
        W, element = conditioned_weights(network, seed), _change_of_bases(network, seed)
        moved = element.act(W)
        changes = element.inter_layer
        for i, (C, L, L_new) in enumerate(zip(changes, _maps(W), _maps(moved), strict=False)):
            cases.append(equal(f"{network}: rank L_{i + 1}", len(L), np.linalg.matrix_rank(L)))
            error = distance(C, L_new @ np.linalg.pinv(L))
            cases.append(close(f"{network}: C_{i + 1}", error, ROUNDING))
    cases.append(equal("rank L < δ: equal (M, L), no symmetry", True, _unrelated(seed)))
    return Finding(
        f"{len(networks)} bottlenecks moved by random C_i, which are found again to "
        f"{ROUNDING:.0e}; and weights with rank L < δ and equal (M, L), which no C_i "
        f"relate (seed {seed})",
        cases,
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
    tensors = [
        {name: np.array(tensor) for name, tensor in layer.tensors().items()}
        for layer in conditioned_weights(network, seed).layers
    ]
    tensors[0]["value"][0, 1] = 0.0
    W = Weights.from_tensors(network, tensors)
    V = tensors[1]["value"][0]
    changed = np.stack([V[:, 0], np.cross(V[:, 0], V[:, 1])], axis=1)
    other = Weights.from_tensors(network, [tensors[0], {**tensors[1], "value": changed[None]}])
    same = distance(_stacked(virtual(W)), _stacked(virtual(other))) <= ROUNDING
    return bool(same and np.linalg.matrix_rank(np.concatenate([V, changed], axis=1)) == 3)


def rescalings(quick: bool, seed: int) -> Finding:
    """M_i' = λ_i M_i, L' = ρ L keep φ iff ∏ λ_i^(3^(l−i)) = 1/ρ (eq-13).

    With powers of two for λ every product is exact, so both sides agree to the last bit.
    """
    networks = [network for network in _NETWORKS if network.attention == "lightning"]
    cases: list[Case] = []
    for network in networks[: 2 if quick else None]:
        W, X = virtual(random_weights(network, seed)), normal_input(network, seed)
        factors = tuple(2.0 ** (-1) ** i for i in range(network.depth))
        moved = rescale_virtual(W, factors)
        cases.append(equal(f"{network}: kept", value(W, X), value(moved, X)))
        wrong = VirtualWeights(moved.forms, 2 * np.asarray(moved.linear), network)
        change = distance(value(W, X), value(wrong, X))
        cases.append(apart(f"{network}: another ρ", change, DIFFERENT))
    return Finding(
        f"{len(cases) // 2} networks with λ_i = 2 or 1/2, to the last bit, and with another ρ, "
        f"which changes the function (seed {seed})",
        cases,
    )


def with_zeros(network: Architecture, zeros: Iterable[str], seed: int) -> Weights:
    """Random weights, some of the tensors zero."""
    drawn = random_weights(network, seed)
    layers = [
        {name: np.asarray(T) * (f"{name} {i}" not in zeros) for name, T in layer.tensors().items()}
        for i, layer in enumerate(drawn.layers, start=1)
    ]
    return Weights.from_tensors(network, layers)


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


def special_weights(quick: bool, seed: int) -> Finding:
    """Local dimensions where some weights vanish are those of what is seen there (virtual-rank)."""
    cases = []
    for network, zeros, dimension in SPECIAL[::3] if quick else SPECIAL:
        proof = certify(network, weights=with_zeros(network, zeros, seed), seed=seed)
        found = (proof.lower, proof.upper)
        cases.append(equal(f"{network}, zero {', '.join(zeros)}", (dimension, dimension), found))
    return Finding(
        f"exact ranks and bounds at {len(cases)} weights with zeros, counted by hand (seed {seed})",
        cases,
    )


CHECKS: dict[str, Check] = {
    "virtual-rank": special_weights,
    "eq-8": only_virtual_weights,
    "eq-9": inter_layer,
    "lemma-3.5": unique_change_of_bases,
    "eq-13": rescalings,
}
