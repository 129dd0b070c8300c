"""How far the invariants of two functions are apart, each compared with what rounding explains.

Every distance is relative to the matrices compared, so it lies between 0 and 2, and so does what it
is compared with: the tolerance is the noise of both matrices relative to their sizes. It counts a
whole unit of rounding for every entry: more than three times the root mean square of one rounding.
Three answers: `agree` up to the tolerance, if that is well below one; `differ` from 8 times the
tolerance on; `unclear` in between, and whenever the tolerance is not well below one.

Lightning without skip shows its virtual weights up to rescaling (eq-13): there directions are
compared, and one number more, the factor ρ ∏ λ_i^{3^{l-i}} that must be 1.

The floats as they are have no noise: there a distance is 0 or 1, and the tolerance 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import exp, log

import flint
import numpy as np

from neuromanifold.fibers.invariants import Invariant
from neuromanifold.networks.virtual import degrees

FACTOR = "the size"
"""The name of the number ρ ∏ λ_i^{3^{l-i}}."""
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
    compare = _direction_agreement if scale_free else agreement
    found = [compare(one, other) for one, other in zip(first, second, strict=True)]
    if scale_free and all(one.size for one in (*first, *second)):
        rescalings = [
            None if one.exact is None or other.exact is None else one.exact.factor_to(other.exact)
            for one, other in zip(first, second, strict=True)
        ]
        known = [factor for factor in rescalings if factor is not None]
        if first[0].exact is None:
            found.append(_factor(first, second, found))
        elif len(known) == len(first):
            found.append(Agreement(FACTOR, float(not _rescale_each_other(known)), 0.0))
    return found


def agreement(one: Invariant, other: Invariant) -> Agreement:
    """‖B − B'‖ over the larger norm; exponents far apart leave only the larger."""
    if one.exact is not None and other.exact is not None:
        return Agreement(one.name, float(not one.exact.equals(other.exact)), 0.0)
    if not one.size or not other.size:
        return _of_zero(one, other)
    shift = int(np.clip(other.exponent - one.exponent, -2000, 2000))
    with np.errstate(over="ignore", under="ignore"):
        B, s = (np.ldexp(x, min(-shift, 0)) for x in (one.array, one.noise))
        C, r = (np.ldexp(x, min(shift, 0)) for x in (other.array, other.noise))
    size = max(float(np.linalg.norm(B)), float(np.linalg.norm(C)))
    return Agreement(one.name, float(np.linalg.norm(B - C)) / size, float(s + r) / size)


def paired(forms: Sequence[Invariant], clear: float) -> tuple[tuple[int, int], ...]:
    """The pairs with 2^{k−1} M_k = ± 2^{m−1} M_m (softmax-inner-fibers), unless clearly apart.

    That is `clear` times what rounding explains, and any difference of the floats as they are.
    """
    return tuple(
        (k, m)
        for (k, first), (m, second) in combinations(enumerate(forms, start=1), 2)
        if first.size or second.size
        for found in [agreement(first, second.times(s * 2.0 ** (m - k))) for s in (1, -1)]
        if found.distance <= clear * found.tolerance
    )


def _direction_agreement(one: Invariant, other: Invariant) -> Agreement:
    """The distance of the directions, with the better sign."""
    if not one.size or not other.size:
        return _of_zero(one, other)
    if one.exact is not None and other.exact is not None:
        return Agreement(one.name, float(one.exact.factor_to(other.exact) is None), 0.0)
    B, C = one.array / one.size, other.array / other.size
    distance = float(np.linalg.norm(B - np.copysign(1.0, np.vdot(B, C)) * C))
    return Agreement(one.name, distance, one.relative_noise + other.relative_noise)


def _of_zero(one: Invariant, other: Invariant) -> Agreement:
    """The distance where one of the two is zero."""
    tolerance = one.relative_noise + other.relative_noise
    return Agreement(one.name, float(one.size != other.size), tolerance)


def _factor(
    first: Sequence[Invariant], second: Sequence[Invariant], found: Sequence[Agreement]
) -> Agreement:
    """|ρ ∏ λ_i^{3^{l-i}} − 1|: logarithms add up with their powers, and so do their errors."""
    powers = degrees(len(first) - 1)
    logarithm, sign = 0.0, 1.0
    for power, one, other in zip(powers, first, second, strict=True):
        binary = log(2.0) * (other.exponent - one.exponent)
        logarithm += power * (log(other.size / one.size) + binary)
        sign *= float(np.copysign(1.0, np.vdot(one.array, other.array)))
    tolerance = sum(power * part.tolerance for power, part in zip(powers, found, strict=True))
    distance = 2.0 if sign < 0 else min(1.0, abs(exp(min(abs(logarithm), 50.0)) - 1))
    return Agreement(FACTOR, float(distance), float(tolerance))


def _rescale_each_other(factors: Sequence[Fraction]) -> bool:
    """Whether ρ ∏ λ_i^{3^{l-i}} = 1, without writing the product down (eq-13).

    It is ρ P_l with P_i = λ_i P_{i-1}³ and P_1 = λ_1: so P_l = 1/ρ, and from P_i follows P_{i-1},
    the only real cube root of P_i/λ_i, if that is rational.
    """
    *rescalings, rho = factors
    product = 1 / rho
    for factor in reversed(rescalings[1:]):
        root = _cube_root(product / factor)
        if root is None:
            return False
        product = root
    return product == rescalings[0]


def _cube_root(value: Fraction) -> Fraction | None:
    """The rational cube root, if there is one."""
    parts = [int(flint.fmpz(abs(n)).root(3)) for n in (value.numerator, value.denominator)]
    root = Fraction(*parts) * (1 if value > 0 else -1)
    return root if root**3 == value else None
