"""The naive twin: the Jacobian of any network in plain integers mod p, by dual numbers.

It reads the traced function itself, not its derivative: every number carries its derivatives by all
weights, x + Σ_c x_c ε_c with ε² = 0, and each operation acts on both by the product rule. It shares
with the fast path only the way in which constants are read as rational numbers and the hash that
stands for an exponential, which is written again here for one argument at a time.

Bounds. Residues are 0 ≤ x < p < 2^23 in int64: a product is below 2^46, and a sum of k of them
below 2^63 for k < 2^17, longer than any sum here; each is reduced at once.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal
from jaxtyping import Bool, Int64

from neuromanifold.algebra.modular.flattening import flattened
from neuromanifold.algebra.modular.literals import rational_array
from neuromanifold.algebra.modular.rules.complex_parts import has_complex
from neuromanifold.algebra.modular.tracing import whole_jaxpr
from neuromanifold.algebra.prime_field import ZeroResidueError
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.network import Network

Integers = Int64[np.ndarray, "..."]
_LONGEST_SUM = 2**17


@dataclass(frozen=True, slots=True)
class TwinExponentials:
    """Formal exponentials in Python integers, one argument at a time (softmax-exact).

    Attributes:
        prime: p.
        keys: the two 64-bit keys.
    """

    prime: int
    keys: tuple[int, int]

    @classmethod
    def of(cls, prime: int, seed: int, label: str) -> "TwinExponentials":
        """The exponentials of a seed and label."""
        text = f"neuromanifold formal exponentials 1|{seed}|{label}"
        digest = hashlib.shake_256(text.encode()).digest(16)
        words = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
        return cls(prime, words)

    def __call__(self, argument: int) -> int:
        """The element for one argument 0 ≤ a < p."""
        if argument == 0:
            return 1
        word = argument
        for key in self.keys:
            word = _split_mix(word ^ key)
        return 1 + word % (self.prime - 1)


def _split_mix(z: int) -> int:
    bits = 2**64 - 1
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & bits
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & bits
    return z ^ (z >> 31)


@dataclass(frozen=True, slots=True)
class Dual:
    """An array of dual numbers mod p.

    Attributes:
        numbers: the numbers, and after each its derivatives by all weights along a last axis.
        infinite: which of them are minus infinity.
    """

    numbers: Integers
    infinite: Bool[np.ndarray, "..."]

    @property
    def value(self) -> Integers:
        """The numbers."""
        return self.numbers[..., 0]

    @property
    def tangent(self) -> Integers:
        """Their derivatives."""
        return self.numbers[..., 1:]


def dual(numbers: Integers, infinite: Any = False) -> Dual:
    """Dual numbers; one mark does for all."""
    return Dual(numbers, np.broadcast_to(infinite, numbers.shape[:-1]))


Value = Dual | np.ndarray
"""Dual numbers, or a constant in floats, integers or Booleans."""


class Twin:
    """A network over the integers mod p, evaluated one input at a time.

    Attributes:
        exponents: the arguments of all exponentials met in the last evaluation that are neither
            masked nor constant.
    """

    def __init__(self, network: Network, prime: int, exponentials: TwinExponentials) -> None:
        closed, output = whole_jaxpr(network.apply, network.shapes)
        if has_complex(closed.jaxpr):
            closed = flattened(network.apply, *network.shapes)[0]
        self._closed, self._output = closed, jax.tree.leaves(output)
        self._network, self._prime, self._exponentials = network, prime, exponentials
        self.exponents: list[Integers] = []

    def jacobian(self, weights: Integers, X: Any) -> Integers:
        """J at one input: a row for each output number, a column for each weight."""
        outputs = self._run(weights, X, directions=True)
        columns = self._network.columns
        return np.concatenate([out.tangent.reshape(out.value.size, columns) for out in outputs])

    def arguments(self, weights: Integers, X: Any) -> Integers:
        """The arguments of all exponentials at one input."""
        self._run(weights, X, directions=False)
        return np.concatenate([np.zeros(0, dtype=np.int64), *self.exponents])

    def _run(self, weights: Integers, X: Any, *, directions: bool) -> list[Dual]:
        self.exponents = []
        count = len(weights) if directions else 0
        stacked = np.concatenate([weights[None], np.eye(count, len(weights), dtype=np.int64)])
        tensors = self._network.assemble(stacked, (1 + count,))
        given = {name: dual(np.moveaxis(tensor, 0, -1)) for name, tensor in tensors.items()}
        inputs = [self._constant(np.asarray(leaf), count) for leaf in jax.tree.leaves(X)]
        named = [given[name] for name in sorted(given)]  # the order in which JAX flattens them
        with jax.enable_x64(True):
            outputs = self._read(self._closed.jaxpr, self._closed.consts, [*named, *inputs])
        return [self._dual(out, count) for out in outputs]

    def _constant(self, residues: np.ndarray, count: int) -> Dual:
        numbers = np.zeros((*residues.shape, 1 + count), dtype=np.int64)
        numbers[..., 0] = np.mod(residues, self._prime)
        return dual(numbers)

    def _dual(self, value: Value, count: int) -> Dual:
        """A constant as dual numbers without derivatives."""
        if isinstance(value, Dual):
            return value
        if value.dtype.kind == "f" and np.any(np.isnan(value) | np.isposinf(value)):
            raise NotCoveredError("the naive twin does not calculate with what is no number")
        infinite = np.isneginf(value) if value.dtype.kind == "f" else np.zeros(value.shape, bool)
        finite = rational_array(np.where(infinite, 0, value))
        residues = [q.numerator * pow(q.denominator, -1, self._prime) for q in finite.distinct]
        table = np.array([r % self._prime for r in residues], dtype=np.int64)
        found = self._constant(np.asarray(table[finite.places]).reshape(value.shape), count)
        return dual(found.numbers, infinite)

    def _read(
        self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Value]
    ) -> list[Value]:
        """The outputs of a jaxpr, equation by equation."""
        known: dict[Any, Value] = dict(
            zip(jaxpr.constvars, map(np.asarray, constants), strict=True)
        )
        known.update(zip(jaxpr.invars, arguments, strict=True))

        def of(atom: Any) -> Value:
            return np.asarray(atom.val) if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            outputs = self._apply(equation, [of(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, outputs, strict=True))
        return [of(atom) for atom in jaxpr.outvars]

    def _apply(self, equation: Any, operands: list[Value]) -> list[Value]:
        name = equation.primitive.name
        inner = _inner(equation.params)
        if inner is not None:
            return self._read(inner.jaxpr, inner.consts, operands)
        if name == "scan":
            return list(self._scan(equation, operands))
        if not any(isinstance(operand, Dual) for operand in operands):
            found = equation.primitive.bind(*operands, **equation.params)
            return [
                np.asarray(out)
                for out in (found if equation.primitive.multiple_results else [found])
            ]
        if name in _SAME:
            return operands
        if name == "select_n" and isinstance(operands[0], Dual):
            raise NotCoveredError("the naive twin selects by constant masks only")
        count = _directions(operands)
        if name in _MOVES:
            return self._moved(equation, operands, count)
        if name not in _RULES:
            raise NotCoveredError(
                f"the naive twin does not know `{name}`, so it cannot verify this certificate"
            )
        duals = [self._dual(operand, count) for operand in operands]
        return [_RULES[name](self, equation.params, *duals)]

    def _scan(self, equation: Any, operands: list[Value]) -> Iterator[Value]:
        """A loop over the leading axis, unrolled."""
        parameters = equation.params
        fixed, carried = parameters["num_consts"], parameters["num_carry"]
        constants, carry = operands[:fixed], operands[fixed : fixed + carried]
        steps, count = range(parameters["length"]), _directions(operands)
        stacks: list[list[Dual]] = []
        body = parameters["jaxpr"]
        for step in reversed(steps) if parameters["reverse"] else steps:
            slices = [_at(operand, step) for operand in operands[fixed + carried :]]
            outputs = self._read(body.jaxpr, body.consts, [*constants, *carry, *slices])
            carry = outputs[:carried]
            stacks.append([self._dual(out, count) for out in outputs[carried:]])
        yield from carry
        ordered = stacks[::-1] if parameters["reverse"] else stacks
        for parts in zip(*ordered, strict=True):
            yield dual(np.stack([d.numbers for d in parts]), np.stack([d.infinite for d in parts]))

    def _moved(self, equation: Any, operands: list[Value], count: int) -> list[Value]:
        """An operation that only moves entries, found by moving their numbers."""
        name, parameters, moving = equation.primitive.name, equation.params, range(len(operands))
        if name == "select_n":  # what is selected nowhere may be no number
            which, *cases = operands
            cases = [
                case if isinstance(case, Dual) else np.where(which == k, case, 0)
                for k, case in enumerate(cases)
            ]
            operands, moving = [which, *cases], range(1, len(operands))
        if name in _INDEXED:
            moving = range(1)
        start, numbers = 0, list(operands)
        duals: list[Dual] = []
        for k in moving:
            moved = self._dual(operands[k], count)
            numbers[k] = np.arange(start, start + moved.value.size).reshape(moved.value.shape)
            start += moved.value.size
            duals.append(moved)
        filled = {"fill_value": start} if name == "gather" else {}  # one number more
        found = equation.primitive.bind(*numbers, **parameters | filled)
        if filled and np.any(np.asarray(found) == start):
            filling = parameters["fill_value"]
            duals.append(
                self._dual(np.asarray(np.nan if filling is None else float(filling)), count)
            )
        values = np.concatenate([d.numbers.reshape(d.value.size, 1 + count) for d in duals])
        masks = np.concatenate([d.infinite.ravel() for d in duals])
        places = found if equation.primitive.multiple_results else [found]
        return [dual(values[at], masks[at]) for at in map(np.asarray, places)]

    # The rules, each with its derivative.

    def add(self, _: Any, x: Dual, y: Dual) -> Dual:
        """X + y; minus infinity absorbs."""
        return dual((x.numbers + y.numbers) % self._prime, x.infinite | y.infinite)

    def sub(self, _: Any, x: Dual, y: Dual) -> Dual:
        """X − y, y finite."""
        return dual((x.numbers - y.numbers) % self._prime, x.infinite)

    def neg(self, _: Any, x: Dual) -> Dual:
        """The negative."""
        return dual(-x.numbers % self._prime, x.infinite)

    def mul(self, _: Any, x: Dual, y: Dual) -> Dual:
        """(x y)' = x' y + x y'."""
        numbers = x.value[..., None] * y.numbers
        numbers[..., 1:] += x.tangent * y.value[..., None]
        return dual(numbers % self._prime, x.infinite | y.infinite)

    def div(self, _: Any, x: Dual, y: Dual) -> Dual:
        """X times 1/y, (1/y)' = −y'/y²."""
        p = self._prime
        if np.any(y.value == 0):
            raise ZeroResidueError(f"a residue to be inverted is 0 mod {p}")
        inverse = np.array([pow(int(v), -1, p) for v in y.value.ravel()], dtype=np.int64)
        inverse = inverse.reshape(y.value.shape)
        numbers = -(inverse * inverse % p)[..., None] * y.numbers
        numbers[..., 0] = inverse
        return self.mul(None, x, dual(numbers % p))

    def integer_pow(self, parameters: Any, x: Dual) -> Dual:
        """Repeated products."""
        exponent = parameters["y"]
        one = self._dual(np.ones(x.value.shape), x.tangent.shape[-1])
        result = one
        for _ in range(abs(exponent)):
            result = self.mul(None, result, x)
        return self.div(None, one, result) if exponent < 0 else result

    def square(self, _: Any, x: Dual) -> Dual:
        """X times x."""
        return self.mul(None, x, x)

    def exp(self, _: Any, x: Dual) -> Dual:
        """The formal element of each argument, e' = e x'; 0 for minus infinity."""
        self.exponents.append(x.value[~x.infinite])
        elements = np.array([self._exponentials(int(a)) for a in x.value.ravel()], dtype=np.int64)
        e = np.where(x.infinite, 0, elements.reshape(x.value.shape))
        numbers = e[..., None] * x.numbers
        numbers[..., 0] = e
        return dual(numbers % self._prime)

    def reduce_sum(self, parameters: Any, x: Dual) -> Dual:
        """The sum over axes."""
        axes = tuple(parameters["axes"])
        return dual(x.numbers.sum(axes) % self._prime, x.infinite.any(axes))

    def reduce_max(self, parameters: Any, x: Dual) -> Dual:
        """Any entry that is not minus infinity does for softmax: the first."""
        axes = tuple(parameters["axes"])
        kept = [k for k in range(x.value.ndim) if k not in axes]
        order = (*kept, *axes)
        flat = x.infinite.transpose(order).reshape(*(x.value.shape[k] for k in kept), -1)
        first = np.argmin(flat, axis=-1)[..., None]
        numbers = x.numbers.transpose(*order, -1).reshape(*flat.shape, x.numbers.shape[-1])
        return dual(
            np.take_along_axis(numbers, first[..., None], -2)[..., 0, :],
            np.take_along_axis(flat, first, -1)[..., 0],
        )

    def max(self, _: Any, x: Dual, y: Dual) -> Dual:
        """The one that is not minus infinity, the first of two finite ones."""
        numbers = np.where(x.infinite[..., None], y.numbers, x.numbers)
        return dual(numbers, x.infinite & y.infinite)

    def cumsum(self, parameters: Any, x: Dual) -> Dual:
        """Running sums, entry by entry."""
        axis, turned = parameters["axis"], x.numbers
        if parameters["reverse"]:
            turned = np.flip(turned, axis)
        total = np.cumsum(turned, axis) % self._prime
        return dual(np.flip(total, axis) if parameters["reverse"] else total)

    def dot_general(self, parameters: Any, x: Dual, y: Dual) -> Dual:
        """(x·y)' = x'·y + x·y'."""
        (mine, theirs), (mine_batch, theirs_batch) = parameters["dimension_numbers"]
        letters = iter("abcdefghijklmnopqrstuvwxy")
        left, right = [""] * x.value.ndim, [""] * y.value.ndim
        for i, j in (*zip(mine_batch, theirs_batch, strict=True), *zip(mine, theirs, strict=True)):
            left[i] = right[j] = next(letters)
        left = [letter or next(letters) for letter in left]
        right = [letter or next(letters) for letter in right]
        batch = "".join(left[i] for i in mine_batch)
        rest = [c for i, c in enumerate(left) if i not in (*mine, *mine_batch)]
        rest += [c for j, c in enumerate(right) if j not in (*theirs, *theirs_batch)]
        out, l, r, p = batch + "".join(rest), "".join(left), "".join(right), self._prime
        if np.prod([x.value.shape[i] for i in mine], dtype=float) >= _LONGEST_SUM:
            raise ArgumentError(f"the naive twin sums fewer than {_LONGEST_SUM} products")
        numbers = np.einsum(f"{l}z,{r}->{out}z", x.numbers, y.value) % p
        numbers[..., 1:] += np.einsum(f"{l},{r}z->{out}z", x.value, y.tangent) % p
        return dual(numbers % p)


