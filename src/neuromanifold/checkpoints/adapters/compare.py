"""Distances between adapters that no choice of factors changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.checkpoints.adapters.adapter import Adapter, updates_of
from neuromanifold.checkpoints.adapters.low_rank import LowRank, spectrum
from neuromanifold.checkpoints.adapters.peft import load_adapter
from neuromanifold.checkpoints.equality.dyadic import depth, primes_beyond
from neuromanifold.display import Recorded
from neuromanifold.errors import ArgumentError

Level = Literal["exact", "equal to rounding", "undecided", "different"]
_ROWS = 1024
"""Rows of updates that are formed together."""


@dataclass(frozen=True)
class ModuleDistance(Recorded):
    """Two updates of one module.

    Attributes:
        name: the module.
        distance: ‖ΔW − ΔW′‖ (Frobenius).
        relative: the distance over the larger of both norms; 0 when both vanish.
        cosine: of the angle between the updates; None when one of them vanishes.
        tolerance: what the rounding of the stored factors may make of equal updates.
        level: `exact`, `equal to rounding` (every entry, and half of the update more or less would
            show), `undecided` (rounding explains the difference, but half of the update as well) or
            `different`.
    """

    name: str
    distance: float
    relative: float
    cosine: float | None
    tolerance: float
    level: Level


@dataclass(frozen=True)
class AdapterDistance(Recorded):
    """Two adapters, module by module; a module that one of them lacks is zero there."""

    first: Path
    second: Path
    modules: tuple[ModuleDistance, ...]
    distance: float
    relative: float
    level: Level

    _json = "first second level distance relative modules"

    def __str__(self) -> str:
        names = f"{self.first} and {self.second}"
        if self.level == "exact":
            return f"{names} are the same adapter (exact): every update agrees as fractions."
        if self.level == "equal to rounding":
            return f"{names} are the same adapter to rounding (relative {self.relative:.1e})."
        if self.level == "undecided":
            hidden = next(module for module in self.modules if module.level == "undecided")
            return (
                f"{names} may be the same adapter or not: the rounding of the factors of "
                f"{hidden.name} may be {hidden.tolerance:.1e}, about as large as its update."
            )
        worst = max(self.modules, key=lambda module: module.distance)
        return (
            f"{names} differ: ‖ΔW − ΔW′‖ = {self.distance:.4g}, relative {self.relative:.3g}; "
            f"most in {worst.name} ({worst.relative:.3g})."
        )


def adapter_distance(first: str | Path | Adapter, second: str | Path | Adapter) -> AdapterDistance:
    """The distance of two adapters, each update compared without forming it (lora)."""
    a, b = (item if isinstance(item, Adapter) else load_adapter(item) for item in (first, second))
    names = list(dict.fromkeys((*a.modules, *b.modules)))
    modules: list[ModuleDistance] = []
    norms: list[float] = []
    for name in names:
        module, norm = _compare(name, *updates_of(name, (a, b)))
        modules.append(module)
        norms.append(norm)
    distance = float(np.linalg.norm([module.distance for module in modules]))
    scale = float(np.linalg.norm(norms))
    levels = {module.level for module in modules} | {_others_level(a, b)}
    order: tuple[Level, ...] = ("different", "undecided", "equal to rounding", "exact")
    level = next(word for word in order if word in levels)
    return AdapterDistance(
        a.path, b.path, tuple(modules), distance, distance / scale if scale else 0.0, level
    )


def duplicate_groups(distances: Sequence[AdapterDistance]) -> list[list[str]]:
    """Adapters that are the same, grouped; those that stand alone are left out."""
    groups: list[set[str]] = []
    for pair in distances:
        if pair.level in ("exact", "equal to rounding"):
            found = {str(pair.first), str(pair.second)}
            joined = [group for group in groups if group & found]
            groups = [group for group in groups if not group & found]
            groups.append(found.union(*joined))
    return sorted(sorted(group) for group in groups)


def compare_adapters(paths: Sequence[str | Path]) -> list[AdapterDistance]:
    """The distances of all pairs."""
    if len(paths) < 2:
        raise ArgumentError(f"give at least two adapters to compare; got {len(paths)}")
    loaded = [load_adapter(path) for path in paths]
    return [adapter_distance(a, b) for a, b in combinations(loaded, 2)]


def _compare(name: str, a: LowRank, b: LowRank) -> tuple[ModuleDistance, float]:
    """One module, and the larger of its two norms."""
    difference, own = spectrum(a, b, weights=(1.0, -1.0)), [spectrum(a), spectrum(b)]
    norm = max(part.norm for part in own)
    product = own[0].norm * own[1].norm
    # ⟨U Σ V, U′ Σ′ V′⟩: two r × r′ matrices multiplied entry by entry, without cancellation
    lefts, rights = (p.T @ q for p, q in zip(*((s.left, s.right.T) for s in own), strict=True))
    inner = float(own[0].values @ (lefts * rights) @ own[1].values)
    noise = sum(part.noise for part in own)
    tolerance = noise + sum(math.prod(map(np.linalg.norm, u.rounding)) for u in (a, b))
    level: Level = "equal to rounding" if 2 * tolerance <= norm else "undecided"
    if _equal_exactly(a, b):
        level = "exact"
    elif difference.norm > tolerance or not _is_rounding(a, b, noise):
        level = "different"
    found = ModuleDistance(
        name,
        difference.norm,
        difference.norm / norm if norm else 0.0,
        inner / product if product else None,
        float(tolerance),
        level,
    )
    return found, norm


def _is_rounding(a: LowRank, b: LowRank, noise: float) -> bool:
    """Whether rounding explains every entry of the difference, a few rows at a time.

    A sign or a row that was changed is small beside the whole update, and large where it is.
    """
    (C, D), (E, F) = a.rounding, b.rounding
    for start in range(0, a.shape[0], _ROWS):
        rows = slice(start, start + _ROWS)
        first, second = (u.scale.value * (u.B[rows] @ u.A) for u in (a, b))
        if np.any(np.abs(first - second) > C[rows] @ D + E[rows] @ F + noise):
            return False
    return True


def _equal_exactly(a: LowRank, b: LowRank) -> bool:
    """Whether n B A / m = n′ B′A′ / m′ as rational numbers, block of rows by block of rows.

    With factors that are multiples of 2^-E and at most L both sides times m m′ 2^(2E) are whole,
    and their difference is at most 2 r |n m′| L² 2^(2E): zero modulo primes beyond that, it is 0.
    """
    s, t = a.scale.exact, b.scale.exact
    if s is None or t is None:
        if a.scale != b.scale:
            return False
        s = t = Fraction(1)
    factors = s.numerator * t.denominator, t.numerator * s.denominator
    values = [a.B, a.A, b.B, b.A]
    E = max(depth(value) for value in values)
    largest = max(float(np.abs(value).max(initial=1.0)) for value in values)
    bits = 1 + 2 * E + 2 * math.log2(largest)
    bits += math.log2(max(a.size, b.size, 1)) + max(abs(n).bit_length() for n in factors)
    for start in range(0, a.shape[0], _ROWS):
        for field in map(PrimeField, primes_beyond(bits)):
            products = [
                field.multiply(
                    field.matmul(
                        field.from_floats(update.B[start : start + _ROWS]),
                        field.from_floats(update.A),
                    ),
                    field.from_integers(np.array(n, object)),
                )
                for update, n in zip((a, b), factors, strict=True)
            ]
            if not np.array_equal(products[0], products[1]):
                return False
    return True


def _others_level(a: Adapter, b: Adapter) -> Level:
    """Whether the full tensors besides the factors are the same."""
    same = a.others.keys() == b.others.keys() and all(
        np.array_equal(read(), b.others[name]()) for name, read in a.others.items()
    )
    return "exact" if same else "different"
