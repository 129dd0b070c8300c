"""How far the invariants of two functions are apart, each compared with what rounding explains.

Every distance is relative to the matrices compared, so it lies between 0 and 2, and so does what it
is compared with: the tolerance is a multiple of the noise of both matrices relative to their sizes.
Three answers: `agree` up to the tolerance, if that is well below one; `differ` from 8 times the
tolerance on; `unclear` in between, and whenever the tolerance is not well below one.

Lightning without skip shows its virtual weights up to rescaling (eq-13): there directions are
compared, and one number more, the factor ρ ∏ λ_i^{3^{l-i}} that must be 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from neuromanifold.fibers.invariants import Invariant
from neuromanifold.networks.virtual import degrees

SPREAD = 1.0
"""The tolerance in units of the noise, which counts a whole unit of rounding for every entry: more
than three times the root mean square of one correct rounding."""
UNDECIDED_FACTOR = 8.0
"""Distances between the tolerance and this multiple of it are unclear."""
LARGEST_TOLERANCE = 2.0**-4
"""A tolerance above this is not well below the size of what is compared: nothing agrees by it."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The distance of two functions in what they show.

    Attributes:
        name: of the invariant, or that these are outputs.
        distance: relative to the larger of the two, of their directions where scale is free.
        tolerance: the distance that rounding explains.
    """

    name: str
    distance: float
    tolerance: float

    @property
    def agree(self) -> bool:
        """Whether rounding explains the distance, and could not explain just any distance."""
        return bool(self.distance <= self.tolerance <= LARGEST_TOLERANCE)

    @property
    def differ(self) -> bool:
        """Whether rounding does not explain the distance."""
        return bool(self.distance > UNDECIDED_FACTOR * self.tolerance)

    @property
    def explained(self) -> bool:
        """Whether rounding may explain the distance, and could not explain just any distance."""
        return not self.differ and self.tolerance <= LARGEST_TOLERANCE

    @property
    def ratio(self) -> float:
        """The distance in units of the tolerance."""
        if self.distance == 0:
            return 0.0
        return float(self.distance / self.tolerance) if self.tolerance else np.inf

    def __str__(self) -> str:
        return f"distance {self.distance:.1e} in {self.name}, tolerance {self.tolerance:.1e}"


def agreements(
    first: Sequence[Invariant], second: Sequence[Invariant], *, scale_free: bool
) -> list[Agreement]:
    """The distances of all invariants, and with `scale_free` that of the factor (eq-13)."""
    if not scale_free:
        return [_values(one, other) for one, other in zip(first, second, strict=True)]
    found = [_directions(one, other) for one, other in zip(first, second, strict=True)]
    if all(one.size and other.size for one, other in zip(first, second, strict=True)):
        found.append(_factor(first, second, found))
    return found


def _tolerance(one: Invariant, other: Invariant) -> float:
    return SPREAD * (one.relative_noise + other.relative_noise)


def _values(one: Invariant, other: Invariant) -> Agreement:
    """‖B − B'‖ over the larger norm; exponents far apart leave only the larger."""
    if not one.size or not other.size:
        distance = 0.0 if one.size == other.size else 1.0
        return Agreement(one.name, distance, _tolerance(one, other))
    shift = int(np.clip(other.exponent - one.exponent, -2000, 2000))
    with np.errstate(over="ignore", under="ignore"):
        if shift <= 0:
            B, C, s, r = one.matrix, np.ldexp(other.matrix, shift), one.noise, other.noise
            noise = s + float(np.ldexp(r, shift))
        else:
            B, C, s, r = np.ldexp(one.matrix, -shift), other.matrix, one.noise, other.noise
            noise = float(np.ldexp(s, -shift)) + r
    size = max(float(np.linalg.norm(B)), float(np.linalg.norm(C)))
    return Agreement(one.name, float(np.linalg.norm(B - C)) / size, SPREAD * noise / size)


def _directions(one: Invariant, other: Invariant) -> Agreement:
    """The distance of the directions, with the better sign."""
    if not one.size or not other.size:
        distance = 0.0 if one.size == other.size else 1.0
        return Agreement(one.name, distance, _tolerance(one, other))
    B, C = one.matrix / one.size, other.matrix / other.size
    distance = float(np.linalg.norm(B - np.copysign(1.0, np.vdot(B, C)) * C))
    return Agreement(one.name, distance, _tolerance(one, other))


def _factor(
    first: Sequence[Invariant], second: Sequence[Invariant], found: Sequence[Agreement]
) -> Agreement:
    """|ρ ∏ λ_i^{3^{l-i}} − 1|: logarithms add up with their powers, and so do their errors."""
    powers = degrees(len(first) - 1)
    logarithm, sign = 0.0, 1.0
    for power, one, other in zip(powers, first, second, strict=True):
        binary = log(2.0) * (other.exponent - one.exponent)
        logarithm += power * (log(other.size / one.size) + binary)
        sign *= float(np.copysign(1.0, np.vdot(one.matrix, other.matrix)))
    tolerance = sum(power * part.tolerance for power, part in zip(powers, found, strict=True))
    distance = 2.0 if sign < 0 else min(1.0, abs(exp(min(abs(logarithm), 50.0)) - 1))
    return Agreement("the size", float(distance), float(tolerance))
