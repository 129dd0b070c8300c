"""`piecewise`: a function as a function of its arguments and of its branches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Literal, jaxprs_in_params

from neuromanifold.algebra.cells.decisions import Checks, Decider, Follows, Holds, Reads
from neuromanifold.algebra.cells.rules import MEETINGS, OUTCOMES, PIECEWISE
from neuromanifold.algebra.cells.softmax import softmax_maxima
from neuromanifold.algebra.modular.flattening import flattened
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.recorder import MASKING
from neuromanifold.algebra.modular.tracing import shapes_of, traced
from neuromanifold.algebra.modular.whole_numbers import is_wrapped
from neuromanifold.errors import NotCoveredError

source_info_util.register_exclusion(__file__)

# Functions that a large negative number takes to their limits, so that it may stand for infinity.
_SATURATING = frozenset({"exp", "exp2", "expm1", "logistic", "tanh"})


@dataclass(frozen=True, eq=False)
class Piecewise:
    """A function with branches.

    Attributes:
        jaxpr: the function as one list of equations.
        structure: of its output.
        shapes: the shapes of its arguments.
        shifts: the equations that are maxima of softmax, whose value does not matter.
    """

    jaxpr: ClosedJaxpr
    structure: Any
    shapes: tuple[Any, ...]
    shifts: frozenset[int]

    def read(self, arguments: Sequence[Any]) -> Reads:
        """The branches and outcomes at a point, in floats."""
        decider = Reads()
        self._run(decider, arguments)
        return decider

    def holds(
        self, arguments: Sequence[Any], branches: Sequence[Any] = (), outcomes: Sequence[Any] = ()
    ) -> list[Holds]:
        """What has to be so for a function with these branches and outcomes to have its value."""
        decider = Checks(branches, outcomes)
        outputs = self._run(decider, arguments)
        # Where the function has no value there is no cell.
        values = [Holds(ties=jnp.sum(x) * 0.0) for x in outputs if x.dtype.kind == "f"]
        return [*decider.holds, *values]

    def fixed(self, arguments: Sequence[Any], branches: Sequence[Any]) -> Any:
        """The function with these branches: an ordinary JAX function of its real arguments.

        In place of whole numbers there may be None: all that they decide is in the branches.
        """
        outputs = self._run(Follows(branches), arguments)
        return jax.tree.unflatten(self.structure, outputs)

    @cached_property
    def branch_shapes(self) -> list[Any]:
        """The shapes of the branches."""
        with jax.enable_x64(True):
            return jax.eval_shape(self._branches, self.shapes)

    def _branches(self, arguments: Sequence[Any]) -> list[Any]:
        return self.read(arguments).branches

    @cached_property
    def has_cells(self) -> bool:
        """Whether real numbers decide anything, and not only whole numbers among the arguments."""
        decider = Reads()
        with jax.enable_x64(True):
            jax.eval_shape(partial(self._run, decider), self.shapes)
        return decider.is_real

    @cached_property
    def _has_masks(self) -> bool:
        """Whether minus infinity is put in place of values, and not only compared with them."""
        equations = (e for e in self.jaxpr.jaxpr.eqns if e.primitive.name not in OUTCOMES)
        atoms = (a for equation in equations for a in equation.invars)
        constants = (*self.jaxpr.consts, *(a.val for a in atoms if isinstance(a, Literal)))
        return any(np.isneginf(x).any() for x in map(np.asarray, constants) if x.dtype.kind == "f")

    @cached_property
    def _saturates(self) -> bool:
        """Whether large negative numbers in it may stand for minus infinity."""
        return bool(names(self.jaxpr.jaxpr) & _SATURATING)

    def _check_chosen(self, equation: Any, operands: Sequence[Any], known: Sequence[bool]) -> None:
        """Refuse a mask in place of values that the arguments decide: it is no number there.

        One that is chosen among constants, and added to values, is: values and their shifts stay.
        """
        is_real = [v.aval.dtype.kind == "f" for v in equation.invars]
        if all(compress(known, is_real)):
            return
        real = [x for x in map(np.asarray, compress(operands, known)) if x.dtype.kind == "f"]
        low = np.concatenate([x[np.isfinite(x) & (x <= MASKING)] for x in real] or [np.zeros(0)])
        if self._saturates and low.size:
            raise NotCoveredError(
                f"{where_from(equation)} puts {low.min():g} at places that the arguments decide, "
                "beside exponentials, where it may stand for minus infinity: add it to the values "
                "there and 0 elsewhere, or choose by a constant mask"
            )

    def _run(self, decider: Decider, arguments: Sequence[Any]) -> list[Any]:
        jaxpr, masked = self.jaxpr.jaxpr, self._has_masks
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, self.jaxpr.consts, strict=True))
        fixed = set(jaxpr.constvars)
        leaves = jax.tree.leaves(arguments, is_leaf=lambda leaf: leaf is None)
        values.update(zip(jaxpr.invars, leaves, strict=True))
        outcomes: set[Any] = {v for v in jaxpr.invars if v.aval.dtype.kind != "f"}
        for i, equation in enumerate(jaxpr.eqns):
            operands = [a.val if isinstance(a, Literal) else values[a] for a in equation.invars]
            known = [isinstance(a, Literal) or a in fixed for a in equation.invars]
            whole = [not isinstance(a, Literal) and a in outcomes for a in equation.invars]
            kind = self._kind(i, equation, operands, known, whole)
            if kind == "guard":
                for x, is_known in zip(operands, known, strict=True):
                    if not is_known:
                        decider.assume_value(jnp.where(masked & jnp.isneginf(x), 0.0, x))
            if kind == "meeting":
                self._check_chosen(equation, operands, known)
            with source_info_util.user_context(equation.source_info.traceback):
                results = _apply(kind, decider, equation, operands)
            values.update(zip(equation.outvars, results, strict=True))
            if kind in {"outcome", "discrete"}:
                outcomes.update(equation.outvars)
            elif kind == "piecewise":
                outcomes.update(v for v in equation.outvars if v.aval.dtype.kind != "f")
        return [jnp.asarray(a.val if isinstance(a, Literal) else values[a]) for a in jaxpr.outvars]

    def _kind(
        self, i: int, equation: Any, operands: Sequence[Any], known: list[bool], whole: list[bool]
    ) -> str:
        """What an equation is: plain, piecewise, an outcome, made of outcomes, a meeting, a guard.

        A guard asks whether a value is finite, and it is taken to be.
        """
        name, dtype = equation.primitive.name, equation.outvars[0].aval.dtype
        if not isinstance(dtype, np.dtype):
            raise NotCoveredError(
                f"{where_from(equation)} makes keys of random numbers from the arguments; draw "
                "random numbers from constant keys"
            )
        output = dtype.kind
        if any(whole):
            if name in PIECEWISE and output == "f":
                return "piecewise"
            return "discrete" if output != "f" else "meeting"
        real = all(v.aval.dtype.kind == "f" for v in equation.invars)
        infinite = np.isinf if name in OUTCOMES else np.isneginf
        masks = any(k and infinite(x).all() for k, x in zip(known, operands, strict=True))
        if name == "is_finite" or (real and masks and name in OUTCOMES):
            return "guard"
        if not real or masks or i in self.shifts:
            # What is compared with an infinity is known, and softmax's maximum may be any entry.
            return "piecewise" if name == "sort" and output == "f" else "plain"
        if name in PIECEWISE:
            return "piecewise"
        return "outcome" if name in OUTCOMES and output != "f" else "plain"


def _apply(kind: str, decider: Decider, equation: Any, operands: Sequence[Any]) -> Sequence[Any]:
    name = equation.primitive.name
    if kind == "piecewise":
        return PIECEWISE[name](decider, equation, [_real(x) for x in operands])
    if kind == "outcome":
        result = decider.outcome(OUTCOMES[name](equation, operands))
        decider.assume(lambda: ~is_wrapped(operands, [result]))
        return [result]
    if kind == "discrete":
        results = decider.discrete(lambda: _bound(equation, operands))
        decider.assume(lambda: ~is_wrapped(operands, results))
        return results if results is not None else [None] * len(equation.outvars)
    if kind == "meeting":
        if name not in MEETINGS:
            raise NotCoveredError(
                f"{where_from(equation)} mixes real numbers with whole numbers that depend on the "
                "arguments; select by them, index with them or turn them into real numbers"
            )
        return MEETINGS[name](decider, equation, operands)
    return _bound(equation, operands)


def _real(x: Any) -> Any:
    return x if x is None else jnp.asarray(x)


def _bound(equation: Any, operands: Sequence[Any]) -> list[Any]:
    result = equation.primitive.bind(*operands, **equation.params)
    return list(result) if equation.primitive.multiple_results else [result]


def piecewise(f: Callable[..., Any], *examples: Any) -> Piecewise | None:
    """The function as one with branches, or None when it has none.

    Whole numbers among the arguments decide branches, as comparisons of real numbers do.

    Args:
        f: a JAX function of pytrees of arrays.
        *examples: arguments, of which the shapes are used.
    """
    shapes = shapes_of(examples, whole=True)
    is_whole = any(leaf.dtype.kind != "f" for leaf in jax.tree.leaves(shapes))
    deciding = frozenset(PIECEWISE) | frozenset(OUTCOMES)
    found = names(traced(f, shapes)[0].jaxpr)
    is_deciding = is_whole or found & deciding
    if not is_deciding and "lu" not in found:
        return None
    pieces = flat(f, *shapes)
    _refuse_factors(pieces.jaxpr.jaxpr)
    return pieces if is_whole or (is_deciding and pieces.branch_shapes) else None


def flat(f: Callable[..., Any], *examples: Any) -> Piecewise:
    """The function as one with branches, of which there may be none."""
    shapes = shapes_of(examples, whole=True)
    jaxpr, structure = flattened(f, *shapes)
    return Piecewise(jaxpr, structure, tuple(shapes), frozenset(softmax_maxima(jaxpr.jaxpr)))


def _refuse_factors(jaxpr: Any) -> None:
    """Refuse factors L U that are looked at: which rows were exchanged for them is a branch.

    A solution does not depend on it (`linear_systems`): of the factors only triangular systems may
    be made, and the order of the rows may only say where entries are taken from.
    """
    factors: set[Any] = set()
    order: set[Any] = set()
    for equation in jaxpr.eqns:
        name, operands = equation.primitive.name, equation.invars
        read = {v for v in operands if not isinstance(v, Literal)}
        if name == "lu":
            factors.add(equation.outvars[0])
            order.update(equation.outvars[1:])
        if read & order and equation.outvars[0].aval.dtype.kind != "f":
            order.update(equation.outvars)
        elif read & factors and name in {"broadcast_in_dim", "transpose", "reshape", "squeeze"}:
            factors.update(equation.outvars)
        elif (read & order and name != "gather") or (
            read & factors and (name != "triangular_solve" or operands[1] in factors)
        ):
            raise _of_factors(where_from(equation))
    if factors.intersection(v for v in jaxpr.outvars if not isinstance(v, Literal)):
        raise _of_factors("the output")


def _of_factors(where: str) -> NotCoveredError:
    return NotCoveredError(
        f"{where} looks at the factors of a matrix, which depend on the order of its rows: use "
        "jax.numpy.linalg.solve, inv, det or slogdet"
    )


def names(jaxpr: Any) -> frozenset[str]:
    """The primitives of a jaxpr and of those inside."""
    found: set[str] = set()
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for inner in jaxprs_in_params(equation.params):
            found |= names(inner)
    return frozenset(found)
