"""The map whose rank is the dimension: a JAX function of weights and one input, with its shapes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.modular import ModularFunction, exponents_of, over_prime_field
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.attention import attention
from neuromanifold.networks.readout import read_out
from neuromanifold.networks.weights import Weights, unflatten

BATCH = 512
"""The most inputs that one evaluation takes: memory stays bounded while rows are streamed."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A map f(weights, X), to be differentiated by its weights over a prime field.

    Attributes:
        f: the JAX function.
        weights: a pytree with the shapes of the weights.
        inputs: the pytree of one sample's shapes.
        constants: 1 when the last weight is the constant μ of a map known up to a constant, else 0.
    """

    f: Callable[[Any, Any], Any]
    weights: Any
    inputs: Any
    constants: int = 0

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the weights' leaves."""
        return tuple(leaf.shape for leaf in jax.tree.leaves(self.weights))

    @property
    def parameters(self) -> int:
        """The number of weights, the constant not counted."""
        return sum(prod(shape) for shape in self.shapes) - self.constants

    @cached_property
    def outputs(self) -> int:
        """The number of output coordinates of one sample."""
        with jax.enable_x64(True):
            shapes = jax.eval_shape(self.f, *_float64((self.weights, self.inputs)))
        return sum(prod(leaf.shape) for leaf in jax.tree.leaves(shapes))

    def unflatten(self, vector: Residues) -> Any:
        """The weights whose entries, leaf by leaf, are `vector`."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        leaves = [
            part.reshape(shape)
            for part, shape in zip(np.split(vector, ends), self.shapes, strict=True)
        ]
        return jax.tree.unflatten(jax.tree.structure(self.weights), leaves)

    def rows(self, batch: int) -> ModularFunction:
        """The rows uᵀ J of `batch` inputs X with cotangents u, as a function on residues.

        Its arguments are the weights, the inputs and the cotangents, the last two with a leading
        axis; its value is the pytree of the weights with that axis, uᵀ ∂f/∂W for each input.
        """
        return self._traced(batch)[0]

    def exponents(self, batch: int) -> ModularFunction:
        """The arguments of all exponentials, for `batch` weights and inputs, one row each."""
        return self._traced_exponents(batch)

    @cached_property
    def _cache(self) -> dict[tuple[str, int], Any]:
        return {}

    def _traced(self, batch: int) -> tuple[ModularFunction, str]:
        if ("rows", batch) not in self._cache:
            f = self.f

            def row(weights: Any, X: Any, u: Any) -> Any:
                return jax.vjp(lambda w: f(w, X), weights)[1](u)[0]

            cotangents = _batched(self._output_shapes(), batch)
            inputs = _batched(self.inputs, batch)
            rows = over_prime_field(
                jax.vmap(row, in_axes=(None, 0, 0)), self.weights, inputs, cotangents
            )
            self._cache["rows", batch] = (rows, "")
        return self._cache["rows", batch]

    def _traced_exponents(self, batch: int) -> ModularFunction:
        if ("exponents", batch) not in self._cache:
            examples = (_batched(self.weights, batch), _batched(self.inputs, batch))
            traced = over_prime_field(jax.vmap(exponents_of(self.f)), *examples)
            self._cache["exponents", batch] = traced
        return self._cache["exponents", batch]

    def _output_shapes(self) -> Any:
        with jax.enable_x64(True):
            return jax.eval_shape(self.f, *_float64((self.weights, self.inputs)))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the traced function: two functions with the same one are the same program."""
        with jax.enable_x64(True):
            jaxpr = jax.make_jaxpr(self.f)(*_float64((self.weights, self.inputs)))
        return hashlib.sha256(str(jaxpr).encode()).hexdigest()
