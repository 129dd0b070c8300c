"""Proved upper bounds: what they say, that no rank exceeds them, and where they are reached."""

import csv
from itertools import product
from math import comb

import numpy as np
import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.atlas.shipped import shipped
from neuromanifold.certificates.exact import certify
from neuromanifold.errors import ArgumentError
from neuromanifold.formula.ambient import forms_of_degree
from neuromanifold.formula.bounds import Bound, proved_bounds
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.heads import Inputs, layer_bounds
from neuromanifold.formula.layers import forms_told_apart, spanned_widths
from neuromanifold.paper.checks.values import (
    RandomLayers,
    span,
    spans_of_two_tokens,
    told_apart,
)
from neuromanifold.statements import get


def rows():
    for path in shipped("tables").values():
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                yield path.stem, _architecture(row), row["readout"], row


def _architecture(row):
    def sizes(text):
        return tuple(map(int, text.split("-"))) if text else None

    kind = (row["attention"], int(row["heads"]), sizes(row["value_ranks"]))
    sizes_ = (sizes(row["widths"]), sizes(row["ranks"]), int(row["tokens"]))
    return Architecture(*sizes_, *kind, row["skip"], row["mask"])


@pytest.mark.statement("flattening-bounds")
@pytest.mark.statement("layers-bound")
@pytest.mark.statement("virtual-bound")
def test_every_committed_rank_is_the_smallest_bound():
    layers = 0
    for _, network, readout, row in rows():
        smallest = proved_bounds(network, readout)[0].value
        rank = int(row["rank"])
        assert rank == smallest, (network, readout)
        formula = dimension_formula(network, readout).dimension
        assert formula is None or formula <= smallest, (network, readout)
        if network.depth == 1 and network.heads > 1 and network.tokens > 1:
            layers += network.attention == "lightning" and readout == "logits"
    assert layers >= 939


@pytest.mark.statement("flattening-bounds")
@pytest.mark.parametrize(
    ("name", "expected", "sizes", "heads", "value_rank", "skip"),
    [
        ("heads apart", 18, ((3, 3), (1,)), 2, 1, "none"),
        ("head mixing", 32, ((3, 3), (3,)), 2, 3, "none"),
        ("output flattening", 21, ((2, 4), (2,)), 3, 1, "none"),
        ("symmetric flattening", 35, ((3, 2), (1,)), 5, 1, "none"),
        ("ideal of the values", 32, ((4, 1), (4,)), 2, 1, "none"),
        ("output flattening", 36, ((2, 5), (2,)), 4, 1, "inner"),
        ("symmetric flattening", 41, ((3, 2), (1,)), 5, 1, "inner"),
    ],
)
def test_a_bound_is_the_only_smallest_one_of_some_layer_and_reached_there(
    name, expected, sizes, heads, value_rank, skip
):
    network = Architecture(*sizes, 2, heads=heads, value_ranks=(value_rank,), skip=skip)
    first, second = proved_bounds(network)[:2]
    assert (first.name, first.value) == (name, expected)
    assert second.value > first.value
    assert certify(network).lower == expected


@pytest.mark.statement("layers-bound")
@pytest.mark.parametrize(
    ("fields", "bound"),
    [
        # the functions from width 1 to 1 are one-dimensional, however many heads
        ({"widths": (1, 3, 1), "ranks": (2, 2), "tokens": 2, "heads": 3}, 1),
        ({"widths": (2, 4, 2), "ranks": (2, 4), "tokens": 3, "attention": "softmax"}, 56),
        ({"widths": (2, 3, 2), "ranks": (2, 2), "tokens": 1, "attention": "softmax"}, 4),
        ({"widths": (2, 2), "ranks": (3,), "tokens": 1, "heads": 1, "skip": "residual"}, 6),
    ],
)
def test_deep_networks_reach_these_bounds(fields, bound):
    network = Architecture(**{"heads": 2, **fields})
    assert proved_bounds(network)[0].value == bound
    assert certify(network).lower == bound


@pytest.mark.statement("readouts")
def test_bounds_of_readouts_are_reached():
    for skip, heads, readout in product(
        ("none", "inner", "residual"), (1, 2), ("probabilities", "decisions")
    ):
        network = Architecture((2, 2), (1,), 2, heads=heads, skip=skip)
        assert certify(network, readout=readout).lower == proved_bounds(network, readout)[0].value
    assert proved_bounds(Architecture((2, 1), (1,), 2, heads=2), "decisions") == (
        Bound(0, "readouts", "one output coordinate"),
    )  # fmt: skip
    with pytest.raises(ArgumentError, match="readout must be one of"):
        proved_bounds(network, "colours")


def test_every_bound_names_a_theorem_and_the_smallest_comes_first():
    for skip, attention, heads, tokens in product(
        ("none", "inner", "residual"), ("lightning", "softmax"), (1, 2), (1, 2)
    ):
        bounds = proved_bounds(Architecture((3, 3, 3), (2, 2), tokens, attention, heads, skip=skip))
        assert bounds
        assert [bound.value for bound in bounds] == sorted(bound.value for bound in bounds)
        assert {get(bound.statement).status for bound in bounds} == {"theorem"}


