"""Commands on hostile input, in a process of its own that can be watched and ended.

Every case is a command line. One child runs them one after the other, so that the libraries are
loaded once; what it must not do is end with a traceback, hang, or grow.
"""

import json
import select
import subprocess
import sys
from dataclasses import dataclass

SECONDS = 10.0
GIGABYTES = 2.0

CHILD = """
import contextlib, io, json, os, sys, time
from neuromanifold.cli import main
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    case = json.loads(line)
    os.chdir(case["folder"])
    out, err, started = io.StringIO(), io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(case["words"])
    # Not ru_maxrss: that begins with the size of the process that started this one.
    status = open("/proc/self/status").read()
    grown = int(status.split("VmHWM:")[1].split()[0]) / 2**20
    answer = {"code": code, "out": out.getvalue()[-2000:], "err": err.getvalue()[-2000:]}
    answer |= {"gigabytes": grown, "seconds": time.process_time() - started}
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


@dataclass(frozen=True)
class Ending:
    """How a command ended; the time is that of the processor, which others do not lengthen."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float


def endings(cases, folder):
    """Run all command lines; a hang, a death or too much memory fails at once."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    found = []
    try:
        for words in cases:
            words = [str(word) for word in words]
            child.stdin.write(json.dumps({"words": words, "folder": str(folder)}) + "\n")
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], 12 * SECONDS)
            assert ready, f"hangs: {words}"
            line = child.stdout.readline()
            assert line, f"dies: {words}: {child.stderr.read()[-2000:]}"
            answer = json.loads(line)
            assert answer.pop("gigabytes") < GIGABYTES, f"grows: {words}"
            ending = Ending(tuple(words), **answer)
            check(ending)
            found.append(ending)
    finally:
        child.kill()
        child.communicate()
    return found


def check(ending):
    """What holds of every command, whatever it was given."""
    assert ending.code in (0, 1, 2), ending
    assert ending.seconds < SECONDS, ending
    assert "Traceback" not in ending.err, ending
    assert "\x1b" not in ending.out + ending.err, ending
    if ending.code == 2:
        sentences = [x for x in ending.err.splitlines() if x.startswith("neuromanifold: ")]
        assert len(sentences) == 1, ending
        assert len(sentences[0]) < 1500, ending
        assert ending.out == "", ending
