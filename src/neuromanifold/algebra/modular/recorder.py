"""The flat program that a traced function becomes, and the recorder that writes it.

While a jaxpr is read, each of its variables is either known (it depends on no argument: an ordinary
NumPy array) or a residue array that only a run will fill. Which entries are minus infinity is
always known, because only known masks put it there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.exponentials import FormalExponentials
from neuromanifold.algebra.modular.literals import RationalArray, rational_array
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.errors import ArgumentError, NotCoveredError

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Known:
    """A value that depends on no argument: a NumPy array, or random keys in a JAX array."""

    array: Any


@dataclass(frozen=True, eq=False)
class Unknown:
    """Residues that a run computes.

    Attributes:
        slot: where a run keeps them.
        shape: their shape.
        masked: which entries stand for minus infinity; None when there are none. What a run keeps
            in such an entry is an arbitrary residue.
    """

    slot: int
    shape: Shape
    masked: np.ndarray | None = None

    @property
    def mask(self) -> np.ndarray:
        """Which entries stand for minus infinity, as an array in any case."""
        return np.zeros(self.shape, dtype=bool) if self.masked is None else self.masked


Value = Known | Unknown


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run computes with."""

    field: PrimeField
    exponentials: FormalExponentials | None


Operation = Callable[..., Residues]
"""From a `Setting` and residue arrays to a residue array."""

