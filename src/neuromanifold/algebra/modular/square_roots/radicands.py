"""The radicands of a program at a point of which parts are drawn again.

A point is made of entries: those of the arguments, and those of the formal elements that depend on
the samples, each of which is an arbitrary residue. `Radicands` runs the part of a program that ends
in its square roots, and after a change runs only what the change can reach. `Free` holds the
entries that may be drawn again, as one matrix with a row for each sample, or with the one row of
the weights.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np

from neuromanifold.algebra.modular.formal.elements import Formal, FormalElements
from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.algebra.prime_field import PrimeField, Residues

Redraw = Callable[[int, int], Residues]
"""From the number of a leaf of the arguments and the number of a draw to that leaf, drawn afresh.

What cannot be drawn again, such as weights that were given, is returned as it is.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """Entries that are drawn together: a leaf of the arguments, or what salts a formal step.

    Attributes:
        slot: what changes when they do.
        shape: of all of them.
        leaf: the number of the leaf; None for a formal step.
        number: the number of the formal step; None for a leaf.
    """

    slot: int
    shape: tuple[int, ...]
    leaf: int | None = None
    number: int | None = None


class Radicands:
    """The radicands of a function at a point that changes.

    Attributes:
        roots: the square roots of the function, in the order in which they are computed.
        ends: the number of radicands of one sample up to and with each of the roots.
        leaves: the leaves of the arguments.
        elements: the formal elements, with the salts of the point.
    """

    def __init__(
        self,
        function: ModularFunction,
        field: PrimeField,
        leaves: Sequence[Residues],
        elements: FormalElements,
    ) -> None:
        roots = [f for f in function.formals if f.kind == "root"]
        self.function, self.field, self.leaves = function, field, list(leaves)
        self.program = function.program([f.argument for f in roots], elements.relations)
        place = {step.output: i for i, step in enumerate(self.program.steps)}
        self.roots = sorted(roots, key=lambda f: place.get(f.argument, -1))
        self.ends = np.cumsum([_size(root) for root in self.roots])
        self.drawn = [
            f for f in function.formals if f.kind != "root" and f.samples and f.output in place
        ]
        salts: dict[int, np.ndarray] = {
            f.number: np.zeros((f.shape[0], _size(f))) for f in self.drawn
        }
        self.elements = replace(elements, salts=salts)
        self._salts, self._setting = salts, Setting(field, self.elements, {}, lenient=True)
        self._slots = self.program.start(self.leaves, function.constants(self.program, field))
        self._done = [False] * len(self.program.steps)
        self._edges = self._read_by_each_step()
        self._needed: dict[frozenset[int], list[int]] = {}
        self._reached: dict[int, list[int]] = {}

    def blocks(self, *, samples: bool) -> list[Block]:
        """What may be drawn again of the samples, or of the weights, before a radicand."""
        read = {slot for step in self.program.steps for slot in step.inputs}
        read |= {root.argument for root in self.roots}
        slots = self.program.inputs
        blocks = [
            Block(slots[k], self.leaves[k].shape, leaf=k)
            for k, is_sampled in enumerate(self.function.samples)
            if is_sampled == samples and slots[k] in read and self.leaves[k].size
        ]
        if samples:
            blocks += [
                Block(f.output, self._salts[f.number].shape, number=f.number) for f in self.drawn
            ]
        return blocks

    def write(self, block: Block, entries: Residues) -> None:
        """Change the entries of a block."""
        if block.leaf is None:
            assert block.number is not None
            self._salts[block.number] = entries.reshape(block.shape)
        else:
            self.leaves[block.leaf] = entries.reshape(block.shape)
            self._slots[block.slot] = self.leaves[block.leaf]
        for i in self._behind(block.slot):
            self._done[i] = False

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Changes inside are forgotten afterwards, and what was computed before is known again."""
        leaves, slots, done = list(self.leaves), list(self._slots), list(self._done)
        salts, memory = dict(self._salts), dict(self._setting.memory)
        yield
        self.leaves, self._slots, self._done = leaves, slots, done
        self._salts.update(salts)
        self._setting.memory.update(memory)

    def at(self, columns: np.ndarray) -> Residues:
        """These radicands, numbered through all roots, a row for each sample."""
        slots, done = self._slots, self._done
        for i in self._before(frozenset(self.step_of(columns).tolist())):
            if not done[i]:
                step = self.program.steps[i]
                operands = [slots[slot] for slot in step.inputs]
                slots[step.output] = step.operation(self._setting, *operands)
                done[i] = True
        parts = [self._rows(root) for root in self.roots]
        height = max(len(part) for part in parts)
        starts = self.ends - [part.shape[1] for part in parts]
        found = np.empty((height, len(columns)))
        for part, start, end in zip(parts, starts, self.ends, strict=True):
            here = np.flatnonzero((start <= columns) & (columns < end))
            if here.size:
                found[:, here] = part[:, columns[here] - start]
        return found

    def step_of(self, columns: np.ndarray) -> np.ndarray:
        """The number of the root that each radicand belongs to."""
        return np.searchsorted(self.ends, columns, side="right")

    def _rows(self, root: Formal) -> Residues:
        """The radicands of a root, a row for each sample; of a root not computed yet, its shape."""
        x = self._slots[root.argument]
        height = root.shape[0] if root.samples else 1
        return np.empty((height, _size(root))) if x is None else x.reshape(height, -1)

    def _read_by_each_step(self) -> list[set[int]]:
        """What each step reads; elements that are made of others read those too (`relations`)."""
        output = {f.number: f.output for f in self.function.formals}
        edges = {step.output: set(step.inputs) for step in self.program.steps}
        for number, dependents in self.elements.relations.dependents.items():
            others = (place[0] for dependent in dependents for place, _ in dependent.terms)
            edges.get(output.get(number, -1), set()).update(output[other] for other in others)
        return list(edges.values())

    def _before(self, roots: frozenset[int]) -> list[int]:
        """The steps that the radicands of some roots need."""
        if roots not in self._needed:
            needed = {self.roots[k].argument for k in roots}
            found: list[int] = []
            for i in reversed(range(len(self._edges))):
                if self.program.steps[i].output in needed:
                    needed |= self._edges[i]
                    found.append(i)
            self._needed[roots] = found[::-1]
        return self._needed[roots]

    def _behind(self, slot: int) -> list[int]:
        """The steps that a change of a slot reaches; a step that fills the slot is the first."""
        if slot not in self._reached:
            moved = {slot}
            found: list[int] = []
            for i, (step, edges) in enumerate(zip(self.program.steps, self._edges, strict=True)):
                if step.output == slot or not moved.isdisjoint(edges):
                    moved.add(step.output)
                    found.append(i)
            self._reached[slot] = found
        return self._reached[slot]


class Free:
    """The entries of a point that may be drawn again, in atoms that are drawn together.

    Attributes:
        radicands: what depends on them.
        state: the entries, a row for each sample, or one row for the weights.
        atom: the atom of each column: one entry of a sample, or one row of a tensor of weights.
        atoms: how many atoms there are.
    """

    def __init__(self, radicands: Radicands, redraw: Redraw, *, samples: bool) -> None:
        self.radicands, self._redraw, self._draws = radicands, redraw, 0
        self._blocks = radicands.blocks(samples=samples)
        sizes = [prod(block.shape[1:] if samples else block.shape) for block in self._blocks]
        starts = np.cumsum([0, *sizes]).tolist()
        self._places = [slice(*pair) for pair in pairwise(starts)]
        rows = (
            sizes if samples else [block.shape[0] if block.shape else 1 for block in self._blocks]
        )
        numbers = np.arange(sum(rows))
        self.atoms = len(numbers)
        lengths = [size // row for size, row in zip(sizes, rows, strict=True) for _ in range(row)]
        self.atom = np.repeat(numbers, lengths)
        height = self._blocks[0].shape[0] if samples and self._blocks else 1
        self.state = np.zeros((height, starts[-1]))
        for block, place in zip(self._blocks, self._places, strict=True):
            if block.leaf is not None:
                self.state[:, place] = radicands.leaves[block.leaf].reshape(height, -1)

    def fresh(self, atoms: np.ndarray) -> Residues:
        """The state with these atoms, given for each row, drawn again."""
        state, chosen = self.state.copy(), atoms[:, self.atom]
        salts = 1.0 + self._draws * len(state) + np.arange(len(state))[:, None]  # never used before
        for block, place in zip(self._blocks, self._places, strict=True):
            if not chosen[:, place].any():
                continue
            drawn = salts
            if block.leaf is not None:
                drawn = self._redraw(block.leaf, self._draws).reshape(len(state), -1)
            state[:, place] = np.where(chosen[:, place], drawn, state[:, place])
        self._draws += 1
        return state

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Changes inside are forgotten afterwards; the numbers of the draws are not."""
        state = self.state
        with self.radicands.tried():
            yield
        self.state = state

    def put(self, state: Residues) -> None:
        """Go to another state."""
        for block, place in zip(self._blocks, self._places, strict=True):
            if not np.array_equal(state[:, place], self.state[:, place]):
                self.radicands.write(block, state[:, place])
        self.state = state


def _size(formal: Formal) -> int:
    """How many entries a formal step has for one sample."""
    return prod(formal.shape[1:] if formal.samples else formal.shape)
