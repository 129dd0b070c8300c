"""That floats have the exponentials which are read as numbers.

Where a mask is not written as one (docs/explanation/engine/maxima-and-masks.md) its constant is a
number like any other: softmax(x − m) with m = (0, 10⁹) sees, in real numbers, e^(x₁ − 10⁹). The
function that is run does not, since floats have 0 for it, and its dimension is another one. So
where constants are large, the arguments of all exponentials that no mask hides are evaluated in
floats at random real points: each has to lie within the range of float64 at one of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from neuromanifold.algebra.cells.points import real_point
from neuromanifold.algebra.modular import ModularFunction, Obligation
from neuromanifold.algebra.modular.formal.columns import visible
from neuromanifold.algebra.modular.formal.elements import Formal

FLOATS = "exponentials in floats"
# e^±709 is about the largest number, and the least, that float64 has with all its digits.
_LARGEST = 700.0
# Attempts at points whose entries are of several sizes, from 1 down to a thousandth.
_ATTEMPTS = (0, 1, 4, 5, 8, 9, 10, 11)


def float_obligations(
    program: ModularFunction,
    weights: Sequence[Any] | None,
    patterns: Iterable[Mapping[int, Any]],
) -> tuple[Obligation, ...]:
    """That each exponential which is read as a number is neither 0 nor infinite in floats.

    None if there is none, or no constant is so large.

    Args:
        program: the rows of the Jacobian.
        weights: the leaves of the given weights as floats, if there are any.
        patterns: the branches of a piecewise network, by the number of their leaf: inputs may
            choose what is masked, and nothing needs to be seen in all of them.
    """
    steps = _steps(program)
    if not steps or program.largest_constant < _LARGEST:
        return ()
    arguments, within = _arguments(program), [np.zeros(len(visible(f)), bool) for f in steps]
    for fixed, attempt in product(patterns, _ATTEMPTS):
        leaves = real_point(attempt, "floats", [np.zeros(shape) for shape in program.shapes])
        leaves[: len(weights or ())] = weights or ()
        leaves = [np.asarray(fixed.get(k, leaf), np.float64) for k, leaf in enumerate(leaves)]
        with jax.enable_x64(True):
            found = [np.asarray(u) for u in arguments(*leaves)]
        for step, u, seen in zip(steps, found, within, strict=True):
            one = u[0] if step.samples else u
            most = np.sqrt(_LARGEST) if step.kind == "erf" else _LARGEST  # erf u has e^−u²
            seen |= np.abs(one.reshape(-1)[visible(step)]) < most
    flags = np.concatenate(within)
    return (Obligation(FLOATS, len(flags), int(flags.sum())),)


def _steps(program: ModularFunction) -> list[Formal]:
    """The exponentials and error functions of a program."""
    return [f for f in program.formals if f.kind in ("exp", "erf") and f.variable is not None]


@lru_cache(maxsize=128)
def _arguments(program: ModularFunction) -> Any:
    """What these are taken of, in floats."""
    jaxpr = program.jaxpr.jaxpr.replace(outvars=[step.variable for step in _steps(program)])
    return jax.jit(jaxpr_as_fun(ClosedJaxpr(jaxpr, program.jaxpr.consts)))
