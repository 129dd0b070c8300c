"""A network's diagram as a value: spaces are boxes with their groups, tensors arrows between them.

A tensor goes from the spaces whose dual it has an axis in to those whose vectors it has: from what
it reads to what it writes. One with all axes in duals, a query, goes the way the others go; a bias
has an end and no start. A space stands as many columns to the right as there are tensors between it
and the input; in a column those that are read come first, so that the stream is the top row.
"""

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from neuromanifold.display import Recorded
from neuromanifold.networks.family import Family
from neuromanifold.networks.space import Space, Tensor, ledger_lines

LARGEST = 60
"""Spaces up to which a drawing can be read."""
_STEP, _ROW, _WIDE, _HIGH, _EDGE = 230.0, 112.0, 140.0, 56.0, 30.0


@dataclass(frozen=True, slots=True)
class SpaceNode:
    """A space of the diagram.

    Attributes:
        name: its name.
        size: its dimension.
        copies: how many there are of it: one for each head.
        group: the changes of basis that the network does not see; None for the identity alone.
        column: where it stands, from left to right.
        row: where it stands, from top to bottom.
    """

    name: str
    size: int
    copies: int
    group: str | None
    column: int
    row: int


@dataclass(frozen=True, slots=True)
class TensorEdge:
    """A tensor, from the spaces that it reads to those that it writes."""

    name: str
    shape: tuple[int, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Movement:
    """A family of symmetries: the spaces whose basis it changes and the tensors that it moves."""

    name: str
    spaces: tuple[str, ...]
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagram(Recorded):
    """The spaces, tensors and symmetries of a network, each space with a place to stand."""

    spaces: tuple[SpaceNode, ...]
    tensors: tuple[TensorEdge, ...]
    symmetries: tuple[Movement, ...]

    def svg(self) -> str:
        """The drawing, its parts marked `data-space` and `data-tensor`; empty when too large."""
        if not 0 < len(self.spaces) <= LARGEST:
            return ""
        places = {s.name: _place(s) for s in self.spaces}
        twins: Counter[tuple[float, ...]] = Counter()
        lines = "".join(_line(edge, places, twins) for edge in self.tensors)
        boxes = "".join(_box(space) for space in self.spaces)
        width = max(x for x, _ in places.values()) + _WIDE / 2 + _EDGE
        height = max(y for _, y in places.values()) + _HIGH + _EDGE
        label = "; ".join(f"{s.name}: size {s.size}, {s.group or 'fixed'}" for s in self.spaces)
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' "
            f"class='diagram' role='img' aria-label='Diagram: {html.escape(label)}' "
            f"font-family='sans-serif' font-size='12' text-anchor='middle' fill='currentColor' "
            f"style='max-width:{width:g}px;width:100%'>{lines}{boxes}</svg>"
        )


def diagram_of(tensors: Sequence[Tensor], families: Sequence[Family]) -> Diagram:
    """The diagram of tensors between spaces, and of symmetries that are no change of basis."""
    spaces = dict.fromkeys(space for tensor in tensors for space in tensor.spaces)
    drawn = [space for space in spaces if space.group or not _only_numbers(space, tensors)]
    edges = [_edge(tensor, drawn) for tensor in tensors]
    columns = _columns(edges)
    edges = [_oriented(edge, columns) for edge in edges]
    read = {name for edge in edges for name in edge.reads}
    rows: Counter[int] = Counter()
    nodes = {}
    for space in sorted(drawn, key=lambda s: (s.name not in read, s.group is not None)):
        column = columns.get(space.name, 0)
        nodes[space] = SpaceNode(
            name=space.name,
            size=space.size,
            copies=prod(base.size for base in space.over),
            group=space.group.name if space.group else None,
            column=column,
            row=rows[column],
        )
        rows[column] += 1
    movements = _movements(drawn, tensors, families)
    return Diagram(tuple(nodes[space] for space in drawn), tuple(edges), movements)


def _only_numbers(space: Space, tensors: Sequence[Tensor]) -> bool:
    """Whether a space counts the matrices of a stack: the heads, the queries of a group."""
    stacks = [[axis.space for axis in tensor.axes[:-2] if axis.exponent > 0] for tensor in tensors]
    is_base = any(space in other.over for tensor in tensors for other in tensor.spaces)
    return is_base or all(
        space in stack or space not in tensor.spaces
        for tensor, stack in zip(tensors, stacks, strict=True)
    )


def _edge(tensor: Tensor, drawn: Sequence[Space]) -> TensorEdge:
    axes = [axis for axis in tensor.axes if axis.space in drawn]
    reads = tuple(axis.space.name for axis in axes if axis.exponent < 0)
    writes = tuple(axis.space.name for axis in axes if axis.exponent >= 0)
    if len(axes) == 1:
        reads, writes = (), reads or writes
    return TensorEdge(tensor.name, tensor.shape, reads, writes)


def _columns(edges: Sequence[TensorEdge]) -> dict[str, int]:
    """How many tensors lie between a space and the input: those that are read and not written.

    Where everything is written, as a stream is, it starts from what is read most.
    """
    arrows = [edge for edge in edges if edge.reads and edge.writes]
    read = Counter(name for edge in arrows for name in edge.reads)
    written = {name for edge in arrows for name in edge.writes}
    reached = [name for name in read if name not in written]
    reached = reached or [name for name, _ in read.most_common(1)]
    columns = dict.fromkeys(reached, 0)
    for name in reached:
        for edge in edges:
            ends = edge.writes if edge.writes and name in edge.reads else ()
            for end in ends:
                if end not in columns:
                    columns[end] = columns[name] + 1
                    reached.append(end)
    return columns


