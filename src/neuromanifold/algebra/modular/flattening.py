"""A jaxpr without calls, loops and custom derivatives: one list of equations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr

from neuromanifold.algebra.modular.opening import Opening, Traced
from neuromanifold.algebra.modular.recorder import Known
from neuromanifold.algebra.modular.rules.control import opened
from neuromanifold.algebra.modular.rules.elementary import OpeningRule
from neuromanifold.algebra.modular.tracing import shapes_of, traced

source_info_util.register_exclusion(__file__)


def flattened(
    f: Callable[..., Any], *examples: Any, rules: Mapping[str, OpeningRule] | None = None
) -> tuple[ClosedJaxpr, Any]:
    """The flat jaxpr of `f`, and the structure of its output.

    Custom derivatives are opened on the way, and what depends on no argument is folded; `rules` say
    what some primitives become.
    """
    shapes = shapes_of(examples, whole=True)
    jaxpr, structure = traced(f, shapes)

    def flat(*leaves: Any) -> list[Any]:
        values = Opening(rules=_RULES | dict(rules or {})).read(
            jaxpr.jaxpr, jaxpr.consts, [Traced(leaf) for leaf in leaves]
        )
        return [jnp.asarray(value.array) for value in values]

    return traced(flat, jax.tree.leaves(shapes))[0], structure


def _every_branch(opening: Opening, equation: Any, operands: Sequence[Any]) -> list[Any]:
    """All branches, and a selection among their results by what decides."""
    which, *rest = operands
    values = [Known(x) if isinstance(x, np.ndarray) else Traced(x) for x in rest]
    cases = [opening.read(*opened(branch), values) for branch in equation.params["branches"]]
    place = lax.clamp(np.int32(0), jnp.asarray(which, np.int32), np.int32(len(cases) - 1))
    return [
        lax.select_n(
            jnp.broadcast_to(place, variable.aval.shape), *(jnp.asarray(x.array) for x in results)
        )
        for variable, results in zip(equation.outvars, zip(*cases, strict=True), strict=True)
    ]


_RULES: dict[str, OpeningRule] = {"cond": _every_branch}
