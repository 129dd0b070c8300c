"""Reads a jaxpr equation by equation and records what each does to residues."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Literal

from neuromanifold.algebra.modular.folding import folded, plain
from neuromanifold.algebra.modular.recorder import Known, Recorder, Value
from neuromanifold.algebra.modular.rules.arithmetic import ARITHMETIC
from neuromanifold.algebra.modular.rules.control import CONTROL
from neuromanifold.algebra.modular.rules.formal import FORMAL
from neuromanifold.algebra.modular.rules.indexing import INDEXING
from neuromanifold.algebra.modular.rules.linear_systems import LINEAR_SYSTEMS
from neuromanifold.algebra.modular.rules.masks import MASKS
from neuromanifold.algebra.modular.rules.structural import ARRANGEMENTS, UNTOUCHED
from neuromanifold.algebra.modular.rules.windows import WINDOWS
from neuromanifold.errors import NotCoveredError

RULES = ARITHMETIC | FORMAL | INDEXING | LINEAR_SYSTEMS | MASKS | WINDOWS


def read(
    recorder: Recorder, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]
) -> list[Value]:
    """The outputs of a jaxpr for these arguments, every step on residues recorded."""
    values: dict[Any, Value] = {}

    def value_of(atom: Any) -> Value:
        return Known(np.asarray(atom.val)) if isinstance(atom, Literal) else values[atom]

    for variable, constant in zip(jaxpr.constvars, constants, strict=True):
        values[variable] = Known(plain(constant))
    values.update(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        operands = [value_of(atom) for atom in equation.invars]
        outputs = _apply(recorder, equation, operands)
        values.update(zip(equation.outvars, outputs, strict=True))
    return [value_of(atom) for atom in jaxpr.outvars]


def _apply(recorder: Recorder, equation: Any, operands: list[Value]) -> list[Value]:
    name = equation.primitive.name
    if name in CONTROL:
        recorder.calls.append(equation)
        outputs = CONTROL[name](read, recorder, equation, operands)
        recorder.calls.pop()
        return outputs
    if name in UNTOUCHED:
        return operands
    known = [operand.array for operand in operands if isinstance(operand, Known)]
    if len(known) == len(operands):
        return [Known(result) for result in folded(equation, known)]
    if name in ARRANGEMENTS:
        return _arranged(recorder, equation, operands)
    if name in RULES:
        return RULES[name](recorder, equation, operands)
    raise not_read(recorder.where(equation))


def not_read(where: str, why: str = "") -> NotCoveredError:
    """The refusal of a primitive, named with its line."""
    name = where.split(" ")[0]
    return NotCoveredError(
        f"{where} cannot be evaluated over a prime field: only rational functions, exp, log, √, "
        f"erf, sin, cos and constant masks of the arguments can{why}; write the function without "
        f"{name}, or apply it to constants only"
    )


def _arranged(recorder: Recorder, equation: Any, operands: list[Value]) -> list[Value]:
    sources = [recorder.beside(operand, equation) for operand in operands]
    arrangements = ARRANGEMENTS[equation.primitive.name](equation)
    return [
        recorder.move(arrangement, sources, variable.aval.shape)
        for arrangement, variable in zip(arrangements, equation.outvars, strict=True)
    ]
