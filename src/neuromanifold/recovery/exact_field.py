"""Q or GF(p) through python-flint: numbers, matrices, polynomials.

Outside, numbers are `Fraction` or `int` in NumPy arrays of dtype object; inside a computation they
are python-flint's. Everything here is exact.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

import flint
import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.errors import ArgumentError

SMALLEST_PRIME = 2**16
"""Random points meet a hypersurface of degree 27 with probability 27/p: rare for such p."""

Number = Fraction | int
Matrix = flint.fmpq_mat | flint.nmod_mat
Polynomial = flint.fmpq_poly | flint.nmod_poly


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
        return fraction.numerator * pow(fraction.denominator, -1, self.prime) % self.prime

    def read(self, values: object) -> np.ndarray:
        """Exact numbers of any accepted kind as an array; floats by their dyadic value."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = np.vectorize(Fraction, otypes=[object])(array)
        return np.vectorize(self.number, otypes=[object])(array.astype(object))

    def reduce(self, array: np.ndarray) -> np.ndarray:
        """The residues of a result of additions and multiplications."""
        return array if self.prime is None else array % self.prime

    def divide(self, array: np.ndarray, divisor: Number) -> np.ndarray:
        """Every entry over a non-zero number."""
        if self.prime is None:
            return array / divisor
        return array * pow(int(divisor), -1, self.prime) % self.prime

    def random(self, generator: random.Random, *shape: int) -> np.ndarray:
        """Random entries: whole numbers of at most one digit over Q, all residues over GF(p)."""
        low, high = (-9, 9) if self.prime is None else (0, self.prime - 1)
        entries = [generator.randint(low, high) for _ in range(int(np.prod(shape)))]
        return self.read(np.array(entries, dtype=object).reshape(shape))

    def matrix(self, array: np.ndarray) -> Matrix:
        """An exact array as a python-flint matrix."""
        rows, columns = array.shape
        if self.prime is None:
            entries = [flint.fmpq(x.numerator, x.denominator) for x in array.ravel()]
            return flint.fmpq_mat(rows, columns, entries)
        return flint.nmod_mat(rows, columns, [int(x) for x in array.ravel()], self.prime)

    def array(self, matrix: Matrix) -> np.ndarray:
        """A python-flint matrix as an exact array."""
        numbers = [self.number(x) for x in matrix.entries()]
        result = np.empty(len(numbers), dtype=object)
        result[:] = numbers
        return result.reshape(matrix.nrows(), matrix.ncols())

    def inverse(self, array: np.ndarray) -> np.ndarray:
        """The inverse of a square matrix; ZeroDivisionError when it is singular."""
        return self.array(self.matrix(array).inv())

    def row_basis(self, array: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """The reduced echelon basis E of the row space, and its pivot columns P: E[:, P] = 1."""
        echelon, rank = self.matrix(array).rref()
        E = self.array(echelon)[:rank]
        return E, [int(np.flatnonzero(row)[0]) for row in E]

    def polynomial(self, coefficients: Iterable[Number]) -> Polynomial:
        """The polynomial with these coefficients, constant term first."""
        if self.prime is None:
            return flint.fmpq_poly(
                [flint.fmpq(Fraction(c).numerator, Fraction(c).denominator) for c in coefficients]
            )
        return flint.nmod_poly([int(c) for c in coefficients], self.prime)

    def interpolation(self, nodes: Sequence[Number]) -> np.ndarray:
        """The matrix that turns values at distinct nodes into coefficients, constant term first."""
        size = len(nodes)
        vandermonde = np.array([[node**k for k in range(size)] for node in nodes], dtype=object)
        return self.inverse(self.read(vandermonde))

    def linear_factors(self, form: dict[tuple[int, ...], Number], size: int) -> list[np.ndarray]:
        """The linear factors of a form in `size` variables, without multiplicity or scale."""
        names = ("x", size)
        if self.prime is None:
            context = flint.fmpq_mpoly_ctx.get(names)
            terms = {e: flint.fmpq(c.numerator, c.denominator) for e, c in form.items()}
        else:
            context = flint.nmod_mpoly_ctx.get(names, modulus=self.prime)
            terms = {e: int(c) for e, c in form.items()}
        units = np.eye(size, dtype=int)
        return [
            self.read(np.array([factor[tuple(int(e) for e in unit)] for unit in units], object))
            for factor, _ in context.from_dict(terms).factor()[1]
            if factor.total_degree() == 1
        ]
