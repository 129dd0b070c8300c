"""What is known at given weights alone: free scores, and the rank of the virtual weights there.

One head, no residual skip: φ_W = ψ(M, L), so at any weights the rank of dφ is at most that of the
differential of W ↦ (M, L). Where weights are special this is less than the dimension of all (M, L):
with K_1 = 0 it is dA_1 = dK_1ᵀ Q_1, of as many dimensions as the rows of Q_1 span, times d.

To first order ψ may not see all of (M, L) at given weights (virtual-rank):
- L enters linearly. If L = 0, dψ shows dL only. (Probabilities and decisions see differences of the
  rows of L in place of L.)
- One token under softmax shows L only.
- Behind the first collapsing softmax layer all tokens are equal, whatever the forms: dψ does not
  show theirs (softmax-fibers).
- Lightning without skip is homogeneous of degree 3^{l−i} in M_i and of degree 1 in L (eq-13). If
  one of these vanishes, dψ shows at most that one, and it only if the degree is 1; if two vanish,
  dψ = 0.
- Only symmetric parts are seen with one token, and behind a lightning layer of rank one
  (virtual-bound).

Let J be the differential of what is seen. Known symmetries S lie in the kernel of dφ besides that
of J, so that rank dφ ≤ rank J − rank(J S). The first rank is over the rationals, for the floats as
they are; the second one may be taken mod p, where it is not larger.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.algebra.integer_rank import flint_rank, integer_rank
from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.point import GivenWeights
from neuromanifold.certificates.symmetry_bound import known_generators
from neuromanifold.formula.all_widths import first_symmetric, virtual_dimension
from neuromanifold.formula.bounds import Bound
from neuromanifold.networks.exact_virtual import VirtualDifferential, exact_forms, symmetrised
from neuromanifold.networks.family import Slot, Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.weights import Weights
from neuromanifold.statements import Facts
from neuromanifold.symmetry.collapse import behind_collapse, first_collapsing

LARGEST_DIFFERENTIAL = 40_000
"""The most entries of J for which its rank is taken over the rationals: some ten seconds."""

Derivatives = Mapping[str, np.ndarray]


def at_weights(network: Network, weights: Any) -> Network:
    """The network with the symmetries and the bound that it has at given weights (virtual-rank).

    None, the generic weights, add nothing.
    """
    architecture = network.architecture
    if weights is None or architecture is None or not network.is_built_in:
        return network
    if not architecture.has_virtual_weights:
        return network
    values = network.values(weights)
    doubles = {name: np.asarray(T, dtype=np.float64) for name, T in values.items()}
    return _at(network, tuple((name, T.tobytes()) for name, T in doubles.items()))


@lru_cache(maxsize=16)
def _at(network: Network, tensors: tuple[tuple[str, bytes], ...]) -> Network:
    """The same object each time, as programs are kept by network."""
    shapes = {tensor.name: tensor.shape for tensor in network.tensors}
    values = {name: np.frombuffer(T).reshape(shapes[name]) for name, T in tensors}
    free = behind_collapse(_architecture(network), exact_forms(network.rebuilt(values))[0])
    more = tuple(family for family in free if family not in network.families)
    found = replace(network, families=(*network.families, *more)) if more else network
    bound = _bound(found, values)
    if bound is None or (found.bound is not None and found.bound.value <= bound.value):
        return found
    return replace(found, bound=bound)


def _architecture(network: Network) -> Architecture:
    if network.architecture is None:
        raise TypeError("an attention network has an architecture")
    return network.architecture


def _bound(network: Network, values: Tensors) -> Bound | None:
    """Rank J − rank(J S) at these weights; None where it is that of generic ones, or J is large."""
    architecture = _architecture(network)
    facts = Facts.of(architecture)
    d, entries = architecture.widths[0], architecture.depth * architecture.widths[0] ** 2
    if (entries + d * architecture.widths[-1]) * network.parameters > LARGEST_DIFFERENTIAL:
        return None
    weights = network.rebuilt(values)
    shown = seen(architecture, weights, network.readout)
    J = _matrix(network, shown)
    everything = len(shown) == architecture.depth + 1 and network.readout == "logits"
    generic = virtual_dimension(facts, first_symmetric(facts))
    if everything and flint_rank(J, DEFAULT_PRIME) == generic:
        return None
    moved = _moved_by_symmetries(network, values, J)
    value = max(0, integer_rank(J) - moved - len(network.constants))
    return Bound(value, "virtual-rank", "virtual weights here")


def seen(architecture: Architecture, weights: Weights, readout: Readout) -> list[Derivatives]:
    """The derivatives of the virtual weights that the function shows to first order (virtual-rank).

    Args:
        architecture: the network.
        weights: the given weights.
        readout: what is looked at of the output; but for the logits, only differences of the rows
            of L count (readouts).
    """
    differential, (forms, L) = VirtualDifferential(weights), exact_forms(weights)
    parts, values, last = [*differential.forms, differential.linear], [*forms, L], len(forms)
    if readout != "logits":
        values[last] = Dyadic(L.integers[1:] - L.integers[0], L.exponent)
        parts[last] = {name: _differences(J, len(L.integers)) for name, J in parts[last].items()}
    first = first_symmetric(Facts.of(architecture)) or last + 1
    for i in range(first - 1, last):
        parts[i], values[i] = symmetrised(parts[i]), values[i].symmetric_part
    vanishing = [i for i, value in enumerate(values) if value.is_zero]
    if architecture.is_homogeneous and vanishing:
        alone = len(vanishing) == 1 and vanishing[0] >= last - 1
        return [parts[vanishing[0]]] if alone else []
    shown = last
    if architecture.averages_tokens:
        shown = 0 if architecture.tokens == 1 else first_collapsing(architecture, forms) + 1
    return [*(() if last in vanishing else parts[: min(shown, last)]), parts[last]]


def _differences(J: np.ndarray, rows: int) -> np.ndarray:
    """The derivatives of the rows of L less its first one, with those of L."""
    J = J.reshape(rows, -1, J.shape[1])
    return (J[1:] - J[:1]).reshape(-1, J.shape[2])


def _matrix(network: Network, parts: list[Derivatives]) -> np.ndarray:
    """The derivatives as rows over the network's columns, and one row for a constant factor."""
    rows = sum(len(next(iter(part.values()))) for part in parts)
    J = np.zeros((rows + len(network.constants), network.columns), dtype=object)
    start = 0
    for part in parts:
        stop = start + len(next(iter(part.values())))
        for slot, place in network.places.items():
            if slot.tensor in part:
                J[start:stop, place] = part[slot.tensor]
        start = stop
    for row, name in enumerate(network.constants, start=rows):
        J[row, network.places[Slot(name)]] = 1
    return J


def _moved_by_symmetries(network: Network, values: Tensors, J: np.ndarray) -> int:
    """The rank of J S mod p; J is in the units of `VirtualDifferential`, 2^e for each tensor."""
    field = PrimeField(DEFAULT_PRIME)
    p = field.modulus
    at = network.assemble(GivenWeights(network.flatten(values))(field))
    rows = [network.dense(block) for block in known_generators(network, at, field)]
    S = np.mod(np.concatenate([np.zeros((0, network.columns)), *rows]), p).astype(np.int64)
    for slot, place in network.places.items():
        if slot.tensor in values:
            unit = pow(2, -Dyadic.of(values[slot.tensor]).exponent, p)
            S[:, place] = S[:, place] * unit % p
    return flint_rank(S.astype(object) @ J.T, p)
