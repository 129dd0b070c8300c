"""How a file's tensor holds tensors of the block: index moves only, so a round trip keeps all bits.

A `Part` views the file's tensor in some shape, takes an index range of it, permutes the axes, and
views the result in the block's shape. A `Slot` is one tensor of the file with all its parts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from neuromanifold.checkpoints.block import Block, Shapes
from neuromanifold.errors import FileFormatError

Range = tuple[int, int, int]
"""An axis of the view, and the first and last (exclusive) index that is taken of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor of the block inside one of the file.

    Attributes:
        name: its name in the block.
        view: the shape in which the file's tensor is seen.
        taken: the range that is taken, None for all of it.
        order: the permutation of the view's axes, as for `transpose`.
        shape: its shape in the block.
    """

    name: str
    view: tuple[int, ...]
    taken: Range | None
    order: tuple[int, ...]
    shape: tuple[int, ...]

    def _index(self) -> tuple[slice, ...]:
        index = [slice(None)] * len(self.view)
        if self.taken is not None:
            axis, first, last = self.taken
            index[axis] = slice(first, last)
        return tuple(index)

    def split(self, stored: np.ndarray) -> np.ndarray:
        """The block's tensor, out of the file's."""
        return stored.reshape(self.view)[self._index()].transpose(self.order).reshape(self.shape)

    def join(self, tensor: np.ndarray, stored: np.ndarray) -> None:
        """Write the block's tensor into the file's."""
        target = stored.reshape(self.view)[self._index()]
        sizes = [target.shape[axis] for axis in self.order]
        target[...] = tensor.reshape(sizes).transpose(np.argsort(self.order))


@dataclass(frozen=True, slots=True)
class Slot:
    """One tensor of the file.

    Attributes:
        file: its name there.
        shape: its shape there.
        parts: what it holds.
        copy: whether it only repeats what another slot holds (a stored tied head).
        turned: whether it is stored (in, out).
    """

    file: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]
    copy: bool = False
    turned: bool = False

    def join(self, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
        """The file's tensor, from the block's."""
        dtype = tensors[self.parts[0].name].dtype
        stored = np.empty(self.shape, dtype=dtype)
        for part in self.parts:
            part.join(tensors[part.name], stored)
        return stored


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models: how its configuration and its tensor names are read.

    Names of the body of a model start with `@`, which stands for one of the prefixes.

    Attributes:
        name: the family.
        model_types: the words for `model_type` in a configuration.
        block: from the configuration and the shapes in the file (names with `@`) to the block.
        slots: the tensors of the file for a block.
        prefixes: what may stand before the names of the body.
        buffers: endings of names that are constants, no parameters, and kept as they are.
        outside: beginnings of names of parts outside the block (a pooler, another head).
        lookers: those of them that read the token table, too (a tied head, a decoder).
        aliases: endings of names, and other endings that old files have for them.
        signature: the ending of a name that only this family has, for configurations (of old) that
            do not say their model_type; empty when no name is telling.
    """

    name: str
    model_types: tuple[str, ...]
    block: "Callable[[Settings, Mapping[str, tuple[int, ...]]], Block]"
    slots: Callable[[Block], list[Slot]]
    prefixes: tuple[str, ...] = ("",)
    buffers: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    lookers: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    signature: str = ""


class Settings:
    """A configuration that names the key it misses, and knows which keys nobody asked for.

    Attributes:
        config: what is said; a default that is said to be null is not there.
        asked: the keys that were asked for.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        self.config = config
        self.asked: set[str] = set()

    def __contains__(self, key: str) -> bool:
        self.asked.add(key)
        return self.config.get(key) is not None

    def with_defaults(self, defaults: Mapping[str, object]) -> "Settings":
        """The same configuration where keys that are missing, not null, have these values."""
        found = Settings({**defaults, **self.config})
        found.asked = self.asked
        return found

    @property
    def unread(self) -> dict[str, object]:
        """What the configuration says and nobody asked for."""
        return {k: v for k, v in self.config.items() if k not in self.asked and v is not None}

    def section(self, *keys: str) -> "Settings":
        """The record under the first of the keys that is there, empty without."""
        for key in keys:
            if key in self:
                said = self.config[key]
                if not isinstance(said, Mapping):
                    raise FileFormatError(
                        f"the configuration's {key} must be a record; got {said!r}"
                    )
                return Settings(said)
        return Settings({})

    def whole(self, *keys: str, default: int | None = None) -> int:
        """A whole number under the first of the keys that is there."""
        value = self._value(keys, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise FileFormatError(
                f"the configuration's {keys[0]} must be a whole number; got {value!r}"
            )
        return value

    def real(self, *keys: str, default: float | None = None) -> float:
        """A number under the first of the keys that is there."""
        value = self._value(keys, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise FileFormatError(f"the configuration's {keys[0]} must be a number; got {value!r}")
        return float(value)

    def word(self, *keys: str, default: str | None = None) -> str:
        """A word under the first of the keys that is there."""
        value = self._value(keys, default)
        if not isinstance(value, str):
            raise FileFormatError(f"the configuration's {keys[0]} must be a word; got {value!r}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Whether the key is set."""
        value = self._value((key,), default)
        if not isinstance(value, bool):
            raise FileFormatError(f"the configuration's {key} must be true or false; got {value!r}")
        return value

    def _value(self, keys: tuple[str, ...], default: object) -> object:
        self.asked.update(keys)
        for key in keys:
            if self.config.get(key) is not None:
                return self.config[key]
        if default is None:
            raise FileFormatError(
                f"the configuration has no {keys[0]!r}, which is needed; "
                "add it to the model's config.json, or give a configuration with --config"
            )
        return default


