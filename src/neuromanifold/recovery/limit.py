"""The value at 0 of a smooth function that can be evaluated at positive arguments only."""

from collections.abc import Callable

import numpy as np


def value_at_zero(
    function: Callable[[float], np.ndarray], *, reach: float, nodes: int
) -> np.ndarray:
    """The interpolating polynomial at Chebyshev nodes in (0, reach], evaluated at 0.

    Exact for polynomials of degree below `nodes`. Errors of the function grow by the sum of the
    absolute values of Lagrange's weights: Lebesgue's constant, at most (2/π) log(nodes) + 1.
    """
    points = reach * (1 - np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)) / 2
    terms = []
    for i, u in enumerate(points):
        others = np.delete(points, i)
        terms.append(float(np.prod(others / (others - u))) * function(float(u)))
    return np.sum(terms, axis=0)
