"""Radicands in groups, and the draws that make them squares.

Half of all residues are squares, so waiting for a point with n square radicands takes 2^n tries.
But a point has many entries, those of the inputs and those of the formal elements that depend on
the input, and a radicand depends on few of them: the norm of a token on that token, the next norm
also on what attention or the MLP drew in between. So they are put into groups. Taken in order, one
that depends on entries that no earlier one depends on begins a group and owns these entries; any
other joins the last group that owns entries it depends on. What a group owns is drawn again, for
each sample by itself, until the group's radicands are squares; no earlier group notices. The cost
is 2^(radicands of a group): of one token, not of all. For radicands of weights the rows of the
weights take the place of the entries.

Which radicand depends on what is found by trying. It decides what is drawn, and nothing else: a
point is right when all its radicands are squares, however it was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuromanifold.algebra.modular.rules.formal import NonSquareError
from neuromanifold.algebra.modular.square_roots.radicands import Free
from neuromanifold.algebra.modular.square_roots.roots import square_root
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.errors import NotCoveredError

LARGEST_GROUP = 10
"""Radicands of one group: about 2^10 draws find them all squares."""
_GUESTS = 4
"""Rows for each sample that is not settled, from which on they all work for those."""
_ROUNDS = 32
"""Rounds of draws after which it is asked whether a group can come right at all."""


def patience(radicands: int) -> int:
    """Tries after which a group will not come right: chance alone fails with e^-24."""
    return 24 * 2**radicands + 32


def most_draws(radicands: int, rows: int) -> int:
    """At most so many draws are looked at for a sample before its radicands are squares.

    Each of `rows` rows makes one in a round; it is asked whether to give up at rounds that double,
    and a group is joined to another fewer times than there are radicands.
    """
    group = min(radicands, LARGEST_GROUP)
    return 1 + radicands * rows * (2 * patience(group) + 2 * _ROUNDS)


@dataclass(slots=True)
class _Group:
    """Radicands that are squares together once the atoms they own are right."""

    columns: list[int]
    owned: np.ndarray


class Search:
    """Radicands of all samples, or of weights, each in one sample, and what is drawn for them."""

    def __init__(
        self, free: Free, columns: np.ndarray, samples: np.ndarray | None = None, turns: int = 1
    ) -> None:
        self.free, self.radicands = free, free.radicands
        self.columns, self.samples = columns, samples
        self.steps = self.radicands.step_of(self.columns)
        self.influence = self._influence(turns)
        self.groups = self._grouped()

    def values(self, columns: Sequence[int] | np.ndarray | None = None) -> Residues:
        """Radicands at the current state, a row for each sample, or one for the weights."""
        places = np.arange(len(self.columns)) if columns is None else np.asarray(columns, int)
        found = self.radicands.at(self.columns[places])
        if self.samples is None:
            return found[: len(self.free.state)]
        return found[self.samples[places], np.arange(len(places))][None]

    def squares(self, values: Residues) -> np.ndarray:
        """Which residues are invertible squares."""
        return square_root(values, self.radicands.field) > 0

    def _influence(self, turns: int) -> np.ndarray:
        """Which radicands each atom reaches: in every row another one is drawn again.

        What is behind a branch, or a row that a token takes, is reached in samples of some kinds
        only, so there are several turns, in each of which an atom has another row.
        """
        free, before = self.free, self.values()
        found = np.zeros((free.atoms, len(self.columns)), dtype=bool)
        for first in range(0, free.atoms if len(self.columns) else 0, len(before)):
            atoms = np.arange(first, min(first + len(before), free.atoms))
            for turn in range(min(turns, len(before))):
                rows = (np.arange(len(atoms)) + turn * len(before) // turns) % len(before)
                chosen = np.zeros((len(before), free.atoms), dtype=bool)
                chosen[rows, atoms] = True
                with free.tried():
                    free.put(free.fresh(chosen))
                    found[atoms] |= (self.values() != before)[rows]
        return found.T

    def _grouped(self) -> list[_Group]:
        """The groups of the module; equal radicands count once."""
        values = self.values()
        claimed = np.zeros(self.free.atoms, dtype=bool)
        groups: list[_Group] = []
        met: set[bytes] = set()
        for column, reached in enumerate(self.influence):
            key = values[:, column].tobytes()
            if key in met or not reached.any():
                continue
            met.add(key)
            owned = reached & ~claimed
            if owned.any():
                groups.append(_Group([column], owned))
                claimed |= reached
            else:
                last = max(g for g, group in enumerate(groups) if (group.owned & reached).any())
                groups[last].columns.append(column)
        return groups

    def _levels(self) -> list[list[_Group]]:
        """Groups that do not reach each other's radicands, level after level."""
        levels: list[list[_Group]] = []
        depth: list[int] = []
        for g, group in enumerate(self.groups):
            reached = self.influence[group.columns].any(axis=0)
            before = [depth[h] for h in range(g) if (self.groups[h].owned & reached).any()]
            depth.append(max(before, default=-1) + 1)
            if depth[g] == len(levels):
                levels.append([])
            levels[depth[g]].append(group)
        return levels

    def settle(self) -> None:
        """Draw again until all radicands are squares.

        Raises:
            NonSquareError: a radicand that nothing here reaches is no square.
            NotCoveredError: too many of them depend on the same entries.
        """
        stuck = np.flatnonzero(~self.influence.any(axis=1))
        wrong = stuck[~self.squares(self.values(stuck)).all(axis=0)]
        if wrong.size:
            raise NonSquareError(f"a radicand of {self._where(int(wrong[0]))} is no square")
        self._refuse_large_groups()
        while (failed := self._unsettled()) is not None:
            self._join(failed)

    def _bad(self, groups: Sequence[_Group]) -> np.ndarray:
        """For each row which groups have a radicand that is no square."""
        columns = [column for group in groups for column in group.columns]
        wrong = ~self.squares(self.values(columns))
        ends = np.cumsum([0, *(len(group.columns) for group in groups)])[:-1]
        return np.logical_or.reduceat(wrong, ends, axis=1)

    def _unsettled(self) -> _Group | None:
        """Settle level after level; a group that does not come right, or None."""
        for depth, groups in enumerate(self._levels()):
            owned, tries, asked = np.stack([group.owned for group in groups]), 0, _ROUNDS
            while (bad := self._bad(groups)).any():
                if tries >= asked:
                    asked = 2 * tries
                    for j in np.flatnonzero(bad.any(axis=0)):
                        group, row = groups[j], int(np.argmax(bad[:, j]))
                        if tries > patience(len(group.columns)) or self._is_hopeless(group, row):
                            return group
                if depth == 0 or _GUESTS * np.count_nonzero(bad.any(axis=1)) <= len(bad):
                    tries += self._settle_as_guests(groups, bad)
                else:
                    self.free.put(self.free.fresh(bad @ owned))
                    tries += 1
        return None

    def _is_hopeless(self, group: _Group, row: int) -> bool:
        """Whether no draw for one sample makes all radicands of a group squares.

        Which of them are none is a random point of an affine space over GF(2); a few more draws
        than its dimension span it, and it has to contain zero. (It does not for x and 3x, where 3
        is no square.) Chance alone says so with 2^-32, and that a network is refused.
        """
        free, seen = self.free, np.empty((0, len(group.columns) + 1), bool)
        with free.tried():
            free.put(np.tile(free.state[row], (len(free.state), 1)))
            while len(seen) < seen.shape[1] + 32:
                free.put(free.fresh(np.tile(group.owned, (len(free.state), 1))))
                wrong = ~self.squares(self.values(group.columns))
                seen = np.concatenate([seen, np.insert(wrong, 0, True, axis=1)])
        settled = np.eye(1, seen.shape[1], dtype=bool)
        return character_rank(np.concatenate([seen, settled])) > character_rank(seen)

    def _settle_as_guests(self, groups: Sequence[_Group], bad: np.ndarray) -> int:
        """Try many draws of a sample that is not settled at once, in the rows of those that are.

        Everything has to be run for that and not only what is behind the draws, so it pays where
        nothing is before them, or where few samples are left. Returns the number of rounds.
        """
        free, state, owned = self.free, self.free.state.copy(), np.stack([g.owned for g in groups])
        bad, rounds = bad.copy(), 0
        while rounds < _ROUNDS and (needy := np.flatnonzero(bad.any(axis=1))).size:
            rounds += 1
            guest = np.resize(needy, len(state))
            guest[needy] = needy
            with free.tried():
                free.put(state[guest])
                free.put(free.fresh(bad[guest] @ owned))
                good, found = ~self._bad(groups), free.state
            for j, group in enumerate(groups):
                rows = np.flatnonzero(good[:, j] & bad[guest, j])
                takers, first = np.unique(guest[rows], return_index=True)
                entries = np.flatnonzero(group.owned[free.atom])
                state[np.ix_(takers, entries)] = found[np.ix_(rows[first], entries)]
                bad[takers, j] = False
        free.put(state)
        return rounds

    def _refuse_large_groups(self) -> None:
        for group in self.groups:
            if len(group.columns) > LARGEST_GROUP:
                raise NotCoveredError(
                    f"{len(group.columns)} square roots, with {self._where(group.columns[0])} the "
                    "first of them, depend on the same inputs and nothing that is free, so that "
                    "no point is found at which all radicands are squares; take fewer heads"
                )

    def _join(self, group: _Group) -> None:
        """Give a group that does not come right the entries of the last one that reaches it."""
        reached = self.influence[group.columns].any(axis=0)
        place = self.groups.index(group)
        before = [g for g in self.groups[:place] if (g.owned & reached).any()]
        if not before:
            raise NotCoveredError(
                f"no point was found at which the radicand of {self._where(group.columns[0])} "
                "and those that depend on the same inputs are squares; one of them may be a "
                "multiple of another: write them with one root"
            )
        before[-1].columns += group.columns
        before[-1].owned |= group.owned
        self.groups.pop(place)
        self._refuse_large_groups()

    def witnesses(self) -> tuple[int, int]:
        """The number of distinct radicands, and the rank of their characters, step by step.

        Around a settled point each group is drawn again while the others stay, so that all earlier
        radicands are squares as soon as those of the group are.
        """
        points = [self.values()]
        for group in self.groups:
            owned = np.tile(group.owned, (len(self.free.state), 1))
            here = points[:1]
            with self.free.tried():
                while len(here) <= patience(len(group.columns)) and self._shown(
                    np.concatenate(here), group.columns
                ) < len(group.columns):
                    for _ in range(len(here)):  # as many again: a rank looks at all of them
                        self.free.put(self.free.fresh(owned))
                        here.append(self.values())
            points += here[1:]
        found = np.concatenate(points)
        first = {found[:, k].tobytes(): k for k in reversed(range(len(self.columns)))}
        return len(first), self._shown(found, sorted(first.values()))

    def _shown(self, points: Residues, columns: Sequence[int]) -> int:
        """The rank of the characters of some radicands at points where earlier ones are squares."""
        square, rank = self.squares(points), 0
        for step in sorted({self.steps[k] for k in columns}):
            usable = square[:, self.steps < step].all(axis=1)
            usable &= (points[:, self.steps == step] != 0).all(axis=1)
            chosen = [k for k in columns if self.steps[k] == step]
            rank += character_rank(~square[np.ix_(usable, chosen)])
        return rank

    def _where(self, column: int) -> str:
        return self.radicands.roots[self.steps[column]].where


def character_rank(rows: np.ndarray) -> int:
    """The rank over GF(2) of a Boolean matrix, each row as the bits of one whole number."""
    basis: dict[int, int] = {}
    for packed in np.unique(np.packbits(rows, axis=1), axis=0):
        row = int.from_bytes(packed.tobytes())
        while row:
            top = row.bit_length()
            if top not in basis:
                basis[top] = row
                break
            row ^= basis[top]
    return len(basis)
