"""Branches that are proved to be those of an open set.

They are read off in floats, which may be wrong, and then proved: with these branches the function
is an ordinary one, and what holds them in place is enclosed in balls for all weights and inputs
near the point. All of that has to be positive, or zero on the whole neighbourhood, as the
difference of two neurons that are off is; so the branches are those of an open set, whatever floats
have lost.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.balls.function import BallProgram, around, meant
from neuromanifold.algebra.balls.rules import UndecidedError
from neuromanifold.algebra.cells.decisions import Holds
from neuromanifold.algebra.cells.piecewise import Piecewise


class Decided:
    """Tells at which points the branches of a function are proved; made once, for many points.

    Args:
        function: a function of weights and one input.
        count: at how many inputs at once.
    """

    def __init__(self, function: Piecewise, count: int) -> None:
        weights, one = function.shapes
        self._function, self._count = function, count

        def batch(leaf: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((count, *leaf.shape), leaf.dtype)

        inputs = jax.tree.map(batch, one)
        self._shapes, self._structure = (weights, inputs), jax.tree.structure(inputs)
        self._near: tuple[Any, list[np.ndarray]] | None = None

        def at_one(weights: Any, X: Any) -> Any:
            found = function.read((weights, X))
            return found.branches, found.outcomes, found.is_taken

        self._read = jax.jit(jax.vmap(at_one, in_axes=(None, 0)))

    def at(
        self, weights: Any, inputs: Sequence[np.ndarray], asked: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Branches in floats, and at which inputs they are proved, of those that are asked for.

        Args:
            weights: a pytree of float64 arrays.
            inputs: the leaves of so many inputs.
            asked: for each input whether it is asked for.
        """
        with jax.enable_x64(True):
            found = self._read(weights, jax.tree.unflatten(self._structure, inputs))
        branches, outcomes, is_taken = ([np.asarray(x) for x in arrays] for arrays in found)
        holds = np.logical_and.reduce([asked, *is_taken])
        if holds.any():
            # What is not asked for is filled up with a point that is.
            rows = np.where(holds, np.arange(self._count), np.argmax(holds))
            near = [around(x[rows]) for x in inputs]
            which = [x[rows].astype(np.int64) for x in branches]
            others = [x[rows] for x in outcomes]
            holds &= self._proved([*self._around(weights), *near, *which, *others])
        return branches, holds

    def holds_at(self, weights: Any, X: Any) -> bool:
        """Whether the function has a value at a point, where it asks for one input at once."""
        inputs = [np.asarray(leaf)[None] for leaf in jax.tree.leaves(X)]
        return bool(self.at(weights, inputs, np.ones(1, dtype=bool))[1].all())

    def _around(self, weights: Any) -> list[np.ndarray]:
        if self._near is None or self._near[0] is not weights:
            self._near = weights, [around(leaf) for leaf in jax.tree.leaves(weights)]
        return self._near[1]

    @cached_property
    def _holds(self) -> BallProgram:
        """What holds the branches in place, in balls."""
        with jax.enable_x64(True):
            floats, outcomes, _ = jax.eval_shape(self._read, *self._shapes)
        branches = [jax.ShapeDtypeStruct(x.shape, np.int64) for x in floats]

        def at_one(weights: Any, X: Any, branches: Any, outcomes: Any) -> list[Holds]:
            return self._function.holds((weights, X), branches, outcomes)

        at_all = jax.vmap(at_one, in_axes=(None, 0, 0, 0))
        return BallProgram(at_all, *self._shapes, branches, outcomes, constant=meant)

    def _proved(self, leaves: Sequence[np.ndarray]) -> np.ndarray:
        """At which inputs all is so that has to be."""
        try:
            found = self._holds(*leaves)
        except UndecidedError:
            return np.zeros(self._count, dtype=bool)
        return np.logical_and.reduce([_are_so(holds) for holds in found])


def _are_so(holds: Holds) -> np.ndarray:
    """For each input whether all that has to be so is proved."""
    positive, ties = (x.reshape(len(x), -1).tolist() for x in holds)
    return np.array(
        [
            all(x > 0 for x in above) and all(x > 0 or x.is_zero() for x in equal)
            for above, equal in zip(positive, ties, strict=True)
        ]
    )
