"""Functions of the inputs alone, as free variables (docs/explanation/engine/features.md).

A function f(w, x) = g(w, φ(x)) whose inputs reach the weights through values φ₁, …, φ_m is as good
as g with free variables, provided that φ is a submersion somewhere: its image then holds an open
set, and a minor of the rows of g that is no zero function is none on that set. So g may be
evaluated at random residues, and nothing has to be known about what φ is made of but enclosures
of its derivatives at one real point, in balls.

The values are the fewest through which everything passes: a minimum cut of the graph of those
values that depend on inputs alone, as near to the inputs as can be, where what the engine does not
read lies before the cut. Cuts nearer to the weights are functions of this one, so they are
independent only if it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun
from jax.interpreters import partial_eval
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from neuromanifold.algebra.balls.arrays import PRECISION, precision
from neuromanifold.algebra.balls.function import CLAMPING, in_balls, roughly
from neuromanifold.algebra.balls.minors import proved_rank
from neuromanifold.algebra.balls.rules import UndecidedError
from neuromanifold.algebra.cells.piecewise import flat, names
from neuromanifold.algebra.cells.points import real_point
from neuromanifold.algebra.cells.proof import Decided
from neuromanifold.algebra.cells.rules import OUTCOMES, PIECEWISE
from neuromanifold.algebra.modular.coverage import SUPPORTED
from neuromanifold.algebra.modular.flattening import flattened
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.tracing import shapes_of, traced

READ = SUPPORTED | frozenset(PIECEWISE) | frozenset(OUTCOMES)
"""The primitives that are read over a prime field, or decided in a cell."""
MOST_VALUES = 256
"""Values whose independence is tried: a minor of so many balls takes some seconds."""
_POINTS = 8


@dataclass(frozen=True, eq=False)
class Features:
    """A function of weights and inputs, cut into two.

    Attributes:
        values: from the leaves of one input to the values that reach the weights.
        rest: from the leaves of the weights and these values to the leaves of the output.
        weights: arrays with the shapes of the leaves of the weights.
        inputs: arrays with the shapes of the leaves of one input.
        shapes: the shapes of the values.
        structure: of the output.
        where: a primitive before the cut that is not read, with its line.
    """

    values: Callable[..., list[Any]]
    rest: Callable[..., list[Any]]
    weights: list[np.ndarray]
    inputs: list[np.ndarray]
    shapes: tuple[tuple[int, ...], ...]
    structure: Any
    where: str

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(map(prod, self.shapes))

    def rank(self, weights: Sequence[Any] | None = None, bits: int = PRECISION) -> int:
        """The largest rank of the derivative that is proved at one of a few real points.

        A point counts only if the whole function has a value there, at these weights or at some:
        that of √(atan x − 2) has none anywhere.
        """
        found = 0
        for attempt in range(_POINTS):
            at, x = real_point(attempt, "features", (self.weights, self.inputs))
            with jax.enable_x64(True):
                if not self._decided.holds_at(at if weights is None else weights, x):
                    continue
                try:
                    slopes, values = in_balls(self._with_slopes, x, bits=bits, constant=roughly)
                except UndecidedError:
                    continue
            if all(value.is_finite() for value in (*slopes.flat, *values.flat)):
                with precision(bits):
                    found = max(found, proved_rank(slopes).rank)
            if found == self.count:
                break
        return found

    @cached_property
    def _decided(self) -> Decided:
        def whole(weights: Any, inputs: Any) -> list[Any]:
            return self.rest(*weights, *self.values(*inputs))

        return Decided(flat(whole, self.weights, self.inputs), 1)

    def _with_slopes(self, inputs: Any) -> tuple[Any, Any]:
        """The derivatives of all values by all entries of the inputs, and the values."""

        def flat(inputs: Any) -> Any:
            return jnp.concatenate([jnp.ravel(value) for value in self.values(*inputs)])

        slopes = [leaf.reshape(self.count, -1) for leaf in jax.jacrev(flat)(inputs)]
        return jnp.concatenate(slopes, axis=1), flat(inputs)


def features(f: Callable[..., Any], weights: Any, inputs: Any) -> Features | None:
    """The function as one of free variables, if what is not read depends on inputs alone.

    Args:
        f: a JAX function of weights and one input.
        weights: a pytree with the shapes of the weights.
        inputs: a pytree with the shapes of one input.
    """
    shapes = shapes_of((weights, inputs), whole=True)
    if names(traced(f, shapes)[0].jaxpr) <= READ:
        return None
    closed, structure = flattened(f, *shapes, rules=CLAMPING)
    jaxpr, first = _merged(closed.jaxpr), len(jax.tree.leaves(shapes[0]))
    moved: set[Any] = set(jaxpr.invars[:first])
    inner: list[Any] = []
    for equation in jaxpr.eqns:
        if moved.intersection(_read(equation)):
            moved.update(equation.outvars)
        else:
            inner.append(equation)
    unread = [e for e in inner if e.primitive.name not in READ and _is_real(e.outvars[0])]
    if not unread or not all(map(_is_real, jaxpr.invars[first:])):
        return None
    cut = _cut(jaxpr, first, inner, unread)

    def part(arguments: Sequence[Any], results: Sequence[Any]) -> Callable[..., list[Any]]:
        given = set(arguments)
        equations = [e for e in jaxpr.eqns if not given.intersection(e.outvars)]
        whole = jaxpr.replace(invars=list(arguments), outvars=list(results), eqns=equations)
        needed, _ = partial_eval.dce_jaxpr(whole, [True] * len(results), instantiate=True)
        return jaxpr_as_fun(ClosedJaxpr(needed, closed.consts))

    return Features(
        part(jaxpr.invars[first:], cut),
        part([*jaxpr.invars[:first], *cut], jaxpr.outvars),
        [np.empty(v.aval.shape) for v in jaxpr.invars[:first]],
        [np.empty(v.aval.shape) for v in jaxpr.invars[first:]],
        tuple(v.aval.shape for v in cut),
        structure,
        where_from(unread[0]),
    )


def _merged(jaxpr: Any) -> Any:
    """The jaxpr in which equations that compute the same are one."""
    same: dict[Any, Any] = {}
    met: dict[Any, Sequence[Any]] = {}
    equations = []
    for equation in jaxpr.eqns:
        operands = [a if isinstance(a, Literal) else same.get(a, a) for a in equation.invars]
        what = [
            (str(a.aval), np.asarray(a.val).tobytes()) if isinstance(a, Literal) else a
            for a in operands
        ]
        key: Any = (equation.primitive.name, *what, *sorted(equation.params.items()))
        try:
            before = met.setdefault(key, equation.outvars)
        except TypeError:  # parameters that cannot be compared
            before = equation.outvars
        if before is equation.outvars:
            equations.append(equation.replace(invars=operands))
        else:
            same.update(zip(equation.outvars, before, strict=True))
    results = [a if isinstance(a, Literal) else same.get(a, a) for a in jaxpr.outvars]
    return jaxpr.replace(eqns=equations, outvars=results)


def _cut(jaxpr: Any, first: int, inner: Sequence[Any], unread: Sequence[Any]) -> list[Any]:
    """The smallest cut between the inputs, or what is not read, and whatever meets the weights.

    Each variable is an edge as wide as it has entries; all other edges, and variables that are no
    real numbers, are wider than all of these together.
    """
    inputs, inside = jaxpr.invars[first:], set(map(id, inner))
    number = {v: k for k, v in enumerate([*inputs, *(v for e in inner for v in e.outvars)])}
    source, sink = 2 * len(number), 2 * len(number) + 1
    sizes = {v: prod(v.aval.shape) for v in number}
    wide = 1 + sum(sizes.values())
    edges = {(2 * k, 2 * k + 1): sizes[v] if _is_real(v) else wide for v, k in number.items()}
    begin = [*inputs, *(v for e in unread for v in e.outvars)]
    edges |= {(source, 2 * number[v]): wide for v in begin}
    for e in jaxpr.eqns:
        ends = [2 * number[v] for v in e.outvars] if id(e) in inside else [sink]
        edges |= {(2 * number[u] + 1, v): wide for u in _read(e) if u in number for v in ends}
    edges |= {(2 * number[v] + 1, sink): wide for v in jaxpr.outvars if v in number}
    places = tuple(np.array(list(edges)).T)
    widths = csr_array((np.array(list(edges.values()), np.int32), places), (sink + 1, sink + 1))
    left = csr_array(widths - maximum_flow(widths, source, sink).flow)
    left.eliminate_zeros()
    reached = set(breadth_first_order(left, source, return_predecessors=False).tolist())
    return [v for v, k in number.items() if 2 * k in reached and 2 * k + 1 not in reached]


def _read(equation: Any) -> list[Any]:
    """The variables that an equation reads."""
    return [atom for atom in equation.invars if not isinstance(atom, Literal)]


def _is_real(variable: Any) -> bool:
    return jnp.issubdtype(variable.aval.dtype, np.floating)  # also asked of random keys
