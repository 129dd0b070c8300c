"""PyTorch's `.bin`, `.pt` and `.pth`: a pickle of tensors and their storages, in two containers.

Since 2020 a zip archive (stored, never compressed), before that a row of pickles followed by the
storages. Nothing in the pickle is executed, see `torch_pickle`.
"""

import io
import mmap
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, cast

import numpy as np

from neuromanifold.checkpoints.readers.contents import (
    Contents,
    Stored,
    check_span,
    elements,
    map_file,
)
from neuromanifold.checkpoints.readers.torch_pickle import TorchTensor, read_pickle
from neuromanifold.errors import FileFormatError

ZIP_MAGIC = b"PK\x03\x04"
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")
Span = tuple[int, int]
"""Where the bytes of a storage lie in the file: begin and end."""


def read_torch(path: Path) -> Contents:
    """The tensors of a PyTorch file, without running anything in it."""
    data = map_file(path)
    if data[:4].tobytes() == ZIP_MAGIC:
        saved, spans = _read_zip(path, data)
    else:
        saved, spans = _read_legacy(path, data)
    named, notes = _state_dict(path, saved)
    tensors = {name: _stored(path, name, tensor, data, spans) for name, tensor in named.items()}
    return Contents("torch", tensors, notes=notes)


def _read_zip(path: Path, data: np.ndarray) -> tuple[object, dict[str, Span]]:
    """The pickle of an archive, and where it keeps the storages of each key."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
        raise FileFormatError(f"{path} is a damaged zip archive ({error}); copy it again") from None
    if any(entry.filename.endswith("/constants.pkl") for entry in entries):
        raise FileFormatError(f"{path} is a TorchScript program; save its state_dict() instead")
    files: dict[str, Span] = {}
    for entry in entries:
        name = entry.filename.partition("/")[2]
        if name in files:
            raise FileFormatError(f"{path}: its archive holds {name} twice; save it again")
        files[name] = _entry_span(path, entry, data)
    if "data.pkl" not in files:
        raise FileFormatError(f"{path} is a zip archive without data.pkl: not a PyTorch file")
    begin, end = files.get("byteorder", (0, 0))
    if data[begin:end].tobytes() == b"big":
        raise FileFormatError(f"{path} was written big-endian; save it on another machine")
    begin, end = files["data.pkl"]
    saved = read_pickle(path, io.BytesIO(data[begin:end].tobytes()))
    stored = {name.removeprefix("data/"): s for name, s in files.items() if name[:5] == "data/"}
    return saved, stored


def _entry_span(path: Path, entry: zipfile.ZipInfo, data: np.ndarray) -> Span:
    """The bytes of one entry of the archive; compressed ones are refused, so no bomb unfolds."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise FileFormatError(
            f"{path}: {entry.filename[:80]} in its archive is compressed, which PyTorch never "
            "does; unpack it, or save it again"
        )
    # local header: 26 bytes, then the lengths of the name and of the extra field, then both
    header = data[entry.header_offset : entry.header_offset + 30].tobytes()
    if len(header) == 30 and header[:4] == ZIP_MAGIC:
        name, extra = struct.unpack("<HH", header[26:])
        begin = entry.header_offset + 30 + name + extra
        if begin + entry.file_size <= data.size:
            return begin, begin + entry.file_size
    raise FileFormatError(
        f"{path}: {entry.filename[:80]} lies outside its archive; the file is damaged or forged"
    )


def _read_legacy(path: Path, data: np.ndarray) -> tuple[object, dict[str, Span]]:
    """Five pickles (magic number, version, system, tensors, keys), then count and bytes each."""
    # unlike that of a file, `read` of a mapping takes no memory for bytes that are not there
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        pickles = cast("IO[bytes]", mapped)
        if data[:1].tobytes() != b"\x80" or read_pickle(path, pickles) != LEGACY_MAGIC:
            raise FileFormatError(f"{path} is not a PyTorch file; save the state_dict again")
        version, system, saved, keys = (read_pickle(path, pickles) for _ in range(4))
        position = mapped.tell()
    if version != 1001 or not isinstance(system, dict) or not isinstance(keys, list):
        raise FileFormatError(f"{path} has an unknown PyTorch version {version}; save it again")
    if system.get("little_endian") is not True:
        raise FileFormatError(f"{path} was written big-endian; save it on another machine")
    item_sizes = {
        tensor.storage.key: tensor.storage.dtype.itemsize for tensor in _tensors_in(saved)
    }
    spans: dict[str, Span] = {}
    for key in keys:
        if not isinstance(key, str) or key not in item_sizes:
            raise FileFormatError(f"{path} has a storage that no tensor uses; save it again")
        count = int.from_bytes(data[position : position + 8].tobytes(), "little")
        begin, end = position + 8, position + 8 + count * item_sizes[key]
        check_span(path, "a storage", data, begin, end - begin)
        spans[key], position = (begin, end), end
    return saved, spans


def _tensors_in(saved: object) -> list[TorchTensor]:
    """All tensors in nested dictionaries, lists and tuples (each container looked into once)."""
    found: list[TorchTensor] = []
    seen: set[int] = set()
    pending = [saved]
    while pending:
        value = pending.pop()
        if isinstance(value, TorchTensor):
            found.append(value)
        elif isinstance(value, (dict, list, tuple)) and id(value) not in seen:
            seen.add(id(value))
            pending.extend(value.values() if isinstance(value, dict) else value)
    return found


def _state_dict(path: Path, saved: object) -> tuple[dict[str, TorchTensor], tuple[str, ...]]:
    """The tensors by name: of the dictionary itself, or of the state_dict inside a checkpoint."""
    if isinstance(saved, dict):
        for word in ("", *_WRAPPERS):
            inner = saved.get(word) if word else saved
            if isinstance(inner, dict) and inner and _is_state_dict(inner):
                note = f"read the tensors under '{word}'; the rest of the file is not the model"
                return cast(dict[str, TorchTensor], inner), (note,) if word else ()
    raise FileFormatError(
        f"{path} does not hold a dictionary of tensors (nor one under {', '.join(_WRAPPERS)}); "
        "save model.state_dict()"
    )


def _is_state_dict(values: Mapping[object, object]) -> bool:
    return all(
        isinstance(name, str) and isinstance(tensor, TorchTensor) for name, tensor in values.items()
    )


def _stored(
    path: Path, name: str, tensor: TorchTensor, data: np.ndarray, spans: Mapping[str, Span]
) -> Stored:
    """The tensor as a strided view of its storage's bytes."""
    if tensor.storage.key not in spans:
        raise FileFormatError(
            f"{path} lacks the storage {tensor.storage.key[:80]} of {name}; save it again"
        )
    begin, end = spans[tensor.storage.key]
    storage = tensor.storage
    size = storage.dtype.itemsize
    if (storage.offset + storage.count) * size > end - begin:
        raise FileFormatError(
            f"{path}: the storage of {name} has {end - begin} bytes and the pickle says "
            f"{storage.count} elements of {size}; the file is damaged or forged"
        )

    def read() -> np.ndarray:
        if 0 in tensor.shape:
            return np.empty(tensor.shape, storage.dtype)
        reach = sum((n - 1) * by for n, by in zip(tensor.shape, tensor.strides, strict=True)) + 1
        first = begin + (storage.offset + tensor.offset) * size
        return np.lib.stride_tricks.as_strided(
            elements(data, storage.dtype, reach, first),
            tensor.shape,
            tuple(stride * size for stride in tensor.strides),
            writeable=False,
        )

    return Stored(tensor.shape, storage.dtype, storage.dtype.name, read)
