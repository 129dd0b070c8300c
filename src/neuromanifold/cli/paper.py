"""`neuromanifold paper`: check every statement and write the report."""

from collections import Counter
from pathlib import Path
from typing import Annotated, get_args

from cyclopts import Parameter

from neuromanifold.cli.options import Seed
from neuromanifold.cli.output import print_answer, say
from neuromanifold.cli.run import Json
from neuromanifold.files import make_folder
from neuromanifold.waiting import progress


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
    from neuromanifold.paper.checks.evidence import Evidence, Verdict
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
    page = write_report(evidence, out, quick=quick, seed=seed)
    failed = [one.id for one in evidence if one.verdict == "fails"]
    counts = Counter(one.verdict for one in evidence)
    print_answer(
        json,
        {"statements": evidence, "failed": failed, "page": page},
        ", ".join(f"{counts[word]} {word}" for word in get_args(Verdict) if counts[word]),
        *(f"fails: {id_}" for id_ in failed),
        f"open {page.resolve()}",
    )
    return 1 if failed else 0
