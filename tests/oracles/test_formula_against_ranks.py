"""Every dimension formula against ranks over a prime field that a naive twin computes."""

import numpy as np
import pytest
from naive_duals import PRIME, network_rank, random_layers, rank

from neuromanifold.architecture import Architecture
from neuromanifold.formula.all_widths import virtual_dimension, virtual_upper_bound
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.redundancy import redundancy
from neuromanifold.statements import Facts

SIZES = [
    ((2, 4, 2), (2, 2)),
    ((8, 7, 1), (2, 2)),
    ((3, 3, 3), (1, 2)),
    ((4, 1, 3), (3, 2)),
    ((1, 3, 2), (2, 2)),
    ((6, 5, 4, 1), (1, 1, 1)),
    ((5, 6, 4, 2, 3), (1, 3, 1, 2)),
    ((3, 5, 2, 4), (4, 1, 2)),
]


def _virtual(architecture, rng):
    """The virtual weights M_1, …, M_l and L of random weights, straight from their definition."""
    forms, L = [], None
    for ((A, V),) in random_layers(architecture, rng):
        forms.append(A if L is None else L.T @ A @ L)
        L = V if L is None else V @ L
    return forms, L


@pytest.mark.statement("all-widths")
@pytest.mark.statement("factored-values")
@pytest.mark.parametrize(("widths", "ranks"), SIZES)
@pytest.mark.parametrize("v", [None, 1, 2, 5])
def test_the_virtual_weights_have_the_counted_dimension(widths, ranks, v):
    values = None if v is None else (v,) * len(ranks)
    network = Architecture(widths, ranks, 3, value_ranks=values)
    forms, L = _virtual(network, np.random.default_rng(7))
    for symmetric_from in (None, *range(1, len(ranks) + 1)):
        seen = [
            form if symmetric_from is None or i < symmetric_from else form + form.T
            for i, form in enumerate(forms, start=1)
        ]
        tangents = np.hstack([matrix.flat_tangents() for matrix in (*seen, L)])
        assert rank(tangents) == virtual_dimension(Facts.of(network), symmetric_from)


NETWORKS = [
    Architecture(widths, ranks, tokens, attention, mask=mask, skip=skip, value_ranks=values)
    for widths, ranks, values in [
        ((3, 2), (1,), None),
        ((2, 4, 2), (2, 2), None),
        ((3, 3, 3), (1, 2), None),
        ((3, 1, 2), (1, 2), None),
        ((3, 3, 3), (2, 2), (2, 1)),
        ((2, 3, 2, 2), (2, 1, 2), (3, 2, 1)),
    ]
    for tokens in (1, 2, 3)
    for attention in ("lightning", "softmax")
    for mask, skip in [("none", "none"), ("causal", "none"), ("none", "inner")]
] + [
    Architecture(widths, ranks, tokens, attention, skip="residual")
    for widths, ranks in [((2, 2), (1,)), ((3, 3, 3), (2, 4)), ((2, 2, 2, 2), (1, 2, 1))]
    for tokens in (2, 3)
    for attention in ("lightning", "softmax")
]

HEADS = [
    Architecture(widths, ranks, tokens, attention, heads, values, mask=mask)
    for widths, ranks, heads, values in [
        ((3, 3), (3,), 2, None),
        ((3, 1), (2,), 2, None),
        ((2, 3), (2,), 3, None),
        ((2, 2), (1,), 4, None),
        ((1, 2), (1,), 3, None),
        ((3, 2), (2,), 3, (1,)),
        ((3, 3), (2,), 3, (2,)),
        ((2, 2, 2), (2, 2), 3, None),
        ((3, 3, 3), (1, 2), 2, None),
        ((2, 2, 2, 2), (1, 1, 1), 2, None),
        ((3, 3, 3), (2, 1), 2, (2, 2)),
        ((2, 2, 2), (2, 1), 2, (1, 1)),
    ]
    for tokens in (2, 3)
    for attention, mask in [("lightning", "none"), ("softmax", "none"), ("softmax", "causal")]
]


