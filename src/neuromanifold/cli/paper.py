"""`neuromanifold paper`: check every statement and write the report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from neuromanifold.cli.options import Seed
from neuromanifold.cli.output import print_answer, say
from neuromanifold.cli.run import Json
from neuromanifold.files import make_folder
from neuromanifold.waiting import progress

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
    from neuromanifold.paper.checks.run import check_statements
    from neuromanifold.paper.report.write import write_report
    from neuromanifold.statements import STATEMENTS, get

    ids = [statement.id for statement in STATEMENTS] if only is None else [get(only).id]
    kept = make_folder(out / "evidence")
    evidence: list[Evidence] = []
    try:
        with progress(ids[0]) as bar:
            for one in check_statements(ids, quick=quick, seed=seed, folder=kept):
                evidence.append(one)
                bar.at(len(evidence), len(ids))
                bar.doing = ([*ids, "writing the page"])[len(evidence)]
                if one.verdict == "fails":
                    say(f"{one.id} fails: {one.evidence['failures'][0]}")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted after {len(evidence)} of {len(ids)} checks; what is done is kept in "
            f"{kept}: start again to go on"
        ) from None
    report = write_report(evidence, out, quick=quick, seed=seed)
    results = [one.to_dict() for one in evidence]
    answer = {"statements": results, "failed": report.failed, "page": str(report.page)}
    lines = _summary(evidence, report.failed)
    print_answer(json, answer, *lines, f"open {report.page.resolve()}")
    return 1 if report.failed else 0


def _summary(evidence: "list[Evidence]", failed: tuple[str, ...]) -> list[str]:
    """How many statements came out how, and which ones failed."""
    verdicts = [one.verdict for one in evidence]
    counts = {word: verdicts.count(word) for word in ("holds", "corrected", "conjecture", "fails")}
    line = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return [line, *(f"fails: {id_}" for id_ in failed)]
