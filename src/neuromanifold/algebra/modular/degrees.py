"""How large the degrees of a program's outputs can be (Schwartz–Zippel).

Every slot of a program is N / Π_s D_s^{e_s}, where s runs over the steps that divide and D_s is the
product of all that such a step divides by for one sample: entries, determinants or leading minors.
The degree of N and the exponents e_s are bounded step by step: a sum takes the larger exponents and
multiplies each numerator by what it lacks, a product adds both, and a division begins a denominator
of its own. What stands for a formal function is drawn by itself, and counts as a variable.

A root √(N / D) = √(N D) / D has half the degree of N D. It is no polynomial, but no conjugate of
what is made of roots grows faster along a line than this degree says, and numerators are integral.
So the norm of an element of a tower of k roots is a polynomial of at most 2^k times the degree of
the element, and vanishes wherever the element does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.tangents import Division, Step


@dataclass(frozen=True, slots=True)
class Degree:
    """A bound for the degree of a fraction.

    Attributes:
        top: of the numerator, infinite where there is no bound; with roots no whole number.
        below: the exponents of the denominators, by the slot of their step.
    """

    top: int | float
    below: Mapping[int, int] = field(default_factory=dict)


_ONE = Degree(0)


@dataclass(frozen=True, slots=True)
class Roots:
    """How many square roots there are.

    Attributes:
        weights: of weights alone.
        samples: of one sample alone.
        mixed: of one sample and the weights.
    """

    weights: int
    samples: int
    mixed: int

    def conjugates(self, rows: int) -> int | float:
        """By how much roots multiply the degree of a minor of so many rows.

        Without mixed roots think of the samples as drawn first. Over the functions of the weights
        the row of one more sample lies in the span of those before only where an element of the
        tower of that sample vanishes; where none does, the minor is an element of the tower of the
        weights. With mixed ones it is an element of the tower of all.
        """
        if self.mixed:
            return _power_of_two(self.weights + rows * (self.samples + self.mixed))
        if not self.weights and not self.samples:
            return 1
        return _power_of_two(self.weights) + _power_of_two(self.samples)


def _power_of_two(exponent: int) -> int | float:
    return 2.0 ** min(exponent, 500)  # far beyond every prime


class Degrees:
    """The degrees of the slots of a program.

    Args:
        function: the program.
        batch: how many samples it is for.
        constants: the numbers of the leaves of its arguments that are not drawn.
    """

    def __init__(
        self, function: ModularFunction, batch: int, constants: frozenset[int] = frozenset()
    ) -> None:
        self._function, self._batch = function, batch
        self._of: dict[int, Degree] = {}
        self._denominators: dict[int, int | float] = {}
        self._samples: set[int] = set()
        self._weights: set[int] = set()
        for k, (slot, samples) in enumerate(zip(function.slots, function.samples, strict=True)):
            self._of[slot] = Degree(int(k not in constants))
            if k not in constants:
                (self._samples if samples else self._weights).add(slot)
        self._formal = {f.output: f.kind for f in function.formals}
        for step in function.steps:
            for reached in (self._samples, self._weights):
                if reached.intersection(step.inputs):
                    reached.add(step.output)
            self._of[step.output] = self._after(step)

    @property
    def roots(self) -> Roots:
        """How many square roots there are, by what their radicands are made of."""
        found = dict.fromkeys(((False, False), (False, True), (True, False), (True, True)), 0)
        for f in self._function.formals:
            if f.kind == "root":
                count = self._function.size(f.output) // (self._batch if f.samples else 1)
                found[f.output in self._weights, f.output in self._samples] += count
        return Roots(found[True, False], found[False, True], found[True, True])

    def row(self) -> tuple[int | float, int | float]:
        """The degrees of numerators and of the common denominator of one row of outputs."""
        whole = self._sum([self._of.get(slot, Degree(0)) for slot in self._function.outputs])
        return whole.top, self._weight(whole.below)

    def _after(self, step: Step) -> Degree:
        operands = [self._of.get(slot, Degree(0)) for slot in step.inputs]
        if step.output in self._formal:
            x = operands[0]
            if self._formal[step.output] != "root":
                return Degree(1)
            return Degree((x.top + self._weight(x.below)) / 2, x.below)
        if step.division is not None:
            return self._divided(step, step.division, *operands)
        if step.degree is None:
            return Degree(math.inf)
        if step.degree == 2 and len(operands) == 2:
            return _product(operands[0], operands[1])
        whole = self._sum(operands)
        return Degree(whole.top * step.degree, _times(step.degree, whole.below))

    def _divided(self, step: Step, division: Division, a: Degree, b: Degree = _ONE) -> Degree:
        """The degree of A⁻¹ B, or of the factors of A = L U, where A = A' / P has the degree `a`.

        A⁻¹ = P adj A' / det A', for a unit triangle just adj A. U_ij is a minor of A' of order i
        over P and the leading one of order i − 1, L_ij one of order j over the leading one.
        """
        n, over = division.order, self._weight(a.below)
        if division.by == "nothing":
            return _product(Degree((n - 1) * max(a.top, over), _times(n - 1, a.below)), b)
        count = division.count
        if step.output in self._samples:
            count //= self._batch
        orders = n if division.by == "determinants" else n * (n + 1) // 2
        self._denominators[step.output] = whole = count * orders * a.top
        if division.by == "determinants":
            return _product(Degree(whole - a.top + over, {step.output: 1}), b)
        return Degree(whole + max(a.top, over), {**a.below, step.output: 1})

    def _sum(self, terms: Sequence[Degree]) -> Degree:
        below = {s: max(t.below.get(s, 0) for t in terms) for t in terms for s in t.below}
        whole = self._weight(below)
        return Degree(max((t.top + whole - self._weight(t.below) for t in terms), default=0), below)

    def _weight(self, below: Mapping[int, int]) -> int | float:
        return sum(exponent * self._denominators[s] for s, exponent in below.items())


def _product(x: Degree, y: Degree) -> Degree:
    slots = x.below.keys() | y.below.keys()
    return Degree(x.top + y.top, {s: x.below.get(s, 0) + y.below.get(s, 0) for s in slots})


def _times(factor: int, below: Mapping[int, int]) -> dict[int, int]:
    return {s: factor * exponent for s, exponent in below.items()}
