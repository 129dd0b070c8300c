"""Weights by least squares from random starts, where no formula shows them one after the other.

Every start is a descent to a nearest fit; one that fits to the last digit has found weights of the
function. That these are the only ones, up to the symmetries, is what the statements on fibers say:

    two layers with the causal mask       one point (softmax-causal-fibers)
    two layers with the inner skip        one point (softmax-inner-fibers)
    two layers with a residual skip       heads permuted in their layers (softmax-residual)
    one softmax layer of several heads    heads permuted (softmax-layer)

For several lightning heads of rank a < d, and for lightning with a skip, no such theorem is known:
there the differential at the fit has full rank modulo the symmetries, so the point is isolated.
Lightning heads of rank a ≥ d mix (head-mixing), and nothing about single heads is determined.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.recovery.fit import Point, fit
from neuromanifold.recovery.result import Refusal
from neuromanifold.recovery.softmax import causal_forms, linear_map
from neuromanifold.recovery.units import Probe

_STARTS = 40
_EVALUATIONS = 80
_NEAR = 1e-6
"""A descent that came so close, relatively, or so close to the noise, has found a fit."""

_MOST_UNKNOWNS = 400


def search(
    probe: Probe,
) -> tuple[list[Point], dict[str, float]]:
    """The first of many descents that reaches a fit."""
    ask = probe.ask
    shape = template(ask.architecture)
    if len(shape.vector) > _MOST_UNKNOWNS:
        raise Refusal(
            f"descents from random starts are made in at most {_MOST_UNKNOWNS} unknowns; "
            f"this network has {len(shape.vector)}"
        )
    draw = _starts(probe, shape)
    near = max(_NEAR, 30 * ask.box.noise)
    closest = np.inf
    for _ in range(_STARTS):
        found = fit(draw(), probe.inputs, probe.outputs, ask.box.noise, evaluations=_EVALUATIONS)
        if found.residual <= near:
            return [found.point], {}
        closest = min(closest, found.residual)
    raise Refusal(
        f"none of {_STARTS} descents from random starts came closer than {closest:.1e}, "
        "relatively: the function is no such network, or they missed it (another seed makes others)"
    )


def template(architecture: Architecture) -> Point:
    """A point of zeros with the blocks that are unknown: virtual weights, or those of each layer.

    Lightning heads keep their rank in keys and queries, as sums of heads are all that is seen of
    forms of full rank (head-mixing).
    """
    d, H, l = architecture.widths[0], architecture.heads, architecture.depth
    if H == 1 and architecture.skip != "residual":
        L = np.zeros((architecture.widths[-1], d))
        return Point.virtual([np.zeros((d, d))] * l, L, architecture)
    values = [
        np.zeros((H, e, c))
        for c, e in zip(architecture.widths, architecture.widths[1:], strict=False)
    ]
    if H > 1 and architecture.attention == "lightning":
        factors = tuple(np.zeros((H, a, d)) for a in architecture.ranks)
        return Point(factors, factors, tuple(values), architecture)
    return Point.of_forms([np.zeros((H, d, d))] * l, values, architecture)


def _starts(probe: Probe, shape: Point) -> Callable[[], Point]:
    """Where descents start: at random, with what the function shows directly kept.

    Equal tokens show the linear map of softmax networks, up to the inner skip's factor 2^l; small
    inputs under the causal mask show two forms but for a skew part.
    """
    ask, architecture, generator = probe.ask, probe.ask.architecture, probe.generator
    plain = architecture.heads == 1 and architecture.skip != "residual"
    if not (plain and architecture.attention == "softmax"):
        return lambda: _random_point(shape, generator)
    inner = architecture.skip == "inner"
    L = linear_map(ask) / (2.0**architecture.depth if inner else 1.0)
    if architecture.depth == 1 or inner:
        return lambda: replace(
            _random_point(shape, generator), values=(*shape.values[:-1], L[None])
        )
    total, symmetric = causal_forms(ask, L, generator)
    size = np.linalg.norm(total) / len(total)

    def draw() -> Point:
        G = size * generator.standard_normal(total.shape)
        M_2 = symmetric + G - G.T
        return Point.virtual([total - M_2 / 2, M_2], L, architecture)

    return draw


def _random_point(shape: Point, generator: np.random.Generator) -> Point:
    """Scores and values of size one at inputs of size one."""
    softmax = shape.architecture.attention == "softmax"
    unit = shape.architecture.temperature if softmax else 1.0
    sizes = [
        (unit if any(b is Q for Q in shape.queries) else 1.0) / np.sqrt(b.shape[-1])
        for b in shape.blocks
    ]
    drawn = [
        size * generator.standard_normal(b.size)
        for size, b in zip(sizes, shape.blocks, strict=True)
    ]
    return shape.replaced(np.concatenate(drawn))
