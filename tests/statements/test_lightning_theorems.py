"""Lightning networks with one head: the lemmas of the proofs, and the edges."""

from itertools import product

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.all_widths import virtual_dimension
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.paper.checks.lightning_proofs import (
    causal_orders,
    draw,
    inner_expansion,
    network,
    one_vector,
    polynomials,
    rank_one_layer,
    two_tokens,
    valuation,
)
from neuromanifold.statements import Facts


def holds(*cases):
    assert [case.failure for case in cases if case.failure] == []


@pytest.mark.statement("all-widths")
@pytest.mark.statement("one-token")
@pytest.mark.parametrize("seed", [1, 2])
def test_one_token_and_tokens_behind_a_rank_one_layer_have_products_of_forms(seed):
    holds(*(one_vector(seed, depth, d) for depth, d in product((1, 2), (1, 2, 3))))
    holds(*(rank_one_layer(seed, depth, j, 2) for depth, j in [(1, 1), (2, 1), (2, 2), (3, 2)]))
    holds(two_tokens(seed, 1), two_tokens(seed, 2))


@pytest.mark.statement("causal-mask")
@pytest.mark.statement("inner-skip")
@pytest.mark.parametrize("seed", [1, 2])
def test_masks_and_inner_skips_show_skew_parts(seed):
    holds(*causal_orders(seed, 3, 2), *causal_orders(seed, 2, 3))
    holds(*(inner_expansion(seed, depth, d) for depth, d in product((1, 2, 3), (1, 2))))


@pytest.mark.statement("one-token")
def test_one_token_does_not_show_skew_parts():
    forms, L, (x, z, _) = draw(3, 2, 3)
    skew = np.array([[0, 1, -2], [-1, 0, 3], [2, -3, 0]])
    X = polynomials(x, z)[:, None]
    for inner in (False, True):
        change = network(forms + skew, L, X, inner=inner) - network(forms, L, X, inner=inner)
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
