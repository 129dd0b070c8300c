"""The proof that a network's exponentials are independent (softmax-exact).

By Ax's theorem the exponentials of functions f_1, …, f_n of the weights and inputs are
algebraically independent over the rational functions when no non-trivial rational combination of
the f's is constant. A combination that depends on the weights alone would do harm too, since
samples share their weights. So take the difference of each f_k at two inputs (with two sets of
exponentials for earlier layers) and the same weights: row n has fresh weights W_n, and column k is
f_k(W_n, X_n) − f_k(W_n, X'_n). A combination that is a function of the weights alone is in the
kernel of this matrix, so full column rank mod p is a proof that there is none, for all layers at
once.
"""

import operator
from dataclasses import dataclass
from math import ceil

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.rank import rank
from neuromanifold.certificates.jacobian import SPARE_ROWS, Point, drawn
from neuromanifold.certificates.program import exponents_program
from neuromanifold.networks.network import Network

BATCH = 32
"""Points in one evaluation: the exponents are traced once, whatever their number."""


@dataclass(frozen=True, slots=True)
class Independence:
    """The outcome of the check.

    Attributes:
        columns: the number of distinct exponents that are not identically zero.
        rank: the rank of their differences; equal to `columns` it is the proof.
    """

    columns: int
    rank: int

    @property
    def proved(self) -> bool:
        """Whether the exponentials are proved independent."""
        return self.columns == self.rank


def independence(network: Network, point: Point, *, fixed_weights: bool = False) -> Independence:
    """Check the exponents of one sample, at fresh weights in every row, or at the point's own."""
    differences = exponent_differences(network, point, fixed_weights=fixed_weights)
    return Independence(differences.shape[1], rank(differences, point.field))


def exponent_differences(
    network: Network, point: Point, *, fixed_weights: bool = False
) -> Float[np.ndarray, "rows exponents"]:
    """The matrix of the module's docstring, one column for each distinct exponent."""
    exponents = exponents_program(network, BATCH)
    seen = ~np.asarray(exponents.masked)[0]
    rows = BATCH * ceil((int(seen.sum()) + SPARE_ROWS) / BATCH)
    if fixed_weights:
        vectors = np.broadcast_to(point.weights, (rows, network.columns))
    else:
        vectors = point.draw("independence weights", (rows, network.columns))

    def values(side: str) -> Float[np.ndarray, "rows columns"]:
        inputs = drawn(network.sample, point, f"independence inputs {side}", rows)
        exponentials = point.exponentials(f"independence {side}")
        parts = []
        for start in range(0, rows, BATCH):
            batch = operator.itemgetter(slice(start, start + BATCH))
            weights = network.assemble(batch(vectors), (BATCH,))
            samples = jax.tree.map(batch, inputs)
            parts.append(exponents(point.field, weights, samples, exponentials=exponentials))
        return np.concatenate(parts)[:, seen]

    first, second = values("first"), values("second")
    distinct = _distinct(np.concatenate([first, second]))
    return point.field.reduce(first[:, distinct] - second[:, distinct])


def _distinct(values: Float[np.ndarray, "points columns"]) -> np.ndarray:
    """The columns that are not zero at every point, one of those that agree at every point.

    Functions that agree at all of these random points are equal but for a chance of about p to the
    power of minus their number.
    """
    _, first = np.unique(values, axis=1, return_index=True)
    first.sort()
    return first[np.any(values[:, first], axis=0)]
