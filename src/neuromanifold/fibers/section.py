"""Weights with one point for each generic orbit of the changes of basis and rescalings.

Between the widths that count (layers-bound) a head is a pair (A, V), A of rank α and V of rank ν. A
matrix of rank r is B [1 | C] in one way, if its first r columns are independent. A rescaling
(λ A, V/λ) makes the first entry of A one, layer by layer. A change of basis of an interior width
then makes the first columns of [V_1 … V_H] (of the images of the V_h, if these have smaller rank)
the identity, which determines it, before the next layer is looked at. So each generic orbit meets
these weights in one point.

In deep networks forms have high powers, so there the entries of A are the unknowns, and its minors
of size α + 1 are conditions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.formula.heads import head_ranks
from neuromanifold.statements import Facts

Entries = np.ndarray
"""A matrix of numbers or of polynomials."""
Head = tuple[Entries, Entries]
"""A and V of a head."""


@dataclass(frozen=True, slots=True)
class Section:
    """The weights with one point for each generic orbit.

    Attributes:
        architecture: of the network.
        coordinates: their dimension.
        unknowns: how many numbers give a point; more than `coordinates` where there are conditions.
    """

    architecture: Architecture
    coordinates: int
    unknowns: int

    def layers(self, values: Sequence[Any]) -> tuple[list[list[Head]], list[Any]]:
        """The pairs (A, V) of all heads, layer by layer, and what must vanish."""
        rest = iter(values)
        conditions: list[Any] = []
        layers = _layers(self.architecture, lambda: next(rest), conditions)
        return layers, conditions

    def point(self, draw: Callable[[], int], p: int) -> list[int]:
        """Random numbers that give a point mod p."""
        values: list[int] = []

        def take() -> int:
            values.append(draw())
            return values[-1]

        def form(rank: int, size: int, *, first: bool) -> Entries:
            A = (_matrix(size, rank, draw) @ _matrix(rank, size, draw)) % p
            if first:
                A = A * pow(int(A[0, 0]), -1, p) % p
            values.extend(int(x) for x in A.ravel()[int(first) :])
            return A

        _layers(self.architecture, take, [], form if self.architecture.depth > 1 else None)
        return values


def section(architecture: Architecture) -> Section:
    """The section of an architecture."""
    used, c = _Counter(), Facts.of(architecture).seen_widths
    _layers(architecture, used, [])
    surplus = 0
    if architecture.depth > 1:
        ranks = (min(a, d) for a, d in zip(architecture.ranks, c, strict=False))
        squares = ((d - r) ** 2 for r, d in zip(ranks, c, strict=False))
        surplus = architecture.heads * sum(squares)
    return Section(architecture, used.count - surplus, used.count)


class _Counter:
    """Zeros, and how many were taken."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return 0


def _layers(
    architecture: Architecture,
    take: Callable[[], Any],
    conditions: list[Any],
    form: Callable[..., Entries] | None = None,
) -> list[list[Head]]:
    c = Facts.of(architecture).seen_widths
    scaled = architecture.trades_scale
    found = []
    for i in range(architecture.depth):
        free = i + 1 == architecture.depth or architecture.adds_input
        alpha, nu = head_ranks(architecture, i, c[i], c[i + 1])
        deep = architecture.depth > 1
        forms: list[Entries] = []
        for _ in range(architecture.heads):
            if form is not None:
                forms.append(form(alpha, c[i], first=scaled))
                continue
            A = _of_rank(c[i] if deep else alpha, c[i], c[i], take, first=scaled)
            conditions += _minors(A, alpha + 1) if deep and alpha < c[i] else ()
            forms.append(A)
        values = _values(architecture.heads, nu, c[i + 1], c[i], take, free=free)
        found.append(list(zip(forms, values, strict=True)))
    return found


def _minors(A: Entries, size: int) -> Iterator[Any]:
    """All minors of this size."""
    for rows in combinations(range(len(A)), size):
        for columns in combinations(range(len(A)), size):
            yield _determinant(A[np.ix_(rows, columns)])


def _determinant(A: Entries) -> Any:
    if len(A) == 1:
        return A[0, 0]
    parts = (A[0, j] * _determinant(np.delete(A[1:], j, axis=1)) * (-1) ** j for j in range(len(A)))
    return sum(parts, 0 * A[0, 0])


def _matrix(rows: int, columns: int, take: Callable[[], Any]) -> Entries:
    found = np.empty((rows, columns), dtype=object)
    for place in np.ndindex(rows, columns):
        found[place] = take()
    return found


def _one(size: int) -> Entries:
    return np.array([[int(i == j) for j in range(size)] for i in range(size)], dtype=object)


def _of_rank(
    r: int, rows: int, columns: int, take: Callable[[], Any], *, first: bool = False
) -> Entries:
    """B [1 | C]; with `first` the first entry is one."""
    left = np.empty((rows, r), dtype=object)
    for place in np.ndindex(rows, r):
        left[place] = 1 if first and place == (0, 0) else take()
    if r == columns:
        return left
    return left @ np.concatenate([_one(r), _matrix(r, columns - r, take)], axis=1)


def _values(
    H: int, nu: int, rows: int, columns: int, take: Callable[[], Any], *, free: bool
) -> list[Entries]:
    """The value maps of a layer; those of an interior one begin with the identity."""
    if free and nu < min(rows, columns):
        return [_of_rank(nu, rows, columns, take) for _ in range(H)]
    width = columns if nu == min(rows, columns) else nu
    stack = _matrix(rows, H * width - (0 if free else rows), take)
    if not free:
        stack = np.concatenate([_one(rows), stack], axis=1)
    images = [stack[:, h * width : (h + 1) * width] for h in range(H)]
    if width == columns:
        return images
    return [
        image @ np.concatenate([_one(nu), _matrix(nu, columns - nu, take)], axis=1)
        for image in images
    ]


def known_points(architecture: Architecture) -> int:
    """How many points of the section generic functions have at least.

    Heads may change places in every layer, H!^l (head-mixing). A lightning head with A = k qᵀ and
    V = h vᵀ depends on v and k through vᵀ C k, C symmetric, so v and k may change places (thm-3.2);
    not with the inner skip, which shows V. With one head and plain layers, behind the first layer
    of rank one tokens are multiples of one vector u (all-widths), which shows of a later form
    (k·u)(q·u) only, and if V = h vᵀ has rank one, the product of these two with v·u. The same holds
    from the first layer on with one token.
    """
    c, H = Facts.of(architecture).seen_widths, architecture.heads
    points = factorial(H) ** architecture.depth
    if not architecture.trades_scale:
        return points
    for factor in _swaps(architecture, c):
        points *= factor
    return points


def _swaps(architecture: Architecture, c: Sequence[int]) -> Iterator[int]:
    """For each layer in how many ways the linear forms of its heads may change places."""
    one_head = architecture.has_one_head and not architecture.adds_input
    parallel = one_head and architecture.tokens == 1
    for i in range(architecture.depth):
        alpha, nu = head_ranks(architecture, i, c[i], c[i + 1])
        single, alone = alpha == 1 and c[i] > 1, nu == 1
        if single and parallel:
            yield 6 if alone else 2
        elif single and alone:
            yield 2**architecture.heads
        if one_head and architecture.attends_to_all and alpha == 1:
            parallel = True
