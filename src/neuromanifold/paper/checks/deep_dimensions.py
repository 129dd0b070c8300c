"""Checks of the dimensions of bottlenecks, lightning and softmax."""

from itertools import product

from neuromanifold.architecture import Architecture, Attention
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.paper_formulas import (
    lightning_bottleneck_dimension,
    softmax_bottleneck_dimension,
)
from neuromanifold.paper.checks.exact_dimensions import compare_dimensions
from neuromanifold.paper.checks.trial import Trial, check


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


@check("eq-14")
def lightning_as_printed(trial: Trial) -> str:
    """The printed formula with α_i = min(a_i, d_{i-1}) (eq-14)."""
    networks = bottlenecks(trial, "lightning")
    return compare_dimensions(trial, networks, lightning_bottleneck_dimension)


@check("eq-16")
def softmax_as_printed(trial: Trial) -> str:
    """The lightning formula plus l (eq-16)."""
    networks = bottlenecks(trial, "softmax")
    checked = compare_dimensions(trial, networks, softmax_bottleneck_dimension)
    for network in networks:
        if min(network.ranks) >= 2:
            twin = Architecture(network.widths, network.ranks, network.tokens)
            plus = lightning_bottleneck_dimension(twin) + network.depth
            printed = softmax_bottleneck_dimension(network)
            trial.equal(f"{network}: lightning plus l", plus, printed)
    return checked
