"""A folder as model hubs lay it out: config.json and the weights beside it."""

from pathlib import Path

from neuromanifold.checkpoints.readers.contents import Contents
from neuromanifold.checkpoints.readers.format import read_file
from neuromanifold.errors import FileFormatError

PREFERRED = (
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
"""Safetensors first: when a folder has both, they are the same model twice."""


def read_folder(path: Path) -> Contents:
    """The weights of a folder: by their usual names, or the only weights file there is."""
    for name in PREFERRED:
        if (path / name).is_file():
            return read_file(path / name)
    found = sorted(
        file
        for file in path.iterdir()
        if file.suffix in (".safetensors", ".bin", ".pt", ".pth", ".gguf")
    )
    if len(found) == 1:
        return read_file(found[0])
    if found:
        raise FileFormatError(
            f"{path} has {len(found)} weights files and no index: give one of them, "
            f"for instance {found[0]}"
        )
    raise FileFormatError(
        f"{path} has no weights: no {', '.join(PREFERRED)}, and no other weights file"
    )
