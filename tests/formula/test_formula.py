"""What the dimension formula says, how it says that it knows, and when it says nothing."""

import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, HypothesisError
from neuromanifold.formula.all_widths import virtual_upper_bound
from neuromanifold.formula.ambient import ambient_dimension
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.paper.checks.dimensions import printed_bottleneck, printed_layer


def formula(widths, ranks, tokens=3, **fields):
    return dimension_formula(Architecture(widths, ranks, tokens, **fields))


def dimension(widths, ranks, tokens=3, **fields):
    return formula(widths, ranks, tokens, **fields).dimension


@pytest.mark.statement("cor-3.3")
@pytest.mark.statement("eq-7")
def test_one_lightning_layer_has_the_dimension_of_the_paper():
    for d, d_out, a, t in product(range(1, 6), range(1, 6), range(1, 7), (2, 3)):
        network = Architecture((d, d_out), (a,), t)
        found = dimension_formula(network)
        assert found.status == "theorem"
        assert found.unmet == ()
        if d >= 2 and (d_out >= 2 or a >= 2):
            assert found.statement == "cor-3.3"
            assert found.dimension == printed_layer(network)
        else:
            assert found.statement == "all-widths"


def bottlenecks():
    for delta, extra_in, extra_out, depth in product((1, 2, 3), (0, 2), (0, 1), (2, 3)):
        widths = (delta + extra_in, *(delta,) * (depth - 1), delta + extra_out)
        for ranks in product((1, 2, 4), repeat=depth):
            yield widths, ranks


@pytest.mark.statement("cor-3.8")
@pytest.mark.statement("eq-14")
def test_lightning_bottlenecks_have_the_dimension_of_the_paper():
    inside = 0
    for widths, ranks in bottlenecks():
        network = Architecture(widths, ranks, 3)
        if min(ranks) >= 2 and widths[1] >= 2:
            inside += 1
            found = dimension_formula(network)
            assert found.dimension == printed_bottleneck(network)
            assert (found.status, found.statement, found.unmet) == ("theorem", "cor-3.8", ())
    assert inside > 50


@pytest.mark.statement("conj-3.10")
@pytest.mark.statement("eq-16")
@pytest.mark.parametrize("tokens", [2, 3])
def test_softmax_bottlenecks_have_the_dimension_that_the_paper_expects(tokens):
    for widths, ranks in bottlenecks():
        network = Architecture(widths, ranks, tokens, "softmax")
        found = dimension_formula(network)
        assert found.dimension == printed_bottleneck(network)
        assert (found.status, found.statement, found.unmet) == ("theorem", "conj-3.10", ())


def test_figure_three_expects_these_dimensions():
    expected = (25, 40, 57, 76, 97, 120, 145, 172)
    for delta, softmax in zip(range(3, 11), expected, strict=True):
        assert dimension((delta,) * 3, (2, 2), attention="softmax") == softmax
        assert dimension((delta,) * 3, (2, 2)) == softmax - 2


@pytest.mark.statement("all-widths")
@pytest.mark.parametrize(
    ("widths", "ranks", "fields", "expected"),
    [
        ((2, 4, 2), (2, 2), {}, 10),
        ((8, 7, 1), (2, 2), {}, 62),
        ((3, 3, 3), (1, 2), {}, 18),
        ((3, 3, 3), (2, 2), {"tokens": 2}, 23),
    ],
)
def test_all_widths_have_these_dimensions(widths, ranks, fields, expected):
    assert dimension(widths, ranks, **fields) == expected


@pytest.mark.statement("one-token")
@pytest.mark.parametrize(
    ("widths", "ranks", "attention", "expected"),
    [
        ((3, 3, 3), (2, 2), "lightning", 19),
        ((2, 2, 2), (2, 2), "lightning", 8),
        ((2, 2, 2, 2), (2, 2, 2), "lightning", 10),
        ((3, 3, 3), (2, 2), "softmax", 9),
        ((4, 2, 3), (2, 2), "softmax", 10),
    ],
)
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_one_token_shows_only_symmetric_parts(widths, ranks, attention, expected, mask):
    found = formula(widths, ranks, 1, attention=attention, mask=mask)
    assert found.dimension == expected
    if attention == "softmax":
        assert (found.status, found.statement) == ("theorem", "softmax-one-token")
    else:
        assert (found.status, found.statement) == ("theorem", "one-token")


