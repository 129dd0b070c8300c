"""Proved upper bounds: what they say, that no rank exceeds them, and where they are reached."""

import csv
from itertools import product
from math import comb

import numpy as np
import pytest

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.architecture import Architecture
from neuromanifold.atlas.shipped import shipped
from neuromanifold.certificates.exact import certify
from neuromanifold.errors import ArgumentError
from neuromanifold.formula.bounds import Bound, proved_bounds
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.heads import forms_of_degree, layer_bounds, spanned_widths
from neuromanifold.statements import Facts, get


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
def test_no_committed_rank_exceeds_a_bound_and_nearly_all_reach_the_smallest():
    reached, layers = dict.fromkeys(("reached", "not"), 0), 0
    for _, network, readout, row in rows():
        smallest = proved_bounds(network, readout)[0].value
        rank = int(row["rank"])
        assert rank <= smallest, (network, readout)
        formula = dimension_formula(network, readout).dimension
        assert formula is None or formula <= smallest, (network, readout)
        reached["reached" if rank == smallest else "not"] += 1
        if network.depth == 1 and network.heads > 1 and network.tokens > 1:
            assert rank == smallest, network
            layers += network.attention == "lightning" and readout == "logits"
    assert reached["not"] < 0.01 * reached["reached"]
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
    inner = layer_bounds(Architecture((3, 3), (1,), 2, heads=2, skip="inner"), 0, 3, 3)
    plain = layer_bounds(Architecture((3, 3), (1,), 2, heads=2), 0, 3, 3)
    assert inner["heads apart"] == plain["heads apart"] + 2


@pytest.mark.statement("layers-bound")
@pytest.mark.parametrize(
    ("architecture", "spanned"),
    [
        (Architecture((2, 4, 2), (1, 1), 2, heads=3, value_ranks=(2, 1)), 4),
        (Architecture((2, 4, 2), (1, 1), 2, heads=4, value_ranks=(1, 1)), 4),
        (Architecture((2, 5, 2), (1, 1), 2, heads=3), 5),
        (Architecture((2, 6, 2), (1, 3), 2, heads=4, mask="causal"), 6),
        (Architecture((2, 5, 2), (1, 2), 2, heads=3, skip="inner"), 5),
        (Architecture((1, 3, 2), (1, 1), 2, heads=3, skip="inner"), 2),
        (Architecture((3, 6, 2), (1, 2), 1, heads=2), 6),
    ],
    ids=str,
)
def test_values_of_the_first_layer_span_what_the_bound_counts_on(architecture, spanned):
    """Outputs at random weights and inputs mod p, by plain integers."""
    p, rng = 1000003, np.random.default_rng(0)
    c = Facts.of(architecture).seen_widths
    assert spanned_widths(architecture, c)[1] == spanned
    nu = c[0] if architecture.value_ranks is None else min(c[0], architecture.value_ranks[0])
    d, t, columns = c[0], architecture.tokens, []
    weights = [
        (
            _product(p, rng.integers(p, size=(d, 1)), rng.integers(p, size=(1, d))),
            _product(p, rng.integers(p, size=(c[1], nu)), rng.integers(p, size=(nu, d))),
        )
        for _ in range(architecture.heads)
    ]
    for _ in range(12):
        X = rng.integers(p, size=(d, t))
        total = np.zeros((c[1], t), dtype=object)
        for A, V in weights:
            P = _product(p, X.T, A, X)
            P = np.triu(P) if architecture.mask == "causal" else P
            inside = _product(p, X, P) + (X if architecture.skip == "inner" else 0)
            total = (total + _product(p, V, inside)) % p
        columns.append(total)
    field = PrimeField(p)
    assert rank(field.from_integers(np.concatenate(columns, axis=1)), field) >= spanned


def _product(p, *factors):
    found = factors[0].astype(object)
    for factor in factors[1:]:
        found = found @ factor.astype(object) % p
    return found


def test_forms_are_counted_up_to_what_matters():
    for degree, variables, most in product((0, 1, 2, 7, 40), (1, 2, 3, 30), (1, 5, 10**6, 10**40)):
        expected = min(comb(degree + variables - 1, degree), most)
        assert forms_of_degree(degree, variables, most) == expected


def test_bounds_of_any_size_come_at_once():
    network = Architecture((3000, 7) * 20 + (3000,), (3,) * 40, 17, heads=10**6)
    assert proved_bounds(network)[0].value < network.parameters
