"""Maps of an atlas: heat maps over two fields, parameters against dimension, growth along a field.

What is drawn is what was computed: the ranks found, hollow or with a ≥ where they are not proved to
be the dimension. Formulas appear only as differences from them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from neuromanifold.atlas.queries import MAP_VALUES, MapValue, map_cells
from neuromanifold.atlas.record import Record
from neuromanifold.atlas.table import cell, check_columns
from neuromanifold.errors import ArgumentError
from neuromanifold.files import check_writable
from neuromanifold.style import axes_for, figure_of, save_figure, write


def heat_map(
    records: Iterable[Record],
    x: str,
    y: str,
    value: MapValue = "dimension",
    ax: Axes | None = None,
) -> Axes:
    """The values over two fields; where several networks share a cell, their range is written.

    Args:
        records: what to draw; those without the value are left out.
        x: the field along the x axis, any column of a record.
        y: the field along the y axis.
        value: the rank found, the formula minus it, or the unexplained dimensions.
        ax: the axes to draw into; new ones by default.
    """
    check_columns((x, y), "field")
    _, title = MAP_VALUES[value]
    cells = map_cells(records, x, y, value)
    _something(cells, f"record with a value for {title!r}")
    across, up = _sorted({here.x for here in cells}), _sorted({here.y for here in cells})
    # A narrow map must still have room for its title.
    axes = axes_for(ax, max(5.0, 1.8 + 0.55 * len(across)), 1.6 + 0.45 * len(up))
    grid = np.full((len(up), len(across)), np.nan)
    for here in cells:
        j, i = across.index(here.x), up.index(here.y)
        grid[i, j] = max(here.low, here.high, key=abs)
        span = str(here.low) if here.low == here.high else f"{here.low}…{here.high}"
        sure = here.proved or value != "dimension"
        write(axes, j, i, span if sure else f"≥{span}", fontsize=7)
    image = axes.imshow(grid, origin="lower", aspect="auto", **_colours(grid, value))
    figure_of(axes).colorbar(image, ax=axes, label=title)
    axes.set_xticks(range(len(across)), [_label(v) for v in across])
    axes.set_yticks(range(len(up)), [_label(v) for v in up])
    axes.set(
        xlabel=x, ylabel=y, title=f"{title} ({sum(here.count for here in cells)} certificates)"
    )
    return axes


def scatter(records: Iterable[Record], ax: Axes | None = None) -> Axes:
    """Parameters against the rank found; full where it is proved to be the dimension."""
    points: dict[tuple[str, bool], set[tuple[int, int]]] = defaultdict(set)
    for record in records:
        if record.rank is not None:
            architecture = record.task.architecture
            kind = (architecture.attention, record.verdict == "exact")
            points[kind].add((architecture.parameters, record.rank))
    _something(points, "record with a result")
    axes = axes_for(ax, 5.5, 4.5)
    for (attention, exact), found in sorted(points.items()):
        parameters, ranks = zip(*sorted(found), strict=True)
        colour = "C0" if attention == "lightning" else "C1"
        how = "proved dimension" if exact else "rank found"
        axes.scatter(
            parameters,
            ranks,
            s=14,
            edgecolors=colour,
            facecolors=colour if exact else "none",
            label=f"{attention}, {how}",
        )
    largest = max(parameters for found in points.values() for parameters, _ in found)
    axes.plot([0, largest], [0, largest], color="0.7", linewidth=0.8, label="parameters")
    axes.set(xlabel="parameters", ylabel="dimension", xlim=(0, None), ylim=(0, None))
    axes.legend(fontsize=8)
    return axes


def growth(records: Iterable[Record], x: str, ax: Axes | None = None) -> Axes:
    """The rank found along one field, a line for each way to choose the other fields.

    Along the depth, networks with the same set of widths and of ranks share a line, which shows the
    largest rank found.
    """
    check_columns((x,), "field")
    lines: dict[str, dict[Any, int]] = defaultdict(dict)
    for record in records:
        if record.rank is not None:
            at = record.values()[x]
            line = lines[_others(record, x)]
            line[at] = max(record.rank, line.get(at, 0))
    _something(lines, "record with a result")
    across = _sorted({value for line in lines.values() for value in line})
    axes = axes_for(ax, 5.5, 4.5)
    for name, line in sorted(lines.items()):
        places = [i for i, value in enumerate(across) if value in line]
        axes.plot(places, [line[across[i]] for i in places], marker="o", markersize=3, label=name)
    axes.set_xticks(range(len(across)), [_label(v) for v in across])
    axes.set(xlabel=x, ylabel="rank found", ylim=(0, None))
    if len(lines) <= 12:
        axes.legend(fontsize=7)
    return axes


def save_map(axes: Axes, path: str | Path, *, force: bool = False) -> tuple[Path, Path]:
    """Write a map as PNG and as SVG; a .png or .svg at the end of the name is left out."""
    path = Path(path)
    stem = path.with_suffix("") if path.suffix in (".png", ".svg") else path
    files = stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".svg")
    for file in files:
        check_writable(file, force=force)
    save_figure(figure_of(axes), *files, force=force)
    return files


def _colours(grid: np.ndarray, value: MapValue) -> dict[str, Any]:
    """A colour scale that starts at zero, or for differences is white at zero."""
    largest = max(1.0, float(np.nanmax(np.abs(grid))))
    if value == "difference":
        return {"cmap": "RdBu", "vmin": -largest, "vmax": largest}
    return {"cmap": "Blues", "vmin": 0.0, "vmax": 1.4 * largest}  # dark text stays readable


_DEFAULTS = ("value_ranks ", "skip none", "mask none", "temperature 1", "heads 1", "readout logits")


def _others(record: Record, x: str) -> str:
    """What a network is apart from the field along the axis, in words."""
    fields = {**record.task.architecture.to_dict(), "readout": record.task.readout}
    words = []
    for key, value in fields.items():
        if key == x:
            continue
        sizes = tuple(value) if isinstance(value, list) else None
        if sizes is not None and x == "depth":
            sizes = tuple(sorted(set(sizes)))
        words.append(f"{key} {cell(value if sizes is None else sizes)}")
    return ", ".join(word for word in words if word not in _DEFAULTS)


def _something(found: object, wanted: str) -> None:
    if not found:
        raise ArgumentError(f"there is nothing to draw: no {wanted}; widen the filter")


def _sorted(values: Iterable[Any]) -> list[Any]:
    """Numbers by size, lists by length and then entry by entry, words by the alphabet."""
    return sorted(
        values,
        key=lambda v: (
            v is not None,
            len(v) if isinstance(v, Sequence) else 0,
            v if v is not None else 0,
        ),
    )


def _label(value: object) -> str:
    return "none" if value is None else cell(value)
