"""Models in files: one way in, whatever the format, and nothing loaded before it is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.readers.contents import FLOATS, Contents, Stored
from neuromanifold.checkpoints.readers.format import read_file, read_folder
from neuromanifold.checkpoints.readers.json_object import read_json
from neuromanifold.errors import FileFormatError

_PART = 1 << 22
"""Elements looked at together when values are checked: the check needs little memory."""


@dataclass(frozen=True)
class Model:
    """A model in a file or folder: names, shapes and dtypes; tensors when they are asked for."""

    path: Path
    contents: Contents = field(repr=False)
    config: Mapping[str, object] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def format(self) -> str:
        """The kind of file: safetensors, torch or gguf."""
        return self.contents.format

    @property
    def metadata(self) -> Mapping[str, str]:
        """What a safetensors header says besides its tensors."""
        return self.contents.metadata

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tensors, in the order of the file."""
        return tuple(self.contents.tensors)

    @property
    def parameters(self) -> int:
        """The number of floating-point entries, buffers included."""
        return sum(
            int(np.prod(stored.shape, dtype=object))
            for stored in self.contents.tensors.values()
            if stored.dtype in FLOATS
        )

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.stored(name).shape

    def dtype(self, name: str) -> np.dtype:
        """The dtype in which `tensor` gives it: the stored one, float32 where it is quantised."""
        return self.stored(name).dtype

    def tensor(self, name: str, dtype: np.dtype | type | None = None) -> np.ndarray:
        """A tensor, in the stored dtype or the one asked for; refused when it is not finite."""
        array = self.stored(name).read()
        if array.dtype in FLOATS:
            _check_finite(self.path, name, array)
        return array if dtype is None else array.astype(dtype)

    def stored(self, name: str) -> Stored:
        """The tensor as it lies in the file, its values not looked at."""
        found = self.contents.tensors.get(name)
        if found is None:
            raise FileFormatError(
                f"{self.path} has no tensor {name}; it has {len(self.names)} others, "
                f"for instance {', '.join(self.names[:3])}"
            )
        return found


def open_model(path: str | Path, config: str | Path | Mapping[str, object] | None = None) -> Model:
    """Open a model: a folder, an index of shards, safetensors, a PyTorch file, or GGUF.

    The configuration is the given one (a file or its values), else `config.json` beside the
    weights, else what the file itself says (GGUF). Nothing is downloaded, nothing executed.
    """
    path = Path(path)
    if not path.exists():
        raise FileFormatError(
            f"{path} does not exist; give a folder with config.json, a .safetensors file or its "
            "index, a .bin, .pt or .pth file, or a .gguf file (nothing is downloaded)"
        )
    contents = read_folder(path) if path.is_dir() else read_file(path)
    if not contents.tensors:
        raise FileFormatError(f"{path} holds no tensors")
    notes = contents.notes
    found: Mapping[str, object] = contents.config
    beside = (path if path.is_dir() else path.parent) / "config.json"
    if isinstance(config, Mapping):
        found = config
    elif config is not None:
        found = read_json(Path(config))
    elif not found and beside.is_file():
        found = read_json(beside)
        notes = (*notes, f"configuration read from {beside}")
    return Model(path, contents, found, notes)


def _check_finite(path: Path, name: str, array: np.ndarray) -> None:
    flat = array.reshape(-1) if array.flags.c_contiguous else array
    parts = range(0, len(flat), _PART) if flat.ndim == 1 else (None,)
    for start in parts:
        part = flat if start is None else flat[start : start + _PART]
        if not np.isfinite(part).all():
            raise FileFormatError(f"{path}: {name} has entries that are NaN or infinite; mend them")
