"""Which reader a file needs: told by its first bytes, not by its name."""

from pathlib import Path

from neuromanifold.checkpoints.readers import gguf, torch_file
from neuromanifold.checkpoints.readers.contents import Contents
from neuromanifold.checkpoints.readers.index import read_index
from neuromanifold.checkpoints.readers.safetensors import read_safetensors
from neuromanifold.errors import FileFormatError


def read_file(path: Path) -> Contents:
    """The contents of one file, or of all the files that an index names."""
    if path.suffix == ".json":
        return read_index(path, read_file)
    try:
        with path.open("rb") as file:
            magic = file.read(8)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    if magic.startswith(gguf.MAGIC):
        return gguf.read_gguf(path)
    if magic.startswith((torch_file.ZIP_MAGIC, b"\x80")) and path.suffix != ".safetensors":
        return torch_file.read_torch(path)
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    raise FileFormatError(
        f"{path} is none of the formats read here: .safetensors, .gguf, PyTorch's .bin, .pt and "
        ".pth, or an index .json of shards"
    )
