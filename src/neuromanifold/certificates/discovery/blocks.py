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

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from scipy.sparse.csgraph import connected_components

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import null_space, rank
from neuromanifold.certificates.discovery.vector_fields import Field

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
    form = EchelonForm(solutions.shape[1], field)
    form.add(traceless)
    scalars = _scalars(traceless, factors, field)
    counted = EchelonForm(factors.shape[1], field)
    blocks = []
    for members in _components(fields, form.basis):
        rows = _supported(form.basis, fields, members)
        block = _named(fields, members, rows, field)
        own = _own_factors(fields, members, rows, field)
        traced = own is not None and not block.name.startswith("O_")
        allowed = traced and rank(np.vstack([scalars, own]), field) == len(scalars)
        if allowed and counted.add(own[None]):
            block = replace(block, dimension=block.dimension + 1)
        elif traced:
            block = replace(block, name=_traceless(block.name))
        blocks.append(block)
    return (*blocks, *_rest(fields, scalars, counted))


def _split(
    fields: tuple[Field, ...], solutions: Solutions, field: PrimeField
) -> tuple[Solutions, Float[np.ndarray, "solutions parts"]]:
    """The solutions with their matrices made traceless, and the factor of each part."""
    parts = list(dict.fromkeys(f.part for f in fields))
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


def _scalars(
    traceless: Solutions, factors: Float[np.ndarray, "solutions parts"], field: PrimeField
) -> Float[np.ndarray, "scalars parts"]:
    """The factors of the solutions whose traceless part is zero: tensors multiplied by numbers."""
    combinations = null_space(np.ascontiguousarray(traceless.T), field).T
    if not len(combinations):
        return np.zeros((0, factors.shape[1]))
    form = EchelonForm(factors.shape[1], field)
    form.add(field.matmul(np.ascontiguousarray(combinations), factors))
    return form.basis


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


def _named(
    fields: tuple[Field, ...], members: tuple[int, ...], rows: Solutions, field: PrimeField
) -> Block:
    """The block of these vectors, without its factor."""
    moves = tuple(_move(fields[k]) for k in members)
    axes = [fields[k] for k in members if fields[k].kind == "axis"]
    if not axes:
        return Block(_without_axes([fields[k] for k in members]), len(rows), moves)
    first = max(axes, key=lambda f: f.size)
    n = first.part.shape[first.axis]
    matrices = rows[:, first.unknowns].reshape(-1, n, n)
    affine = any(fields[k].kind != "axis" for k in members)
    return Block(_group(matrices, n, len(rows), affine, field), len(rows), moves)


def _group(
    matrices: Float[np.ndarray, "count n n"], n: int, count: int, affine: bool, field: PrimeField
) -> str:
    """The name of the group whose traceless matrices on an axis are spanned by these."""
    seen = rank(np.ascontiguousarray(matrices.reshape(len(matrices), -1)), field)
    skew = not np.any(field.reduce(matrices + matrices.mT))
    if skew and seen == n * (n - 1) // 2:
        name = f"O_{n}"
    else:
        name = _by_coordinates(matrices, seen) or f"{seen} dimensions of gl_{n}"
    more = f" and {count - seen} {'translations' if affine else 'more dimensions'}"
    return name + (more if count > seen else "")


def _by_coordinates(matrices: Float[np.ndarray, "count n n"], seen: int) -> str | None:
    """The name of a product of groups on coordinates that are not coupled; None if not known.

    The matrices lie in the product's algebra and are traceless: they are all that are so if they
    span one dimension less than it has.
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
    if dimension != seen + 1:
        return None
    if planes:
        names.insert(0, f"rotations and scalings of {planes} plane{'s' if planes > 1 else ''}")
    if single:
        names.append(f"scalings of {single}")
    return " and ".join(names)


def _traceless(name: str) -> str:
    """The name of a group without the factors of the whole space."""
    if name.startswith("GL_") and " " not in name:
        return f"S{name[1:]}"
    return name if " of gl_" in name else f"{name}, of determinant 1"


def _coupled(matrices: Float[np.ndarray, "count n n"]) -> list[list[int]]:
    """The coordinates in groups that some matrix mixes."""
    label = connected_components(np.any(matrices != 0, axis=0))[1]
    return [np.flatnonzero(label == k).tolist() for k in dict.fromkeys(label)]


def _is_rotary(matrices: Float[np.ndarray, "count 2 2"]) -> bool:
    """Whether these are multiples of rotations of a plane."""
    equal = np.array_equal(matrices[:, 0, 0], matrices[:, 1, 1])
    return equal and np.array_equal(matrices[:, 0, 1], -matrices[:, 1, 0])


def _without_axes(fields: list[Field]) -> str:
    if any(f.kind in ("measured", "along") for f in fields):
        return "shears that fix what a norm puts out"
    if any(f.kind == "gain" for f in fields):
        return "directions that a norm leaves out"
    if all(f.kind == "constant" for f in fields):
        return "dead" if len(fields) == 1 else "shift"
    return "translations"


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


def _own_factors(
    fields: tuple[Field, ...], members: tuple[int, ...], rows: Solutions, field: PrimeField
) -> Float[np.ndarray, " parts"] | None:
    """The factors that the identity matrix of the block's group would put on the tensors.

    If a tensor's matrices are c times those of the first axis, or of their transposes, throughout
    the block, the identity acts on it as the factor c: −1 on a dual, k on a power.
    """
    parts = list(dict.fromkeys(f.part for f in fields))
    axes = [fields[k] for k in members if fields[k].kind == "axis"]
    if not axes:
        return None
    factors = np.zeros(len(parts))
    first = _matrices(axes[0], rows)
    for f in axes:
        c = _ratio(_matrices(f, rows), first, field)
        if c is None:
            return None
        place = parts.index(f.part)
        factors[place] = field.reduce(np.array(factors[place] + c))
    return factors


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
    parts = list(dict.fromkeys(f.part for f in fields))
    return [
        Block("scaling", 1, tuple(part.name for part, x in zip(parts, row, strict=True) if x))
        for row in scalars
        if counted.add(row[None])
    ]
