"""The registry of statements: every numbered item of the paper, and every result of this project.

A statement says in our own words what is claimed, how it is known, under which hypotheses, and
what is wrong in the paper's version. Hypotheses are predicates on `Facts`, an architecture and what
is known of its weights. Code, tests and documentation cite statements by id.
"""

from neuromanifold.statements.facts import Facts
from neuromanifold.statements.registry import GROUPS, STATEMENTS, applies, get, unmet
from neuromanifold.statements.statement import Hypothesis, Kind, Statement, Status

__all__ = [
    "Facts",
    "GROUPS",
    "Hypothesis",
    "Kind",
    "STATEMENTS",
    "Statement",
    "Status",
    "applies",
    "get",
    "unmet",
]
