"""Outputs of networks at inputs of every useful size, and how far rounding the weights moves them.

Inputs keep tokens apart. Softmax averages tokens, and small scores average them away: after a few
layers they agree to within rounding, and what later layers do is invisible. So inputs come in
sizes from 1/8 to 16, in units in which the first layer has scores of size about one: large scores
pick single tokens, which stay different ones. Lightning without skip is homogeneous, and one size
is as good as another.

The outputs themselves are never too large or too small: homogeneous networks carry a power of two
along, and a residual skip leaves out the input, which is known: of X + D the update D is returned.

How far rounding moves an output is found by rounding: the outputs of weights that were changed by a
few times their rounding errors, at random. No derivative is trusted where softmax saturates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.fibers.agreement import UNDECIDED_FACTOR, Agreement
from neuromanifold.fibers.units import InUnits, in_units, size_exponent
from neuromanifold.networks.evaluation import layer_update
from neuromanifold.networks.weights import Weights, generator_of

Inputs = Float[np.ndarray, "n d t"]
Tensors = list[dict[str, np.ndarray]]

_SIZES = (1.0, 4.0, 0.25, 2.0, 8.0, 0.5, 16.0, 0.125)
_COPIES = 8
_FEW = 4


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs 2^`exponents` · `values` of one network at several inputs.

    Attributes:
        values: entries of ordinary size; NaN where a network overflows.
        noise: for each input how far rounding moves `values`, times `UNDECIDED_FACTOR`.
        exponents: one for each input.
    """

    values: Float[np.ndarray, "n d_l t"]
    noise: Float[np.ndarray, " n"]
    exponents: Int[np.ndarray, " n"]


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """How two functions differ at each input, in one unit for both.

    Attributes:
        differences: ‖φ − φ'‖.
        sizes: the larger of ‖φ‖ and ‖φ'‖, less X for a residual skip.
        bounds: the difference above which rounding is no explanation.
    """

    differences: Float[np.ndarray, " n"]
    sizes: Float[np.ndarray, " n"]
    bounds: Float[np.ndarray, " n"]

    @property
    def telling(self) -> int:
        """The input at which the difference is largest, compared with its bound."""
        tiny = np.finfo(np.float64).tiny
        ratios = np.where(self.differences > 0, self.differences / np.maximum(self.bounds, tiny), 0)
        return int(np.argmax(ratios))

    @property
    def agreement(self) -> Agreement:
        """The distance there, relative to the size of the outputs."""
        at = self.telling
        size = self.sizes[at] or 1.0
        tolerance = self.bounds[at] / size / UNDECIDED_FACTOR
        return Agreement("the outputs", float(self.differences[at] / size), float(tolerance))


def random_inputs(architectures: Sequence[Architecture], count: int, seed: int) -> Inputs:
    """Normal tokens of length about 1, times the sizes of the module's docstring in turn."""
    if count < 1:
        raise ArgumentError(f"at least one input is needed; got {count}")
    d, t = architectures[0].widths[0], architectures[0].tokens
    X = generator_of(seed).standard_normal((count, d, t)) / np.sqrt(d)
    if all(one.is_homogeneous for one in architectures):
        return X
    return X * np.resize(_SIZES, count)[:, None, None]


def common_units(first: Weights, second: Weights) -> tuple[InUnits, InUnits]:
    """Both weights in units, with one unit for the inputs of both."""
    if first.architecture.is_homogeneous and second.architecture.is_homogeneous:
        return in_units(first), in_units(second)
    s = -max(size_exponent(first), size_exponent(second)) // 2
    return in_units(first, s), in_units(second, s)


def outputs(scaled: InUnits, inputs: Inputs, seed: int, *, whole: bool = False) -> Outputs:
    """The outputs at every input, with the effect of rounding the weights.

    Args:
        scaled: weights in units.
        inputs: X̂, in the unit 2^s.
        seed: of the errors that stand for rounding.
        whole: with the input that a residual skip adds, to compare with a network of another skip.
    """
    generator = generator_of(seed, 1)
    with np.errstate(all="ignore"):
        tensors = [
            {name: _copies(T, N[name], generator) for name, T in layer.arrays().items()}
            for layer, N in zip(scaled.weights.layers, scaled.rounding, strict=True)
        ]
        values, exponents = _evaluate(tensors, scaled.weights.architecture, inputs)
        top = exponents.max(axis=0)
        values = np.ldexp(values, (exponents - top)[:, :, None, None])
        moved = np.linalg.norm(values[1:] - values[0], axis=(2, 3))
        noise = np.sqrt(np.mean(moved * moved, axis=0))
    added = inputs if whole and scaled.weights.architecture.adds_input else 0.0
    return Outputs(values[0] + added, noise, top + scaled.output)


def output_difference(one: Outputs, other: Outputs) -> OutputDifference:
    """The differences in one unit; an input at which a network overflows tells nothing."""
    top = np.maximum(one.exponents, other.exponents)
    with np.errstate(all="ignore"):
        Y, Y_new = (
            np.ldexp(part.values, (part.exponents - top)[:, None, None]) for part in (one, other)
        )
        bounds = sum(np.ldexp(part.noise, part.exponents - top) for part in (one, other))
        differences = np.linalg.norm(Y - Y_new, axis=(1, 2))
        sizes = np.maximum(np.linalg.norm(Y, axis=(1, 2)), np.linalg.norm(Y_new, axis=(1, 2)))
    usable = np.isfinite(differences) & np.isfinite(sizes) & np.isfinite(bounds)
    return OutputDifference(
        np.where(usable, differences, 0.0),
        np.where(usable, sizes, 0.0),
        np.where(usable, bounds, np.inf),
    )


def function_deviation(first: Weights, second: Weights, *, seed: int) -> float:
    """The largest ‖φ − φ'‖ / ‖φ‖ at a few random inputs, 0 where both are 0 (eq-6).

    For a residual skip both are less the input, which they add unchanged.
    """
    X = random_inputs((first.architecture, second.architecture), _FEW, seed)
    units = common_units(first, second)
    found = output_difference(*(outputs(scaled, X, seed) for scaled in units))
    return float((found.differences / np.where(found.sizes > 0, found.sizes, 1.0)).max())


def _copies(
    T: np.ndarray, N: np.ndarray, generator: np.random.Generator
) -> Float[np.ndarray, "copies 1 ..."]:
    """The tensor, and the tensor after errors of `UNDECIDED_FACTOR` times its rounding."""
    errors = UNDECIDED_FACTOR * N * generator.standard_normal((_COPIES, *T.shape))
    return np.concatenate([T[None], T + errors])[:, None]


def _evaluate(
    tensors: Tensors, architecture: Architecture, inputs: Inputs
) -> tuple[Float[np.ndarray, "copies n d_l t"], Int[np.ndarray, "copies n"]]:
    """The network for a batch of weights, with the exponents taken out."""
    copies = len(tensors[0]["key"])
    X = np.broadcast_to(inputs, (copies, *inputs.shape))
    exponents = np.zeros(X.shape[:2], dtype=np.int64)
    D = np.zeros_like(X)
    for layer in tensors:
        if architecture.adds_input:
            D = D + layer_update(layer, X + D, architecture)
            continue
        X = layer_update(layer, X, architecture)
        if architecture.is_homogeneous:
            shift = np.frexp(np.abs(X).max(axis=(2, 3)))[1].astype(np.int64)
            X, exponents = np.ldexp(X, -shift[:, :, None, None]), 3 * exponents + shift
    return (D if architecture.adds_input else X), exponents
