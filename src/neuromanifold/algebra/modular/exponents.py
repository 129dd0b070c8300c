"""The arguments of `exp` in a function, as a function of their own.

The formal exponentials of a function stand for the true ones when no nontrivial rational
combination of these arguments is constant (softmax-exact), and a rank over GF(p) of their values
proves that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from neuromanifold.algebra.modular.control import inner_jaxpr, opened
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.tracing import shapes_of, traced
from neuromanifold.errors import NotCoveredError

# The multiple of its operand that each primitive exponentiates.
_EXPONENT = {"exp": 1.0, "expm1": 1.0, "logistic": -1.0, "tanh": 2.0}


def exponents_of(f: Callable[..., Any]) -> Callable[..., jax.Array]:
    """A function of the same arguments: all arguments of `exp` in `f`, in order, as one vector.

    It is an ordinary JAX function, to be vmapped and given to `over_prime_field`. An operand that
    is exponentiated twice is listed once, and one that depends on no argument is not listed.
    Entries that a mask makes minus infinity are kept: the evaluated function marks them in
    `ModularFunction.masked`. The entry that softmax subtracts from the others appears as the
    difference 0, at every point.

    >>> import numpy as np
    >>> from neuromanifold.algebra.modular import over_prime_field
    >>> from neuromanifold.algebra.prime_field import PrimeField
    >>> field = PrimeField(101)
    >>> differences = over_prime_field(exponents_of(jax.nn.softmax), np.zeros(3))
    >>> differences(field, field.from_integers([5, 7, 11]))
    array([0., 2., 6.])
    """

    def exponents(*args: Any) -> jax.Array:
        jaxpr, _ = traced(f, shapes_of(args))
        found: list[jax.Array] = []
        arguments = [_Value(leaf, varies=True) for leaf in jax.tree.leaves(args)]
        _Evaluation(found).evaluate(jaxpr.jaxpr, jaxpr.consts, arguments)
        return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(x) for x in found)])

    return exponents


@dataclass(frozen=True, slots=True)
class _Value:
    """A JAX value, and whether it depends on the arguments."""

    array: Any
    varies: bool


class _Evaluation:
    """Evaluates jaxprs in JAX and adds what is exponentiated on the way to a list."""

    def __init__(self, found: list[jax.Array]) -> None:
        self._found = found
        # Operands are kept, so that no other value can get the id of one that was met.
        self._met: dict[tuple[int, float], Any] = {}

    def evaluate(
        self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[_Value]
    ) -> list[_Value]:
        """The outputs of a jaxpr."""
        values = {
            variable: _Value(constant, varies=False)
            for variable, constant in zip(jaxpr.constvars, constants, strict=True)
        }
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def value_of(atom: Any) -> _Value:
            return _Value(atom.val, varies=False) if isinstance(atom, Literal) else values[atom]

        for equation in jaxpr.eqns:
            operands = [value_of(atom) for atom in equation.invars]
            values.update(zip(equation.outvars, self._apply(equation, operands), strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    def _apply(self, equation: Any, operands: list[_Value]) -> list[_Value]:
        name, params = equation.primitive.name, equation.params
        inner = inner_jaxpr(equation)
        if inner is not None:
            return self.evaluate(*inner, operands)
        if name == "scan":
            return self._scan(params, operands)
        varies = any(operand.varies for operand in operands)
        if name in _EXPONENT and varies:
            self._meet(operands[0].array, _EXPONENT[name])
        if name in {"cond", "while"} and varies:
            raise NotCoveredError(
                f"{where_from(equation)} may hide exponentials whose independence has to be "
                "proved; use a Python `if`, or a loop of constant length"
            )
        result = equation.primitive.bind(*(operand.array for operand in operands), **params)
        results = result if equation.primitive.multiple_results else [result]
        return [_Value(array, varies) for array in results]

    def _meet(self, operand: Any, factor: float) -> None:
        if (id(operand), factor) not in self._met:
            self._met[id(operand), factor] = operand
            self._found.append(operand if factor == 1 else factor * operand)

    def _scan(self, params: dict[str, Any], operands: list[_Value]) -> list[_Value]:
        body = opened(params["jaxpr"])
        fixed = operands[: params["num_consts"]]
        carry = operands[params["num_consts"] :][: params["num_carry"]]
        rows = operands[params["num_consts"] + params["num_carry"] :]
        turns = range(params["length"])
        collected: list[list[_Value]] = []
        for i in reversed(turns) if params["reverse"] else turns:
            row = [_Value(x.array[i], x.varies) for x in rows]
            results = self.evaluate(*body, [*fixed, *carry, *row])
            carry = results[: len(carry)]
            collected.append(results[len(carry) :])
        if params["reverse"]:
            collected.reverse()
        columns = zip(*collected, strict=True)
        return [*carry, *(_stacked(column) for column in columns)]


def _stacked(column: Sequence[_Value]) -> _Value:
    array = jnp.stack([value.array for value in column])
    return _Value(array, any(value.varies for value in column))
