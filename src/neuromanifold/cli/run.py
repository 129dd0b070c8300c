"""How a command runs and answers: what it may cost, and whether the answer is JSON."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from neuromanifold.cli.output import print_answer
from neuromanifold.cost import Cost, memory_text, usual_limits
from neuromanifold.errors import ArgumentError
from neuromanifold.waiting import progress

_MEMORY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_TIME = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}

Json = Annotated[bool, Parameter(name="--json", negative="", help="print the answer as JSON")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a command that computes something."""

    max_memory: Annotated[
        str | None, Parameter(help="refuse what needs more, e.g. 8GB; default half of what is free")
    ] = None
    max_time: Annotated[
        str, Parameter(help="refuse what is expected to take longer, e.g. 20min or 2h")
    ] = "1h"
    json: Json = False

    @property
    def limits(self) -> Cost:
        """The limits in bytes and seconds."""
        if self.max_memory is None:
            memory = usual_limits().bytes
        else:
            memory = _amount("max-memory", self.max_memory, r"([kmgt]?)i?b?", _MEMORY, "8GB")
        return Cost(memory, _amount("max-time", self.max_time, r"(s|min|h|d|)", _TIME, "2h"))

    @contextmanager
    def spend(self, cost: Cost, doing: str) -> Iterator[None]:
        """Refuse the body when it would cost too much; otherwise show how far it is."""
        limits = self.limits
        logging.getLogger(__name__).info(
            "%s: %s expected, %s allowed", doing, cost, memory_text(limits.bytes)
        )
        cost.check(limits, doing)
        with progress(doing, cost.seconds):
            yield

    def show(self, answer: Any, *lines: str, **fields: Any) -> None:
        """Print a result: its JSON form, with more fields, or its sentence, with more lines."""
        print_answer(self.json, {**answer.to_dict(), **fields}, str(answer), *lines)


RUN = RunOptions()


def _amount(option: str, text: str, unit: str, units: dict[str, int], example: str) -> float:
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{0,9})?)\s*" + unit, text.strip().lower())
    if match is None:
        raise ArgumentError(f"--{option} must be an amount like {example}; got {text!r}")
    return float(match[1]) * units[match[2]]
