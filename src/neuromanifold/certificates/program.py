"""The Jacobian of a network as a program on residues."""

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from neuromanifold.algebra.modular import ModularFunction, exponents_of, over_prime_field
from neuromanifold.networks.network import Network

_MOST = 128
"""Programs kept: tracing takes longer than running a small one."""


@lru_cache(maxsize=_MOST)
def rows_program(network: Network, batch: int) -> ModularFunction:
    """The rows uᵀ J of `batch` inputs X with one cotangent u each, on residues.

    Arguments: the weights, then inputs and cotangents with a leading axis. Value: the weights by
    name with that axis, uᵀ ∂f/∂W for each input (field-rank).
    """

    def row(weights: Any, X: Any, u: Any) -> Any:
        def of_weights(w: Any) -> Any:
            return network.apply(w, X)

        return jax.vjp(of_weights, weights)[1](u)[0]

    inputs, cotangents = stacked((network.sample, network.output), (batch,))
    return over_prime_field(
        jax.vmap(row, in_axes=(None, 0, 0)), weight_shapes(network), inputs, cotangents
    )


@lru_cache(maxsize=_MOST)
def exponents_program(network: Network, batch: int) -> ModularFunction:
    """The arguments of all exponentials at `batch` pairs of weights and inputs (softmax-exact).

    Value: a matrix with one row for each pair.
    """
    examples = stacked((weight_shapes(network), network.sample), (batch,))
    return over_prime_field(jax.vmap(exponents_of(network.apply)), *examples)


def weight_shapes(network: Network) -> dict[str, jax.ShapeDtypeStruct]:
    """The shapes of the weights by name."""
    return {t.name: jax.ShapeDtypeStruct(t.shape, np.float64) for t in network.tensors}


def stacked(shapes: Any, batch: tuple[int, ...]) -> Any:
    """Float64 shapes with leading axes added."""
    leaves, structure = jax.tree.flatten(shapes)
    grown = [jax.ShapeDtypeStruct((*batch, *np.shape(leaf)), np.float64) for leaf in leaves]
    return jax.tree.unflatten(structure, grown)
