"""Common zeros over a prime field: known numbers, SymPy's Gröbner bases, and brute force."""

from itertools import product

import numpy as np
import pytest
import sympy

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.quotient import ring, zeros

FIELD = PrimeField(10007)


def _counts(*polynomials):
    found = zeros(polynomials, FIELD, monomials=40)
    return found.most, found.distinct


def test_known_numbers_of_zeros():
    R = ring(2, FIELD)
    x, y = R.gens()
    assert _counts(x**2 + y**2 - 5, x * y - 2) == (4, 4)  # two conics
    assert _counts(x**3 - x * y + 1, y**2 - x - 7) == (6, 6)  # Bézout
    assert _counts(x**2, y - x) == (2, 1)  # a double point
    assert _counts(x - 3, y * y - y * x) == (2, 2)
    assert _counts(x - 3, y - 4) == (1, 1)
    assert _counts(x - 3, x - 4) == (0, 0)
    assert _counts(x * y - 1, x) == (0, 0)
    assert _counts(R.constant(1), x) == (0, 0)


def test_a_curve_has_no_finite_number():
    x, y = ring(2, FIELD).gens()
    assert _counts(x * y) == (None, None)
    assert _counts(x - y) == (None, None)


def test_katsura_has_as_many_as_is_known():
    u0, u1, u2, u3 = ring(4, FIELD).gens()
    system = (
        u0 + 2 * u1 + 2 * u2 + 2 * u3 - 1,
        u0**2 + 2 * u1**2 + 2 * u2**2 + 2 * u3**2 - u0,
        2 * u0 * u1 + 2 * u1 * u2 + 2 * u2 * u3 - u1,
        u1**2 + 2 * u0 * u2 + 2 * u1 * u3 - u2,
    )
    assert _counts(*system) == (8, 8)


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_groebner_bases_of_sympy(seed):
    """Sparse cubics in two variables; the quotient has the standard monomials of a basis."""
    generator = np.random.default_rng(seed)
    exponents = [e for e in product(range(4), repeat=2) if sum(e) <= 3]
    R, symbols = ring(2, FIELD), sympy.symbols("x y")
    rows = generator.integers(1, 9, (2, 10)) * (generator.random((2, 10)) < 0.6)
    rows[:, 0] = 0  # zero is a zero
    ours = [R.from_dict({e: int(c) for e, c in zip(exponents, row, strict=True)}) for row in rows]
    theirs = [
        sum(int(c) * symbols[0] ** a * symbols[1] ** b for (a, b), c in pairs)
        for pairs in (zip(exponents, row, strict=True) for row in rows)
    ]
    basis = sympy.groebner(theirs, *symbols, modulus=10007, order="grevlex")
    leads = [f.monoms(order="grevlex")[0] for f in basis.polys]
    inside = [
        m
        for m in product(range(10), repeat=2)
        if not any(a <= m[0] and b <= m[1] for a, b in leads)
    ]
    assert basis.is_zero_dimensional
    assert zeros(ours, FIELD, monomials=300).most == len(inside)


def test_the_search_ends_at_what_is_known_and_at_what_is_allowed():
    x, y = ring(2, FIELD).gens()
    system = (x**2 + y**2 - 5, x * y - 2)
    assert zeros(system, FIELD, least=4).distinct == 4
    assert zeros(system, FIELD, monomials=5).most is None


def test_distinct_zeros_are_those_that_brute_force_finds_when_all_are_rational():
    field = PrimeField(7)
    x, y = ring(2, field).gens()
    system = ((x - 1) * (x - 2) * (y - 3), (y - 3) * (y - 5), (x - 1) ** 2 * (x - 2))
    found = zeros(system, field)
    points = [
        (a, b)
        for a in range(7)
        for b in range(7)
        if (a - 1) * (a - 2) * (b - 3) % 7 == 0
        and (b - 3) * (b - 5) % 7 == 0
        and (a - 1) ** 2 * (a - 2) % 7 == 0
    ]
    assert found.distinct == len(points) == 4
    assert found.most == 5


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_multiplicities_count(degree):
    (x,) = ring(1, FIELD).gens()
    found = zeros([x**degree * (x - 1)], FIELD)
    assert (found.most, found.distinct) == (degree + 1, 2)
