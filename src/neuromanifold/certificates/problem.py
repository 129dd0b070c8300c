"""The map whose rank is the dimension: a JAX function of weights and one input, with its shapes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.modular import ModularFunction, exponents_of, over_prime_field
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.attention import attention
from neuromanifold.networks.readout import check_readout, read_out
from neuromanifold.networks.weights import Weights, unflatten


@dataclass(frozen=True, eq=False)
class Problem:
    """A map f(weights, X), to be differentiated by its weights over a prime field.

    Attributes:
        f: the JAX function.
        weights: a pytree with the shapes of the weights.
        inputs: a pytree with the shapes of one sample.
        constants: 1 when the last weight is the constant of a map known up to one, else 0.
    """

    f: Callable[[Any, Any], Any]
    weights: Any
    inputs: Any
    constants: int = 0
    _traced: dict[tuple[str, int], ModularFunction] = field(default_factory=dict, repr=False)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the weights' leaves."""
        return tuple(tuple(leaf.shape) for leaf in jax.tree.leaves(self.weights))

    @cached_property
    def columns(self) -> int:
        """The number of columns of the Jacobian."""
        return sum(prod(shape) for shape in self.shapes)

    @property
    def parameters(self) -> int:
        """The number of weights, the constant not counted."""
        return self.columns - self.constants

    @cached_property
    def output(self) -> Any:
        """The pytree of the output's shapes."""
        with jax.enable_x64(True):
            return jax.eval_shape(self.f, *_stacked((self.weights, self.inputs), ()))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the traced function, to tell whether a certificate is about this function."""
        with jax.enable_x64(True):
            jaxpr = jax.make_jaxpr(self.f)(*_stacked((self.weights, self.inputs), ()))
        return hashlib.sha256(str(jaxpr).encode()).hexdigest()

    def assemble(self, vector: Residues, batch: tuple[int, ...] = ()) -> Any:
        """The weights whose entries, leaf by leaf along the last axis, are `vector`."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        leaves = [
            np.ascontiguousarray(part).reshape((*batch, *shape))
            for part, shape in zip(np.split(vector, ends, axis=-1), self.shapes, strict=True)
        ]
        return jax.tree.unflatten(jax.tree.structure(self.weights), leaves)

    def rows(self, batch: int) -> ModularFunction:
        """The rows uᵀ J of `batch` inputs X with one cotangent u each, on residues.

        Arguments: the weights, then inputs and cotangents with a leading axis. Value: a pytree like
        the weights with that axis, uᵀ ∂f/∂W for each input (field-rank).
        """
        if ("rows", batch) not in self._traced:
            f = self.f

            def row(weights: Any, X: Any, u: Any) -> Any:
                def of_weights(w: Any) -> Any:
                    return f(w, X)

                return jax.vjp(of_weights, weights)[1](u)[0]

            inputs, cotangents = _stacked((self.inputs, self.output), (batch,))
            self._traced["rows", batch] = over_prime_field(
                jax.vmap(row, in_axes=(None, 0, 0)), self.weights, inputs, cotangents
            )
        return self._traced["rows", batch]

    def exponents(self, batch: int) -> ModularFunction:
        """The arguments of all exponentials at `batch` pairs of weights and inputs (softmax-exact).

        Value: a matrix with one row for each pair.
        """
        if ("exponents", batch) not in self._traced:
            examples = _stacked((self.weights, self.inputs), (batch,))
            self._traced["exponents", batch] = over_prime_field(
                jax.vmap(exponents_of(self.f)), *examples
            )
        return self._traced["exponents", batch]


@lru_cache(maxsize=64)
def network_problem(architecture: Architecture, readout: Readout) -> Problem:
    """The map of a built-in network with its readout (readouts).

    For decisions, known up to a constant, the map is (W, μ) ↦ μ f_W: its image is the cone over
    what is to be measured, one dimension more.
    """
    check_readout(readout)
    weights = unflatten(architecture, np.zeros(architecture.parameters))
    X = np.zeros((architecture.widths[0], architecture.tokens))
    if readout != "decisions":
        return Problem(lambda w, X: read_out(attention(w, X), readout), weights, X)
    return Problem(
        lambda w, X: w[1] * read_out(attention(w[0], X), readout), (weights, np.ones(())), X, 1
    )


def weight_values(weights: Weights, architecture: Architecture) -> Float[np.ndarray, " parameters"]:
    """The entries of given weights, once they are seen to be finite and of this network."""
    if weights.architecture != architecture:
        raise ArgumentError(
            f"weights of {architecture.name} were wanted; got those of {weights.architecture.name}"
        )
    values = weights.flatten()
    if not np.isfinite(values).all():
        raise ArgumentError("the weights have entries that are NaN or infinite; mend them")
    return values


def _stacked(shapes: Any, batch: tuple[int, ...]) -> Any:
    """Float64 shapes with leading axes added."""
    leaves, structure = jax.tree.flatten(shapes)
    stacked = [jax.ShapeDtypeStruct((*batch, *leaf.shape), np.float64) for leaf in leaves]
    return jax.tree.unflatten(structure, stacked)
