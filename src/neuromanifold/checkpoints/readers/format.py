"""Which reader a model needs, told by a file's first bytes; shards; a folder of a model hub."""

from pathlib import Path

from neuromanifold.checkpoints.readers import gguf, torch_file
from neuromanifold.checkpoints.readers.contents import Contents, Stored
from neuromanifold.checkpoints.readers.json_object import read_json
from neuromanifold.checkpoints.readers.safetensors import read_safetensors
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


def read_file(path: Path) -> Contents:
    """The contents of one file, or of all the files that an index names."""
    if path.exists() and not path.is_file():
        raise FileFormatError(f"{path} is no file; give a file or a folder with one")
    if path.suffix == ".json":
        return _read_index(path)
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


def _read_index(path: Path) -> Contents:
    """All shards as one: each tensor in exactly the file that the index gives it."""
    where = read_json(path).get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(file, str) for file in where.values()):
        raise FileFormatError(f"{path} must have a weight_map from tensors to files")
    shards: dict[str, Contents] = {}
    for file in sorted(set(map(str, where.values()))):
        if Path(file).name != file:
            raise FileFormatError(f"{path} names the file {file}, which is not beside it")
        if not (path.parent / file).is_file():
            raise FileFormatError(
                f"the shard {file} that {path.name} names is missing from {path.parent}; "
                "copy it there"
            )
        shards[file] = read_file(path.parent / file)
    tensors: dict[str, Stored] = {}
    for file, shard in shards.items():
        for name, stored in shard.tensors.items():
            if name in tensors:
                raise FileFormatError(
                    f"{path.parent}: the tensor {name} is in {file} and in another shard; "
                    "remove one of the two"
                )
            if where.get(name) != file:
                raise FileFormatError(
                    f"{path.parent / file} holds {name}, which {path.name} "
                    f"{f'puts in {where[name]}' if name in where else 'does not name'}"
                )
            tensors[name] = stored
    missing = sorted(where.keys() - tensors.keys())
    if missing:
        raise FileFormatError(
            f"{path.parent / str(where[missing[0]])} lacks the tensor {missing[0]} that "
            f"{path.name} puts there"
        )
    first = next(iter(shards.values()), None)
    if first is None:
        raise FileFormatError(f"{path} names no tensors")
    notes = tuple(dict.fromkeys(note for shard in shards.values() for note in shard.notes))
    ordered = {name: tensors[name] for name in where}
    return Contents(first.format, ordered, metadata=first.metadata, notes=notes)
