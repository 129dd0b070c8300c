"""Selections, comparisons and maxima: what decides which entries are minus infinity.

Only known masks decide. A comparison between residues has no meaning, and asking for one means that
the function is not built from rational functions and exponentials.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.folding import folded
from neuromanifold.algebra.modular.recorder import (
    Known,
    Recorder,
    Rule,
    Unknown,
    Value,
)
from neuromanifold.errors import NotCoveredError


def _undecidable(recorder: Recorder, equation: Any) -> NotCoveredError:
    return NotCoveredError(
        f"{recorder.where(equation)} compares values that depend on the arguments: the function is "
        "not built from rational functions and exponentials alone, and has no meaning over a "
        "prime field; replace the comparison by a constant mask or a polynomial"
    )


def _compare(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """A comparison with an infinity, which is known; every other one is refused."""
    infinite = np.isneginf if equation.primitive.name == "min" else np.isinf
    stand_ins = []
    for value in values:
        if isinstance(value, Unknown):
            stand_ins.append(np.where(value.mask, -np.inf, 0.0))
        elif infinite(value.array).all():
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
    hidden_x, hidden_y = np.broadcast_arrays(_hidden(x), _hidden(y))
    if not (hidden_x | hidden_y).all():
        raise _undecidable(recorder, equation)
    recorder.read_masks(x, y)
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

    place = np.argmin(lines(_hidden(x)), axis=-1, keepdims=True)
    recorder.read_masks(x)

    def pick(a: np.ndarray) -> np.ndarray:
        return np.take_along_axis(lines(a), place, axis=-1)[..., 0]

    picked = recorder.move(pick, [x], shape)
    recorder.maxima.append((picked, recorder.where(equation)))
    return [picked]


def _hidden(x: Unknown) -> np.ndarray:
    """The entries that a maximum does not see, as an array in any case."""
    return np.zeros(x.shape, dtype=bool) if x.hidden is None else x.hidden


def _select(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """`select_n` by a known predicate; a large negative constant beside others may be a mask."""
    which, *cases = values
    if not isinstance(which, Known):
        raise _undecidable(recorder, equation)
    shape = equation.outvars[0].aval.shape
    chosen = np.broadcast_to(which.array.astype(np.intp), shape)
    used = [bool((chosen == i).any()) for i in range(len(cases))]
    if sum(used) == 1 and isinstance(cases[used.index(True)], Unknown):
        return [cases[used.index(True)]]
    if all(isinstance(case, Known) for case in cases):
        return [Known(_choose(chosen, [case.array for case in cases if isinstance(case, Known)]))]
    operands = [
        _chosen(recorder, equation, case, np.asarray(chosen == i)) for i, case in enumerate(cases)
    ]

    def choose(*arrays: np.ndarray) -> np.ndarray:
        return _choose(chosen, arrays)

    return [recorder.move(choose, operands, shape)]


def _chosen(recorder: Recorder, equation: Any, case: Value, chosen: np.ndarray) -> Unknown:
    """A case of a selection: a constant is 0 where it is not chosen, and may be a mask where so."""
    if isinstance(case, Unknown):
        return case
    array = np.broadcast_to(case.array, chosen.shape)
    array = np.where(chosen, array, np.zeros((), array.dtype))
    return (recorder.unknown if chosen.all() else recorder.beside)(Known(array), equation)


def _choose(chosen: np.ndarray, cases: Sequence[np.ndarray]) -> np.ndarray:
    if len(cases) == 2:
        return np.where(chosen, cases[1], cases[0])
    result = np.zeros(chosen.shape, np.result_type(*cases))
    for i, case in enumerate(cases):
        np.copyto(result, case, where=chosen == i)
    return result


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
