"""A model in several files: an index names the file of each tensor."""

from collections.abc import Callable
from pathlib import Path

from neuromanifold.checkpoints.readers.contents import Contents, Stored
from neuromanifold.checkpoints.readers.json_object import read_json
from neuromanifold.errors import FileFormatError


def read_index(path: Path, read_shard: Callable[[Path], Contents]) -> Contents:
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
        shards[file] = read_shard(path.parent / file)
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
