"""Floating-point numbers are dyadic rationals, so they have residues modulo every odd prime."""

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField


def residues(array: np.ndarray, field: PrimeField) -> np.ndarray:
    """The residues of finite floats, exact: x = m 2^e with |m| < 2^53 whole, so (m mod p)(2^e).

    `frexp` gives |m| in [1/2, 1), so m 2^53 is whole; float64 holds every narrower float exactly.
    """
    mantissa, exponent = np.frexp(array.astype(np.float64))
    whole = field.from_integers(np.asarray(np.ldexp(mantissa, 53), dtype=np.int64))
    powers, where = np.unique(exponent, return_inverse=True)
    table = [pow(2, int(power) - 53, field.modulus) for power in powers]
    factors = field.from_integers(np.array(table, np.int64))[where.reshape(array.shape)]
    return field.multiply(whole, factors)
