"""The atlas view: the records of a store, filtered, over two fields, and row by row."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report

if TYPE_CHECKING:
    from neuromanifold.atlas.record import Record

LARGEST_ROWS = 200
LARGEST_POINTS = 5_000
LARGEST_CELLS = 3_000


def overview(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """How far the sweeps are, and the records that meet a condition, over two fields."""
    report("reading the atlas")
    from neuromanifold.atlas.queries import MAP_VALUES, map_cells, select, status
    from neuromanifold.atlas.record import COLUMNS
    from neuromanifold.atlas.table import cell as text_of
    from neuromanifold.atlas.table import open_atlas

    file, where = asked["files"]["atlas"], question.text(asked, "where")
    x, y = (
        question.word(asked, axis, COLUMNS, usual)
        for axis, usual in (("x", "ranks"), ("y", "heads"))
    )
    value = question.word(asked, "value", tuple(MAP_VALUES), "dimension")
    cell = question.texts(asked, "cell", 2)
    with open_atlas(Path(file["path"])) as store:
        found = status(store)
        records = list(select(store, where or None))
    chosen = [
        one
        for one in records
        if cell is None or cell == tuple(text_of(one.values()[axis]) for axis in (x, y))
    ]
    cells = map_cells(records, x, y, value)
    condition = f" --where {code.file_word(where)}" if where else ""
    asked_for = f", {where!r}" if where else ""
    return {
        "file": file["name"],
        **{name: getattr(found, name) for name in ("done", "exact", "failed", "left")},
        "columns": list(COLUMNS),
        "count": len(records),
        "x": x,
        "y": y,
        "value": value,
        "cells": [
            {**asdict(one), "x": text_of(one.x), "y": text_of(one.y)}
            for one in cells[:LARGEST_CELLS]
        ],
        "cells_left_out": max(0, len(cells) - LARGEST_CELLS),
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
