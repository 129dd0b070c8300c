"""Checks of the dimensions of the paper: one layer, and bottlenecks."""

from dataclasses import replace
from itertools import product

import numpy as np

from neuromanifold.architecture import Architecture, Attention
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.geometry.layer import Factors
from neuromanifold.networks.weights import unflatten
from neuromanifold.paper.checks.evaluation import distance, generic, output
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions
from neuromanifold.paper.checks.finite_layers import RECOVERED
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.recovery.oracle import network_oracle
from neuromanifold.recovery.recover import recover
from neuromanifold.statements import applies, get


def _lightning_layers(trial: Trial) -> list[Architecture]:
    largest = 2 if trial.quick else 4
    sizes = product(range(1, largest + 1), range(1, largest + 1), range(1, largest + 2))
    return [Architecture((d, d_out), (a,), 2) for d, d_out, a in sizes]


@check("cor-3.3")
def one_lightning_layer(trial: Trial) -> str:
    """The dimension is that of the pairs (A, V) less one, for all sizes (cor-3.3).

    The paper's hypotheses d, d' ≥ 2 or d, a ≥ 2 are not needed: the grid has both kinds.
    """
    layers = _lightning_layers(trial)
    checked = compare_dimensions(trial, layers)
    outside = sum(not applies(get("cor-3.3"), layer) for layer in layers)
    trial.numbers["outside the paper's hypotheses"] = outside
    return (
        f"{checked}; {outside} are outside the paper's hypotheses, and the formula holds there too"
    )


def printed_layer(layer: Architecture) -> int:
    """The dimension of one lightning layer, as printed (eq-7)."""
    (d, d_out), (a,) = layer.widths, layer.ranks
    return 2 * a * d + d * d_out - a**2 - 1 if a <= d else d**2 + d * d_out - 1


@check("eq-7")
def as_printed(trial: Trial) -> str:
    """Dim = 2ad + dd' − a² − 1 for a ≤ d and d² + dd' − 1 otherwise (eq-7)."""
    layers = [layer for layer in _lightning_layers(trial) if applies(get("eq-7"), layer)]
    return compare_dimensions(trial, layers, printed_layer)


@check("thm-3.9")
def softmax_layer(trial: Trial) -> str:
    """The function determines (A, V), and vanishes iff V = 0 (thm-3.9)."""
    sizes = (
        product((1, 2, 3), (1, 2), (1, 2))
        if trial.quick
        else product((1, 2, 3), (1, 2, 3), (1, 2, 4))
    )
    layers = [Architecture((d, d_out), (a,), 2, "softmax") for d, d_out, a in sizes]
    checked = compare_dimensions(trial, layers, _pairs)
    widths = (3,) if trial.quick else (2, 3, 4)
    for layer in [Architecture((d, 2), (2,), 3, "softmax") for d in widths]:
        W, X = generic(layer, trial.seed)
        answer = recover(network_oracle(W), layer, seed=trial.seed)
        error = 1.0
        if answer.weights is not None:
            layers = map(Factors.of, (W, answer.weights))
            error = distance(*(np.concatenate([one.form, one.value_map]) for one in layers))
        trial.close(f"{layer}: (A, V) from the function", error, RECOVERED)
        vector = W.flatten()
        vector[-2 * layer.widths[0] :] = 0
        zero = output(unflatten(layer, vector), X)
        trial.equal(f"{layer}: V = 0", 0 * zero, zero)
    return (
        f"{checked}; (A, V) recovered from {len(widths)} functions in float64, to {RECOVERED:.0e}"
    )


def _pairs(layer: Architecture) -> int:
    """The dimension of the pairs (A, V) (lemma-3.1)."""
    (d, d_out), (a,) = layer.widths, layer.ranks
    alpha = min(a, d)
    return 2 * alpha * d - alpha**2 + d * d_out


def bottlenecks(trial: Trial, attention: Attention) -> list[Architecture]:
    """Networks with d_i = δ inside and d_0, d_l ≥ δ; for lightning a_i ≥ 2."""
    lowest = 2 if attention == "lightning" else 1
    sizes = [(2, 0, 2), (2, 1, 2)] if trial.quick else product((2, 3), (0, 1), (2, 3))
    return [
        Architecture(
            (delta + extra, *(delta,) * (depth - 1), delta + 2 * extra), ranks, 3, attention
        )
        for delta, extra, depth in sizes
        for ranks in product((lowest, 3), repeat=depth)
    ]


def _proved(trial: Trial, attention: Attention) -> str:
    networks = bottlenecks(trial, attention)
    checked = compare_dimensions(trial, networks)
    for network in networks:
        trial.equal(f"{network}: status", "theorem", dimension_formula(network).status)
    return checked


@check("cor-3.8")
def lightning(trial: Trial) -> str:
    """The dimension is that of the virtual weights less the l rescalings (cor-3.8)."""
    return _proved(trial, "lightning")


@check("conj-3.10")
def softmax(trial: Trial) -> str:
    """Softmax bottlenecks have the dimension of their virtual weights (conj-3.10).

    A theorem by (softmax-fibers); for those listed the certificates prove it once more.
    """
    return _proved(trial, "softmax")


def printed_bottleneck(network: Architecture) -> int:
    """The dimension of a bottleneck, as printed; the −l is that of lightning (eq-14, eq-16)."""
    d, delta, depth = network.widths, network.widths[1], network.depth
    alpha = [min(a, before) for a, before in zip(network.ranks, d, strict=False)]
    return (
        2 * alpha[0] * d[0]
        - alpha[0] ** 2
        + delta * (d[0] + d[depth])
        - delta**2
        - (depth if network.attention == "lightning" else 0)
        + sum(2 * alpha_i * delta - alpha_i**2 for alpha_i in alpha[1:])
    )


@check("eq-14")
def lightning_as_printed(trial: Trial) -> str:
    """The printed formula with α_i = min(a_i, d_{i-1}) (eq-14)."""
    return compare_dimensions(trial, bottlenecks(trial, "lightning"), printed_bottleneck)


@check("eq-16")
def softmax_as_printed(trial: Trial) -> str:
    """The lightning formula plus l (eq-16)."""
    networks = bottlenecks(trial, "softmax")
    checked = compare_dimensions(trial, networks, printed_bottleneck)
    for network in networks:
        if min(network.ranks) >= 2:
            twin = certified(replace(network, attention="lightning"), trial.seed).lower
            proved = certified(network, trial.seed).lower
            trial.equal(f"{network}: lightning plus l", twin + network.depth, proved)
    return checked
