"""From a JAX function to a jaxpr in float64 without dead code."""

import functools
import inspect
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import errors
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params
from jax.interpreters import partial_eval

from neuromanifold.algebra.modular.literals import rounded_halves
from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.whole_numbers import BEYOND_32_BITS, are_beyond, sees_bits
from neuromanifold.errors import ArgumentError, NeuromanifoldError, NotCoveredError

# The lines that errors name are the user's, not this module's.
source_info_util.register_exclusion(__file__)

LARGEST = 2**27
"""Entries of the largest array that is handled: one of residues takes eight bytes an entry."""


def shapes_of(examples: Any, *, whole: bool = False) -> Any:
    """The same pytree with every array replaced by its shape, in float64.

    With `whole` integers and truth values are allowed too, and keep their types.
    """
    try:
        leaves, structure = jax.tree.flatten(examples)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"arguments must be arrays in tuples, lists, dictionaries or registered classes: "
            f"{reason(error)}"
        ) from None
    return jax.tree.unflatten(structure, [_shape(leaf, whole) for leaf in leaves])


def _shape(leaf: Any, whole: bool) -> jax.ShapeDtypeStruct:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        number = float if not whole else (bool, int, float)
        leaf = np.asarray(leaf) if isinstance(leaf, number) else leaf
    if whole and getattr(getattr(leaf, "dtype", None), "kind", "") in ("i", "u", "b"):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, np.floating):
        found = getattr(leaf, "dtype", type(leaf).__name__)
        raise ArgumentError(
            f"arguments must be real floating-point arrays (or their shapes); got {found}: "
            "convert it (complex numbers to real and imaginary parts), or close over it if it is a "
            "constant"
        )
    return jax.ShapeDtypeStruct(leaf.shape, np.float64)


def traced(f: Callable[..., Any], shapes: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr of `f` in float64 without dead code, and the structure of its output."""
    return live(*whole_jaxpr(f, shapes))


def live(closed: ClosedJaxpr, output: Any) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr without dead code, checked, and the structure of its output."""
    everything = [True] * len(closed.jaxpr.outvars)
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, everything, instantiate=True)
    _check(jaxpr)
    for program in programs_in(closed):
        bits = (equation for equation in program.jaxpr.eqns if sees_bits(equation))
        if (equation := next(bits, None)) is not None:
            raise NotCoveredError(f"{where_from(equation)} {BEYOND_32_BITS}")
        if are_beyond([*program.consts, *literals_in(program)]):
            raise NotCoveredError(f"the function holds an array that {BEYOND_32_BITS}")
    _check_outputs(closed.out_avals, np.complexfloating)
    return ClosedJaxpr(jaxpr, closed.consts), jax.tree.structure(output)


