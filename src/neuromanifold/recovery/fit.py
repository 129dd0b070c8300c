"""Least squares on forms and value maps: the last digits of a recovery, and how far to trust them.

A point is fitted to values of the black box by Levenberg–Marquardt, whose steps are short along the
rescalings that the function does not see (eq-13). Each input counts by its relative error. With the
Jacobian J at the fit, outputs that are wrong by at most ν each, relatively, move the point by at
most ‖J⁺‖ ν √n to first order, n inputs: this is the error bar of every form and map.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize
from jaxtyping import Float64, Inexact

from neuromanifold.architecture import Architecture
from neuromanifold.networks.evaluation import evaluate

_TOLERANCE = 1e-15
_STEP = 1e-40
"""The imaginary step of a derivative: no difference is taken, so none is too small."""

_DOUBLE = 1e5
_AS_GOOD = 1e-13
"""From such a condition on a start with so small an error stands: where two points of a fiber come
together a descent would only follow the rounding."""

_FAR = 1e300
_STEEP = 1e-3
"""Relative error bars above this are looked at to second order, with steps of this size."""

_SEEN = 1e-11
"""A change of the outputs, relatively, that is no rounding."""

Heads = Inexact[np.ndarray, "*batch head _ _"]
Inputs = Float64[np.ndarray, "sample d0 t"]
Outputs = Float64[np.ndarray, "sample d_l t"]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Forms and value maps of a network, layer by layer.

    Attributes:
        keys: K_h of every layer, or None for the identity, so that the queries are the forms.
        queries: Q_h of every layer, or A_h = K_hᵀ Q_h.
        values: V_h of every layer, or None for the identity: virtual weights (M, L) are the forms
            M_1, …, M_l with all values None but the last, which is L (eq-8).
        architecture: the network.
    """

    keys: tuple[Heads | None, ...]
    queries: tuple[Heads, ...]
    values: tuple[Heads | None, ...]
    architecture: Architecture

    @classmethod
    def of_forms(
        cls, forms: Sequence[Heads], values: Sequence[Heads | None], architecture: Architecture
    ) -> "Point":
        """The point with forms of any rank."""
        return cls((None,) * len(forms), tuple(forms), tuple(values), architecture)

    @classmethod
    def virtual(
        cls, forms: Sequence[np.ndarray], L: np.ndarray, architecture: Architecture
    ) -> "Point":
        """The point of virtual weights (eq-8)."""
        values = [*[None] * (len(forms) - 1), L[None]]
        return cls.of_forms([M[None] for M in forms], values, architecture)

    @property
    def forms(self) -> list[Heads]:
        """A_h of every layer."""
        pairs = zip(self.keys, self.queries, strict=True)
        return [Q if K is None else K.swapaxes(-1, -2) @ Q for K, Q in pairs]

    @property
    def blocks(self) -> list[Heads]:
        """All matrices: keys, queries, values."""
        return [B for B in (*self.keys, *self.queries, *self.values) if B is not None]

    @property
    def vector(self) -> np.ndarray:
        """All entries, in the order of `blocks`."""
        return np.concatenate([block.ravel() for block in self.blocks])

    def replaced(self, vectors: Inexact[np.ndarray, "*batch entry"]) -> "Point":
        """The point with all entries taken from a vector, or many points from many vectors."""
        batch = (*vectors.shape[:-1], *[1] * (vectors.ndim > 1))
        start = 0
        new: list[tuple[Heads | None, ...]] = []
        for group in (self.keys, self.queries, self.values):
            read: list[Heads | None] = []
            for block in group:
                size = 0 if block is None else block.size
                taken = vectors[..., start : start + size]
                read.append(None if block is None else taken.reshape(*batch, *block.shape))
                start += size
            new.append(tuple(read))
        return replace(self, keys=new[0], queries=new[1], values=new[2])

    def __call__(self, X: Inexact[np.ndarray, "*batch d t"]) -> Inexact[np.ndarray, "*all _ t"]:
        """The network's function, for real or complex entries (def-1)."""
        names, blocks = ("key", "query", "value"), (self.keys, self.queries, self.values)
        layers = [
            {name: B for name, B in zip(names, layer, strict=True) if B is not None}
            for layer in zip(*blocks, strict=True)
        ]
        return evaluate(layers, X, self.architecture)

    def jacobian(self, inputs: Inputs) -> Float64[np.ndarray, "sample d_l t entry"]:
        """The derivatives of the outputs in all entries."""
        vector = self.vector
        moved = vector + _STEP * 1j * np.eye(len(vector))
        return np.moveaxis(self.replaced(moved)(inputs).imag / _STEP, 0, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A point fitted to values, with its error bars.

    Attributes:
        point: the point.
        residual: the largest relative error on an input it was fitted to.
        level: the relative error of outputs that the bars are for.
        errors: by how much each layer's forms may be wrong, in norm, and then each value map.
        condition: of the equations for the entries, relative to the size of their blocks.
        inverse: J⁺ in the entries, times the root of the number of inputs.
    """

    point: Point
    residual: float
    level: float
    errors: tuple[float, ...]
    condition: float
    inverse: Float64[np.ndarray, "entry value"]

    def function_error(self, inputs: Inputs) -> float:
        """How far the function may be wrong on an input, relatively, to first order."""
        sizes = update_sizes(self.point(inputs), inputs, self.point.architecture)
        moves = self.point.jacobian(inputs).reshape(len(inputs), -1, len(self.inverse))
        norms = np.linalg.norm(moves @ self.inverse, 2, axis=(1, 2))
        return self.level * float(np.max(norms / sizes))


def update_sizes(outputs: Outputs, inputs: Inputs, architecture: Architecture) -> np.ndarray:
    """The size of every output, without the input itself where a residual skip adds it."""
    updates = outputs - inputs if architecture.skip == "residual" else outputs
    return np.linalg.norm(updates, axis=(1, 2))


def fit(
    start: Point, inputs: Inputs, outputs: Outputs, noise: float, *, evaluations: int = 200
) -> Fit:
    """The point near `start` that fits the values best; noise is relative to each output."""
    sizes = update_sizes(outputs, inputs, start.architecture)
    kept = sizes > 0
    inputs, outputs, sizes = inputs[kept], outputs[kept], sizes[kept, None, None]
    noise *= float(np.max(np.linalg.norm(outputs, axis=(1, 2)) / sizes[:, 0, 0]))

    def residual(vector: np.ndarray) -> np.ndarray:
        return ((start.replaced(vector)(inputs) - outputs) / sizes).ravel()

    def jacobian(vector: np.ndarray) -> np.ndarray:
        slopes = start.replaced(vector).jacobian(inputs) / sizes[..., None]
        return slopes.reshape(outputs.size, -1)

    with np.errstate(all="ignore"):
        found = scipy.optimize.least_squares(
            residual,
            start.vector,
            jac=jacobian,
            method="lm",
            xtol=_TOLERANCE,
            ftol=_TOLERANCE,
            gtol=_TOLERANCE,
            max_nfev=evaluations,
        )
        best = _judged(start.replaced(found.x), inputs, sizes, (found.fun, found.jac), noise)
        before = residual(start.vector)
        if best.condition > _DOUBLE and np.linalg.norm(before) <= _AS_GOOD:
            return _judged(start, inputs, sizes, (before, jacobian(start.vector)), noise)
    return best


def _judged(
    point: Point,
    inputs: Inputs,
    sizes: np.ndarray,
    found: tuple[np.ndarray, np.ndarray],
    noise: float,
) -> Fit:
    """The fit with its error bars, symmetries left out (eq-13)."""
    (residuals, J), samples = found, len(inputs)
    worst = float(np.max(np.linalg.norm(residuals.reshape(samples, -1), axis=1)))
    blocks = point.blocks
    scales = np.concatenate([np.full(b.size, np.linalg.norm(b) or 1.0) for b in blocks])
    left, singular, right = np.linalg.svd(J * scales, full_matrices=False)
    kept = len(singular) - _symmetries(point)
    level = max(noise, worst)
    directions = scales * right[:kept]
    reciprocals = _reach(point, inputs, sizes, directions, singular[:kept], level)
    inverse = (directions.T * reciprocals) * np.sqrt(samples)
    ends = np.cumsum([b.size for b in blocks])[:-1]
    bars = iter(level * float(np.linalg.norm(rows, 2)) for rows in np.split(inverse, ends))
    of_keys = [0.0 if K is None else next(bars) for K in point.keys]
    of_queries = [next(bars) for _ in point.queries]
    forms = [
        q if K is None else k * np.linalg.norm(Q) + q * np.linalg.norm(K)
        for K, Q, k, q in zip(point.keys, point.queries, of_keys, of_queries, strict=True)
    ]
    condition = float(singular[0] * reciprocals[-1]) if kept else 1.0
    errors = (*(float(e) for e in forms), *bars)
    return Fit(point, worst, level, errors, condition, inverse @ left[:, :kept].T)


def _reach(
    point: Point,
    inputs: Inputs,
    sizes: np.ndarray,
    directions: Float64[np.ndarray, "direction entry"],
    singular: np.ndarray,
    level: float,
) -> Float64[np.ndarray, " direction"]:
    """How far an error of the outputs carries along each singular direction, over that error.

    That is 1/σ; where σ vanishes and the outputs change at second order, c ε², it is 1/√(c level):
    so it is where two points of a fiber come together.
    """
    with np.errstate(divide="ignore"):
        reach = np.minimum(1 / singular, _FAR)
    root = np.sqrt(len(inputs))
    for k in np.flatnonzero(reach * level * root > _STEEP):
        moved = point.vector + _STEEP * np.outer([1.0, -1.0], directions[k])
        changes = (point.replaced(moved)(inputs) - point(inputs)) / sizes
        change = float(np.linalg.norm(changes.sum(axis=0)))
        bend = change / (2 * _STEEP**2)
        if change > _SEEN * root:
            reach[k] = min(reach[k], 1 / np.sqrt(bend * level * root))
    return reach


def _symmetries(point: Point) -> int:
    """The dimension of what moves the entries and is not seen: λA_h against V_h/λ, and K against Q.

    The factor λ is one of the changes of basis of K and Q unless V takes part.
    """
    architecture = point.architecture
    rescaled = architecture.attention == "lightning" and architecture.skip != "inner"
    return sum(
        len(Q) * (int(rescaled) + (0 if K is None else Q.shape[1] ** 2))
        for K, Q in zip(point.keys, point.queries, strict=True)
    )
