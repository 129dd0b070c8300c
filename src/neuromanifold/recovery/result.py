"""What a recovery answers: the weights with their evidence, or why there are none."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Literal

import jax
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.weights import Weights, unflatten

ZERO = "the zero function: all weights with L = 0 give it, whatever their forms"

Verdict = Literal["identified", "not identified", "undecided"]
Judged = tuple[Weights, float | Fraction, Mapping[str, float]]
"""Weights, their largest error on fresh inputs, and their error bars."""


class Refusal(Exception):  # noqa: N818 - it is an answer on its way to the caller, not an error
    """Raised by a method that cannot identify the weights; its text is the reason.

    `recover` turns it into a `Recovery` with the verdict "not identified".
    """


class Contradicted(Refusal):
    """Raised where the black box differs from the network by more than its noise can explain."""


class Undecided(Refusal):
    """Raised where the noise of the black box leaves both answers open; its text is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Recovery(Displayed, Recorded):
    """Weights recovered from a black box, with the evidence.

    Attributes:
        architecture: the network that was asked for.
        verdict: "identified", "not identified", or "undecided" at this noise.
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
        noise: the relative error of outputs that was stated, or None.
        error_bars: by how much the forms, the maps and the function can be wrong, relatively, to
            first order, when every output is wrong by the noise or by the misfit; forms of a
            softmax network relative to scores of size one where these are larger. Empty for exact
            answers.
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
    noise: float | None = None
    error_bars: Mapping[str, float] = field(default_factory=dict)
    _json = (
        "verdict reason method calls seed fit_error fresh_inputs alternatives=further conditions "
        "noise error_bars"
    )

    @property
    def further(self) -> int:
        """How many further weights there are."""
        return len(self.alternatives)

    def in_float64(self) -> "Recovery":
        """The answer with its weights rounded to float64, where they were exact rationals."""
        if self.weights is None or np.asarray(self.weights.layers[0].query).dtype != object:
            return self
        points = [self.weights, *self.alternatives]
        try:
            rounded = jax.tree.map(partial(np.asarray, dtype=float), points)
        except OverflowError:
            raise ArgumentError(
                "the exact weights are too large for float64; use `recover` in Python"
            ) from None
        rounding = {"every weight": 2.0**-52}
        return replace(
            self, weights=rounded[0], alternatives=tuple(rounded[1:]), error_bars=rounding
        )

    def __str__(self) -> str:
        cost = f"{self.method}, {self.calls} calls, seed {self.seed}"
        if self.weights is None:
            return f"{self.architecture.name}: {self.verdict}: {self.reason} ({cost})"
        error = "0 exactly" if self.fit_error == 0 else f"{float(self.fit_error or 0):.1e}"
        also = f", {len(self.alternatives)} further point of the fiber" * bool(self.alternatives)
        remark = f"; {self.reason}" * bool(self.reason)
        if self.noise is not None and self.error_bars:
            worst = max(self.error_bars, key=lambda name: self.error_bars[name])
            remark = f", {worst} to within {self.error_bars[worst]:.1e}{remark}"
        return (
            f"{self.architecture.name}: identified with relative error {error} on "
            f"{self.fresh_inputs} fresh inputs{also}{remark} ({cost})"
        )


def refused(blank: Recovery, refusals: Sequence[Refusal]) -> Recovery:
    """The answer without weights: undecided if one of the reasons is.

    With noise that nothing was found is no reason by itself: the noise may have hidden it.
    """
    reason = "; ".join(dict.fromkeys(map(str, refusals)))
    open_question = any(isinstance(refusal, Undecided) for refusal in refusals)
    if blank.noise is not None and not any(
        isinstance(r, Undecided | Contradicted) for r in refusals
    ):
        open_question, reason = True, f"{reason}, which a noise of {blank.noise:.1e} may cause"
    return replace(blank, verdict="undecided" if open_question else "not identified", reason=reason)


def nothing(blank: Recovery, like: np.ndarray, reason: str = ZERO) -> Recovery:
    """The answer for the zero function: all weights 0, of the kind of number of `like`."""
    zero = like.flat[0] * 0
    weights = unflatten(blank.architecture, np.full(blank.architecture.parameters, zero))
    return replace(blank, verdict="identified", reason=reason, weights=weights, fit_error=zero)


def judged(blank: Recovery, candidates: Iterable[Callable[[], Judged]]) -> Recovery:
    """The answer with the candidates that stand up to their tests, or why none does."""
    kept: list[Judged] = []
    refusals: list[Refusal] = []
    for candidate in candidates:
        try:
            kept.append(candidate())
        except Refusal as refusal:
            refusals.append(refusal)
    if not kept:
        return refused(blank, refusals)
    return replace(
        blank,
        verdict="identified",
        weights=kept[0][0],
        alternatives=tuple(weights for weights, _, _ in kept[1:]),
        fit_error=max(error for _, error, _ in kept),
        error_bars=kept[0][2],
    )


def condition_number(matrix: np.ndarray, *, kernel: int = 0) -> float:
    """σ_1 over the smallest singular value, the `kernel` smallest left out."""
    singular = np.linalg.svd(matrix, compute_uv=False)
    seen = singular[: len(singular) - kernel]
    if not len(seen):
        return 1.0
    return float(seen[0] / seen[-1]) if seen[-1] > 0 else math.inf