@pytest.mark.statement("all-widths")
@pytest.mark.statement("one-token")
@pytest.mark.statement("causal-mask")
@pytest.mark.statement("inner-skip")
@pytest.mark.statement("residual-skip")
@pytest.mark.statement("head-mixing")
@pytest.mark.statement("virtual-bound")
@pytest.mark.parametrize("network", NETWORKS + HEADS, ids=lambda network: network.name)
def test_the_jacobian_has_the_rank_of_the_formula_and_not_more_than_the_bound(network):
    expected, bound = dimension_formula(network).dimension, virtual_upper_bound(network)
    found = network_rank(network)
    assert expected is None or found == expected
    assert bound is None or found <= bound


@pytest.mark.statement("head-mixing")
def test_value_maps_that_do_not_fill_the_width_have_less_than_the_sum_of_their_layers():
    # sum over the layers less d², as if the two heads of rank one filled the width 3
    network = Architecture((3, 3, 3), (1, 1), 2, heads=2, value_ranks=(1, 1))
    assert dimension_formula(network).dimension == network_rank(network) == 24
    assert network_rank(network) < 2 * 2 * (5 + 5 - 1) - 9


@pytest.mark.statement("head-mixing")
def test_heads_with_one_output_coordinate_have_less_than_the_count_of_mixing():
    network = Architecture((4, 1), (4,), 2, heads=2)
    assert dimension_formula(network).dimension == network_rank(network) == 32
    assert network_rank(network) < 2 * (16 + 4 - 1) - 2


@pytest.mark.statement("redundancy")
@pytest.mark.parametrize(
    ("widths", "values"),
    [
        ((8, 7, 1), None),
        ((4, 2, 2, 3), None),
        ((5, 3, 2, 4), None),
        ((1, 2, 3, 4), None),
        ((4, 3, 2, 1), None),
        ((4, 3, 2), (3, 1)),
        ((3, 2, 3, 4), (2, 2, 3)),
    ],
)
def test_the_inter_layer_symmetry_takes_its_share(widths, values):
    ranks = (2,) * (len(widths) - 1)
    network = Architecture(widths, ranks, 3, value_ranks=values)
    shares = {share.name: share.dimension for share in redundancy(network).shares}
    assert shares["inter-layer"] == _inter_layer_orbit(network)


@pytest.mark.parametrize(
    ("widths", "ranks", "values"),
    [((1, 5, 1), (1, 1), None), ((2, 6, 7), (1, 1), (6, 2)), ((7, 6, 2), (1, 1), (2, 2))],
)
def test_no_orbit_is_claimed_where_it_is_smaller_than_the_group(widths, ranks, values):
    network = Architecture(widths, ranks, 3, value_ranks=values)
    assert _inter_layer_orbit(network) < widths[1] ** 2
    shares = {share.name for share in redundancy(network).shares}
    assert "inter-layer and not seen by the virtual weights" in shares


def _inter_layer_orbit(architecture):
    """The rank of the generators V_i ↦ E V_i, V_{i+1} ↦ −V_{i+1} E, A_{i+1} ↦ −(Eᵀ A + A E)."""
    pairs = [
        (A.value, V.value) for ((A, V),) in random_layers(architecture, np.random.default_rng(3))
    ]
    generators = []
    for i in range(architecture.depth - 1):
        d = architecture.widths[i + 1]
        for unit in np.eye(d * d, dtype=np.int64):
            E = unit.reshape(d, d)
            moved = [[np.zeros_like(A), np.zeros_like(V)] for A, V in pairs]
            A, V = pairs[i + 1]
            moved[i][1] = E @ pairs[i][1]
            moved[i + 1] = [-(E.T @ A + A @ E), -V @ E]
            flat = np.concatenate([part.ravel() for pair in moved for part in pair])
            generators.append(flat % PRIME)
    return rank(generators)