@pytest.mark.slow
@pytest.mark.statement("flattening-bounds")
@pytest.mark.statement("layers-bound")
def test_no_rank_of_small_networks_exceeds_a_bound():
    sizes = [((d, e), (a,), (v,)) for d, e, a, v in product((1, 2, 3), (1, 2, 4), (1, 2), (1, 3))]
    sizes += [((d, e, 2), (a, 2), (v, 2)) for d, e, a, v in product((1, 2), (1, 3), (1, 2), (1, 3))]
    kinds = product((1, 2, 4), ("none", "inner"), ("none", "causal"), (1, 2))
    for (widths, ranks, values), (heads, skip, mask, tokens) in product(sizes, kinds):
        network = Architecture(widths, ranks, tokens, "lightning", heads, values, skip, mask)
        assert certify(network).lower <= proved_bounds(network)[0].value, network


def test_layer_bounds_have_no_scalings_with_the_inner_skip():
    free = Inputs.free(3)
    inner = layer_bounds(Architecture((3, 3), (1,), 2, heads=2, skip="inner"), 0, free, 3)
    plain = layer_bounds(Architecture((3, 3), (1,), 2, heads=2), 0, free, 3)
    assert inner["heads apart"] == plain["heads apart"] + 2


SPANS = [
    (Architecture((2, 4, 2), (1, 1), 2, heads=3, value_ranks=(2, 1)), 4),
    (Architecture((2, 4, 2), (1, 1), 2, heads=4, value_ranks=(1, 1)), 4),
    (Architecture((2, 5, 2), (1, 1), 2, heads=3), 5),
    (Architecture((2, 6, 2), (1, 3), 2, heads=4, mask="causal"), 6),
    (Architecture((2, 5, 2), (1, 2), 2, heads=3, skip="inner"), 5),
    (Architecture((1, 2, 2), (1, 1), 2, heads=3, skip="inner"), 2),
    (Architecture((3, 6, 2), (1, 2), 1, heads=2), 6),
    (Architecture((2, 2, 3, 4), (4, 2, 2), 3, heads=4, value_ranks=(2, 2, 1)), 3),
    (Architecture((2, 2, 4, 4), (1, 2, 1), 2, heads=4, value_ranks=(3, 1, 2)), 4),
    (Architecture((4, 2, 3, 3), (1, 2, 4), 3, heads=2, value_ranks=(1, 2, 3)), 3),
    (Architecture((3, 2, 4, 2), (1, 1, 1), 1, heads=2, mask="causal"), 4),
    (Architecture((2, 2, 4, 1), (1, 1, 1), 2, heads=2, skip="inner", mask="causal"), 4),
    (Architecture((6, 6, 6, 1), (1, 1, 1), 2, heads=3, value_ranks=(2, 2, 1)), 6),
    # four rows of two value maps of rank 2 and forms of rank 1 are no dense set: count on two
    (Architecture((4, 4, 6, 1), (1, 1, 1), 2, heads=2, value_ranks=(2, 4, 1)), 4),
]


@pytest.mark.statement("spanned-values")
@pytest.mark.parametrize(("architecture", "spanned"), SPANS, ids=str)
def test_values_before_the_last_layer_span_what_the_bound_counts_on(architecture, spanned):
    before = architecture.depth - 1
    assert spanned_widths(architecture, architecture.widths)[before] == spanned
    assert span(architecture, before, seed=0) >= spanned


@pytest.mark.statement("spanned-values")
@pytest.mark.parametrize(("architecture", "spanned"), SPANS, ids=str)
def test_products_with_one_vector_span_what_two_tokens_do(architecture, spanned):
    before = architecture.depth - 1
    tokens, products = spans_of_two_tokens(architecture, before, seed=0)
    assert products == tokens >= spanned


@pytest.mark.statement("flattening-bounds")
@pytest.mark.parametrize(("skip", "dimension"), [("none", 44), ("inner", 46)])
def test_cubic_forms_in_an_ideal_are_reached(skip, dimension):
    network = Architecture((6, 1), (6,), 1, heads=2, skip=skip)
    first, second = proved_bounds(network)[:2]
    assert (first.name, first.value) == ("ideal of the values", dimension)
    assert second.value > dimension
    assert certify(network).lower == dimension


def test_the_naive_values_are_those_of_a_layer():
    layers = RandomLayers(Architecture((2, 2), (1,), 2, heads=2, mask="causal", skip="inner"), 0)
    X = layers.draw(2, 2)
    p, expected = 1048573, np.zeros((2, 2), dtype=object)
    for A, V in layers.heads[0]:
        for i, j in ((0, 0), (1, 0), (1, 1)):
            score = int(X[:, j] @ (A @ X[:, i] % p) % p)
            expected[:, i] += score * (V @ X[:, j] % p)
        expected += V @ X
    assert np.array_equal(layers.values(X), expected % p)


