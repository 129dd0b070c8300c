"""The theorems about softmax networks: at the edge of their hypotheses, and just outside."""

from itertools import product

import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.paper.checks.consensus import consensus_orders, spreads
from neuromanifold.paper.checks.evaluation import from_forms
from neuromanifold.paper.checks.exact_dimensions import theorem
from neuromanifold.paper.checks.softmax import (
    FORM,
    LINEAR,
    OTHER,
    ROWS,
    SKEW,
    compare,
    other_normaliser,
    random_softmax,
)
from neuromanifold.paper.checks.trial import Trial
from neuromanifold.statements import Facts, beyond, deep, get, softmax, unmet

PLAIN = {"widths": (2, 2, 2), "ranks": (2, 2), "tokens": 2, "attention": "softmax"}


def formula(widths, ranks, tokens, **fields):
    found = dimension_formula(Architecture(widths, ranks, tokens, "softmax", **fields))
    return found.dimension, found.status, found.statement


def test_no_conjecture_is_left_that_is_proved():
    ours = (*deep.STATEMENTS, *softmax.STATEMENTS, *beyond.STATEMENTS)
    left = {statement.id for statement in ours if statement.status == "conjecture"}
    assert left == {"residual-skip", "head-mixing"}
    softmax_facts = Facts((3, 3, 3), (2, 2), 2, "softmax", skip="residual")
    assert unmet(get("residual-skip"), softmax_facts) == ("attention = softmax, not lightning",)


@pytest.mark.statement("consensus")
def test_the_spread_is_cubed_by_every_layer_and_layers_are_seen_at_twice_its_order():
    for depth, width, tokens, seed in [(2, 1, 2, 0), (3, 2, 2, 1), (3, 3, 5, 2)]:
        found = consensus_orders(depth, width, tokens, seed)
        assert found.spread == tuple(3**i for i in range(depth + 1))
        assert found.seen == found.shift == tuple(2 * 3**i for i in range(depth))
        assert found.leading
    slopes = np.subtract(*[one.log2 for one in spreads(2, (30, 31), 3)])
    assert np.allclose(slopes, [1, 3, 9], atol=1e-6)


@pytest.mark.statement("softmax-fibers")
def test_layers_behind_a_collapsing_form_are_not_seen():
    trial, zero = Trial(quick=False), np.zeros((2, 2))
    for case in [
        ((SKEW, FORM), (SKEW, OTHER), 2, True),  # the edge: two tokens and a skew form
        ((SKEW, FORM), (SKEW, OTHER), 3, False),
        ((SKEW + 0.1 * FORM, FORM), (SKEW + 0.1 * FORM, OTHER), 2, False),
        ((zero, FORM), (zero, OTHER), 4, True),
        ((FORM, zero, SKEW), (FORM, zero, OTHER), 3, True),
        ((FORM, zero, SKEW), (OTHER, zero, SKEW), 3, False),
    ]:
        compare(trial, *case)
    assert (trial.cases, trial.failures) == (6, [])


@pytest.mark.statement("softmax-fibers")
def test_weights_without_a_linear_map_have_the_zero_function():
    X = np.random.default_rng(0).standard_normal((2, 3))
    values = [from_forms([M], X, 0 * LINEAR, attention="softmax") for M in (FORM, OTHER)]
    assert not np.any(values)
    assert unmet(get("softmax-fibers"), Facts(**PLAIN, linear_rank=0)) == ("rank L = 0 < 1",)


@pytest.mark.statement("softmax-causal-fibers")
@pytest.mark.statement("softmax-inner-fibers")
def test_masks_and_skips_see_everything_except_skew_forms_at_two_tokens():
    trial, zero = Trial(quick=False, seed=1), np.zeros((2, 2))
    for edge in ((2, True), (3, False)):
        compare(trial, (zero, SKEW), (SKEW / 2, zero), *edge, mask="causal")
        compare(trial, (SKEW, -SKEW / 2), (zero, SKEW / 2), *edge, skip="inner")
    assert (trial.cases, trial.failures) == (4, [])
    skew = {**PLAIN, "mask": "causal", "skew_forms": (True, False)}
    assert unmet(get("softmax-causal-fibers"), Facts(**skew)) == (
        "M_1 is skew-symmetric, with two tokens",
    )
    assert unmet(get("softmax-causal-fibers"), Facts(**{**skew, "tokens": 3})) == ()
    last = {**skew, "skew_forms": (False, True)}
    assert unmet(get("softmax-causal-fibers"), Facts(**last)) == ()
    inner = {**PLAIN, "skip": "inner", "form_ranks": (0, 2), "paired_forms": ((1, 2),)}
    assert unmet(get("softmax-inner-fibers"), Facts(**inner)) == (
        "M_1 = 0, with two tokens",
        "M_1 = ± 2 M_2 to within rounding, with two tokens",
    )
    assert unmet(get("softmax-inner-fibers"), Facts(**{**inner, "tokens": 3})) == ()
    assert unmet(get("softmax-inner-fibers"), Facts(**{**PLAIN, "skip": "inner"})) == ()


