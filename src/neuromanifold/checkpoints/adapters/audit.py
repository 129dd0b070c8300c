"""What an adapter really is: the rank and the spectrum of each of its updates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.checkpoints.adapters.adapter import Adapter
from neuromanifold.checkpoints.adapters.low_rank import (
    CLEAR,
    LowRank,
    Spectrum,
    exact_rank,
    roundoff,
    spectrum,
)
from neuromanifold.display import Recorded

RankVerdict = Literal["exact", "numerical", "undecided"]


@dataclass(frozen=True)
class ModuleAudit(Recorded):
    """One update.

    Attributes:
        name: the module.
        shape: of the update.
        size: the inner size r of the factors.
        rank: of the update as stored; None when undecided.
        verdict: `exact` when the rank modulo a prime (a lower bound, field-rank) meets the number
            of pairs of columns and rows that are not zero; `numerical` when it meets the number of
            singular values above the noise instead, and those are clearly above it.
        lower: the rank modulo a prime.
        gap: the smallest singular value that counts over the largest that does not, or over the
            noise where none is left; None when nothing counts.
        rank_to_rounding: the smallest rank whose best approximation is off by no more than the
            rounding of the stored factors may be already.
        singular_values: of the update, scale included, r of them.
        norm: the Frobenius norm of the update.
        scale: the factor s.
        imbalance: ‖B‖/‖A‖, which means nothing for the update and much for its rounding.
    """

    name: str
    shape: tuple[int, int]
    size: int
    rank: int | None
    verdict: RankVerdict
    lower: int
    gap: float | None
    rank_to_rounding: int
    singular_values: tuple[float, ...]
    norm: float
    scale: float
    imbalance: float | None


@dataclass(frozen=True)
class AdapterAudit(Recorded):
    """All updates of an adapter."""

    adapter: Adapter
    modules: tuple[ModuleAudit, ...]
    prime: int

    _json = (
        "adapter=adapter.path parameters=adapter.parameters needed redundant prime modules "
        "notes=adapter.notes"
    )

    @property
    def needed(self) -> int:
        """The parameters of the smallest factors of the same updates: r (out + in) each."""
        return sum(
            (module.size if module.rank is None else module.rank) * sum(module.shape)
            for module in self.modules
        )

    @property
    def redundant(self) -> int:
        """The dimension of the gauge: r² a module, the group being GL_r (lora)."""
        return sum(module.size**2 for module in self.modules)

    def __str__(self) -> str:
        ranks = span([module.rank for module in self.modules if module.rank is not None])
        sizes = span([module.size for module in self.modules])
        undecided = [module.name for module in self.modules if module.rank is None]
        parameters = self.adapter.parameters
        spare = (parameters - self.needed) / max(parameters, 1)
        modules = count_of(len(self.modules), "module")
        text = (
            f"{self.adapter.path}: {modules}, {parameters} parameters, inner "
            f"sizes {sizes}, true ranks {ranks}; smallest factors with the same "
            f"updates: {self.needed} parameters ({spare:.1%} less); GL_r moves {self.redundant} "
            "dimensions without a meaning"
        )
        return text + (f"; rank undecided in {', '.join(undecided)}." if undecided else ".")


def audit_adapter(adapter: Adapter) -> AdapterAudit:
    """Rank and spectrum of every update, one module in memory at a time (lora)."""
    prime_field = PrimeField()
    modules = tuple(_audit(name, adapter.update(name), prime_field) for name in adapter.modules)
    return AdapterAudit(adapter, modules, prime_field.modulus)


def _audit(name: str, update: LowRank, prime_field: PrimeField) -> ModuleAudit:
    found = spectrum(update)
    lower = exact_rank(update, prime_field)
    upper = int(np.sum(np.any(update.B, axis=0) & np.any(update.A, axis=1)))
    counted, gap = counted_rank(found)
    verdict: RankVerdict = "undecided"
    if update.scale.alpha == 0:
        lower, counted, verdict = 0, 0, "exact"
    elif lower == min(upper, *update.shape):
        counted, verdict = lower, "exact"
    elif lower == counted and (gap is None or gap > CLEAR):
        verdict = "numerical"
    small = float(np.linalg.norm(update.A))
    return ModuleAudit(
        name,
        update.shape,
        update.size,
        None if verdict == "undecided" else counted,
        verdict,
        lower,
        gap,
        rank_to_rounding(found, update.dtype),
        tuple(map(float, found.values)),
        found.norm,
        update.scale.value,
        float(np.linalg.norm(update.B)) / small if small else None,
    )


def counted_rank(found: Spectrum) -> tuple[int, float | None]:
    """How many singular values exceed the noise, and by what factor the last one stands out."""
    counted = int(np.sum(found.values > found.noise))
    if not counted:
        return 0, None
    below = found.values[counted] if counted < len(found.values) else 0.0
    return counted, float(found.values[counted - 1] / max(below, found.noise))


def rank_to_rounding(found: Spectrum, dtype: np.dtype) -> int:
    """The smallest rank k with ‖ΔW − ΔW_k‖ ≤ u s‖B‖‖A‖, u the rounding of the stored dtype."""
    allowed = roundoff(dtype) * found.magnitude
    ranks = range(len(found.values) + 1)
    return next(rank for rank in ranks if found.tail(rank) <= allowed)


def span(numbers: Sequence[int]) -> str:
    """The smallest and the largest of some numbers in words."""
    if not numbers:
        return "none"
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def count_of(count: int, noun: str) -> str:
    """A number of things in words."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
