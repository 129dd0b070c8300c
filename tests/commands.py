"""The command line: in this process, or in one of its own that can be killed."""

import os
import subprocess
import sys
import time

from neuromanifold.cli import main

MAIN = "import sys; from neuromanifold.cli import main; sys.exit(main())"


def run(capsys, *arguments):
    """The exit code of `neuromanifold` with these arguments, and what it prints."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def start(*arguments, **options):
    """Start `neuromanifold` with these arguments in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def wait_for(condition, seconds=120):
    """Wait until the condition holds, and return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def session_is_gone(process):
    """Whether no process of the session is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False