@pytest.mark.statement("softmax-dimension")
@pytest.mark.statement("softmax-one-token")
def test_one_head_has_the_dimension_of_its_virtual_weights_from_two_tokens_on():
    for skip in ("none", "inner"):
        for mask in ("none", "causal"):
            found = formula((2, 4, 2), (2, 2), 2, skip=skip, mask=mask)
            assert found == (12, "theorem", "softmax-dimension")
            found = formula((2, 4, 2), (2, 2), 1, skip=skip, mask=mask)
            assert found == (4, "theorem", "softmax-one-token")
    assert certify(Architecture((2, 4, 2), (2, 2), 1, "softmax", heads=2)).lower == 4
    assert formula((3, 3), (2,), 1, heads=2, value_ranks=(1,)) == (
        8,
        "theorem",
        "softmax-one-token",
    )
    # two residual layers of rank one: the products (1 + u vᵀ)(1 + w zᵀ) are not counted
    assert formula((3, 3, 3), (2, 2), 1, skip="residual", value_ranks=(1, 1))[1] == "none"
    assert formula((3, 3, 3), (2, 2), 1, skip="residual", value_ranks=(1, 3))[0] == 9


@pytest.mark.statement("softmax-residual")
def test_the_residual_skip_shows_every_pair_of_every_head():
    for mask in ("none", "causal"):
        found = formula(
            (3, 3, 3), (1, 2), 2, heads=2, value_ranks=(1, 5), skip="residual", mask=mask
        )
        assert found == (2 * (5 + 5) + 2 * (8 + 9), "theorem", "softmax-residual")
    assert formula((2, 2), (2,), 1, skip="residual") == (4, "theorem", "softmax-one-token")


@pytest.mark.statement("softmax-layer")
def test_one_layer_shows_every_head_from_two_tokens_on():
    for skip in ("none", "inner"):
        found = formula((3, 1), (3,), 2, heads=4, skip=skip, mask="causal")
        assert found == (4 * 12, "theorem", "softmax-layer")
    assert formula((3, 1), (3,), 1, heads=4)[2] == "softmax-one-token"


@pytest.mark.statement("softmax-heads")
def test_deep_heads_need_three_tokens():
    sizes = ((2, 4, 2), (2, 4))
    assert formula(*sizes, 3, heads=2) == (56, "theorem", "softmax-heads")
    assert formula(*sizes, 2, heads=2) == (None, "none", None)
    two = Architecture(*sizes, 2, "softmax", heads=2)
    found = certify(two)
    assert (found.lower, found.verdict) == (52, "exact")
    # a width of one before the end, or a skip: conjecture only
    assert formula((1, 2, 2), (1, 2), 3, heads=2)[1:] == ("conjecture", "head-mixing")
    found = dimension_formula(Architecture(*sizes, 3, "softmax", heads=2, skip="inner"))
    assert (found.dimension, found.status, found.statement) == (56, "conjecture", "head-mixing")
    assert found.unmet == ("widths[0] = 2 < 4", "widths[2] = 2 < 4")


@pytest.mark.statement("softmax-heads-bottleneck")
def test_bottlenecks_with_heads_need_full_values():
    fields = {"heads": 2, "skip": "inner", "mask": "causal"}
    found = formula((3, 2, 4), (1, 2), 2, **fields)
    assert found == (2 * (5 + 6) + 2 * (4 + 8) - 4, "theorem", "softmax-heads-bottleneck")
    assert formula((3, 2, 4), (1, 2), 2, **fields, value_ranks=(2, 2))[1] == "theorem"
    assert formula((3, 2, 4), (1, 2), 2, **fields, value_ranks=(2, 1))[1] == "conjecture"
    assert formula((3, 2, 1), (1, 2), 2, **fields)[1] == "conjecture"


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_three_hundred_random_networks_of_every_row_agree_exactly(row):
    """A hundred architectures with three weights each: tracing takes longer than a certificate."""
    networks = random_softmax(row, 100, 7)
    assert len(networks) == 100
    for network, seed in product(networks, range(3)):
        found = certify(network, seed=seed)
        assert found.lower_is_proved, network
        assert theorem(network) == found.lower <= found.upper, network


@pytest.mark.statement("normalisers")
def test_a_normaliser_counts_as_softmax_does_only_if_it_is_injective():
    net = Architecture((2, 2, 1), (1, 1), 2, "softmax")
    weights = [{k: np.zeros(s[1:]) for k, s in layer.items()} for layer in net.shapes]

    def uniform(w, X):  # S = 1
        for layer in w:
            X = layer["value"] @ X.mean(1, keepdims=True) + 0 * X[:1]
        return X

    ranks = [
        nm.certify(nm.network(f, weights, np.zeros((2, 2)))).lower
        for f in (other_normaliser, uniform)
    ]
    assert ranks == [nm.dimension_formula(net).dimension, 2]
    facts = Facts.of(Architecture((2, 2, 1), (1, 1), 1, "softmax"))
    assert unmet(get("normalisers"), facts) == ("tokens = 1 < 2",)
