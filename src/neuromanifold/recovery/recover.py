"""`recover`: the one entry, which chooses the method, and judges what it found on fresh inputs."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from neuromanifold.algebra.exact_field import ExactField
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.recovery.deep_lightning_exact import recover_exact_lightning
from neuromanifold.recovery.deep_softmax import recover_deep_softmax
from neuromanifold.recovery.factorise import ExactVirtual, factorise_exact
from neuromanifold.recovery.lightning import recover_single_lightning, recover_two_lightning
from neuromanifold.recovery.numeric import Method, recover_numeric
from neuromanifold.recovery.oracle import (
    BlackBox,
    ExactOracle,
    Function,
    PreciseOracle,
    black_box,
    exact_network_oracle,
)
from neuromanifold.recovery.result import Judged, Recovery, Refusal, judged, nothing, refused
from neuromanifold.recovery.search import search
from neuromanifold.recovery.softmax import recover_softmax

MAX_CALLS = 100_000
"""The default bound on oracle calls; one float64 layer of width d takes about d³/2 of them."""

FRESH_INPUTS = 20
EXACT_DEPTH = 3


def recover(
    oracle: Function | ExactOracle | PreciseOracle,
    architecture: Architecture,
    *,
    seed: int = 0,
    max_calls: int = MAX_CALLS,
    noise: float | None = None,
) -> Recovery:
    """Weights of `architecture` whose function is the black box (thm-3.2, thm-3.7, softmax-fibers).

    Covered, with unfactored values: in floats one layer of any kind, and two layers of one head of
    any kind; with an `ExactOracle` plain lightning of depth 1 to 3; with a `PreciseOracle` plain
    softmax of any depth. Plain is one head without skip and mask.

    Args:
        oracle: a callable from a (d_0, t) float64 array to a (d_l, t) one, an `ExactOracle` or a
            `PreciseOracle`.
        architecture: the network whose weights are wanted.
        seed: where all random choices come from.
        max_calls: the bound on the number of oracle calls.
        noise: the largest relative error of an output, as a matrix, when it is more than rounding
            in float64; the answer then comes with error bars, or is undecided.

    Returns:
        The weights and how well they fit on fresh inputs, or the reason why there are none.
    """
    _check_numbers(oracle, seed, max_calls, noise)
    blank = Recovery(
        architecture=architecture,
        verdict="not identified",
        reason="",
        weights=None,
        alternatives=(),
        fit_error=None,
        fresh_inputs=FRESH_INPUTS,
        calls=0,
        method="",
        seed=seed,
        conditions={},
        noise=noise,
    )
    blank, solve = _method(oracle, blank)
    box = black_box(oracle, architecture, max_calls, noise)
    try:
        answer = solve(box, blank)
    except Refusal as refusal:
        answer = refused(blank, [refusal])
    return replace(answer, calls=box.calls)


def _method(
    oracle: object, blank: Recovery
) -> tuple[Recovery, Callable[[BlackBox, Recovery], Recovery]]:
    """What finds the answer, and the blank one with its name."""
    if isinstance(oracle, ExactOracle):
        _check_plain(blank.architecture, "lightning", EXACT_DEPTH, "an exact")
        over = "Q" if oracle.prime is None else f"GF({oracle.prime})"
        solve = partial(_recover_exact, ExactField(oracle.prime))
        return replace(blank, method=f"exact lightning over {over}"), solve
    if isinstance(oracle, PreciseOracle):
        _check_plain(blank.architecture, "softmax", None, "a precise")
        name = "softmax layers one by one near equal tokens, to many digits"
        return replace(blank, method=name), recover_deep_softmax
    name, method = _float_method(blank.architecture)
    return replace(blank, method=name), partial(recover_numeric, method)


def _check_numbers(oracle: object, seed: int, max_calls: int, noise: float | None) -> None:
    for name, value, least in (("seed", seed, 0), ("max_calls", max_calls, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ArgumentError(f"{name} must be a whole number, {least} or larger; got {value!r}")
    if noise is None:
        return
    if isinstance(oracle, ExactOracle | PreciseOracle):
        raise ArgumentError("noise belongs to an oracle in floats; this one is exact: leave it out")
    number = isinstance(noise, int | float) and not isinstance(noise, bool)
    if not number or not math.isfinite(noise) or not 0 < noise < 1:
        raise ArgumentError(f"noise must be a relative error between 0 and 1; got {noise!r}")


def _check_plain(
    architecture: Architecture, attention: str, depth: int | None, oracle: str
) -> None:
    """Raise unless this is a plain network of the kind that such an oracle is for."""
    deep = depth is not None and architecture.depth > depth
    if architecture.attention != attention or deep or not architecture.is_single:
        reach = "of any depth" if depth is None else f"of depth 1 to {depth}"
        raise NotCoveredError(
            f"recovery from {oracle} oracle covers {attention} {reach} with one head and no skip, "
            f"mask or factored values; got {architecture.name}"
        )


def _float_method(architecture: Architecture) -> tuple[str, Method]:
    """The method for an oracle in floats, with its name."""
    attention, depth = architecture.attention, architecture.depth
    if architecture.value_ranks is not None:
        raise NotCoveredError(
            f"recovery covers unfactored values only; got {architecture.name}: ask for value maps "
            "of full rank"
        )
    if architecture.heads > 1 and depth > 1:
        raise NotCoveredError(
            f"recovery covers several heads in one layer only; got {architecture.name}"
        )
    if depth > 2:
        wanted = "a `PreciseOracle`" if attention == "softmax" else "an `ExactOracle`"
        raise NotCoveredError(
            f"recovery in floats covers depth 1 and 2, as deeper layers are seen below rounding "
            f"only; got {architecture.name}: give {wanted}"
        )
    if attention == "lightning" and architecture.heads > 1:
        _check_heads_determined(architecture)
    layers = f"{('one', 'two')[depth - 1]} {attention} layer{'s' * (depth > 1)} in float64"
    direct = architecture.heads == 1 and architecture.skip != "inner"
    if direct and depth == 1:
        return layers, recover_single_lightning if attention == "lightning" else recover_softmax
    if direct and architecture.skip == "none":
        if attention == "lightning":
            return layers, recover_two_lightning
        if architecture.mask == "none":
            return layers, recover_softmax
    return f"{layers}, descents from random starts", search


def _check_heads_determined(architecture: Architecture) -> None:
    """Raise where lightning heads mix continuously for every weights (head-mixing)."""
    if architecture.ranks[0] >= architecture.widths[0] and architecture.skip != "inner":
        raise NotCoveredError(
            f"lightning heads of rank a ≥ d are not determined by their function: they mix "
            f"(head-mixing); got {architecture.name}"
        )


def _recover_exact(field: ExactField, box: BlackBox, blank: Recovery) -> Recovery:
    """The answer over Q or GF(p): what fits every fresh input without error."""
    architecture = blank.architecture
    probing, fresh = (random.Random(f"{blank.seed} {stream}") for stream in range(2))
    shape = (architecture.widths[0], architecture.tokens)
    inputs = [field.random(fresh, *shape) for _ in range(FRESH_INPUTS)]
    outputs = [box(X) for X in inputs]

    def tested(point: ExactVirtual) -> Judged:
        """The weights, unless they miss a fresh input, by however little."""
        weights = factorise_exact(point, architecture)
        function = exact_network_oracle(weights, field.prime).function
        for X, output in zip(inputs, outputs, strict=True):
            if not np.array_equal(np.asarray(function(X)), output):
                raise Refusal(
                    f"the best {architecture.name} found misses fresh inputs, so the function is "
                    "none"
                )
        return weights, Fraction(0), {}

    if not any(output.any() for output in outputs):
        box.check_determinism()
        return nothing(blank, outputs[0])
    points = recover_exact_lightning(box, architecture, field, probing)
    box.check_determinism()
    return judged(blank, [partial(tested, point) for point in points])
