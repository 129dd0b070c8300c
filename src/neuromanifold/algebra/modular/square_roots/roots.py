"""Square roots mod p.

Every residue that is a square has two roots; which one stands for √x is fixed by the residue, so
that equal radicands get equal roots.
"""

from functools import lru_cache

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField, Residues


@lru_cache(maxsize=2)
def _table(modulus: int) -> np.ndarray:
    """For each residue 0 … p−1 its root in 1 … (p−1)/2, 0 for 0, and −1 for a non-square.

    y² < 2^46 fits an int64. 32 MB at the largest prime.
    """
    roots = np.full(modulus, -1, dtype=np.int32)
    y = np.arange((modulus + 1) // 2, dtype=np.int64)
    roots[y * y % modulus] = y
    return roots


def square_root(x: Residues, field: PrimeField) -> Residues:
    """The root of each entry that lies in 1 … (p−1)/2; −1 where there is none."""
    roots = np.take(_table(field.modulus), np.asarray(x, dtype=np.int64), mode="wrap")
    return np.asarray(roots, dtype=np.float64)
