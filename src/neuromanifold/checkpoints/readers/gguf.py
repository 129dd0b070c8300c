"""GGUF, the format of llama.cpp: typed metadata, then tensors, quantised or not.

The header is read here and not by `gguf.GGUFReader`: a forged length of a metadata array keeps
that one busy without end. The tables of encodings and the dequantisation are the package's.
Shapes are given as in PyTorch, slowest axis first; the file has them the other way round.
"""

import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuromanifold.checkpoints.readers.contents import (
    DTYPES,
    Contents,
    Stored,
    check_span,
    elements,
    map_file,
    plain,
    sizes,
)
from neuromanifold.errors import FileFormatError

if TYPE_CHECKING:
    from gguf import GGMLQuantizationType

MAGIC = b"GGUF"
_PLAIN = frozenset(("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8"))
_NUMBERS = dict(enumerate("BbHhIif?__Qqd"))
"""Kinds of metadata values as codes of the `struct` module; 8 is a string and 9 an array."""
_STRING, _ARRAY = 8, 9
_LONGEST_KEPT = 4096
"""Longer metadata arrays are vocabularies and merges, which no question here is about."""


class _Header:
    """A cursor over the header, every read checked against the end of the file."""

    def __init__(self, path: Path, data: np.ndarray) -> None:
        self.path, self.data, self.position = path, data, len(MAGIC)

    def take(self, length: int) -> bytes:
        """The next bytes."""
        if length > self.data.size - self.position:
            raise FileFormatError(
                f"{self.path} is cut short or forged: {length} bytes are due at byte "
                f"{self.position}, and the file has {self.data.size}; copy the file again"
            )
        self.position += length
        return self.data[self.position - length : self.position].tobytes()

    def number(self, code: str) -> int:
        """The next number, in the code of the `struct` module."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def text(self) -> str:
        """The next string."""
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind: int) -> object:
        """The next metadata value; None for an array that is too long to be of use."""
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self.array()
        code = _NUMBERS.get(kind, "_")
        if code == "_":
            raise FileFormatError(f"{self.path}: unknown kind {kind} of metadata; copy it again")
        return self.number(code)

    def array(self) -> list[object] | None:
        """The next array; each element takes at least a byte, so no loop outlives the file."""
        kind, count = self.number("I"), self.number("Q")
        code = _NUMBERS.get(kind, "_")
        if code != "_":
            raw = self.take(count * struct.calcsize(f"<{code}"))
            return list(struct.unpack(f"<{count}{code}", raw)) if count <= _LONGEST_KEPT else None
        if kind != _STRING:
            raise FileFormatError(f"{self.path}: an array of arrays in the metadata is not read")
        texts = [self.text() for _ in range(count)]
        return list(texts) if count <= _LONGEST_KEPT else None


def read_gguf(path: Path) -> Contents:
    """The tensors and the metadata of a GGUF file."""
    data = map_file(path)
    header = _Header(path, data)
    version = header.number("I")
    if version not in (2, 3):
        raise FileFormatError(
            f"{path} is GGUF of version {version}; little-endian 2 and 3 are read: convert it"
        )
    tensor_count, field_count = header.number("Q"), header.number("Q")
    fields: dict[str, object] = {}
    for _ in range(field_count):
        name, kind = header.text(), header.number("I")
        if name in fields:
            raise FileFormatError(f"{path} names the field {name[:80]} twice; convert it again")
        fields[name] = header.value(kind)
    entries = [_entry(header) for _ in range(tensor_count)]
    alignment = fields.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
        raise FileFormatError(f"{path}: the alignment {alignment} is none; convert it again")
    start = -(-header.position // alignment) * alignment
    tensors: dict[str, Stored] = {}
    for name, shape, kind, offset in entries:
        if name in tensors:
            raise FileFormatError(f"{path} names the tensor {name[:80]} twice; convert it again")
        tensors[name] = _tensor(path, name, shape, kind, data, start + offset)
    quantised = sorted({tensor.encoding for tensor in tensors.values()} - _PLAIN)
    notes = (f"tensors in {', '.join(quantised)} are dequantised to float32",) if quantised else ()
    config = {name: value for name, value in fields.items() if value is not None}
    return Contents("gguf", tensors, config=config, notes=notes)


def _entry(header: _Header) -> tuple[str, tuple[int, ...], int, int]:
    """One tensor of the header: name, shape, encoding, offset."""
    name, axes = header.text(), header.number("I")
    if axes > 4:
        raise FileFormatError(f"{header.path}: {name[:80]} has {axes} axes; GGUF has at most 4")
    shape = tuple(header.number("Q") for _ in range(axes))[::-1]
    return name, sizes(header.path, name, shape), header.number("I"), header.number("Q")


def _tensor(
    path: Path, name: str, shape: tuple[int, ...], kind: int, data: np.ndarray, begin: int
) -> Stored:
    """One tensor, dequantised when it is read."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        encoding = GGMLQuantizationType(kind)
    except ValueError:
        raise FileFormatError(f"{path}: {name} has the unknown encoding {kind}") from None
    if encoding.name in _PLAIN:
        return plain(path, name, data, begin, shape, DTYPES[encoding.name], encoding.name)
    block, size = GGML_QUANT_SIZES[encoding]
    if not shape or shape[-1] % block:
        raise FileFormatError(
            f"{path}: rows of {name} in {encoding.name} come in blocks of {block}; got {shape}"
        )
    length = math.prod(shape) // block * size
    check_span(path, name, data, begin, length)
    rows = (*shape[:-1], shape[-1] // block * size)

    def read() -> np.ndarray:
        return _dequantised(
            path, name, elements(data, data.dtype, length, begin).reshape(rows), encoding
        )

    return Stored(shape, np.dtype(np.float32), encoding.name, read)


def _dequantised(
    path: Path, name: str, rows: np.ndarray, encoding: "GGMLQuantizationType"
) -> np.ndarray:
    from gguf.quants import dequantize

    try:
        return dequantize(rows, encoding)
    except NotImplementedError:
        raise FileFormatError(
            f"{path}: {name} is encoded as {encoding.name}, which the gguf package does not "
            "dequantise; convert the model to Q8_0, F16 or BF16"
        ) from None
