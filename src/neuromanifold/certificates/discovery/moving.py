"""Rows of a network's Jacobian at many random weights at once.

Where every weight is random, a weight is an input like any other. With f the network's function let

    g(Δ, (w, x)) = (∂f/∂w (w, x) · Δ_1, …, ∂f/∂w (w, x) · Δ_m),

linear in Δ. The row of its Jacobian with the cotangents u_1, …, u_m is (u_kᵀ ∂f/∂w)_k: the function
is evaluated once for m rows, and all samples (w, x) are one program. Radicands that depend on the
weights alone are those of a sample here, and are drawn again one by one.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.modular import (
    opened,
    relations_of,
    rows_over_prime_field,
    settled,
)
from neuromanifold.algebra.modular.formal.relations import NO_RELATIONS
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.certificates.cells import pieces, with_branches
from neuromanifold.certificates.features import freed
from neuromanifold.certificates.jacobian import drawn, other_inputs, samples
from neuromanifold.certificates.point import MORE_ATTEMPTS, Point, at_a_point
from neuromanifold.networks.network import Network

MOST_SAMPLES = 256
"""Samples of one evaluation."""
MOST_ROWS = 8
"""Rows of one sample: further ones say less than those at other weights."""

Rows = Float[np.ndarray, "samples rows columns"]
Weights = Float[np.ndarray, "samples columns"]


class MovingRows:
    """The rows of a network's Jacobian, each few at weights of their own.

    Args:
        network: the network; its constants stay 1.
        field: the prime field.
        count: how many rows are about to be asked for.
        related: whether formal functions have the relations of their arguments. Without these they
            are independent variables, and the rows those of a function of which the network's is
            a special case: what is in the kernel of all of them is so in the network's.
    """

    def __init__(
        self, network: Network, field: PrimeField, count: int, *, related: bool = False
    ) -> None:
        outputs = sum(prod(leaf.shape) for leaf in jax.tree.leaves(network.output))
        self.field, self.network = field, _moving(freed(network))
        self.name, self.is_piecewise = network.name, pieces(network) is not None
        self.rows = min(outputs, MOST_ROWS)
        self.samples = min(-(-count // self.rows), MOST_SAMPLES)
        moving = with_branches(self.network)
        function = opened(moving.apply)
        still = {t.name: np.zeros(t.shape) for t in moving.tensors}

        def pushed(changes: Mapping[str, Any], X: Any) -> Any:
            def at(delta: Any) -> Any:
                return function(delta, X)

            return jax.vmap(jax.linearize(at, still)[1])(dict(changes))

        def several(leaf: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((self.rows, *leaf.shape), np.float64)

        self._changes = jax.tree.map(several, moving.shapes[0])
        self._output = jax.tree.map(several, moving.output)
        self._program = rows_over_prime_field(pushed, self._changes, moving.sample, self.samples)
        self._relations = relations_of(self._program, field) if related else NO_RELATIONS

    def __call__(self, seed: int, number: int) -> tuple[Rows, Weights]:
        """Rows and the weights of each sample, from a number and a seed, which fixes the cells."""
        attempts = range(number * MORE_ATTEMPTS, (number + 1) * MORE_ATTEMPTS)
        return at_a_point(self.network, self.field, seed, self._at, attempts=attempts)

    def _at(self, point: Point) -> tuple[Rows, Weights]:
        point = replace(point, cells=self.samples)
        count, names = self.samples, [t.name for t in self.network.tensors]
        still = {name: np.zeros(leaf.shape) for name, leaf in self._changes.items()}

        inputs, _ = samples(self.network, point, count)
        arguments = (still, inputs, drawn(self._output, point, "cotangents", count))
        elements = point.elements(self._relations) if self._program.formals else None
        again = other_inputs(self.network, point, arguments)
        ready = settled(self._program, self.field, arguments, elements, again)
        values = self._program(self.field, *ready.arguments, elements=ready.elements)
        rows = [values[name].reshape(count, self.rows, -1) for name in names]
        leaves = jax.tree.leaves(ready.arguments[1])[: len(self.network.sample[0])]
        weights = dict(zip(sorted(self.network.sample[0]), leaves, strict=True))
        flat = [weights.get(name, np.ones((count, 1))).reshape(count, -1) for name in names]
        return np.concatenate(rows, axis=2), np.concatenate(flat, axis=1)


@lru_cache(maxsize=16)
def moving_rows(
    network: Network, field: PrimeField, count: int, *, related: bool = False
) -> MovingRows:
    """The rows of a network, traced once."""
    return MovingRows(network, field, count, related=related)


def _moving(network: Network) -> Network:
    """The network with weights that are part of the input, to which its own are added."""
    shapes = {n: s for n, s in network.shapes[0].items() if n not in network.constants}

    def apply(delta: Mapping[str, Any], X: Any) -> Any:
        at, inputs = X
        return network.apply({n: d + at.get(n, 1.0) for n, d in delta.items()}, inputs)

    return replace(network, apply=apply, sample=(shapes, network.sample), architecture=None)
