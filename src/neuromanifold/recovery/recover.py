"""`recover`: the one entry, which chooses the method, and judges what it found on fresh inputs."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.weights import Weights
from neuromanifold.recovery.deep_lightning_exact import recover_exact_lightning
from neuromanifold.recovery.deep_lightning_numeric import recover_two_lightning
from neuromanifold.recovery.exact_field import ExactField
from neuromanifold.recovery.factorise import factorise
from neuromanifold.recovery.factorise_exact import factorise_exact
from neuromanifold.recovery.oracle import (
    BlackBox,
    ExactOracle,
    Function,
    exact_box,
    exact_network_oracle,
    float_box,
    is_plain,
    network_oracle,
    relative_error,
)
from neuromanifold.recovery.result import Recovery, Refusal, Solution
from neuromanifold.recovery.single_lightning import recover_single_lightning
from neuromanifold.recovery.softmax import recover_softmax

MAX_CALLS = 100_000
"""The default bound on oracle calls; one float64 layer of width d takes about d³/2 of them."""

FRESH_INPUTS = 20
TOLERANCE = 1e-8
"""Largest relative error on a fresh input that an identified float64 network may have."""

CONDITION_LIMIT = 1e8
"""Largest condition number of equations that count as determined: rounding errors then stay below
the tolerance. Above, weights may fit that are not the ones looked for."""

_EXACT_DEPTH = 3
_ZERO = "the zero function: all weights with L = 0 give it, whatever their forms"

_Method = Callable[[BlackBox, Architecture, np.random.Generator], Solution]
_METHODS: dict[tuple[str, int], tuple[str, _Method]] = {
    ("lightning", 1): ("one lightning layer in float64", recover_single_lightning),
    ("lightning", 2): ("two lightning layers in float64", recover_two_lightning),
    ("softmax", 1): ("one softmax layer in float64", recover_softmax),
    ("softmax", 2): ("two softmax layers in float64", recover_softmax),
}

_Candidates = Iterable[Callable[[], Weights]]


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What is the same to judge for floats and for exact numbers.

    Attributes:
        blank: the answer "not identified", to be filled in.
        box: the black box.
        inputs: the fresh inputs.
        solve: runs the method; gives the constructions of weights, and condition numbers.
        function: the function of recovered weights.
    """

    blank: Recovery
    box: BlackBox
    inputs: list[np.ndarray]
    solve: Callable[[], tuple[_Candidates, Mapping[str, float]]]
    function: Callable[[Weights], Function]


def recover(
    oracle: Function | ExactOracle,
    architecture: Architecture,
    *,
    seed: int = 0,
    max_calls: int = MAX_CALLS,
) -> Recovery:
    """Weights of `architecture` whose function is the black box (thm-3.2, thm-3.7, thm-3.9).

    Covered: one head, no skip, no mask, unfactored values; lightning of depth 1 and 2 and softmax
    of depth 1 and 2 in float64; lightning of depth 1 to 3 with an `ExactOracle`.

    Args:
        oracle: a callable from a (d_0, t) float64 array to a (d_l, t) one, or an `ExactOracle`.
        architecture: the network whose weights are wanted.
        seed: where all random choices come from.
        max_calls: the bound on the number of oracle calls.

    Returns:
        The weights and how well they fit on fresh inputs, or "not identified" with the reason.
    """
    _check_arguments(oracle, architecture, seed, max_calls)
    if isinstance(oracle, ExactOracle):
        return _judge(_exact_task(oracle, architecture, seed, max_calls))
    return _judge(_numeric_task(oracle, architecture, seed, max_calls))


