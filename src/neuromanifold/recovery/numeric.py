"""Recovery in floats: a method finds points, a fit gives their error bars, fresh inputs judge.

What is decided is decided against the error bars: a form or map that the noise leaves open by more
than a tenth of its size is undetermined, a singular value beyond the rank asked for counts when it
is clearly above its bar, and weights must fit fresh inputs as well as their bars promise.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights
from neuromanifold.recovery.factorise import factorise
from neuromanifold.recovery.fit import Fit, Inputs, Outputs, Point, fit, update_sizes
from neuromanifold.recovery.oracle import BlackBox
from neuromanifold.recovery.result import (
    ZERO,
    Judged,
    Recovery,
    Refusal,
    Undecided,
    judged,
    nothing,
)
from neuromanifold.recovery.search import template
from neuromanifold.recovery.units import Asked, Probe, choose_units

TOLERANCE = 1e-8
"""Largest relative error on a fresh input that an identified float64 network may have."""

_ROUNDING = 2.0**-50
"""The relative error of a float64 oracle, when none is stated."""

_LOOKS = 3
"""Inputs that are looked at in all sizes before a function is called zero."""

_IDENTITY = "the identity: all weights with V = 0 give it, whatever their forms"

_CONDITION_LIMIT = 1e8
"""Largest condition number of equations that count as determined: rounding errors then stay below
the tolerance. Above, weights may fit that are not the ones looked for."""

_TRUST = 0.1
"""Largest relative error bar of a form or map that counts as found."""

Method = Callable[[Probe], tuple[list[Point], dict[str, float]]]


def recover_numeric(method: Method, box: BlackBox, blank: Recovery) -> Recovery:
    """The answer in floats, filled into the blank one."""
    architecture = blank.architecture
    probing, drawn = (np.random.default_rng([blank.seed, stream]) for stream in range(2))
    shape = (blank.fresh_inputs, architecture.widths[0], architecture.tokens)
    fresh = drawn.standard_normal(shape)
    ask = _chosen([choose_units(box, architecture, X) for X in fresh[:_LOOKS]])
    ask = ask or Asked(box, architecture, 0, 0)
    outputs = np.stack([ask(X) for X in fresh])
    if not update_sizes(outputs, fresh, architecture).any():
        box.check_determinism()
        return nothing(blank, np.zeros(1), _IDENTITY if architecture.skip == "residual" else ZERO)
    samples, values = _samples(ask, probing)
    points, conditions = method(Probe(ask, samples, values, probing))
    _check_conditions(conditions, blank.noise)
    box.check_determinism()
    fits = [fit(point, samples, values, blank.noise or _ROUNDING) for point in points]
    conditions["equations of the fit"] = max(found.condition for found in fits)
    tests = [partial(_tested, found, ask, fresh, outputs, blank.noise) for found in fits]
    return judged(replace(blank, conditions=conditions), tests)


def _chosen(units: list[Asked | None]) -> Asked | None:
    """The units of the first input, unless another one bends at far smaller sizes."""
    seen = [chosen for chosen in units if chosen is not None]
    if not seen:
        return None
    smallest = min(seen, key=lambda chosen: chosen.input)
    return seen[0] if seen[0].input <= smallest.input + 4 else smallest


def _samples(ask: Asked, generator: np.random.Generator) -> tuple[Inputs, Outputs]:
    """Random inputs of size one, enough to fit all unknowns three times over, with their outputs.

    Where sizes matter they differ: softmax saturates above, a polynomial only grows.
    """
    architecture = ask.architecture
    d, t = architecture.widths[0], architecture.tokens
    unknowns = len(template(architecture).vector) // architecture.widths[-1]
    table = d * d * (d + 1) // 2 if architecture.attention == "lightning" else 0
    inputs = generator.standard_normal((-(-3 * max(unknowns, table) // t) + 8, d, t))
    if architecture.attention == "softmax":
        inputs *= np.resize([0.5, 1.0, 2.0], len(inputs))[:, None, None]
    elif architecture.skip != "none":
        inputs *= np.resize([0.25, 0.5, 1.0], len(inputs))[:, None, None]
    return inputs, np.stack([ask(X) for X in inputs])


def _check_conditions(conditions: dict[str, float], noise: float | None) -> None:
    """Refuse equations in which the noise grows beyond what they are solved for."""
    limit = _CONDITION_LIMIT if noise is None else min(_CONDITION_LIMIT, 10 / noise)
    for name, condition in conditions.items():
        if not condition <= limit:
            reason = f"the {name} leave it undetermined (condition {condition:.0e})"
            raise Refusal(reason) if noise is None else Undecided(f"{reason} at this noise")


def _tested(found: Fit, ask: Asked, fresh: Inputs, outputs: Outputs, noise: float | None) -> Judged:
    """The weights of a fit, their error on fresh inputs and their error bars; or a refusal."""
    architecture = ask.architecture
    sizes = update_sizes(outputs, fresh, architecture)
    loud = np.max(np.linalg.norm(outputs, axis=(1, 2)) / np.where(sizes > 0, sizes, np.inf))
    allowed = max(TOLERANCE, 10 * (noise or 0.0) * float(loud))
    if not found.residual <= allowed:
        raise Refusal(_misfit(architecture, found.residual, noise, "the values it was fitted to"))
    bars = _relative_bars(found)
    worst = max(bars, key=lambda name: bars[name])
    if not bars[worst] <= _TRUST:
        where = f"{worst} can be wrong by {bars[worst]:.0e} of its size"
        if noise is not None:
            raise Undecided(f"at a noise of {noise:.1e} {where}: it is undetermined")
        raise Refusal(f"{worst} is left undetermined (condition {found.condition:.0e}): {where}")
    bars["the function"] = found.function_error(fresh)
    weights = factorise(found.point, found.errors)
    values = _point_of(weights)(fresh)
    apart = np.linalg.norm(values - outputs, axis=(1, 2))
    error = float(np.max(apart / np.where(sizes > 0, sizes, 1.0)))
    if not error <= allowed + 3 * bars["the function"]:
        raise Refusal(_misfit(architecture, error, noise, "fresh inputs"))
    return ask.weights(weights), error, bars


def _relative_bars(found: Fit) -> dict[str, float]:
    """The error bars of forms and maps over their sizes.

    A form of softmax much smaller than τ has scores near 0 at inputs of size one: only its absolute
    error counts.
    """
    point = found.point
    softmax = point.architecture.attention == "softmax"
    least = point.architecture.temperature if softmax else 0.0
    sizes = [max(float(np.linalg.norm(A)), least) for A in point.forms]
    names = [f"the form of layer {i}" for i in range(1, len(sizes) + 1)]
    maps = [V for V in point.values if V is not None]
    names += [
        "the linear map" if len(maps) < len(sizes) else f"the value map of layer {i}"
        for i in range(1, len(maps) + 1)
    ]
    sizes += [float(np.linalg.norm(V)) for V in maps]
    with np.errstate(divide="ignore"):
        return {
            name: float(np.divide(error, size))
            for name, error, size in zip(names, found.errors, sizes, strict=True)
        }


def _misfit(architecture: Architecture, error: float, noise: float | None, where: str) -> str:
    why = (
        "so the function is none, or it is noisy (state `noise`) or too ill-conditioned"
        if noise is None
        else f"more than a noise of {noise:.1e} explains"
    )
    return f"the best {architecture.name} found misses {where} by {error:.1e} relative, {why}"


def _point_of(weights: Weights) -> Point:
    """The point of all layers of weights."""
    return Point.of_forms(
        [np.asarray(layer.attention_matrices()) for layer in weights.layers],
        [np.asarray(layer.value_maps()) for layer in weights.layers],
        weights.architecture,
    )
