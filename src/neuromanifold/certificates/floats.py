"""That floats have the exponentials which are read as numbers.

Where a mask is not written as one (docs/explanation/engine/maxima-and-masks.md) its constant is a
number like any other: softmax(−x) with 10⁹ for an entry of x sees, in real numbers, e^−10⁹. The
function that is run does not, since floats have 0 for it, and its dimension is another one. So
where constants are large, the arguments of all exponentials that no mask hides are evaluated in
floats at random real points: each has to lie within the range of float64 at one of them.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from neuromanifold.algebra.cells.points import real_point
from neuromanifold.algebra.modular import ModularFunction, Obligation
from neuromanifold.algebra.modular.formal.columns import visible
from neuromanifold.algebra.modular.formal.elements import Formal
from neuromanifold.networks.network import Network

FLOATS = "exponentials in floats"
# e^±709 is about the largest number, and the least, that float64 has with all its digits.
_LARGEST = 700.0
# Attempts at points whose entries are about 1, and a quarter of that.
_ATTEMPTS = (0, 1, 4, 5, 12, 13, 16, 17)


def float_obligations(
    network: Network,
    program: ModularFunction,
    weights: Sequence[Any],
    branches: Mapping[int, Any],
) -> tuple[Obligation, ...]:
    """That no exponential which is read as a number is 0 or infinite in floats.

    None if there is no exponential, or no constant is so large.

    Args:
        network: the network.
        program: the rows of its Jacobian.
        weights: the leaves of the given weights; none for random ones.
        branches: those of a piecewise network, by the number of their leaf.
    """
    if network.architecture or not _steps(program) or program.largest_constant < _LARGEST:
        return ()
    seen = _seen(program, weights, branches)
    return (Obligation(FLOATS, len(seen), int(seen.sum())),)


def _seen(
    program: ModularFunction, weights: Sequence[Any], branches: Mapping[int, Any]
) -> np.ndarray:
    """Which exponentials and error functions of one sample floats have at a few real points.

    Args:
        program: the rows of the Jacobian.
        weights: the leaves of the given weights; none for random ones.
        branches: those of a piecewise network, by the number of their leaf.
    """
    steps, arguments = _steps(program), _arguments(program)
    within = [np.zeros(len(visible(step)), dtype=bool) for step in steps]
    for attempt in _ATTEMPTS:
        leaves = real_point(attempt, "floats", [np.zeros(shape) for shape in program.shapes])
        leaves[: len(weights)] = weights
        leaves = [
            np.array(np.broadcast_to(branches.get(k, leaf), shape), dtype=np.float64)
            for k, (leaf, shape) in enumerate(zip(leaves, program.shapes, strict=True))
        ]
        with jax.enable_x64(True):
            found = [np.asarray(u) for u in arguments(*leaves)]
        for step, u, seen in zip(steps, found, within, strict=True):
            one = u[0] if step.samples else u
            most = np.sqrt(_LARGEST) if step.kind == "erf" else _LARGEST  # erf u has e^−u²
            seen |= np.abs(one.reshape(-1)[visible(step)]) < most
    return np.concatenate(within)


def _steps(program: ModularFunction) -> list[Formal]:
    """The exponentials and error functions of a program."""
    return [f for f in program.formals if f.kind in ("exp", "erf") and f.variable is not None]


@lru_cache(maxsize=128)
def _arguments(program: ModularFunction) -> Any:
    """What these are taken of, in floats."""
    jaxpr = program.jaxpr.jaxpr.replace(outvars=[step.variable for step in _steps(program)])
    return jax.jit(jaxpr_as_fun(ClosedJaxpr(jaxpr, program.jaxpr.consts)))
