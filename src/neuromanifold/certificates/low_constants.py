"""That large negative constants hide what they are added to.

A constant such as −10⁹ in an exponent is read as minus infinity. Whether it is still so low there
may not show: exp((x + 20000) − 20000) is exp(x). So the function is evaluated in floats at random
real points as it is, and with all such constants twice as low: if they hide what is behind them,
nothing changes (docs/explanation/engine/maxima-and-masks.md).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
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
_SAME = 1e-9
_LOWEST = float(np.finfo(np.float64).min)


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
    as_it_is, lowered = (jax.jit(_evaluated(closed, what)) for what in ((), masks))
    met = False
    with jax.enable_x64(True):
        for attempt in _ATTEMPTS:
            at, x = real_point(attempt, "masks", network.shapes)
            leaves = jax.tree.leaves((at if given is None else given, _whole(attempt, x, network)))
            values, others = as_it_is(*leaves), lowered(*leaves)
            if np.isfinite(np.concatenate([np.ravel(value) for value in values])).all():
                if not all(map(_is_same, values, others)):
                    return (Obligation(MASKS, len(masks), 0),)
                met = True
    return (Obligation(MASKS, len(masks), len(masks) * met),)


def _is_same(value: Any, other: Any) -> bool:
    value, other = np.asarray(value), np.asarray(other)
    bound = _SAME * np.abs(value).max(initial=0.0)
    return bool((np.abs(value - other) <= bound).all())


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
    """The function of a flat jaxpr, with some constants twice as low."""

    def lowered(array: Any) -> Any:
        if getattr(array, "dtype", np.dtype(bool)).kind != "f":
            return array
        twice = 2 * np.maximum(np.asarray(array, np.float64), _LOWEST / 2)
        return np.where(np.isin(array, masks), twice, array)

    def evaluated(*leaves: Any) -> list[Any]:
        jaxpr = closed.jaxpr
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