@pytest.mark.statement("causal-mask")
def test_the_causal_mask_prevents_the_collapse_after_rank_one():
    found = formula((3, 3, 3), (1, 2), mask="causal")
    assert found.dimension == 20
    assert (found.status, found.statement) == ("theorem", "causal-mask")
    assert dimension((3, 3, 3), (2, 2), 2, mask="causal") == 23
    assert dimension((3, 3, 3), (2, 2), mask="causal", attention="softmax") == 25


@pytest.mark.statement("inner-skip")
@pytest.mark.parametrize("attention", ["lightning", "softmax"])
def test_the_inner_skip_has_no_rescalings(attention):
    found = formula((3, 3, 3), (2, 2), skip="inner", attention=attention)
    assert found.dimension == 25
    if attention == "softmax":
        assert (found.status, found.statement) == ("theorem", "softmax-dimension")
    else:
        assert (found.status, found.statement) == ("theorem", "inner-skip")
    assert dimension((3, 3, 3), (1, 2), skip="inner", attention=attention) == 22


@pytest.mark.statement("residual-skip")
def test_the_residual_skip_keeps_only_the_scaling():
    found = formula((3, 3, 3), (2, 5), skip="residual")
    assert found.dimension == (8 + 9) + (9 + 9) - 2
    assert (found.status, found.statement) == ("conjecture", "residual-skip")
    assert dimension((3, 3, 3), (2, 5), skip="residual", attention="softmax") == 35


@pytest.mark.statement("head-mixing")
@pytest.mark.parametrize(
    ("widths", "rank", "heads", "expected"),
    [
        ((3, 3), 3, 2, 32),
        ((4, 4), 4, 3, 87),
        ((4, 4), 3, 3, 87),
        ((2, 2), 2, 2, 12),
        ((2, 2), 2, 8, 12),
        ((1, 2), 1, 3, 2),
    ],
)
@pytest.mark.parametrize("tokens", [2, 3])
def test_lightning_heads_mix(widths, rank, heads, expected, tokens):
    found = formula(widths, (rank,), tokens, heads=heads)
    assert found.dimension == expected
    assert (found.status, found.statement) == ("conjecture", "head-mixing")
    assert found.unmet == (f"heads = {heads} > 1",)


@pytest.mark.statement("head-mixing")
def test_the_usual_choice_of_ranks_and_softmax_lose_nothing_to_head_mixing():
    one = dimension((6, 6), (2,))
    assert one is not None
    assert dimension((6, 6), (2,), heads=3) == 3 * one
    assert dimension((3, 3), (3,), heads=5, attention="softmax") == 5 * 18
    assert dimension((3, 1), (3,), heads=2, attention="softmax") == 2 * 12
    # deep networks lose d² for every inter-layer symmetry
    assert dimension((6, 6, 6), (2, 2), heads=3) == 2 * 3 * one - 36


@pytest.mark.statement("head-mixing")
def test_more_heads_never_have_fewer_functions_and_never_leave_the_space_of_layers():
    for d, d_out, a, v in product(range(1, 5), range(2, 5), range(1, 5), range(1, 5)):
        space = d * d_out * d * (d + 1) // 2
        known = [
            dimension((d, d_out), (a,), heads=H, value_ranks=(v,)) for H in (1, 2, 3, 5, 9, 40)
        ]
        assert known == sorted(known)
        assert known[-1] == space


@pytest.mark.statement("head-mixing")
def test_many_heads_of_rank_one_are_bounded_by_the_flattenings():
    """What counting only the mixing of heads would give is larger: 24 and 36."""
    assert dimension((2, 4), (2,), 2, heads=3, value_ranks=(1,)) == 21
    assert dimension((3, 2), (1,), 2, heads=5, value_ranks=(1,)) == 35


@pytest.mark.statement("factored-values")
def test_a_value_factor_inside_acts_as_a_width():
    for attention, skip, tokens in product(("lightning", "softmax"), ("none", "inner"), (2, 3)):
        fields = {"attention": attention, "skip": skip}
        factored = dimension((3, 4, 3), (2, 2), tokens, value_ranks=(2, 3), **fields)
        assert factored == dimension((3, 2, 3), (2, 2), tokens, **fields)
        unbound = dimension((3, 4, 3), (2, 2), tokens, value_ranks=(4, 5), **fields)
        assert unbound == dimension((3, 4, 3), (2, 2), tokens, **fields)


