"""The one way in which this library writes a file: all of it, or nothing."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

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


def check_writable(path: str | Path, *, force: bool = False) -> None:
    """Raise when `write_file` would refuse: worth asking before a long computation."""
    path = Path(path)
    if path.exists() and not force:
        raise FileFormatError(f"{path} exists; give another name, or --force to replace it")
    if not path.parent.is_dir():
        raise FileFormatError(f"the folder {path.parent} does not exist; make it first")


def _umask() -> int:
    """The permissions this process withholds; temporary files of the system ignore them."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
