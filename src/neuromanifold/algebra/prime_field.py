"""Residues mod p as balanced float64 numbers: reduction, products, inverses, and a residue stream.

Exactness. A float64 holds every integer up to 2^53. Let p < 2^23 be an odd prime. Balanced residues
have |x| ≤ (p−1)/2; residues after the single pass of `reduce_once` have |x| ≤ s = (p+3)/2, the
`slack_bound`, and zero is still the only one that vanishes mod p when p > 3. A product of two is at
most s² ≤ 2^44; a sum of k of them is exact, in whatever order it is taken, while k s² ≤ 2^53.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np
from flint import fmpz
from jaxtyping import Float64

from neuromanifold.errors import ArgumentError, NeuromanifoldError

Residues = Float64[np.ndarray, "..."]

PRIME_LIMIT = 2**23
EXACT_INTEGERS = 2**53  # every integer up to here in absolute value is a float64
_ONE_PASS = 2**51  # integers below this in absolute value are balanced by one pass of `reduce_once`
_LAST_HALVES = 4  # up to 2^4 residues are inverted one by one
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
        if not fmpz(p).is_prime():
            first, second = primes_below(PRIME_LIMIT, 2)
            raise ArgumentError(f"{p} is not a prime; take {first} or {second}, the largest")

    @property
    def slack_bound(self) -> int:
        """The bound s = (p+3)/2 on what `reduce_once` returns: two more than a balanced residue."""
        return (self.modulus + 3) // 2

    @property
    def exact_terms(self) -> int:
        """How many products of residues a float64 sums exactly, with a residue to spare.

        A sum of k products and one residue, each within s, must be fit for another reduction:
        k s² + s ≤ 2^53 − s. At p = 8388593 that is k = 512.
        """
        s = self.slack_bound
        return (EXACT_INTEGERS - 2 * s) // s**2

    def reduce_once(self, x: Residues, scratch: Residues) -> None:
        """Replace integers |x| ≤ 2^53 − s by residues |r| ≤ s, balanced ones where |x| < 2^51.

        Let u = 2^-53. The computed x (1/p) is off from x/p by at most |x/p| (2u + u²), so q, the
        integer nearest to it, leaves |x − q p| ≤ p/2 + |x| (2u + u²) < p/2 + 2: an integer, so at
        most s = (p+3)/2. Hence |q p| ≤ 2^53, and product and difference are exact. Moreover x/p is
        at least 1/(2p) from every half-integer, p being odd, so for |x| < 2^51 the rounding picks
        the nearest integer to x/p itself and the result is balanced.

        Args:
            x: the integers, overwritten by their residues.
            scratch: an array of the same shape whose content is lost.
        """
        p = float(self.modulus)
        np.multiply(x, 1.0 / p, out=scratch)
        np.rint(scratch, out=scratch)
        np.multiply(scratch, p, out=scratch)
        np.subtract(x, scratch, out=x)

    def reduce(self, x: Residues) -> Residues:
        """The balanced residues of integers |x| ≤ 2^53 − s held in floats.

        The first pass leaves at most s < 2^51, which the second one balances.
        """
        residues = np.array(x, dtype=np.float64)
        scratch = np.empty_like(residues)
        self.reduce_once(residues, scratch)
        self.reduce_once(residues, scratch)
        return residues

    def balanced(self, x: Residues) -> Residues:
        """The balanced residues of integers |x| < 2^51, in one pass and in the place of x."""
        self.reduce_once(x, np.empty_like(x))
        return x

    def from_integers(self, values: object) -> Residues:
        """The residues of integers of any size (nested lists of ints, or an integer array)."""
        array = np.asarray(values)
        if array.dtype == object:
            flat = [int(v) % self.modulus for v in array.ravel()]
            array = np.array(flat, dtype=np.int64).reshape(array.shape)
        elif array.dtype.kind not in "iub":
            raise ArgumentError(f"integers were wanted; got dtype {array.dtype}")
        wide = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
        residues = np.mod(wide, self.modulus).astype(np.float64)
        return np.where(residues > self.modulus // 2, residues - self.modulus, residues)

    def from_fraction(self, value: Fraction | int) -> float:
        """The residue of a rational number whose denominator p does not divide."""
        value = Fraction(value)
        if value.denominator % self.modulus == 0:
            raise ZeroResidueError(f"the denominator of {value} is 0 mod {self.modulus}")
        residue = value.numerator * pow(value.denominator, -1, self.modulus) % self.modulus
        return float(residue - self.modulus if residue > self.modulus // 2 else residue)

    def from_floats(self, values: np.ndarray) -> Residues:
        """The residues of finite floats as the dyadic numbers m·2^e that they are.

        2 is invertible mod p, so each one has a residue: (m·2^53 mod p)(2^(e−53) mod p).
        """
        mantissas, exponents = np.frexp(np.asarray(values, dtype=np.float64))
        whole = self.from_integers((mantissas * 2.0**53).astype(np.int64))
        low, high = int(exponents.min(initial=0)), int(exponents.max(initial=0))
        powers = [pow(2, e - 53, self.modulus) for e in range(low, high + 1)]
        table = self.from_integers(np.array(powers, dtype=np.int64))
        return self.multiply(whole, np.asarray(table[exponents - low]))

    def multiply(self, x: Residues, y: Residues) -> Residues:
        """The entrywise product; |x y| ≤ 2^44, so it is exact and one pass balances it."""
        return self.balanced(np.asarray(np.multiply(x, y)))

    def matmul(self, x: Residues, y: Residues) -> Residues:
        """The matrix product `x @ y` (batched like NumPy's), exact for every length.

        Each block of at most `exact_terms` products is summed exactly; the running sum is a residue
        again after each block, the spare one in the bound of `exact_terms`. Up to 127 products sum
        to less than 2^51.
        """
        length, step = x.shape[-1], self.exact_terms
        if length * self.slack_bound**2 < _ONE_PASS:
            return self.balanced(np.asarray(np.matmul(x, y)))
        if length <= step:
            return self.reduce(np.matmul(x, y))
        total = self.reduce(np.matmul(x[..., :step], y[..., :step, :]))
        for start in range(step, length, step):
            block = np.matmul(x[..., start : start + step], y[..., start : start + step, :])
            total = self.reduce(total + block)
        return total

    def inverse(self, x: Residues) -> Residues:
        """The entrywise inverse; a zero entry is an error, never 0, and NaN stays NaN."""
        x = np.asarray(x, dtype=np.float64)
        if not x.all():
            raise ZeroResidueError(f"a residue to be inverted is 0 mod {self.modulus}")
        known = ~np.isnan(x)
        if known.all():
            return self._inverses(x.ravel()).reshape(x.shape)
        inverses = np.full(x.shape, np.nan)
        inverses[known] = self._inverses(x[known])
        return inverses

    def _inverses(self, x: Residues) -> Residues:
        """Inverses of a vector, by those of half as many products: 1/a = b/(ab) and 1/b = a/(ab).

        Three products an entry in all, and a few inverses by Euclid's algorithm. Ones at the end
        make every half whole.
        """
        halvings = max(0, (len(x) - 1).bit_length() - _LAST_HALVES)
        products = np.concatenate([x, np.ones(-len(x) % 2**halvings)])
        pairs: list[Residues] = []
        for _ in range(halvings):
            pairs.append(products.reshape(2, -1))
            products = self.multiply(*pairs[-1])
        inverses = np.array([pow(int(a), -1, self.modulus) for a in products], dtype=np.float64)
        inverses = self.balanced(inverses)
        for pair in reversed(pairs):
            inverses = self.multiply(inverses, pair[::-1]).ravel()
        return inverses[: len(x)]

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
                return self.balanced(drawn[:count].astype(np.float64)).reshape(shape)
            words *= 2


def primes_below(n: int, count: int) -> tuple[int, ...]:
    """The largest primes below n, as many as are wanted, in decreasing order."""
    return tuple(islice((q for q in range(n - 1, 1, -1) if fmpz(q).is_prime()), count))
