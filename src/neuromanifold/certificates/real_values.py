"""That a function has a value at some real point.

Over a prime field √(−1 − x²) is as good as √(1 + x²), but there is no function of which its rank is
the dimension. Where a function takes roots or logarithms, or asks whether values are finite, it is
evaluated in balls at random real points; it is analytic around one at which it has a value, and
what is taken to be finite is so (docs/explanation/engine/square-roots.md).
"""

from functools import lru_cache

import numpy as np

from neuromanifold.algebra.cells.piecewise import flat, names
from neuromanifold.algebra.cells.points import real_point
from neuromanifold.algebra.cells.proof import Decided
from neuromanifold.algebra.modular import Obligation
from neuromanifold.networks.network import Network

REAL_VALUES = "real values"
_PARTIAL = frozenset({"sqrt", "rsqrt", "log", "log1p", "pow", "acosh", "atanh"})
_ASKING = frozenset({"is_finite", "eq", "ne", "ge", "gt", "le", "lt"})
_POINTS = 96


@lru_cache(maxsize=128)
def value_obligations(network: Network, weights: bytes | None) -> tuple[Obligation, ...]:
    """An obligation that is not met, if no real point with a value was found; else none.

    Args:
        network: the network, without branches.
        weights: the given weights as float64, if there are any.
    """
    if network.architecture is not None:
        return ()
    if not names(network.program.jaxpr) & (_PARTIAL | _ASKING):
        return ()
    given = None if weights is None else network.assemble(np.frombuffer(weights))
    decided = Decided(flat(network.apply, *network.shapes), 1)
    for attempt in range(_POINTS):
        at, x = real_point(attempt, "real values", network.shapes)
        if decided.holds_at(at if given is None else given, x):
            return ()
    return (Obligation(REAL_VALUES, 1, 0),)
