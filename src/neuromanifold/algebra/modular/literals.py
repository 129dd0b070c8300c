"""Floating-point constants as rational numbers, and those as residues.

A program says 1/3 by writing the nearest float. A finite float x is therefore read as

- itself, when it has so few bits that no rounding made it (0.375, 10^6, 123456789); below 10^-12
  they may be what rounding left, and are listed;
- the rational number q = ± 2^k a/b with odd a and b up to `HEIGHT` that lies within one unit in the
  last place of x, when there is one (0.1, 1/3); up to `HEIGHT_SINGLE` in single precision;
- its exact dyadic value otherwise (1/√2, π, e^36, the single-precision e); those are listed, since
  the function that is evaluated then contains the float and not the number which it may stand for.

So 2x is read as twice what x is read as, whatever x is, and 2(xy) − (2x)y is zero as in floats.
Half precision has too few bits to tell a number from what it was rounded from: its floats are
themselves, and listed.

Where numbers of the last two kinds meet, as 1/3, 0.3 and the float of their difference, the
function is neither that of the floats nor that of what they stand for; so ranks are found
`in_floats` too.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import frexp, ulp
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.errors import ArgumentError

# Of every a/b one multiple by a power of 2 lies between 1/2 and 1, 0.2 HEIGHT² in all (of pairs of
# odd numbers 8/π² are coprime). Two units in the last place are 2^-52 there, so a random float64
# meets one of them with probability below 0.4 · 10^12 · 2^-52 < 10^-4.
HEIGHT = 10**6
# The same for float32 (2^-23) with probability below 0.4 · 10^4 · 2^-23 < 10^-3.
HEIGHT_SINGLE = 100
# What is rounded to single precision ends in ten zeros once in 2^10 times; what is rounded to
# double precision is a whole number below 2^40 once in 2^12 times.
_FEW_BITS = 14
# What is rounded to bfloat16 ends in six zeros once in 2^6 times: 1, 2, 3/4 and the like.
_FEW_BITS_HALF = 2
_SINGLE = 24
# Beyond 2^±64 no fraction is meant, but an end of the range of floats.
_LARGEST_POWER = 64
_LARGEST_WHOLE = 2**40
# Entries this much smaller than the largest of their array are suspected to be rounding noise.
NOISE = 1e-12


def rational_near(x: float, ulp: float, height: int) -> Fraction | None:
    """The number ± 2^k a/b with odd a and b of at most this height within `ulp` of `x`, if any.

    With 1/2 ≤ |x| 2^-k < 1 the denominator in lowest terms is b, or it belongs to a numerator up to
    `height` and is at most 2 `height`. Two such numbers differ relatively by height^-2 / 4 or more,
    far above two units in the last place, so there is at most one, and the best approximation with
    a bounded denominator finds it.
    """
    mantissa, power = frexp(x)
    if abs(power) > _LARGEST_POWER:
        return None
    near = Fraction(mantissa).limit_denominator(2 * height)
    is_low = 0 < max(_odd(near.numerator), _odd(near.denominator)) <= height
    near *= Fraction(2) ** power
    return near if is_low and abs(near - Fraction(x)) <= Fraction(ulp) else None


def _odd(n: int) -> int:
    """The absolute value without its factors 2."""
    return abs(n) // max(1, n & -n)


Precision = type[np.float32] | type[np.float64]


@dataclass(frozen=True)
class RationalArray:
    """An array of rational numbers, each distinct one stored once.

    Attributes:
        distinct: the distinct numbers.
        places: for each entry the index of its number.
        dyadic: the floats that were read as their exact dyadic value.
        suspects: those so small, beside the array's largest entry or by themselves, that they may
            be rounding noise, as cos(π/2) = 6·10^-17 in a Fourier matrix, or 0.1 + 0.2 − 0.3.
        floats: for each distinct number the float that was read as it.
        inverted: whether the distinct numbers are their reciprocals.
    """

    distinct: tuple[Fraction, ...]
    places: np.ndarray
    dyadic: tuple[float, ...]
    suspects: tuple[float, ...] = ()
    floats: tuple[Fraction, ...] = ()
    inverted: bool = False

    @property
    def reciprocal(self) -> "RationalArray":
        """The array of 1/q for each entry q; no entry may be zero."""
        inverses = tuple(1 / q for q in self.distinct)
        return replace(self, distinct=inverses, inverted=not self.inverted)

    def in_floats(self, precision: Precision) -> "RationalArray":
        """The array with the floats themselves; those of single precision are known by reading."""
        if self.inverted:
            return self.reciprocal.in_floats(precision).reciprocal
        numbers = self.floats or self.distinct
        if precision is np.float32:
            pairs = zip(self.distinct, numbers, strict=True)
            numbers = tuple(x if x == q else _single(x) for q, x in pairs)
        return replace(self, distinct=numbers)

    def residues(self, field: PrimeField) -> Residues:
        """The entries mod p."""
        try:
            table = np.array([field.from_fraction(q) for q in self.distinct], dtype=np.float64)
        except ZeroResidueError as error:
            raise ArgumentError(
                f"a constant of the function has no residue: {error}; take another prime"
            ) from None
        return np.asarray(table[self.places])


def _single(x: Fraction) -> Fraction:
    """The float of single precision that a constant was before it was widened."""
    return Fraction(float(np.float32(float(x))))


def rational_array(values: np.ndarray) -> RationalArray:
    """The finite entries of an integer, Boolean or float array, read by the rule of this module."""
    compact = values[tuple(slice(0, 1) if step == 0 else slice(None) for step in values.strides)]
    distinct, places = np.unique(compact, return_inverse=True)
    places = np.broadcast_to(places.reshape(compact.shape), values.shape)
    if distinct.dtype.kind in "iub":
        return RationalArray(tuple(Fraction(int(v)) for v in distinct), places, ())
    readings = [_reading(x) for x in distinct.tolist()]
    dyadic = [x for x, (_, as_float) in zip(distinct.tolist(), readings, strict=True) if as_float]
    noise = NOISE * float(np.abs(distinct).max(initial=0.0))
    small = {x for x in distinct.tolist() if 0 < abs(x) < noise}
    suspects = tuple(sorted(small.union(filter(_is_noise, dyadic))))
    numbers = tuple(number for number, _ in readings)
    floats = tuple(map(Fraction, distinct.tolist()))
    return RationalArray(numbers, places, tuple(dyadic), suspects, floats)


def _reading(x: float) -> tuple[Fraction, bool]:
    """The number that a finite float is read as, and whether that is the float's dyadic value."""
    bits, exact = _bits(x), Fraction(x)
    is_long = bits > _SINGLE
    if bits <= _FEW_BITS or (is_long and x.is_integer() and abs(x) < _LARGEST_WHOLE):
        return exact, _is_noise(x)
    near = rational_near(x, last_place(x), HEIGHT if is_long else HEIGHT_SINGLE)
    return (exact, True) if near is None else (near, False)


