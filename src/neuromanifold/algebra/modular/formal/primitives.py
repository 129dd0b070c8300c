"""Formal elements: the five functions that are not rational, as primitives of their own.

`formal_p` stands for exp, log, square root, error function, and the pair (cos, sin). Its rules for
derivatives are the only place where those functions are differentiated, and vectorising it puts the
samples on the first axis, so that a program knows which entries belong to which sample:

    d exp u = exp u du      d log x = dx / x      d √x = dx / 2√x
    d erf u = c exp(−u²) du, c the float 2/√π      d (cos u, sin u) = (−sin u, cos u) du
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

Kind = Literal["exp", "log", "root", "erf", "turn"]

ERF_SLOPE = 2.0 / math.sqrt(math.pi)

formal_p = Primitive("formal")
formal_p.multiple_results = True

_FLOATS: dict[str, Callable[[Any], list[Any]]] = {
    "exp": lambda x: [lax.exp(x)],
    "log": lambda x: [lax.log(x)],
    "root": lambda x: [lax.sqrt(x)],
    "erf": lambda x: [lax.erf(x)],
    "turn": lambda x: [lax.cos(x), lax.sin(x)],
}


def formal(kind: Kind, x: Any) -> list[Any]:
    """The outputs of a formal function: one, but (cos, sin) for a turn."""
    return formal_p.bind(x, kind=kind, samples=False)


@formal_p.def_abstract_eval
def _shapes(x: Any, *, kind: Kind, samples: bool) -> list[Any]:
    del samples
    return [x] * (2 if kind == "turn" else 1)


@formal_p.def_impl
def _in_floats(x: Any, *, kind: Kind, samples: bool) -> list[Any]:
    del samples
    return _FLOATS[kind](jax.numpy.asarray(x))


def _derivative(
    primals: Sequence[Any], tangents: Sequence[Any], *, kind: Kind, samples: bool
) -> tuple[list[Any], list[Any]]:
    (x,), (dx,) = primals, tangents
    outputs = formal_p.bind(x, kind=kind, samples=samples)
    if isinstance(dx, ad.Zero):
        return outputs, [ad.Zero(dx.aval) for _ in outputs]
    y = outputs[0]
    match kind:
        case "exp":
            slopes = [y * dx]
        case "log":
            slopes = [dx / x]
        case "root":
            slopes = [dx / (2.0 * y)]
        case "erf":
            (e,) = formal_p.bind(-(x * x), kind="exp", samples=samples)
            slopes = [(ERF_SLOPE * e) * dx]
        case "turn":
            slopes = [-outputs[1] * dx, y * dx]
    return outputs, slopes


def _vectorised(
    operands: Sequence[Any], axes: Sequence[int], *, kind: Kind, samples: bool
) -> tuple[list[Any], list[int]]:
    (x,), (axis,) = operands, axes
    if samples:
        raise TypeError("a formal function is vectorised over samples once")
    if axis != 0:
        x = lax.transpose(x, [axis, *(i for i in range(np.ndim(x)) if i != axis)])
    outputs = formal_p.bind(x, kind=kind, samples=True)
    return outputs, [0] * len(outputs)


ad.primitive_jvps[formal_p] = _derivative
batching.primitive_batchers[formal_p] = _vectorised
mlir.register_lowering(formal_p, mlir.lower_fun(_in_floats, multiple_results=True))
