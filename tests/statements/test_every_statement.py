"""Every statement is checked by the same code that `neuromanifold paper` runs."""

import pytest

from neuromanifold.paper.checks import trial
from neuromanifold.paper.checks.run import CHECKS, check_statement
from neuromanifold.statements import STATEMENTS, get


def test_every_statement_has_a_check_and_every_check_a_statement():
    assert list(CHECKS) == [statement.id for statement in STATEMENTS]
    assert trial.CHECKS.keys() == CHECKS.keys()


NEEDLESS_HYPOTHESES = ("cor-3.3",)  # right as printed, and true without some of its hypotheses


@pytest.mark.parametrize("id_", CHECKS)
def test_the_check_of_a_statement_holds_and_a_correction_has_its_counterexample(id_):
    evidence, statement = check_statement(id_, quick=True), get(id_)
    assert evidence.evidence["failures"] == []
    assert evidence.evidence["cases"] > 0
    if statement.correction and id_ not in NEEDLESS_HYPOTHESES:
        assert evidence.verdict == "corrected"
        assert evidence.evidence["counterexample"]["text"]
    else:
        assert evidence.verdict == ("conjecture" if statement.status == "conjecture" else "holds")