@pytest.mark.statement("factored-values")
def test_a_value_factor_at_the_end_adds_the_spaces_of_its_image():
    for tokens, mask in ((1, "none"), (2, "none"), (3, "causal")):
        narrow = dimension((3, 3, 2), (2, 2), tokens, mask=mask)
        assert narrow is not None
        factored = dimension((3, 3, 5), (2, 2), tokens, mask=mask, value_ranks=(3, 2))
        assert factored == narrow + 2 * (5 - 2)


def test_a_factored_value_map_keeps_theorems_theorems():
    found = formula((3, 3, 3), (2, 2), value_ranks=(2, 1))
    assert (found.status, found.statement, found.unmet) == ("theorem", "all-widths", ())
    found = formula((3, 3), (2,), attention="softmax", value_ranks=(1,))
    assert (found.dimension, found.status, found.statement) == (8 + 5, "theorem", "thm-3.9")


@pytest.mark.parametrize(
    ("fields", "status", "statement", "unmet"),
    [
        ({}, "theorem", "cor-3.8", ()),
        ({"widths": (2, 3, 2)}, "theorem", "all-widths", ()),
        ({"tokens": 2}, "theorem", "all-widths", ()),
        ({"ranks": (1, 2)}, "theorem", "all-widths", ()),
        ({"ranks": (2, 1)}, "theorem", "all-widths", ()),
        ({"widths": (3, 1, 3)}, "theorem", "all-widths", ()),
        ({"skip": "residual"}, "conjecture", "residual-skip", ("skip = residual, not none",)),
        ({"heads": 2}, "conjecture", "head-mixing", ("heads = 2 > 1",)),
        (
            {"widths": (2, 3, 2), "attention": "softmax"},
            "theorem",
            "softmax-dimension",
            (),
        ),
        (
            {"widths": (1, 1), "ranks": (1,), "attention": "softmax", "tokens": 2},
            "theorem",
            "thm-3.9",
            (),
        ),
        (
            {"widths": (3, 3), "ranks": (2,), "mask": "causal"},
            "theorem",
            "causal-mask",
            (),
        ),
    ],
)
def test_the_status_says_how_the_dimension_is_known(fields, status, statement, unmet):
    found = formula(**{"widths": (3, 3, 3), "ranks": (2, 2), **fields})
    assert (found.status, found.statement, found.unmet) == (status, statement, unmet)


@pytest.mark.parametrize(
    ("fields", "unmet"),
    [
        ({"skip": "residual", "tokens": 1}, ("tokens = 1 < 2",)),
        ({"skip": "residual", "value_ranks": (3, 2)}, ("value_ranks[1] = 2 < 3",)),
        ({"heads": 2, "tokens": 1}, ("tokens = 1 < 2",)),
        (
            {"heads": 2, "widths": (2, 4, 2)},
            (
                "widths[1] = 4 > 2, wider than the layer before it, inside a network with several "
                "heads",
            ),
        ),
    ],
)
def test_where_nothing_is_known_there_is_no_dimension(fields, unmet):
    found = formula(**{"widths": (3, 3, 3), "ranks": (2, 2), **fields})
    assert (found.dimension, found.status, found.statement) == (None, "none", None)
    assert found.unmet == unmet


@pytest.mark.parametrize("readout", ["probabilities", "decisions"])
@pytest.mark.statement("readouts")
def test_readouts_have_the_dimension_of_one_output_less(readout):
    for fields in ({}, {"skip": "inner"}, {"attention": "softmax"}, {"heads": 2}):
        found = dimension_formula(Architecture((3, 3), (2,), 3, **fields), readout)
        logits = dimension_formula(Architecture((3, 2), (2,), 3, **fields))
        assert found.dimension == logits.dimension - (readout == "decisions")
        assert (found.status, found.statement, found.unmet) == (
            logits.status,
            "readouts",
            logits.unmet,
        )
    nothing = dimension_formula(Architecture((1, 1), (1,), 3), readout)
    assert (nothing.dimension, nothing.status) == (0, "theorem")
    residual = dimension_formula(Architecture((3, 3), (2,), 3, skip="residual"), readout)
    assert (residual.dimension, residual.status) == (None, "none")


def test_an_unknown_readout_is_refused():
    with pytest.raises(ArgumentError, match=r"readout must be one of logits, .*; got 'colours'"):
        dimension_formula(Architecture((3, 3), (2,), 3), "colours")


