"""Safetensors: eight bytes with the header's length, a JSON header, then the tensors."""

import math
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.readers.contents import (
    DTYPES,
    Contents,
    Stored,
    map_file,
    plain,
    sizes,
)
from neuromanifold.checkpoints.readers.json_object import parse_json
from neuromanifold.errors import FileFormatError

LARGEST_HEADER = 100_000_000
"""The limit of the format's own library."""


def read_safetensors(path: Path) -> Contents:
    """The tensors of one safetensors file; offsets must tile the file, as the format asks."""
    data = map_file(path)
    header, start = _header(path, data)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(
        isinstance(text, str) for text in metadata.values()
    ):
        raise FileFormatError(f"{path}: __metadata__ in its header must map words to texts")
    tensors: dict[str, Stored] = {}
    spans: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        tensors[name], span = _tensor(path, name, entry, data, start)
        spans.append((*span, name))
    _check_tiling(path, sorted(spans), data.size - start)
    return Contents("safetensors", tensors, metadata=metadata)


def _header(path: Path, data: np.ndarray) -> tuple[dict[str, object], int]:
    """The JSON header, and where the tensors begin."""
    length = int.from_bytes(data[:8].tobytes(), "little")
    if data.size < 8 or length > min(data.size - 8, LARGEST_HEADER):
        raise FileFormatError(
            f"{path} is not a safetensors file, or it is cut short: its header would have "
            f"{length} bytes and the file has {data.size}; copy the file again"
        )
    return parse_json(path, data[8 : 8 + length].tobytes()), 8 + length


def _tensor(
    path: Path, name: str, entry: object, data: np.ndarray, start: int
) -> tuple[Stored, tuple[int, int]]:
    """The tensor of one entry of the header, and the bytes it takes."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise FileFormatError(f"{path}: {name} needs a dtype, a shape and data_offsets")
    word = entry["dtype"]
    if not isinstance(word, str) or word not in DTYPES:
        raise FileFormatError(
            f"{path}: {name} has the dtype {str(word)[:40]}, which is not read here; convert it "
            f"to one of {', '.join(DTYPES)}"
        )
    dtype = DTYPES[word]
    shape = sizes(path, name, entry["shape"])
    offsets = sizes(path, name, entry["data_offsets"])
    if len(offsets) != 2:
        raise FileFormatError(f"{path}: data_offsets of {name} must be two numbers")
    begin, end = offsets
    stored = plain(path, name, data, start + begin, shape, dtype, word)
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise FileFormatError(
            f"{path}: {name} of shape {shape} in {word} does not fill its bytes {begin} to {end}; "
            "the header is forged or damaged"
        )
    return stored, (begin, end)


def _check_tiling(path: Path, spans: list[tuple[int, int, str]], size: int) -> None:
    """Each tensor begins where the last one ended: no two share bytes, and none are hidden."""
    position = 0
    for begin, end, name in spans:
        if begin != position:
            raise FileFormatError(
                f"{path}: {name} begins at byte {begin} of the data and {position} was due; "
                "tensors overlap or leave a hole: the header is forged or damaged"
            )
        position = end
    if position != size:
        raise FileFormatError(
            f"{path}: its tensors end at byte {position} of the data and the file at {size}; "
            "it is cut short, or something was appended"
        )
