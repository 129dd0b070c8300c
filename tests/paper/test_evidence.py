"""What comparisons amount to: verdicts, failures, JSON."""

import json
from fractions import Fraction

import numpy as np
import pytest

from neuromanifold.errors import FileFormatError
from neuromanifold.files import as_json
from neuromanifold.paper.checks.evidence import Evidence, evidence_of
from neuromanifold.paper.checks.trial import Trial
from neuromanifold.statements import get


@pytest.mark.parametrize(
    ("compare", "case", "failure"),
    [
        (Trial.equal, ("n", 3, 3), None),
        (Trial.equal, ("n", 3, 4), "n: expected 3, found 4"),
        (Trial.equal, ("array", np.eye(2), np.eye(2)), None),
        (Trial.equal, ("shapes", np.eye(2), np.eye(3)), "shapes: expected"),
        (Trial.at_most, ("rank", 4, 4), None),
        (Trial.at_most, ("rank", 5, 4), "rank: 5 > 4"),
        (Trial.close, ("error", 1e-12, 1e-10), None),
        (Trial.close, ("error", 1e-9, 1e-10), "error: error 1e-09, tolerance 1e-10"),
        (Trial.close, ("error", float("nan"), 1e-10), "error: error nan"),
        (Trial.apart, ("functions", 0.5, 1e-3), None),
        (Trial.apart, ("functions", 0.0, 1e-3), "functions: distance 0"),
        (Trial.apart, ("functions", float("nan"), 1e-3), "functions: distance nan"),
    ],
)
def test_a_case_says_how_it_fails(compare, case, failure):
    trial = Trial(quick=True)
    compare(trial, *case)
    assert trial.cases == 1
    assert len(trial.failures) == (failure is not None)
    assert failure is None or trial.failures[0].startswith(failure)


def verdict(id_, *found, refutes=None):
    trial = Trial(quick=True)
    for number in found:
        trial.equal("number", 1, number)
    if refutes is not None:
        trial.refute("2 is not 3", refutes, {"two": 2})
    return evidence_of(get(id_), "", trial, 0.0).verdict


def test_verdicts_follow_from_cases_status_and_counterexample():
    assert verdict("thm-3.2", 1) == "holds"
    assert verdict("head-mixing", 1) == "conjecture"
    assert verdict("conj-3.10", 1) == "holds"
    assert verdict("redundancy", 1, refutes=True) == "corrected"
    assert verdict("thm-3.2", 1, 2) == "fails"
    assert verdict("redundancy", 2, refutes=True) == "fails"


def test_a_check_without_comparisons_or_with_a_false_counterexample_fails():
    assert verdict("thm-3.2") == "fails"
    assert verdict("redundancy", refutes=True) == "fails"
    assert verdict("redundancy", 1, refutes=False) == "fails"


def test_evidence_survives_json():
    trial = Trial(quick=True, numbers={"rank": np.int64(3), "table": {1: (2.5, None)}})
    trial.equal("one", 1, 1)
    trial.refute("2 is not 3", True, {"two": np.int64(2)})
    evidence = evidence_of(get("thm-3.2"), "one", trial, 1.5)
    data = json.loads(json.dumps({**evidence.to_dict(), "seconds": evidence.seconds}))
    assert Evidence.from_dict(data) == evidence
    assert evidence.evidence == {
        "cases": 1,
        "failures": [],
        "counterexample": {"text": "2 is not 3", "two": 2},
        "rank": 3,
        "table": {"1": [2.5, None]},
    }
    assert as_json(Fraction(1, 3)) == 1 / 3


@pytest.mark.parametrize("data", [{}, {"id": "x"}, [1], None])
def test_what_is_no_evidence_is_refused(data):
    with pytest.raises(FileFormatError, match="no evidence"):
        Evidence.from_dict(data)


def test_an_unknown_verdict_is_refused():
    with pytest.raises(FileFormatError, match="'perhaps'"):
        Evidence.from_dict(
            {"id": "x", "verdict": "perhaps", "checked": "", "evidence": {}, "seconds": 0}
        )
