"""`neuromanifold statements`: the registry of what is claimed, and how it is known."""

from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.output import columns, print_answer
from neuromanifold.cli.run import Json


def statements(
    id: Annotated[str | None, Parameter(help="one statement, e.g. thm-3.7")] = None,  # noqa: A002
    *,
    json: Json = False,
) -> None:
    """List the statements behind every answer, or show one.

    Example: neuromanifold statements thm-3.7
    """
    from neuromanifold.statements import STATEMENTS, get

    chosen = list(STATEMENTS) if id is None else [get(id)]
    lines = columns([(s.id, s.kind, s.status, s.title) for s in chosen])
    if id is not None:
        (one,) = chosen
        kind = one.kind if one.kind == one.status else f"{one.kind}, {one.status}"
        lines = [f"{one.id}: {one.title} ({kind}; {one.source})", one.claim]
        if one.correction:
            lines.append(f"Correction: {one.correction}")
        if one.prior:
            lines.append(f"Prior work: {one.prior}")
        lines.extend(f"Needs: {hypothesis.text}" for hypothesis in one.hypotheses)
    print_answer(json, [statement.to_dict() for statement in chosen], *lines)
