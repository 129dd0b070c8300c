"""The page is self-contained and says what the evidence says."""

import json
import re

import pytest

from neuromanifold.paper.checks.evidence import Evidence
from neuromanifold.paper.checks.run import check_statement
from neuromanifold.paper.report.mathematics import typeset
from neuromanifold.paper.report.write import results, write_report
from neuromanifold.statements import STATEMENTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M_i", "<i>M</i><sub><i>i</i></sub>"),
        ("L_{i-1}ᵀ", "<i>L</i><sub><i>i</i>−1</sub>ᵀ"),
        ("C^{-T}", "<i>C</i><sup>−<i>T</i></sup>"),
        ("3^l", "3<sup><i>l</i></sup>"),
        ("λ^(3^(l−i))", "<i>λ</i><sup>3<sup><i>l</i>−<i>i</i></sup></sup>"),
        ("A lightning layer", "A lightning layer"),
        ("A Segre variety, a 2, to 1e-08", "A Segre variety, a 2, to 1e-08"),
        ("V = 0 with A of rank 2", "<i>V</i> = 0 with <i>A</i> of rank 2"),
        ("rank A = 1", "rank <i>A</i> = 1"),
        ("a < d & b", "<i>a</i> &lt; <i>d</i> &amp; <i>b</i>"),
        ("layer's function", "layer's function"),
        (
            "X Xᵀ, 2X and K' = C K",
            "<i>X</i> <i>X</i>ᵀ, 2<i>X</i> and <i>K</i>' = <i>C</i> <i>K</i>",
        ),
        ("2ad + dd' − a²", "2<i>ad</i> + <i>dd'</i> − <i>a</i>²"),
        ("Token i, e.g. thm-3.2", "Token <i>i</i>, e.g. thm-3.2"),
        ("<script>", "&lt;script&gt;"),
    ],
)
def test_formulas_are_set(text, expected):
    assert typeset(text) == expected


def sample():
    """Evidence of every statement, made up but for the figures' own."""
    return [
        check_statement(statement.id, quick=True)
        if statement.id in ("fig-2", "fig-4")
        else Evidence(
            statement.id,
            "holds",
            f"checked-{statement.id}",
            {"cases": 2, "failures": [], "counterexample": {"text": f"example-{statement.id}"}},
            0.5,
        )
        for statement in STATEMENTS
        if statement.id not in ("fig-1", "fig-3", "consensus")
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(sample(), tmp_path_factory.mktemp("report"), quick=True)


def test_the_page_shows_every_statement_with_its_verdict(report):
    text = report.read_text(encoding="utf-8")
    for evidence in sample():
        assert f'<article id="{evidence.id}" class="{evidence.verdict}">' in text
    for statement in STATEMENTS:
        if statement.id.startswith("fig") or statement.id == "consensus":
            continue
        assert f"checked-{statement.id}." in text
        assert (f"example-{statement.id}<" in text) == (statement.correction is not None)


def test_the_page_needs_nothing_from_elsewhere(report):
    text = report.read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert "<script" not in text
    assert "@import" not in text
    assert text.count("data:image/svg+xml;base64,") == 2
    assert 'name="viewport"' in text


def test_the_page_has_the_redundancy_table(report):
    text = report.read_text(encoding="utf-8")
    assert "<td>1.5</td>" in text
    assert "<td>2.769</td>" in text


def test_results_have_the_form_that_is_promised(report):
    found = json.loads(report.with_name("results.json").read_text(encoding="utf-8"))
    assert set(found) == {"statements", "figures", "seconds"}
    assert all(
        set(entry) == {"id", "verdict", "checked", "evidence"} for entry in found["statements"]
    )
    assert set(found["figures"]) == {"fig-2", "fig-4"}
    for figure in found["figures"].values():
        assert (report.parent / figure["png"]).is_file()
        assert (report.parent / figure["svg"]).is_file()
    assert found["seconds"]["def-1"] == 0.5


def test_a_failure_is_named_and_shown(tmp_path):
    failed = Evidence("thm-3.2", "fails", "all", {"cases": 1, "failures": ["7 is not 8"]}, 0.1)
    report = write_report([failed], tmp_path)
    text = report.read_text(encoding="utf-8")
    assert "7 is not 8" in text
    assert '<article id="thm-3.2" class="fails">' in text


def test_a_figure_whose_check_failed_is_not_drawn(tmp_path):
    failed = Evidence("fig-3", "fails", "all", {"cases": 1, "failures": ["x"]}, 0.1)
    write_report([failed], tmp_path)
    assert not list(tmp_path.glob("*.png"))
    assert results([failed], [], {})["figures"] == {}
