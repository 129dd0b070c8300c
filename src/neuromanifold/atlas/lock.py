"""One writing command a store: a lock that the kernel lets go when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuromanifold.errors import FileFormatError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the right to write `path`; a second command is refused with a sentence.

    The lock is on a file of its own, `path` with `.lock` added: closing any descriptor of the
    database itself would drop SQLite's locks on it. The lock file is removed at the end; a holder
    checks that the file it locked is still the one of that name, so two cannot hold two files.
    """
    lock_path = path.with_name(path.name + ".lock")
    descriptor = _locked(lock_path, path)
    try:
        yield
    finally:
        lock_path.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(lock_path: Path, path: Path) -> int:
    while True:
        try:
            descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise FileFormatError(f"{path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise FileFormatError(
                f"another command is writing {path}; wait until it is done, or use another file"
            ) from None
        if _is_named(descriptor, lock_path):
            return descriptor
        os.close(descriptor)


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
