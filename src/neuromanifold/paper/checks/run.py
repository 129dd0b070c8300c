"""Running checks: one statement, or many with what is already known kept in a folder."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import neuromanifold
from neuromanifold.files import write_file
from neuromanifold.paper import checks
from neuromanifold.paper.checks import trial
from neuromanifold.paper.checks.evidence import Evidence, evidence_of
from neuromanifold.paper.checks.trial import Check, Trial
from neuromanifold.statements import STATEMENTS, get

for _module in iter_modules(checks.__path__, f"{checks.__name__}."):
    import_module(_module.name)

CHECKS: dict[str, Check] = {one.id: trial.CHECKS[one.id] for one in STATEMENTS}
"""All checks, in the order of the registry."""


def check_statement(statement_id: str, *, quick: bool = False, seed: int = 0) -> Evidence:
    """Check one statement of the registry.

    A check that stops with an exception has failed: whatever broke, the statement was not
    confirmed, and the evidence says why.

    Args:
        statement_id: the statement.
        quick: take a smaller grid.
        seed: of everything drawn.
    """
    statement = get(statement_id)
    started = time.perf_counter()
    attempt = Trial(quick, seed)
    try:
        checked = CHECKS[statement_id](attempt)
    except Exception as error:
        checked, attempt = "nothing, the check stopped with an error", Trial(quick, seed)
        attempt.case("the check stopped", f"{type(error).__name__}: {error}")
    return evidence_of(statement, checked, attempt, time.perf_counter() - started)


def check_statements(
    statement_ids: Sequence[str], *, quick: bool = False, seed: int = 0, folder: Path | None = None
) -> Iterator[Evidence]:
    """Check statements one by one, and yield the evidence of each as soon as it is there.

    Args:
        statement_ids: the statements.
        quick: take smaller grids.
        seed: of everything drawn.
        folder: where to keep evidence, a file a statement; what is there from the same source code,
            grid and seed is not computed again. A failure is never kept.
    """
    key = _key(quick, seed)
    for statement_id in statement_ids:
        file = None if folder is None else folder / f"{statement_id}.json"
        evidence = None if file is None else _load(file, key)
        if evidence is None:
            evidence = check_statement(statement_id, quick=quick, seed=seed)
            if file is not None and evidence.verdict != "fails":
                content = json.dumps({"key": key, **asdict(evidence)}, ensure_ascii=False)
                write_file(file, content.encode(), force=True)
        yield evidence


def _key(quick: bool, seed: int) -> str:
    """What evidence depends on: the version, every source file, the grid and the seed."""
    package = Path(neuromanifold.__file__).parent
    digest = hashlib.sha256(f"{neuromanifold.__version__} {quick} {seed}".encode())
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _load(file: Path, key: str) -> Evidence | None:
    """The kept evidence, or None where there is none that fits."""
    try:
        data = json.loads(file.read_bytes())
        if not isinstance(data, dict) or data.pop("key", None) != key:
            return None
        return Evidence.from_dict(data)
    except (OSError, ValueError):  # a FileFormatError is a ValueError
        return None
