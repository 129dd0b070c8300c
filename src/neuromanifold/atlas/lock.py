"""One writing command a store: a lock that the kernel lets go when its holder dies."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuromanifold.errors import FileFormatError

_held: set[tuple[int, int]] = set()
_held_lock = threading.Lock()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the right to write `path`, and make the file if there is none.

    The lock is on the file, whatever it is called: a link to it has the same one. Closing a
    descriptor of a file drops the locks that SQLite holds on it in this process, so the descriptor
    is closed last; and a second attempt of this process is refused before it opens one. A file that
    is still empty in the end is taken away again.
    """
    descriptor, key = _locked(path)
    try:
        yield
    finally:
        if os.fstat(descriptor).st_size == 0:
            path.unlink(missing_ok=True)
        os.close(descriptor)
        with _held_lock:
            _held.discard(key)


def _locked(path: Path) -> tuple[int, tuple[int, int]]:
    with _held_lock:
        while True:
            if path.exists() and _key(path.stat()) in _held:
                raise _busy(path)
            if path.exists() and not path.is_file():
                raise FileFormatError(f"{path} is not a file; give another name")
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise FileFormatError(f"{path} cannot be written: {error.strerror}") from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise _busy(path) from None
            if _is_named(descriptor, path):
                key = _key(os.fstat(descriptor))
                _held.add(key)
                return descriptor, key
            os.close(descriptor)  # meanwhile it was taken away: the lock is on nothing


def _busy(path: Path) -> FileFormatError:
    return FileFormatError(
        f"another command is writing {path}; wait until it is done, or use another file"
    )


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return _key(os.fstat(descriptor)) == _key(path.stat())
    except FileNotFoundError:
        return False
