"""Whether a function moves as its Jacobian in floating point says.

What is differentiated is the program, not the function: behind `stop_gradient`, a rule of the
user's own or numbers of half precision, and where equal terms cancel, a row is no derivative of
anything. So a row r at weights w is *confirmed* by the function f itself, in float64, if

    |(f(w + h v) − f(w − h v)) / 2h − r·v| ≤ ε^{1/3} |r ∘ s|,        v = s ∘ z,

for a normal z and one h of a few, with s the size of each tensor. ε^{1/3} is where singular values
begin to count (`numeric`), ε the unit of rounding of the row. Errors of the left side are about h²
and ε/h, each times what a condition number is; with h = ε^{1/3} both are far below the bound, and
smaller h are for functions that bend, or have a corner near w. A row of zeros is confirmed where f
moves by less than ε^{1/3} |f|.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from neuromanifold.networks.family import Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.weights import generator_of

_STEPS = tuple(float(np.finfo(np.float64).eps) ** power for power in (1 / 3, 5 / 12, 1 / 2))


def confirmed_rows(
    net: Network, weights: Tensors, X: Any, J: Float[np.ndarray, "rows columns"], seed: int
) -> Bool[np.ndarray, " rows"]:
    """Which rows of the Jacobian at some inputs are confirmed along a direction of the seed."""
    at = net.assemble(net.flatten(weights).astype(np.float64))
    sizes = {name: np.sqrt(np.mean(w * w)) or 1.0 for name, w in at.items()}
    s = np.concatenate([np.full(w.size, sizes[name]) for name, w in at.items()])
    v = s * generator_of(seed, 3).standard_normal(net.columns)
    w, rows = net.flatten(at), J.astype(np.float64)
    value = np.abs(_values(net, w, X))
    scale = np.linalg.norm(rows * s, axis=1)
    bound = np.cbrt(np.finfo(J.dtype).eps) * np.where(scale > 0, scale, value)
    good = np.zeros(len(J), dtype=bool)
    for h in _STEPS:
        with np.errstate(invalid="ignore", over="ignore"):
            moved = (_values(net, w + h * v, X) - _values(net, w - h * v, X)) / (2 * h)
            good |= np.abs(moved - rows @ v) <= bound
    return good


def _values(
    net: Network, vector: Float[np.ndarray, " columns"], X: Any
) -> Float[np.ndarray, " rows"]:
    """The outputs at weights with these entries, in the order of the Jacobian's rows."""
    with jax.enable_x64(True):
        outputs = _batched(net.apply, net.assemble(vector), X)
    return np.concatenate([np.asarray(out, dtype=np.float64).ravel() for out in outputs])


@partial(jax.jit, static_argnums=0)
def _batched(f: Callable[[Any, Any], Any], weights: Any, X: Any) -> Any:
    return jax.tree.leaves(jax.vmap(f, in_axes=(None, 0))(weights, X))
