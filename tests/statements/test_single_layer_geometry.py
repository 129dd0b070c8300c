"""Thm 3.4 and its parts, for one layer: critical, singular and boundary points, independently."""

import itertools

import numpy as np
import pytest

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.errors import HypothesisError
from neuromanifold.geometry.classify import classify
from neuromanifold.geometry.differential import pair_differential
from neuromanifold.geometry.ideal import interpolated_equations
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.membership import factor_table
from neuromanifold.geometry.segre import product_table, table_norm, table_of
from neuromanifold.geometry.tangent import zariski_tangent_space
from single_layers import float_layer, integer_layer, layer

FIELD = PrimeField()
SMALL = [(2, 1, 2), (2, 1, 3), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 1, 3), (3, 2, 2), (3, 2, 3)]


def rank_patterns(d, d_out, a):
    """All ranks of A and V, and whether k ∥ v for ranks one."""
    for rank_A, rank_V in itertools.product(range(min(a, d) + 1), range(min(d_out, d) + 1)):
        yield rank_A, rank_V, False
        if rank_A == rank_V == 1:
            yield 1, 1, True


GRID = [(sizes, pattern) for sizes in SMALL for pattern in rank_patterns(*sizes)]


@pytest.mark.statement("thm-3.4")
@pytest.mark.statement("cor-a.4")
@pytest.mark.statement("low-rank-singular")
@pytest.mark.parametrize(("sizes", "pattern"), GRID)
def test_singular_points_by_tangent_spaces_are_those_of_the_statement(sizes, pattern):
    rank_A, rank_V, parallel = pattern
    weights = integer_layer(*sizes, rank_A, rank_V, 7, parallel=parallel)
    found = zariski_tangent_space(weights)
    assert found.lower == found.upper
    d, _, a = sizes
    assert found.singular == (rank_A * rank_V <= 1 or rank_A < a < d)
    assert found.singular == classify(weights).singular


@pytest.mark.statement("low-rank-singular")
@pytest.mark.parametrize("seed", [1, 2])
def test_the_papers_list_misses_points_of_low_rank(seed):
    # rank A · rank V = 2, so the paper calls the point smooth; its tangent space is too large.
    found = zariski_tangent_space(integer_layer(3, 2, 2, 1, 2, seed))
    assert (found.lower, found.upper, found.dimension) == (14, 14, 13)
    # With a = d nothing is cut out by the rank of A, and the same point is smooth.
    found = zariski_tangent_space(integer_layer(3, 2, 3, 1, 2, seed))
    assert (found.lower, found.upper, found.dimension) == (14, 14, 14)


@pytest.mark.slow
@pytest.mark.statement("low-rank-singular")
def test_where_k_lies_in_the_row_space_of_V_quartic_equations_decide():
    key, rows = np.array([[1.0, 1.0, 2.0]]), np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    weights = layer(np.array([[1.0, 2.0, 5.0]]), key, rows, 2)
    assert zariski_tangent_space(weights, highest_degree=3).upper > 14
    found = zariski_tangent_space(weights)
    assert (found.lower, found.upper, found.dimension) == (14, 14, 13)


@pytest.mark.statement("cor-a.4")
def test_outside_the_hypotheses_points_of_rank_one_are_smooth():
    # d = 2, d' = a = 1: all tables are q⊗f, a smooth cone of dimension 4 away from zero.
    weights = integer_layer(2, 1, 1, 1, 1, 0)
    with pytest.raises(HypothesisError, match="widths"):
        classify(weights)
    point = FIELD.reduce(product_table(*Factors.of(weights).residues(FIELD).pair_mod(FIELD)))
    gradients = interpolated_equations(2, 1, 1, 2, FIELD, 0).jacobian(point.ravel())
    assert 6 - rank(gradients, FIELD) == 4


@pytest.mark.statement("lemma-a.3")
@pytest.mark.parametrize("sizes", [(2, 1, 2), (3, 2, 2), (4, 3, 2)])
def test_at_k_q_and_h_k_the_kernel_has_d_dimensions(sizes):
    d, d_out, _ = sizes
    generator = np.random.default_rng(0)
    k, q, p = generator.integers(1, 9, (3, d)).astype(float)
    h = generator.integers(1, 9, d_out).astype(float)
    differential = pair_differential(np.outer(k, q), np.outer(h, k))
    moved = np.concatenate([np.outer(p, q).ravel(), -np.outer(h, p).ravel()])
    assert not (differential @ moved).any()
    assert d * d + d * d_out - rank(differential, FIELD) == d


