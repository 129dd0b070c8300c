"""Checks of the dimensions of bottlenecks, lightning and softmax."""

from itertools import product

from neuromanifold.architecture import Architecture, Attention
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.paper_formulas import (
    lightning_bottleneck_dimension,
    softmax_bottleneck_dimension,
)
from neuromanifold.paper.checks.evidence import Check, Finding, equal
from neuromanifold.paper.checks.exact_dimensions import compare_dimensions


def bottlenecks(quick: bool, attention: Attention) -> list[Architecture]:
    """Networks with d_i = δ inside and d_0, d_l ≥ δ; for lightning a_i ≥ 2."""
    lowest = 2 if attention == "lightning" else 1
    networks = []
    for delta, extra, depth in [(2, 0, 2), (2, 1, 2)] if quick else product((2, 3), (0, 1), (2, 3)):
        widths = (delta + extra, *(delta,) * (depth - 1), delta + 2 * extra)
        networks.extend(
            Architecture(widths, ranks, 3, attention)
            for ranks in product((lowest, 3), repeat=depth)
        )
    return networks


def _expected(network: Architecture) -> int | None:
    return dimension_formula(network).dimension


def lightning(quick: bool, seed: int) -> Finding:
    """The dimension is that of the virtual weights less the l rescalings (cor-3.8)."""
    networks = bottlenecks(quick, "lightning")
    found = compare_dimensions(networks, _expected, seed)
    theorem = [
        equal(f"{network}: status", "theorem", dimension_formula(network).status)
        for network in networks
    ]
    return Finding(found.checked, [*found.cases, *theorem], found.numbers)


def lightning_as_printed(quick: bool, seed: int) -> Finding:
    """The printed formula with α_i = min(a_i, d_{i-1}) (eq-14)."""
    networks = bottlenecks(quick, "lightning")
    found = compare_dimensions(networks, lightning_bottleneck_dimension, seed)
    return Finding(found.checked, found.cases, found.numbers)


def softmax(quick: bool, seed: int) -> Finding:
    """Softmax bottlenecks have the dimension of their virtual weights (conj-3.10).

    A theorem by (softmax-fibers); for those listed the certificates prove it once more.
    """
    networks = bottlenecks(quick, "softmax")
    found = compare_dimensions(networks, _expected, seed)
    theorem = [
        equal(f"{network}: status", "theorem", dimension_formula(network).status)
        for network in networks
    ]
    return Finding(found.checked, [*found.cases, *theorem], found.numbers)


def softmax_as_printed(quick: bool, seed: int) -> Finding:
    """The lightning formula plus l (eq-16)."""
    networks = bottlenecks(quick, "softmax")
    found = compare_dimensions(networks, softmax_bottleneck_dimension, seed)
    plus_depth = []
    for network in networks:
        if min(network.ranks) >= 2:
            twin = Architecture(network.widths, network.ranks, network.tokens)
            plus = lightning_bottleneck_dimension(twin) + network.depth
            printed = softmax_bottleneck_dimension(network)
            plus_depth.append(equal(f"{network}: lightning plus l", plus, printed))
    return Finding(found.checked, [*found.cases, *plus_depth], found.numbers)


CHECKS: dict[str, Check] = {
    "cor-3.8": lightning,
    "eq-14": lightning_as_printed,
    "conj-3.10": softmax,
    "eq-16": softmax_as_printed,
}
