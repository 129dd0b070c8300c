"""That floats have the exponentials which are read as numbers.

Where a mask is not written as one (docs/explanation/engine/maxima-and-masks.md) its constant is a
number like any other: softmax(x − m) with m = (0, 10⁹) sees, in real numbers, e^(x₁ − 10⁹). The
function that is run does not, since floats have 0 for it, and its dimension is another one. So
where constants are large, the arguments of all exponentials that no mask hides are evaluated in
floats at random real points: each has to lie within the range of float64 at one of them. Where
inputs choose what is masked, the rows of those that mask nothing have to have the rank of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from neuromanifold.algebra.cells.points import real_point
from neuromanifold.algebra.modular import ModularFunction, Obligation
from neuromanifold.algebra.modular.formal.columns import visible
from neuromanifold.algebra.modular.formal.elements import Formal
from neuromanifold.certificates.cells import MOST_PATTERNS, pieces, real_inputs
from neuromanifold.certificates.jacobian import SPARE_ROWS, rank_of_rows
from neuromanifold.certificates.point import Point
from neuromanifold.certificates.program import checked_program, weight_leaves
from neuromanifold.networks.network import Network

FLOATS = "exponentials in floats"
# e^±709 is about the largest number, and the least, that float64 has with all its digits.
_LARGEST = 700.0
# Attempts at points whose entries are about 1, and a quarter of that.
_ATTEMPTS = (0, 1, 4, 5, 12, 13, 16, 17)


def all_obligations(network: Network, point: Point, batch: int) -> tuple[Obligation, ...]:
    """What has to be shown for a network, with the ranks that do."""
    return (*point.obligations(network, batch), *float_obligations(network, point, batch))


def float_obligations(network: Network, point: Point, batch: int) -> tuple[Obligation, ...]:
    """That no exponential which is read as a number is 0 or infinite in floats.

    None if there is none, or no constant is so large. Where inputs choose what is masked, the rows
    of those that mask nothing have to have the rank of all.
    """
    program = checked_program(network, batch)
    if network.architecture or not _steps(program) or program.largest_constant < _LARGEST:
        return ()
    given = () if point.given is None else weight_leaves(network, point.given.values)
    if pieces(network) is None:
        seen = _seen(program, given, {})
        return (Obligation(FLOATS, len(seen), int(seen.sum())),)
    arrays, first = point.branches(network, MOST_PATTERNS).arrays, len(network.tensors)
    first += len(real_inputs(network))
    flags = [
        _seen(program, given, {first + j: x[k] for j, x in enumerate(arrays)})
        for k in range(MOST_PATTERNS)
    ]
    kept = tuple(k for k, seen in enumerate(flags) if seen.all())
    if len(kept) in (0, MOST_PATTERNS):
        seen = np.concatenate(flags)
        return (Obligation(FLOATS, len(seen), int(seen.sum())),)
    rows = max(MOST_PATTERNS, network.columns + SPARE_ROWS)
    ranks = (rank_of_rows(network, replace(point, chosen=c), rows) for c in ((), kept))
    return (Obligation(FLOATS, *ranks),)


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
