"""The arguments of `exp` in a function, as a function of their own.

The formal exponentials of a function stand for the true ones when no nontrivial rational combination
of these arguments is constant (softmax-exact), and a rank over GF(p) of their values proves that.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from neuromanifold.algebra.modular.control import inner_jaxpr, opened
from neuromanifold.algebra.modular.tracing import shapes_of, traced

# The multiple of its operand that each primitive exponentiates.
_EXPONENT = {"exp": 1.0, "expm1": 1.0, "logistic": -1.0, "tanh": 2.0}


def exponents_of(f: Callable[..., Any]) -> Callable[..., jax.Array]:
    """A function of the same arguments: all arguments of `exp` in `f`, in order, as one vector.

    It is an ordinary JAX function, to be vmapped and given to `over_prime_field`. An operand that is
    exponentiated twice is listed once. Entries that a mask makes minus infinity are kept: the
    evaluated function marks them in `ModularFunction.masked`. The entry that softmax subtracts from
    the others appears as the difference 0, at every point.

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
        met = _Exponents()
        met.evaluate(jaxpr.jaxpr, jaxpr.consts, jax.tree.leaves(args))
        return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(x) for x in met.found)])

    return exponents


class _Exponents:
    """Evaluates jaxprs in JAX and keeps what is exponentiated on the way."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._seen: dict[tuple[int, float], Any] = {}

    def _meet(self, operand: Any, factor: float) -> None:
        # The operand itself is kept as the entry's value, so that its id stays its own.
        if self._seen.setdefault((id(operand), factor), operand) is operand:
            self._seen[id(operand), factor] = (operand,)
            self.found.append(operand if factor == 1 else factor * operand)

    def evaluate(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def value_of(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else values[atom]

        for equation in jaxpr.eqns:
            operands = [value_of(atom) for atom in equation.invars]
            values.update(zip(equation.outvars, self._apply(equation, operands), strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    def _apply(self, equation: Any, operands: list[Any]) -> list[Any]:
        name = equation.primitive.name
        inner = inner_jaxpr(equation)
        if inner is not None:
            return self.evaluate(*inner, operands)
        if name == "scan":
            return self._scan(equation.params, operands)
        if name in _EXPONENT:
            self._meet(operands[0], _EXPONENT[name])
        result = equation.primitive.bind(*operands, **equation.params)
        return result if equation.primitive.multiple_results else [result]

    def _scan(self, params: dict[str, Any], operands: list[Any]) -> list[Any]:
        body = opened(params["jaxpr"])
        fixed = operands[: params["num_consts"]]
        carry = operands[params["num_consts"] :][: params["num_carry"]]
        rows = operands[params["num_consts"] + params["num_carry"] :]
        turns = list(range(params["length"]))
        collected: list[list[Any]] = []
        for i in reversed(turns) if params["reverse"] else turns:
            results = self.evaluate(*body, [*fixed, *carry, *(x[i] for x in rows)])
            carry = results[: len(carry)]
            collected.append(results[len(carry) :])
        if params["reverse"]:
            collected.reverse()
        return [*carry, *(jnp.stack(column) for column in zip(*collected, strict=True))]
