"""That large negative constants hide what they are added to.

A constant such as −10⁹ in an exponent is read as minus infinity. Whether it is still so low there
may not show: exp((x + 20000) − 20000) is exp(x). So the function is evaluated in floats at random
real points as it is, and with minus infinity in place of all such constants: if they hide what is
behind them, nothing changes, to the last bit of one compiled program. Where infinities meet and
there is no value, they are doubled instead (docs/explanation/engine/maxima-and-masks.md).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from neuromanifold.algebra.cells.piecewise import flat
from neuromanifold.algebra.cells.points import real_point
from neuromanifold.algebra.cells.whole import WholeInputs, range_of
from neuromanifold.algebra.modular import Obligation
from neuromanifold.certificates.features import freed
from neuromanifold.networks.network import Network

MASKS = "masks"
# Attempts at points whose entries are about 1 or smaller: what is far larger may outgrow a mask.
_ATTEMPTS = (0, 1, 4, 5, 8, 9, 10, 11)


@lru_cache(maxsize=128)
def mask_obligations(
    network: Network, weights: bytes | None, masks: tuple[float, ...]
) -> tuple[Obligation, ...]:
    """That constants which were read as masks are some; none if there are none.

    Args:
        network: the network, without branches.
        weights: the given weights as float64, if there are any.
        masks: the constants.
    """
    if network.architecture is not None or not masks:
        return ()
    network = freed(network)
    given = None if weights is None else network.assemble(np.frombuffer(weights))
    closed = flat(network.apply, *network.shapes).jaxpr
    evaluated = jax.jit(_evaluated(closed, masks))
    met = False
    with jax.enable_x64(True):
        for attempt in _ATTEMPTS:
            at, x = real_point(attempt, "masks", network.shapes)
            leaves = jax.tree.leaves((at if given is None else given, _whole(attempt, x, network)))
            values, infinite, twice = (
                _flat(evaluated(times, *leaves)) for times in (1.0, np.inf, 2.0)
            )
            if np.isfinite(values).all():
                others = twice if np.isnan(infinite).any() else infinite
                if not np.array_equal(values, others):
                    return (Obligation(MASKS, len(masks), 0),)
                met = True
    return (Obligation(MASKS, len(masks), len(masks) * met),)


def _flat(arrays: Any) -> np.ndarray:
    return np.concatenate([np.ravel(array) for array in arrays])


def _whole(attempt: int, inputs: Any, network: Network) -> Any:
    """The inputs, with whole numbers where the network takes those."""
    leaves, structure = jax.tree.flatten(inputs)
    drawn = []
    for x, example in zip(leaves, jax.tree.leaves(network.sample), strict=True):
        if (values := range_of(example)) is not None:
            found = WholeInputs([x.shape], [values]).drawn(attempt, [attempt])[0][0]
            x = found.astype(np.asarray(example).dtype)
        drawn.append(x)
    return jax.tree.unflatten(structure, drawn)


def _evaluated(closed: ClosedJaxpr, masks: Sequence[float]) -> Callable[..., list[Any]]:
    """The function of a flat jaxpr, with some constants so many times as low."""

    def evaluated(times: Any, *leaves: Any) -> list[Any]:
        jaxpr = closed.jaxpr

        def lowered(array: Any) -> Any:
            is_float = getattr(array, "dtype", np.dtype(bool)).kind == "f"
            if not is_float or not (is_mask := np.isin(array, masks)).any():
                return array
            return jnp.where(is_mask, array * jnp.where(is_mask, times, 1.0), array)

        values = dict(zip(jaxpr.constvars, map(lowered, closed.consts), strict=True))
        values.update(zip(jaxpr.invars, leaves, strict=True))

        def value_of(atom: Any) -> Any:
            return lowered(np.asarray(atom.val)) if isinstance(atom, Literal) else values[atom]

        for equation in jaxpr.eqns:
            result = equation.primitive.bind(*map(value_of, equation.invars), **equation.params)
            results = result if equation.primitive.multiple_results else [result]
            values.update(zip(equation.outvars, results, strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    return evaluated
