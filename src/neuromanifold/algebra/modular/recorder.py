"""The flat program that a traced function becomes, and the recorder that writes it.

While a jaxpr is read, each of its variables is either known (it depends on no argument: an ordinary
NumPy array) or a residue array that only a run will fill. Which entries are minus infinity is
always known, because only known masks put it there. Every formal element is listed where it is
recorded, so a program carries its own obligations.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuromanifold.algebra.modular.formal.elements import Formal
from neuromanifold.algebra.modular.formal.primitives import Kind
from neuromanifold.algebra.modular.literals import RationalArray, rational_array
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.tangents import Division, Operation, Setting, Step, Tangent
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.errors import ArgumentError, NotCoveredError

Shape = tuple[int, ...]

# Programs that avoid infinities mask with a large negative number, beside others that are none. It
# stays one while what constants make of it is so low that float64 has 0 for its exponential.
MASKING = -1e4
_VANISHING = -1e3


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
        doubtful: the large negative constant that an entry is, up to what varies and was added to
            it; 0 for all others. It is a mask if it reaches an exponential or a maximum, a plain
            number anywhere else.
    """

    slot: int
    shape: Shape
    masked: np.ndarray | None = None
    doubtful: np.ndarray | None = None

    @property
    def mask(self) -> np.ndarray:
        """Which entries stand for minus infinity, as an array in any case."""
        return np.zeros(self.shape, dtype=bool) if self.masked is None else self.masked

    @property
    def hidden(self) -> np.ndarray | None:
        """Which entries an exponential or a maximum does not see."""
        doubtful = None if self.doubtful is None else self.doubtful < 0
        if self.masked is None or doubtful is None:
            return doubtful if self.masked is None else self.masked
        return self.masked | doubtful


Value = Known | Unknown

