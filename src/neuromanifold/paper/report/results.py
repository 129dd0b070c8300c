"""`results.json`: every number of the page, with its evidence."""

from collections.abc import Mapping, Sequence
from typing import Any

from neuromanifold.paper.checks.evidence import Evidence


def results(
    evidence: Sequence[Evidence],
    figures: Mapping[str, Mapping[str, Any]],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """The JSON form of a run.

    Args:
        evidence: of every statement that was checked.
        figures: by statement id, the files and what they show.
        seconds: how long other parts took, by name.
    """
    checks = {one.id: round(one.seconds, 3) for one in evidence}
    return {
        "statements": [one.to_dict() for one in evidence],
        "figures": {id_: dict(figure) for id_, figure in figures.items()},
        "seconds": {**checks, **{name: round(value, 3) for name, value in seconds.items()}},
    }