def test_a_formula_prints_as_one_sentence_and_has_a_json_form():
    assert str(formula((3, 3, 3), (2, 2))) == "The dimension is 23 (theorem, cor-3.8)."
    assert str(formula((3, 3, 3), (1, 2), 2)) == "The dimension is 18 (theorem, all-widths)."
    assert str(formula((3, 3, 3), (1, 2), 2, skip="residual")) == (
        "The dimension is 29 (conjecture, residual-skip; "
        "not a theorem because skip = residual, not none)."
    )
    nothing = formula((3, 3), (2,), 1, heads=2)
    assert str(nothing) == "No formula for the dimension is known here: tokens = 1 < 2."
    assert nothing.to_dict() == {
        "dimension": None,
        "status": "none",
        "statement": None,
        "unmet": ["tokens = 1 < 2"],
    }


def small_networks():
    sizes = [((2, 3), (2,)), ((3, 2, 4), (1, 2)), ((2, 4, 2), (2, 3)), ((3, 3, 3), (2, 1))]
    for (widths, ranks), tokens, attention, skip, mask, v in product(
        sizes,
        (1, 2, 3),
        ("lightning", "softmax"),
        ("none", "inner"),
        ("none", "causal"),
        (None, 1, 2),
    ):
        values = None if v is None else (v,) * len(ranks)
        yield Architecture(
            widths, ranks, tokens, attention, value_ranks=values, skip=skip, mask=mask
        )


@pytest.mark.statement("virtual-bound")
def test_the_formula_says_that_the_bound_of_the_virtual_weights_is_reached():
    for network in small_networks():
        bound, found = virtual_upper_bound(network), dimension_formula(network).dimension
        assert bound is not None
        assert bound <= network.parameters
        assert found is None or found == bound


@pytest.mark.statement("virtual-bound")
def test_there_is_no_virtual_bound_for_heads_and_the_residual_skip():
    assert virtual_upper_bound(Architecture((3, 3), (2,), 3, heads=2)) is None
    assert virtual_upper_bound(Architecture((3, 3), (2,), 3, skip="residual")) is None


@settings(deadline=None)
@given(
    widths=st.tuples(*[st.integers(1, 6)] * 4),
    ranks=st.tuples(*[st.integers(1, 4)] * 3),
    tokens=st.integers(1, 3),
    attention=st.sampled_from(["lightning", "softmax"]),
)
def test_raising_a_rank_or_a_width_never_lowers_the_dimension(widths, ranks, tokens, attention):
    here = dimension(widths, ranks, tokens, attention=attention)
    for i in range(3):
        more = (*ranks[:i], ranks[i] + 1, *ranks[i + 1 :])
        assert dimension(widths, more, tokens, attention=attention) >= here
    for i in range(4):
        wider = (*widths[:i], widths[i] + 1, *widths[i + 1 :])
        assert dimension(wider, ranks, tokens, attention=attention) >= here


@pytest.mark.statement("ambient")
@pytest.mark.statement("eq-5")
def test_the_ambient_dimension_counts_the_monomials():
    assert ambient_dimension(Architecture((2, 1), (2,), 2)) == 40
    assert dimension((2, 1), (2,), 2) == 5
    for d, d_out, t, depth in product((1, 2), (1, 3), (1, 2), (1, 2)):
        widths, ranks = (d, *(2,) * (depth - 1), d_out), (2,) * depth
        monomials = _monomials(t * d, 3**depth)
        assert ambient_dimension(Architecture(widths, ranks, t)) == t * d_out * monomials
        assert dimension(widths, ranks, t) <= t * d_out * monomials


def _monomials(variables, degree):
    """How many monomials there are, by choosing the exponent of the first variable."""
    if variables == 1:
        return 1
    return sum(_monomials(variables - 1, degree - first) for first in range(degree + 1))


def test_only_homogeneous_networks_have_an_ambient_dimension():
    with pytest.raises(HypothesisError, match="attention = softmax, not lightning"):
        ambient_dimension(Architecture((2, 2), (1,), 2, "softmax"))
    with pytest.raises(HypothesisError, match="skip = inner, not none"):
        ambient_dimension(Architecture((2, 2), (1,), 2, skip="inner"))


def test_asking_for_a_formula_loads_no_array_library():
    program = (
        "import sys, neuromanifold.formula.redundancy, neuromanifold.formula.bounds;"
        "sys.exit(bool({'jax', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
