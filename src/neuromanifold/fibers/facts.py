"""What statements ask about given weights: ranks of A_i, V_i, M_i and L, and which M_i are skew.

Every rank is known twice. Exactly, over the rationals, for the floats as they are. And up to
rounding: singular values are compared with the noise that rounding the weights causes in that very
matrix (`fibers.invariants`). A smaller rank up to rounding is believed when there is a gap of 10^4:
all singular values that count are 10^4 times the noise and 10^4 times those that do not. Then the
weights stand for a special point that floats cannot hold exactly, such as h kᵀ of rank one, and its
rank is the smaller one. Otherwise the exact rank stands; where singular values lie close to the
noise, the rank up to rounding is undecided, and the answer says so. Nothing is zero up to rounding:
only exact zeros are.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.dyadic import Dyadic
from neuromanifold.display import Recorded
from neuromanifold.fibers.agreement import paired
from neuromanifold.fibers.invariants import (
    FormFacts,
    Invariant,
    rounded_layers,
    virtual_invariants,
)
from neuromanifold.fibers.units import in_units
from neuromanifold.networks.exact_virtual import exact_layers
from neuromanifold.networks.weights import Weights
from neuromanifold.statements import Facts

GAP = 1e4
"""The factor between singular values that count and those that do not, and between the former and
the noise, from which on a rank below the exact one is believed."""

Matrix = Float[np.ndarray, "_ _"]


@dataclass(frozen=True, slots=True)
class Spectrum(Recorded):
    """A rank with the evidence for it.

    Attributes:
        name: which matrix.
        rank: the rank that counts.
        exact: the rank of the floats as they are.
        values: the singular values, in units in which the matrix has ordinary size.
        noise: what rounding the weights can do to a singular value, in the same units.
        decided: whether rounding leaves no doubt about the rank.
    """

    name: str
    rank: int
    exact: int
    values: tuple[float, ...]
    noise: float
    decided: bool
    _json = "name rank exact_rank=exact decided singular_values=values gap distance tolerance"

    @property
    def gap(self) -> float | None:
        """σ_r/σ_{r+1}; None where nothing is below or above."""
        if not 0 < self.rank < len(self.values) or not self.values[self.rank]:
            return None
        return self.values[self.rank - 1] / self.values[self.rank]

    @property
    def distance(self) -> float:
        """How far the matrix is from one of smaller rank, relative to its size; 0 for rank 0."""
        return self.values[self.rank - 1] / self.values[0] if self.rank and self.values[0] else 0.0

    @property
    def tolerance(self) -> float:
        """The noise relative to the size of the matrix; 0 for an exact zero."""
        if not self.noise:
            return 0.0
        return self.noise / self.values[0] if self.values and self.values[0] else 1.0

    def __str__(self) -> str:
        gap = "no gap" if self.gap is None else f"gap {self.gap:.1e}"
        numbers = f"{gap}, distance {self.distance:.1e}, tolerance {self.tolerance:.1e}"
        if self.rank != self.exact:
            return (
                f"rank {self.name} = {self.rank} up to rounding, {self.exact} exactly ({numbers})"
            )
        doubt = "" if self.decided else ", up to rounding undecided"
        return f"rank {self.name} = {self.rank}{doubt} ({numbers})"


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """Facts about weights, with the singular values behind every rank.

    Attributes:
        facts: the record that hypotheses are read from.
        spectra: A_1, V_1, A_2, …, then M_1, …, M_l and L; empty for several heads.
        shown: what is known of M_1, …, M_l and L, as far as the network has them.
    """

    facts: Facts
    spectra: tuple[Spectrum, ...]
    shown: tuple[FormFacts, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether rounding leaves no doubt about any rank."""
        return all(one.decided for one in self.spectra)

    @property
    def special_up_to_rounding(self) -> bool:
        """Whether some rank is smaller than that of the floats as they are."""
        return any(one.rank != one.exact for one in self.spectra)


def facts_of(weights: Weights) -> WeightFacts:
    """The facts of weights (eq-8); for several heads those of the architecture alone."""
    architecture = weights.architecture
    facts = Facts.of(architecture)
    spectra: list[Spectrum] = []
    if not architecture.has_one_head:
        return WeightFacts(facts, ())
    for i, layer in enumerate(weights.layers):  # (A, V): virtual weights of the layer by itself
        pair = _twice(Weights((layer,), architecture.layer(i)))
        names = (f"A_{i + 1}", f"V_{i + 1}")
        spectra += [
            replace(spectrum(*one), name=name) for name, one in zip(names, pair, strict=True)
        ]
    facts = replace(
        facts,
        attention_ranks=tuple(A.rank for A in spectra[::2]),
        value_map_ranks=tuple(V.rank for V in spectra[1::2]),
    )
    if not architecture.has_virtual_weights:
        return WeightFacts(facts, tuple(spectra))
    found = _twice(weights)
    *forms, linear = (spectrum(*one) for one in found)
    skew = tuple(_is_skew(*one) for one in found[:-1])
    shown = [
        FormFacts(one.name, zero=not one.rank, skew=is_skew or not one.rank, rank_two=one.rank >= 2)
        for one, is_skew in zip((*forms, linear), (*skew, False), strict=True)
    ]
    facts = replace(
        facts,
        form_ranks=tuple(form.rank for form in forms),
        skew_forms=skew,
        paired_forms=paired([form for form, _ in found[:-1]], GAP),
        linear_rank=linear.rank,
    )
    return WeightFacts(facts, (*spectra, *forms, linear), tuple(shown))


def _twice(weights: Weights) -> list[tuple[Invariant, Dyadic]]:
    """M_1, …, M_l and L, in floats with their noise and exactly."""
    exact = [Dyadic(one.array, one.exponent) for one in virtual_invariants(exact_layers(weights))]
    found = virtual_invariants(rounded_layers(in_units(weights)))
    return list(zip(found, exact, strict=True))


def spectrum(found: Invariant, exact: Dyadic) -> Spectrum:
    """The rank of a matrix by the rule of the module's docstring."""
    values = np.linalg.svd(found.array, compute_uv=False)
    noise, rank = found.noise, exact.rank
    above = int(np.sum(values > noise))
    smallest = values[above - 1] if above else 0.0
    below = values[above] if above < len(values) else 0.0
    clear = bool(above and smallest >= GAP * max(noise, below))
    believed = min(above, rank) if clear else rank
    decided = rank == 0 or (clear and above <= rank)
    return Spectrum(found.name, believed, rank, tuple(map(float, values)), noise, decided)


def _is_skew(found: Invariant, exact: Dyadic) -> bool:
    """Whether the symmetric part is zero, exactly or up to rounding with a gap."""
    symmetric = float(np.linalg.norm(found.array + found.array.T)) / 2
    return exact.is_skew or (symmetric <= found.noise and found.size >= GAP * found.noise > 0)
