"""`Checkpoint`: a model in a file, read as the tensors of a block, one layer at a time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.parts import Rotary
from neuromanifold.checkpoints.families.layout import Part, Slot
from neuromanifold.checkpoints.families.registry import Match, family_of, match
from neuromanifold.checkpoints.families.settings import HEAD_KEYS
from neuromanifold.checkpoints.reading import Model, open_model
from neuromanifold.checkpoints.writing import write_model
from neuromanifold.errors import ArgumentError, FileFormatError, NotCoveredError

Float64Tensors = dict[str, np.ndarray]
_TURNED = frozenset(("query", "key", "query_bias", "key_bias", "query_norm", "key_norm"))


@dataclass(frozen=True)
class Checkpoint:
    """A model whose every tensor has its place in a block.

    Attributes:
        model: the files.
        found: the block and where its tensors lie.
        remarks: what a reader of any answer should know.
        target: another block with the same function, as whose tensors the model is read: with the
            other rotary layout, a head of its own, or another stored gain.
    """

    model: Model = field(repr=False)
    found: Match = field(repr=False)
    remarks: tuple[str, ...] = ()
    target: Block | None = None

    @property
    def path(self) -> Path:
        """Where the model lies."""
        return self.model.path

    @property
    def block(self) -> Block:
        """What the configuration says, or the block as whose tensors the model is read."""
        return self.found.block if self.target is None else self.target

    def as_block(self, target: Block) -> "Checkpoint":
        """The same model read as tensors of another block with the same function."""
        return replace(self, target=target)

    @property
    def whole(self) -> "Checkpoint":
        """The model as one whose file is written: what is outside the block sees what it saw."""
        if self.found.outside and self.block.head.kind != "none":
            raise NotCoveredError(
                f"{self.found.outside[0]} of {self.path} may read the hidden states beside the "
                "head, and they would not stay as they are; leave it out of the file"
            )
        shown = self.block.shows_tokens or self.found.shows_tokens
        return self.as_block(replace(self.block, shows_tokens=shown))

    @cached_property
    def _places(self) -> dict[str, tuple[Slot, Part]]:
        return {
            part.name: (slot, part)
            for slot in self.found.slots
            if not slot.copy
            for part in slot.parts
        }

    def stored(self, name: str) -> np.ndarray:
        """A tensor of the block in the dtype of the file."""
        slot, part = self._places[name]
        return slot.split(part, self.model.tensor(slot.file))

    def dtype(self, name: str) -> np.dtype:
        """The dtype in which a tensor of the block is stored."""
        return self.model.dtype(self._places[self._source(name)][0].file)

    def file_name(self, name: str) -> str:
        """The tensor of the file that holds a tensor of the block."""
        return self._places[name][0].file

    def tensor(self, name: str) -> np.ndarray:
        """A tensor of the block in float64."""
        own, last = self.found.block, name.split(".")[-1]
        value = self.stored(self._source(name)).astype(np.float64)
        if self.target is None:
            return value
        order = layout_order(own.attention.rotary, self.target.attention.rotary)
        if order is not None and last in _TURNED:
            axis = -2 if last in ("query", "key") else -1
            still = np.arange(len(order), value.shape[axis])
            value = np.take(value, np.concatenate([order, still]), axis=axis)
        if last.endswith("norm") and last not in _TURNED and own.norm and self.target.norm:
            change = own.norm.offset - self.target.norm.offset
            value = value + change if change else value  # γ − 1 + 1 − 1 would lose bits of γ − 1
        return value

    def _source(self, name: str) -> str:
        """The stored tensor behind a tensor of the block: a tied head is the token table."""
        tied = self.found.block.head.kind == "tied"
        return "tokens" if name == "unembedding" and tied else name

    def layer(self, layer: int, names: Iterable[str] | None = None) -> Float64Tensors:
        """The tensors of one layer in float64, all or some, by their names inside a layer."""
        at = 0 if self.block.shared else layer
        wanted = self.block.layer_shapes if names is None else names
        return {name: self.tensor(f"layers.{at}.{name}") for name in wanted}

    def outer(self) -> Float64Tensors:
        """The tensors outside the layers in float64."""
        return {name: self.tensor(name) for name in self.block.global_shapes}

    def weights(self) -> Float64Tensors:
        """All tensors in float64: for small models."""
        return {name: self.tensor(name) for name in self.block.shapes}

    @property
    def parameters(self) -> int:
        """The number of parameters of the block, a tied head counted once."""
        return self.block.parameters

    def write(
        self,
        path: str | Path,
        tensor: Callable[[str], np.ndarray] | Mapping[str, np.ndarray],
        *,
        head: str | None = None,
        dtype: np.dtype | None = None,
        force: bool = False,
    ) -> None:
        """Write the model with other tensors of the block, in its own names and layout.

        Args:
            path: the safetensors file.
            tensor: the new tensor of each name in the block, asked for when its turn comes.
            head: the file's name for a head of its own that a tied model gets.
            dtype: of all floating-point tensors, instead of the stored ones.
            force: replace an existing file.
        """
        get = tensor.__getitem__ if isinstance(tensor, Mapping) else tensor

        def joined(slot: Slot) -> Callable[[], np.ndarray]:
            return lambda: slot.join({part.name: np.asarray(get(part.name)) for part in slot.parts})

        changed = {slot.file: joined(slot) for slot in self.found.slots}
        added = None
        if head is not None:
            changed[head], added = lambda: get("unembedding"), {head: self.file_name("tokens")}
        write_model(self.model, path, changed, added=added, dtype=dtype, force=force)


def layout_order(stored: Rotary | None, wanted: Rotary | None) -> np.ndarray | None:
    """The coordinates of the stored rotary layout in the order of the wanted one."""
    if stored is None or wanted is None or stored.layout == wanted.layout:
        return None
    order = np.empty(stored.size, dtype=int)
    for (a, b), (x, y) in zip(stored.planes, wanted.planes, strict=True):
        order[x], order[y] = a, b
    return order


def open_checkpoint(
    path: str | Path,
    *,
    config: str | Path | Mapping[str, object] | None = None,
    heads: int | None = None,
    family: str | Path | None = None,
) -> Checkpoint:
    """Open a model: a folder, safetensors (shards too), a PyTorch file, or GGUF.

    Args:
        path: the folder or file; nothing is downloaded.
        config: a configuration, when none lies beside the weights.
        heads: the number of query heads, when the configuration does not say.
        family: a file that describes a model of no known family.
    """
    model = open_model(path, config)
    if heads is not None:
        model = Model(model.path, model.contents, _with_heads(model.config, heads), model.notes)
    found = match(model, family_of(model, None if family is None else Path(family)))
    return Checkpoint(model, found, (*model.notes, *_tied_remarks(model, found)))


def opened(
    model: str | Path | Checkpoint,
    config: str | Path | Mapping[str, object] | None,
    heads: int | None,
    family: str | Path | None,
) -> Checkpoint:
    """A checkpoint, or the one at a path."""
    if isinstance(model, Checkpoint):
        return model
    return open_checkpoint(model, config=config, heads=heads, family=family)


def _with_heads(config: Mapping[str, object], heads: int) -> dict[str, object]:
    if heads < 1:
        raise ArgumentError(f"--heads must be a positive whole number; got {heads}")
    said = {config[key] for key in HEAD_KEYS if config.get(key) is not None}
    if said and said != {heads}:
        raise ArgumentError(f"--heads {heads}, and the configuration says {said.pop()}; drop one")
    return {**config, **dict.fromkeys(HEAD_KEYS, heads)}


def _tied_remarks(model: Model, found: Match) -> list[str]:
    """Check that stored copies are copies: tied is decided by values, then by the configuration."""
    sources = {part.name: slot for slot in found.slots if not slot.copy for part in slot.parts}
    for slot in found.slots:
        source = sources[slot.parts[0].name].file
        if slot.copy and not np.array_equal(model.tensor(slot.file), model.tensor(source)):
            raise FileFormatError(
                f"{model.path}: the configuration ties {slot.file} to {source}, and their values "
                "differ; set tie_word_embeddings to false if the head is meant to be its own"
            )
    heads = [slot for slot in found.slots if slot.parts[0].name == "unembedding"]
    tokens = [slot for slot in found.slots if slot.parts[0].name == "tokens" and not slot.copy]
    equal = (
        heads
        and tokens
        and heads[0].shape == tokens[0].shape
        and np.array_equal(model.tensor(heads[0].file), model.tensor(tokens[0].file))
    )
    if not equal:
        return []
    return [f"{heads[0].file} equals {tokens[0].file}, and the configuration unties them"]
