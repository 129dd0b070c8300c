"""Checks of the dimension of one layer: lightning and softmax."""

from itertools import product

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.paper_formulas import one_layer_dimension
from neuromanifold.networks.weights import conditioned_weights, unflatten
from neuromanifold.paper.checks.evaluation import distance, normal_input, output
from neuromanifold.paper.checks.evidence import Case, Check, Finding, close, equal
from neuromanifold.paper.checks.exact_dimensions import compare_dimensions
from neuromanifold.paper.checks.finite_layers import RECOVERED
from neuromanifold.recovery.oracle import network_oracle
from neuromanifold.recovery.recover import recover
from neuromanifold.statements import Facts, applies, get


def _lightning_layers(quick: bool) -> list[Architecture]:
    largest = 2 if quick else 4
    sizes = product(range(1, largest + 1), range(1, largest + 1), range(1, largest + 2))
    return [Architecture((d, d_out), (a,), 2) for d, d_out, a in sizes]


def one_lightning_layer(quick: bool, seed: int) -> Finding:
    """The dimension is that of the pairs (A, V) less one, for all sizes (cor-3.3).

    The paper's hypotheses d, d' ≥ 2 or d, a ≥ 2 are not needed: the grid has both kinds.
    """
    layers = _lightning_layers(quick)
    found = compare_dimensions(layers, lambda layer: dimension_formula(layer).dimension, seed)
    outside = sum(not applies(get("cor-3.3"), Facts.of(layer)) for layer in layers)
    return Finding(
        f"{found.checked}; {outside} are outside the paper's hypotheses, and the formula holds "
        "there too",
        found.cases,
        {**found.numbers, "outside the paper's hypotheses": outside},
    )


def as_printed(quick: bool, seed: int) -> Finding:
    """Dim = 2ad + dd' − a² − 1 for a ≤ d and d² + dd' − 1 otherwise (eq-7)."""
    layers = [layer for layer in _lightning_layers(quick) if applies(get("eq-7"), Facts.of(layer))]
    found = compare_dimensions(layers, one_layer_dimension, seed)
    return Finding(found.checked, found.cases, found.numbers)


def softmax_layer(quick: bool, seed: int) -> Finding:
    """The function determines (A, V), and vanishes iff V = 0 (thm-3.9)."""
    sizes = (
        product((1, 2, 3), (1, 2), (1, 2)) if quick else product((1, 2, 3), (1, 2, 3), (1, 2, 4))
    )
    layers = [Architecture((d, d_out), (a,), 2, "softmax") for d, d_out, a in sizes]
    found = compare_dimensions(layers, _pairs, seed)
    cases: list[Case] = list(found.cases)
    recovered = [Architecture((d, 2), (2,), 3, "softmax") for d in ((3,) if quick else (2, 3, 4))]
    for layer in recovered:
        W = conditioned_weights(layer, seed)
        answer = recover(network_oracle(W), layer, seed=seed)
        error = 1.0
        if answer.weights is not None:
            (true,), (back,) = W.layers, answer.weights.layers
            error = distance(
                np.concatenate([true.attention_matrices()[0], true.value_maps()[0]]),
                np.concatenate([back.attention_matrices()[0], back.value_maps()[0]]),
            )
        cases.append(close(f"{layer}: (A, V) from the function", error, RECOVERED))
        vector = W.flatten()
        vector[-2 * layer.widths[0] :] = 0
        zero = output(unflatten(layer, vector), normal_input(layer, seed))
        cases.append(equal(f"{layer}: V = 0", 0 * zero, zero))
    return Finding(
        f"{found.checked}; (A, V) recovered from {len(recovered)} functions in float64, to "
        f"{RECOVERED:.0e}",
        cases,
        found.numbers,
    )


def _pairs(layer: Architecture) -> int:
    """The dimension of the pairs (A, V) (lemma-3.1)."""
    (d, d_out), (a,) = layer.widths, layer.ranks
    alpha = min(a, d)
    return 2 * alpha * d - alpha**2 + d * d_out


CHECKS: dict[str, Check] = {
    "cor-3.3": one_lightning_layer,
    "eq-7": as_printed,
    "thm-3.9": softmax_layer,
}
