"""The windows of a maximum over windows, as lines of entries."""

from typing import Any

import jax.numpy as jnp

from neuromanifold.algebra.modular.rules.windows import window_axes


def windows_of(x: Any, equation: Any, outside: float) -> Any:
    """All windows of the operand, the entries of each along one last axis."""
    axes = window_axes(equation)
    for i, axis in enumerate(axes):
        edge = jnp.full((*x.shape[: 2 * i], 1, *x.shape[2 * i + 1 :]), outside)
        x = jnp.take(jnp.concatenate([x, edge], axis=2 * i), axis.positions, axis=2 * i)
    windows, entries = range(0, 2 * len(axes), 2), range(1, 2 * len(axes), 2)
    return x.transpose([*windows, *entries]).reshape(*(axis.windows for axis in axes), -1)
