"""The dimension of a fiber at given weights, between what is proved from below and from above.

The orbit of the symmetry groups lies in the fiber: the rank of their generators is a lower bound.
The fiber's tangent vectors lie in the kernel of the differential of W ↦ φ_W: parameters less its
rank is an upper bound, and it is reached where that rank is as large as it gets near W, since the
fiber is then a manifold of that dimension (constant rank).

There are two ranks at given weights. The exact one belongs to the floats as they are, and is proved
over a prime field (field-rank). The one to within rounding belongs to the point they stand for:
h kᵀ, written in floats, has rank one only to within rounding. What is special about weights is
decided to within rounding everywhere in this package, so the bounds are too.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuromanifold.algebra.linear import FloatingPoint
from neuromanifold.certificates.exact import certify
from neuromanifold.fibers.normal_form.factors import numeric_rank
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.networks.attention import attention
from neuromanifold.networks.probe import random_inputs, well_scaled
from neuromanifold.networks.weights import Weights
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.families import families_of

_MORE_ROWS = 8
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class FiberDimension:
    """The dimension of a fiber at one of its points.

    Attributes:
        lower: the dimension of the orbit of the symmetry groups.
        upper: the parameters less the local rank.
        local_rank: the rank of the differential of W ↦ φ_W at the weights, to within rounding.
        exact_rank: its rank at the floats as they are, proved from below; None when the
            exponentials of a softmax network are not independent at these weights.
        generic: the dimension of generic fibers, None where no formula is known.
        orbits: the dimension of the orbit of each family alone.
    """

    lower: int
    upper: int
    local_rank: int
    exact_rank: int | None
    generic: int | None
    orbits: dict[str, int]

    @property
    def value(self) -> int | None:
        """The dimension where the bounds meet or the rank is generic; None in between."""
        if self.upper in (self.lower, self.generic):
            return self.upper
        return None

    def __str__(self) -> str:
        here = f"between {self.lower} and {self.upper}" if self.value is None else f"{self.value}"
        generic = "not known" if self.generic is None else f"{self.generic}"
        apart = ""
        if self.exact_rank not in (None, self.local_rank):
            apart = f"; to within rounding: at the floats as they are the rank is {self.exact_rank}"
        return f"dimension {here} (generic fibers: {generic}{apart})"

    def to_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "dimension": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "local_rank": self.local_rank,
            "exact_rank": self.exact_rank,
            "generic": self.generic,
            "orbits": dict(self.orbits),
        }


def fiber_dimension(weights: Weights) -> FiberDimension:
    """The dimension of the fiber at `weights`, float64."""
    architecture = weights.architecture
    rank = _numeric_local_rank(weights)
    certificate = certify(architecture, weights=weights)
    expected = dimension_formula(architecture).dimension
    orbits: dict[str, int] = {}
    rows = [np.zeros((0, architecture.parameters))]
    network = attention_network(architecture)
    for family in families_of(network):
        if not family.is_group:
            continue
        blocks = family.generators(named(weights), FloatingPoint())
        own = [network.dense(block) for block in blocks]
        orbits[family.name] = _rank(np.concatenate([rows[0], *own]))
        rows += own
    return FiberDimension(
        lower=_rank(np.concatenate(rows)),
        upper=architecture.parameters - rank,
        local_rank=rank,
        exact_rank=certificate.rank if certificate.lower_is_proved else None,
        generic=None if expected is None else architecture.parameters - expected,
        orbits=orbits,
    )


def _rank(rows: Float[np.ndarray, "m n"]) -> int:
    """The numeric rank of tangent vectors, each scaled to length 1."""
    sizes = np.linalg.norm(rows, axis=1)
    rows = rows[sizes > 0] / sizes[sizes > 0, None]
    return numeric_rank(np.linalg.svd(rows, compute_uv=False), _TOLERANCE) if len(rows) else 0


def _numeric_local_rank(weights: Weights) -> int:
    """The rank of the Jacobian in float64: one random cotangent at each of many random inputs."""
    architecture = weights.architecture
    count = architecture.parameters + _MORE_ROWS
    inputs = well_scaled(weights, random_inputs(architecture, count, 0))
    shape = (count, architecture.widths[-1], architecture.tokens)
    cotangents = np.random.default_rng(1).standard_normal(shape)
    with jax.enable_x64(True):
        rows = np.asarray(_cotangent_rows(weights, inputs, cotangents))
    return _rank(rows)


@jax.jit
def _cotangent_rows(
    weights: Weights, inputs: Float[Array, "n d t"], cotangents: Float[Array, "n d_l t"]
) -> Float[Array, "n parameters"]:
    """uᵀ J at every input X with its cotangent u, flattened like weights."""

    def row(X: Float[Array, "d t"], u: Float[Array, "d_l t"]) -> Float[Array, " parameters"]:
        def value(W: Weights) -> Float[Array, ""]:
            return jnp.vdot(u, attention(W, X))

        return jnp.concatenate(list(map(jnp.ravel, jax.tree.leaves(jax.grad(value)(weights)))))

    return jax.vmap(row)(inputs, cotangents)
