"""Calls, loops and branches: everything that has a jaxpr inside.

Loops are unrolled while recording, so a loop counter is known at every turn and may be used as an
index; a branch must be decided by known values.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from neuromanifold.algebra.modular.recorder import Known
from neuromanifold.errors import NotCoveredError

MOST_TURNS = 5000
"""Turns of a loop up to which it is written out: so many take some seconds."""

Value = Any
"""A known value, or whatever the reader makes of the others."""


@runtime_checkable
class Reader(Protocol):
    """What reads jaxprs: the recorder of steps, or the opening of a function in JAX."""

    def where(self, equation: Any) -> str:
        """The primitive and the line, for error texts."""
        ...

    def row(self, value: Value, i: int) -> Value:
        """Entry `i` along the first axis."""
        ...

    def stacked(self, turns: Sequence[Value], equation: Any, shape: tuple[int, ...]) -> Value:
        """The results of a loop's turns along a new first axis."""
        ...


Read = Callable[[Any, Any, Sequence[Any], Sequence[Value]], list[Value]]
"""Reads a jaxpr with its constants and arguments, and gives its outputs."""

ControlRule = Callable[[Read, Any, Any, Sequence[Value]], list[Value]]

_INNER = {
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "jit": "jaxpr",
    "remat2": "jaxpr",
}


def opened(inner: Any) -> tuple[Any, Sequence[Any]]:
    """The jaxpr and its constants, of a closed jaxpr or an open one."""
    return (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())


def inner_jaxpr(equation: Any) -> tuple[Any, Sequence[Any]] | None:
    """What a plain call calls; None for other primitives."""
    name = equation.primitive.name
    return opened(equation.params[_INNER[name]]) if name in _INNER else None


def _call(read: Read, recorder: Reader, equation: Any, values: Sequence[Value]) -> list[Value]:
    inner = inner_jaxpr(equation)
    assert inner is not None
    return read(recorder, *inner, values)


def _scan(read: Read, recorder: Reader, equation: Any, values: Sequence[Value]) -> list[Value]:
    params = equation.params
    body, constants = opened(params["jaxpr"])
    fixed = values[: params["num_consts"]]
    carry = list(values[params["num_consts"] :][: params["num_carry"]])
    rows = values[params["num_consts"] + params["num_carry"] :]
    turns = range(params["length"])
    _check_turns(recorder, equation, len(turns))
    collected: list[list[Value]] = []
    for i in reversed(turns) if params["reverse"] else turns:
        results = read(
            recorder, body, constants, [*fixed, *carry, *(_row(recorder, x, i) for x in rows)]
        )
        carry = results[: len(carry)]
        collected.append(results[len(carry) :])
    if params["reverse"]:
        collected.reverse()
    shapes = [v.aval.shape for v in equation.outvars[len(carry) :]]
    stacks = [
        _stacked(recorder, equation, [turn[k] for turn in collected], shape)
        for k, shape in enumerate(shapes)
    ]
    return [*carry, *stacks]


def _row(recorder: Reader, value: Value, i: int) -> Value:
    if isinstance(value, Known):
        return Known(value.array[(i, ...)])
    return recorder.row(value, i)


def _stacked(
    recorder: Reader, equation: Any, turns: Sequence[Value], shape: tuple[int, ...]
) -> Value:
    if not turns:
        return Known(np.zeros(shape))
    if all(isinstance(value, Known) for value in turns):
        return Known(np.stack([value.array for value in turns if isinstance(value, Known)]))
    return recorder.stacked(turns, equation, shape)


def _while(read: Read, recorder: Reader, equation: Any, values: Sequence[Value]) -> list[Value]:
    params = equation.params
    condition, body = opened(params["cond_jaxpr"]), opened(params["body_jaxpr"])
    for_condition = values[: params["cond_nconsts"]]
    for_body = values[params["cond_nconsts"] :][: params["body_nconsts"]]
    carry = list(values[params["cond_nconsts"] + params["body_nconsts"] :])
    for turn in itertools.count():
        _check_turns(recorder, equation, turn)
        (goes_on,) = read(recorder, *condition, [*for_condition, *carry])
        if not _decided(recorder, goes_on, equation).item():
            return carry
        carry = read(recorder, *body, [*for_body, *carry])
    raise AssertionError("a count has no end")


def _check_turns(recorder: Reader, equation: Any, turns: int) -> None:
    if turns > MOST_TURNS:
        raise NotCoveredError(
            f"{recorder.where(equation)} has more than {MOST_TURNS} turns, and each is written out "
            "over a prime field; take fewer"
        )


def _cond(read: Read, recorder: Reader, equation: Any, values: Sequence[Value]) -> list[Value]:
    which, *operands = values
    branches = equation.params["branches"]
    i = min(max(int(_decided(recorder, which, equation).item()), 0), len(branches) - 1)
    return read(recorder, *opened(branches[i]), operands)


def _linear_solve(
    read: Read, recorder: Reader, equation: Any, values: Sequence[Value]
) -> list[Value]:
    """A linear solve by its own solver; its rules for derivatives are not needed."""
    lengths, jaxprs = equation.params["const_lengths"], equation.params["jaxprs"]
    start = lengths.matvec + lengths.vecmat
    fixed = values[start : start + lengths.solve]
    return read(recorder, *opened(jaxprs.solve), [*fixed, *values[sum(lengths) :]])


def _platform(_: Read, __: Reader, equation: Any, ___: Sequence[Value]) -> list[Value]:
    """Which of the programs for several platforms is meant: that of the processor."""
    platforms = equation.params["platforms"]
    here = next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)
    return [Known(np.asarray(here, dtype=np.int32))]


def _decided(recorder: Reader, value: Value, equation: Any) -> np.ndarray:
    if not isinstance(value, Known):
        raise NotCoveredError(
            f"{recorder.where(equation)} is decided by an argument of the function; over a prime "
            "field loops and branches must be decided by constants"
        )
    return value.array


CONTROL: dict[str, ControlRule] = {
    **dict.fromkeys(_INNER, _call),
    "cond": _cond,
    "custom_linear_solve": _linear_solve,
    "platform_index": _platform,
    "scan": _scan,
    "while": _while,
}