def _oriented(edge: TensorEdge, columns: Mapping[str, int]) -> TensorEdge:
    """A tensor with all axes on one side goes from its leftmost space to the others."""
    ends = sorted(edge.reads + edge.writes, key=lambda name: columns.get(name, 0))
    if len(ends) < 2 or (edge.reads and edge.writes):
        return edge
    return TensorEdge(edge.name, edge.shape, (ends[0],), tuple(ends[1:]))


def _movements(
    spaces: Sequence[Space], tensors: Sequence[Tensor], families: Sequence[Family]
) -> tuple[Movement, ...]:
    changes = [
        Movement(line, tuple(space.name for space in changed), moved_by(changed, tensors))
        for line, changed in ledger_lines(spaces).items()
    ]
    others = [
        Movement(family.name, (), tuple(t.name for t in tensors if family.moves(t.name)))
        for family in families
    ]
    return (*changes, *others)


def moved_by(spaces: Sequence[Space], tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """The tensors with an axis in the spaces, and those that absorb what translations do there."""
    axes = {t.name: set(t.spaces).intersection(spaces) for t in tensors}
    translated = {n for n, met in axes.items() if any(s.group and s.group.affine for s in met)}
    return tuple(t.name for t in tensors if axes[t.name] or not translated.isdisjoint(t.absorbs))


def _place(space: SpaceNode) -> tuple[float, float]:
    return space.column * _STEP + _WIDE / 2 + _EDGE, space.row * _ROW + _HIGH + _EDGE


def _box(space: SpaceNode) -> str:
    x, y = _place(space)
    name, group = html.escape(space.name), html.escape(space.group or "fixed")
    size = f"{space.copies} × {space.size}" if space.copies > 1 else f"{space.size}"
    small = min(12, 1.8 * _WIDE / len(group))
    return (
        f"<g class='space{' free' if space.group else ''}' data-space='{name}'>"
        f"<title>{name}: size {size}, {group}</title>"
        f"<rect x='{x - _WIDE / 2:g}' y='{y - _HIGH / 2:g}' width='{_WIDE:g}' height='{_HIGH:g}' "
        f"rx='{20 if space.group else 4}' fill='#8883' stroke='currentColor' "
        f"stroke-width='{1.8 if space.group else 0.8}'/>"
        f"<text x='{x:g}' y='{y - 11:g}'>{name}</text><text x='{x:g}' y='{y + 4:g}'>{size}</text>"
        f"<text x='{x:g}' y='{y + 19:g}' font-size='{small:.3g}' opacity='.8'>{group}</text></g>"
    )


def _line(
    edge: TensorEdge,
    places: Mapping[str, tuple[float, float]],
    twins: Counter[tuple[float, ...]],
) -> str:
    """A tensor's arrows with one label; the second between two spaces bends away from the first."""
    shown = ""
    paths: list[str] = []
    for start, end in _ends(edge, places):
        bend = 18.0 * twins[(*start, *end)]
        twins[(*start, *end)] += 1
        path, x, y = _path(start, end, bend)
        paths.append(path)
        shown = shown or f"<text x='{x:g}' y='{y:g}'>{html.escape(edge.name.split('.')[-1])}</text>"
    name, shape = html.escape(edge.name), " × ".join(map(str, edge.shape))
    return (
        f"<g class='edge' data-tensor='{name}'><title>{name}: {shape}</title>"
        f"<path d='{' '.join(paths)}' fill='none' stroke='currentColor' opacity='.7'/>{shown}</g>"
    )


def _ends(
    edge: TensorEdge, places: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """From where to where its arrows go; that of a bias comes from below."""
    for target in edge.writes:
        x, y = places[target]
        if not edge.reads:
            yield (x, y + _HIGH), (x, y)
        for source in edge.reads:
            yield places[source], (x, y)


def _path(
    start: tuple[float, float], end: tuple[float, float], bend: float
) -> tuple[str, float, float]:
    """An arrow between two boxes, and where its label stands."""
    (x, y), (u, v) = start, end
    if x < u:
        x, u, v = x + _WIDE / 2, u - _WIDE / 2, v + bend / 2
        curve = f"M{x:g} {y:g}C{x + 40:g} {y + bend:g} {u - 40:g} {v + bend:g} {u:g} {v:g}"
        return f"{curve}m-7 -4l7 4l-7 4", (x + u) / 2, (y + v) / 2 + bend - 4
    if x == u and y == v + _HIGH:
        x, y, v = x + 4 * bend - 40, y - 8, v + _HIGH / 2
        return f"M{x:g} {y:g}V{v:g}m-4 7l4 -7l4 7", x, y + 12
    y, v = y - _HIGH / 2, v - _HIGH / 2
    high = min(y, v) - 24 - bend
    curve = f"M{x + 20:g} {y:g}C{x + 20:g} {high:g} {u - 20:g} {high:g} {u - 20:g} {v:g}"
    return f"{curve}m-4 -7l4 7l4 -7", x + 42, y - 8
