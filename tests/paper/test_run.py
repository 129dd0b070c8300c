"""Running checks: what is kept, what is done again, and what a broken formula does."""

import pytest

from neuromanifold.errors import ArgumentError
from neuromanifold.formula import all_widths
from neuromanifold.networks import virtual
from neuromanifold.paper.checks import run, virtual_weights
from neuromanifold.paper.checks.exact_dimensions import certified


def checked(folder, *ids, **options):
    return list(run.check_statements(ids, quick=True, folder=folder, **options))


@pytest.fixture
def counted(monkeypatch):
    """A check that counts its calls, in place of that of eq-1."""
    calls = []

    def check(trial):
        calls.append((trial.quick, trial.seed))
        trial.equal("one", 1, 1)
        return "nothing much"

    monkeypatch.setitem(run.CHECKS, "eq-1", check)
    return calls


def test_finished_checks_are_kept(tmp_path, counted):
    first = checked(tmp_path, "eq-1")
    assert checked(tmp_path, "eq-1") == first
    assert counted == [(True, 0)]


def test_another_seed_grid_or_source_is_checked_again(tmp_path, counted, monkeypatch):
    checked(tmp_path, "eq-1")
    checked(tmp_path, "eq-1", seed=1)
    list(run.check_statements(["eq-1"], quick=False, folder=tmp_path))
    assert counted == [(True, 0), (True, 1), (False, 0)]
    monkeypatch.setattr(run.neuromanifold, "__version__", "edited")
    list(run.check_statements(["eq-1"], quick=False, folder=tmp_path))
    assert len(counted) == 4


def test_the_key_depends_on_every_source_file(tmp_path, monkeypatch):
    package = tmp_path / "package"
    package.mkdir()
    for name in ("__init__.py", "formula.py"):
        (package / name).write_text("x = 1\n")
    monkeypatch.setattr(run.neuromanifold, "__file__", str(package / "__init__.py"))
    before = run._key(True, 0)
    assert run._key(True, 0) == before
    (package / "formula.py").write_text("x = 2\n")
    assert run._key(True, 0) != before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"key": 1}', "\x00"])
def test_a_broken_file_is_no_evidence(tmp_path, counted, content):
    (tmp_path / "eq-1.json").write_text(content)
    assert checked(tmp_path, "eq-1")[0].verdict == "holds"
    assert len(counted) == 1


def test_failures_are_not_kept(tmp_path, monkeypatch):
    def stops(trial):
        raise ZeroDivisionError("of all things")

    monkeypatch.setitem(run.CHECKS, "eq-1", stops)
    (evidence,) = checked(tmp_path, "eq-1")
    assert evidence.verdict == "fails"
    assert evidence.evidence["failures"] == ["the check stopped: ZeroDivisionError: of all things"]
    assert not list(tmp_path.iterdir())


def test_an_unknown_statement_is_refused():
    with pytest.raises(ArgumentError, match="thm-9"):
        run.check_statement("thm-9")


@pytest.fixture
def fresh_certificates():
    certified.cache_clear()
    yield
    certified.cache_clear()


@pytest.mark.parametrize("id_", ["cor-3.3", "cor-3.8", "all-widths"])
def test_a_broken_dimension_formula_is_found(id_, monkeypatch, fresh_certificates):
    right = all_widths.virtual_dimension

    def broken(*arguments):
        return right(*arguments) + 1

    monkeypatch.setattr(all_widths, "virtual_dimension", broken)
    evidence = run.check_statement(id_, quick=True)
    assert evidence.verdict == "fails"
    assert "expected dimension" in evidence.evidence["failures"][0]


def test_a_broken_base_three_rule_is_found(monkeypatch):
    right = virtual.unrolled_factor

    def broken(j):
        layer, transposed = right(j)
        return layer, transposed != (j == 6)

    for module in (virtual, virtual_weights):
        monkeypatch.setattr(module, "unrolled_factor", broken)
    assert run.check_statement("eq-12", quick=True).verdict == "fails"
    assert run.check_statement("fig-2", quick=True).verdict == "fails"
    assert run.check_statement("fig-4", quick=True).verdict == "fails"
