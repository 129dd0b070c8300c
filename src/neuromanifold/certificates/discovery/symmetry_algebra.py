"""The vector fields of `vector_fields` that lie in the kernel of a network's Jacobian everywhere.

Rows of the Jacobian at many random weights are linear equations for them, which are solved over a
prime field; the solutions are checked with rows that were held back, and those that move nothing
are divided out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.linear import LinearAlgebra, Modular
from neuromanifold.algebra.prime_field import PrimeField, Residues, ZeroResidueError
from neuromanifold.algebra.rank import rank_profile
from neuromanifold.certificates.discovery.moving import MovingRows, moving_rows
from neuromanifold.certificates.discovery.slices import Slice
from neuromanifold.certificates.discovery.vector_fields import (
    Field,
    Gain,
    Part,
    Rows,
    Weights,
    ansatz,
    equations,
    motions,
)
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.family import Element, Family, GeneratorBlock, Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.weights import checked_seed

LARGEST = 6_000
"""The most unknowns: their equations are a matrix of that size squared."""
_SPARE = 64
"""Rows beyond the number of unknowns."""
_FRESH = 4
"""Samples of an evaluation that are held back to check the solutions."""
_ROUNDS = 64
"""Evaluations beyond those that there are unknowns for: a cell may be that of one sample."""

Solutions = Float[np.ndarray, "solutions unknowns"]


@dataclass(frozen=True, eq=False)
class Algebra:
    """Vector fields in the kernel of a network's Jacobian.

    Attributes:
        network: the network.
        fields: the unknowns.
        solutions: the values of those that span the others at generic weights, one row each.
        points: how many random weights gave equations, and how many more checked the solutions.
    """

    network: Network
    field: PrimeField
    fields: tuple[Field, ...]
    solutions: Solutions
    points: tuple[int, int]

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is moved, in the order of its columns."""
        return tuple(sorted({f.part for f in self.fields}, key=lambda part: part.start))

    def tangents(self, weights: Residues) -> Float[np.ndarray, "solutions columns"]:
        """The tangent vectors at some weights."""
        return motions(self.fields, self.field, self.solutions, weights)


def size(parts: Sequence[Part], gains: Sequence[Gain] = ()) -> int:
    """How many unknowns there are."""
    return sum(f.size for f in ansatz(parts, gains=gains))


def symmetry_algebra(
    network: Network,
    parts: Sequence[Part],
    field: PrimeField,
    seed: int,
    gains: Sequence[Gain] = (),
    *,
    related: bool = False,
) -> Algebra:
    """All vector fields of the form that lie in the kernel of the Jacobian at random weights.

    Args:
        network: the network.
        parts: what its weights consist of.
        field: the prime field.
        seed: of all random weights and inputs.
        gains: where directions that a norm leaves out are looked for.
        related: whether the relations between formal functions are respected (`MovingRows`).
    """
    most = size(parts)
    if most > LARGEST:
        raise ArgumentError(
            f"{network.name} has {most} unknowns, and discovery takes at most {LARGEST}; describe "
            "it in a smaller configuration of the same kind"
        )
    every = size(parts, gains)
    most, gains = (every, gains) if every <= LARGEST else (most, ())
    evaluate = moving_rows(network, field, most + _SPARE, related=related)
    own = 1_000_003 * (checked_seed(seed) + 1) % 2**62  # not the seed of the certificate
    rows, weights = evaluate(own, 0)
    dead = frozenset(part for part in parts if not np.any(rows[..., part.columns]))
    fields = ansatz(parts, dead, gains)
    solutions, points = _solved(evaluate, fields, rows, weights, own)
    simplest = _simplest(fields, field, solutions, weights[-1])
    return Algebra(network, field, fields, simplest, points)


