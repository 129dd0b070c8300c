"""A model with an adapter merged into it, and whether a file holds just that.

The update s B A of a module is added to its weight in float64 when the weight is read. An update
may be smaller than the rounding of what is stored, and then a file without it looks the same; so
`same` is only said where half of any update, more or less, would show.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from math import prod
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.adapters.adapter import Adapter, Module
from neuromanifold.checkpoints.adapters.peft import load_adapter
from neuromanifold.checkpoints.checkpoint import Checkpoint
from neuromanifold.checkpoints.equality.same import agrees_at, same
from neuromanifold.checkpoints.equality.sameness import Sameness
from neuromanifold.checkpoints.equality.uniform import uniform
from neuromanifold.checkpoints.families.layout import Slot
from neuromanifold.checkpoints.forms import folded
from neuromanifold.checkpoints.readers.contents import Stored
from neuromanifold.errors import ArgumentError, NotCoveredError

PROBES = (0.5, 1.5)
"""Shares of an update that must be told from the whole of it.

A file that holds c times the update with c ≤ 1/2 is nearer to the first, with c ≥ 3/2 nearer to
the second than to the whole: if it passes for the whole, one of them passes too.
"""
NEAR = 0.1
"""A file's change is called so many times an update if what is left is below this share of it."""


def same_merged(
    base: Checkpoint,
    merged: Checkpoint,
    adapter: Adapter | str | Path,
    *,
    rtol: float | None = None,
    seed: int = 0,
) -> Sameness:
    """Say whether a file holds the function of a model with an adapter merged into it (lora).

    Args:
        base: the model without the adapter.
        merged: the file in question.
        adapter: the adapter, or its folder in PEFT's layout.
        rtol: the relative rounding of what is stored; by default that of each file's dtype.
        seed: of the inputs on which outputs are compared.
    """
    adapter = adapter if isinstance(adapter, Adapter) else load_adapter(adapter)
    found = same(with_adapter(base, adapter), merged, rtol=rtol, seed=seed)
    if found.verdict == "different":
        return replace(found, reason="; ".join([found.reason, *_shares(base, merged, adapter)]))
    if found.verdict == "undecided":
        return found
    hidden = _hidden(base, merged, adapter, found)
    agreement = f"every part agrees to rounding, and the outputs to {found.error:.1e}"
    if hidden is None:
        reason = f"{agreement}; half of any update, more or less, would show"
        return replace(found, level="equal to rounding", reason=reason, primes=None)
    reason = f"{agreement}, but the update of {hidden} is too small to show beside the rounding"
    return found.undecided(reason)


def with_adapter(
    base: Checkpoint, adapter: Adapter, shares: Mapping[str, float] | None = None
) -> Checkpoint:
    """The model with the updates added, each as often as `shares` says: once by default."""
    contents, shares = base.model.contents, shares or {}
    tensors = dict(contents.tensors)
    slots = {slot.file: slot for slot in base.found.slots}
    changed: dict[str, str] = {}
    for name, module in adapter.modules.items():
        file = _place(base, adapter, f"{name}.weight")
        if changed.setdefault(file, name) != name:
            raise ArgumentError(f"{adapter.path}: {name} and {changed[file]} both change {file}")
        turned = _turned(adapter, module, slots.get(file))
        _check(base, adapter, name, file, turned)
        tensors[file] = _updated(tensors[file], module, turned, shares.get(name, 1.0))
    for name, read in adapter.others.items():
        file = _place(base, adapter, name.removeprefix("base_model.model."))
        value = read()
        if value.shape != tensors[file].shape:
            raise ArgumentError(
                f"{adapter.path} replaces {file} by a tensor of shape {value.shape}, and "
                f"{base.path} has {tensors[file].shape}: the adapter is for another model"
            )
        tensors[file] = Stored(value.shape, value.dtype, tensors[file].encoding, read)
    return replace(base, model=replace(base.model, contents=replace(contents, tensors=tensors)))


