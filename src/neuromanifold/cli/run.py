"""How a command runs and answers: what it may cost, and whether the answer is JSON."""

from dataclasses import dataclass
from typing import Any, Protocol

from cyclopts import Parameter

from neuromanifold.cli.limits import LimitOptions
from neuromanifold.cli.options import Json
from neuromanifold.cli.output import print_answer


class Answer(Protocol):
    """A result: it prints as a sentence, and has a JSON form."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        ...


def show(answer: Answer, json: bool, *lines: str, **fields: Any) -> None:
    """Print an answer: as JSON, with more fields, or as its sentence, with more lines."""
    print_answer(json, {**answer.to_dict(), **fields}, str(answer), *lines)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(LimitOptions):
    """The options of a command that computes something."""

    json: Json = False

    def show(self, answer: Answer, *lines: str, **fields: Any) -> None:
        """Print an answer: as JSON, with more fields, or as its sentence, with more lines."""
        show(answer, self.json, *lines, **fields)


RUN = RunOptions()
