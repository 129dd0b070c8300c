"""The committed tables were made by the shipped grids, and show what the documentation says."""

import csv
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.atlas.computation import run_task
from neuromanifold.atlas.grid import load_grid
from neuromanifold.atlas.queries import status
from neuromanifold.atlas.shipped import named_file, shipped
from neuromanifold.atlas.table import Table, cell, open_atlas, write_csv
from neuromanifold.atlas.tasks import Task
from neuromanifold.errors import FileFormatError
from neuromanifold.formula.formula import dimension_formula
from neuromanifold.formula.layers import layers_bound
from neuromanifold.statements import Facts

TABLES = shipped("tables")

# Where counting only the mixing of heads gives too much: the image of few rank-one value maps is no
# more than their span (first), and sums of few rank-one tensors are of low rank in a third way.
LESS_THAN_MIXING = {
    Architecture((2, 4), (2,), 2, heads=3, value_ranks=(1,)): 21,
    Architecture((3, 2), (1,), 2, heads=5, value_ranks=(1,)): 35,
}


def widens(architecture):
    """Whether an interior layer is wider than the one before it, as far as its width counts."""
    c = Facts.of(architecture).seen_widths
    return any(c[i] > c[i - 1] for i in range(1, architecture.depth))


@cache
def table(name):
    """The rows of a table: (architecture, readout) to the row."""
    with TABLES[name].open(encoding="utf-8") as file:
        return {(_architecture(row), row["readout"]): row for row in csv.DictReader(file)}


def _architecture(row):
    def sizes(text):
        return tuple(map(int, text.split("-"))) if text else None

    return Architecture(
        widths=sizes(row["widths"]),
        ranks=sizes(row["ranks"]),
        tokens=int(row["tokens"]),
        attention=row["attention"],
        heads=int(row["heads"]),
        value_ranks=sizes(row["value_ranks"]),
        skip=row["skip"],
        mask=row["mask"],
    )


def ranks(*names):
    """The ranks found for the logits, by architecture."""
    return {
        architecture: int(row["rank"])
        for name in names
        for (architecture, readout), row in table(name).items()
        if readout == "logits"
    }


def test_every_shipped_grid_has_its_table():
    assert list(shipped("grids")) == list(TABLES) != []


def test_the_page_counts_what_the_tables_hold():
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "atlas.md").read_text("utf-8")
    for name in TABLES:
        rows = table(name).values()
        exact = sum(row["verdict"] == "exact" for row in rows)
        formulas = sum(bool(row["formula"]) for row in rows)
        theorems = sum(row["status"] == "theorem" for row in rows)
        assert f"| `{name}` | {len(rows)} | {exact} | {formulas} | {theorems} | 0 |" in page
    rows = [row for name in TABLES for row in table(name).values()]
    assert all(row["verdict"] == "exact" for row in rows)
    assert f"All {len(rows):,} rows are `exact`" in page
    deep = ranks("heads-deep")
    for attention in ("lightning", "softmax"):
        kind = [a for a in deep if a.attention == attention]
        wider = sum(map(widens, kind))
        assert f"| {attention} | {len(kind) - wider} | {wider} |" in page


@pytest.mark.parametrize("name", TABLES)
def test_a_table_holds_the_architectures_of_its_grid(name):
    grid = load_grid(name)
    assert set(table(name)) == set(product(grid.architectures(), grid.readouts))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_as_it_was_written(name, tmp_path):
    with open_atlas(name) as opened:
        records = list(opened.records())
        counted = status(opened)
    written = table(name)
    assert len(records) == counted.done == len(written)
    for record in records:
        row = written[record.task.architecture, record.task.readout]
        assert {column: cell(record.values()[column]) for column in row} == row
        assert (record.task.seed, record.task.prime) == (0, 8388593)
    write_csv(records, tmp_path / "whole.csv")
    assert list(Table(tmp_path / "whole.csv").records()) == records


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("2-2,1,2,5,6,exact", "called exact, and its bounds differ"),
        ("2-2,1,2,5,6,sure", "unknown word"),
        ("2-2,1,2,,,exact", "do not go together"),
        ("2-2,1,2,5", "as many cells"),
        ("2-2,1,2,5,5,exact,1", "as many cells"),
        ("2-2,1,2,5,,", "do not go together"),
        ("2-2,1,2,x,6,bounds", "invalid literal"),
        ("2-2,0,2,5,6,bounds", "at least 1"),
        (",1,2,5,6,bounds", "lacks its field 'widths'"),
    ],
)
def test_a_row_that_is_no_record_is_refused_with_its_line(line, sentence, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"widths,ranks,tokens,rank,upper,verdict\n2-2,1,2,5,5,exact\n{line}\n")
    with pytest.raises(FileFormatError, match=f"line 3: .*{sentence}"):
        list(Table(path).records())


