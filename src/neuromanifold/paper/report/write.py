"""Writing a report: the figures, `results.json` and `index.html` into one folder."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuromanifold.files import write_file
from neuromanifold.paper.checks.evidence import Evidence
from neuromanifold.paper.report.drawing import Drawing, draw
from neuromanifold.paper.report.page import page


def write_report(
    evidence: Sequence[Evidence], folder: Path, *, quick: bool = False, seed: int = 0
) -> Path:
    """Draw the figures and write the page with everything it shows; where the page is.

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
    content = json.dumps(found, indent=1, ensure_ascii=False)
    write_file(folder / "results.json", content.encode(), force=True)
    write_file(folder / "index.html", text.encode(), force=True)
    return folder / "index.html"


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
