"""The atlas's commands answer, and misuse is one sentence and exit code 2."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from commands import run
from neuromanifold.atlas.computation import run_task
from neuromanifold.atlas.grid import load_grid
from neuromanifold.atlas.queries import select
from neuromanifold.atlas.record import COLUMNS
from neuromanifold.atlas.store import open_for_reading, open_for_writing
from neuromanifold.atlas.tasks import survey

GRID = """
[architecture]
widths = [[2, 2], [3, 2]]
ranks = { each = "1..2" }
tokens = 2
heads = "1..3"
attention = ["lightning", "softmax"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A grid and the finished store of its sweep."""
    folder = tmp_path_factory.mktemp("atlas")
    (folder / "g.toml").write_text(GRID)
    grid = load_grid(folder / "g.toml")
    records = [run_task(task) for task in survey(grid)]
    with open_for_writing(folder / "a.sqlite") as store:
        store.begin_sweep(grid, len(records), 0)
        store.add(records, grid, 1.0)
    return folder


def answer(capsys, *arguments):
    code, out, err = run(capsys, "atlas", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_status_counts_what_is_done(folder, capsys):
    found = answer(capsys, "status", folder / "a.sqlite")
    assert (found["done"], found["failed"], found["left"]) == (24, 0, 0)
    assert 0 < found["exact"] <= 24
    assert found["sweeps"][0]["tasks"] == 24
    assert "24 done" in run(capsys, "atlas", "status", folder / "a.sqlite")[1]


def test_show_lists_what_is_asked_for(folder, capsys):
    columns = ("--columns", "heads,rank,upper,unexplained,attention")
    everything = answer(capsys, "show", folder / "a.sqlite", "--rows", "0", *columns)
    assert len(everything["records"]) == 24
    three = answer(capsys, "show", folder / "a.sqlite", *columns, "--where", "heads == 3")
    assert three["records"] == [r for r in everything["records"] if r["heads"] == 3] != []
    assert answer(capsys, "show", folder / "a.sqlite", "--rows", "5")["more"] == 19
    out = run(capsys, "atlas", "show", folder / "a.sqlite", "--disagreements")[1]
    assert out.endswith("records, 0 shown\n") or "refuted" in out or "rank differs" in out


def test_show_lists_what_is_unexplained(folder, capsys, tmp_path):
    with open_for_reading(folder / "a.sqlite") as store:
        records = list(store.records())
    for number in range(0, len(records), 5):
        larger = records[number].upper + 1 + number
        records[number] = replace(records[number], upper=larger, verdict="bounds")
    grid = load_grid(folder / "g.toml")
    with open_for_writing(tmp_path / "b.sqlite") as store:
        store.begin_sweep(grid, len(records), 0)
        store.add(records, grid, 1.0)
    options = ("--columns", "network,heads,unexplained", "--unexplained", "--rows", "0")
    found = answer(capsys, "show", tmp_path / "b.sqlite", *options)["records"]
    expected = {records[n].task.architecture.name: 1 + n for n in range(0, len(records), 5)}
    assert {r["network"]: r["unexplained"] for r in found} == expected
    some = answer(capsys, "show", tmp_path / "b.sqlite", *options, "--where", "heads == 3")
    assert some["records"] == [r for r in found if r["heads"] == 3] != []


def test_tables_hold_every_record(folder, capsys, tmp_path):
    from pyarrow import parquet

    table, arrow = tmp_path / "a.csv", tmp_path / "a.parquet"
    found = answer(capsys, "export", folder / "a.sqlite", "--csv", table, "--parquet", arrow)
    assert set(found["rows"].values()) == {24}
    with open_for_reading(folder / "a.sqlite") as store:
        expected = [record.values() for record in select(store)]
    assert parquet.read_table(arrow).to_pylist() == [
        {key: list(value) if isinstance(value, tuple) else value for key, value in row.items()}
        for row in expected
    ]
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    assert [(r["network"], int(r["rank"]), r["widths"]) for r in rows] == [
        (r["network"], r["rank"], "-".join(map(str, r["widths"]))) for r in expected
    ]


def test_a_table_of_some_columns_and_rows(folder, capsys, tmp_path):
    path = tmp_path / "a.csv"
    options = ("--csv", path, "--columns", "heads,rank", "--where", "heads == 2")
    answer(capsys, "export", folder / "a.sqlite", *options)
    lines = path.read_text().splitlines()
    assert lines[0] == "heads,rank"
    assert len(lines) == 9
    assert all(line.startswith("2,") for line in lines[1:])


@pytest.mark.parametrize(
    ("command", "written", "there"),
    [
        (("export", "--parquet", "a.parquet", "--csv"), "a.csv", "a.csv"),
        (("map", "--out"), "a", "a.svg"),
    ],
)
def test_what_is_there_is_replaced_only_on_request(
    folder, capsys, tmp_path, command, written, there
):
    """They replaced it without a word."""
    (tmp_path / there).write_text("mine")
    verb, *options = (tmp_path / word if word.startswith("a.") else word for word in command)
    asked = ("atlas", verb, folder / "a.sqlite", *options, tmp_path / written)
    code, _, err = run(capsys, *asked)
    assert (code, [path.name for path in tmp_path.iterdir()]) == (2, [there])
    assert f"{there} exists; give another name, or --force to replace it" in err
    assert (tmp_path / there).read_text() == "mine"
    assert run(capsys, *asked, "--force")[0] == 0
    assert (tmp_path / there).read_text() != "mine"


def test_parquet_without_its_extra_is_a_sentence(folder, capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "a.parquet"
    code, _, err = run(capsys, "atlas", "export", folder / "a.sqlite", "--parquet", path)
    assert code == 2
    assert "needs the package pyarrow" in err
    assert "neuromanifold[parquet]" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        ("--x", "ranks", "--y", "heads"),
        ("--x", "widths", "--y", "heads", "--value", "difference"),
        ("--x", "ranks", "--y", "widths", "--value", "unexplained"),
        ("--kind", "scatter"),
        ("--kind", "growth", "--x", "heads"),
        ("--kind", "growth", "--x", "depth"),
    ],
)
def test_maps_are_written_as_png_and_svg(options, folder, capsys, tmp_path):
    found = answer(capsys, "map", folder / "a.sqlite", *options, "--out", tmp_path / "m")
    assert found["files"] == [str(tmp_path / "m.png"), str(tmp_path / "m.svg")]
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "m.svg").read_bytes()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    answer(capsys, "map", folder / "a.sqlite", *options, "--out", tmp_path / "m.svg", "--force")
    assert (tmp_path / "m.svg").read_bytes() == svg


def test_a_finished_sweep_starts_no_cluster(folder, capsys, monkeypatch):
    monkeypatch.setattr("neuromanifold.atlas.local_processes._Worker", None)
    code, out, _ = run(
        capsys, "atlas", "run", folder / "g.toml", "--out", folder / "a.sqlite", "--json"
    )
    assert code == 0
    assert json.loads(out)["computed"] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "no.toml", "--out", "x"), "no.toml is not a file"),
        (("run", "bad.toml", "--out", "x"), "bad.toml: unknown field 'head' in [architecture]"),
        (("run", "g.toml", "--out", "x", "--limit", "10"), "more than the limit of 10; say --yes"),
        (("run", "g.toml", "--out", "g.toml"), "g.toml is not an atlas"),
        (("run", "g.toml", "--out", "no/x"), "the folder no does not exist"),
        (("run", "g.toml", "--out", "x", "--workers", "0"), "--workers. Must be >= 1"),
        (("run", "g.toml", "--out", "x", "--time-limit", "0"), "--time-limit. Must be > 0"),
        (("show", "a.sqlite", "--rows", "-1"), "--rows. Must be >= 0"),
        (("run", "g.toml", "--out", "x", "--scheduler", "9"), "no Dask scheduler answers at 9"),
        (("status", "no.sqlite"), "no.sqlite is not a file"),
        (("status", "g.toml"), "g.toml is not an atlas"),
        (("show", "a.sqlite", "--where", "color > 1"), "unknown name 'color'"),
        (("show", "a.sqlite", "--columns", "color"), "unknown column 'color'"),
        (("export", "a.sqlite"), "nothing to write"),
        (("export", "a.sqlite", "--csv", "no/x.csv"), "the folder no does not exist"),
        (("map", "a.sqlite", "--out", "m", "--x", "color"), "unknown field 'color'"),
        (("map", "a.sqlite", "--out", "m", "--where", "heads > 9"), "nothing to draw"),
        (("map", "a.sqlite", "--out", "no/m"), "the folder no does not exist"),
    ],
)
def test_misuse_is_one_sentence_and_damages_nothing(
    arguments, sentence, folder, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("neuromanifold.atlas.dask_cluster._CONNECT_SECONDS", 0.5)
    for name in ("a.sqlite", "g.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "bad.toml").write_text(GRID + "head = 3\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(capsys, "atlas", *arguments)
    sentences = [line for line in err.splitlines() if line.startswith("neuromanifold: ")]
    assert (code, out, len(sentences)) == (2, "", 1)
    assert sentence in sentences[0]
    assert all("Traceback" not in line for line in err.splitlines())
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_every_command_has_help_with_an_example(capsys):
    for command in ("run", "status", "show", "map", "export"):
        code, out, _ = run(capsys, "atlas", command, "--help")
        assert code == 0
        assert f"Example: neuromanifold atlas {command}" in " ".join(out.split())


def test_looking_at_a_store_loads_no_array_library(folder):
    code = (
        "import sys; from neuromanifold.cli import main\n"
        f"main(['atlas', 'status', {str(folder / 'a.sqlite')!r}])\n"
        f"main(['atlas', 'show', {str(folder / 'a.sqlite')!r}])\n"
        "sys.exit(any(m in sys.modules for m in ('jax', 'numpy', 'distributed', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_a_run_without_a_file_is_called_after_its_grid(folder, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.sqlite", "g.toml"):
        (tmp_path / name.replace("a.", "g.")).write_bytes((folder / name).read_bytes())
    code, out, _ = run(capsys, "atlas", "run", "g.toml")
    assert code == 0
    assert out.startswith("g.sqlite: all 24 tasks of g are done; 0 were computed now")