def test_a_file_that_is_no_table_is_refused(tmp_path):
    for content in (b"a,b\n1,2\n", b"\xff\xfe\n\xff\n", b'widths\n"1'):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(FileFormatError, match="is no table of an atlas"):
            list(Table(tmp_path / "t.csv").records())


def test_a_file_comes_before_a_name_of_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named_file("heads", "grids").name == "heads.toml"
    (tmp_path / "heads").write_text("name = 'mine'")
    assert named_file("heads", "grids") == Path("heads")
    with pytest.raises(FileFormatError, match=r"give .* or a name: .*heads-wide"), open_atlas("x"):
        pass


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_table_are_found_again(name):
    rows = list(table(name).items())
    for (architecture, readout), row in rows[:: len(rows) // 2]:
        record = run_task(Task(architecture, readout, 0, 8388593))
        found = (record.rank, record.upper, record.verdict)
        assert found == (int(row["rank"]), int(row["upper"]), row["verdict"]), architecture


@pytest.mark.statement("head-mixing")
def test_formulas_disagree_with_no_row():
    differing = {
        architecture: int(row["rank"])
        for name in TABLES
        for (architecture, readout), row in table(name).items()
        if (formula := dimension_formula(architecture, readout).dimension) is not None
        and formula != int(row["rank"])
    }
    assert differing == {}


@pytest.mark.statement("head-mixing")
def test_one_layer_with_several_heads_reaches_the_smallest_of_the_proved_bounds():
    found = {a: n for a, n in ranks("heads", "heads-wide").items() if a.heads > 1}
    assert LESS_THAN_MIXING.items() <= found.items()
    assert len(found) > 1300
    assert {a: dimension_formula(a).dimension for a in found} == found


@pytest.mark.statement("head-mixing")
@pytest.mark.statement("layers-bound")
def test_deep_networks_with_heads_have_the_sum_of_their_layers():
    found = {a: n for a, n in ranks("heads-deep", "skips-and-masks").items() if a.heads > 1}
    assert len(found) > 900
    assert sum(map(widens, found)) > 200
    assert {a: layers_bound(a) for a in found} == found


@pytest.mark.parametrize(("tokens", "dimension"), [(2, 52), (3, 56)])
def test_softmax_heads_that_widen_see_less_with_two_tokens(tokens, dimension):
    network = Architecture((2, 4, 2), (2, 4), tokens, "softmax", heads=2)
    assert widens(network)
    assert layers_bound(network) == dimension
    assert run_task(Task(network, "logits", 0, 8388593)).rank == dimension


@pytest.mark.statement("inner-skip")
@pytest.mark.statement("residual-skip")
def test_skips_with_the_causal_mask_have_the_dimension_without_it():
    rows = {
        a: row for (a, _), row in table("skips-and-masks").items()
        if a.heads == 1 and a.skip != "none" and a.mask == "causal"
    }  # fmt: skip
    assert len(rows) > 150
    for a, row in rows.items():
        unmasked = Architecture.from_dict({**a.to_dict(), "mask": "none"})
        assert row["verdict"] == "exact"
        assert int(row["rank"]) == dimension_formula(unmasked).dimension


@pytest.mark.statement("readouts")
def test_probabilities_are_the_logits_of_one_output_less_and_decisions_one_dimension_less():
    rows = {key: int(row["rank"]) for key, row in table("readouts").items()}
    compared = 0
    for (a, readout), probabilities in rows.items():
        if readout != "probabilities" or a.skip == "residual":
            continue
        decisions = rows[a, "decisions"]
        if a.widths[-1] == 1:
            assert probabilities == decisions == 0
            continue
        assert decisions == probabilities - 1
        widths = (*a.widths[:-1], a.widths[-1] - 1)
        narrower = Architecture.from_dict({**a.to_dict(), "widths": widths})
        formula = dimension_formula(narrower).dimension
        assert formula is None or probabilities == formula
        compared += formula is not None
    assert compared > 100


def test_with_residual_skip_probabilities_lose_the_shifts_and_decisions_nothing_more():
    rows = {key: int(row["rank"]) for key, row in table("readouts").items()}
    found = [a for a, readout in rows if readout == "logits" and a.skip == "residual"]
    seen = [a for a in found if a.tokens > 1 and a.widths[-1] > 1]
    assert len(seen) > 15
    for a in seen:
        shifts = a.heads * a.widths[0]
        assert rows[a, "probabilities"] == rows[a, "logits"] - shifts == rows[a, "decisions"]
