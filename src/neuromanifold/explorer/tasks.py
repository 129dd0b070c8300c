"""The work that the page can ask for, by name: where it is, and whether it takes long."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from neuromanifold.errors import ArgumentError, NeuromanifoldError
from neuromanifold.explorer.jobs import Report
from neuromanifold.files import LARGEST_EXACT, as_json


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
    """Do a task; this is what the workers run. Files are named as the page knows them."""
    files = list((asked.get("files") or {}).values())
    try:
        answer = as_json(task_named(name).load()(asked, report), largest=LARGEST_EXACT)
    except NeuromanifoldError as error:
        raise NeuromanifoldError(_named(str(error), files)) from error
    return _named(answer, files) if files else answer


def _named(value: Any, files: Iterable[Mapping[str, str]]) -> Any:
    """A value in whose texts files have their names in place of their paths."""
    if isinstance(value, dict):
        return {key: _named(part, files) for key, part in value.items()}
    if isinstance(value, list):
        return [_named(part, files) for part in value]
    if isinstance(value, str):
        for file in files:
            value = value.replace(file["path"], file["name"])
    return value
