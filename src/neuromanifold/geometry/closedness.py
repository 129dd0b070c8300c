"""Weights that diverge while their functions converge, and the limit found again (cor-a.1).

The neuromanifold of one lightning layer is closed: if φ_j → φ, then φ is the function of some
weights, even if the weights of the φ_j grow without bound. Why: scale (A_j, V_j) so that both have
the norm √(‖A_j‖ ‖V_j‖). The table of products vanishes only if A or V does, so on pairs of norm one
its norm is bounded below by some c > 0, hence ‖A_j‖ ‖V_j‖ ≤ ‖T_j‖ / c stays bounded, the scaled
pairs have a limit point, and its table is the limit of the tables.

Here the divergence is produced on purpose, and the limit is read off the functions alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Float64

from neuromanifold.errors import ArgumentError
from neuromanifold.geometry.layer import check_layer
from neuromanifold.geometry.membership import Membership, factor_table, weights_of_pair
from neuromanifold.geometry.segre import table_norm, table_of
from neuromanifold.networks.weights import Weights, random_weights, replace_layers, unflatten
from neuromanifold.symmetry.group_element import GroupElement

_ROUNDING = 1e-13  # steps smaller than this, relative to the largest table, are rounding

Escape = Literal["scaling", "key-query", "vanishing"]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionLimit:
    """The limit of the functions of a sequence of weights.

    Attributes:
        weight_norms: the norm of all weights, for every term of the sequence.
        steps: the distance from each term's table of products to the next one's.
        remainder: how far the limit can be from the last table, if the steps go on shrinking by
            the ratio of the last two.
        table: the last table, or zero when it is no larger than the remainder.
        membership: its factorisation, which shows that the limit is in the neuromanifold.
        weights: balanced weights of the limit, or None if it was not found.
        error: the distance from their table to the last one.
    """

    weight_norms: Float64[np.ndarray, " terms"]
    steps: Float64[np.ndarray, " gaps"]
    remainder: float
    table: Float[np.ndarray, "d d_out forms"]
    membership: Membership
    weights: Weights | None
    error: float | None


def diverging_sequence(
    weights: Weights, escape: Escape = "scaling", *, terms: int = 30, seed: int = 0
) -> tuple[Weights, ...]:
    """Weights W_1, W_2, … that diverge while their functions converge (cor-a.1).

    Term j is moved by λ = 2^j: W + 4^-j E for a fixed random E, and then

    - `scaling`: (λA, V/λ), so the functions converge to that of W;
    - `key-query`: Q and K move by C^{-T} and C with C = diag(λ, 1/λ, λ, …), the same limit;
    - `vanishing`: (λA, V/λ²), so the functions converge to zero.
    """
    architecture = weights.architecture
    check_layer(architecture, "cor-a.1")
    if escape not in get_args(Escape):
        raise ArgumentError(f"escape must be one of {', '.join(get_args(Escape))}; got {escape!r}")
    if terms < 3:
        raise ArgumentError(f"a sequence has at least 3 terms; got {terms}")
    start, noise = weights.flatten(), random_weights(architecture, seed).flatten()
    return tuple(
        _moved(unflatten(architecture, start + 0.25**j * noise), escape, 2.0**j)
        for j in range(1, terms + 1)
    )


def limit_of_functions(sequence: Sequence[Weights], *, tolerance: float = 1e-9) -> FunctionLimit:
    """The limit of the functions of a sequence of weights, inside the neuromanifold (cor-a.1).

    Only the tables of products are used for the limit, not the weights, which may diverge.

    Args:
        sequence: at least three weights of one layer, whose functions converge.
        tolerance: relative to the table, what counts as zero when the limit is factored; the
            remainder of the sequence, if that is larger.
    """
    if len(sequence) < 3 or len({weights.architecture for weights in sequence}) > 1:
        raise ArgumentError("a sequence is at least three weights of one architecture")
    architecture = sequence[0].architecture
    check_layer(architecture, "cor-a.1")
    tables = [table_of(weights) for weights in sequence]
    steps = np.array([table_norm(after - before) for before, after in pairwise(tables)])
    remainder = _remainder(steps, max(table_norm(table) for table in tables))
    norm = table_norm(tables[-1])
    table = tables[-1] if norm > 2 * remainder else np.zeros_like(tables[-1])
    relative = max(tolerance, remainder / norm) if table.any() else tolerance
    membership = factor_table(table, architecture.ranks[0], tolerance=relative)
    A, V = membership.form, membership.value
    found = None if A is None or V is None else weights_of_pair(A, V, architecture)
    return FunctionLimit(
        weight_norms=np.array([np.linalg.norm(weights.flatten()) for weights in sequence]),
        steps=steps,
        remainder=remainder,
        table=table,
        membership=membership,
        weights=found,
        error=None if found is None else table_norm(table_of(found) - table),
    )


def _remainder(steps: Float64[np.ndarray, " gaps"], largest: float) -> float:
    """The rest of a geometric series with the last two steps: s ρ / (1 − ρ), ρ their ratio."""
    last, before = float(steps[-1]), float(steps[-2])
    if last <= _ROUNDING * largest:
        return last
    if last >= before:
        raise ArgumentError(
            "functions that converge were wanted; the last two steps between them are "
            f"{before:.2g} and {last:.2g}: give more terms, or a sequence that converges"
        )
    return last * last / (before - last)


def _moved(weights: Weights, escape: Escape, factor: float) -> Weights:
    """The weights carried away, far for a large factor."""
    if escape == "key-query":
        a = weights.architecture.ranks[0]
        C = np.diag([factor, 1 / factor] * a)[:a, :a]
        return GroupElement(weights.architecture, key_query=(C[None],)).act(weights)
    scaled = GroupElement(weights.architecture, scaling=(np.array([factor]),)).act(weights)
    if escape == "scaling":
        return scaled
    return replace_layers(scaled, [{"value": np.asarray(scaled.layers[0].value) / factor}])
