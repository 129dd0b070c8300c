"""How a file's tensor holds tensors of the block: index moves only, so a round trip keeps all bits.

A `Part` views the file's tensor in some shape, takes an index range of it, permutes the axes, and
views the result in the block's shape. A `Slot` is one tensor of the file with all its parts, and a
`Family` the names of all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.families.settings import Settings

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
        turned: whether it is stored (in, out), as by Conv1D; the parts see it (out, in).
    """

    file: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]
    copy: bool = False
    turned: bool = False

    def split(self, part: Part, stored: np.ndarray) -> np.ndarray:
        """The block's tensor, out of the file's."""
        return part.split(stored.T if self.turned else stored)

    def join(self, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
        """The file's tensor, from the block's."""
        dtype = tensors[self.parts[0].name].dtype
        stored = np.empty(self.shape[::-1] if self.turned else self.shape, dtype=dtype)
        for part in self.parts:
            part.join(tensors[part.name], stored)
        return stored.T if self.turned else stored


def plain(file: str, name: str, shape: tuple[int, ...], stored: tuple[int, ...] = ()) -> Slot:
    """A tensor that is stored as the block has it, or in another shape with the same order."""
    order = tuple(range(len(shape)))
    return Slot(file, stored or shape, (Part(name, shape, None, order, shape),))


def copied(file: str, name: str, shape: tuple[int, ...]) -> Slot:
    """A tensor that repeats one which another slot holds, if the file has it."""
    return replace(plain(file, name, shape), copy=True)


def slot_of(
    file: str, held: Shapes, heads: int, *, per_head: bool = False, turned: bool = False
) -> Slot:
    """A tensor of the file by what it holds.

    The output map (G, R, d, v) is stored as (d, G·R·v). Every other map has the rows of all its
    heads one after another, and so have several maps; or head by head, rows (H, maps, size).
    """
    (name, first), count = next(iter(held.items())), len(held)
    columns = () if len(first) == 1 or name.endswith("bias") else first[-1:]
    if count == 1 and name.split(".")[-1] == "output":
        groups, sharing, d, v = first
        parts = [Part(name, (d, groups, sharing, v), None, (1, 2, 0, 3), first)]
        stored = (d, groups * sharing * v)
    elif per_head:
        size = prod(first) // prod(columns) // heads
        view = (heads, count, size, *columns)
        order = tuple(range(len(view)))
        ranges = enumerate(held.items())
        parts = [Part(name, view, (1, i, i + 1), order, shape) for i, (name, shape) in ranges]
        stored = (heads * count * size, *columns)
    else:
        rows = [prod(shape) // prod(columns) for shape in held.values()]
        stored = (sum(rows), *columns)
        order = tuple(range(len(stored)))
        parts = [
            Part(name, stored, (0, sum(rows[:i]), sum(rows[: i + 1])), order, shape)
            for i, (name, shape) in enumerate(held.items())
        ]
    turned = turned and bool(columns)
    return Slot(file, stored[::-1] if turned else stored, tuple(parts), turned=turned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of models: how its configuration and its tensor names are read.

    Names of the body of a model start with `@`, which stands for one of the prefixes.

    Attributes:
        name: the family.
        read: from the configuration, and the file's shapes of the block's tensors by their names in
            the block (those of layers: of the first), to the block.
        tensors: from a module of the file, `{L}` for the number of a layer, to the maps or norms of
            the block (one word for each) that its `weight` holds, and its `bias` if they have one.
        others: the tensors of the file that are no such modules.
        model_types: the words for `model_type` in a configuration.
        keys: for the usual keys of a configuration those that this family has for them.
        per_head: whether maps that are stored together stand head by head.
        turned: whether maps inside the layers are stored (in, out).
        prefixes: what may stand before the names of the body.
        buffers: endings of names that are constants, no parameters, and kept as they are.
        outside: beginnings of names of parts outside the block (a pooler, another head).
        lookers: those of them that read the token table, too (a tied head, a decoder).
        aliases: endings of names, and other endings that old files have for them.
        signature: the ending of a name that only this family has, for configurations (of old) that
            do not say their model_type; empty when no name is telling.
    """

    name: str
    read: Callable[[Settings, Shapes], Block]
    tensors: Mapping[str, str]
    others: Callable[[Block], list[Slot]] = lambda _: []
    model_types: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] | None = None
    per_head: bool = False
    turned: bool = False
    prefixes: tuple[str, ...] = ("",)
    buffers: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    lookers: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    signature: str = ""

    def block(self, settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
        """The block, from the configuration and the shapes in the file (names with `@`)."""
        held = {
            name: shapes[file]
            for module, words in self.tensors.items()
            for ending, names in _endings(words)
            if (file := f"{module.replace('{L}', '0')}.{ending}") in shapes
            for name in names
        }
        return self.read(settings.under(keys=self.keys), held)

    def slots(self, block: Block) -> list[Slot]:
        """The tensors of a file, as far as the block has what they hold."""
        found = self.others(block)
        for module, words in self.tensors.items():
            inside = any(name in block.layer_shapes for name in words.split())
            shapes = block.layer_shapes if inside else block.global_shapes
            for layer in range(block.stored_layers if inside else 1):
                at = f"layers.{layer}." if inside else ""
                for ending, names in _endings(words):
                    held = {at + name: shapes[name] for name in names if name in shapes}
                    if held:
                        file = f"{module.replace('{L}', str(layer))}.{ending}"
                        fused, turned = self.per_head and len(held) > 1, self.turned and inside
                        heads = block.attention.heads
                        found.append(slot_of(file, held, heads, per_head=fused, turned=turned))
            if words == "unembedding" and words not in shapes and "tokens" in shapes:
                found.append(copied(f"{module}.weight", "tokens", shapes["tokens"]))
        return found


def _endings(words: str) -> Iterator[tuple[str, list[str]]]:
    """What the weight of a module holds, and its bias."""
    names = words.split()
    yield "weight", names
    more = "_shift" if names[0].endswith("norm") else "_bias"
    yield "bias", [name + more for name in names]
