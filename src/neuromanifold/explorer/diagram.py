"""A network as a diagram: its spaces with their groups, its tensors between them, what moves what.

A symmetry is a change of basis in a space that the function does not see; so hovering over one
lights up its spaces and the tensors that have an axis there.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from neuromanifold.architecture import Architecture
from neuromanifold.formula.redundancy import Redundancy

LARGEST_DEPTH = 12
"""Layers up to which a diagram can be read."""


@dataclass(frozen=True, slots=True)
class SpaceNode:
    """A space of the diagram.

    Attributes:
        id: how tensors name it.
        label: what it is, in words.
        size: its dimension.
        copies: one for each head, or 1.
        group: the changes of basis that the function does not see.
        layer: where it is drawn.
        role: `stream`, `keys` or `values`.
    """

    id: str
    label: str
    size: int
    copies: int
    group: str
    layer: int
    role: str


@dataclass(frozen=True, slots=True)
class TensorEdge:
    """A tensor, from the space it reads to the space it writes."""

    name: str
    source: str
    target: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Symmetry:
    """A share of the parameters that the function does not show, and what it moves."""

    name: str
    dimension: int
    meaning: str
    spaces: tuple[str, ...]
    tensors: tuple[str, ...]


def diagram_of(found: Redundancy) -> dict[str, Any] | None:
    """The diagram of a network as JSON; None when it has too many layers to be read."""
    architecture = found.architecture
    if architecture.depth > LARGEST_DEPTH:
        return None
    spaces, tensors = list(_spaces(architecture)), list(_tensors(architecture))
    symmetries = [
        Symmetry(share.name, share.dimension, share.meaning, *_moved(share.name, spaces, tensors))
        for share in found.shares
    ]
    return {
        "spaces": [asdict(space) for space in spaces],
        "tensors": [asdict(tensor) for tensor in tensors],
        "symmetries": [asdict(symmetry) for symmetry in symmetries],
    }


def _spaces(architecture: Architecture) -> Iterator[SpaceNode]:
    depth, heads = architecture.depth, architecture.heads
    for i, width in enumerate(architecture.widths):
        inner = 0 < i < depth and architecture.skip != "residual"
        group = f"GL({width})" if inner else "fixed"
        label = "input" if i == 0 else "output" if i == depth else f"stream {i}"
        yield SpaceNode(f"stream.{i}", label, width, 1, group, i, "stream")
    for i, rank in enumerate(architecture.ranks):
        yield SpaceNode(f"keys.{i}", f"keys {i + 1}", rank, heads, f"GL({rank})", i, "keys")
    for i, rank in enumerate(architecture.value_ranks or ()):
        yield SpaceNode(f"values.{i}", f"values {i + 1}", rank, heads, f"GL({rank})", i, "values")


def _tensors(architecture: Architecture) -> Iterator[TensorEdge]:
    ends = {
        "query": ("stream.{0}", "keys.{0}"),
        "key": ("stream.{0}", "keys.{0}"),
        "value": ("stream.{0}", "stream.{1}"),
    }
    if architecture.value_ranks is not None:
        ends |= {"value": ("stream.{0}", "values.{0}"), "output": ("values.{0}", "stream.{1}")}
    for i, shapes in enumerate(architecture.shapes):
        for name, shape in shapes.items():
            source, target = (end.format(i, i + 1) for end in ends[name])
            yield TensorEdge(f"layers.{i}.{name}", source, target, shape)


def _moved(
    name: str, spaces: list[SpaceNode], tensors: list[TensorEdge]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The spaces whose basis a symmetry changes and the tensors that it moves.

    Scaling and head mixing are no changes of basis: they move every tensor of a layer.
    """
    roles = {"key-query": "keys", "value-output": "values", "inter-layer": "stream"}
    role = next((roles[start] for start in roles if name.startswith(start)), None)
    if role is None:
        moved = () if name.startswith("not seen") else tuple(tensor.name for tensor in tensors)
        return (), moved
    changed = {space.id for space in spaces if space.role == role and space.group != "fixed"}
    touched = [t.name for t in tensors if t.source in changed or t.target in changed]
    return tuple(sorted(changed)), tuple(touched)