FORMS = [
    # widths 2, 4 with two heads: H d² + H(H−1)σ = 8 + 6, and under the mask 8 + 2σ
    (Architecture((2, 4, 1), (2, 1), 2, "softmax", heads=2), 14),
    (Architecture((2, 4, 1), (2, 1), 2, "softmax", heads=2, skip="inner", mask="causal"), 14),
    (Architecture((2, 6, 1), (2, 1), 2, "softmax", heads=3), 30),
    (Architecture((2, 6, 1), (2, 1), 2, "softmax", heads=3, mask="causal"), 27),
    (Architecture((1, 3, 1), (1, 1), 2, "softmax", heads=3, mask="causal"), 8),
    (Architecture((2, 4, 1), (2, 1), 3, "softmax", heads=2), 16),
    # C B C = det(C) B for skew B: 4σ + 1 + 1
    (Architecture((2, 4, 1), (1, 1), 2, heads=2), 14),
    (Architecture((2, 4, 1), (2, 1), 3, heads=2), 14),
    (Architecture((2, 6, 1), (2, 1), 2, heads=3), 24),
    (Architecture((2, 4, 1), (2, 1), 2, heads=2, mask="causal"), 16),
    (Architecture((2, 4, 1), (2, 1), 2, heads=2, skip="inner"), 16),
    (Architecture((2, 4, 1), (2, 1), 1, heads=2), 7),
    (Architecture((2, 4, 1), (2, 1), 1, heads=2, skip="inner"), 9),
]


@pytest.mark.statement("told-apart")
@pytest.mark.parametrize(("architecture", "forms"), FORMS, ids=str)
def test_values_tell_just_so_many_forms_apart(architecture, forms):
    assert forms_told_apart(architecture, *architecture.widths[:2]) == forms
    assert told_apart(architecture, seed=0) == forms


def test_with_a_residual_skip_nothing_is_lost():
    assert forms_told_apart(Architecture((3, 3), (1,), 2, "softmax", skip="residual"), 3, 3) == 9


@pytest.mark.statement("told-apart")
@pytest.mark.statement("polynomial-maps")
@pytest.mark.parametrize(
    ("fields", "dimension"),
    [
        # two tokens of softmax, without and with a form of full rank
        ({"widths": (2, 4, 2), "ranks": (2, 4), "tokens": 2, "attention": "softmax"}, 52),
        ({"widths": (2, 4, 1), "ranks": (2, 3), "tokens": 2, "attention": "softmax"}, 44),
        # lightning from width 2 to 4
        ({"widths": (2, 4, 3), "ranks": (2, 3), "tokens": 3}, 52),
        # a second layer that fills more than the first
        (
            {
                "widths": (2, 2, 3, 4),
                "ranks": (4, 2, 2),
                "tokens": 3,
                "heads": 4,
                "value_ranks": (2, 2, 1),
            },
            69,
        ),
        # odd polynomials of degree 9 in one number, after a layer to width one
        ({"widths": (2, 1, 5, 2), "ranks": (3, 1, 5), "tokens": 2, "skip": "inner"}, 17),
        # polynomials of degree 1, 3, …, 9, in one variable and in two
        ({"widths": (1, 2, 3), "ranks": (2, 2), "tokens": 2, "skip": "inner"}, 15),
        ({"widths": (2, 5, 2), "ranks": (1, 1), "tokens": 1, "skip": "inner", "heads": 4}, 60),
        # cubic forms in an ideal, of any token and of values
        ({"widths": (4, 1, 4), "ranks": (3, 1), "tokens": 1, "skip": "inner"}, 29),
        ({"widths": (2, 4, 1), "ranks": (3, 3), "tokens": 1, "skip": "inner"}, 24),
        # few maps from the input on, fewer than functions before a layer less its symmetries
        ({"widths": (2, 4, 6, 1), "ranks": (1, 1, 2), "tokens": 1}, 28),
        (
            {"widths": (1, 2, 5, 1), "ranks": (1, 3, 1), "tokens": 3, "skip": "inner", "heads": 3},
            14,
        ),
    ],
)
def test_networks_that_widen_reach_their_bound(fields, dimension):
    network = Architecture(**{"heads": 2, **fields})
    certificate = certify(network)
    assert (certificate.lower, certificate.upper, certificate.verdict) == (
        dimension,
        dimension,
        "exact",
    )


def test_forms_are_counted_up_to_what_matters():
    for degree, variables, most in product((0, 1, 2, 7, 40), (1, 2, 3, 30), (1, 5, 10**6, 10**40)):
        expected = min(comb(degree + variables - 1, degree), most)
        assert forms_of_degree(degree, variables, most) == expected


def test_bounds_of_any_size_come_at_once():
    network = Architecture((3000, 7) * 20 + (3000,), (3,) * 40, 17, heads=10**6)
    assert proved_bounds(network)[0].value < network.parameters