Arrangement = Callable[..., np.ndarray]
"""From arrays to an array, only moving entries: for values, residues and masks alike."""


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order, with the slots of the inputs, constants and outputs.

    Attributes:
        slots: how many slots a run needs.
        inputs: the slots of the arguments.
        constants: slots of constants, with their values.
        steps: the operations in order.
        outputs: where the results are found.
    """

    slots: int
    inputs: tuple[int, ...]
    constants: tuple[tuple[int, RationalArray], ...]
    steps: tuple[Step, ...]
    outputs: tuple[Unknown, ...]

    def start(
        self, inputs: Sequence[Residues], constants: Sequence[Residues]
    ) -> list[Residues | None]:
        """The slots before the first step."""
        slots: list[Any] = [None] * self.slots
        for slot, value in zip(self.inputs, inputs, strict=True):
            slots[slot] = value
        for (slot, _), value in zip(self.constants, constants, strict=True):
            slots[slot] = value
        return slots

    def run(
        self, setting: Setting, inputs: Sequence[Residues], constants: Sequence[Residues]
    ) -> list[Residues]:
        """The outputs for these inputs and the residues of the constants."""
        slots: list[Any] = self.start(inputs, constants)
        for step in self.steps:
            slots[step.output] = step.operation(setting, *[slots[i] for i in step.inputs])
            for slot in step.finished:
                slots[slot] = None
        return [slots[output.slot] for output in self.outputs]

    def run_with_tangents(
        self,
        setting: Setting,
        inputs: Sequence[Residues],
        constants: Sequence[Residues],
        directions: dict[int, Residues],
    ) -> list[tuple[Residues, Residues | None]]:
        """The outputs with their derivatives along `directions`, given by slot; None is zero.

        A slot of a step that has a direction moves along it, whatever its operands do.
        """
        slots: list[Any] = self.start(inputs, constants)
        tangents: list[Any] = [None] * self.slots
        for slot, direction in directions.items():
            tangents[slot] = direction
        for step in self.steps:
            operands = [slots[i] for i in step.inputs]
            slots[step.output] = step.operation(setting, *operands)
            if step.output not in directions:
                moved = [tangents[i] for i in step.inputs]
                tangents[step.output] = step.slope(setting, slots[step.output], operands, moved)
            for slot in step.finished:
                slots[slot] = tangents[slot] = None
        return [(slots[output.slot], tangents[output.slot]) for output in self.outputs]


class Recorder:
    """Writes a program, one step at a time."""

    def __init__(self) -> None:
        self._slots = 0
        self.sizes: list[int] = []
        self._inputs: list[int] = []
        self._constants: list[tuple[int, RationalArray]] = []
        self._steps: list[Step] = []
        self._inverses: dict[int, Unknown] = {}
        self._masking: set[float] = set()
        self.formals: list[Formal] = []
        self.maxima: list[tuple[Unknown, str]] = []
        self.masks_read: tuple[float, ...] = ()
        self.calls: list[Any] = []

    def where(self, equation: Any) -> str:
        """The primitive and the innermost line known to call it, for error texts."""
        return where_from(equation, *reversed(self.calls))

    def _slot(self, shape: Shape) -> int:
        self._slots += 1
        self.sizes.append(math.prod(shape))
        return self._slots - 1

    def input(self, shape: Shape) -> Unknown:
        """A new argument."""
        slot = self._slot(shape)
        self._inputs.append(slot)
        return Unknown(slot, shape)

    def emit(
        self,
        operation: Operation,
        inputs: Sequence[Unknown],
        shape: Shape,
        masked: np.ndarray | None = None,
        *,
        degree: int | None = None,
        tangent: Tangent | None = None,
        doubtful: np.ndarray | None = None,
        division: Division | None = None,
    ) -> Unknown:
        """Record one step.

        Args:
            operation: what it does.
            inputs: what it does it to.
            shape: of its output.
            masked: the entries of its output that are minus infinity.
            degree: of the output as a homogeneous polynomial in the inputs, all together, linear in
                each of two when it is 2; a step that is none has `None`, and a tangent of its own
                if derivatives are to pass it.
            tangent: how derivatives pass a step that is no polynomial.
            doubtful: the constants in its output that may be masks.
            division: what a rational step divides by.
        """
        slot = self._slot(shape)
        places = tuple(value.slot for value in inputs)
        self._steps.append(Step(operation, places, slot, (), degree, tangent, division))
        if doubtful is not None:
            doubtful = np.where(doubtful <= _VANISHING, doubtful, 0.0)
        return Unknown(slot, shape, _marks(masked, shape), _marks(doubtful, shape))

    def emit_entrywise(
        self,
        operation: Operation,
        inputs: Sequence[Unknown],
        shape: Shape,
        masked: np.ndarray | None = None,
        **how: Any,
    ) -> Unknown:
        """Record a step whose operation acts entry by entry."""
        operation = operation if shape else _on_scalars(operation)
        return self.emit(operation, inputs, shape, masked, **how)

    def move(self, arrangement: Arrangement, inputs: Sequence[Unknown], shape: Shape) -> Unknown:
        """Record a step that only moves entries; their masks move along."""

        def moved(_: Setting, *arrays: Residues) -> Residues:
            return arrangement(*arrays)

        masked = doubtful = None
        if any(value.masked is not None for value in inputs):
            masked = np.asarray(arrangement(*(value.mask for value in inputs)))
        if any(value.doubtful is not None for value in inputs):
            marks = (_full(value.doubtful, value.shape) for value in inputs)
            doubtful = np.asarray(arrangement(*marks))
        return self.emit(moved, inputs, shape, masked, degree=1, doubtful=doubtful)

    def row(self, value: Unknown, i: int) -> Unknown:
        """Entry `i` along the first axis, for loops."""

        def row(x: np.ndarray) -> np.ndarray:
            return x[(i, ...)]

        return self.move(row, [value], value.shape[1:])

    def stacked(self, turns: Sequence[Value], equation: Any, shape: Shape) -> Unknown:
        """The results of a loop's turns along a new first axis."""

        def stack(*arrays: np.ndarray) -> np.ndarray:
            return np.stack(arrays)

        return self.move(stack, [self.unknown(value, equation) for value in turns], shape)

    def formal(
        self,
        kind: Kind,
        argument: Unknown,
        samples: bool,
        equation: Any,
        operation: Callable[[Formal], Operation],
        tangent: Tangent,
        companions: Sequence[Unknown] = (),
    ) -> Unknown:
        """Record a formal element for each entry of the argument: this is its obligation."""
        hidden = argument.hidden if kind == "exp" else None
        self.read_masks(argument)
        place = (argument.slot, self._slots)
        variable = equation.invars[0] if equation.params["kind"] == kind else None
        at = (self.where(equation), variable)
        formal = Formal(len(self.formals), kind, *place, argument.shape, samples, hidden, *at)
        self.formals.append(formal)
        inputs = [argument, *companions]
        return self.emit(operation(formal), inputs, argument.shape, tangent=tangent)

    def read_masks(self, *values: Unknown) -> None:
        """Note that large negative constants in some values, if any, are read as −infinity."""
        if any(value.doubtful is not None for value in values):
            self.masks_read = tuple(sorted(self._masking))

    def inverse(self, value: Unknown) -> Unknown:
        """The entrywise inverse, recorded once for each value: quotients share denominators."""
        if value.slot not in self._inverses:
            self._inverses[value.slot] = self.emit_entrywise(
                _inverse,
                [value],
                value.shape,
                tangent=_inverse_tangent,
                division=Division("determinants", 1, math.prod(value.shape)),
            )
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
        return self._constant(rational_array(array), masked, self._mixed_masks(array))

    def beside(self, value: Value, equation: Any) -> Unknown:
        """The value as residues, laid beside others: its large negative constants may be masks."""
        found = self.unknown(value, equation)
        if isinstance(value, Unknown):
            return found
        low = np.asarray(np.isfinite(value.array) & (value.array <= MASKING))
        return replace(found, doubtful=self.doubt(value.array, low)) if low.any() else found

    def _mixed_masks(self, array: np.ndarray) -> np.ndarray | None:
        """The large negative entries of a constant array that has others, as an added mask has."""
        low = np.isfinite(array) & (array <= MASKING)
        return self.doubt(array, low) if low.any() and not low.all() else None

    def doubt(self, array: np.ndarray, low: np.ndarray) -> np.ndarray:
        """Note the constants that may be masks, and where they are."""
        self._masking.update(np.unique(array[low]).tolist())
        return np.where(low, array, 0.0)

    def _constant(
        self,
        numbers: RationalArray,
        masked: np.ndarray | None = None,
        doubtful: np.ndarray | None = None,
    ) -> Unknown:
        slot = self._slot(numbers.places.shape)
        self._constants.append((slot, numbers))
        return Unknown(slot, numbers.places.shape, masked, doubtful)

    def finite(self, value: Value, equation: Any) -> Unknown:
        """The value as residues, none of which may be minus infinity."""
        value = self.unknown(value, equation)
        if value.masked is not None:
            raise NotCoveredError(
                f"minus infinity reaches {self.where(equation)}; over a prime field a mask may "
                "only be added to, scaled by a positive constant, selected, maximised and "
                "exponentiated"
            )
        return value if value.doubtful is None else Unknown(value.slot, value.shape)

    def program(self, outputs: Sequence[Unknown], also: Sequence[int] = ()) -> Program:
        """The program with these outputs, without steps that neither they nor `also` need."""
        kept: list[Step] = []
        needed = {output.slot for output in outputs} | set(also)
        for step in reversed(self._steps):
            if step.output in needed:
                finished = tuple(set(step.inputs) - needed)
                needed.update(step.inputs)
                kept.append(replace(step, finished=finished))
        constants = tuple(item for item in self._constants if item[0] in needed)
        return Program(
            self._slots, tuple(self._inputs), constants, tuple(reversed(kept)), tuple(outputs)
        )


def _marks(marks: np.ndarray | None, shape: Shape) -> np.ndarray | None:
    return None if marks is None or not marks.any() else np.broadcast_to(marks, shape)


def _full(marks: np.ndarray | None, shape: Shape) -> np.ndarray:
    return np.zeros(shape) if marks is None else marks


def _inverse(setting: Setting, x: Residues) -> Residues:
    return setting.field.inverse(x)


def _inverse_tangent(
    setting: Setting, y: Residues, _: Sequence[Residues], moved: Sequence[Residues]
) -> Residues:
    """d(1/x) = −(1/x)² dx."""
    field = setting.field
    return field.multiply(field.multiply(np.asarray(-y), y), moved[0])


def _on_scalars(operation: Operation) -> Operation:
    """The operation by way of shape (1,): NumPy turns results of shape () into scalars."""

    def on_scalars(setting: Setting, *operands: Residues) -> Residues:
        return operation(setting, *map(np.atleast_1d, operands)).reshape(())

    return on_scalars


Rule = Callable[[Recorder, Any, Sequence[Value]], list[Value]]
"""What an equation does to its operands: the steps it records, and the values of its outputs."""
