"""Convolutions of balls, and sums and extremes over windows."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb

from neuromanifold.algebra.balls.arrays import product
from neuromanifold.algebra.balls.lifting import BallRule, OfTwo, reduced
from neuromanifold.algebra.balls.order import larger, smaller
from neuromanifold.algebra.modular.rules.windows import convolution, window_axes, windows


def _convolution(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
    return [convolution(equation)(product, *operands)]


def _over_windows(function: OfTwo, outside: float) -> BallRule:
    """A reduction of each window by an operation of two balls."""

    def rule(equation: Any, operands: Sequence[np.ndarray]) -> list[Any]:
        axes = window_axes(equation)
        taken = windows(axes, 0, arb(outside))(operands[0])
        return [reduced(function, outside, taken, range(1, 2 * len(axes), 2))]

    return rule


WINDOWS: dict[str, BallRule] = {
    "conv_general_dilated": _convolution,
    "reduce_window_max": _over_windows(larger, -np.inf),
    "reduce_window_min": _over_windows(smaller, np.inf),
    "reduce_window_sum": _over_windows(operator.add, 0.0),
}