def _place(base: Checkpoint, adapter: Adapter, wanted: str) -> str:
    """The tensor that a name of the adapter means; either may lack a prefix."""
    names = base.model.names
    found = [name for name in names if wanted.endswith(f".{name}") or name.endswith(f".{wanted}")]
    found = [wanted] if wanted in names else found
    if len(found) != 1:
        raise ArgumentError(
            f"{adapter.path} changes {wanted}, for which {base.path} has {len(found)} tensors; "
            "give the model that the adapter was made for"
        )
    tied = base.found.block.head.kind == "tied"
    tables = {slot.file for slot in base.found.slots if slot.parts[0].name == "tokens"}
    if tied and found[0] in tables:
        raise NotCoveredError(
            f"{adapter.path} changes {found[0]}, which tokens and head of {base.path} share: "
            "merging it changes both, running it only one; untie the model first"
        )
    return found[0]


def _turned(adapter: Adapter, module: Module, slot: Slot | None) -> bool:
    """Whether the weight is stored (in, out); outside the block the configuration says so."""
    if module.is_embedding:
        return True
    return bool(adapter.config.get("fan_in_fan_out")) if slot is None else slot.turned


def _check(base: Checkpoint, adapter: Adapter, name: str, file: str, turned: bool) -> None:
    module, shape = adapter.modules[name], base.model.shape(file)
    update = (module.B_shape[0], prod(module.A_shape[1:]))
    if (update[::-1] if turned else update) != (shape[0], prod(shape[1:])):
        raise ArgumentError(
            f"{adapter.path}: the update of {name} is {update}, and {file} of {base.path} has "
            f"shape {shape}: the adapter is for another model"
        )


def _updated(stored: Stored, module: Module, turned: bool, share: float) -> Stored:
    def read() -> np.ndarray:
        dense = module.read().dense
        update = (dense.T if turned else dense).reshape(stored.shape)
        return stored.read().astype(np.float64) + share * update

    return Stored(stored.shape, np.dtype(np.float64), "F64", read)


def _hidden(base: Checkpoint, merged: Checkpoint, adapter: Adapter, found: Sameness) -> str | None:
    """The first module whose update could be half as large, or half larger, without showing."""
    other = folded(uniform(base, merged)[1])
    for modules in _rounds(base, adapter):
        for share in PROBES:
            probe = with_adapter(base, adapter, dict.fromkeys(modules, share))
            form = folded(uniform(probe, merged)[0])
            for name, layer in modules.items():
                if agrees_at(layer, form, other, found):
                    return name
    return None


def _rounds(base: Checkpoint, adapter: Adapter) -> Iterator[dict[str, int | None]]:
    """The modules in the block that change something, with their layers, one a layer each time."""
    slots = {slot.file: slot for slot in base.found.slots}
    layers: dict[int | None, list[str]] = {}
    for name in adapter.modules:
        slot = slots.get(_place(base, adapter, f"{name}.weight"))
        if slot is not None and adapter.update(name).dense.any():
            words = slot.parts[0].name.split(".")
            layers.setdefault(int(words[1]) if words[0] == "layers" else None, []).append(name)
    for names in zip_longest(*layers.values()):
        pairs = zip(layers, names, strict=True)
        yield {name: layer for layer, name in pairs if name is not None}


def _shares(base: Checkpoint, merged: Checkpoint, adapter: Adapter) -> Iterator[str]:
    """The modules that hold another multiple of their update than once, where that is plain."""
    once = with_adapter(base, adapter)
    for name in adapter.modules:
        file = _place(base, adapter, f"{name}.weight")
        if file not in merged.model.names or merged.model.shape(file) != base.model.shape(file):
            continue
        before, after, wanted = (
            model.model.tensor(file, np.float64) for model in (base, merged, once)
        )
        update, change = wanted - before, after - before
        size = float(np.sum(update * update))
        share = float(np.sum(change * update)) / size if size else 1.0
        left = float(np.linalg.norm(change - share * update))
        if left <= NEAR * np.sqrt(size) and abs(share - 1) > 2 * NEAR:
            yield f"{name} holds {share:.2g} times its update"
