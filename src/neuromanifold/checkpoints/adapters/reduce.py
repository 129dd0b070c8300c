"""Other factors of the same updates, or of the nearest ones of lower rank; sums of adapters."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.adapters.adapter import Adapter, Module, updates_of
from neuromanifold.checkpoints.adapters.audit import count_of, counted_rank, span
from neuromanifold.checkpoints.adapters.low_rank import (
    LowRank,
    Scale,
    Spectrum,
    spectrum,
    widest,
)
from neuromanifold.checkpoints.adapters.peft import load_adapter, save_adapter
from neuromanifold.checkpoints.writing import rounded
from neuromanifold.display import Recorded
from neuromanifold.errors import ArgumentError

NEAR = 1e-6
"""Singular values that differ by less, relatively, span a block without axes of its own."""


@dataclass(frozen=True)
class ModuleChange(Recorded):
    """What became of one update.

    Attributes:
        name: the module.
        size: the inner size of what came (the sum, for a merge).
        rank: the inner size of what is written.
        norm: of the update that came.
        error: the Frobenius distance between what came and what is written, measured.
        dropped: the part of it that is the singular values left out; the rest is rounding.
        blocks: runs of nearly equal singular values (first, last), whose single rows are not
            determined by the update, though their span is.
    """

    name: str
    size: int
    rank: int
    norm: float
    error: float
    dropped: float
    blocks: tuple[tuple[int, int], ...]

    _json = "name size rank norm error dropped blocks relative"

    @property
    def relative(self) -> float:
        """The error over the norm of the update; 0 when both vanish."""
        return self.error / self.norm if self.norm else 0.0


@dataclass(frozen=True)
class Reduced(Recorded):
    """An adapter that was computed from others, with what that cost."""

    adapter: Adapter
    changes: tuple[ModuleChange, ...]
    before: int
    notes: tuple[str, ...] = ()

    _json = "parameters=adapter.parameters before relative modules=changes notes"

    @property
    def relative(self) -> float:
        """The error of all updates together over their norm."""
        error, norm = (
            float(np.linalg.norm([getattr(change, key) for change in self.changes]))
            for key in ("error", "norm")
        )
        return error / norm if norm else 0.0

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write it as PEFT does."""
        save_adapter(self.adapter, folder, force=force)

    def __str__(self) -> str:
        worst = max(self.changes, key=lambda change: change.relative)
        ranks = span([change.rank for change in self.changes])
        return (
            f"{count_of(len(self.changes), 'module')} of rank {ranks}, "
            f"{self.adapter.parameters} parameters (before: {self.before}); relative error of the "
            f"updates {self.relative:.2g}, largest {worst.relative:.2g} in {worst.name}."
        )


Choice = Callable[[Spectrum], int]
"""The rank to keep of an update."""


def canonical_adapter(adapter: Adapter, *, dtype: np.dtype | None = None) -> Reduced:
    """The same updates with factors that depend on them alone: constant on orbits of GL_r (lora).

    ΔW = U Σ Vᵀ, B = U √Σ, A = √Σ Vᵀ, the largest entry of each row of A positive; scale 1; the
    null part is dropped, so adapters of different inner size with the same updates meet as well.
    """
    return shrink_adapter(adapter, dtype=dtype)


def shrink_adapter(
    adapter: Adapter,
    *,
    rank: int | None = None,
    error: float | None = None,
    dtype: np.dtype | None = None,
) -> Reduced:
    """The nearest adapter of given rank, or of least rank within a relative error of each update.

    With neither, the null part alone is dropped: the smallest equivalent rank.
    """
    return _reduce([adapter], (1.0,), _choice(rank, error), dtype)


def merge_adapters(
    adapters: Sequence[str | Path | Adapter],
    weights: Sequence[float] | None = None,
    *,
    rank: int | None = None,
    error: float | None = None,
    dtype: np.dtype | None = None,
) -> Reduced:
    """The adapter whose updates are the weighted sums Σ wᵢ ΔWᵢ, exactly (lora).

    Factors are put side by side and the null part is dropped; nothing is lost unless `rank` or
    `error` ask for less. A module that an adapter does not change counts as zero there.

    Args:
        adapters: the adapters, or their folders.
        weights: one number each; by default 1, the sum of all updates.
        rank: keep at most this many singular values of each sum.
        error: keep as few as this relative error of each sum allows.
        dtype: of the factors; by default the widest that came.
    """
    loaded = [item if isinstance(item, Adapter) else load_adapter(item) for item in adapters]
    weights = [1.0] * len(loaded) if weights is None else list(weights)
    if len(weights) != len(loaded) or not loaded:
        raise ArgumentError(f"give one weight an adapter; got {len(weights)} for {len(loaded)}")
    if not all(weight == 0 or 1e-40 < abs(weight) < 1e40 for weight in weights):
        raise ArgumentError(
            f"weights must be finite, and 0 or between 1e-40 and 1e40 in size; got {weights}"
        )
    for item in loaded:
        if item.others and weights != [1.0]:
            raise ArgumentError(
                f"{item.path} replaces whole tensors besides ({next(iter(item.others))}), which "
                "have no multiple or sum of low rank; merge it into its model first"
            )
    return _reduce(loaded, tuple(weights), _choice(rank, error), dtype)


