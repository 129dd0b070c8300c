"""A JAX function as a function on residues, and the rows of its Jacobian as another."""

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from neuromanifold.algebra.modular.formal.elements import FormalElements
from neuromanifold.algebra.modular.formal.relations import Relations
from neuromanifold.algebra.modular.interpreter import read
from neuromanifold.algebra.modular.literals import Precision, precisions_of
from neuromanifold.algebra.modular.opening import opened
from neuromanifold.algebra.modular.recorder import Program, Recorder, Unknown
from neuromanifold.algebra.modular.tangents import Setting, Step
from neuromanifold.algebra.modular.tracing import output_of, shapes_of, traced
from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.errors import ArgumentError


class ModularFunction:
    """A JAX function, traced for arguments of given shapes, that is evaluated mod p.

    Attributes:
        jaxpr: what was recorded: the opened function, without dead code.
        formals: the formal steps of its program, in order: what its obligations are about.
        maxima: the slots of maxima that were replaced by another entry, and where they come from.
        masks_read: the large negative constants that were read as minus infinity.
        samples: for each leaf of the arguments whether its first axis runs over samples.
        halves: its floats of half precision, which may stand for other numbers.
    """

    def __init__(
        self,
        jaxpr: ClosedJaxpr,
        recorder: Recorder,
        outputs: Sequence[Unknown],
        values: Sequence[Unknown],
        structures: tuple[Any, Any],
        samples: Sequence[bool],
        halves: Sequence[float] = (),
    ) -> None:
        self.jaxpr = jaxpr
        self.samples, self.halves = tuple(samples), tuple(halves)
        self._recorder = recorder
        self._arguments, self._results = structures
        self._residues: dict[int, dict[int, Residues]] = {}
        self._precision: Precision | None = None
        self._program = recorder.program(outputs)
        kept = {step.output for step in self._program.steps}
        self.formals = tuple(f for f in recorder.formals if f.output in kept)
        self._values = tuple(values)
        self.masks_read = recorder.masks_read

    def values(self, relations: Relations) -> Program:
        """The program of the values of the function whose derivative this is."""
        return self._recorder.program(self._values, self._behind(relations))

    @cached_property
    def maxima(self) -> tuple[tuple[int, tuple[int, ...], str], ...]:
        """Slot, shape and origin of the maxima on the way to the values."""
        kept = {step.output for step in self._recorder.program(self._values).steps}
        return tuple(
            (x.slot, x.shape, where) for x, where in self._recorder.maxima if x.slot in kept
        )

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the leaves of the arguments."""
        return self._arguments[0]

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots of the leaves of the arguments."""
        return self._program.inputs

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the program."""
        return self._program.steps

    @property
    def outputs(self) -> tuple[int, ...]:
        """The slots of the outputs."""
        return tuple(output.slot for output in self._program.outputs)

    def size(self, slot: int) -> int:
        """How many entries a slot has."""
        return self._recorder.sizes[slot]

    def assembled(self, leaves: Sequence[Residues]) -> tuple[Any, ...]:
        """The arguments with these leaves."""
        return jax.tree.unflatten(self._arguments[1], leaves)

    def program(self, slots: Sequence[int], relations: Relations) -> Program:
        """The part of the program that computes these slots, where elements have relations."""
        outputs = [Unknown(slot, ()) for slot in slots]
        return self._recorder.program(outputs, self._behind(relations))

    def _behind(self, relations: Relations) -> list[int]:
        """The elements that others are made of."""
        numbers = {place[0] for place in relations.roots}
        return [f.output for f in self.formals if f.number in numbers]

    @property
    def dyadic_constants(self) -> tuple[float, ...]:
        """The constants taken as the exact value of their float, in increasing order."""
        return _sorted([self.halves, *(c.dyadic for _, c in self._program.constants)])

    @cached_property
    def precisions(self) -> tuple[Precision, ...]:
        """The precisions in which its constants are floats, some of them read as other numbers."""
        return precisions_of(constant for _, constant in self._program.constants)

    def in_floats(self, precision: Precision) -> "ModularFunction":
        """The same function with all constants as floats of a precision."""
        other = copy.copy(self)
        other._residues = dict[int, dict[int, Residues]]()
        other._precision = precision
        return other

    @property
    def largest_constant(self) -> float:
        """The largest of its constants, whatever their sign."""
        sizes = (
            float(abs(x)) for _, constant in self._program.constants for x in constant.distinct
        )
        return max(sizes, default=0.0)

    @property
    def suspect_constants(self) -> tuple[float, ...]:
        """The constants that may be rounding noise, in increasing order."""
        return _sorted(constant.suspects for _, constant in self._program.constants)

    @property
    def masked(self) -> Any:
        """The pytree of Boolean arrays that mark the outputs which are minus infinity."""
        masks = [np.array(output.mask) for output in self._program.outputs]
        return jax.tree.unflatten(self._results, masks)

    def __call__(
        self, field: PrimeField, *arguments: Any, elements: FormalElements | None = None
    ) -> Any:
        """The value at residues, as a pytree of residues.

        Args:
            field: the prime field.
            *arguments: pytrees of residues with the shapes that were traced.
            elements: what stands for formal functions; needed when there are any.

        Raises:
            ZeroResidueError: a denominator is zero at this point, or a radicand is no square; draw
                another one.
        """
        setting, inputs = self.prepared(field, arguments, elements)
        outputs = self._program.run(setting, inputs, self.constants(self._program, field))
        return jax.tree.unflatten(self._results, outputs)

    def prepared(
        self, field: PrimeField, arguments: tuple[Any, ...], elements: FormalElements | None
    ) -> tuple[Setting, list[Residues]]:
        """What a run computes with, and the leaves of its arguments, once they are checked."""
        inputs = self._checked(arguments)
        if self.formals and elements is None:
            raise ArgumentError(
                f"the function contains formal functions, such as {self.formals[0].where}, and no "
                "elements were given for them; pass elements=FormalElements(field, seed)"
            )
        if elements is not None and elements.field != field:
            raise ArgumentError(
                f"the elements belong to the prime {elements.field.modulus} and the field "
                f"has {field.modulus}; use one prime"
            )
        return Setting(field, elements, {}), inputs

    def constants(self, program: Program, field: PrimeField) -> list[Residues]:
        """The residues of a program's constants."""
        known = self._residues.setdefault(field.modulus, {})
        for slot, constant in program.constants:
            if slot not in known:
                if self._precision is not None:
                    constant = constant.in_floats(self._precision)
                known[slot] = constant.residues(field)
        return [known[slot] for slot, _ in program.constants]

    def _checked(self, arguments: tuple[Any, ...]) -> list[Residues]:
        inputs, structure = jax.tree.flatten(arguments)
        expected, expected_structure = self._arguments
        if structure != expected_structure:
            raise ArgumentError(
                f"the function was traced for arguments {expected_structure}; got {structure}"
            )
        for value, shape in zip(inputs, expected, strict=True):
            if not isinstance(value, np.ndarray) or value.dtype != np.float64:
                raise ArgumentError(
                    "arguments must be residues in float64 NumPy arrays; got "
                    f"{getattr(value, 'dtype', type(value).__name__)}: "
                    "make them with PrimeField.random or PrimeField.from_integers"
                )
            if value.shape != shape:
                raise ArgumentError(
                    f"an argument has shape {value.shape}, and the function was traced for {shape}"
                )
        return inputs


