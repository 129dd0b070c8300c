"""How large the degrees of a program's outputs can be (Schwartz–Zippel).

Every slot of a program is N / Π_s D_s^{e_s}, where s runs over the steps that invert something and
D_s is the product of all that such a step inverts for one sample. The degree of N and the exponents
e_s are bounded step by step: a sum takes the larger exponents and multiplies each numerator by what
it lacks, a product adds both, and an inverse begins a denominator of its own. What stands for a
formal function is drawn by itself, and counts as a variable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neuromanifold.algebra.modular.function import ModularFunction
from neuromanifold.algebra.modular.recorder import inverse_tangent
from neuromanifold.algebra.modular.tangents import Step


@dataclass(frozen=True, slots=True)
class Degree:
    """A bound for the degree of a fraction.

    Attributes:
        top: of the numerator.
        below: the exponents of the denominators, by the slot of their step.
    """

    top: int
    below: Mapping[int, int] = field(default_factory=dict)


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
        self._of: dict[int, Degree | None] = {}
        self._denominators: dict[int, int] = {}
        self._samples: set[int] = set()
        for k, (slot, samples) in enumerate(zip(function.slots, function.samples, strict=True)):
            self._of[slot] = Degree(int(k not in constants))
            if samples:
                self._samples.add(slot)
        self._formal = {f.output: f.kind for f in function.formals}
        for step in function.steps:
            self._of[step.output] = self._after(step)
            if self._samples.intersection(step.inputs):
                self._samples.add(step.output)

    def row(self) -> tuple[int, int] | None:
        """The degrees of numerators and of the common denominator of one row of outputs.

        None where there is no bound: square roots and elimination.
        """
        found = [self._of.get(slot, Degree(0)) for slot in self._function.outputs]
        whole = self._sum(found)
        return None if whole is None else (whole.top, self._weight(whole.below))

    def _after(self, step: Step) -> Degree | None:
        operands = [self._of.get(slot, Degree(0)) for slot in step.inputs]
        if step.output in self._formal:
            return None if self._formal[step.output] == "root" else Degree(1)
        if step.tangent is inverse_tangent:
            return self._inverse(step, operands[0])
        if step.degree is None:
            return None
        if step.degree == 2 and len(operands) == 2:
            return _product(operands[0], operands[1])
        whole = self._sum(operands)
        if whole is None:
            return None
        return Degree(whole.top * step.degree, {s: e * step.degree for s, e in whole.below.items()})

    def _inverse(self, step: Step, operand: Degree | None) -> Degree | None:
        """1/x = Π D^e · (the other numerators) / (all numerators of this step)."""
        if operand is None:
            return None
        size = self._function.size(step.output)
        if self._samples.intersection(step.inputs):
            size //= self._batch
        self._denominators[step.output] = size * operand.top
        top = self._weight(operand.below) + (size - 1) * operand.top
        return Degree(top, {step.output: 1})

    def _sum(self, terms: Sequence[Degree | None]) -> Degree | None:
        known = [term for term in terms if term is not None]
        if len(known) < len(terms):
            return None
        below = {s: max(t.below.get(s, 0) for t in known) for t in known for s in t.below}
        whole = self._weight(below)
        return Degree(max((t.top + whole - self._weight(t.below) for t in known), default=0), below)

    def _weight(self, below: Mapping[int, int]) -> int:
        return sum(exponent * self._denominators[s] for s, exponent in below.items())


def _product(x: Degree | None, y: Degree | None) -> Degree | None:
    if x is None or y is None:
        return None
    slots = x.below.keys() | y.below.keys()
    return Degree(x.top + y.top, {s: x.below.get(s, 0) + y.below.get(s, 0) for s in slots})
