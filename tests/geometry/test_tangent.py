"""Zariski tangent spaces from equations and arcs."""

import numpy as np
import pytest

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.geometry.ideal import interpolated_equations, random_tables
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.segre import product_table
from neuromanifold.geometry.tangent import fiber_pairs, zariski_tangent_space
from neuromanifold.networks.weights import random_weights
from single_layers import architecture, integer_layer

FIELD = PrimeField()


def test_the_hypersurface_of_pairs_with_a_common_factor_is_the_resultant():
    # d = 2, d' = 1, a = 2: the only equation up to degree 4 is the resultant of f and g.
    assert [interpolated_equations(2, 1, 2, g, FIELD, 0).count for g in (2, 3, 4)] == [0, 0, 1]
    equations = interpolated_equations(2, 1, 2, 4, FIELD, 0)
    generator = np.random.default_rng(0)
    values, resultants = [], []
    for _ in range(4):
        f, g = generator.integers(-9, 10, (2, 3)).tolist()
        outer = f[0] * g[2] - f[2] * g[0]
        resultants.append(outer**2 - (f[0] * g[1] - f[1] * g[0]) * (f[1] * g[2] - f[2] * g[1]))
        values.append(int(equations.values(FIELD.from_integers([*f, *g]))[0]))
    p = FIELD.modulus
    assert any(resultants)
    for value, resultant in zip(values, resultants, strict=True):
        assert (values[0] * resultant - value * resultants[0]) % p == 0


@pytest.mark.parametrize(
    ("sizes", "degree"), [((2, 2, 1), 2), ((2, 2, 2), 3), ((3, 1, 2), 3), ((3, 2, 2), 2)]
)
def test_equations_vanish_at_fresh_tables_and_not_everywhere(sizes, degree):
    equations = interpolated_equations(*sizes, degree, FIELD, 0)
    assert equations.count
    for table in random_tables(*sizes, 3, FIELD, seed=1):
        assert not equations.values(table).any()
    assert equations.values(FIELD.random(2, "anywhere", (equations.coordinates,))).any()


def test_grouping_by_multidegree_loses_no_equation():
    d, d_out, a = 2, 2, 2
    tables = random_tables(d, d_out, a, 100, FIELD, seed=3)
    i, j = np.triu_indices(tables.shape[1])
    all_at_once = i.size - rank(FIELD.multiply(tables[:, i], tables[:, j]), FIELD)
    assert interpolated_equations(d, d_out, a, 2, FIELD, 0).count == all_at_once


def test_gradients_are_differences_of_values():
    # f(T + D) − f(T − D) = 2 f'(T) D + 2 f'''(D) for a cubic, and f'''(D) is f's own value at D.
    equations = interpolated_equations(3, 1, 2, 3, FIELD, 0)
    T, D = FIELD.random(0, "point and direction", (2, equations.coordinates))
    ahead, behind = equations.values(FIELD.reduce(T + D)), equations.values(FIELD.reduce(T - D))
    derivative = FIELD.matmul(equations.jacobian(T), D)
    expected = FIELD.reduce(2 * derivative + 2 * equations.values(D))
    np.testing.assert_array_equal(FIELD.reduce(ahead - behind), expected)


@pytest.mark.parametrize(
    ("ranks", "parallel", "points"),
    [((1, 1), False, 2), ((1, 1), True, 1), ((2, 1), False, 1), ((0, 2), False, 2)],
)
def test_pairs_of_the_fiber_have_one_table(ranks, parallel, points):
    weights = integer_layer(3, 2, 2, *ranks, 0, parallel=parallel)
    pairs = fiber_pairs(*Factors.of(weights).residues(FIELD).pair_mod(FIELD), FIELD)
    assert len(pairs) == points
    tables = [FIELD.reduce(product_table(A, V)) for A, V in pairs]
    for table in tables:
        np.testing.assert_array_equal(table, tables[0])


@pytest.mark.statement("whitney-umbrella")
def test_at_a_pinch_differences_of_second_order_terms_are_needed():
    # Tangents of arcs span 5 dimensions there, the tangent space of the hypersurface has 6.
    found = zariski_tangent_space(integer_layer(2, 1, 2, 1, 1, 0, parallel=True))
    assert (found.lower, found.upper, found.dimension) == (6, 6, 5)


def test_another_prime_and_seed_give_the_same_answer():
    weights = integer_layer(3, 1, 2, 1, 1, 0)
    first = zariski_tangent_space(weights)
    second = zariski_tangent_space(weights, field=PrimeField(1048583), seed=5)
    assert (first.lower, first.upper) == (second.lower, second.upper) == (15, 15)
    assert (second.prime, second.seed) == (1048583, 5)


def test_too_few_equations_leave_the_point_undecided():
    weights = integer_layer(2, 1, 2, 2, 1, 0)
    found = zariski_tangent_space(weights, highest_degree=3)
    assert (found.lower, found.upper, found.singular) == (5, 6, None)
    assert "has dimension 5 to 6" in str(found)
    assert "undecided" in str(found)


def test_small_primes_are_refused():
    with pytest.raises(ArgumentError, match=r"a prime above 2\^20 was wanted.*; got 251"):
        interpolated_equations(2, 1, 2, 4, PrimeField(251), 0)


def test_large_layers_are_refused():
    with pytest.raises(NotCoveredError, match="at most 40 coordinates; widths 4 and 2 need 80"):
        zariski_tangent_space(random_weights(architecture(4, 2, 2), 0))
