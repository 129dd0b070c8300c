"""Floats are dyadic numbers: when they are equal modulo enough primes, they are equal."""

import math

import numpy as np

from neuromanifold.algebra.prime_field import PRIME_LIMIT, primes_below


def depth(values: np.ndarray) -> int:
    """The least E ≥ 0 for which 2^E times every entry is whole."""
    mantissa, exponent = np.frexp(values[values != 0])
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    _, lowest = np.frexp((whole & -whole).astype(np.float64))  # 2^(lowest − 1) divides exactly
    return max(0, int(np.max(54 - exponent - lowest, initial=0)))


def primes_beyond(bits: float) -> tuple[int, ...]:
    """Primes whose product exceeds 2^bits: a whole number below that, zero modulo all, is zero.

    There are 1,796 primes between 2^22.995 and 2^23; each counts for 22.99 bits, and one is spare.
    """
    return primes_below(PRIME_LIMIT, math.ceil(bits / 22.99) + 1)
