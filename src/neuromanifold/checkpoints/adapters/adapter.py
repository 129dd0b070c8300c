"""An adapter: the updates of some modules of a model, one low-rank matrix each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuromanifold.checkpoints.adapters.low_rank import LowRank
from neuromanifold.errors import ArgumentError, FileFormatError

if TYPE_CHECKING:
    from neuromanifold.checkpoints.adapters.audit import AdapterAudit
    from neuromanifold.checkpoints.adapters.reduce import Reduced


@dataclass(frozen=True)
class Module:
    """One module's place in a file: the names and shapes of its factors, and how to read them."""

    A_name: str
    B_name: str
    A_shape: tuple[int, ...]
    B_shape: tuple[int, ...]
    read: Callable[[], LowRank] = field(repr=False, compare=False)

    @property
    def is_embedding(self) -> bool:
        """Whether it changes a table, which keeps the transpose of the update."""
        return "lora_embedding_" in self.A_name


@dataclass(frozen=True)
class Adapter:
    """The updates by module, read one at a time, with the configuration they came with.

    Attributes:
        path: where it was read; a name for adapters that were computed.
        modules: the modules by name.
        config: the values of `adapter_config.json`.
        others: full tensors that the adapter replaces besides, by their name in the file.
        notes: remarks on the reading.
    """

    path: Path
    modules: Mapping[str, Module]
    config: Mapping[str, object] = field(repr=False)
    others: Mapping[str, Callable[[], np.ndarray]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    def update(self, module: str) -> LowRank:
        """The update of one module."""
        if module not in self.modules:
            raise ArgumentError(
                f"{self.path} does not change {module[:200]}; it changes "
                f"{', '.join(list(self.modules)[:3])} and {len(self.modules)} modules in all"
            )
        found = self.modules[module].read()
        if not found.is_moderate:
            raise FileFormatError(
                f"{self.path}: the factors of {module[:200]} with their scale have entries up to "
                f"{', '.join(f'{size:.1e}' for size in found.sizes)}; between 1e-100 and 1e100 "
                "float64 can square them: rescale the factors"
            )
        return found

    @property
    def parameters(self) -> int:
        """The number of entries of all factors."""
        return sum(
            int(np.prod(shape))
            for module in self.modules.values()
            for shape in (module.A_shape, module.B_shape)
        )

    def audit(self) -> "AdapterAudit":
        """Rank and spectrum of every update."""
        from neuromanifold.checkpoints.adapters.audit import audit_adapter

        return audit_adapter(self)

    def rank(self) -> dict[str, int | None]:
        """The true rank of every update; None where it is undecided."""
        return {module.name: module.rank for module in self.audit().modules}

    def canonical(self) -> "Reduced":
        """The adapter with the same updates and factors that depend on the updates alone."""
        from neuromanifold.checkpoints.adapters.reduce import canonical_adapter

        return canonical_adapter(self)

    def shrink(self, *, rank: int | None = None, error: float | None = None) -> "Reduced":
        """The nearest adapter of given rank, or of the smallest rank within a relative error."""
        from neuromanifold.checkpoints.adapters.reduce import shrink_adapter

        return shrink_adapter(self, rank=rank, error=error)


def updates_of(module: str, adapters: Sequence[Adapter]) -> list[LowRank]:
    """The updates of one module, zero where an adapter does not change it."""
    having = [item for item in adapters if module in item.modules]
    kinds = [(item.modules[module].is_embedding, item.update(module)) for item in having]
    table, first = kinds[0]
    for item, (is_table, update) in zip(having, kinds, strict=True):
        if (is_table, update.shape) != (table, first.shape):
            raise ArgumentError(
                f"{module} is {first.shape} in {having[0].path} and {update.shape} in {item.path}"
                f"{'' if table == is_table else ', a table in one of them'}: these adapters are "
                "for different models"
            )
    found = {id(item): update for item, (_, update) in zip(having, kinds, strict=True)}
    return [found.get(id(item), first.zero) for item in adapters]
