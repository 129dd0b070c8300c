"""What comparisons amount to: verdicts, failures, JSON."""

import json
from fractions import Fraction

import numpy as np
import pytest

from neuromanifold.errors import FileFormatError
from neuromanifold.files import plain
from neuromanifold.paper.checks.evidence import (
    Counterexample,
    Evidence,
    Finding,
    apart,
    close,
    equal,
    evidence_of,
)
from neuromanifold.statements import get


@pytest.mark.parametrize(
    ("case", "failure"),
    [
        (equal("n", 3, 3), None),
        (equal("n", 3, 4), "expected 3, found 4"),
        (equal("array", np.eye(2), np.eye(2)), None),
        (equal("shapes", np.eye(2), np.eye(3)), "expected"),
        (close("error", 1e-12, 1e-10), None),
        (close("error", 1e-9, 1e-10), "error 1e-09, tolerance 1e-10"),
        (close("error", float("nan"), 1e-10), "error nan"),
        (apart("functions", 0.5, 1e-3), None),
        (apart("functions", 0.0, 1e-3), "distance 0"),
    ],
)
def test_a_case_says_how_it_fails(case, failure):
    assert (case.failure is None) == (failure is None)
    assert failure is None or failure in case.failure


GOOD, BAD = equal("good", 1, 1), equal("bad", 1, 2)


def verdict(id_, *cases, counterexample=None):
    return evidence_of(get(id_), Finding("", list(cases), {}, counterexample), 0.0).verdict


def test_verdicts_follow_from_cases_status_and_counterexample():
    shown = Counterexample("2 is not 3", True, {"two": 2})
    assert verdict("thm-3.2", GOOD) == "holds"
    assert verdict("head-mixing", GOOD) == "conjecture"
    assert verdict("conj-3.10", GOOD) == "holds"
    assert verdict("redundancy", GOOD, counterexample=shown) == "corrected"
    assert verdict("thm-3.2", GOOD, BAD) == "fails"
    assert verdict("redundancy", BAD, counterexample=shown) == "fails"


def test_a_check_without_comparisons_or_with_a_false_counterexample_fails():
    refuted = Counterexample("3 is not 3", False, {})
    assert verdict("thm-3.2") == "fails"
    assert verdict("redundancy", GOOD, counterexample=refuted) == "fails"


def test_evidence_survives_json():
    finding = Finding("one", [GOOD], {"rank": np.int64(3), "table": {1: (2.5, None)}})
    evidence = evidence_of(get("thm-3.2"), finding, 1.5)
    data = json.loads(json.dumps({**evidence.to_dict(), "seconds": evidence.seconds}))
    assert Evidence.from_dict(data) == evidence
    assert evidence.evidence == {
        "cases": 1,
        "failures": [],
        "rank": 3,
        "table": {"1": [2.5, None]},
    }
    assert plain(Fraction(1, 3)) == "1/3"


@pytest.mark.parametrize("data", [{}, {"id": "x"}, [1], None])
def test_what_is_no_evidence_is_refused(data):
    with pytest.raises(FileFormatError, match="no evidence"):
        Evidence.from_dict(data)


def test_an_unknown_verdict_is_refused():
    with pytest.raises(FileFormatError, match="'perhaps'"):
        Evidence.from_dict(
            {"id": "x", "verdict": "perhaps", "checked": "", "evidence": {}, "seconds": 0}
        )
