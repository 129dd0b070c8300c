"""How many common zeros polynomials over a prime field have, by linear algebra.

Let R = GF(p)[y_1, …, y_n] and I the ideal of the given polynomials. Among the polynomials of degree
at most D let J be the smallest space that contains the given ones and, with every f of degree below
D, all y_i f. Its echelon form, columns by descending degree, has the monomials B outside its pivots
as a complement. If all of B has degree below D, every y_i b is congruent to a combination of B, so
by induction on the degree R = span B + I: there are **at most |B| zeros**, over the algebraic
closure and with multiplicity. If besides the |B| × |B| matrices of the multiplications by the y_i
commute, B is a basis of R/I (Mourrain's criterion), and the number of distinct zeros is the rank of
the trace form (b, b') ↦ tr(b b').

Linear polynomials in J remove variables before the degree grows, which solves step by step what is
triangular.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from flint import nmod_mpoly, nmod_mpoly_ctx
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank

Matrix = Float[np.ndarray, "_ _"]
Monomial = tuple[int, ...]

_TRACES = 64
"""Up to so many dimensions the matrices of the multiplications are looked at."""


@dataclass(frozen=True, slots=True)
class Zeros:
    """What is known of the common zeros of polynomials, over the algebraic closure.

    Attributes:
        most: they are at most so many, with multiplicity; None if no bound was found.
        distinct: the number of distinct ones; None if it is not known.
        degree: the largest degree that was looked at.
        monomials: how many monomials that were, at most.
    """

    most: int | None
    distinct: int | None
    degree: int
    monomials: int


def ring(variables: int, field: PrimeField) -> nmod_mpoly_ctx:
    """The polynomials in so many variables over the field."""
    names = [f"y{i}" for i in range(variables)]
    return nmod_mpoly_ctx.get(names, modulus=field.modulus, ordering="degrevlex")


def zeros(
    polynomials: Sequence[nmod_mpoly], field: PrimeField, *, least: int = 0, monomials: int = 4000
) -> Zeros:
    """The common zeros of polynomials over the field.

    Args:
        polynomials: of one ring.
        field: the prime field.
        least: that so many zeros are known; the search ends when no more are left.
        monomials: the most that are looked at together.
    """
    given, variables = list(polynomials), polynomials[0].context().nvars()
    degree, seen = 1, 0
    while variables:
        seen = max(seen, comb(variables + degree, degree))
        given = [f for f in given if not f.is_zero()]
        if seen > monomials or not given:
            return Zeros(None, None, degree - 1, seen)
        space = _Truncated(variables, degree, field)
        space.close([f for f in given if f.total_degree() <= degree], least)
        normal, linear = space.normal, space.linear()
        if not normal:
            return Zeros(0, 0, degree, seen)
        if len(linear):
            given, variables = _substituted(given, linear, field), variables - len(linear)
            continue
        complete = all(f.total_degree() <= degree for f in given)
        if space.degrees[normal].max() < degree and (complete or len(normal) <= least):
            distinct = least if len(normal) == least else space.distinct() if complete else None
            return Zeros(len(normal), distinct, degree, seen)
        degree += 1
    left = int(all(f.is_zero() for f in given))
    return Zeros(left, left, degree, seen)


class _Truncated:
    """The polynomials of bounded degree, and the space J of those known to vanish."""

    def __init__(self, variables: int, degree: int, field: PrimeField) -> None:
        self.variables, self.degree, self.field = variables, degree, field
        self.monomials = [m for size in range(degree, -1, -1) for m in _monomials(variables, size)]
        self.index = {m: i for i, m in enumerate(self.monomials)}
        self.degrees = np.array([sum(m) for m in self.monomials])
        self.low = np.flatnonzero(self.degrees < degree)
        self.times = np.array(
            [
                [self.index[_raised(self.monomials[i], k)] for i in self.low]
                for k in range(variables)
            ]
        ).reshape(variables, len(self.low))
        self.form = EchelonForm(len(self.monomials), field)

    @property
    def normal(self) -> list[int]:
        """The monomials outside the pivots."""
        return np.delete(np.arange(len(self.monomials)), self.form.pivots).tolist()

    def close(self, polynomials: Sequence[nmod_mpoly], least: int) -> None:
        """Multiply what has a smaller degree until nothing new comes, or enough is known."""
        rows = np.zeros((len(polynomials), len(self.monomials)))
        for row, f in zip(rows, polynomials, strict=True):
            for exponents, value in f.to_dict().items():
                row[self.index[exponents]] = float(self.field.from_integers([int(value)])[0])
        self.form.add(rows)
        multiplied: set[int] = set()
        while len(self.monomials) - self.form.rank > least:
            pivots = self.form.pivots
            new = [
                i
                for i, p in enumerate(pivots)
                if self.degrees[p] < self.degree and int(p) not in multiplied
            ]
            if not new:
                return
            multiplied.update(int(pivots[i]) for i in new)
            low = self.form.basis[new][:, self.low]
            for places in self.times:
                product = np.zeros((len(low), len(self.monomials)))
                product[:, places] = low
                self.form.add(product)
                if len(self.monomials) - self.form.rank <= least:
                    return

    def linear(self) -> Matrix:
        """The polynomials of degree one in J, as rows of coefficients of y_1, …, y_n and 1."""
        last = len(self.monomials) - self.variables - 1
        pivots = self.form.pivots
        if not np.any((pivots >= last) & (pivots < len(self.monomials) - 1)):
            return np.zeros((0, self.variables + 1))
        return self.form.basis[pivots >= last][:, last:]

    def distinct(self) -> int | None:
        """The number of distinct zeros, if the normal monomials are a basis of the quotient."""
        normal = self.normal
        if not normal:
            return 0
        if len(normal) > _TRACES:
            return None
        # B is closed under division: J is closed under multiplication, and the order is deglex
        images = np.zeros((self.variables, len(normal), len(self.monomials)))
        for k in range(self.variables):
            for column, i in enumerate(normal):
                images[k, column, self.index[_raised(self.monomials[i], k)]] = 1.0
        matrices = [self.form.reduce(rows)[:, normal].T.copy() for rows in images]
        product = self.field.matmul
        for a in matrices:
            for b in matrices:
                if np.any(self.field.reduce(product(a, b) - product(b, a))):
                    return None
        return _trace_rank([self.monomials[i] for i in normal], matrices, self.field)


def _trace_rank(normal: Sequence[Monomial], matrices: Sequence[Matrix], field: PrimeField) -> int:
    """The rank of the trace form on the quotient; p is larger than its dimension."""
    one = np.eye(len(normal))
    powers = {}
    for m in sorted(normal, key=sum):
        k = next((i for i, e in enumerate(m) if e), None)
        powers[m] = one if k is None else field.matmul(matrices[k], powers[_lowered(m, k)])
    stack = [powers[m] for m in normal]
    form = np.array([[np.trace(field.matmul(a, b)) for b in stack] for a in stack])
    return rank(field.reduce(form), field)


def _substituted(
    given: Sequence[nmod_mpoly], linear: Matrix, field: PrimeField
) -> list[nmod_mpoly]:
    """The polynomials with the leading variable of every linear one replaced by the rest of it."""
    leads = [int(np.flatnonzero(row)[0]) for row in linear]
    free = [k for k in range(linear.shape[1] - 1) if k not in leads]
    new = ring(max(len(free), 1), field)
    values = {k: new.gen(i) for i, k in enumerate(free)}
    for k, row in zip(leads, linear, strict=True):
        rest = [values[j] * (int(-row[j]) % field.modulus) for j in free]
        values[k] = sum(rest, new.constant(int(-row[-1]) % field.modulus))
    return [f.compose(*(values[k] for k in sorted(values)), ctx=new) for f in given]


def _raised(monomial: Monomial, k: int) -> Monomial:
    return (*monomial[:k], monomial[k] + 1, *monomial[k + 1 :])


def _lowered(monomial: Monomial, k: int) -> Monomial:
    return (*monomial[:k], monomial[k] - 1, *monomial[k + 1 :])


def _monomials(variables: int, degree: int) -> list[Monomial]:
    """The monomials of this degree, those with the first variables first."""
    found = []
    for chosen in combinations_with_replacement(range(variables), degree):
        exponents = [0] * variables
        for k in chosen:
            exponents[k] += 1
        found.append(tuple(exponents))
    return found
