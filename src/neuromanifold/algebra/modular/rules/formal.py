"""How formal functions are recorded: each step is listed with its argument, its obligation."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.formal.elements import Formal
from neuromanifold.algebra.modular.formal.primitives import ERF_SLOPE, Kind
from neuromanifold.algebra.modular.recorder import Recorder, Rule, Unknown, Value
from neuromanifold.algebra.modular.rules.arithmetic import negative, product
from neuromanifold.algebra.modular.square_roots.roots import square_root
from neuromanifold.algebra.modular.tangents import Operation, Setting, Tangent
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.errors import ArgumentError

_HALF = Fraction(1, 2)


class NonSquareError(ZeroResidueError):
    """A radicand is no square at this point: the point has to be drawn again."""


def _formal(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    kind, samples = equation.params["kind"], equation.params["samples"]

    def element(kind: Kind, x: Unknown, *companions: Unknown) -> Unknown:
        operation = _root if kind == "root" else _element
        return recorder.formal(
            kind, x, samples, equation, operation, _tangent(kind), companions=companions
        )

    if kind == "exp":
        return [element(kind, recorder.unknown(values[0], equation))]
    x = recorder.finite(values[0], equation)
    if kind == "erf":
        # The exponential of −u² is the obligation of erf(u), whether or not it is used.
        square = product(recorder, recorder.emit_entrywise(negative, [x], x.shape, degree=1), x)
        return [element(kind, x, element("exp", square))]
    found = element(kind, x)
    return _cosine_and_sine(recorder, found) if kind == "turn" else [found]


def _cosine_and_sine(recorder: Recorder, turn: Unknown) -> list[Value]:
    """Cos u = (E + 1/E)/2 and sin u = (E − 1/E)/2i, where E = exp(iu)."""
    back = recorder.inverse(turn)

    def cosine(setting: Setting, e: Residues, f: Residues) -> Residues:
        return _times(setting.field, setting.field.from_fraction(_HALF), e + f)  # at most 2h

    def sine(setting: Setting, e: Residues, f: Residues) -> Residues:
        half = setting.field.from_fraction(_HALF)
        factor = -imaginary_unit(setting.field) * half % setting.field.modulus
        return _times(setting.field, factor, e - f)  # 1/i = −i

    operands = [turn, back]
    return [
        recorder.emit_entrywise(operation, operands, turn.shape, degree=1)
        for operation in (cosine, sine)
    ]


@lru_cache(maxsize=8)
def imaginary_unit(field: PrimeField) -> float:
    """The smaller i > 0 with i² = −1 in the field: g^((p−1)/4) for a g that is no square."""
    p = field.modulus
    if p % 4 != 1:
        raise ArgumentError(
            "sines and cosines need a prime that leaves 1 when divided by 4; "
            f"{p} leaves {p % 4}: take another one, such as 8388593"
        )
    g = next(g for g in range(2, p) if pow(g, (p - 1) // 2, p) == p - 1)
    root = pow(g, (p - 1) // 4, p)
    return float(min(root, p - root))


def _times(field: PrimeField, factor: float, x: Residues) -> Residues:
    """A multiple; x may be a sum of two residues, so the product stays below 2^46."""
    return field.reduce(np.asarray(field.reduce(np.asarray(factor)) * x))


def _element(formal: Formal) -> Operation:
    def element(setting: Setting, a: Residues, *_: Residues) -> Residues:
        assert setting.elements is not None
        return setting.elements.of(formal, a, setting.memory)

    return element


def _root(formal: Formal) -> Operation:
    def root(setting: Setting, a: Residues) -> Residues:
        if setting.lenient:  # what is no square: something that depends on it as the root would
            y = square_root(np.where(np.isnan(a), 0.0, a), setting.field)
            return np.where(y > 0, y, np.where(a == 0, 1.0, a))
        y = square_root(a, setting.field)
        if np.any(y <= 0):
            raise NonSquareError(f"a radicand of {formal.where} is no square, or zero")
        return y

    return root


_SLOPES: dict[Kind, Callable[[PrimeField, Residues, Sequence[Residues]], Residues]] = {
    "exp": lambda _, y, __: y,
    "log": lambda field, _, x: field.inverse(x[0]),
    "root": lambda field, y, _: field.inverse(field.reduce(np.asarray(2.0 * y))),
    "erf": lambda field, _, x: _times(field, field.from_fraction(Fraction(ERF_SLOPE)), x[1]),
    "turn": lambda field, y, _: _times(field, imaginary_unit(field), y),  # of E = exp(iu)
}
"""The derivative of each element by its argument, from the element and the operands of its step."""


def _tangent(kind: Kind) -> Tangent:
    def tangent(
        setting: Setting, y: Residues, operands: Sequence[Residues], moved: Sequence[Residues]
    ) -> Residues:
        field = setting.field
        return field.multiply(_SLOPES[kind](field, y, operands), moved[0])

    return tangent


FORMAL: dict[str, Rule] = {"formal": _formal}
