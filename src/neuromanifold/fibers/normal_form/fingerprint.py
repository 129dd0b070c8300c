"""The fingerprint of a function: invariants that all weights on its fiber share, and their hash.

The invariants are values of the function itself at fixed inputs, so they agree on the whole fiber
(eq-6), whatever relates its weights. On equal tokens, X = x 1ᵀ, softmax shows L alone and lightning
L with the symmetric parts of the forms; distinct tokens show the rest. Each output counts as its
direction and the logarithm of its size.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.fibers.normal_form.comparable import in_float64
from neuromanifold.networks.probe import (
    log_sizes,
    outputs,
    random_inputs,
    rounding_effect,
    well_scaled,
)
from neuromanifold.networks.traits import is_homogeneous
from neuromanifold.networks.weights import Weights

DIGITS = 4
"""Decimals that enter the hash."""

_INPUTS = 3
_SEED = 0
_ZERO = 1e-10


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Invariants of a function and a short hash of them.

    Two weights of one function have invariants that agree up to rounding, and the same hash unless
    an invariant lies within rounding of a boundary between two rounded values; unequal hashes are
    therefore no proof of unequal functions, which `fibers.same_function` decides.

    Attributes:
        equal_tokens: directions and logarithms of sizes of the outputs on equal tokens.
        distinct_tokens: the same on distinct tokens.
        hash: 16 hexadecimal digits.
    """

    equal_tokens: Float[np.ndarray, " m"]
    distinct_tokens: Float[np.ndarray, " n"]
    hash: str

    def __str__(self) -> str:
        count = len(self.equal_tokens) + len(self.distinct_tokens)
        return f"Fingerprint {self.hash} of {count} invariants rounded to {DIGITS} decimals."

    def to_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "hash": self.hash,
            "digits": DIGITS,
            "equal_tokens": self.equal_tokens.tolist(),
            "distinct_tokens": self.distinct_tokens.tolist(),
        }


def fingerprint(weights: Weights) -> Fingerprint:
    """The fingerprint of the function of `weights` (eq-6)."""
    weights = in_float64(weights)
    distinct = random_inputs(weights.architecture, _INPUTS, _SEED)
    equal = np.repeat(distinct[:, :, :1], weights.architecture.tokens, axis=2)
    found = [_invariants(weights, inputs) for inputs in (equal, distinct)]
    rounded = np.concatenate(found).round(DIGITS) + 0.0  # adding 0.0 turns −0.0 into 0.0
    text = " ".join(f"{value:.{DIGITS}f}" for value in rounded)
    return Fingerprint(*found, hash=hashlib.sha256(text.encode()).hexdigest()[:16])


def _invariants(weights: Weights, inputs: Float[np.ndarray, "n d t"]) -> Float[np.ndarray, " m"]:
    """Direction and logarithm of the size of every output; a zero output counts as zeros.

    An output counts as zero when a relative change of the weights by `_ZERO` could have made it.
    """
    scaled = inputs
    if is_homogeneous(weights.architecture):
        scaled = well_scaled(weights, inputs)
    values = outputs(weights, scaled)
    sizes = np.linalg.norm(values, axis=(1, 2))
    zero = sizes <= _ZERO * rounding_effect(weights, scaled, _SEED)
    divisors = np.where(zero, 1.0, sizes)
    logs = np.log(divisors)
    if is_homogeneous(weights.architecture):
        logs = np.where(zero, 0.0, log_sizes(weights, inputs))
    directions = np.where(zero[:, None, None], 0.0, values / divisors[:, None, None])
    return np.concatenate([directions.ravel(), logs])
