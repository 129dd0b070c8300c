"""Lightning networks with one head: the lemmas of the proofs, and the edges."""

from itertools import product

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.all_widths import virtual_dimension
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.paper.checks.evaluation import from_forms
from neuromanifold.paper.checks.lightning_proofs import (
    causal_orders,
    draw,
    inner_expansion,
    one_vector,
    polynomials,
    rank_one_layer,
    two_tokens,
    valuation,
)
from neuromanifold.paper.checks.trial import Trial
from neuromanifold.statements import Facts


@pytest.mark.statement("all-widths")
@pytest.mark.statement("one-token")
@pytest.mark.parametrize("seed", [1, 2])
def test_one_token_and_tokens_behind_a_rank_one_layer_have_products_of_forms(seed):
    trial = Trial(quick=False, seed=seed)
    for depth, d in product((1, 2), (1, 2, 3)):
        one_vector(trial, depth, d)
    for depth, j in [(1, 1), (2, 1), (2, 2), (3, 2)]:
        rank_one_layer(trial, depth, j, 2)
    for depth in (1, 2):
        two_tokens(trial, depth)
    assert (trial.cases, trial.failures) == (12, [])


@pytest.mark.statement("causal-mask")
@pytest.mark.statement("inner-skip")
@pytest.mark.parametrize("seed", [1, 2])
def test_masks_and_inner_skips_show_skew_parts(seed):
    trial = Trial(quick=False, seed=seed)
    for depth, d in [(3, 2), (2, 3)]:
        causal_orders(trial, depth, d)
    for depth, d in product((1, 2, 3), (1, 2)):
        inner_expansion(trial, depth, d)
    assert (trial.cases, trial.failures) == (11, [])


@pytest.mark.statement("one-token")
def test_one_token_does_not_show_skew_parts():
    forms, L, (x, z, _) = draw(3, 2, 3)
    skew = np.array([[0, 1, -2], [-1, 0, 3], [2, -3, 0]])
    X = polynomials(x, z)[:, None]
    for skip in ("none", "inner"):
        change = from_forms(forms + skew, X, L, skip=skip) - from_forms(forms, X, L, skip=skip)
        assert valuation(change) is None


@pytest.mark.statement("all-widths")
def test_behind_a_rank_one_layer_skew_parts_are_not_seen_without_mask_and_skip():
    plain = dimension_formula(Architecture((3, 3, 3), (1, 2), 2))
    assert (plain.dimension, plain.status) == (18, "theorem")
    facts = Facts((3, 3, 3), (1, 2), 2)
    assert virtual_dimension(facts) - 2 == 20
    for fields in ({"mask": "causal"}, {"skip": "inner"}):
        found = dimension_formula(Architecture((3, 3, 3), (1, 2), 2, **fields))
        assert (found.dimension, found.status) == (22 - 2 * ("mask" in fields), "theorem")


@pytest.mark.statement("all-widths")
@pytest.mark.statement("one-token")
@pytest.mark.statement("causal-mask")
@pytest.mark.statement("inner-skip")
@pytest.mark.parametrize("skip", ["none", "inner"])
def test_small_lightning_networks_have_the_proved_dimension(skip):
    sizes = [((2, 2, 2), (2, 2)), ((3, 2, 1), (1, 2)), ((2, 3, 2), (2, 1)), ((1, 2, 2), (1, 2))]
    for (widths, ranks), mask, tokens in product(sizes, ("none", "causal"), (1, 2)):
        architecture = Architecture(widths, ranks, tokens, skip=skip, mask=mask)
        found = dimension_formula(architecture)
        assert found.status == "theorem"
        assert certify(architecture).lower == found.dimension, architecture
