"""That large negative constants hide what they are added to.

A constant such as −10⁹ in an exponent is read as minus infinity. Whether it is still so low there
may not show: exp((x + 20000) − 20000) is exp(x). So the function is evaluated in floats at random
real points as it is, and with minus infinity in place of all such constants: if they hide what is
behind them, nothing changes, to the last bit of one compiled program. Where infinities meet and
there is no value, they are 2, 3, 4, … times as low instead, other ones wherever one is used: two
that cancel do so no more. A piecewise function is one for each pattern of branches
(docs/explanation/engine/maxima-and-masks.md).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Float

from neuromanifold.algebra.cells.piecewise import flat
from neuromanifold.algebra.cells.points import real_point
from neuromanifold.algebra.modular import Obligation
from neuromanifold.certificates.cells import with_branches
from neuromanifold.networks.network import Network

MASKS = "masks"
# Attempts at points whose entries are about 1 or smaller: what is far larger may outgrow a mask.
_ATTEMPTS = (0, 1, 4, 5, 8, 9, 10, 11)
# How many times as low the constants are at their first use, and how many more at each later one.
_TIMES = ((1.0, 0.0), (np.inf, 0.0), (2.0, 1.0))


def mask_obligations(
    network: Network,
    weights: Float[np.ndarray, " columns"] | None,
    masks: tuple[float, ...],
    branches: Sequence[np.ndarray],
) -> tuple[Obligation, ...]:
    """That constants which were read as masks are some; none if there are none.

    Args:
        network: the network.
        weights: the given weights, if there are any.
        masks: the constants.
        branches: those of a piecewise network at several inputs, along their first axis: each
            pattern has to show it, as a function of all inputs.
    """
    if network.architecture is not None or not masks:
        return ()
    if not branches:
        return _shown(network, None if weights is None else weights.tobytes(), masks)
    flat_rows = np.concatenate([x.reshape(len(x), -1) for x in branches], axis=1)
    firsts = np.unique(flat_rows, axis=0, return_index=True)[1]
    return _at_points(network, weights, masks, [x[firsts] for x in branches])


@lru_cache(maxsize=128)
def _shown(
    network: Network, weights: bytes | None, masks: tuple[float, ...]
) -> tuple[Obligation, ...]:
    return _at_points(network, None if weights is None else np.frombuffer(weights), masks, ())


def _at_points(
    network: Network,
    weights: Float[np.ndarray, " columns"] | None,
    masks: tuple[float, ...],
    branches: Sequence[np.ndarray],
) -> tuple[Obligation, ...]:
    given = None if weights is None else network.assemble(weights)
    evaluated, shapes = _program(network, masks)
    shapes = (shapes[0], shapes[1][0] if branches else shapes[1])
    met: Any = False
    with jax.enable_x64(True):
        for attempt in _ATTEMPTS:
            at, x = real_point(attempt, "masks", shapes)
            leaves = jax.tree.leaves((at if given is None else given, x))
            values, infinite, lower = (
                _rows(evaluated(times, leaves, list(branches))) for times in _TIMES
            )
            has_value = np.isfinite(values).all(axis=1)
            others = np.where(np.isnan(infinite).any(axis=1, keepdims=True), lower, infinite)
            if (values != others)[has_value].any():
                return (Obligation(MASKS, len(masks), 0),)
            met = met | has_value
    return (Obligation(MASKS, len(masks), len(masks) * bool(np.all(met))),)


def _rows(arrays: Sequence[Any]) -> Float[np.ndarray, "patterns entries"]:
    return np.concatenate([np.reshape(array, (len(array), -1)) for array in arrays], axis=1)


@lru_cache(maxsize=128)
def _program(network: Network, masks: tuple[float, ...]) -> tuple[Callable[..., list[Any]], Any]:
    """The network with constants so many times as low, at several branches, and its shapes."""
    cells = with_branches(network)
    evaluated = _evaluated(flat(cells.apply, *cells.shapes).jaxpr, masks)

    def at_branches(times: Any, leaves: Sequence[Any], branches: Sequence[Any]) -> list[Any]:
        if not branches:  # a function of whole numbers may have none
            return [jnp.asarray(x)[None] for x in evaluated(times, *leaves)]
        return jax.vmap(partial(evaluated, times, *leaves))(*branches)

    return jax.jit(at_branches), cells.shapes


def _evaluated(closed: ClosedJaxpr, masks: Sequence[float]) -> Callable[..., list[Any]]:
    """The function of a flat jaxpr, with some constants so many times as low."""
    jaxpr = closed.jaxpr
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    sizes = np.abs(masks)  # what is subtracted is a mask too

    def evaluated(times: tuple[Any, Any], *leaves: Any) -> list[Any]:
        values = dict(zip(jaxpr.invars, leaves, strict=True))
        uses = count()

        def value_of(atom: Any) -> Any:
            if not isinstance(atom, Literal) and atom in values:
                return values[atom]
            array = np.asarray(atom.val if isinstance(atom, Literal) else constants[atom])
            if array.dtype.kind != "f" or not (is_mask := np.isin(np.abs(array), sizes)).any():
                return array
            factor = times[0] + times[1] * next(uses)
            return jnp.where(is_mask, array * jnp.where(is_mask, factor, 1.0), array)

        for equation in jaxpr.eqns:
            result = equation.primitive.bind(*map(value_of, equation.invars), **equation.params)
            results = result if equation.primitive.multiple_results else [result]
            values.update(zip(equation.outvars, results, strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    return evaluated
