"""Selections, comparisons and maxima: what decides which entries are minus infinity.

Only known masks decide. A comparison between residues has no meaning, and asking for one means that
the function is not built from rational functions and exponentials.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.folding import folded
from neuromanifold.algebra.modular.recorder import Known, Recorder, Rule, Unknown, Value
from neuromanifold.errors import NotCoveredError

# Programs that avoid infinities mask with a large negative number chosen by the mask.
MASKING = -1e9


def _undecidable(recorder: Recorder, equation: Any) -> NotCoveredError:
    return NotCoveredError(
        f"{recorder.where(equation)} compares values that depend on the arguments: the function is "
        "not built from rational functions and exponentials alone, and has no meaning over a "
        "prime field; replace the comparison by a constant mask or a polynomial"
    )


def _compare(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A comparison with minus infinity, which is known; every other one is refused."""
    stand_ins = []
    for value in values:
        if isinstance(value, Unknown):
            stand_ins.append(np.where(value.mask, -np.inf, 0.0))
        elif np.isneginf(value.array).all():
            stand_ins.append(value.array)
        else:
            raise _undecidable(recorder, equation)
    if all(isinstance(value, Unknown) for value in values):
        raise _undecidable(recorder, equation)
    return [Known(result) for result in folded(equation, stand_ins)]


def _is_finite(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Whether entries are finite: all but the masked ones."""
    return [Known(np.asarray(~recorder.unknown(values[0], equation).mask))]


def _maximum(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """The entrywise maximum where one of the two is minus infinity."""
    shape = equation.outvars[0].aval.shape
    x, y = (recorder.unknown(value, equation) for value in values)
    hidden_x, hidden_y = np.broadcast_arrays(x.mask, y.mask)
    if not (hidden_x | hidden_y).all():
        raise _undecidable(recorder, equation)
    if hidden_x.all() and y.shape == shape:
        return [y]
    if hidden_y.all() and x.shape == shape:
        return [x]

    def choose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(hidden_x, b, a)

    return [recorder.move(choose, [x, y], shape)]


def _reduce_max(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """The first entry that is not minus infinity, in place of the largest.

    The maximum that softmax subtracts may be any fixed entry: softmax does not see a common shift
    of its arguments (softmax-exact). A maximum that is differentiated compares residues, and is
    refused.
    """
    x = recorder.unknown(values[0], equation)
    axes, shape = equation.params["axes"], equation.outvars[0].aval.shape
    order = [i for i in range(len(x.shape)) if i not in axes] + [int(i) for i in axes]

    def lines(a: np.ndarray) -> np.ndarray:
        return a.transpose(order).reshape(*shape, -1)

    place = np.argmin(lines(x.mask), axis=-1, keepdims=True)

    def pick(a: np.ndarray) -> np.ndarray:
        return np.take_along_axis(lines(a), place, axis=-1)[..., 0]

    return [recorder.move(pick, [x], shape)]


def _select(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """`select_n` by a known predicate; a constant up to −10^9 that it chooses is minus infinity."""
    which, *cases = values
    if not isinstance(which, Known):
        raise _undecidable(recorder, equation)
    shape = equation.outvars[0].aval.shape
    chosen = np.broadcast_to(which.array.astype(np.intp), shape)
    used = [bool((chosen == i).any()) for i in range(len(cases))]
    if sum(used) == 1 and isinstance(cases[used.index(True)], Unknown):
        return [cases[used.index(True)]]
    cases = [
        _masking(case, np.asarray(chosen == i)) if isinstance(case, Known) else case
        for i, case in enumerate(cases)
    ]
    if all(isinstance(case, Known) for case in cases):
        arrays = [case.array for case in cases if isinstance(case, Known)]
        return [Known(_choose(chosen, arrays))]
    operands = [recorder.unknown(case, equation) for case in cases]

    def choose(*arrays: np.ndarray) -> np.ndarray:
        return _choose(chosen, arrays)

    return [recorder.move(choose, operands, shape)]


def _masking(case: Known, chosen: np.ndarray) -> Known:
    """A case of a selection: 0 where it is not chosen, −inf where it is a masking number."""
    array = np.broadcast_to(case.array, chosen.shape)
    if array.dtype.kind == "f":
        array = np.where(array <= MASKING, -np.inf, array)
    return Known(np.where(chosen, array, np.zeros((), array.dtype)))


def _choose(chosen: np.ndarray, cases: Sequence[np.ndarray]) -> np.ndarray:
    if len(cases) == 2:
        return np.where(chosen, cases[1], cases[0])
    return np.asarray(np.choose(chosen, cases))


MASKS: dict[str, Rule] = {
    "eq": _compare,
    "ge": _compare,
    "gt": _compare,
    "is_finite": _is_finite,
    "le": _compare,
    "lt": _compare,
    "max": _maximum,
    "min": _compare,
    "ne": _compare,
    "reduce_max": _reduce_max,
    "select_n": _select,
}