def _choice(rank: int | None, error: float | None) -> Choice:
    if rank is not None and error is not None:
        raise ArgumentError("give a rank or an error to shrink to, not both")
    if rank is not None and rank < 1:
        raise ArgumentError(f"the rank must be at least 1; got {rank}")
    if error is not None and not 0 <= error < 1:
        raise ArgumentError(f"the relative error must be from 0 to below 1; got {error}")

    def choose(found: Spectrum) -> int:
        full = counted_rank(found)[0]
        if rank is not None:
            return min(rank, full)
        if error is None:
            return full
        return next(k for k in range(full + 1) if found.tail(k) <= error * found.norm or k == full)

    return choose


def _reduce(
    adapters: Sequence[Adapter], weights: tuple[float, ...], choose: Choice, dtype: np.dtype | None
) -> Reduced:
    names = list(dict.fromkeys(name for adapter in adapters for name in adapter.modules))
    modules: dict[str, Module] = {}
    changes: list[ModuleChange] = []
    for name in names:
        terms = updates_of(name, adapters)
        first = next(item.modules[name] for item in adapters if name in item.modules)
        modules[name], change = _module(name, first, terms, weights, choose, dtype)
        changes.append(change)
    config = _config(adapters, modules)
    notes = _notes(adapters)
    others = adapters[0].others if len(adapters) == 1 else {}
    made = Adapter(adapters[0].path, modules, config, others, notes)
    return Reduced(made, tuple(changes), sum(item.parameters for item in adapters), notes)


def _module(
    name: str,
    first: Module,
    terms: Sequence[LowRank],
    weights: tuple[float, ...],
    choose: Choice,
    dtype: np.dtype | None,
) -> tuple[Module, ModuleChange]:
    """The canonical factors of one sum, rounded to the dtype, and what that changed."""
    found = spectrum(*terms, weights=weights)
    rank = choose(found)
    kept = max(rank, 1)  # the file format has no factors of inner size 0
    dtype = widest(*(term.dtype for term in terms)) if dtype is None else dtype
    B, A = _factors(found, rank, kept)
    B, A = rounded(first.B_name, B, dtype), rounded(first.A_name, A, dtype)
    made = LowRank(B.astype(np.float64), A.astype(np.float64), Scale(Fraction(kept), kept), dtype)
    error = spectrum(*terms, made, weights=(*weights, -1.0)).norm
    module = Module(
        first.A_name,
        first.B_name,
        (kept, *first.A_shape[1:]),
        (first.B_shape[0], kept, *first.B_shape[2:]),
        lambda: made,
    )
    size = sum(term.size for term in terms)
    blocks = _blocks(found.values[:rank])
    return module, ModuleChange(name, size, rank, found.norm, error, found.tail(rank), blocks)


def _factors(found: Spectrum, rank: int, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Balanced factors with signs that the update determines, zero beyond the rank."""
    rows, columns = found.left.shape[0], found.right.shape[1]
    B, A = np.zeros((rows, kept)), np.zeros((kept, columns))
    for i in range(rank):
        row, root = found.right[i], np.sqrt(found.values[i])
        sign = 1.0 if row[np.argmax(np.abs(row))] > 0 else -1.0
        B[:, i], A[i] = sign * root * found.left[:, i], sign * root * row
    return B, A


def _blocks(values: np.ndarray) -> tuple[tuple[int, int], ...]:
    blocks: list[tuple[int, int]] = []
    for i in range(1, len(values)):
        if values[i - 1] - values[i] <= NEAR * values[i - 1]:
            start = blocks.pop()[0] if blocks and blocks[-1][1] == i - 1 else i - 1
            blocks.append((start, i))
    return tuple(blocks)


def _config(adapters: Sequence[Adapter], modules: Mapping[str, Module]) -> dict[str, object]:
    """The first configuration with the sizes of the result: α = r everywhere, so that s = 1."""
    sizes = {name: module.A_shape[0] for name, module in modules.items()}
    usual = max(sizes.values())
    # patterns are regular expressions that may match the end of a name: ^ and \ make them exact
    unusual = {f"^{re.escape(name)}": size for name, size in sizes.items() if size != usual}
    config = {
        **adapters[0].config,
        "r": usual,
        "lora_alpha": usual,
        "use_rslora": False,
        "rank_pattern": unusual,
        "alpha_pattern": dict(unusual),
    }
    if len(adapters) > 1:
        # the modules are named one by one: what else narrowed the first adapter's choice is over
        unused = dict.fromkeys(("layers_to_transform", "layers_pattern", "exclude_modules"))
        config |= {**unused, "target_modules": sorted(modules)}
    return config


def _notes(adapters: Sequence[Adapter]) -> tuple[str, ...]:
    bases = {str(adapter.config.get("base_model_name_or_path")) for adapter in adapters}
    if len(bases) > 1:
        return (f"the adapters name different base models: {', '.join(sorted(bases))}",)
    return ()
