"""Whether two files hold the same function: the answer, with what it rests on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuromanifold.checkpoints.equality.agreement import Deviation, Rounding
from neuromanifold.checkpoints.writing import write_safetensors

EVIDENCE = {
    "exact": "a proof: all that determines the function is equal as rational numbers, as stored or "
    "modulo primes whose product exceeds the numerator of any difference",
    "equal to rounding": "every deviation is within four times what independent rounding errors "
    "add up to, in quadrature: no worst-case bound, and no proof",
    "different": "an input on which the outputs differ by more than rounding makes",
    None: "none",
}
"""What each level rests on."""


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which two models differ: its seed, and the output that differs most.

    Where a row of a table differs that random inputs do not meet, they begin with it.
    """

    seed: int
    output: int
    token: int
    first: float
    second: float

    @classmethod
    def of(cls, outputs: np.ndarray, others: np.ndarray, seed: int) -> "Witness":
        """Where outputs at the inputs of a seed differ most."""
        at = np.unravel_index(int(np.argmax(np.abs(outputs - others))), outputs.shape)
        return cls(seed, int(at[0]), int(at[1]), float(outputs[at]), float(others[at]))


@dataclass(frozen=True)
class Sameness:
    """Whether two files hold the same function.

    Attributes:
        verdict: `same`, `different` or `undecided`.
        level: `exact` (proved: the same function in real arithmetic), `equal to rounding` (rounding
            errors that are independent explain every deviation four times over; no worst-case
            bound is proved), or `different`; None when undecided.
        reason: one sentence.
        symmetries: the symmetries that were used, in words.
        differences: the parts that differ by more than rounding, the worst first.
        error: the largest deviation of the outputs, relative.
        noise: what noise of the size of rounding does to the outputs, in the model that it changes
            more: large numbers that cancel carry large rounding errors.
        tolerance: the deviation up to which outputs agree.
        rounding: the relative rounding that was allowed for each file.
        seed: of the inputs.
        witness: an input that shows a difference.
        element: the symmetry that carries the first model to the second, as arrays by name.
        primes: how many primes the proof of level `exact` took: none where the stored numbers are
            equal; None without proof.
    """

    verdict: Literal["same", "different", "undecided"]
    level: Literal["exact", "equal to rounding", "different"] | None
    reason: str
    symmetries: tuple[str, ...]
    differences: tuple[Deviation, ...]
    error: float
    noise: float
    tolerance: float
    rounding: Rounding
    seed: int
    witness: Witness | None
    element: Mapping[str, np.ndarray]
    primes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON; the element is a file of its own."""
        return {
            "verdict": self.verdict,
            "level": self.level,
            "reason": self.reason,
            "symmetries": list(self.symmetries),
            "differences": [asdict(one) for one in self.differences],
            "error": self.error,
            "tolerance": self.tolerance,
            "rounding": asdict(self.rounding),
            "evidence": EVIDENCE[self.level],
            "primes": self.primes,
            "seed": self.seed,
            "witness": None if self.witness is None else asdict(self.witness),
        }

    def save_element(self, path: str | Path, *, force: bool = False) -> None:
        """Write the symmetry: orders of heads and neurons, changes of basis, scales, the stream."""
        arrays = {name: np.ascontiguousarray(value) for name, value in self.element.items()}
        layout = {name: (value.dtype, value.shape) for name, value in arrays.items()}
        notes = {"symmetries": ", ".join(self.symmetries)}
        write_safetensors(path, layout, arrays.__getitem__, notes, force=force)

    def different(self, reason: str, witness: Witness) -> "Sameness":
        """The same numbers with an input that shows a difference."""
        found = self.undecided(reason)
        return replace(found, verdict="different", level="different", witness=witness)

    def undecided(self, reason: str) -> "Sameness":
        """The same numbers without a verdict."""
        return replace(
            self,
            verdict="undecided",
            level=None,
            reason=reason,
            symmetries=(),
            element={},
            primes=None,
        )

    def __str__(self) -> str:
        used = f" Symmetries: {', '.join(self.symmetries)}." if self.symmetries else ""
        return f"{self.verdict}: {self.reason}.{used}"
