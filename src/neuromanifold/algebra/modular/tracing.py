"""From a JAX function to a jaxpr in float64 without dead code."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr
from jax.interpreters import partial_eval

from neuromanifold.errors import ArgumentError

# The lines that errors name are the user's, not this module's.
source_info_util.register_exclusion(__file__)


def shapes_of(examples: Any) -> Any:
    """The same pytree with every array replaced by its shape, in float64."""
    leaves, structure = jax.tree.flatten(examples)
    return jax.tree.unflatten(structure, [_shape(leaf) for leaf in leaves])


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        leaf = np.asarray(leaf, dtype=float) if isinstance(leaf, float) else leaf
    if not hasattr(leaf, "dtype") or not np.issubdtype(leaf.dtype, np.floating):
        found = getattr(leaf, "dtype", type(leaf).__name__)
        raise ArgumentError(
            f"arguments must be real floating-point arrays (or their shapes); got {found}: "
            "convert it, or close over it if it is a constant"
        )
    return jax.ShapeDtypeStruct(leaf.shape, np.float64)


def traced(f: Callable[..., Any], shapes: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr of `f` in float64 without dead code, and the structure of its output."""
    with jax.enable_x64(True):
        closed, output = jax.make_jaxpr(f, return_shape=True)(*shapes)
        everything = [True] * len(closed.jaxpr.outvars)
        jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, everything, instantiate=True)
    return ClosedJaxpr(jaxpr, closed.consts), jax.tree.structure(output)
