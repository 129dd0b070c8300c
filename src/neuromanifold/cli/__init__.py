"""The command line: one file a command, no mathematics.

Exit codes: 0 answered; 1 a claim is refuted, and nothing else; 2 misuse, a corrupt file, or more
than is allowed; 3 an error of the program; 130 interrupted.
"""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from types import FrameType

REFUTED, MISUSE, PROGRAM_ERROR, INTERRUPTED = 1, 2, 3, 130
_LONGEST_IMPORT = 10.0
"""Seconds for which an interrupt waits while modules load."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; however it ends, that is an exit code and at most one sentence."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    # A stream that whoever started us has closed is None here, and its descriptor would be that of
    # the next file opened, into which libraries would log.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if isinstance(sys.stdout, TextIOWrapper):  # φ where the terminal has no Greek is \u03c6
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _impatient_interrupts():
            # Imported here so that Ctrl-C while modules load ends like any other.
            from neuromanifold.cli.app import app

            code = app.meta(
                words, exit_on_error=False, print_error=False, result_action="return_value"
            )
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
    except KeyboardInterrupt as error:
        return _end(INTERRUPTED, str(error) or "interrupted; nothing was written")
    except BrokenPipeError:
        # The reader of our output has left: say nothing more, at the interpreter's end either.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as error:  # what prints the help makes this of a broken pipe
        if isinstance(error.__context__, BrokenPipeError):
            return 0
        raise
    except Exception as error:
        if "--debug" in words:
            import traceback

            traceback.print_exc()
        return _end(*_sentence(error))


def _sentence(error: Exception) -> tuple[int, str]:
    """The exit code of an error, and what to say."""
    from cyclopts import CycloptsError

    from neuromanifold.errors import NeuromanifoldError
    from neuromanifold.extras import missing_extra

    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)):
        return MISUSE, str(missing)
    if isinstance(error, CycloptsError):
        from neuromanifold.cli.misuse import misuse

        return MISUSE, misuse(error)
    if isinstance(error, NeuromanifoldError):
        return MISUSE, str(error)
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return MISUSE, "there is not enough memory for this; give smaller sizes"
    if isinstance(error, OSError) and error.strerror is not None:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return MISUSE, f"{where}{error.strerror}"
    return PROGRAM_ERROR, (
        f"this is an error of the program ({type(error).__name__}: {error}); please report it, "
        "with the command and with what --debug adds to it"
    )


def _end(code: int, sentence: str) -> int:
    from neuromanifold.cli.output import say

    with suppress(OSError):
        say("neuromanifold: " + " ".join(sentence.split()))
    return code


@contextmanager
def _impatient_interrupts() -> Iterator[None]:
    """The first Ctrl-C raises `KeyboardInterrupt`, a second one while it is tidied up ends at once.

    Both say so; a traceback says nothing to who pressed the keys. An interrupt that falls into a
    finaliser or a callback of the garbage collector is dropped by Python: it is raised again. While
    modules load it waits for them, as compiled ones may crash on an exception.
    """
    pressed: list[float] = []

    def later() -> None:
        retry = threading.Timer(0.02, _thread.interrupt_main)
        retry.daemon = True
        retry.start()

    def second(_signal: int, _frame: FrameType | None) -> None:
        os.write(2, b"neuromanifold: interrupted again; stopped at once\n")
        os._exit(INTERRUPTED)

    def first(_signal: int, frame: FrameType | None) -> None:
        pressed.append(time.monotonic())
        if _is_importing(frame) and pressed[-1] - pressed[0] < _LONGEST_IMPORT:
            later()
            return
        signal.signal(signal.SIGINT, second)
        raise KeyboardInterrupt

    def dropped(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            report(unraisable)
            return
        signal.signal(signal.SIGINT, first)
        later()

    try:
        before = signal.signal(signal.SIGINT, first)
    except ValueError:  # not the main thread, which alone gets signals
        yield
        return
    report, sys.unraisablehook = sys.unraisablehook, dropped
    try:
        yield
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGINT, before)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being loaded at this point of the program."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
