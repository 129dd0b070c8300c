"""Maxima that are only subtracted before an exponential, as softmax and logsumexp do.

Their value does not matter: exp(x − m) is divided by a sum of such terms, or m is added again. They
are left in place, and need no branches. Whether the function really does not depend on them is
checked where it is evaluated; here they are only told from others.
"""

from typing import Any

import numpy as np
from jax.extend.core import Literal

_THROUGH = frozenset(
    {
        "broadcast_in_dim",
        "convert_element_type",
        "copy",
        "expand_dims",
        "reshape",
        "squeeze",
        "transpose",
    }
)


def softmax_maxima(jaxpr: Any) -> set[int]:
    """The numbers of the equations of a flat jaxpr that are such maxima."""
    uses: dict[Any, list[Any]] = {}
    for equation in jaxpr.eqns:
        for atom in equation.invars:
            if not isinstance(atom, Literal):
                uses.setdefault(atom, []).append(equation)
    outputs = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    return {
        i
        for i, equation in enumerate(jaxpr.eqns)
        if equation.primitive.name == "reduce_max" and _is_shift(equation.outvars[0], uses, outputs)
    }


def _is_shift(maximum: Any, uses: dict[Any, list[Any]], outputs: set[Any]) -> bool:
    """Whether all uses subtract the maximum before an exponential, or add it."""
    chain, subtracted = [maximum], False
    seen = {maximum}
    while chain:
        variable = chain.pop()
        if variable in outputs:
            return False
        for equation in uses.get(variable, ()):
            name = equation.primitive.name
            if name in _THROUGH or _is_guard(equation):
                if equation.outvars[0] not in seen:
                    seen.add(equation.outvars[0])
                    chain.append(equation.outvars[0])
            elif name == "sub" and equation.invars[1] is variable:
                if not _only_exponentiated(equation.outvars[0], uses, outputs):
                    return False
                subtracted = True
            elif name not in {"add", "is_finite"}:
                return False
    return subtracted


def _is_guard(equation: Any) -> bool:
    """A maximum with minus infinity, a comparison with it, or a selection of finite values."""
    name = equation.primitive.name
    if name in {"max", "eq", "ne"}:
        return any(
            isinstance(atom, Literal) and np.all(np.isneginf(atom.val)) for atom in equation.invars
        )
    return name in {"select_n", "reduce_or", "reduce_and", "not", "and", "or"}


def _only_exponentiated(difference: Any, uses: dict[Any, list[Any]], outputs: set[Any]) -> bool:
    """Whether a difference is used by exponentials alone, and once more to be subtracted from."""
    if difference in outputs:
        return False
    for equation in uses.get(difference, ()):
        name = equation.primitive.name
        if name in _THROUGH:
            if not _only_exponentiated(equation.outvars[0], uses, outputs):
                return False
        elif name not in {"exp", "sub"}:  # log-softmax subtracts the logarithm of the sum
            return False
    return True
