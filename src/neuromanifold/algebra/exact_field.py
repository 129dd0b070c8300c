"""Q or GF(p) through python-flint: numbers, matrices, polynomials.

Outside, numbers are `Fraction` or `int` in NumPy arrays of dtype object; inside a computation they
are python-flint's. Everything here is exact.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from numbers import Integral
from operator import mul
from typing import Any

import flint
import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError

SMALLEST_PRIME = 2**16
"""Random points meet a hypersurface of degree 27 with probability 27/p: rare for such p."""

Number = Fraction | int


@dataclass(frozen=True, slots=True)
class ExactField:
    """The rational numbers (prime None) or GF(prime)."""

    prime: int | None = None

    def __post_init__(self) -> None:
        if self.prime is not None and PrimeField(self.prime).modulus < SMALLEST_PRIME:
            raise ArgumentError(
                f"exact recovery needs a prime of at least {SMALLEST_PRIME}; got {self.prime}"
            )

    def number(self, value: object) -> Number:
        """One entry of an exact array."""
        if isinstance(value, flint.fmpq):
            value = Fraction(int(value.p), int(value.q))
        if isinstance(value, Integral | flint.fmpz | flint.nmod):
            value = int(value)
        if not isinstance(value, int | Fraction):
            raise ArgumentError(
                f"an exact oracle must return whole numbers or fractions; got {value!r}"
            )
        if self.prime is None:
            return Fraction(value)
        fraction = Fraction(value)
        if fraction.denominator % self.prime == 0:
            raise ArgumentError(f"{value} has no residue mod {self.prime}; take another prime")
        return fraction.numerator * pow(fraction.denominator, -1, self.prime) % self.prime

    def read(self, array: np.ndarray) -> np.ndarray:
        """An array of whole numbers or fractions as an exact array."""
        return np.vectorize(self.number, otypes=[object])(array.astype(object))

    def reduce(self, array: np.ndarray) -> np.ndarray:
        """The residues of a result of additions and multiplications."""
        return array if self.prime is None else array % self.prime

    def divide(self, array: np.ndarray, divisor: Number) -> np.ndarray:
        """Every entry over a number; ZeroDivisionError when that is 0."""
        if self.prime is None:
            return array / divisor
        reciprocal = int(1 / flint.nmod(int(divisor), self.prime))
        return array * reciprocal % self.prime

    def random(self, generator: random.Random, *shape: int) -> np.ndarray:
        """Random entries: whole numbers of at most one digit over Q, all residues over GF(p)."""
        low, high = (-9, 9) if self.prime is None else (0, self.prime - 1)
        entries = [generator.randint(low, high) for _ in range(int(np.prod(shape)))]
        return self.read(np.array(entries, dtype=object).reshape(shape))

    def product(self, *matrices: np.ndarray) -> np.ndarray:
        """The product of matrices, from left to right."""
        shape = (len(matrices[0]), matrices[-1].shape[1])
        return self._array(reduce(mul, map(self._matrix, matrices)).entries(), *shape)

    def inverse(self, array: np.ndarray) -> np.ndarray:
        """The inverse of a square matrix; ZeroDivisionError when it is singular."""
        return self._array(self._matrix(array).inv().entries(), *array.shape)

    def row_basis(self, array: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """The reduced echelon basis E of the row space, and its pivot columns P: E[:, P] = 1."""
        echelon, rank = self._matrix(array).rref()
        E = self._array(echelon.entries(), *array.shape)[:rank]
        return E, [int(np.flatnonzero(row)[0]) for row in E]

    def interpolate(self, nodes: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Coefficients, constant term first, of the polynomials with these values at the nodes.

        Args:
            nodes: distinct whole numbers.
            values: one row for each node, one column for each polynomial.
        """
        return self.product(_inverse_vandermonde(self, tuple(nodes)), values)

    def squarefree_content(self, coefficients: np.ndarray) -> list[tuple[list[Number], int]]:
        """The greatest common factor of polynomials, as squarefree parts with multiplicities.

        Args:
            coefficients: one polynomial a column, not all 0, constant term first.
        """
        columns = map(self._numbers, coefficients.T)
        polynomials: Any = (
            [flint.fmpq_poly(f) for f in columns]
            if self.prime is None
            else [flint.nmod_poly(f, self.prime) for f in columns]
        )
        parts = reduce(lambda f, g: f.gcd(g), polynomials).factor_squarefree()[1]
        return [(list(self._array(part.coeffs(), -1)), exponent) for part, exponent in parts]

    def linear_factors(self, form: Mapping[tuple[int, ...], Number], size: int) -> list[np.ndarray]:
        """The linear factors of a form in `size` variables, without multiplicity or scale."""
        ring: Any = (
            flint.fmpq_mpoly_ctx.get(("x", size))
            if self.prime is None
            else flint.nmod_mpoly_ctx.get(("x", size), modulus=self.prime)
        )
        coefficients = self._numbers(form.values())
        polynomial = ring.from_dict(dict(zip(form, coefficients, strict=True)))
        units = [tuple(int(i == j) for j in range(size)) for i in range(size)]
        factors = [factor for factor, _ in polynomial.factor()[1] if factor.total_degree() == 1]
        return [self._array([factor[unit] for unit in units], size) for factor in factors]

    def _numbers(self, values: Iterable[Number]) -> list[Any]:
        """Numbers as python-flint takes them."""
        if self.prime is None:
            return [flint.fmpq(x.numerator, x.denominator) for x in values]
        return [int(x) for x in values]

    def _matrix(self, array: np.ndarray) -> Any:
        """A matrix of python-flint."""
        (rows, columns), entries = array.shape, self._numbers(array.ravel())
        if self.prime is None:
            return flint.fmpq_mat(rows, columns, entries)
        return flint.nmod_mat(rows, columns, entries, self.prime)

    def _array(self, entries: Iterable[flint.fmpq | flint.nmod | int], *shape: int) -> np.ndarray:
        """An exact array of python-flint's numbers."""
        numbers = [
            Fraction(int(x.p), int(x.q)) if isinstance(x, flint.fmpq) else int(x) for x in entries
        ]
        return np.array(numbers, dtype=object).reshape(shape)


@lru_cache(maxsize=8)
def _inverse_vandermonde(field: ExactField, nodes: tuple[int, ...]) -> np.ndarray:
    """The matrix from values at the nodes to coefficients; the same nodes serve every line."""
    powers = range(len(nodes))
    return field.inverse(np.array([[node**k for k in powers] for node in nodes], dtype=object))