def _is_noise(x: float) -> bool:
    """Whether a number is as small as what rounding leaves of 0.1 + 0.2 − 0.3.

    Numbers of order 1 leave a few units of 2^-53; numbers below 2^-64 are ends of the range of
    floats, such as the least normal one of single precision.
    """
    return 2.0**-_LARGEST_POWER <= abs(x) < NOISE


def precisions_of(arrays: Iterable[RationalArray]) -> tuple[Precision, ...]:
    """The precisions whose floats are there as their exact values, beside numbers that are not.

    Then the function is neither that of the floats nor that of the numbers they stand for. What has
    few bits may be a difference of floats of single precision, if it is not very simple.
    """
    exact, rounded = list[float](), False
    for array in arrays:
        numbers = array.reciprocal.distinct if array.inverted else array.distinct
        same = [q == x for q, x in zip(numbers, array.floats or numbers, strict=True)]
        rounded |= not all(same)
        exact += [float(q) for q, is_same in zip(numbers, same, strict=True) if is_same]
    if not rounded:
        return ()
    are_long = {_bits(x) > _SINGLE for x in exact if not is_plain(x)}
    return tuple(np.float64 if is_long else np.float32 for is_long in sorted(are_long))


def is_plain(x: float) -> bool:
    """Whether no rounding made a number: whole ones, those of very few bits, and infinities."""
    is_whole = abs(x) < _LARGEST_WHOLE and x.is_integer()
    return not np.isfinite(x) or is_whole or _bits(x) <= _FEW_BITS_HALF


def last_place(x: float) -> float:
    """One unit in the last place: of single precision, if x is a number of that."""
    return ulp(x) if _bits(x) > _SINGLE else ulp(x) * 2 ** (53 - _SINGLE)


def _bits(x: float) -> int:
    """How many binary digits a float has between its first and its last that are not 0."""
    return _odd(int(frexp(x)[0] * 2**53)).bit_length()


def rounded_halves(constants: Iterable[Any]) -> tuple[float, ...]:
    """The finite floats of half precision, or less, that may stand for another number."""
    arrays = [
        np.asarray(x, dtype=float)
        for x in constants
        if jax.dtypes.issubdtype(getattr(x, "dtype", bool), np.floating) and x.dtype.itemsize <= 2
    ]
    floats = {x for array in arrays for x in array.reshape(-1).tolist() if np.isfinite(x)}
    return tuple(sorted(x for x in floats if _bits(x) > _FEW_BITS_HALF))


def in_float64(array: Any) -> Any:
    """A constant with every other type of float turned into float64; other arrays as they are."""
    is_float = jax.dtypes.issubdtype(getattr(array, "dtype", np.dtype(bool)), np.floating)
    if not is_float or array.dtype == np.float64:
        return array
    return widen(array.astype(np.float32)) if array.dtype.itemsize <= 4 else array.astype(float)


def with_float64(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a primitive that ask for any type of real or complex floats ask for float64."""

    def mended(value: Any) -> Any:
        is_type = isinstance(value, (np.dtype, type)) and not isinstance(value, bool)
        if is_type and jax.dtypes.issubdtype(value, np.inexact):
            return np.dtype(np.float64)
        return value

    return {name: mended(value) for name, value in params.items()}


def widen(values: np.ndarray) -> np.ndarray:
    """Single-precision constants in float64: 0.1 there is meant as 0.1, not as 0.100000001.

    The float nearest to a rational number of height up to `HEIGHT_SINGLE` becomes the float64
    nearest to that; others keep their value. So what was there before is known.
    """
    distinct, places = np.unique(values, return_inverse=True)
    table = [_wide(x) if np.isfinite(x) else x for x in distinct.tolist()]
    return np.asarray(np.array(table, dtype=np.float64)[places]).reshape(values.shape)


def _wide(x: float) -> float:
    wide = float(_reading(x)[0])
    return wide if float(np.float32(wide)) == x else x
