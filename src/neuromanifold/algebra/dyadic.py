"""Floats as they are: dyadic rationals, in whole numbers and a power of two.

A float is m·2^e, so an array of them is one of integers times one power of two, and sums and
products of such are again. No rounding happens, and ranks, zeros, equality and proportionality are
decided.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from neuromanifold.algebra.integer_rank import integer_rank


@dataclass(frozen=True, slots=True, eq=False)
class Dyadic:
    """The array `integers` · 2^`exponent`, Python's whole numbers in an array of objects."""

    integers: np.ndarray
    exponent: int

    @classmethod
    def of(cls, array: np.ndarray) -> "Dyadic":
        """The exact value of an array of floats."""
        mantissas, exponents = np.frexp(np.asarray(array, dtype=np.float64))
        whole = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
        exponents = exponents.astype(np.int64) - 53
        lowest = int(exponents[mantissas != 0].min()) if mantissas.any() else 0
        shifts = np.where(mantissas == 0, 0, exponents - lowest).astype(object)
        return cls(whole * 2**shifts if whole.size else whole, lowest)

    @property
    def is_zero(self) -> bool:
        """Whether all entries are zero."""
        return not self.integers.any()

    @property
    def lowest_terms(self) -> "Dyadic":
        """The same array with an odd entry, or with exponent 0 if it is zero."""
        common = gcd(*self.integers.ravel())
        if not common:
            return Dyadic(self.integers, 0)
        twos = (common & -common).bit_length() - 1
        return Dyadic(self.integers >> twos, self.exponent + twos)

    @property
    def rank(self) -> int:
        """The rank of a matrix, over the rationals."""
        return integer_rank(self.integers)

    @property
    def is_skew(self) -> bool:
        """Whether the symmetric part of a square matrix is zero."""
        return not (self.integers + self.integers.T).any()

    @property
    def symmetric_part(self) -> "Dyadic":
        """Half the sum with the transpose."""
        return Dyadic(self.integers + self.integers.T, self.exponent - 1)

    def __matmul__(self, other: "Dyadic") -> "Dyadic":
        return Dyadic(self.integers @ other.integers, self.exponent + other.exponent)

    @property
    def T(self) -> "Dyadic":
        """The transpose."""
        return Dyadic(self.integers.T, self.exponent)

    def __add__(self, other: "Dyadic") -> "Dyadic":
        low = min(self.exponent, other.exponent)
        one, two = (x.integers * 2 ** (x.exponent - low) for x in (self, other))
        return Dyadic(one + two, low)

    def equals(self, other: "Dyadic") -> bool:
        """Whether the two are the same array of numbers."""
        one, two = self.lowest_terms, other.lowest_terms
        return one.exponent == two.exponent and np.array_equal(one.integers, two.integers)

    def factor_to(self, other: "Dyadic") -> Fraction | None:
        """λ with other = λ · self ≠ 0; None when there is none."""
        if self.is_zero or other.is_zero:
            return None
        at = np.unravel_index(np.argmax(self.integers != 0), self.integers.shape)
        b, c = self.integers[at], other.integers[at]
        if not c or not np.array_equal(self.integers * c, other.integers * b):
            return None
        return Fraction(c, b) * Fraction(2) ** (other.exponent - self.exponent)
