"""What statements ask about given weights: ranks of A_i, V_i, M_i and L, and which M_i are skew."""

from dataclasses import dataclass, replace

import numpy as np

from neuromanifold.fibers.normal_form.comparable import in_float64
from neuromanifold.fibers.pairs import Spectrum, layer_spectra, rank_tolerance, spectrum
from neuromanifold.networks.virtual import has_virtual_weights
from neuromanifold.networks.weights import Weights
from neuromanifold.statements import Facts


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """Facts about weights, with the singular values behind every rank.

    Attributes:
        facts: the record that hypotheses are read from.
        spectra: A_1, V_1, A_2, …, then M_1, …, M_l and L; empty for several heads.
    """

    facts: Facts
    spectra: tuple[Spectrum, ...]


def facts_of(weights: Weights) -> WeightFacts:
    """The facts of weights (eq-8); for several heads those of the architecture alone."""
    facts = Facts.of(weights.architecture)
    if weights.architecture.heads > 1:
        return WeightFacts(facts, ())
    pairs = [layer_spectra(weights, i) for i in range(weights.architecture.depth)]
    facts = replace(
        facts,
        attention_ranks=tuple(A.rank for A, _ in pairs),
        value_map_ranks=tuple(V.rank for _, V in pairs),
    )
    spectra = tuple(one for pair in pairs for one in pair)
    if not has_virtual_weights(weights.architecture):
        return WeightFacts(facts, spectra)
    forms, linear, skew = _virtual_spectra(weights)
    facts = replace(
        facts,
        form_ranks=tuple(form.rank for form in forms),
        skew_forms=skew,
        linear_rank=linear.rank,
    )
    return WeightFacts(facts, (*spectra, *forms, linear))


def _virtual_spectra(
    weights: Weights,
) -> tuple[tuple[Spectrum, ...], Spectrum, tuple[bool, ...]]:
    """The ranks of M_i and L, and for each M_i whether its symmetric part is zero (eq-8)."""
    tolerance = rank_tolerance(weights)
    L = np.eye(weights.architecture.widths[0])
    size = 1.0
    forms: list[Spectrum] = []
    skew: list[bool] = []
    for i, layer in enumerate(in_float64(weights).layers, start=1):
        K, Q = np.asarray(layer.key[0]) @ L, np.asarray(layer.query[0]) @ L
        M = K.T @ Q
        reached = float(np.linalg.norm(layer.key[0], 2) * np.linalg.norm(layer.query[0], 2))
        forms.append(spectrum(f"M_{i}", M, reached * size**2, tolerance))
        skew.append(bool(np.linalg.norm(M + M.T) <= 2 * tolerance * max(reached * size**2, 0.0)))
        V = np.asarray(layer.value_maps()[0])
        L, size = V @ L, size * float(np.linalg.norm(V, 2))
    return tuple(forms), spectrum("L", L, size, tolerance), tuple(skew)
