"""A continuous path along a fiber, from one weights to another (eq-6).

The path is g(s)·W with g(s) in the identity component of the symmetry groups. GL_n has two
components, told apart by the sign of the determinant, and so has the group of scalings: when the
symmetry that carries W to W' is unique and lies in another component, no path of this kind exists.
Where it is not unique, `transport` has chosen positive determinants if it could. Where a layer
reads coordinates that no input reaches, the path may first scale those down to zero, and back at
its end: in between the symmetry is not unique.

The outputs of layer i, over all inputs, span the image of (V_1 R … V_H R), R a basis of what
reaches the layer. What the next layer reads beyond that span does not enter the function (eq-8).
There the interface C_i is free beyond the span, and its determinant can take either sign.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.normal_form.factors import numeric_rank
from neuromanifold.fibers.outputs import function_deviation
from neuromanifold.fibers.transport.path import path_to
from neuromanifold.fibers.transport.transport import Transport, transport
from neuromanifold.fibers.units import in_float64
from neuromanifold.networks.weights import Weights, replace_layers

_READ = ("query", "key", "value")


@dataclass(frozen=True, slots=True)
class Walk(Displayed, Recorded):
    """A path along a fiber, or why there is none.

    Attributes:
        points: the weights along the path, both ends included; empty when there is no path.
        obstruction: why there is no path; None when there is one.
        deviation: the largest relative difference of outputs along the path, at random inputs.
        transport: the symmetry that carries one end to the other, or between the two ends with
            what is unseen scaled down to zero.
        seed: the seed of the inputs.
    """

    points: tuple[Weights, ...]
    obstruction: str | None
    deviation: float
    transport: Transport
    seed: int
    _json = "steps obstruction deviation transport seed"

    @property
    def steps(self) -> int:
        """From how many points to the next; the weights go to files of their own."""
        return max(len(self.points) - 1, 0)

    def __str__(self) -> str:
        if self.obstruction is not None:
            return f"No path along the fiber was found: {self.obstruction}."
        return (
            f"A path along the fiber in {len(self.points) - 1} steps; outputs along it differ by "
            f"at most {self.deviation:.2g}."
        )


def walk(first: Weights, second: Weights, *, steps: int = 16, seed: int = 0) -> Walk:
    """A path from `first` to `second` along which the function stays (eq-6).

    Args:
        first: weights W.
        second: weights W' of the same architecture.
        steps: the number of steps, so that the path has `steps` + 1 points.
        seed: where the inputs come from at which the function is checked.
    """
    if steps < 1:
        raise ArgumentError(f"a path has at least one step; got {steps}")
    found = transport(first, second)
    W, W_new = in_float64(first), in_float64(second)
    obstruction = _obstruction(found)
    if obstruction is None:
        try:
            inner = [g.act(W) for g in path_to(found.element, steps)[1:-1]]
        except ArgumentError as error:  # keys that allow a mixing of heads, but not all before it
            return Walk((), str(error), 0.0, found, seed)
        return _walked((W, *inner, W_new), found, seed)
    if has_unseen(W) and has_unseen(W_new) and steps >= 3:
        start, end = fade_unseen(W, 1.0), fade_unseen(W_new, 1.0)
        between = transport(start, end)
        if _obstruction(between) is None:
            return _walked(_through_faded(W, W_new, between, steps), between, seed)
    return Walk((), obstruction, 0.0, found, seed)


def _walked(points: tuple[Weights, ...], found: Transport, seed: int) -> Walk:
    """The path with its measured deviation."""
    deviation = max(function_deviation(points[0], point, seed=seed) for point in points)
    return Walk(points, None, deviation, found, seed)


def _through_faded(
    W: Weights, W_new: Weights, between: Transport, steps: int
) -> tuple[Weights, ...]:
    """W, what is unseen scaled down, the symmetry's path, what is unseen of W' scaled up, W'.

    A third of the steps each; the symmetry takes what the division leaves over.
    """
    third = steps // 3
    amounts = np.linspace(0.0, 1.0, third + 1)
    down = [fade_unseen(W, amount) for amount in amounts]
    up = [fade_unseen(W_new, amount) for amount in amounts[::-1]]
    inner = [g.act(down[-1]) for g in path_to(between.element, steps - 2 * third)[1:-1]]
    return (*down, *inner, *up)


def _obstruction(found: Transport) -> str | None:
    """Why the symmetry found gives no path."""
    if not found.found:
        return (
            "no symmetry carries one to the other "
            f"(residual {found.residual:.2g}, tolerance {found.tolerance:.2g})"
        )
    reasons = found.element.component()
    if not reasons:
        return None
    kind = "the only symmetry" if found.unique else "the symmetry found"
    return f"{kind} between them lies in another component: {', '.join(reasons)}"


def has_unseen(weights: Weights) -> bool:
    """Whether some layer reads coordinates that no input reaches."""
    return any(P is not None for P in _unseen_projectors(weights))


def fade_unseen(weights: Weights, amount: float) -> Weights:
    """The weights with what is never reached scaled by 1 − `amount`; the function stays (eq-8)."""
    layers = []
    for layer, P in zip(weights.layers, _unseen_projectors(weights), strict=True):
        read: dict[str, np.ndarray] = {}
        if P is not None:
            kept = np.eye(len(P)) - amount * P
            read = {name: np.asarray(layer.tensors()[name]) @ kept for name in _READ}
        layers.append(read)
    return replace_layers(weights, layers)


def _unseen_projectors(weights: Weights) -> list[Float[np.ndarray, "_ _"] | None]:
    """For each layer the orthogonal projector onto what never reaches it, None if there is none."""
    projectors: list[np.ndarray | None] = [None]
    R = np.eye(weights.architecture.widths[0])
    for layer in weights.layers[:-1]:
        if weights.architecture.adds_input:
            projectors.append(None)
            continue
        U, S, _ = np.linalg.svd(np.hstack(list(np.asarray(layer.value_maps()) @ R)))
        r = numeric_rank(S)
        R = U[:, :r]
        projectors.append(U[:, r:] @ U[:, r:].T if r < len(U) else None)
    return projectors
