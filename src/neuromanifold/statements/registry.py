"""Looking statements up, and asking which of their hypotheses are unmet."""

from collections.abc import Mapping
from difflib import get_close_matches

from neuromanifold.architecture import Architecture
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
        word = statement_id.strip().lower().replace(" ", "-")
        near = get_close_matches(word, _BY_ID) or list(_BY_ID)[:3]
        raise ArgumentError(
            f"a statement id was wanted, like {' or '.join(near)}; got {statement_id!r}: "
            f"`neuromanifold statements` lists all {len(_BY_ID)}"
        )
    return _BY_ID[statement_id]


def unmet(statement: Statement, network: Architecture) -> tuple[str, ...]:
    """How a network fails the statement's hypotheses, in their order; empty when all are met.

    Hypotheses about weights are about those of `Facts`, or else about generic ones.

    >>> unmet(get("thm-3.7"), Architecture(widths=(3, 3, 3), ranks=(1, 2), tokens=2))
    ('tokens = 2 < 3', 'ranks[0] = 1 < 2')
    """
    facts = Facts.of(network)
    return tuple(
        failure for hypothesis in statement.hypotheses for failure in hypothesis.failures(facts)
    )


def applies(statement: Statement, network: Architecture) -> bool:
    """Whether a network meets all of the statement's hypotheses."""
    return not unmet(statement, network)
