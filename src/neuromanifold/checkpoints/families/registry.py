"""Which family a model belongs to, and the match of its tensors with the family's."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from reprlib import repr as shortened

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.families import bert, gguf, gpt2, llama, neox, phi, t5, vit
from neuromanifold.checkpoints.families.described import described_family
from neuromanifold.checkpoints.families.layout import Family, Slot
from neuromanifold.checkpoints.families.settings import Settings, unexplained
from neuromanifold.checkpoints.readers.contents import FLOATS
from neuromanifold.checkpoints.reading import Model
from neuromanifold.errors import FileFormatError, NotCoveredError

FAMILIES: tuple[Family, ...] = (
    gpt2.FAMILY,
    gpt2.GPTJ,
    bert.BERT,
    bert.ALBERT,
    vit.FAMILY,
    neox.FAMILY,
    llama.LLAMA,
    llama.GEMMA2,
    llama.PHI3,
    phi.FAMILY,
    t5.FAMILY,
)


@dataclass(frozen=True, slots=True)
class Match:
    """A model's tensors, all accounted for.

    Attributes:
        block: what the configuration says.
        slots: the tensors of the file that hold tensors of the block.
        buffers: names of constants that are no parameters.
        outside: names of parts outside the block.
        shows_tokens: whether one of those reads the token table, too.
        unexplained: what the configuration says that was not read, and may change the function.
    """

    block: Block
    slots: tuple[Slot, ...]
    buffers: tuple[str, ...]
    outside: tuple[str, ...]
    shows_tokens: bool = False
    unexplained: Mapping[str, object] = field(default_factory=dict)


def family_of(model: Model, description: Path | None = None) -> Family:
    """The family of a model, from its configuration or from a description."""
    if description is not None:
        return described_family(description)
    if model.format == "gguf" or "general.architecture" in model.config:
        return gguf.FAMILY
    word = model.config.get("model_type")
    for family in FAMILIES:
        if word in family.model_types:
            return family
    if word is None and model.config:
        for family in FAMILIES:
            if family.signature and any(n.endswith(family.signature) for n in model.names):
                return family
    known = ", ".join(word for family in FAMILIES for word in family.model_types)
    if word is None:
        raise FileFormatError(
            f"{model.path} comes without a configuration that names its model_type; "
            f"give one with --config (known: {known}), or describe the model with --family FILE"
        )
    raise NotCoveredError(
        f"models of type {shortened(word)} are not known (known: {known}); the file has "
        f"{', '.join(model.names[:3])}, …: describe them with --family FILE"
    )


def match(model: Model, family: Family) -> Match:
    """The block of a model and its tensors, every one accounted for or refused by name."""
    shapes = {name: model.shape(name) for name in model.names}
    prefix = _prefix(family, shapes)
    marked = _marked(shapes, prefix)
    settings = Settings(model.config)
    block = family.block(settings, marked)
    named = {_renamed(slot.file, prefix, family, shapes): slot for slot in family.slots(block)}
    found = tuple(replace(slot, file=name) for name, slot in named.items() if name in shapes)
    for name, slot in named.items():
        if name not in shapes and not slot.copy:
            raise FileFormatError(
                f"{model.path} has no tensor {name}, which a model of type {family.name} with "
                "this configuration needs; a shard or a part of the file is missing"
            )
        if name in shapes and shapes[name] != slot.shape:
            raise FileFormatError(
                f"{model.path}: {name} has shape {shapes[name]}, and the configuration asks for "
                f"{slot.shape}; the configuration belongs to another model"
            )
        if name in shapes and model.dtype(name) not in FLOATS:
            raise FileFormatError(
                f"{model.path}: {name} has dtype {model.dtype(name)}, and weights are "
                "floating-point numbers; convert it, with its scale if it is quantised"
            )
    held = Counter(part.name for slot in found if not slot.copy for part in slot.parts)
    for name in block.shapes:
        if held[name] != 1:
            raise FileFormatError(
                f"{model.path}: {name} lies in {held[name]} tensors of the file, as the family "
                f"{family.name} has it; it must lie in one"
            )
    rest = [name for name in shapes if name not in named]
    buffers = [name for name in rest if any(name.endswith(end) for end in family.buffers)]
    outside = [n for n in rest if n not in buffers and _starts(n, prefix, family.outside)]
    strange = [name for name in rest if name not in buffers and name not in outside]
    if strange:
        raise FileFormatError(
            f"{model.path}: {strange[0]} {shapes[strange[0]]} is no tensor of a model of type "
            f"{family.name} with this configuration ({len(strange)} such); correct the "
            "configuration, or describe the model with --family FILE"
        )
    shows = any(_starts(name, prefix, family.lookers) for name in outside)
    # a description leaves nothing to say
    said = unexplained(settings, block.attention.heads) if settings.asked else {}
    return Match(block, found, tuple(buffers), tuple(outside), shows, said)


def _prefix(family: Family, shapes: Mapping[str, object]) -> str:
    return next(p for p in family.prefixes if any(name.startswith(p) for name in shapes))


def _marked(shapes: Mapping[str, tuple[int, ...]], prefix: str) -> dict[str, tuple[int, ...]]:
    """The shapes with `@` for the prefix; without a prefix every name stands in both forms."""
    if prefix:
        return {
            n.replace(prefix, "@", 1) if n.startswith(prefix) else n: s for n, s in shapes.items()
        }
    return {**shapes, **{f"@{name}": shape for name, shape in shapes.items()}}


def _renamed(name: str, prefix: str, family: Family, shapes: Mapping[str, object]) -> str:
    name = name.replace("@", prefix, 1) if name.startswith("@") else name
    for ending, other in family.aliases:
        if name not in shapes and name.endswith(ending):
            old = name.removesuffix(ending) + other
            name = old if old in shapes else name
    return name


def _starts(name: str, prefix: str, words: tuple[str, ...]) -> bool:
    return name.removeprefix(prefix).startswith(words) or name.startswith(words)