Arrangement = Callable[..., np.ndarray]
"""From arrays to an array, only moving entries: for values, residues and masks alike."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a program: slots in, slot out, and the slots that no later step reads."""

    operation: Operation
    inputs: tuple[int, ...]
    output: int
    finished: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order, with the slots of the inputs, constants and outputs."""

    slots: int
    inputs: tuple[int, ...]
    constants: tuple[tuple[int, RationalArray], ...]
    steps: tuple[Step, ...]
    outputs: tuple[Unknown, ...]

    def run(
        self, setting: Setting, inputs: Sequence[Residues], constants: Sequence[Residues]
    ) -> list[Residues]:
        """The outputs for these inputs and the residues of the constants."""
        slots: list[Any] = [None] * self.slots
        for slot, value in zip(self.inputs, inputs, strict=True):
            slots[slot] = value
        for (slot, _), value in zip(self.constants, constants, strict=True):
            slots[slot] = value
        for step in self.steps:
            slots[step.output] = step.operation(setting, *[slots[i] for i in step.inputs])
            for slot in step.finished:
                slots[slot] = None
        return [slots[output.slot] for output in self.outputs]


class Recorder:
    """Writes a program, one step at a time."""

    def __init__(self) -> None:
        self._slots = 0
        self._inputs: list[int] = []
        self._constants: list[tuple[int, RationalArray]] = []
        self._steps: list[Step] = []
        self._inverses: dict[int, Unknown] = {}
        self.uses_exponentials = False
        self.calls: list[Any] = []

    def where(self, equation: Any) -> str:
        """The primitive and the innermost line known to call it, for error texts."""
        return where_from(equation, *reversed(self.calls))

    def _slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def input(self, shape: Shape) -> Unknown:
        """A new argument."""
        slot = self._slot()
        self._inputs.append(slot)
        return Unknown(slot, shape)

    def emit(
        self,
        operation: Operation,
        inputs: Sequence[Unknown],
        shape: Shape,
        masked: np.ndarray | None = None,
    ) -> Unknown:
        """Record one step; `masked` marks the entries of its output that are minus infinity."""
        slot = self._slot()
        self._steps.append(Step(operation, tuple(value.slot for value in inputs), slot))
        if masked is not None:
            masked = np.broadcast_to(masked, shape) if masked.any() else None
        return Unknown(slot, shape, masked)

    def emit_entrywise(
        self,
        operation: Operation,
        inputs: Sequence[Unknown],
        shape: Shape,
        masked: np.ndarray | None = None,
    ) -> Unknown:
        """Record a step whose operation acts entry by entry."""
        return self.emit(operation if shape else _on_scalars(operation), inputs, shape, masked)

    def move(self, arrangement: Arrangement, inputs: Sequence[Unknown], shape: Shape) -> Unknown:
        """Record a step that only moves entries; their masks move along."""

        def moved(_: Setting, *arrays: Residues) -> Residues:
            return arrangement(*arrays)

        masked = None
        if any(value.masked is not None for value in inputs):
            masked = np.asarray(arrangement(*(value.mask for value in inputs)))
        return self.emit(moved, inputs, shape, masked)

    def inverse(self, value: Unknown) -> Unknown:
        """The entrywise inverse, recorded once for each value: quotients share denominators."""
        if value.slot not in self._inverses:
            self._inverses[value.slot] = self.emit_entrywise(_inverse, [value], value.shape)
        return self._inverses[value.slot]

    def denominator(self, value: Value, equation: Any) -> Unknown:
        """What to multiply by to divide by the value; constants are inverted as rationals."""
        if isinstance(value, Unknown):
            return self.inverse(self.finite(value, equation))
        if not np.all(value.array) or not np.isfinite(value.array).all():
            raise ArgumentError(
                f"the function divides by a constant 0, NaN or infinity in {self.where(equation)}; "
                "over a prime field constant denominators must be finite and not zero"
            )
        return self._constant(rational_array(value.array).reciprocal)

    def unknown(self, value: Value, equation: Any) -> Unknown:
        """The value as residues; a constant is read as rational numbers, −inf as a mask."""
        if isinstance(value, Unknown):
            return value
        array, masked = value.array, None
        if array.dtype.kind not in "fiub":
            raise ArgumentError(
                f"the function has a constant of type {array.dtype} in {self.where(equation)}; "
                "only real constants can be evaluated over a prime field"
            )
        if not np.isfinite(array).all():
            masked = np.asarray(np.isneginf(array))
            array = np.where(masked, 0.0, array)
        if not np.isfinite(array).all():
            found = "NaN" if np.isnan(array).any() else "+infinity"
            raise ArgumentError(
                f"the function has the constant {found} in {self.where(equation)}, which has no "
                "residue: only finite constants, and −infinity as a mask, can be evaluated over a "
                "prime field"
            )
        return self._constant(rational_array(array), masked)

    def _constant(self, numbers: RationalArray, masked: np.ndarray | None = None) -> Unknown:
        slot = self._slot()
        self._constants.append((slot, numbers))
        return Unknown(slot, numbers.places.shape, masked)

    def finite(self, value: Value, equation: Any) -> Unknown:
        """The value as residues, none of which may be minus infinity."""
        value = self.unknown(value, equation)
        if value.masked is not None:
            raise NotCoveredError(
                f"minus infinity reaches {self.where(equation)}; over a prime field a mask may "
                "only be added to, scaled by a positive constant, selected, maximised and "
                "exponentiated"
            )
        return value

    def program(self, outputs: Sequence[Unknown]) -> Program:
        """The program with these outputs, without the steps they do not need."""
        kept: list[Step] = []
        needed = {output.slot for output in outputs}
        for step in reversed(self._steps):
            if step.output in needed:
                finished = tuple(set(step.inputs) - needed)
                needed.update(step.inputs)
                kept.append(Step(step.operation, step.inputs, step.output, finished))
        constants = tuple(item for item in self._constants if item[0] in needed)
        return Program(
            self._slots, tuple(self._inputs), constants, tuple(reversed(kept)), tuple(outputs)
        )


def _inverse(setting: Setting, x: Residues) -> Residues:
    return setting.field.inverse(x)


def _on_scalars(operation: Operation) -> Operation:
    """The operation by way of shape (1,): NumPy turns results of shape () into scalars."""

    def on_scalars(setting: Setting, *operands: Residues) -> Residues:
        return operation(setting, *map(np.atleast_1d, operands)).reshape(())

    return on_scalars


Rule = Callable[[Recorder, Any, Sequence[Value]], list[Value]]
"""What an equation does to its operands: the steps it records, and the values of its outputs."""
