"""The one way in which this library writes a file, all of it or nothing, and reads JSON.

JSON comes from others: what is too long, too deep, doubled or no number is refused by name before
anything is made of it.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial
from math import inf, isfinite
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeVar

from neuromanifold.errors import FileFormatError

T = TypeVar("T")


def write_file(path: str | Path, content: bytes, *, force: bool = False) -> None:
    """Write all of `content` or nothing; an existing file is replaced only with `force`."""
    write_whole(path, lambda part: part.write_bytes(content), force=force)


def write_whole(path: str | Path, write: Callable[[Path], T], *, force: bool = False) -> T:
    """Let `write` fill a temporary file beside `path`, flush it to the disk, then rename it.

    The temporary name is drawn by the system, so that two writers of one path do not meet.
    """
    path = Path(path)
    check_writable(path, force=force)
    part: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        part = Path(name)
        os.fchmod(handle, 0o666 & ~_umask())
        os.close(handle)
        result = write(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink(missing_ok=True)
    return result


def check_writable(path: str | Path | None, *, force: bool = False) -> None:
    """Raise when `write_file` would refuse: worth asking before a long computation.

    Where nothing is to be written, the path is None.
    """
    if path is None:
        return
    path = Path(path)
    if path.exists() and not path.is_file():
        raise FileFormatError(f"{path} is a folder or a device; give the name of a file")
    if path.exists() and not force:
        raise FileFormatError(f"{path} exists; give another name, or --force to replace it")
    if not path.parent.is_dir():
        raise FileFormatError(f"the folder {path.parent} does not exist; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise FileFormatError(f"the folder {path.parent} cannot be written to; give another one")


def make_folder(folder: Path) -> Path:
    """The folder, made when it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(
            f"the folder {folder} cannot be made: {error.strerror}; give another one"
        ) from None
    return folder


def _umask() -> int:
    """The permissions this process withholds; temporary files of the system ignore them."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


LARGEST_EXACT = 2**53
"""Whole numbers above this are no numbers of JavaScript: a page gets them as text."""


def as_json(value: Any, *, largest: float = inf) -> Any:
    """The value as JSON has it: arrays as lists, null for what is not finite, the rest as text.

    Args:
        value: any value of results.
        largest: whole numbers beyond this are given as text.
    """
    again = partial(as_json, largest=largest)
    for form in ("to_dict", "tolist"):
        if hasattr(value, form):
            return again(getattr(value, form)())
    if isinstance(value, Mapping):
        return {str(key): again(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [again(part) for part in value]
    if is_dataclass(value):
        return {field.name: again(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, float | Fraction):
        return float(value) if isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= largest else str(value)
    return value if isinstance(value, str | bool | None) else str(value)


_LONGEST, _DEEPEST, _DIGITS = 2**24, 32, 25
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def read_json_file(path: Path) -> Any:
    """The value in a JSON file; anything strange about it is one sentence."""
    if path.stat().st_size > _LONGEST:
        raise FileFormatError(f"{path} has more than {_LONGEST} bytes, too many for what it is")
    try:
        return read_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not valid JSON: {error}") from None
    except FileFormatError as error:
        raise FileFormatError(f"{path} {error}") from None


def read_json(text: str) -> Any:
    """The value of a JSON text, whose sizes are checked first."""
    if len(text) > _LONGEST:
        raise FileFormatError(f"has more than {_LONGEST} characters")
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", _JSON_STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _DEEPEST:
            raise FileFormatError(f"is nested more than {_DEEPEST} deep")
    try:
        value = json.loads(
            text,
            parse_int=_whole_number,
            parse_float=_real_number,
            parse_constant=_real_number,
            object_pairs_hook=_object,
        )
        json.dumps(value, ensure_ascii=False).encode()
    except (json.JSONDecodeError, RecursionError) as error:
        raise FileFormatError(f"is not valid JSON ({error}); it may be cut short") from None
    except UnicodeEncodeError:
        raise FileFormatError("has half a character (a lone surrogate) in a text") from None
    return value


def _whole_number(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise FileFormatError(f"has a number of {len(digits)} digits")
    return int(digits)


def _real_number(text: str) -> float:
    if len(text) > 4 * _DIGITS or not isfinite(number := float(text)):
        raise FileFormatError(f"has the number {shortened(text)}, which is not finite")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        doubled = next(key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1)
        raise FileFormatError(f"has the field {shortened(doubled)} twice")
    return found
