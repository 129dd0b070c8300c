"""The paper view: every statement, how it is known, and what computation says about it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from neuromanifold.errors import FileFormatError
from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report


def statements(results: Path | None = None) -> dict[str, Any]:
    """The registry, with the verdicts of a report where one is open."""
    from neuromanifold.paper.report.mathematics import typeset
    from neuromanifold.statements import STATEMENTS

    known: dict[str, dict[str, str]] = {} if results is None else _verdicts(results)
    return {
        "statements": [
            {
                **one.to_dict(),
                "claim": typeset(one.claim),
                "correction": typeset(one.correction) if one.correction else None,
                "report": known.get(one.id),
            }
            for one in STATEMENTS
        ],
        "code": code.shown(
            'from neuromanifold.statements import STATEMENTS\nprint(*STATEMENTS, sep="\\n")',
            "neuromanifold statements",
        ),
    }


def _verdicts(results: Path) -> dict[str, dict[str, str]]:
    """The verdicts in a report's results, as text."""
    from neuromanifold.paper.checks.evidence import Verdict

    try:
        entries = json.loads(results.read_bytes())["statements"]
        found = {
            str(entry["id"]): {"verdict": entry["verdict"], "checked": str(entry["checked"])}
            for entry in entries
        }
    except (ValueError, TypeError, KeyError):
        raise FileFormatError("these are no results of `neuromanifold paper`") from None
    if any(entry["verdict"] not in get_args(Verdict) for entry in found.values()):
        raise FileFormatError("the results have an unknown verdict; make them again")
    return found


def check(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """One statement, checked by computation on a small grid."""
    from neuromanifold.statements import get

    statement = get(question.text(asked, "id"))
    seed = question.whole(asked, "seed", 0, 0, 2**31)
    report(f"checking {statement.id}")
    from neuromanifold.paper.checks.run import check_statement

    found = check_statement(statement.id, quick=True, seed=seed)
    return {
        **found.to_dict(),
        "seconds": found.seconds,
        "code": code.shown(
            "from neuromanifold.paper.checks.run import check_statement\n"
            f"print(check_statement({statement.id!r}, quick=True, seed={seed}))",
            f"neuromanifold paper --only {statement.id} --quick --seed {seed} --out report",
        ),
    }
