"""The work that the page can ask for, by name: where it is, and whether it takes long."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from neuromanifold.errors import ArgumentError, NeuromanifoldError
from neuromanifold.explorer.jobs import Report


@dataclass(frozen=True, slots=True)
class Task:
    """A function of a view.

    Attributes:
        view: the module.
        function: the function in it, of the question and a report of progress.
        long: whether it waits in the lane of long work.
        files: the files it needs, by the names it knows them by, with the kind each must have.
    """

    view: str
    function: str
    long: bool = False
    files: Mapping[str, str] | None = None

    def load(self) -> Callable[[Mapping[str, Any], Report], Any]:
        """The function itself."""
        return getattr(import_module(f"neuromanifold.explorer.views.{self.view}"), self.function)


_MODULE = {"network": "network"}
_TWO = {"first": "weights", "second": "weights"}
TASKS: Mapping[str, Task] = {
    "diagram": Task("network", "diagram"),
    "diagram-module": Task("network", "diagram", files=_MODULE),
    "prove": Task("network", "prove", long=True),
    "prove-module": Task("network", "prove", long=True, files=_MODULE),
    "verify": Task("network", "verify", long=True, files={"certificate": "certificate"}),
    "walk": Task("fiber", "walk"),
    "walk-files": Task("fiber", "walk", files=_TWO),
    "same": Task("fiber", "same", files=_TWO),
    "surface": Task("geometry", "surface"),
    "point": Task("geometry", "point"),
    "atlas": Task("atlas", "overview", files={"atlas": "atlas"}),
    "audit": Task("checkpoint", "audit", long=True, files={"model": "checkpoint"}),
    "compare": Task(
        "checkpoint", "compare", long=True, files={"first": "checkpoint", "second": "checkpoint"}
    ),
    "check": Task("paper", "check", long=True),
}


def task_named(name: object) -> Task:
    """The task with this name."""
    if not isinstance(name, str) or name not in TASKS:
        raise ArgumentError(f"a task was wanted, one of {', '.join(TASKS)}; got {name!r}")
    return TASKS[name]


def run(name: str, asked: dict[str, Any], report: Report) -> Any:
    """Do a task; this is what the workers run. Errors name files as the page knows them."""
    try:
        return task_named(name).load()(asked, report)
    except NeuromanifoldError as error:
        sentence = str(error)
        for file in (asked.get("files") or {}).values():
            sentence = sentence.replace(file["path"], file["name"])
        raise NeuromanifoldError(sentence) from error
