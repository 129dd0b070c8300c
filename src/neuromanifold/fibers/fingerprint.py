"""The fingerprint of a function: a hash of what all weights on its fiber share.

What enters is what the function determines (`fibers.determined`): virtual weights as far as they
are seen, or the table of one lightning layer, each as a direction and the logarithm of its size;
where lightning rescales, directions up to sign and one logarithm for all. These are continuous, so
they are rounded to a few decimals before they are hashed.

The promise. Two weights of one function that both have a fingerprint have the same one; so unequal
fingerprints prove unequal functions, up to rounding. Equal fingerprints mean that all these numbers
agree to the decimals that entered. To keep this, there is no fingerprint (`none`, with the reason)
where a number lies so close to the boundary between two rounded values that rounding the weights
could carry it across, where no theorem says what the function determines, and for the zero function
up to rounding.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.fibers.agreement import UNDECIDED_FACTOR
from neuromanifold.fibers.determined import determined
from neuromanifold.fibers.evidence import is_scale_free, is_zero, weight_facts
from neuromanifold.fibers.invariants import Invariant, invariants, kind_of
from neuromanifold.fibers.units import in_units
from neuromanifold.networks.weights import Weights

DIGITS = 4
"""Decimals that enter the hash."""

_COMPUTED = 1e-12
"""The error of the arithmetic here, relative to numbers of ordinary size."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
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

    def __str__(self) -> str:
        if self.hash is None:
            return f"Fingerprint none: {self.reason}."
        return (
            f"Fingerprint {self.hash} of {len(self.values)} invariants rounded to {DIGITS} decimals."
        )

    def to_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "hash": self.hash,
            "reason": self.reason,
            "digits": DIGITS,
            "values": self.values.tolist(),
        }


def fingerprint(weights: Weights) -> Fingerprint:
    """The fingerprint of the function of `weights` (eq-6)."""
    architecture = weights.architecture
    if kind_of(architecture) is None:
        return _none("no invariants are known for several heads or residual skips in depth")
    found = invariants(in_units(weights))
    facts = weight_facts(weights, found)
    if is_zero(architecture, facts):
        return _hashed(np.zeros(0), np.zeros(0), "zero")
    shown = determined(architecture, facts)
    if not shown.seen or shown.seen | shown.unseen < {one.name for one in found}:
        return _none("no theorem says what the function determines at these weights")
    seen = [one for one in found if one.name in shown.seen]
    if any(not one.size or one.relative_noise * UNDECIDED_FACTOR >= 1 for one in seen if one.noise):
        return _none("rounding the weights changes what the function determines by its whole size")
    scale_free = is_scale_free(architecture)
    values, bounds = _numbers(seen, scale_free=scale_free)
    return _hashed(values, bounds, architecture.attention)


def _none(reason: str) -> Fingerprint:
    return Fingerprint(None, np.zeros(0), np.zeros(0), reason)


def _numbers(
    seen: list[Invariant], *, scale_free: bool
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Directions and logarithms of sizes, with what rounding can do to each."""
    values, bounds = [], []
    logarithm, slack, sign = 0.0, 0.0, 1.0
    for i, one in enumerate(seen, start=1):
        noise = UNDECIDED_FACTOR * one.relative_noise + _COMPUTED
        direction = (one.matrix / one.size).ravel() if one.size else one.matrix.ravel()
        size = np.log(one.size) + one.exponent * np.log(2.0) if one.size else 0.0
        if scale_free:
            axis = np.random.default_rng(i).standard_normal(direction.size)
            side = float(axis @ direction)
            # a sign that rounding could turn is a number at a boundary
            values.append(np.array([0.5 * 10.0**-DIGITS if abs(side) <= noise * np.linalg.norm(axis) else 0.0]))
            bounds.append(np.array([_COMPUTED]))
            direction = direction * np.copysign(1.0, side)
            sign *= np.copysign(1.0, side)
            weight = 3.0 ** (len(seen) - 1 - i) if i < len(seen) else 1.0
            logarithm, slack = logarithm + weight * size, slack + weight * noise
        else:
            values.append(np.array([size]))
            bounds.append(np.array([noise]))
        values.append(direction)
        bounds.append(np.full(direction.size, noise))
    if scale_free:
        values.append(np.array([logarithm, sign]))
        bounds.append(np.array([slack + _COMPUTED * abs(logarithm), _COMPUTED]))
    return np.concatenate(values), np.concatenate(bounds)


def _hashed(
    values: Float[np.ndarray, " n"], bounds: Float[np.ndarray, " n"], kind: str
) -> Fingerprint:
    """The hash of the rounded numbers, or none where one of them may round either way."""
    scaled = values * 10.0**DIGITS
    whole = np.rint(scaled)
    if np.any(np.abs(scaled - whole) + bounds * 10.0**DIGITS >= 0.5):
        reason = "rounding the weights could change a decimal that enters the hash"
        return Fingerprint(None, values, bounds, reason)
    text = kind + " ".join(str(int(k)) for k in whole)
    return Fingerprint(hashlib.sha256(text.encode()).hexdigest()[:16], values, bounds, None)
