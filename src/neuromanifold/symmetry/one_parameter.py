"""Symmetries that a user gives as one-parameter actions on weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.linear import LinearAlgebra, Modular
from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.algebra.modular.tracing import output_of
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Slot, Tensors
from neuromanifold.networks.function import Structure
from neuromanifold.networks.network import Network

Action = Callable[[Any, Any], Any]
"""A one-parameter action (s, weights) ↦ weights that is the identity at s = 0."""


@dataclass(frozen=True)
class OneParameter(Family):
    """One action of the real line for each function; tangent vectors by differentiation at s = 0.

    Elements are added, which is right for actions that commute, as those of the line do.

    Attributes:
        actions: the actions, on weights in the user's own form.
        structure: that form.
    """

    actions: tuple[Action, ...]
    structure: Structure
    product = staticmethod(add)
    name = "given"
    is_group = True

    @property
    def statement(self) -> None:
        """None: a user's own symmetry."""

    @property
    def dimension(self) -> int:
        """The number of actions."""
        return len(self.actions)

    def moves(self, tensor: str) -> bool:
        """Only the user knows."""
        return True

    def identity(self) -> Element:
        """Zero for every action."""
        return (np.zeros(len(self.actions)),)

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Element:
        """A number for every action."""
        return (generator.uniform(-0.5, 0.5, len(self.actions)) * np.log(condition),)

    def act(self, element: Element, weights: Tensors) -> dict[str, np.ndarray]:
        """One action after another."""
        moved = self.structure.rebuilt(weights)
        with jax.enable_x64(True):
            for s, action in zip(element[0], self.actions, strict=True):
                moved = action(s, moved)
        return {name: np.asarray(value) for name, value in self.structure.named(moved).items()}

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The derivatives at s = 0, of floats or of residues."""
        return [
            GeneratorBlock(
                self.name,
                {
                    Slot(name): np.broadcast_to(moved, np.shape(weights[name]))[None]
                    for name, moved in self._tangent(action, weights, linear).items()
                },
            )
            for action in self.actions
        ]

    def moved(self, action: Action, s: Any, weights: Mapping[str, Any]) -> dict[str, Any]:
        """The weights moved by one action."""
        return self.structure.named(action(s, self.structure.rebuilt(weights)))

    def _tangent(
        self, action: Action, weights: Tensors, linear: LinearAlgebra
    ) -> dict[str, np.ndarray]:
        named = {name: np.asarray(weights[name]) for name in self.structure.leaves if name}

        def tangent(at: dict[str, Any]) -> dict[str, Any]:
            return jax.jvp(partial(self.moved, action, weights=at), (0.0,), (1.0,))[1]

        if isinstance(linear, Modular):
            return over_prime_field(tangent, named)(linear.field, named)
        with jax.enable_x64(True):
            return {name: np.asarray(moved) for name, moved in tangent(named).items()}


def given(actions: Sequence[Action], network: Network) -> tuple[Family, ...]:
    """The family of a user's actions, each of which is seen to give weights; none without any."""
    if not actions or network.structure is None:
        return ()
    family = OneParameter(tuple(actions), network.structure)
    wanted = network.shapes[0]
    for number, action in enumerate(actions):
        try:
            found = output_of(partial(family.moved, action), (np.zeros(()), wanted))
        except ArgumentError as error:
            raise ArgumentError(
                f"symmetry {number} is no function (s, weights) ↦ weights: {error}"
            ) from None
        for name, shape in wanted.items():
            if found[name].shape != shape.shape:
                raise ArgumentError(
                    f"symmetry {number} must give weights of the same shapes; {name} has "
                    f"{shape.shape}, and it gives {found[name].shape}"
                )
    return (family,)
