"""Writing a report: the figures, `results.json` and `index.html` into one folder."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuromanifold.files import write_file
from neuromanifold.paper.checks.evidence import Evidence
from neuromanifold.paper.report.drawing import Drawing, draw
from neuromanifold.paper.report.page import page


@dataclass(frozen=True, slots=True)
class Report:
    """What was written.

    Attributes:
        page: the HTML file.
        results: the JSON file.
        failed: the ids of the statements whose check failed.
    """

    page: Path
    results: Path
    failed: tuple[str, ...]


def write_report(
    evidence: Sequence[Evidence], folder: Path, *, quick: bool = False, seed: int = 0
) -> Report:
    """Draw the figures and write the page with everything it shows.

    Args:
        evidence: of the statements that were checked.
        folder: an existing folder; files of an earlier report are replaced.
        quick: whether the smaller grids were taken.
        seed: of everything drawn.
    """
    started = time.perf_counter()
    drawings = [drawing for one in evidence if (drawing := draw(one, folder)) is not None]
    seconds = {
        "all checks": sum(one.seconds for one in evidence),
        "drawing the figures": time.perf_counter() - started,
    }
    found = results(evidence, drawings, seconds)
    text = page(evidence, drawings, seconds, quick=quick, seed=seed)
    report = Report(
        page=folder / "index.html",
        results=folder / "results.json",
        failed=tuple(one.id for one in evidence if one.verdict == "fails"),
    )
    content = json.dumps(found, indent=1, ensure_ascii=False)
    write_file(report.results, content.encode(), force=True)
    write_file(report.page, text.encode(), force=True)
    return report


def results(
    evidence: Sequence[Evidence], drawings: Sequence[Drawing], seconds: Mapping[str, float]
) -> dict[str, Any]:
    """What `results.json` holds: every number of the page, with its evidence."""
    times = {one.id: one.seconds for one in evidence} | dict(seconds)
    return {
        "statements": [one.to_dict() for one in evidence],
        "figures": {one.id: one.to_dict() for one in drawings},
        "seconds": {name: round(value, 3) for name, value in times.items()},
    }
