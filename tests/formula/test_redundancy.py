"""Where the parameters go, and what the dimension says about samples."""

from itertools import product

import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.formula.redundancy import redundancy


def shares(*args, **fields):
    return {
        share.name: share.dimension for share in redundancy(Architecture(*args, **fields)).shares
    }


@pytest.mark.statement("redundancy")
def test_square_networks_have_three_parameters_a_dimension_in_the_limit():
    for d, depth in product((2, 5, 40), (1, 2, 30)):
        found = redundancy(Architecture((d,) * (depth + 1), (d,) * depth, 3))
        assert found.parameters == 3 * d * d * depth
        assert found.formula.dimension == (depth + 1) * d * d - depth
    assert redundancy(Architecture((400,) * 401, (400,) * 400, 3)).ratio == pytest.approx(
        3, rel=0.01
    )
    assert redundancy(Architecture((400, 400), (400,), 3)).ratio == pytest.approx(1.5, rel=0.01)


def networks():
    sizes = [
        ((3, 2), (2,)),
        ((2, 4, 2), (2, 2)),
        ((4, 2, 3), (1, 5)),
        ((8, 7, 1), (2, 2)),
        ((3, 3, 3), (2, 2)),
        ((2, 4, 5, 3), (2, 1, 2)),
        ((5, 4, 2, 3), (1, 1, 1)),
    ]
    for (widths, ranks), tokens, attention, skip, mask, heads, v in product(
        sizes,
        (1, 2, 3),
        ("lightning", "softmax"),
        ("none", "residual", "inner"),
        ("none", "causal"),
        (1, 2, 5),
        (None, 1, 3, 6),
    ):
        if skip == "residual" and len(set(widths)) > 1:
            continue
        values = None if v is None else (v,) * len(ranks)
        yield Architecture(widths, ranks, tokens, attention, heads, values, skip, mask)


@pytest.mark.statement("redundancy")
def test_the_shares_add_up_to_what_the_function_does_not_show():
    known = 0
    for network in networks():
        found = redundancy(network)
        if found.formula.dimension is None:
            assert (found.shares, found.ratio) == ((), None)
            continue
        known += 1
        assert all(share.dimension > 0 for share in found.shares)
        lost = network.parameters - found.formula.dimension
        assert sum(share.dimension for share in found.shares) == lost
    assert known > 500


@pytest.mark.statement("redundancy")
def test_each_symmetry_takes_the_dimension_of_its_orbits():
    assert shares((4, 2, 3), (2, 2), 3) == {"key-query": 8, "inter-layer": 4, "scaling": 2}
    # GL_3 acts on pairs of 3 × 2 matrices with a stabiliser of dimension one
    assert shares((2, 2), (3,), 3) == {"key-query": 8, "scaling": 1}
    assert shares((3, 3), (2,), 3, "softmax", value_ranks=(2,)) == {
        "key-query": 4,
        "value-output": 4,
    }
    assert shares((3, 3), (3,), 3, heads=2) == {"key-query": 18, "scaling": 2, "head mixing": 2}
    assert shares((3, 3, 3), (3, 3), 3, skip="residual") == {"key-query": 18, "scaling": 2}
    assert shares((3, 3, 3), (3, 3), 3, skip="inner") == {"key-query": 18, "inter-layer": 9}


def test_wide_layers_hide_more_than_the_inter_layer_symmetry():
    # widths 8, 7, 1: the virtual weights show 1 + 2·2 of the 7 dimensions of the layer between
    found = shares((8, 7, 1), (2, 2), 3)
    assert found["inter-layer"] == 49
    assert found["not seen by the virtual weights"] == 7 - 5
    assert "inter-layer and not seen by the virtual weights" in shares((2, 4, 2), (2, 2), 3)


def test_what_no_score_shows_has_its_own_share():
    # after a rank-one layer a form of rank 2 on three dimensions is seen as a symmetric one: 8 − 6
    assert shares((3, 3, 3), (1, 2), 3)["not seen by the function"] == 2
    assert shares((3, 3), (2,), 1, "softmax")["not seen by the function"] == 8


def test_redundancy_prints_its_numbers():
    assert str(redundancy(Architecture((3, 3), (2,), 1, skip="residual"))) == (
        "21 parameters. No formula for the dimension is known here: tokens = 1 < 2."
    )
    assert str(redundancy(Architecture((4, 2, 3), (2, 2), 3))).endswith(
        "The other 14: 8 key-query + 4 inter-layer + 2 scaling."
    )


@pytest.mark.statement("sample-complexity")
def test_the_equations_needed_grow_with_the_dimension_and_not_with_the_parameters():
    few, many = (Architecture((3, 3), (a,), 2) for a in (3, 30))
    assert many.parameters == 7 * few.parameters
    for network in (few, many):
        assert [certify(network, inputs=n).lower for n in (16, 17, 18, 27)] == [16, 17, 17, 17]