@pytest.mark.statement("lemma-a.3")
@pytest.mark.parametrize(("rank_A", "rank_V"), [(0, 2), (0, 1), (3, 0), (1, 0), (0, 0)])
def test_zero_factors_are_critical_whatever_the_other_rank(rank_A, rank_V):
    found = classify(integer_layer(3, 2, 3, rank_A, rank_V, 0), field=FIELD)
    assert found.critical
    assert found.exact.pair_differential < 3 * 3 + 3 * 2 - 1


@pytest.mark.statement("lemma-a.3")
@pytest.mark.parametrize("sizes", [(3, 2, 3), (4, 1, 4), (3, 3, 2)])
def test_elsewhere_the_kernel_is_the_rescaling(sizes):
    d, d_out, a = sizes
    for rank_A, rank_V, parallel in rank_patterns(*sizes):
        if rank_A * rank_V and not parallel:
            found = classify(integer_layer(d, d_out, a, rank_A, rank_V, 1), field=FIELD)
            assert not found.critical
            assert found.exact.pair_differential == d * d + d * d_out - 1


def squares(q, h, k, u, weight):
    """The table q_m h_n ((k·x)² + weight (u·x)²)."""
    i, j = np.triu_indices(len(k))
    form = np.where(i == j, 1, 2) * (k[i] * k[j] + weight * u[i] * u[j])
    return np.einsum("m,n,c->mnc", q, h, form)


@pytest.mark.statement("cor-a.6")
@pytest.mark.parametrize("seed", range(5))
def test_boundary_points_are_limits_of_points_of_the_closure_only(seed):
    generator = np.random.default_rng(seed)
    k, q, u = generator.standard_normal((3, 3))
    h = generator.standard_normal(2)
    weights = layer(q[None], k[None], np.outer(h, k), 2)
    assert classify(weights).boundary
    for weight in (1e-1, 1e-3, 1e-5):
        outside = squares(q, h, k, u, weight)
        found = factor_table(outside, 2)
        assert (found.member, found.in_closure) == (False, True)
        norm = table_norm(squares(q, h, 0 * k, u, 1.0))
        assert table_norm(outside - table_of(weights)) <= 1.0001 * weight * norm
        assert factor_table(squares(q, h, k, u, -weight), 2).member


@pytest.mark.statement("cor-a.6")
@pytest.mark.parametrize("sizes", [(2, 1, 2), (2, 2, 1), (3, 2, 2)])
def test_points_of_the_closure_only_satisfy_every_equation(sizes):
    d, d_out, _ = sizes
    generator = np.random.default_rng(0)
    q, k, u = generator.integers(1, 9, (3, d))
    table = FIELD.from_integers(squares(q, generator.integers(1, 9, d_out), k, u, 3)).ravel()
    for degree in (2, 3, 4) if d == 2 else (2, 3):
        assert not interpolated_equations(*sizes, degree, FIELD, 0).values(table).any()


@pytest.mark.statement("cor-a.6")
@pytest.mark.parametrize("seed", range(5))
def test_near_other_points_of_rank_one_there_is_no_point_of_the_closure_only(seed):
    # k · v with k ∦ v has an eigenvalue of each sign, and keeps them for small changes.
    weights = float_layer(3, 2, 2, 1, 1, seed)
    assert not classify(weights).boundary
    table = table_of(weights)
    generator = np.random.default_rng(seed)
    q, h = np.linalg.svd(table.reshape(3, -1))[0][:, 0], np.linalg.svd(table[0])[0][:, 0]
    for _ in range(20):
        k, u = generator.standard_normal((2, 3))
        moved = table + 1e-3 * squares(q, h, k, u, 1.0)
        found = factor_table(moved, 2)
        assert not (found.in_closure and not found.member)


@pytest.mark.statement("cor-a.2")
def test_special_fibers_have_two_points():
    counts = [
        classify(integer_layer(3, 2, 2, *ranks, 3, parallel=parallel)).fiber_points
        for *ranks, parallel in ((2, 2, False), (1, 2, False), (1, 1, False), (1, 1, True))
    ]
    assert counts == [1, 1, 2, 1]
