"""Reads a jaxpr equation by equation and records what each does to residues."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Literal

from neuromanifold.algebra.modular.arithmetic import ARITHMETIC
from neuromanifold.algebra.modular.control import CONTROL
from neuromanifold.algebra.modular.folding import folded
from neuromanifold.algebra.modular.indexing import INDEXING
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.masks import compare, is_finite, mask_of, maximum, reduce_max, select
from neuromanifold.algebra.modular.recorder import Known, Recorder, Value
from neuromanifold.algebra.modular.structural import ARRANGEMENTS
from neuromanifold.errors import NotCoveredError

_MASKING = {
    "eq": compare,
    "ge": compare,
    "gt": compare,
    "is_finite": is_finite,
    "le": compare,
    "lt": compare,
    "max": maximum,
    "min": compare,
    "ne": compare,
    "reduce_max": reduce_max,
    "select_n": select,
}
RULES = ARITHMETIC | INDEXING | _MASKING

SUPPORTED = frozenset(RULES) | frozenset(ARRANGEMENTS) | frozenset(CONTROL) | {"iota"}
"""The primitives that may depend on the arguments; of constants every primitive may be taken."""


def read(
    recorder: Recorder, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]
) -> list[Value]:
    """The outputs of a jaxpr for these arguments, every step on residues recorded."""
    values: dict[Any, Value] = {}

    def value_of(atom: Any) -> Value:
        return Known(np.asarray(atom.val)) if isinstance(atom, Literal) else values[atom]

    for variable, constant in zip(jaxpr.constvars, constants, strict=True):
        values[variable] = constant if isinstance(constant, Value) else Known(np.asarray(constant))
    values.update(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        operands = [value_of(atom) for atom in equation.invars]
        outputs = _apply(recorder, equation, operands)
        values.update(zip(equation.outvars, outputs, strict=True))
    return [value_of(atom) for atom in jaxpr.outvars]


def _apply(recorder: Recorder, equation: Any, operands: list[Value]) -> list[Value]:
    name = equation.primitive.name
    if name in CONTROL:
        return CONTROL[name](read, recorder, equation, operands)
    known = [operand.array for operand in operands if isinstance(operand, Known)]
    if len(known) == len(operands) and name != "select_n":
        return [Known(result) for result in folded(equation, known)]
    if name in ARRANGEMENTS:
        return _arranged(recorder, equation, operands)
    if name in RULES:
        return RULES[name](recorder, equation, operands)
    raise NotCoveredError(
        f"{where_from(equation)} cannot be evaluated over a prime field: only rational functions, "
        "exponentials and constant masks of the arguments can; write the function without "
        f"`{name}`, or apply it to constants only"
    )


def _arranged(recorder: Recorder, equation: Any, operands: list[Value]) -> list[Value]:
    if equation.primitive.name in _UNTOUCHED:
        return list(operands)
    sources = [recorder.unknown(operand, equation) for operand in operands]
    has_mask = any(source.masked is not None for source in sources)
    masks = [mask_of(source) for source in sources] if has_mask else []
    outputs: list[Value] = []
    for arrange, variable in zip(
        ARRANGEMENTS[equation.primitive.name](equation), equation.outvars, strict=True
    ):
        masked = np.asarray(arrange(*masks)) if has_mask else None
        outputs.append(
            recorder.emit(
                lambda _, *xs, arrange=arrange: arrange(*xs), sources, variable.aval.shape, masked
            )
        )
    return outputs


_UNTOUCHED = frozenset({"copy", "copy_p", "optimization_barrier", "stop_gradient"})
