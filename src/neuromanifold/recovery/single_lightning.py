"""One lightning layer from its black box (thm-3.2)."""

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.virtual import VirtualWeights
from neuromanifold.recovery.bilinear import Table, factor_table
from neuromanifold.recovery.oracle import BlackBox
from neuromanifold.recovery.result import Refusal, Solution


def recover_single_lightning(
    box: BlackBox, architecture: Architecture, generator: np.random.Generator
) -> Solution:
    """(A, V) up to rescaling, and both points when rank A = rank V = 1 (thm-3.2).

    The output token 1 at (x_1, x_2, 0, …) is V (x_1 x_1ᵀ + x_2 x_2ᵀ) A x_1. Its value less that at
    x_2 = 0 is the term linear in x_1 and quadratic in x_2, (V x_2)(Aᵀ x_2)ᵀ x_1: an exact
    difference, with no step size. Polarising in x_2 gives the table that `factor_table` factors.
    """
    if architecture.tokens < 2:
        raise Refusal("one token shows only the symmetric part of A; at least 2 are needed")
    points, condition = factor_table(_quadratic_terms(box, architecture), generator)
    return Solution(
        tuple(VirtualWeights((A,), V, architecture) for V, A in points),
        {"equations for the maps": condition},
    )


def _quadratic_terms(box: BlackBox, architecture: Architecture) -> Table:
    """T_jk = V_j ⊗ A_k + V_k ⊗ A_j from the values at x_2 = e_j and e_j + e_k, x_1 = e_m."""
    d, units = architecture.widths[0], np.eye(architecture.widths[0])
    table = np.empty((d, d, architecture.widths[-1], d))

    def first_output(x_1: np.ndarray, x_2: np.ndarray) -> np.ndarray:
        X = np.zeros((d, architecture.tokens))
        X[:, 0], X[:, 1] = x_1, x_2
        return box(X)[:, 0]

    for m, x_1 in enumerate(units):
        alone = first_output(x_1, np.zeros(d))
        squares = [first_output(x_1, x_2) - alone for x_2 in units]
        for j in range(d):
            table[j, j, :, m] = 2 * squares[j]
            for k in range(j):
                both = first_output(x_1, units[j] + units[k]) - alone
                table[j, k, :, m] = table[k, j, :, m] = both - squares[j] - squares[k]
    return table
