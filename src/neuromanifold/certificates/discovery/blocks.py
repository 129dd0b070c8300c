"""Names for an algebra of vector fields: which tensors it moves, and as which group.

Multiplying a tensor by a number along one axis or along another is the same, so a solution is split
into the traceless parts of its matrices, which belong to an axis, and the factor by which it
multiplies each tensor. The traceless parts, the constants and the contractions fall into blocks
that share no unknowns: the reduced echelon form of a direct sum is the union of the echelon forms.
A block whose traceless matrices on an axis of size n are

    all of them              and a factor of its own: GL_n       (dimension n²), else SL_n
    all skew-symmetric ones  O_n                                 (n (n−1)/2)
    all diagonal ones        scalings of n                       (n)
    all pairs a, b; −b, a    rotations and scalings of n/2 planes

is named so, and those of a part of these by their number: a name that says a group means all of it.
What multiplies whole tensors and belongs to no block is named by the tensors.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from scipy.sparse.csgraph import connected_components

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.certificates.discovery.vector_fields import Field, Part

Solutions = Float[np.ndarray, "_ unknowns"]


@dataclass(frozen=True, slots=True)
class Block:
    """Symmetries that belong together.

    Attributes:
        name: the group: GL_4, O_3, scalings of 6, dead, shift.
        dimension: its dimension.
        moves: the tensors it moves, each with what is done to it: `layers.0.key axis 0`.
    """

    name: str
    dimension: int
    moves: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} on {', '.join(self.moves)}"


def blocks_of(
    fields: tuple[Field, ...], solutions: Solutions, field: PrimeField
) -> tuple[Block, ...]:
    """The blocks of an algebra, with their names."""
    if not len(solutions):
        return ()
    traceless, factors = _split(fields, solutions, field)
    form = EchelonForm(traceless.shape[1] + factors.shape[1], field)
    form.add(np.concatenate([traceless, factors], axis=1))
    width, is_scalar = traceless.shape[1], form.pivots >= traceless.shape[1]
    basis, scalars = form.basis[~is_scalar], form.basis[is_scalar, width:]
    allowed, counted = EchelonForm(factors.shape[1], field), EchelonForm(factors.shape[1], field)
    allowed.add(scalars)
    blocks = []
    for members in _components(fields, basis[:, :width]):
        rows = _supported(basis, fields, members)
        part = _Part(fields, members, rows[:, :width], rows[:, width:], field)
        blocks.append(
            part.coupled(allowed) if np.any(part.factors) else part.alone(allowed, counted)
        )
    return (*blocks, *_rest(fields, scalars, counted))


def _split(
    fields: tuple[Field, ...], solutions: Solutions, field: PrimeField
) -> tuple[Solutions, Float[np.ndarray, "solutions parts"]]:
    """The solutions with their matrices made traceless, and the factor of each part."""
    parts = _parts(fields)
    traceless = solutions.copy()
    factors = np.zeros((len(solutions), len(parts)))
    for f in fields:
        if f.kind != "axis":
            continue
        n = f.part.shape[f.axis]
        matrices = solutions[:, f.unknowns].reshape(-1, n, n)
        trace = field.reduce(np.trace(matrices, axis1=1, axis2=2))
        mean = field.multiply(trace, np.full_like(trace, field.from_fraction(Fraction(1, n))))
        place = parts.index(f.part)
        factors[:, place] = field.reduce(factors[:, place] + mean)
        changed = matrices - mean[:, None, None] * np.eye(n)
        traceless[:, f.unknowns] = field.reduce(changed.reshape(len(solutions), -1))
    return traceless, factors


def _components(fields: tuple[Field, ...], basis: Solutions) -> list[tuple[int, ...]]:
    """The fields that occur together in vectors of the echelon form, by their last vector."""
    held = np.logical_or.reduceat(basis != 0, [f.start for f in fields], axis=1).astype(int)
    label = connected_components(held.T @ held)[1]
    backwards = dict.fromkeys(label[held.argmax(axis=1)][::-1])
    return [tuple(np.flatnonzero(label == k).tolist()) for k in reversed(backwards)]


def _supported(basis: Solutions, fields: tuple[Field, ...], members: tuple[int, ...]) -> Solutions:
    """The vectors of the echelon form that lie in some fields."""
    inside = np.zeros(basis.shape[1], dtype=bool)
    for k in members:
        inside[fields[k].unknowns] = True
    return basis[np.any(basis[:, inside], axis=1)]


@dataclass(frozen=True, eq=False)
class _Part:
    """The vectors of an algebra that lie in some fields.

    Attributes:
        fields: all fields.
        members: the numbers of those.
        rows: the vectors, with traceless matrices.
        factors: by what each multiplies the tensors besides, modulo the factors that are symmetries
            by themselves.
        field: the prime field.
    """

    fields: tuple[Field, ...]
    members: tuple[int, ...]
    rows: Solutions
    factors: Float[np.ndarray, "_ parts"]
    field: PrimeField

    @property
    def own(self) -> list[Field]:
        """The fields."""
        return [self.fields[k] for k in self.members]

    @property
    def axes(self) -> list[Field]:
        """Those on axes, the one with the most unknowns first."""
        return sorted((f for f in self.own if f.kind == "axis"), key=lambda f: -f.size)

    def alone(self, allowed: EchelonForm, counted: EchelonForm) -> Block:
        """The block of vectors that multiply no tensor, with its identity if that is allowed."""
        count, moves = len(self.rows), tuple(map(_move, self.own))
        if not self.axes:
            return Block(_without_axes(self.own, count), count, moves)
        matrices, own = _matrices(self.axes[0], self.rows), self._identity()
        skew = not np.any(self.field.reduce(matrices + matrices.mT))
        whole = own is not None and not skew and not np.any(allowed.reduce(own[None]))
        if whole and counted.add(own[None]):
            count += 1
            matrices = np.concatenate([matrices, np.eye(matrices.shape[1])[None]])
        return Block(self._group(matrices, skew), count, moves)

    def coupled(self, allowed: EchelonForm) -> Block:
        """The block of vectors that multiply tensors besides: their matrices have traces.

        A group that acts about a point other than zero is of that kind: (1 + g) and W of W (1 + g),
        where the identity of the group also moves g by a constant.
        """
        count, scaled = len(self.rows), np.any(self.factors, axis=0)
        parts = [p.name for p, held in zip(_parts(self.fields), scaled, strict=True) if held]
        moves = [_move(f) for f in self.own]
        besides = [p for p in parts if all(f.part.name != p for f in self.own if f.kind == "axis")]
        moves = (*besides, *moves)
        own = self._identity()
        if not self.axes or own is None:
            what = "scaling about a point" if count == 1 else "scalings and translations"
            name = f"{_counted(count)} of matrices and factors" if self.axes else what
            return Block(name, count, moves)
        n = self.axes[0].part.shape[self.axes[0].axis]
        matrices, identity = _matrices(self.axes[0], self.rows), allowed.reduce(own[None])[0]
        shares = _shares(self.factors, identity, self.field)
        if shares is None:
            return Block(f"{_counted(count)} of matrices and factors", count, moves)
        matrices = self.field.reduce(matrices + shares[:, None, None] * np.eye(n))
        return Block(self._group(matrices, skew=False), count, moves)

    def _group(self, matrices: Float[np.ndarray, "count n n"], skew: bool) -> str:
        """The name of the group with these matrices."""
        n, count = matrices.shape[1], len(matrices)
        seen = rank(np.ascontiguousarray(matrices.reshape(count, -1)), self.field)
        traceless = not np.any(self.field.reduce(np.trace(matrices, axis1=1, axis2=2)))
        if skew and seen == n * (n - 1) // 2:
            name = f"O_{n}"
        else:
            name = _by_coordinates(matrices, seen, traceless) or f"{_counted(seen)} of gl_{n}"
        affine = any(f.kind != "axis" for f in self.own)
        more = f" and {_counted(count - seen, 'translation' if affine else 'more dimension')}"
        return name + (more if count > seen else "")

    def _identity(self) -> Float[np.ndarray, " parts"] | None:
        """The factors that the identity matrix of the block's group would put on the tensors.

        If a tensor's matrices are c times those of the first axis, or of their transposes,
        throughout the block, the identity acts on it as the factor c: −1 on a dual, k on a power.
        """
        if not self.axes:
            return None
        parts = _parts(self.fields)
        factors, first = np.zeros(len(parts)), _matrices(self.axes[0], self.rows)
        for f in self.axes:
            c = _ratio(_matrices(f, self.rows), first, self.field)
            if c is None:
                return None
            place = parts.index(f.part)
            factors[place] = self.field.reduce(np.array(factors[place] + c))
        return factors


def _by_coordinates(
    matrices: Float[np.ndarray, "count n n"], seen: int, traceless: bool
) -> str | None:
    """The name of a product of groups on coordinates that are not coupled; None if not known.

    The matrices lie in the product's algebra, and are all of it if they span its dimension, or all
    that is traceless if they span one less.
    """
    planes, single, dimension = 0, 0, 0
    names: list[str] = []
    for group in _coupled(matrices):
        inside = matrices[:, group][:, :, group]
        if len(group) == 1:
            single += 1
            dimension += 1
        elif len(group) == 2 and _is_rotary(inside):
            planes += 1
            dimension += 2
        else:
            names.append(f"GL_{len(group)}")
            dimension += len(group) ** 2
    if dimension != seen + traceless:
        return None
    if planes:
        names.insert(0, f"rotations and scalings of {planes} plane{'s' if planes > 1 else ''}")
    if single:
        names.append(f"scalings of {single}")
    name = " and ".join(names)
    if not traceless:
        return name
    return (
        f"S{name[1:]}" if len(names) == 1 and not single + planes else f"{name}, of determinant 1"
    )


def _coupled(matrices: Float[np.ndarray, "count n n"]) -> list[list[int]]:
    """The coordinates in groups that some matrix mixes."""
    label = connected_components(np.any(matrices != 0, axis=0))[1]
    return [np.flatnonzero(label == k).tolist() for k in dict.fromkeys(label)]


def _is_rotary(matrices: Float[np.ndarray, "count 2 2"]) -> bool:
    """Whether these are multiples of rotations of a plane."""
    equal = np.array_equal(matrices[:, 0, 0], matrices[:, 1, 1])
    return equal and np.array_equal(matrices[:, 0, 1], -matrices[:, 1, 0])


def _counted(number: int, what: str = "dimension") -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _without_axes(fields: list[Field], count: int) -> str:
    if any(f.kind in ("measured", "along") for f in fields):
        return "shears that fix what a norm puts out"
    if any(f.kind == "gain" for f in fields):
        return "directions that a norm leaves out"
    if any(f.kind != "constant" for f in fields):
        return "translations"
    if len(fields) > 1:
        return "shift"
    return "dead" if count == fields[0].size else "translations"


def _move(f: Field) -> str:
    source = f.source.name if f.source else "1"
    return (
        f.part.name
        + {
            "axis": f" axis {f.axis}",
            "constant": " constant",
            "contraction": f" absorbing {source}",
            "gain": f" along 1/{source}",
            "measured": f" axis {f.axis} measured by 1/{source}",
            "along": f" axis {f.axis} along 1/{source}",
        }[f.kind]
    )


def _shares(
    factors: Float[np.ndarray, "count parts"],
    identity: Float[np.ndarray, " parts"],
    field: PrimeField,
) -> Float[np.ndarray, " count"] | None:
    """The numbers c with factors = c ⊗ identity; None if there are none."""
    if not np.any(identity):
        return None
    at = int(np.argmax(identity != 0))
    inverse = np.full(len(factors), field.inverse(identity[at : at + 1])[0])
    shares = field.multiply(np.ascontiguousarray(factors[:, at]), inverse)
    same = field.multiply(shares[:, None], identity[None])
    return shares if np.array_equal(same, factors) else None


def _parts(fields: tuple[Field, ...]) -> list[Part]:
    """What the fields move, in the order of the factors."""
    return list(dict.fromkeys(f.part for f in fields))


def _matrices(f: Field, rows: Solutions) -> Float[np.ndarray, "count n n"]:
    n = f.part.shape[f.axis]
    return rows[:, f.unknowns].reshape(-1, n, n)


def _ratio(
    mine: Float[np.ndarray, "count n n"], first: Float[np.ndarray, "count n n"], field: PrimeField
) -> float | None:
    """The number c with mine = c first, or c times the transposes; None if there is none."""
    if mine.shape != first.shape or not np.any(first):
        return None
    for other in (first, np.ascontiguousarray(first.mT)):
        at = np.unravel_index(np.argmax(other != 0), other.shape)
        inverse = field.inverse(np.array(other[at]))
        c = field.multiply(np.array(mine[at]), inverse)
        if np.array_equal(field.multiply(np.broadcast_to(c, other.shape).copy(), other), mine):
            return float(c)
    return None


def _rest(
    fields: tuple[Field, ...], scalars: Float[np.ndarray, "scalars parts"], counted: EchelonForm
) -> list[Block]:
    """Factors of whole tensors that belong to no block."""
    parts = _parts(fields)
    return [
        Block("scaling", 1, tuple(part.name for part, x in zip(parts, row, strict=True) if x))
        for row in scalars
        if counted.add(row[None])
    ]