def whole_jaxpr(f: Callable[..., Any], shapes: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr of `f` in float64 with all that it computes, and the shapes of its output.

    A loop that insists on single precision for what it carries cannot be traced in double. Then all
    of the function is traced in single precision: the types of floats do not matter to those who
    read the jaxpr, except that its constants are as coarse.
    """
    try:
        return _in_type(f, shapes, np.dtype(np.float64))
    except Exception as error:
        if not _is_of_a_carry(error):
            raise _explained(f, error) from None
    try:
        return _in_type(f, shapes, np.dtype(np.float32))
    except Exception as error:
        raise _explained(f, error) from None


def halves_of(closed: ClosedJaxpr) -> tuple[float, ...]:
    """The floats of half precision in a program that may stand for other numbers."""
    found: list[Any] = []
    for program in programs_in(closed):
        found += [*program.consts, *literals_in(program)]
    return rounded_halves(found)


def literals_in(program: ClosedJaxpr) -> list[Any]:
    """The constants that stand in the equations of a program."""
    atoms = (atom for equation in program.jaxpr.eqns for atom in equation.invars)
    return [np.asarray(atom.val) for atom in atoms if isinstance(atom, Literal)]


def programs_in(closed: ClosedJaxpr) -> Iterator[ClosedJaxpr]:
    """A jaxpr and all inside, in the order in which they are named."""
    yield closed
    for equation in closed.jaxpr.eqns:
        for part in jax.tree.leaves(list(equation.params.values())):
            if isinstance(part, ClosedJaxpr):
                yield from programs_in(part)
            elif isinstance(part, Jaxpr):
                yield from programs_in(ClosedJaxpr(part, ()))


def output_of(f: Callable[..., Any], shapes: Sequence[Any]) -> Any:
    """The pytree of the shapes of the output, which is checked to be real."""
    return output_shapes(*traced(f, shapes))


def output_shapes(closed: ClosedJaxpr, structure: Any) -> Any:
    """The pytree of the shapes of a jaxpr's output, which is checked to be real."""
    if not closed.out_avals:
        raise ArgumentError("the function returns no array; return its value")
    _check_outputs(closed.out_avals, np.complexfloating, np.integer, np.bool_)
    found = [jax.ShapeDtypeStruct(value.shape, np.float64) for value in closed.out_avals]
    return jax.tree.unflatten(structure, found)


def _check_outputs(values: Sequence[Any], *refused: type) -> None:
    for value in values:
        if any(jnp.issubdtype(value.dtype, kind) for kind in refused):
            raise ArgumentError(
                f"the function returns values of type {value.dtype}; return real numbers"
            )


def _in_type(f: Callable[..., Any], shapes: Any, dtype: np.dtype) -> tuple[ClosedJaxpr, Any]:
    def typed(leaf: Any) -> jax.ShapeDtypeStruct:
        real = np.issubdtype(leaf.dtype, np.floating)
        return jax.ShapeDtypeStruct(leaf.shape, dtype if real else leaf.dtype)

    with jax.enable_x64(dtype == np.float64):
        closed, output = jax.make_jaxpr(_of_arrays(f), return_shape=True)(
            *jax.tree.map(typed, shapes)
        )
    if any(isinstance(constant, jax.core.Tracer) for constant in closed.consts):
        raise ArgumentError(f"the function {_REMEDIES[errors.UnexpectedTracerError]}")
    return closed, output


def _of_arrays(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function, once what it returns is seen to be numbers."""

    @functools.wraps(f)
    def called(*arguments: Any) -> Any:
        result = f(*arguments)
        for leaf in jax.tree.leaves(result, is_leaf=inspect.isgenerator):
            if inspect.iscoroutine(leaf):
                leaf.close()
            if not hasattr(leaf, "dtype") and not isinstance(leaf, bool | int | float | complex):
                raise ArgumentError(
                    f"the function returns a value of type {type(leaf).__name__}; return real "
                    "arrays, in tuples, lists or dictionaries"
                )
        return result

    return called


_REMEDIES: dict[type[Exception], str] = {
    errors.TracerBoolConversionError: "decides by Python's `if`, `while` or `and` on values that "
    "depend on its arguments: use jax.numpy.where or jax.lax.cond",
    errors.TracerArrayConversionError: "hands values that depend on its arguments to NumPy: use "
    "jax.numpy",
    errors.TracerIntegerConversionError: "uses values that depend on its arguments as Python "
    "integers: index with jax.numpy",
    errors.NonConcreteBooleanIndexError: "indexes by a Boolean array that depends on arguments, "
    "so the length of the result varies: use jax.numpy.where",
    errors.UnexpectedTracerError: "keeps values of one call for the next: return everything that "
    "it computes",
    RecursionError: "calls itself without end: give the recursion an end",
    MemoryError: "needs more memory than there is: take smaller shapes",
}


def is_of_tracing(error: BaseException) -> bool:
    """Whether an exception is about the way in which a function is traced, not about its values."""
    kinds = (*_REMEDIES, errors.ConcretizationTypeError)
    return isinstance(error, kinds) or _is_of_a_carry(error)


def _is_of_a_carry(error: BaseException) -> bool:
    return isinstance(error, TypeError) and "carry" in str(error)


def _explained(f: Callable[..., Any], error: Exception) -> Exception:
    """One sentence in place of an exception from the user's function, or from JAX."""
    if isinstance(error, NeuromanifoldError):
        return error
    where = _line_of(error)
    for kind, remedy in _REMEDIES.items():
        if isinstance(error, kind):
            return ArgumentError(f"the function{where} {remedy}")
    if isinstance(error, errors.ConcretizationTypeError):
        return ArgumentError(
            f"the function{where} turns values that depend on its arguments into Python numbers: "
            "keep them arrays of JAX"
        )
    if _is_of_a_carry(error):
        return ArgumentError(
            f"the function{where} has a loop whose state changes its shape, its type or its "
            "structure from one step to the next: keep them as they are at the start"
        )
    if "scatter_mul gradients" in str(error):
        return ArgumentError(
            f"the function{where} multiplies or divides at places that may be equal, of which JAX "
            "has no derivative: give unique_indices=True if all differ"
        )
    if not callable(f):
        return ArgumentError(f"a function of weights and one input was wanted; got {f!r}")
    return ArgumentError(
        f"the function cannot be traced by JAX{where}: {type(error).__name__}: {reason(error)}"
    )


def _line_of(error: Exception) -> str:
    """The innermost line of the user's program on the way to an exception."""
    ours = Path(__file__).parents[2]
    packages = Path(np.__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.suffix == ".py" and not (path.is_relative_to(ours) or _inside(path, packages)):
            return f" ({path.name}:{frame.lineno})"
    return ""


def _inside(path: Path, packages: Path) -> bool:
    return path.is_relative_to(packages) or "lib/python" in path.as_posix()


def reason(error: BaseException) -> str:
    """What an exception says in one line, without what JAX adds to it about itself."""
    text = " ".join(str(error).split())
    own = re.split(r" The error occurred while tracing|:? (?:See )?https://| -{9,}", text)[0]
    return textwrap.shorten(own, 300, placeholder=" …") or "no reason"


_OPAQUE = {
    "pure_callback": "calls Python, and nothing is known of what it computes: write it in JAX",
    "io_callback": "calls Python, and nothing is known of what it computes: write it in JAX",
    "eig": "takes eigenvalues of a matrix without symmetry, which are not covered: write the "
    "function without them",
}
"""What cannot even be differentiated, and why."""


def _check(jaxpr: Any) -> None:
    """Refuse what cannot be looked into, and arrays that are too large to be computed with."""
    for variable in (*jaxpr.invars, *jaxpr.constvars):
        _check_size(variable, None)
    for equation in jaxpr.eqns:
        if equation.primitive.name in _OPAQUE:
            raise NotCoveredError(f"{where_from(equation)} {_OPAQUE[equation.primitive.name]}")
        if equation.params.get("bit_width") == 64:
            raise NotCoveredError(
                f"{where_from(equation)} draws random numbers, and the function is read in double "
                "precision, in which they are others than in single: draw them outside, or ask for "
                "their type (dtype=jnp.float32)"
            )
        for variable in equation.outvars:
            _check_size(variable, equation)
        for inner in jaxprs_in_params(equation.params):
            _check(inner)


def _check_size(variable: Any, equation: Any) -> None:
    shape = getattr(variable.aval, "shape", ())
    if np.prod(np.array(shape, dtype=float)) > LARGEST:
        what = "an argument" if equation is None else where_from(equation)
        raise NotCoveredError(
            f"{what} is an array of shape {shape}, and at most {LARGEST} entries can be handled: "
            "take smaller shapes"
        )
