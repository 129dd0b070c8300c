"""Reading what the page asks: each field checked, each mistake one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any

from neuromanifold.architecture import READOUTS, Architecture, Readout
from neuromanifold.cost import Cost, TooLargeError, free_memory
from neuromanifold.errors import ArgumentError


def architecture_of(question: Mapping[str, Any]) -> Architecture:
    """The network that is asked about."""
    return Architecture.from_dict(question.get("architecture"))


def readout_of(question: Mapping[str, Any]) -> Readout:
    """What is looked at of its output."""
    return word(question, "readout", READOUTS, "logits")


def whole(question: Mapping[str, Any], field: str, default: int, low: int, high: int) -> int:
    """A whole number between two limits."""
    return _number(question.get(field, default), int, f"{field} must be a whole number", low, high)


def real(question: Mapping[str, Any], field: str, default: float, low: float, high: float) -> float:
    """A number between two limits."""
    found = _number(
        question.get(field, default), int | float, f"{field} must be a number", low, high
    )
    return float(found)


def _number(value: Any, kind: Any, wanted: str, low: float, high: float) -> Any:
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        raise ArgumentError(f"{wanted} from {low:.10g} to {high:.10g}; got {value!r}")
    return value


def word(question: Mapping[str, Any], field: str, known: Sequence[Any], default: Any) -> Any:
    """One of the known words."""
    value = question.get(field, default)
    if value not in known:
        raise ArgumentError(f"{field} must be one of {', '.join(known)}; got {value!r}")
    return value


def text(question: Mapping[str, Any], field: str, longest: int = 500) -> str:
    """A short text, empty when it is missing."""
    value = question.get(field, "") or ""
    if not isinstance(value, str) or len(value) > longest:
        raise ArgumentError(f"{field} must be a text of at most {longest} characters")
    return value


def texts(question: Mapping[str, Any], field: str, count: int) -> tuple[str, ...] | None:
    """So many texts, or nothing."""
    value = question.get(field)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != count:
        raise ArgumentError(f"{field} must be a list of {count} texts; got {value!r}")
    return tuple(text({field: one}, field) for one in value)


def afford(question: Mapping[str, Any], cost: Cost, doing: str) -> None:
    """Refuse what costs more than the commands allow, or more time than the explorer gives."""
    try:
        cost.check(Cost(free_memory() / 2, float(question.get("time_limit", 300.0))), doing)
    except TooLargeError:
        raise ArgumentError(
            f"{doing} would take {cost}, more than is started from this page: give smaller sizes, "
            "use the command, or start the explorer with a longer --time-limit"
        ) from None
