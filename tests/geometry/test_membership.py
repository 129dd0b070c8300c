"""Prop A.5, backward: from a table to weights, or why there are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.membership import factor_table, weights_of_pair
from neuromanifold.geometry.segre import product_table, table_norm, table_of
from single_layers import architecture, float_layer

CASES = [
    (2, 1, 2, 2, 1, False),
    (2, 1, 2, 1, 1, False),
    (2, 1, 2, 1, 1, True),
    (2, 2, 1, 1, 2, False),
    (3, 2, 2, 2, 2, False),
    (3, 2, 2, 1, 2, False),
    (3, 2, 2, 2, 1, False),
    (3, 2, 2, 1, 1, False),
    (3, 2, 2, 1, 1, True),
    (4, 5, 3, 3, 4, False),
    (5, 3, 7, 5, 3, False),
]
SEEDS = st.integers(0, 10**6)


def relative(table, weights):
    return table_norm(table_of(weights) - table) / table_norm(table)


@pytest.mark.statement("prop-a.5")
@pytest.mark.parametrize("case", CASES)
@given(seed=SEEDS)
def test_a_table_of_products_gives_weights_of_its_ranks_back(case, seed):
    *sizes, rank_A, rank_V, parallel = case
    weights = float_layer(*sizes, rank_A, rank_V, seed, parallel=parallel)
    table = table_of(weights)
    found = factor_table(table, sizes[2])
    assert found.member
    assert found.in_closure
    assert (found.form_rank, found.value_rank) == (rank_A, rank_V)
    assert found.residual <= 1e-12
    rebuilt = weights_of_pair(found.form, found.value, weights.architecture)
    assert relative(table, rebuilt) <= 1e-12
    factors = Factors.of(rebuilt)
    np.testing.assert_allclose(
        factors.key @ factors.key.T, factors.query @ factors.query.T, atol=1e-12
    )
    assert np.linalg.norm(found.form) == pytest.approx(np.linalg.norm(found.value))


@pytest.mark.statement("cor-a.2")
@pytest.mark.parametrize("case", [c for c in CASES if c[3] * c[4] >= 2])
@given(seed=SEEDS)
def test_away_from_rank_one_the_pair_is_found_up_to_scale(case, seed):
    *sizes, rank_A, rank_V, _ = case
    weights = float_layer(*sizes, rank_A, rank_V, seed)
    factors = Factors.of(weights)
    found = factor_table(table_of(weights), sizes[2])
    for ours, theirs in ((found.form, factors.form), (found.value, factors.value_map)):
        ours, theirs = ours / np.linalg.norm(ours), theirs / np.linalg.norm(theirs)
        assert min(np.linalg.norm(ours - theirs), np.linalg.norm(ours + theirs)) <= 1e-11


@pytest.mark.statement("cor-a.2")
@given(seed=SEEDS)
def test_at_rank_one_the_two_pairs_are_the_fiber(seed):
    weights = float_layer(3, 2, 2, 1, 1, seed)
    factors = Factors.of(weights)
    (k, s, q), (h, t, v) = np.linalg.svd(factors.form), np.linalg.svd(factors.value_map)
    swapped = (s[0] * np.outer(v[0], q[0]), t[0] * np.outer(h[:, 0], k[:, 0]))
    table = table_of(weights)
    np.testing.assert_allclose(product_table(*swapped), table, atol=1e-13)
    found = factor_table(table, 2)
    directions = [np.abs(np.linalg.svd(found.form)[0][:, 0] @ x) for x in (k[:, 0], v[0])]
    assert max(directions) == pytest.approx(1, abs=1e-12)


def test_the_zero_table_has_zero_weights():
    found = factor_table(np.zeros((3, 2, 6)), 2)
    assert found.member
    assert not found.form.any()
    assert not found.value.any()


@pytest.mark.statement("cor-a.6")
@given(seed=SEEDS)
def test_a_definite_form_of_rank_two_is_in_the_closure_only(seed):
    generator = np.random.default_rng(seed)
    q, h = generator.standard_normal(3), generator.standard_normal(2)
    k, u = np.linalg.qr(generator.standard_normal((3, 2)))[0].T
    i, j = np.triu_indices(3)
    form = k[i] * k[j] + generator.uniform(0.1, 1) * u[i] * u[j]
    found = factor_table(np.einsum("m,n,c->mnc", q, h, np.where(i == j, 1, 2) * form), 2)
    assert not found.member
    assert found.in_closure
    assert "conjugate complex" in found.reason


def test_a_form_of_rank_three_is_not_even_in_the_closure():
    i, j = np.triu_indices(3)
    table = np.einsum("m,n,c->mnc", np.ones(3), np.ones(2), (i == j).astype(float))
    found = factor_table(table, 3)
    assert not found.member
    assert not found.in_closure
    assert found.residual > 0.1


@given(seed=SEEDS)
def test_a_random_table_is_refused_with_its_distance(seed):
    table = np.random.default_rng(seed).standard_normal((3, 2, 6))
    found = factor_table(table, 3)
    assert not found.member
    assert not found.in_closure
    assert found.residual > 1e-3
    assert "no products of linear forms" in found.reason


def test_a_rank_above_a_is_refused():
    found = factor_table(table_of(float_layer(3, 2, 3, 3, 2, 0)), 2)
    assert not found.member
    assert found.reason == "products of linear forms, but with rank A = 3 > a = 2"


def test_a_table_off_by_more_than_the_tolerance_is_refused_and_by_less_is_not():
    table = table_of(float_layer(3, 2, 2, 2, 2, 0))
    noise = np.random.default_rng(0).standard_normal(table.shape)
    noise *= table_norm(table) / table_norm(noise)
    assert factor_table(table + 1e-12 * noise, 2).member
    assert not factor_table(table + 1e-6 * noise, 2).member
    assert factor_table(table + 1e-6 * noise, 2, tolerance=1e-4).member


def test_tables_that_are_not_finite_and_ranks_that_are_too_large_are_errors():
    with pytest.raises(ArgumentError, match="finite"):
        factor_table(np.full((2, 1, 3), np.nan), 2)
    with pytest.raises(ArgumentError, match="A of rank at most 1 was wanted"):
        weights_of_pair(np.eye(2), np.ones((1, 2)), architecture(2, 1, 1))


def test_weights_with_factored_values_have_the_pair():
    network = Architecture(widths=(3, 2), ranks=(2,), tokens=2, value_ranks=(2,))
    weights = float_layer(3, 2, 2, 2, 2, 4)
    factors = Factors.of(weights)
    rebuilt = weights_of_pair(factors.form, factors.value_map, network)
    assert relative(table_of(weights), rebuilt) <= 1e-13
