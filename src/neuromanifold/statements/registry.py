"""Looking statements up, and asking which of their hypotheses are unmet."""

from collections.abc import Mapping

from neuromanifold.errors import ArgumentError
from neuromanifold.statements import beyond, deep, gauge, objects, single_layer, softmax
from neuromanifold.statements.facts import Facts
from neuromanifold.statements.statement import Statement

GROUPS: Mapping[str, tuple[Statement, ...]] = {
    "The objects": objects.STATEMENTS,
    "One layer": single_layer.STATEMENTS,
    "Deep networks": deep.STATEMENTS,
    "Softmax networks": softmax.STATEMENTS,
    "Beyond the paper": beyond.STATEMENTS,
    "Real transformers": gauge.STATEMENTS,
}
STATEMENTS: tuple[Statement, ...] = tuple(one for group in GROUPS.values() for one in group)
_BY_ID = {statement.id: statement for statement in STATEMENTS}


def get(statement_id: str) -> Statement:
    """The statement with this id."""
    if statement_id not in _BY_ID:
        raise ArgumentError(
            f"a statement id was wanted; got {statement_id!r}: choose one of {', '.join(_BY_ID)}"
        )
    return _BY_ID[statement_id]


def unmet(statement: Statement, facts: Facts) -> tuple[str, ...]:
    """How the facts fail the statement's hypotheses, in their order; empty when all are met.

    >>> unmet(get("thm-3.7"), Facts(widths=(3, 3, 3), ranks=(1, 2), tokens=2))
    ('tokens = 2 < 3', 'ranks[0] = 1 < 2')
    """
    return tuple(
        failure for hypothesis in statement.hypotheses for failure in hypothesis.failures(facts)
    )


def applies(statement: Statement, facts: Facts) -> bool:
    """Whether the facts meet all of the statement's hypotheses."""
    return not unmet(statement, facts)
