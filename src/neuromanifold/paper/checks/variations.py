"""Checks of what the paper leaves open: masks, skip connections, several heads."""

from itertools import product

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.formula.heads import head_dimension
from neuromanifold.networks.weights import random_weights
from neuromanifold.paper.checks.all_widths import formula, random_networks
from neuromanifold.paper.checks.evaluation import normal_input, output
from neuromanifold.paper.checks.evidence import Check, Counterexample, Finding
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions
from neuromanifold.paper.checks.lightning_proofs import causal_orders, inner_expansion
from neuromanifold.symmetry.group_element import GroupElement


def causal_mask(quick: bool, seed: int) -> Finding:
    """With the causal mask a layer of rank one does not collapse the later ones (causal-mask)."""
    masked = Architecture((3, 3, 3), (1, 2), 3, mask="causal")
    open_ = Architecture((3, 3, 3), (1, 2), 3)
    networks = [
        masked,
        *random_networks(6 if quick else 50, seed, attention="lightning", mask="causal"),
    ]
    found = compare_dimensions(networks, formula, seed)
    numbers = {"causal": certified(masked, seed).lower, "no mask": certified(open_, seed).lower}
    lemmas = [*causal_orders(seed, 2, 3), *causal_orders(seed, 3, 2)]
    return Finding(
        f"{found.checked}; {len(lemmas)} orders of the proof, exactly",
        [*found.cases, *lemmas],
        {**found.numbers, "widths 3,3,3, ranks 1,2": numbers},
    )


def inner_skip(quick: bool, seed: int) -> Finding:
    """V(X + XP): no rescalings, no collapse (inner-skip)."""
    named = Architecture((3, 3, 3), (2, 2), 3, skip="inner")
    networks = [
        named,
        *random_networks(6 if quick else 50, seed, attention="lightning", skip="inner"),
    ]
    found = compare_dimensions(networks, formula, seed)
    lemmas = [inner_expansion(seed, depth, d) for depth, d in ((1, 2), (2, 3), (3, 2))]
    checked = f"{found.checked}; {len(lemmas)} expansions of the proof, exactly"
    return Finding(checked, [*found.cases, *lemmas], found.numbers)


def residual_skip(quick: bool, seed: int) -> Finding:
    """X + φ(X): no inter-layer symmetry, but every layer's scaling stays (residual-skip)."""
    example = Architecture((3, 3, 3), (2, 2), 3, skip="residual")
    networks = [
        example,
        *random_networks(6 if quick else 40, seed, attention="lightning", skip="residual"),
    ]
    found = compare_dimensions(networks, formula, seed)
    W, X = random_weights(example, seed), normal_input(example, seed)
    moved = GroupElement(example, scaling=(np.array([2.0]), np.array([0.5]))).act(W)
    same = bool(np.array_equal(output(W, X), output(moved, X)))
    proved = certified(example, seed)
    without = proved.lower + example.depth
    return Finding(
        found.checked,
        found.cases,
        found.numbers,
        Counterexample(
            text=f"Widths 3, 3, 3 and ranks 2, 2 with X + φ(X): (2A_1, V_1/2, A_2/2, 2V_2) has the "
            "same outputs to the last bit, so the scaling symmetry does not break; the dimension "
            f"is {proved.lower} ({proved.verdict}), and would be {without} if it did.",
            refutes=same and proved.verdict == "exact",
            numbers={"dimension": proved.lower, "without scaling symmetry": without},
        ),
    )


def _several_heads(quick: bool) -> list[Architecture]:
    sizes = product((2, 3), (2, 3), (1, 2, 3), (2, 3))
    layers = [Architecture((d, d_out), (a,), 2, heads=H) for d, d_out, a, H in sizes]
    softmax = [
        Architecture((d, d), (a,), 2, "softmax", heads=2) for d, a in product((2, 3), (1, 2, 3))
    ]
    deep = [
        Architecture((2, 2, 2), (2, 2), 3, heads=3),
        Architecture((3, 3, 3), (1, 2), 2, heads=2),
        Architecture((3, 3), (2,), 3, heads=3, value_ranks=(2,)),
        Architecture((4, 4), (4,), 2, heads=3),
        Architecture((4, 4), (3,), 2, heads=3),
    ]
    every = [*deep, *softmax, *layers]
    return [network for network in every[:: 5 if quick else 1] if formula(network) is not None]


def several_heads(quick: bool, seed: int) -> Finding:
    """Lightning heads mix continuously, softmax heads do not (head-mixing)."""
    found = compare_dimensions(_several_heads(quick), formula, seed)
    example = Architecture((3, 3), (3,), 3, heads=2)
    proved = certified(example, seed)
    unmixed = example.heads * (head_dimension(example, 0) - 1)
    return Finding(
        found.checked,
        found.cases,
        found.numbers,
        Counterexample(
            text=f"d = d' = a = 3 and two lightning heads: the dimension is {proved.lower} "
            f"({proved.verdict}); if heads could only be permuted it would be twice that of one "
            f"head, {unmixed}.",
            refutes=proved.upper < unmixed,
            numbers={"dimension": proved.lower, "two heads that do not mix": unmixed},
        ),
    )


CHECKS: dict[str, Check] = {
    "causal-mask": causal_mask,
    "inner-skip": inner_skip,
    "residual-skip": residual_skip,
    "head-mixing": several_heads,
}