_RULES: dict[str, Callable[..., Dual]] = {
    name: getattr(Twin, name)
    for name in (
        *("add", "sub", "neg", "mul", "div", "square", "exp", "max", "integer_pow"),
        *("reduce_sum", "reduce_max", "cumsum", "dot_general"),
    )
} | {"add_any": Twin.add}
_SAME = frozenset(
    {"stop_gradient", "convert_element_type", "copy", "copy_p", "name", "optimization_barrier"}
)
_INDEXED = frozenset({"gather", "dynamic_slice"})
_MOVES = _INDEXED | {
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "rev", "concatenate"),
    *("select_n", "pad", "split", "expand_dims", "stack", "unstack"),
}


def _inner(parameters: dict[str, Any]) -> Any:
    """The program of a call: `jit`, `custom_jvp_call`, `remat` and the like."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        found = parameters.get(key)
        if found is not None and "num_carry" not in parameters and "branches" not in parameters:
            return found if hasattr(found, "consts") else jax.extend.core.ClosedJaxpr(found, ())
    return None


def _directions(operands: Sequence[Value]) -> int:
    """How many derivatives the dual numbers among some operands carry; 0 without any."""
    return next((x.tangent.shape[-1] for x in operands if isinstance(x, Dual)), 0)


def _at(value: Value, step: int) -> Value:
    """One slice along the leading axis."""
    if isinstance(value, Dual):
        return dual(value.numbers[step], value.infinite[step])
    return value[step]
