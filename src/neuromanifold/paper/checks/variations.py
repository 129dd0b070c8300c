"""Checks of what the paper leaves open: masks, skip connections, several heads."""

from itertools import product
from typing import Any

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.formula.heads import head_dimension
from neuromanifold.networks.weights import random_weights
from neuromanifold.paper.checks.all_widths import random_networks
from neuromanifold.paper.checks.evaluation import normal_input, output
from neuromanifold.paper.checks.exact_dimensions import certified, compare_dimensions, formula
from neuromanifold.paper.checks.lightning_proofs import causal_orders, inner_expansion
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.symmetry.group_element import GroupElement


def _with_drawn(trial: Trial, named: Architecture, most: int, **fields: Any) -> str:
    """The dimensions of a network and of random ones of its kind."""
    count = 6 if trial.quick else most
    drawn = random_networks(count, trial.seed, attention="lightning", **fields)
    return compare_dimensions(trial, [named, *drawn])


@check("causal-mask")
def causal_mask(trial: Trial) -> str:
    """With the causal mask a layer of rank one does not collapse the later ones (causal-mask)."""
    masked = Architecture((3, 3, 3), (1, 2), 3, mask="causal")
    open_ = Architecture((3, 3, 3), (1, 2), 3)
    checked = _with_drawn(trial, masked, 50, mask="causal")
    trial.numbers["widths 3,3,3, ranks 1,2"] = {
        "causal": certified(masked, trial.seed).lower,
        "no mask": certified(open_, trial.seed).lower,
    }
    lemmas = [*causal_orders(trial.seed, 2, 3), *causal_orders(trial.seed, 3, 2)]
    trial.cases += lemmas
    return f"{checked}; {len(lemmas)} orders of the proof, exactly"


@check("inner-skip")
def inner_skip(trial: Trial) -> str:
    """V(X + XP): no rescalings, no collapse (inner-skip)."""
    named = Architecture((3, 3, 3), (2, 2), 3, skip="inner")
    checked = _with_drawn(trial, named, 50, skip="inner")
    lemmas = [inner_expansion(trial.seed, depth, d) for depth, d in ((1, 2), (2, 3), (3, 2))]
    trial.cases += lemmas
    return f"{checked}; {len(lemmas)} expansions of the proof, exactly"


@check("residual-skip")
def residual_skip(trial: Trial) -> str:
    """X + φ(X): no inter-layer symmetry, but every layer's scaling stays (residual-skip)."""
    example = Architecture((3, 3, 3), (2, 2), 3, skip="residual")
    checked = _with_drawn(trial, example, 40, skip="residual")
    W, X = random_weights(example, trial.seed), normal_input(example, trial.seed)
    moved = GroupElement(example, scaling=(np.array([2.0]), np.array([0.5]))).act(W)
    same = bool(np.array_equal(output(W, X), output(moved, X)))
    proved = certified(example, trial.seed)
    without = proved.lower + example.depth
    trial.refute(
        "Widths 3, 3, 3 and ranks 2, 2 with X + φ(X): (2A_1, V_1/2, A_2/2, 2V_2) has the same "
        "outputs to the last bit, so the scaling symmetry does not break; the dimension is "
        f"{proved.lower} ({proved.verdict}), and would be {without} if it did.",
        same and proved.verdict == "exact",
        {"dimension": proved.lower, "without scaling symmetry": without},
    )
    return checked


def _several_heads(trial: Trial) -> list[Architecture]:
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
    return [one for one in every[:: 5 if trial.quick else 1] if formula(one) is not None]


@check("head-mixing")
def several_heads(trial: Trial) -> str:
    """Lightning heads mix continuously, softmax heads do not (head-mixing)."""
    checked = compare_dimensions(trial, _several_heads(trial))
    example = Architecture((3, 3), (3,), 3, heads=2)
    proved = certified(example, trial.seed)
    unmixed = example.heads * (head_dimension(example, 0) - 1)
    trial.refute(
        f"d = d' = a = 3 and two lightning heads: the dimension is {proved.lower} "
        f"({proved.verdict}); if heads could only be permuted it would be twice that of one head, "
        f"{unmixed}.",
        proved.upper < unmixed,
        {"dimension": proved.lower, "two heads that do not mix": unmixed},
    )
    return checked
