"""The rank of a matrix of whole numbers, over the rationals, from ranks modulo primes.

A rank mod q is at most the rank over the rationals. If it is at most r for several primes, all
minors of size r + 1 are divisible by their product; once that exceeds what such a minor can be
(Hadamard: the product of the lengths of its rows), they vanish, and the rank is r. Elimination in
whole numbers gives the same with entries as long as those minors, which takes far longer.
"""

from math import gcd, prod

import flint
import numpy as np

from neuromanifold.algebra.prime_field import primes_below

LARGEST_PRIME = 2**63 - 25
"""The largest prime below 2^63; python-flint takes moduli below 2^64."""


def integer_rank(matrix: np.ndarray) -> int:
    """The rank of a matrix of Python's whole numbers.

    >>> integer_rank(np.array([[2, 4], [3, 6]], dtype=object))
    1
    """
    matrix = _primitive(_primitive(matrix).T).T
    rows, columns = matrix.shape
    entries = flint.fmpz_mat(rows, columns, [int(x) for x in matrix.ravel()])
    squares = sorted((int(row @ row) for row in matrix), reverse=True)
    rank, q, product = 0, LARGEST_PRIME + 1, 1
    while rank < min(rows, columns):
        (q,) = primes_below(q, 1)
        rank, product = max(rank, flint.nmod_mat(entries, q).rank()), product * q
        if product**2 > prod(squares[: rank + 1]):
            break
    return rank


def flint_rank(matrix: np.ndarray, prime: int) -> int:
    """The rank mod p of a matrix of whole numbers, by python-flint."""
    rows, columns = matrix.shape
    entries = np.mod(matrix, prime).astype(np.int64).ravel().tolist()
    return flint.nmod_mat(rows, columns, entries, prime).rank() if entries else 0


def _primitive(matrix: np.ndarray) -> np.ndarray:
    """The rows that are not zero, each divided by what its entries have in common."""
    kept = [row // gcd(*row) for row in matrix if row.any()]
    return np.array(kept, dtype=object).reshape(len(kept), matrix.shape[1])
