"""Every statement is checked by the same code that `neuromanifold paper` runs."""

import pytest

from neuromanifold.statements import STATEMENTS, get
from neuromanifold.verification.checks import CHECKS
from neuromanifold.verification.run import check_statement


def test_every_statement_has_a_check_and_every_check_a_statement():
    assert list(CHECKS) == [statement.id for statement in STATEMENTS]


@pytest.mark.parametrize("id_", CHECKS)
def test_the_check_of_a_statement_holds(id_):
    evidence, statement = check_statement(id_, quick=True), get(id_)
    assert evidence.evidence["failures"] == []
    assert evidence.evidence["cases"] > 0
    if evidence.verdict == "corrected":
        assert statement.correction is not None
        assert evidence.evidence["counterexample"]["text"]
    else:
        assert evidence.verdict == ("conjecture" if statement.status == "conjecture" else "holds")


def test_a_correction_comes_with_its_counterexample():
    # Corollary 3.3 is right as printed; its correction drops hypotheses that are not needed.
    without = {
        statement.id
        for statement in STATEMENTS
        if statement.correction and check_statement(statement.id, quick=True).verdict == "holds"
    }
    assert without == {"cor-3.3"}