def _solved(
    evaluate: MovingRows, fields: tuple[Field, ...], rows: Rows, weights: Weights, seed: int
) -> tuple[Solutions, tuple[int, int]]:
    """The solutions of the equations at these and at further weights, and how many weights.

    Every cell of a piecewise network has equations of its own. There evaluations go on in the same
    cells until one adds nothing, then in others, until the first one in new cells adds nothing.
    """
    unknowns = sum(f.size for f in fields)
    form = EchelonForm(unknowns, evaluate.field)
    held = evaluate.samples if evaluate.is_piecewise else _FRESH
    first = 0  # evaluation in these cells
    for number in range(1, 1 + _ROUNDS + unknowns // (evaluate.samples * evaluate.rows)):
        with suppress(ZeroResidueError):  # a gain is 0 at one of the weights
            found = equations(fields, evaluate.field, rows, weights)
            if _adds_nothing(form, found, held * evaluate.rows):
                if not evaluate.is_piecewise or number - 1 == first > 0:
                    points = number * evaluate.samples - held, held
                    return np.ascontiguousarray(form.null_space.T), points
                seed, first = seed + 1, number
        rows, weights = evaluate(seed, number)
    raise NotCoveredError(
        f"the equations for the symmetries of {evaluate.name} still give new conditions after "
        f"{number * evaluate.samples} random weights: some of its cells are rare"
    )


def _adds_nothing(
    form: EchelonForm, found: Float[np.ndarray, "equations unknowns"], held: int
) -> bool:
    """Add equations; whether the last ones follow from all the others."""
    form.add(found[:-held])
    return form.add(found[-held:]) == 0


def _simplest(
    fields: tuple[Field, ...], field: PrimeField, solutions: Solutions, weights: Residues
) -> Float[np.ndarray, "simplest unknowns"]:
    """Solutions that span, at random weights, the directions of all; the simplest ones.

    A tensor multiplied by λ along one axis and by 1/λ along another stays, and a symmetry times a
    function of the weights is one again, so that solutions may be independent where their tangent
    vectors are not. The unknowns of constants come last: in the echelon form upside down the fields
    that consist of constants come first, then those with contractions, then the others.
    """
    if not len(solutions):
        return solutions
    form = EchelonForm(solutions.shape[1], field)
    form.add(solutions)
    simplest = np.ascontiguousarray(form.basis[::-1])
    independent, _ = rank_profile(motions(fields, field, simplest, weights), field)
    return simplest[independent]


@dataclass(frozen=True, eq=False)
class Discovered(Family):
    """An algebra as tangent vectors of a network; how they integrate is not known.

    Attributes:
        network: the network.
        algebra: the vector fields, on the slice.
        slice: where weights are moved before and back after; the whole space by default.
    """

    network: Network
    algebra: Algebra
    slice: Slice | None = None

    @property
    def name(self) -> str:
        """Its name in certificates."""
        return "discovered" if self.slice is None else "discovered on a slice"

    is_group = False

    @property
    def statement(self) -> None:
        """None: checked at random points, not proved."""

    @property
    def dimension(self) -> int:
        """The number of fields."""
        return len(self.algebra.solutions)

    def moves(self, tensor: str) -> bool:
        """It may be any."""
        return True

    def identity(self) -> NoReturn:
        """Not known."""
        raise NotCoveredError("discovered symmetries are known by their tangent vectors only")

    def random(self, generator: np.random.Generator, condition: float = 10.0) -> NoReturn:
        """Not known."""
        self.identity()

    def act(self, element: Element, weights: Tensors) -> NoReturn:
        """Not known."""
        self.identity()

    def generators(self, weights: Tensors, linear: LinearAlgebra) -> list[GeneratorBlock]:
        """The tangent vectors at residues of the field they were found in."""
        field = self.algebra.field
        if not isinstance(linear, Modular) or linear.field != field:
            raise ArgumentError(
                f"symmetries discovered mod {field.modulus} are vectors of that field; "
                "discover them with the prime of the certificate"
            )
        if not self.dimension:
            return []
        at = self.network.flatten(weights)
        if self.slice is None:
            rows = self.algebra.tangents(at)
        else:
            rows = self.slice.transported(self.algebra.tangents, at, field)
        moves = {slot: rows[:, place] for slot, place in self.network.places.items()}
        return [GeneratorBlock(self.name, moves)]
