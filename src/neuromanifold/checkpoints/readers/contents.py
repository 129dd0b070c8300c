"""What a reader finds in a file: tensors that are read when they are asked for."""

import math
import mmap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np

from neuromanifold.errors import FileFormatError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = frozenset(map(np.dtype, (np.float64, np.float32, np.float16, BFLOAT16)))
DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": BFLOAT16,
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
"""The words of safetensors, and GGUF's. Smaller floats are refused: others hold their scales."""


@dataclass(frozen=True)
class Stored:
    """A tensor as it lies in a file: `read` gives it in `dtype`; `encoding` is the file's word."""

    shape: tuple[int, ...]
    dtype: np.dtype
    encoding: str
    read: Callable[[], np.ndarray] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Contents:
    """All tensors of a file by name, what else it says of the model, and remarks on the reading."""

    format: str
    tensors: Mapping[str, Stored]
    config: Mapping[str, object] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def map_file(path: Path) -> np.ndarray:
    """The bytes of a file, read from the disk only where they are looked at."""
    try:
        if path.stat().st_size == 0:
            raise FileFormatError(f"{path} is empty; copy the file again")
        return np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None


def elements(data: np.ndarray, dtype: np.dtype, count: int, begin: int) -> np.ndarray:
    """Elements of a mapped file in memory of their own; the pages that were touched are given back.

    Pages of a mapping stay resident once they are read, so that without this a walk through a file
    would end with all of it in memory.
    """
    found = np.frombuffer(data, dtype, count, begin).copy()
    if isinstance(data.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.base.madvise(mmap.MADV_DONTNEED)
    return found


def sizes(path: Path, name: str, shape: object) -> tuple[int, ...]:
    """A shape from a file, refused unless it is a list of whole numbers that are not negative."""
    if not isinstance(shape, (list, tuple)) or not all(
        type(size) is int and size >= 0 for size in shape
    ):
        raise FileFormatError(
            f"{path}: the shape of {name} must be a list of sizes; got {str(shape)[:80]}"
        )
    if len(shape) > 32:
        raise FileFormatError(f"{path}: {name} has {len(shape)} axes; no weight has more than 32")
    return tuple(shape)


def check_span(path: Path, name: str, data: np.ndarray, begin: int, length: int) -> None:
    """Refuse a tensor that would lie outside the file."""
    if begin < 0 or begin + length > data.size:
        raise FileFormatError(
            f"{path} is cut short or forged: {name} asks for bytes {begin} to {begin + length}, "
            f"and the file has {data.size}; copy the file again"
        )


def plain(
    path: Path,
    name: str,
    data: np.ndarray,
    begin: int,
    shape: tuple[int, ...],
    dtype: np.dtype,
    encoding: str,
) -> Stored:
    """The tensor whose little-endian elements lie in `data` one after another from `begin` on.

    The number of bytes is a Python integer, so that no forged shape can make it wrap around.
    """
    check_span(path, name, data, begin, math.prod(shape) * dtype.itemsize)

    def read() -> np.ndarray:
        return elements(data, dtype, math.prod(shape), begin).reshape(shape)

    return Stored(shape, dtype, encoding, read)