def plain(file: str, name: str, shape: tuple[int, ...], stored: tuple[int, ...] = ()) -> Slot:
    """A tensor that is stored as the block has it, or in another shape with the same order."""
    order = tuple(range(len(shape)))
    return Slot(file, stored or shape, (Part(name, shape, None, order, shape),))


def rows(file: str, name: str, shape: tuple[int, ...]) -> Slot:
    """A map to heads: (heads…, size, width) stored as (heads · size, width), or its bias."""
    stored = (prod(shape[:-1]), shape[-1]) if not name.endswith("bias") else (prod(shape),)
    return plain(file, name, shape, stored)


def from_heads(file: str, name: str, shape: tuple[int, ...]) -> Slot:
    """The output map (G, R, d, v) stored as (d, G · R · v)."""
    groups, sharing, d, v = shape
    part = Part(name, (d, groups, sharing, v), None, (1, 2, 0, 3), shape)
    return Slot(file, (d, groups * sharing * v), (part,))


def stacked(file: str, parts: dict[str, tuple[int, ...]]) -> Slot:
    """Maps (or biases) whose rows are stored one after another."""
    bias = next(iter(parts)).endswith("bias")
    counts = {name: prod(shape) if bias else prod(shape[:-1]) for name, shape in parts.items()}
    total = sum(counts.values())
    stored = (total,) if bias else (total, next(iter(parts.values()))[-1])
    first = 0
    found: list[Part] = []
    for name, shape in parts.items():
        taken = (0, first, first + counts[name])
        found.append(Part(name, stored, taken, tuple(range(len(stored))), shape))
        first += counts[name]
    return Slot(file, stored, tuple(found))


def transposed(slot: Slot) -> Slot:
    """The same tensor stored (in, out): Conv1D.

    Each part must see the stored (out, in) matrix through a view that splits the rows or columns
    only; the new view has the column axes first.
    """
    parts = []
    for part in slot.parts:
        row_axes = _row_axes(part.view, slot.shape[0])
        axes = len(part.view)
        # Axis i of the old view is axis moved[i] of the new one.
        moved = [(axis - row_axes) % axes for axis in range(axes)]
        view = part.view[row_axes:] + part.view[:row_axes]
        taken = part.taken and (moved[part.taken[0]], *part.taken[1:])
        order = tuple(moved[axis] for axis in part.order)
        parts.append(Part(part.name, view, taken, order, part.shape))
    return Slot(slot.file, slot.shape[::-1], tuple(parts), slot.copy, not slot.turned)


def _row_axes(view: tuple[int, ...], count: int) -> int:
    """How many leading axes of the view make up the rows."""
    return next(n for n in range(1, len(view) + 1) if prod(view[:n]) == count)


_OF_HEADS = frozenset(("query", "key", "value", "query_bias", "key_bias", "value_bias"))


def slot_of(
    file: str, held: Shapes, heads: int, *, per_head: bool = False, turned: bool = False
) -> Slot:
    """A tensor of the file by what it holds: maps to and from heads, several maps, or one."""
    name, shape = next(iter(held.items()))
    last = name.split(".")[-1]
    if per_head:
        found = interleaved(file, held, heads)
    elif len(held) > 1:
        found = stacked(file, held)
    elif last == "output":
        found = from_heads(file, name, shape)
    else:
        found = rows(file, name, shape) if last in _OF_HEADS else plain(file, name, shape)
    return transposed(found) if turned else found


def table_slots(
    block: Block, table: Mapping[str, str], *, per_head: bool = False, turned: bool = False
) -> list[Slot]:
    """The tensors of a file whose names are a table, as far as the block has what they hold.

    Args:
        block: what the tensors mean.
        table: from a module of the file, `{L}` for the number of a layer, to the maps or norms of
            the block (one word for each) that its `weight` holds, and its `bias` if they have one.
        per_head: whether maps that are stored together stand head by head.
        turned: whether maps inside the layers are stored (in, out).
    """
    found: list[Slot] = []
    for file, words in table.items():
        names = words.split()
        inside = any(name in block.layer_shapes for name in names)
        shapes = block.layer_shapes if inside else block.global_shapes
        constants = "_shift" if names[0].endswith("norm") else "_bias"
        for layer in range(block.stored_layers if inside else 1):
            stem, at = file.replace("{L}", str(layer)), f"layers.{layer}." if inside else ""
            for ending, more in (("weight", ""), ("bias", constants)):
                held = {at + n + more: shapes[n + more] for n in names if n + more in shapes}
                if held:
                    fused = per_head and len(held) > 1
                    flip = turned and inside and not more and len(shapes[names[0]]) > 1
                    name, heads = f"{stem}.{ending}", block.attention.heads
                    found.append(slot_of(name, held, heads, per_head=fused, turned=flip))
        if words == "unembedding" and words not in shapes and "tokens" in shapes:
            found.append(copied(f"{file}.weight", "tokens", shapes["tokens"]))
    return found


def copied(file: str, name: str, shape: tuple[int, ...]) -> Slot:
    """A tensor that repeats one which another slot holds, if the file has it."""
    return replace(plain(file, name, shape), copy=True)


def interleaved(file: str, parts: dict[str, tuple[int, ...]], heads: int) -> Slot:
    """Query, key and value (or their biases) stored head by head: rows (H, 3, size)."""
    names = list(parts)
    bias = names[0].endswith("bias")
    first = parts[names[0]]
    size, width = (first[-1], ()) if bias else (first[-2], (first[-1],))
    view = (heads, len(names), size, *width)
    order = tuple(range(len(view)))
    found = tuple(
        Part(name, view, (1, i, i + 1), order, parts[name]) for i, name in enumerate(names)
    )
    return Slot(file, (heads * len(names) * size, *width), found)
