"""The fingerprint of a function: a hash of what all weights on its fiber share.

What enters is what the function determines (`fibers.determined`): virtual weights as far as they
are seen, or the table of one lightning layer, each as a direction and the logarithm of its size;
where lightning rescales, directions up to sign and one logarithm for all. These are continuous, so
they are rounded to a few decimals before they are hashed.

The promise, for networks of one skip and mask, which enter the hash too: two weights of one
function that both have a fingerprint have the same one; so unequal fingerprints prove unequal
functions, up to rounding. Equal fingerprints mean that all these numbers agree to the decimals that
entered. To keep this, there is no fingerprint (`none`, with the reason) where a number lies so
close to the boundary between two rounded values that rounding the weights could carry it across,
where no theorem says what the function determines, and for the zero function up to rounding.
"""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from neuromanifold.display import Displayed, Recorded
from neuromanifold.fibers.agreement import UNDECIDED_FACTOR
from neuromanifold.fibers.determined import determined, is_scale_free, is_zero, weight_facts
from neuromanifold.fibers.invariants import (
    Invariant,
    invariants,
    kind_of,
    rounded_layers,
)
from neuromanifold.fibers.units import in_units
from neuromanifold.networks.virtual import degrees
from neuromanifold.networks.weights import Weights

Numbers = Float[np.ndarray, " n"]

DIGITS = 4
"""Decimals that enter the hash."""

_COMPUTED = 1e-12
"""The error of the arithmetic here, relative to numbers of ordinary size."""


@dataclass(frozen=True, slots=True)
class Fingerprint(Displayed, Recorded):
    """Numbers that all weights of one function share, and a short hash of them.

    Attributes:
        hash: 16 hexadecimal digits, or None.
        values: the numbers before they are rounded.
        bounds: for each number how far rounding the weights can move it.
        reason: why there is no hash; None when there is one.
    """

    hash: str | None
    values: Float[np.ndarray, " n"]
    bounds: Float[np.ndarray, " n"]
    reason: str | None
    _json = "hash reason digits values"
    digits: ClassVar[int] = DIGITS

    def __str__(self) -> str:
        if self.hash is None:
            return f"Fingerprint none: {self.reason}."
        count = len(self.values)
        return f"Fingerprint {self.hash} of {count} invariants rounded to {DIGITS} decimals."


def fingerprint(weights: Weights) -> Fingerprint:
    """The fingerprint of the function of `weights` (eq-6)."""
    architecture = weights.architecture
    if kind_of(architecture) is None:
        return _none("no invariants are known for several heads or residual skips in depth")
    layers = rounded_layers(in_units(weights))
    found = invariants(layers, architecture, 1 / architecture.temperature)
    facts = weight_facts(weights, found)
    if is_zero(architecture, facts):
        return _hashed(np.zeros(0), np.zeros(0), "zero" + architecture.variation)
    shown = determined(architecture, facts)
    if not shown.seen or shown.seen | shown.unseen < {one.name for one in found}:
        return _none("no theorem says what the function determines at these weights")
    seen = [one for one in found if one.name in shown.seen]
    if any(not one.size or one.relative_noise * UNDECIDED_FACTOR >= 1 for one in seen if one.noise):
        return _none("rounding the weights changes what the function determines by its whole size")
    if not is_scale_free(architecture):
        return _hashed(*_sized(seen), architecture.kind)
    signs = [_sign(one, i) for i, one in enumerate(seen)]
    if 0 in signs:
        return _none("rounding the weights could turn the sign of a form")
    return _hashed(*_rescaled(seen, signs), architecture.kind)


def _none(reason: str) -> Fingerprint:
    return Fingerprint(None, np.zeros(0), np.zeros(0), reason)


def _bound(one: Invariant) -> float:
    """How far rounding the weights can move an entry of the direction, or the logarithm."""
    return UNDECIDED_FACTOR * one.relative_noise + _COMPUTED


def _logarithm(one: Invariant) -> float:
    return float(np.log(one.size) + one.exponent * np.log(2.0)) if one.size else 0.0


def _sized(seen: list[Invariant]) -> tuple[Numbers, Numbers]:
    """Directions and logarithms of sizes, with their bounds."""
    values: list[Numbers] = []
    bounds: list[Numbers] = []
    for one in seen:
        direction = one.array.ravel() / (one.size or 1.0)
        values.append(np.array([_logarithm(one), *direction]))
        bounds.append(np.full(1 + direction.size, _bound(one)))
    return np.concatenate(values), np.concatenate(bounds)


def _sign(one: Invariant, number: int) -> int:
    """On which side of a fixed random hyperplane the direction lies; 0 where rounding decides."""
    axis = np.random.default_rng(number).standard_normal(one.array.size)
    side = float(axis @ one.array.ravel()) / (one.size or 1.0)
    return 0 if abs(side) <= _bound(one) * np.linalg.norm(axis) else int(np.sign(side))


def _rescaled(seen: list[Invariant], signs: list[int]) -> tuple[Numbers, Numbers]:
    """Directions with positive sign, the logarithm of L ∏ M_i^{3^{l-i}}, and its sign (eq-13)."""
    powers = degrees(len(seen) - 1)
    directions = [
        sign * one.array.ravel() / one.size for one, sign in zip(seen, signs, strict=True)
    ]
    logarithm = sum(w * _logarithm(one) for w, one in zip(powers, seen, strict=True))
    slack = sum(w * _bound(one) for w, one in zip(powers, seen, strict=True))
    bounds = [np.full(one.array.size, _bound(one)) for one in seen]
    whole = [logarithm, float(np.prod(signs))]
    return (
        np.concatenate([*directions, whole]),
        np.concatenate([*bounds, [slack + _COMPUTED * abs(logarithm), _COMPUTED]]),
    )


def _hashed(values: Numbers, bounds: Numbers, kind: str) -> Fingerprint:
    """The hash of the rounded numbers, or none where one of them may round either way."""
    scaled = values * 10.0**DIGITS
    whole = np.rint(scaled)
    if np.any(np.abs(scaled - whole) + bounds * 10.0**DIGITS >= 0.5):
        reason = "rounding the weights could change a decimal that enters the hash"
        return Fingerprint(None, values, bounds, reason)
    text = kind + " ".join(str(int(k)) for k in whole)
    return Fingerprint(hashlib.sha256(text.encode()).hexdigest()[:16], values, bounds, None)
