"""What a recovery answers: the weights with their evidence, or why there are none."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.display import Displayed
from neuromanifold.networks.virtual import VirtualWeights
from neuromanifold.networks.weights import Weights

Verdict = Literal["identified", "not identified"]


class Refusal(Exception):  # noqa: N818 - it is an answer on its way to the caller, not an error
    """Raised by a method that cannot identify the weights; its text is the reason.

    `recover` turns it into a `Recovery` with the verdict "not identified".
    """


@dataclass(frozen=True, slots=True)
class Solution:
    """Virtual weights as a method found them, not yet compared with the black box.

    Attributes:
        points: one point of the fiber in (M, L), or both points of the rank-one case.
        conditions: the condition numbers of the linear systems solved on the way, by name.
    """

    points: tuple[VirtualWeights, ...]
    conditions: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Recovery(Displayed):
    """Weights recovered from a black box, with the evidence.

    Attributes:
        architecture: the network that was asked for.
        verdict: "identified" or "not identified".
        reason: why nothing was identified, or what remains undetermined; empty otherwise.
        weights: the weights, or None. Those of an exact oracle are arrays of `Fraction` or of
            residues (dtype object).
        alternatives: further weights of the same function that the generic symmetries do not
            reach: the second point of the rank-one case (thm-3.2).
        fit_error: the largest relative error over the fresh inputs, exactly 0 for an exact oracle;
            None when no candidate was reached.
        fresh_inputs: how many fresh inputs the fit was measured on.
        calls: how often the black box was called.
        method: the name of the method.
        seed: where all random choices came from.
        conditions: condition numbers of the linear systems on the way, by name.
    """

    architecture: Architecture
    verdict: Verdict
    reason: str
    weights: Weights | None
    alternatives: tuple[Weights, ...]
    fit_error: float | Fraction | None
    fresh_inputs: int
    calls: int
    method: str
    seed: int
    conditions: Mapping[str, float]

    def __str__(self) -> str:
        cost = f"{self.method}, {self.calls} calls, seed {self.seed}"
        if self.weights is None:
            return f"{self.architecture.name}: not identified: {self.reason} ({cost})"
        error = "0 exactly" if self.fit_error == 0 else f"{float(self.fit_error or 0):.1e}"
        also = f", {len(self.alternatives)} further point of the fiber" * bool(self.alternatives)
        remark = f"; {self.reason}" * bool(self.reason)
        return (
            f"{self.architecture.name}: identified with relative error {error} on "
            f"{self.fresh_inputs} fresh inputs{also}{remark} ({cost})"
        )


def condition_number(matrix: np.ndarray, *, kernel: int = 0) -> float:
    """σ_1 over the smallest singular value, the `kernel` smallest left out."""
    singular = np.linalg.svd(matrix, compute_uv=False)
    seen = singular[: len(singular) - kernel]
    if not len(seen):
        return 1.0
    return float(seen[0] / seen[-1]) if seen[-1] > 0 else math.inf
