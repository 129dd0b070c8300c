"""Residues mod p as balanced float64 numbers: reduction, products, inverses, and a residue stream.

Exactness. Let h = (p−1)/2 < 2^22, so a balanced residue has |x| ≤ h. A float64 holds every integer
up to 2^53. A product of two residues is at most h² < 2^44; a sum of k of them is exact, in whatever
order it is taken, while every partial sum stays below 2^53.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float64

from neuromanifold.errors import ArgumentError, NeuromanifoldError

Residues = Float64[np.ndarray, "..."]

PRIME_LIMIT = 2**23
DEFAULT_PRIME = 8388593  # the largest prime below 2^23
_STREAM = "neuromanifold residue stream 1"


class ZeroResidueError(NeuromanifoldError, ZeroDivisionError):
    """A residue that must be inverted is zero: the point has to be drawn again."""


@dataclass(frozen=True, slots=True)
class PrimeField:
    """The field GF(p) for an odd prime p < 2^23.

    Attributes:
        modulus: the prime p.
    """

    modulus: int = DEFAULT_PRIME

    def __post_init__(self) -> None:
        p = self.modulus
        if isinstance(p, bool) or not isinstance(p, int):
            raise ArgumentError(f"the prime must be a whole number; got {p!r}")
        if not 2 < p < PRIME_LIMIT:
            raise ArgumentError(
                f"the prime must be odd and below 2^23 = {PRIME_LIMIT}; got {p}: "
                f"take {DEFAULT_PRIME}, the largest"
            )
        if not _is_prime(p):
            raise ArgumentError(f"{p} is not a prime; take {_prime_below(p)}, the next one below")

    @property
    def exact_terms(self) -> int:
        """How many products of residues a float64 sums exactly, with a residue to spare.

        A reduced number may be off the balanced range by rounding in `reduce` (by less than 4, see
        there), so k terms are allowed while k (p/2 + 4)² ≤ 2^53 − p: 511 at p = 8388593.
        """
        p = self.modulus
        return int((2**53 - p) // (p / 2 + 4) ** 2)

    def reduce(self, x: Residues) -> Residues:
        """The balanced residue of integers |x| ≤ 2^53 held in floats.

        x/p is off by a relative 2^-53, so by less than 2^53/p · 2^-53 = 1/p in absolute terms: rint
        misses the nearest integer only when x/p lies within 1/p of a half-integer. Then x − q p
        lies outside the balanced range by a unit, and one more step of p brings it inside.
        """
        p = float(self.modulus)
        once = x - np.rint(x / p) * p
        half = (self.modulus - 1) // 2
        return np.where(once > half, once - p, np.where(once < -half, once + p, once))

    def from_integers(self, values: object) -> Residues:
        """The residues of integers of any size (nested lists of ints, or an integer array)."""
        array = np.asarray(values)
        if array.dtype == object:
            flat = [int(v) % self.modulus for v in array.ravel()]
            array = np.array(flat, dtype=np.int64).reshape(array.shape)
        elif array.dtype.kind not in "iub":
            raise ArgumentError(f"integers were wanted; got dtype {array.dtype}")
        residues = np.mod(array.astype(np.int64), self.modulus).astype(np.float64)
        return np.where(residues > self.modulus // 2, residues - self.modulus, residues)

    def from_fraction(self, value: Fraction | int) -> float:
        """The residue of a rational number whose denominator p does not divide."""
        value = Fraction(value)
        if value.denominator % self.modulus == 0:
            raise ZeroResidueError(f"the denominator of {value} is 0 mod {self.modulus}")
        residue = value.numerator * pow(value.denominator, -1, self.modulus) % self.modulus
        return float(residue - self.modulus if residue > self.modulus // 2 else residue)

    def multiply(self, x: Residues, y: Residues) -> Residues:
        """The entrywise product; |x y| < 2^44, so it is exact before the reduction."""
        return self.reduce(np.multiply(x, y))

    def matmul(self, x: Residues, y: Residues) -> Residues:
        """The matrix product `x @ y` (batched like NumPy's), exact for every length.

        Each block of at most `exact_terms` products is summed exactly and reduced; the running sum
        stays a residue, the spare one in the bound of `exact_terms`.
        """
        length, step = x.shape[-1], self.exact_terms
        if length <= step:
            return self.reduce(np.matmul(x, y))
        total = self.reduce(np.matmul(x[..., :step], y[..., :step, :]))
        for start in range(step, length, step):
            block = np.matmul(x[..., start : start + step], y[..., start : start + step, :])
            total = self.reduce(total + block)
        return total

    def inverse(self, x: Residues) -> Residues:
        """The entrywise inverse x^(p−2) (Fermat); a zero entry is an error, never 0."""
        x = np.asarray(x, dtype=np.float64)
        if not np.all(x):
            raise ZeroResidueError(f"a residue to be inverted is 0 mod {self.modulus}")
        return self.power(x, self.modulus - 2)

    def power(self, x: Residues, exponent: int) -> Residues:
        """The entrywise power, negative exponents by inversion."""
        if exponent < 0:
            return self.power(self.inverse(x), -exponent)
        result, square = np.ones_like(x), x
        while exponent:
            if exponent & 1:
                result = self.multiply(result, square)
            exponent >>= 1
            if exponent:
                square = self.multiply(square, square)
        return result

    def random(self, seed: int, label: str, shape: tuple[int, ...]) -> Residues:
        """Uniform residues from the stream of `seed` and `label`.

        The stream is SHAKE-256 of a fixed text, cut into little-endian 32-bit words, masked to the
        bits of p − 1; words that are not below p are passed over. It is defined here because a
        library's generators change between versions, and a certificate must not.
        """
        p, count = self.modulus, math.prod(shape)
        mask = (1 << (p - 1).bit_length()) - 1
        hasher = hashlib.shake_256(f"{_STREAM}|{seed}|{label}".encode())
        words = int(count * (mask + 1) / p * 1.05) + 64
        while True:
            drawn = np.frombuffer(hasher.digest(4 * words), dtype="<u4") & np.uint32(mask)
            drawn = drawn[drawn < p]
            if drawn.size >= count:
                return self.from_integers(drawn[:count].astype(np.int64)).reshape(shape)
            words *= 2


def _is_prime(n: int) -> bool:
    """Primality by trial division: n < 2^23, so at most 2,896 divisions."""
    return n > 1 and all(n % q for q in range(2, math.isqrt(n) + 1))


def _prime_below(n: int) -> int:
    return next(q for q in range(n - 1, 1, -1) if _is_prime(q))
