"""JSON objects in files, with every name at most once."""

import json
from pathlib import Path

from neuromanifold.errors import FileFormatError


def read_json(path: Path) -> dict[str, object]:
    """The JSON object that is all of a file."""
    try:
        return parse_json(path, path.read_bytes())
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None


def parse_json(path: Path, text: bytes) -> dict[str, object]:
    """The JSON object in `text`, which is part of the file at `path`."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=lambda pairs: _once(path, pairs))
    except FileFormatError:
        raise
    except (ValueError, RecursionError):
        raise FileFormatError(f"{path} does not hold JSON where it should; copy it again") from None
    if not isinstance(value, dict):
        raise FileFormatError(f"{path} must hold a JSON object; got a {type(value).__name__}")
    return value


def _once(path: Path, pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object of these pairs, unless a name occurs twice: which of the two would be meant?"""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise FileFormatError(f"{path} names {name} twice; write the file again")
        found[name] = value
    return found
