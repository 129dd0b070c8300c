"""Windows that slide over an array: convolutions and sums.

Along one axis entry k of window o lies at o·stride + k·dilation − padding in the array spread out
by its own dilation. The tables of these positions are known; what is left is taking entries, and
matrix products or sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.recorder import Recorder, Rule, Shape, Value
from neuromanifold.algebra.modular.rules.contraction import Product
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.algebra.prime_field import Residues


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """How windows slide along one axis.

    Attributes:
        size: the length of the array.
        windows: the number of windows.
        window: the number of entries of each.
        stride: the distance between two windows.
        padding: the zeros before the array.
        dilation: the distance between two entries of a window.
        spread: the distance between two entries of the array.
    """

    size: int
    windows: int
    window: int
    stride: int
    padding: int
    dilation: int
    spread: int

    @property
    def positions(self) -> np.ndarray:
        """For each window and entry its place in the array; `size` for a zero outside."""
        place = (
            np.arange(self.windows)[:, None] * self.stride
            + np.arange(self.window) * self.dilation
            - self.padding
        )
        inside = (place >= 0) & (place % self.spread == 0) & (place // self.spread < self.size)
        return np.where(inside, place // self.spread, self.size)


def windows(
    axes: Sequence[WindowAxis], first: int, outside: Any = 0.0
) -> Callable[[np.ndarray], np.ndarray]:
    """Takes all windows along `axes`, which begin at axis `first`: (…, o_1, k_1, o_2, k_2, …)."""
    tables = [axis.positions for axis in axes]

    def take(x: np.ndarray) -> np.ndarray:
        for i, table in enumerate(tables):
            place = first + 2 * i
            edge = np.full((*x.shape[:place], 1, *x.shape[place + 1 :]), outside, x.dtype)
            x = np.take(np.concatenate([x, edge], axis=place), table, axis=place)
        return x

    return take


def window_axes(equation: Any) -> list[WindowAxis]:
    """The axes of a reduction over windows."""
    params = equation.params
    return [
        WindowAxis(*sizes)
        for sizes in zip(
            equation.invars[0].aval.shape,
            equation.outvars[0].aval.shape,
            params["window_dimensions"],
            params["window_strides"],
            [low for low, _ in params["padding"]],
            params["window_dilation"],
            params["base_dilation"],
            strict=True,
        )
    ]


def _reduce_window_sum(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """The sum over a window of n entries is at most n h, exact for n up to 2^30."""
    x, shape = recorder.finite(values[0], equation), equation.outvars[0].aval.shape
    axes = window_axes(equation)
    take, entries = windows(axes, 0), tuple(range(1, 2 * len(axes), 2))

    def total(setting: Setting, a: Residues) -> Residues:
        return setting.field.reduce(np.asarray(take(a).sum(axis=entries)))

    return [recorder.emit(total, [x], shape, degree=1)]


def _convolution(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A convolution, by matrix products that `PrimeField.matmul` keeps exact at every length."""
    x, kernel = (recorder.finite(value, equation) for value in values)
    product = convolution(equation)

    def convolve(setting: Setting, a: Residues, b: Residues) -> Residues:
        return np.ascontiguousarray(product(setting.field.matmul, a, b))

    return [recorder.emit(convolve, [x, kernel], equation.outvars[0].aval.shape, degree=2)]


def convolution(equation: Any) -> Callable[[Product, np.ndarray, np.ndarray], np.ndarray]:
    """A convolution as one matrix product for each group of features.

    Groups of the batch (which derivatives by the kernel have) are groups of features when each part
    of the batch is laid beside the others as further features.
    """
    left, right = (variable.aval.shape for variable in equation.invars)
    params, shape = equation.params, equation.outvars[0].aval.shape
    numbers = params["dimension_numbers"]
    of_batch, groups = params["batch_group_count"], params["feature_group_count"]
    rows, features = (left[i] for i in numbers.lhs_spec[:2])
    axes = [
        WindowAxis(left[i], shape[o], right[k], stride, low, dilation, spread)
        for i, k, o, stride, (low, _), dilation, spread in zip(
            numbers.lhs_spec[2:],
            numbers.rhs_spec[2:],
            numbers.out_spec[2:],
            params["window_strides"],
            params["padding"],
            params["rhs_dilation"],
            params["lhs_dilation"],
            strict=True,
        )
    ]
    multiply = _grouped(axes, rows // of_batch, of_batch * groups, right[numbers.rhs_spec[0]])

    def convolve(product: Product, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a = a.transpose(numbers.lhs_spec)
        spatial = a.shape[2:]
        a = a.reshape(of_batch, rows // of_batch, features, *spatial).swapaxes(0, 1)
        a = a.reshape(rows // of_batch, of_batch * features, *spatial)
        result = multiply(product, a, b.transpose(numbers.rhs_spec))
        return result.transpose(np.argsort(numbers.out_spec))

    return convolve


def _grouped(
    axes: Sequence[WindowAxis], batch: int, groups: int, outputs: int
) -> Callable[[Product, np.ndarray, np.ndarray], np.ndarray]:
    """Batch × features × space with outputs × features/groups × window: batch × outputs × space."""
    take, n = windows(axes, 2), len(axes)
    space: Shape = tuple(axis.windows for axis in axes)
    window = prod(axis.window for axis in axes)
    # (batch, groups, features, o_1, k_1, …) ↦ groups, (batch, o…), (features, k…)
    order = [1, 0, *range(3, 3 + 2 * n, 2), 2, *range(4, 4 + 2 * n, 2)]

    def multiply(product: Product, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        each = a.shape[1] // groups
        patches = take(a)
        patches = patches.reshape(batch, groups, each, *patches.shape[2:]).transpose(order)
        left = patches.reshape(groups, batch * prod(space), each * window)
        right = b.reshape(groups, outputs // groups, each * window).swapaxes(1, 2)
        result = product(left, np.ascontiguousarray(right))
        result = result.reshape(groups, batch, prod(space), outputs // groups)
        return result.transpose(1, 0, 3, 2).reshape(batch, outputs, *space)

    return multiply


WINDOWS: dict[str, Rule] = {
    "conv_general_dilated": _convolution,
    "reduce_window_sum": _reduce_window_sum,
}
