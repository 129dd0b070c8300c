"""`neuromanifold paper`: check every statement and write the report."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import Json, Seed
from neuromanifold.cli.output import print_json, print_lines
from neuromanifold.errors import FileFormatError

if TYPE_CHECKING:
    from neuromanifold.paper.checks.evidence import Evidence


def paper(
    *,
    out: Annotated[Path, Parameter(help="the folder of the report")] = Path("report"),
    quick: Annotated[bool, Parameter(negative="", help="smaller grids, about a minute")] = False,
    only: Annotated[str | None, Parameter(help="check one statement, e.g. thm-3.2")] = None,
    seed: Seed = 0,
    json: Json = False,
) -> int:
    """Check every statement by computation and write one page with the evidence.

    The folder gets index.html, results.json, the figures, and the evidence of every finished check:
    after an interruption, or when nothing has changed, finished checks are not done again. Exits
    with 1 when a check fails.

    Example: neuromanifold paper --out report
    """
    from neuromanifold.paper.report.write import write_report
    from neuromanifold.statements import STATEMENTS, get

    ids = [statement.id for statement in STATEMENTS] if only is None else [get(only).id]
    folder = _folder(out)
    evidence: list[Evidence] = []
    try:
        for one in _with_progress(ids, folder / "evidence", quick, seed):
            evidence.append(one)
            if one.verdict == "fails":
                sys.stderr.write(f"{one.id} fails: {one.evidence['failures'][0]}\n")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted after {len(evidence)} of {len(ids)} checks; what is done is kept in "
            f"{folder / 'evidence'}: start again to go on"
        ) from None
    report = write_report(evidence, folder, quick=quick, seed=seed)
    if json:
        results = [one.to_dict() for one in evidence]
        print_json({"statements": results, "failed": report.failed, "page": str(report.page)})
    else:
        print_lines(*_summary(evidence, report.failed), f"open {report.page.resolve()}")
    return 1 if report.failed else 0


def _folder(out: Path) -> Path:
    """The folder, made when it is missing."""
    try:
        (out / "evidence").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(
            f"{out} is to be the folder of the report, and cannot be made: {error.strerror}; "
            "give another one with --out"
        ) from None
    return out


def _with_progress(ids: list[str], folder: Path, quick: bool, seed: int) -> "Iterator[Evidence]":
    """The evidence of each check, with a bar on stderr when that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from neuromanifold.paper.checks.run import check_statements

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(ids[0], total=len(ids))
        for done, one in enumerate(
            check_statements(ids, quick=quick, seed=seed, folder=folder), start=1
        ):
            following = ids[done] if done < len(ids) else "writing the page"
            bar.update(task, completed=done, description=following)
            yield one


def _summary(evidence: "list[Evidence]", failed: tuple[str, ...]) -> list[str]:
    """How many statements came out how, and which ones failed."""
    counts = dict.fromkeys(("holds", "corrected", "conjecture", "fails"), 0)
    for one in evidence:
        counts[one.verdict] += 1
    lines = [", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)]
    return [*lines, *(f"fails: {id_}" for id_ in failed)]