def _sorted(floats: Iterable[Iterable[float]]) -> tuple[float, ...]:
    return tuple(sorted(set(chain.from_iterable(floats))))


def over_prime_field(f: Callable[..., Any], *examples: Any) -> ModularFunction:
    """The function `f`, traced once, as a function on residues (softmax-exact).

    `f` may use rational functions, exponentials and other formal functions, constant masks, `jit`,
    `vmap`, differentiation, loops; anything else is an error that names the primitive and the line.

    >>> import jax, numpy as np
    >>> field = PrimeField(101)
    >>> gradient = over_prime_field(jax.grad(lambda x: (x[0] / x[1]) ** 2), np.zeros(2))
    >>> gradient(field, field.from_integers([3, 2]))  # (2·3/4, −2·9/8) mod 101
    array([-49.,  23.])

    Args:
        f: a JAX-traceable function of pytrees of real arrays.
        *examples: its arguments, as arrays or `jax.ShapeDtypeStruct`; only their shapes are used.
    """
    function = opened(f)

    def value(*args: Any) -> tuple[Any, Any]:
        return function(*args), ()

    return _recorded(value, examples, [False] * len(examples))


def rows_over_prime_field(
    f: Callable[[Any, Any], Any],
    weights: Any,
    inputs: Any,
    batch: int,
    output: Any = None,
    halves: Sequence[float] = (),
) -> ModularFunction:
    """The rows uᵀ ∂f/∂w of `batch` inputs with one cotangent u each, on residues (field-rank).

    It is the function that `f` computes which is differentiated, whatever rules of its own `f`
    gives for that.

    Args:
        f: a JAX function of weights and one input.
        weights: a pytree with the shapes of the weights.
        inputs: a pytree with the shapes of one input.
        batch: how many inputs.
        output: a pytree with the shapes of the output, where they are known.
        halves: floats of half precision that the function had before it was prepared.

    Returns:
        A function of the weights, then of inputs and cotangents with a leading axis, whose value is
        a pytree like the weights with that axis.
    """
    function = opened(f)
    output = output_of(f, shapes_of((weights, inputs))) if output is None else output

    def row(w: Any, X: Any, u: Any) -> tuple[Any, Any]:
        def of_weights(w: Any) -> Any:
            return function(w, X)

        value, pull = jax.vjp(of_weights, w)
        return pull(u)[0], value

    def stack(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((batch, *leaf.shape), np.float64)

    stacked = jax.tree.map(stack, shapes_of((inputs, output)))
    rows = jax.vmap(row, in_axes=(None, 0, 0))
    return _recorded(rows, (weights, *stacked), [False, True, True], halves)


def _recorded(
    f: Callable[..., tuple[Any, Any]],
    examples: Sequence[Any],
    samples: Sequence[bool],
    halves: Sequence[float] = (),
) -> ModularFunction:
    """The first result of `f` as a function on residues, with the second as its values."""
    shapes = shapes_of(tuple(examples))
    jaxpr, structure = traced(f, shapes)
    results = structure.children()[0]
    leaves, arguments = jax.tree.flatten(shapes)
    recorder = Recorder()
    inputs = [recorder.input(leaf.shape) for leaf in leaves]
    outputs = [
        recorder.unknown(value, None) for value in read(recorder, jaxpr.jaxpr, jaxpr.consts, inputs)
    ]
    values = outputs[results.num_leaves :]
    if any(value.masked is not None and value.masked.any() for value in values):
        raise ArgumentError(
            "entries of the output are minus infinity, which is no number, whatever their "
            "derivatives say; return the others alone"
        )
    by_leaf = [
        flag
        for flag, example in zip(samples, shapes, strict=True)
        for _ in jax.tree.leaves(example)
    ]
    return ModularFunction(
        jaxpr,
        recorder,
        outputs[: results.num_leaves],
        values or outputs,
        (([leaf.shape for leaf in leaves], arguments), results),
        by_leaf,
        halves,
    )
