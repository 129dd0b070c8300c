"""The atlas view: the records of a store, filtered, over two fields, and row by row."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report

if TYPE_CHECKING:
    from neuromanifold.atlas.record import Record

VALUES = {"dimension": "rank", "difference": "difference", "unexplained": "unexplained"}
LARGEST_ROWS = 200
LARGEST_POINTS = 5_000
LARGEST_CELLS = 3_000


def overview(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """How far the sweeps are, and the records that meet a condition, over two fields."""
    report("reading the atlas")
    from neuromanifold.atlas.queries import select, status
    from neuromanifold.atlas.record import COLUMNS
    from neuromanifold.atlas.table import open_atlas

    file, where = asked["files"]["atlas"], question.text(asked, "where")
    x, y = (
        question.word(asked, axis, COLUMNS, usual)
        for axis, usual in (("x", "ranks"), ("y", "heads"))
    )
    value = question.word(asked, "value", tuple(VALUES), "dimension")
    cell = question.texts(asked, "cell", 2)
    with open_atlas(Path(file["path"])) as store:
        found = status(store)
        records = list(select(store, where or None))
    chosen = [one for one in records if cell is None or _place(one, x, y) == cell]
    condition = f" --where {code.file_word(where)}" if where else ""
    asked_for = f", {where!r}" if where else ""
    return {
        "file": file["name"],
        "done": found.done,
        "exact": found.exact,
        "failed": found.failed,
        "left": found.left,
        "columns": list(COLUMNS),
        "count": len(records),
        **_heat_map(records, x, y, value),
        "points": [_point(one) for one in records[:LARGEST_POINTS] if one.rank is not None],
        "rows": [_row(one) for one in chosen[:LARGEST_ROWS]],
        "rows_count": len(chosen),
        "code": code.shown(
            "from neuromanifold.atlas.queries import select\n"
            "from neuromanifold.atlas.table import open_atlas\n"
            f"with open_atlas({file['name']!r}) as store:\n"
            f"    records = list(select(store{asked_for}))\nprint(len(records))",
            f"neuromanifold atlas map {code.file_word(file['name'])} --x {x} --y {y} "
            f"--value {value}{condition} --out map",
        ),
    }


def _heat_map(records: "list[Record]", x: str, y: str, value: str) -> dict[str, Any]:
    """For every pair of values of two fields, the range of what was found there."""
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.values()[VALUES[value]] is not None:
            cells[_place(record, x, y)].append(record)
    return {
        "x": x,
        "y": y,
        "value": value,
        "cells": [
            {
                "x": place[0],
                "y": place[1],
                "low": min(one.values()[VALUES[value]] for one in here),
                "high": max(one.values()[VALUES[value]] for one in here),
                "count": len(here),
                "proved": all(one.verdict == "exact" for one in here),
            }
            for place, here in list(cells.items())[:LARGEST_CELLS]
        ],
        "cells_left_out": max(0, len(cells) - LARGEST_CELLS),
    }


def _place(record: "Record", x: str, y: str) -> tuple[str, str]:
    from neuromanifold.atlas.export import cell

    values = record.values()
    return cell(values[x]), cell(values[y])


def _point(record: "Record") -> dict[str, Any]:
    architecture = record.task.architecture
    return {
        "name": architecture.name,
        "architecture": architecture.to_dict(),
        "readout": record.task.readout,
        "seed": record.task.seed,
        "parameters": architecture.parameters,
        "rank": record.rank,
        "attention": architecture.attention,
        "exact": record.verdict == "exact",
    }


def _row(record: "Record") -> dict[str, Any]:
    """A record with what is needed to prove it again in the network view."""
    return {
        **record.values(),
        "architecture": record.task.architecture.to_dict(),
        "evidence": dict(record.evidence),
    }
