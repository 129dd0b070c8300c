"""`over_prime_field`: a JAX function as a function on residues."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from neuromanifold.algebra.modular.exponentials import FormalExponentials
from neuromanifold.algebra.modular.interpreter import read
from neuromanifold.algebra.modular.recorder import Program, Recorder, Setting
from neuromanifold.algebra.modular.tracing import shapes_of, traced
from neuromanifold.algebra.prime_field import PrimeField, Residues
from neuromanifold.errors import ArgumentError


class ModularFunction:
    """A JAX function, traced for arguments of given shapes, that is evaluated mod p.

    Attributes:
        jaxpr: what was traced, without dead code.
        uses_exponentials: whether `exp` occurs, so that calls need formal exponentials.
        dyadic_constants: the constants that are no rationals of small height, and were taken as the
            exact value of their float.
    """

    def __init__(
        self,
        jaxpr: ClosedJaxpr,
        program: Program,
        uses_exponentials: bool,
        structures: tuple[Any, Any],
    ) -> None:
        self.jaxpr = jaxpr
        self.uses_exponentials = uses_exponentials
        self._program = program
        self._arguments, self._results = structures
        self._residues: dict[int, list[Residues]] = {}

    @property
    def dyadic_constants(self) -> tuple[float, ...]:
        """The constants taken as the exact value of their float, in increasing order."""
        found = {x for _, constant in self._program.constants for x in constant.dyadic}
        return tuple(sorted(found))

    @property
    def masked(self) -> Any:
        """The pytree of Boolean arrays that mark the outputs which are minus infinity."""
        masks = [np.array(output.mask) for output in self._program.outputs]
        return jax.tree.unflatten(self._results, masks)

    def __call__(
        self, field: PrimeField, *arguments: Any, exponentials: FormalExponentials | None = None
    ) -> Any:
        """The value at residues, as a pytree of residues.

        Args:
            field: the prime field.
            *arguments: pytrees of residues with the shapes that were traced.
            exponentials: the elements that stand for exponentials; needed when `exp` occurs.

        Raises:
            ZeroResidueError: a denominator is zero at this point; draw another one.
        """
        inputs = self._checked(arguments)
        if self.uses_exponentials and exponentials is None:
            raise ArgumentError(
                "the function contains exponentials, and none were given; "
                "pass exponentials=FormalExponentials(field, seed)"
            )
        if exponentials is not None and exponentials.field != field:
            raise ArgumentError(
                f"the exponentials belong to the prime {exponentials.field.modulus} and the field "
                f"has {field.modulus}; use one prime"
            )
        if field.modulus not in self._residues:
            self._residues[field.modulus] = [c.residues(field) for _, c in self._program.constants]
        setting = Setting(field, exponentials)
        outputs = self._program.run(setting, inputs, self._residues[field.modulus])
        return jax.tree.unflatten(self._results, outputs)

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


def over_prime_field(f: Callable[..., Any], *examples: Any) -> ModularFunction:
    """The function `f`, traced once, as a function on residues (softmax-exact).

    `f` may use rational functions, exponentials, constant masks, `jit`, `vmap`, differentiation,
    loops; anything else is an error that names the primitive and the line.

    >>> import jax, numpy as np
    >>> field = PrimeField(101)
    >>> gradient = over_prime_field(jax.grad(lambda x: (x[0] / x[1]) ** 2), np.zeros(2))
    >>> gradient(field, field.from_integers([3, 2]))  # (2·3/4, −2·9/8) mod 101
    array([-49.,  23.])

    Args:
        f: a JAX-traceable function of pytrees of real arrays.
        *examples: its arguments, as arrays or `jax.ShapeDtypeStruct`; only their shapes are used.
    """
    shapes = shapes_of(examples)
    jaxpr, results = traced(f, shapes)
    leaves, structure = jax.tree.flatten(shapes)
    recorder = Recorder()
    inputs = [recorder.input(leaf.shape) for leaf in leaves]
    values = read(recorder, jaxpr.jaxpr, jaxpr.consts, inputs)
    outputs = [recorder.unknown(value, None) for value in values]
    arguments = ([leaf.shape for leaf in leaves], structure)
    return ModularFunction(
        jaxpr, recorder.program(outputs), recorder.uses_exponentials, (arguments, results)
    )
