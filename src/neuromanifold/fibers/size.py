"""The dimension of a fiber at given weights, between what is proved from below and from above.

From below: the orbit of the symmetry groups lies in the fiber, and where a softmax layer collapses
all tokens (softmax-fibers) so do all changes of the queries and keys behind it. The rank of these
tangent vectors is a lower bound. From above: the fiber's tangent vectors lie in the kernel of the
differential of W ↦ φ_W, so parameters less its rank is an upper bound; it is reached where that
rank is as large as it gets near W (constant rank).

Both ranks are those of the floats as they are, over a prime field: a rank mod p is at most the rank
over the rationals, so neither bound can be crossed by the other (field-rank). For one softmax head
without skip and mask the kernel is that of W ↦ (M_1, …, M_j, L), M_j the first collapsing form, and
needs no exponentials. Where the weights stand for a special point that floats do not hold (see
`fibers.facts`), the ranks are those up to rounding, if their singular values have a gap.

The zero function of one lightning layer is settled by thm-3.2: its fiber is {A = 0} ∪ {V = 0}.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.algebra.linear import FloatingPoint, LinearAlgebra, Modular
from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.numeric import numeric_jacobian
from neuromanifold.certificates.spectrum import clear_rank
from neuromanifold.display import Recorded
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.networks.family import Family, Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.virtual import virtual_weights
from neuromanifold.networks.weights import Weights, unflatten
from neuromanifold.symmetry.attention import attention_network, named
from neuromanifold.symmetry.collapse import BehindCollapse
from neuromanifold.symmetry.families import families_of


@dataclass(frozen=True, slots=True)
class FiberDimension(Recorded):
    """The dimension of a fiber at one of its points.

    Attributes:
        lower: the dimension of what is known to lie in the fiber.
        upper: the parameters less the local rank, or what a theorem says.
        local_rank: the rank of the differential of W ↦ φ_W that counts.
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
    _json = "dimension=value lower upper local_rank exact_rank generic orbits"

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
            apart = f"; up to rounding: at the floats as they are the rank is {self.exact_rank}"
        return f"dimension {here} (generic fibers: {generic}{apart})"


def fiber_dimension(
    weights: Weights,
    *,
    free_from: int | None = None,
    seen_forms: int | None = None,
    up_to_rounding: bool = False,
    settled: int | None = None,
) -> FiberDimension:
    """The dimension of the fiber at `weights`.

    Args:
        weights: the point.
        free_from: the first layer, counted from 0, whose queries and keys are not seen.
        seen_forms: the differential of (M_1, …, M_j, L) with this j is that of the function;
            None where that of the function itself is to be taken.
        up_to_rounding: whether the weights stand for a special point.
        settled: the dimension where a theorem gives it.
    """
    architecture = weights.architecture
    parameters = architecture.parameters
    field = PrimeField()
    network = attention_network(architecture)
    families = [family for family in families_of(network) if family.is_group]
    free = [] if free_from is None else [BehindCollapse(architecture, free_from)]
    values = unflatten(architecture, field.from_floats(weights.flatten()))
    orbits = _tangents(network, [*families, *free], named(values), Modular(field))
    lower = rank(np.concatenate(list(orbits.values())), field)
    exact = _exact_rank(weights, values, field, seen_forms)
    local = exact if exact is not None else 0
    if up_to_rounding:
        tangents = _tangents(network, [*families, *free], named(weights), FloatingPoint())
        near = _numeric_ranks(weights, np.concatenate(list(tangents.values())))
        if near is not None:
            lower, local = near
    upper = parameters - local
    if settled is not None:
        lower = upper = settled
    expected = dimension_formula(architecture).dimension
    return FiberDimension(
        lower=lower,
        upper=upper,
        local_rank=local,
        exact_rank=exact,
        generic=None if expected is None else parameters - expected,
        orbits={family.name: rank(orbits[family.name], field) for family in families},
    )


def zero_layer_dimension(weights: Weights, rank_A: int, rank_V: int) -> int:
    """The dimension of {A = 0} ∪ {V = 0} at weights of one layer and head on it (thm-3.2).

    {(B, C) : Bᵀ C = 0} for a × m and a × n matrices falls into the pieces rank B = r, each of
    dimension r (a + m − r) + n (a − r); a point lies in the closure of those with rank B₀ ≤ r and
    r ≤ a − rank C₀.
    """
    layer = weights.layers[0]
    K, Q, V = (np.asarray(x[0]) for x in (layer.key, layer.query, layer.value))
    O = None if layer.output is None else np.asarray(layer.output[0])
    values = V.size + (0 if O is None else O.size)
    found = []
    if rank_A == 0:
        found.append(_annihilating(K, Q) + values)
    if rank_V == 0:
        found.append(K.size + Q.size + (0 if O is None else _annihilating(O.T, V)))
    return max(found)


def _annihilating(B: Float[np.ndarray, "a m"], C: Float[np.ndarray, "a n"]) -> int:
    """The dimension of {Bᵀ C = 0} at a point of it, with exact ranks."""
    (a, m), n = B.shape, C.shape[1]
    low, high = Dyadic.of(B).rank, min(m, a - Dyadic.of(C).rank)
    return max(r * (a + m - r) + n * (a - r) for r in range(low, high + 1))


def _tangents(
    network: Network, families: Sequence[Family], values: Tensors, linear: LinearAlgebra
) -> dict[str, Float[np.ndarray, "_ parameters"]]:
    """Tangent vectors of the orbit of each family."""
    nothing = np.zeros((0, network.columns))
    return {
        family.name: np.concatenate(
            [nothing, *map(network.dense, family.generators(values, linear))]
        )
        for family in families
    }


def _exact_rank(
    weights: Weights, residues: Weights, field: PrimeField, seen_forms: int | None
) -> int | None:
    """The rank of the differential at the floats as they are, mod p; None if it is not proved."""
    architecture = weights.architecture
    if seen_forms is None:
        certificate = certify(architecture, weights=weights, prime=field.modulus)
        return certificate.rank if certificate.lower_is_proved else None

    def seen(W: Weights) -> Float[Array, " entries"]:
        virtual = virtual_weights(W)
        return jnp.concatenate(
            [jnp.ravel(B) for B in (*virtual.forms[:seen_forms], virtual.linear)]
        )

    leaves = jax.tree.leaves(over_prime_field(jax.jacrev(seen), residues)(field, residues))
    rows = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    return rank(np.ascontiguousarray(rows), field)


def _numeric_ranks(weights: Weights, tangents: Float[np.ndarray, "m n"]) -> tuple[int, int] | None:
    """Lower bound and local rank up to rounding; None where a spectrum has no clear gap."""
    network = attention_network(weights.architecture)
    lower = clear_rank(tangents)
    local = clear_rank(numeric_jacobian(network, named(weights), scaled=True))
    if lower is None or local is None or lower + local > weights.architecture.parameters:
        return None
    return lower, local