def _check_arguments(oracle: object, architecture: Architecture, seed: int, max_calls: int) -> None:
    for name, value, least in (("seed", seed, 0), ("max_calls", max_calls, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ArgumentError(f"{name} must be a whole number, {least} or larger; got {value!r}")
    exact = isinstance(oracle, ExactOracle)
    if exact:
        covered = architecture.attention == "lightning" and architecture.depth <= _EXACT_DEPTH
    else:
        covered = (architecture.attention, architecture.depth) in _METHODS
    if not (covered and is_plain(architecture)):
        raise NotCoveredError(
            "recovery covers one head without skip, mask and factored values: lightning and "
            "softmax of depth 1 and 2 in float64, lightning of depth 1 to 3 with an exact oracle; "
            f"got {architecture.name} with {'an exact' if exact else 'a float64'} oracle"
        )


def _numeric_task(
    function: Function, architecture: Architecture, seed: int, max_calls: int
) -> _Task:
    method, solve_with = _METHODS[architecture.attention, architecture.depth]
    box = float_box(function, architecture, max_calls)
    probing, fresh = (np.random.default_rng([seed, stream]) for stream in range(2))
    shape = (FRESH_INPUTS, architecture.widths[0], architecture.tokens)

    def solve() -> tuple[_Candidates, Mapping[str, float]]:
        solution = solve_with(box, architecture, probing)
        for name, condition in solution.conditions.items():
            if not condition <= CONDITION_LIMIT:
                raise Refusal(f"the {name} leave it undetermined (condition {condition:.0e})")
        return [partial(factorise, point) for point in solution.points], solution.conditions

    blank = _blank(architecture, method, seed)
    return _Task(blank, box, list(fresh.standard_normal(shape)), solve, network_oracle)


def _exact_task(
    oracle: ExactOracle, architecture: Architecture, seed: int, max_calls: int
) -> _Task:
    field, box = ExactField(oracle.prime), exact_box(oracle, architecture, max_calls)
    probing, fresh = (random.Random(f"{seed} {stream}") for stream in range(2))
    shape = (architecture.widths[0], architecture.tokens)
    method = "exact lightning over " + ("Q" if oracle.prime is None else f"GF({oracle.prime})")

    def solve() -> tuple[_Candidates, Mapping[str, float]]:
        points = recover_exact_lightning(box, architecture, field, probing)
        return [partial(factorise_exact, point, architecture) for point in points], {}

    def function(weights: Weights) -> Function:
        return exact_network_oracle(weights, oracle.prime).function

    inputs = [field.random(fresh, *shape) for _ in range(FRESH_INPUTS)]
    return _Task(_blank(architecture, method, seed), box, inputs, solve, function)


def _blank(architecture: Architecture, method: str, seed: int) -> Recovery:
    return Recovery(
        architecture=architecture,
        verdict="not identified",
        reason="",
        weights=None,
        alternatives=(),
        fit_error=None,
        fresh_inputs=FRESH_INPUTS,
        calls=0,
        method=method,
        seed=seed,
        conditions={},
    )


def _judge(task: _Task) -> Recovery:
    """Run the method and keep what fits the fresh inputs, or say why nothing does."""
    box = task.box
    conditions: Mapping[str, float] = {}
    try:
        outputs = [box(X) for X in task.inputs]
        is_zero = not any(output.any() for output in outputs)
        if is_zero:
            candidates: _Candidates = [partial(_zero_weights, task.blank.architecture, outputs[0])]
        else:
            candidates, conditions = task.solve()
        box.check_determinism()
    except Refusal as refusal:
        return replace(task.blank, reason=str(refusal), calls=box.calls)
    answer = replace(task.blank, calls=box.calls, conditions=conditions)
    fits, reasons = _fits(task, candidates, outputs)
    if not fits:
        return replace(answer, reason="; ".join(dict.fromkeys(reasons)))
    return replace(
        answer,
        verdict="identified",
        reason=_ZERO if is_zero else "",
        weights=fits[0][0],
        alternatives=tuple(weights for weights, _ in fits[1:]),
        fit_error=max(error for _, error in fits),
    )


def _fits(
    task: _Task, candidates: _Candidates, outputs: list[np.ndarray]
) -> tuple[list[tuple[Weights, float | Fraction]], list[str]]:
    """The weights that fit, each with its error, and the reasons against the others."""
    fits: list[tuple[Weights, float | Fraction]] = []
    reasons: list[str] = []
    for construct in candidates:
        try:
            weights = construct()
        except Refusal as refusal:
            reasons.append(str(refusal))
            continue
        function = task.function(weights)
        error = max(
            relative_error(np.asarray(function(X)), output)
            for X, output in zip(task.inputs, outputs, strict=True)
        )
        if error <= TOLERANCE:
            fits.append((weights, error))
        else:
            reasons.append(
                f"the best {task.blank.architecture.name} found misses fresh inputs by "
                f"{float(error):.1e} relative, so the function is none, or it is noisy or too "
                "ill-conditioned"
            )
    return fits, reasons


def _zero_weights(architecture: Architecture, like: np.ndarray) -> Weights:
    """All weights 0, of the kind of number that the oracle returned."""
    return Weights.from_tensors(
        architecture,
        [
            {name: np.full(shape, like.flat[0] * 0) for name, shape in layer.items()}
            for layer in architecture.shapes
        ],
    )
