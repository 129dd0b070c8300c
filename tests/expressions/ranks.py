"""Ranks of Jacobians in many digits."""

import mpmath
import numpy as np

from expressions.digits import Digits, SkippedError


def rank_in_digits(function, weights, inputs, digits=50):
    """The rank at these weights by differences in many digits, or None without a clear gap."""
    with mpmath.workdps(digits):
        step = mpmath.mpf(10) ** -20

        def at(w, x):
            try:
                return function(Digits, w, {k: _exact(v) for k, v in x.items()})
            except ZeroDivisionError:  # by a truth value, say
                raise SkippedError from None

        rows = []
        for x in inputs:
            columns = []
            for k in range(len(weights)):
                sides = []
                for sign in (1, -1):
                    w = _exact(weights)
                    w[k] += sign * step
                    sides.append(at(w, x))
                columns.append((sides[0] - sides[1]) / (2 * step))
            rows += list(np.stack(columns, axis=1))
        return _pivots(np.stack(rows))


def _exact(values):
    array = np.empty(np.shape(values), dtype=object)
    array.reshape(-1)[:] = [mpmath.mpf(x) for x in np.asarray(values).reshape(-1).tolist()]
    return array


def _pivots(matrix):
    """The number of pivots above 10^-12, if all others are below 10^-18, of rows of size one."""
    largest = [max(map(abs, row)) for row in matrix]
    if any(1e-25 < size <= 1e-15 for size in largest):  # neither zero nor far from it
        return None
    matrix = np.array([row / s for row, s in zip(matrix, largest, strict=True) if s > 1e-15])
    rank = 0
    while matrix.size:
        sizes = np.array([[float(abs(e)) for e in row] for row in matrix])
        i, j = np.unravel_index(np.argmax(sizes), sizes.shape)
        if sizes[i, j] < 1e-18:
            break
        if sizes[i, j] < 1e-12:
            return None
        pivot = matrix[i]
        matrix = np.array([r - pivot * (r[j] / pivot[j]) for k, r in enumerate(matrix) if k != i])
        rank += 1
    return rank
