"""That a function has a value at some real point.

Over a prime field √(−1 − x²) is as good as √(1 + x²), but there is no function of which its rank is
the dimension. Where a function takes roots or logarithms, it is evaluated in floats at random real
points; it is analytic around one at which it has a value (docs/explanation/engine/square-roots.md).
"""

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.cells.piecewise import names
from neuromanifold.algebra.cells.points import normal
from neuromanifold.algebra.modular import Obligation
from neuromanifold.algebra.modular.tracing import traced
from neuromanifold.networks.network import Network

REAL_VALUES = "real values"
_PARTIAL = frozenset({"sqrt", "rsqrt", "log", "log1p", "pow", "acosh", "atanh"})
_POINTS = 96
_SIZES = (1.0, 4.0, 0.25, 16.0, 0.0625, 1e-3)


@lru_cache(maxsize=128)
def value_obligations(network: Network, weights: bytes | None) -> tuple[Obligation, ...]:
    """An obligation that is not met, if no real point with a value was found; else none.

    Args:
        network: the network, without branches.
        weights: the given weights as float64, if there are any.
    """
    if network.architecture is not None:
        return ()
    if not names(traced(network.apply, network.shapes)[0].jaxpr) & _PARTIAL:
        return ()
    given = None if weights is None else network.assemble(np.frombuffer(weights))
    function = jax.jit(network.apply)
    with jax.enable_x64(True):
        for attempt in range(_POINTS):
            at, x = (
                _drawn(attempt, what, shapes)
                for what, shapes in zip(("weights", "inputs"), network.shapes, strict=True)
            )
            if _is_finite(function(at if given is None else given, x)):
                return ()
    return (Obligation(REAL_VALUES, 1, 0),)


def _drawn(attempt: int, what: str, shapes: Any) -> Any:
    """Normal numbers of several sizes, and in every other attempt their absolute values."""
    leaves, structure = jax.tree.flatten(shapes)
    size, sign = _SIZES[attempt // 2 % len(_SIZES)], np.abs if attempt % 2 else np.asarray
    return jax.tree.unflatten(
        structure,
        [
            sign(size * normal(attempt, f"real {what} {k}", leaf.shape))
            for k, leaf in enumerate(leaves)
        ],
    )


def _is_finite(outputs: Any) -> bool:
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(outputs))
