"""Spaces between tensors, the groups that act on them, and tensors with an axis in each.

A *space* is a place between tensors: the keys of a head, the hidden neurons of an MLP, the residual
stream. A *tensor* has one axis in a space, or in its dual, for each of its indices. The *group* of
a space says which changes of its basis the network does not see: with g acting on the axes in the
space and g^{-T} on those in its dual, a contraction over the space stays what it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from neuromanifold.errors import DiagramError

Matrix = Float[np.ndarray, "m m"]


@dataclass(frozen=True)
class Group(ABC):
    """A group of changes of basis; every element is a matrix, and composition its product.

    An *affine* group acts on points, x ↦ g x + c. Its elements are the matrices [[g, c], [0, 1]] of
    one row and column more, so that composition is again the product.

    Attributes:
        size: the size n of the space it acts on.
        affine: whether the elements also translate.
    """

    size: int
    affine: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in mathematics: GL_4."""

    @abstractmethod
    def random(self, generator: np.random.Generator, condition: float = 10.0) -> Matrix:
        """A random element, its linear part of condition number at most `condition`."""

    @abstractmethod
    def generators(self) -> Float[np.ndarray, "count m m"]:
        """A basis of the Lie algebra, none for a finite group.

        Every matrix has entries 0, 1 and −1, at most one that is not zero in a row or column: so it
        means the same over the reals and over every prime field, and multiplying is moving.
        """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The dimension of the group."""

    @abstractmethod
    def power(self, linear: Float[np.ndarray, "*over n n"], exponent: int) -> np.ndarray:
        """How an element's linear part acts on an axis of this power: 1 the space, −1 its dual."""

    def identity(self) -> Matrix:
        """The neutral element."""
        return np.eye(self.size + self.affine)


@dataclass(frozen=True, eq=False)
class Space:
    """A place between tensors.

    Attributes:
        name: its name, one of a kind in a network.
        size: its dimension.
        group: the changes of basis that the network does not see; None for the identity alone.
        over: other spaces for each index of which there is a copy of this one: the keys of the
            heads are one space over the heads. Their axes come first in a tensor.
        family: the line of a ledger that its group counts for; the name by default.
        statement: the id of the statement that makes the group a symmetry, where there is one.
    """

    name: str
    size: int
    group: Group | None = None
    over: "tuple[Space, ...]" = ()
    family: str = ""
    statement: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, Integral) or self.size < 1:
            raise DiagramError(f"the space {self.name} needs a size of at least 1; got {self.size}")
        if self.group is not None and not isinstance(self.group, Group):
            raise DiagramError(
                f"the group of the space {self.name} must be a group such as GL({self.size}); got "
                f"{self.group!r}"
            )
        if self.group is not None and self.group.size != self.size:
            raise DiagramError(
                f"the space {self.name} has size {self.size}, and {self.group.name} acts on "
                f"{self.group.size}; give a group of its size"
            )

    @property
    def axis(self) -> "Axis":
        """An axis of vectors of this space."""
        return Axis(self)

    @property
    def dual(self) -> "Axis":
        """An axis of linear forms on this space."""
        return Axis(self, -1)

    @property
    def point(self) -> "Axis":
        """An axis of points of this space, which translations move: that of a bias."""
        return Axis(self, 1, is_point=True)

    def power(self, exponent: int) -> "Axis":
        """An axis on which a scaling λ acts as its power λ^k, and a permutation as itself."""
        return Axis(self, exponent)


def ledger_lines(spaces: Iterable[Space]) -> dict[str, tuple[Space, ...]]:
    """The spaces with a group, by the line of a ledger that they count for."""
    lines: dict[str, tuple[Space, ...]] = {}
    for space in spaces:
        if space.group is not None:
            name = space.family or space.name
            lines[name] = (*lines.get(name, ()), space)
    return lines


@dataclass(frozen=True, slots=True)
class Axis:
    """One index of a tensor: in a space, in its dual, or in a power of it."""

    space: Space
    exponent: int = 1
    is_point: bool = False


@dataclass(frozen=True)
class Tensor:
    """The weights of one name, with an axis for each index.

    Attributes:
        name: its name.
        axes: spaces (meaning an axis in them) or axes.
        absorbs: tensors that read a space whose points may be translated by c, and from which this
            one takes up what that changes: the output bias absorbs O, b ↦ b − Σ O c.
    """

    name: str
    axes: tuple[Axis, ...]
    absorbs: tuple[str, ...] = field(default=())

    def __init__(self, name: str, axes: Sequence[Any], absorbs: tuple[str, ...] = ()) -> None:
        object.__setattr__(self, "name", name)
        wanted = [axis.axis if isinstance(axis, Space) else axis for axis in axes]
        for k, axis in enumerate(wanted):
            if not isinstance(axis, Axis):
                raise DiagramError(
                    f"axis {k} of the tensor {name} is in no space; got {axis!r}: give a Space or "
                    "its dual, and a space without a group where nothing may change"
                )
        object.__setattr__(self, "axes", tuple(wanted))
        object.__setattr__(self, "absorbs", tuple(absorbs))

    @classmethod
    def alone(cls, name: str, shape: Sequence[int]) -> "Tensor":
        """A tensor of which nothing is known: every axis is in a space of its own."""
        return cls(name, [Space(f"{name} axis {k}", size) for k, size in enumerate(shape)])

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes."""
        return tuple(axis.space.size for axis in self.axes)

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces of its axes."""
        return tuple(axis.space for axis in self.axes)


def check_diagram(tensors: tuple[Tensor, ...], network: str) -> None:
    """Raise unless names are unique and every copy of a space is numbered by leading axes."""
    names: dict[str, Space] = {}
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise DiagramError(f"two tensors of {network} are called {tensor.name}; rename one")
        seen.add(tensor.name)
        for space in (*tensor.spaces, *(base for s in tensor.spaces for base in s.over)):
            if names.setdefault(space.name, space) is not space:
                raise DiagramError(f"two spaces of {network} are called {space.name}; rename one")
    bases = {base for space in names.values() for base in space.over}
    for tensor in tensors:
        numbered = [k for k, space in enumerate(tensor.spaces) if space in bases]
        if numbered != list(range(len(numbered))):
            raise DiagramError(
                f"in {tensor.name} the axis of {tensor.spaces[numbered[-1]].name} numbers copies "
                "of another space, so it comes before all others; move it to the front"
            )
        for space in tensor.spaces:
            missing = [base for base in space.over if base not in tensor.spaces]
            if missing:
                raise DiagramError(
                    f"{tensor.name} has an axis in {space.name}, of which there is one for each of "
                    f"{missing[0].name}; it needs an axis there too"
                )
        for other in tensor.absorbs:
            if other not in {t.name for t in tensors}:
                raise DiagramError(f"{tensor.name} absorbs {other}, which {network} does not have")
