"""A model of no known family, described in a file: its block, and where its tensors are.

The file is JSON with the fields `block` (as `Block.to_dict` gives it), `tensors` (a list of entries
`{"file": name, "holds": [block names], "layout": "rows" | "per head", "transposed": bool}`, with
`{L}` for the number of a layer in both names) and optionally `buffers` and `outside` (lists of
endings, and of beginnings, of names that are kept as they are).
"""

from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as shortened

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.families.layout import Family, Slot, slot_of
from neuromanifold.checkpoints.readers.json_object import read_json
from neuromanifold.errors import FileFormatError


def described_family(path: Path) -> Family:
    """The family a file describes."""
    record = read_json(path)
    for key in ("block", "tensors"):
        if key not in record:
            raise FileFormatError(
                f"{path} has no {key!r}; a described family needs block and tensors"
            )
    block = Block.from_dict(record["block"])
    entries = record["tensors"]
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise FileFormatError(f"{path}: tensors must be a list of records")

    listed: list[dict[str, object]] = entries

    def words(key: str) -> tuple[str, ...]:
        value = record.get(key, [])
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise FileFormatError(f"{path}: {key} must be a list of words")
        return tuple(value)

    return Family(
        name=block.family,
        read=lambda *_: block,
        tensors={},
        others=lambda block: [s for entry in listed for s in _entry_slots(path, block, entry)],
        buffers=words("buffers"),
        outside=words("outside"),
    )


def _entry_slots(path: Path, block: Block, entry: Mapping[str, object]) -> list[Slot]:
    file, holds = entry.get("file"), entry.get("holds")
    if not isinstance(file, str) or not isinstance(holds, list) or not holds:
        raise FileFormatError(
            f"{path}: an entry of tensors needs file and holds; got {shortened(entry)}"
        )
    layout, turned = entry.get("layout", "rows"), entry.get("transposed", False)
    if layout not in ("rows", "per head") or not isinstance(turned, bool):
        raise FileFormatError(
            f"{path}: the layout of {file[:80]} is rows or per head, and transposed true or false"
        )
    names = [str(name) for name in holds]
    layers = range(block.stored_layers) if "{L}" in file else (None,)
    found = []
    for layer in layers:
        held = [_numbered(name, layer) for name in names]
        unknown = [name for name in held if name not in block.shapes]
        if unknown:
            raise FileFormatError(
                f"{path}: the block has no tensor {unknown[0]}; "
                f"it has {', '.join(list(block.shapes)[:6])}, …"
            )
        shapes = {name: block.shapes[name] for name in held}
        name, per_head = _numbered(file, layer), layout == "per head"
        heads = block.attention.heads
        found.append(slot_of(name, shapes, heads, per_head=per_head, turned=turned))
    return found


def _numbered(text: str, layer: int | None) -> str:
    return text if layer is None else text.replace("{L}", str(layer))
