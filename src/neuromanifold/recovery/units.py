"""The units in which a black box is asked: powers of two, so that no number is huge or tiny.

Asked is φ̂(X) = 2^−o φ(2^i X). With φ̂ of the weights Ŵ, φ is that of the same weights with every
query and key divided by 2^i, so that scores are the same, and the last values times 2^(o−i); with a
residual skip o = i. No digit changes. The exponent i is where the network is neither linear nor
saturated:

    lightning without skip   φ(2X) = 2^n φ(X), n = 3^l: where the outputs have size one;
    otherwise                where 2^−i φ(2^i X) leaves its limit for i → −∞.
"""

from dataclasses import dataclass

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights, replace_layers, scale_output
from neuromanifold.recovery.fit import Inputs, Outputs
from neuromanifold.recovery.oracle import BlackBox, NotFiniteError
from neuromanifold.recovery.result import Refusal

_LINEAR = -400
"""2^400 times smaller inputs: softmax is linear there unless scores exceed 10^240."""

_LARGEST = 480
_SCAN = 60
_TINY = -1000
"""The smallest exponent of an output whose digits are all there."""
_STRIDE = 16


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The black box in units.

    Attributes:
        box: the black box.
        architecture: the network.
        input: i.
        output: o.
    """

    box: BlackBox
    architecture: Architecture
    input: int
    output: int

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """φ̂(X)."""
        return np.ldexp(self.box(np.ldexp(X, self.input)), -self.output)

    def update(self, X: np.ndarray) -> np.ndarray:
        """φ̂(X), without X itself where a residual skip adds it."""
        return self(X) - X if self.architecture.skip == "residual" else self(X)

    def weights(self, found: Weights) -> Weights:
        """Weights of φ from weights of φ̂."""
        scores = [
            {n: np.ldexp(layer.arrays()[n], -self.input) for n in ("query", "key")}
            for layer in found.layers
        ]
        scaled = scale_output(replace_layers(found, scores), self.output - self.input)
        if not np.isfinite(scaled.flatten()).all():
            raise Refusal("its weights are too large for float64")
        return scaled


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """What a method works with.

    Attributes:
        ask: the black box in units.
        inputs: random inputs, enough to fit all unknowns.
        outputs: their outputs.
        generator: for further inputs.
    """

    ask: Asked
    inputs: Inputs
    outputs: Outputs
    generator: np.random.Generator


def choose_units(box: BlackBox, architecture: Architecture, X: np.ndarray) -> Asked | None:
    """The units that suit a black box, from its values at multiples of X; None where all are 0."""
    homogeneous = architecture.attention == "lightning" and architecture.skip == "none"
    choose = _unit_outputs if homogeneous else _where_it_bends
    exponent = choose(box, architecture, X)
    if exponent is None:
        return None
    if architecture.skip == "residual":
        return Asked(box, architecture, exponent, exponent)
    top = _top(box(np.ldexp(X, exponent)))
    return None if top is None else Asked(box, architecture, exponent, top)


def _unit_outputs(box: BlackBox, architecture: Architecture, X: np.ndarray) -> int | None:
    """The exponent at which outputs of a form of degree 3^l have size one, or None."""
    found = _first_seen(box, X)
    return None if found is None else found[0] - round(found[1] / 3**architecture.depth)


def _first_seen(box: BlackBox, X: np.ndarray) -> tuple[int, int] | None:
    """An exponent at which the output is finite and normal, and the output's; None for zero."""
    finite, subnormal = False, False
    for exponent in sorted(range(-_LARGEST, _LARGEST + 1, _SCAN), key=abs):
        output = _finite(box, np.ldexp(X, exponent))
        if output is None:
            continue
        finite, top = True, _top(output)
        if top is not None and top > _TINY:
            return exponent, top
        subnormal = subnormal or top is not None
    if subnormal:
        raise Refusal("its outputs are too small for float64 at inputs of every size")
    if not finite:
        box(X)
    return None


def _where_it_bends(box: BlackBox, architecture: Architecture, X: np.ndarray) -> int | None:
    """The exponent from which on 2^−i φ(2^i X) is off its limit for small i; 0 if it never is."""
    residual, softmax = architecture.skip == "residual", architecture.attention == "softmax"
    found = _first_seen(box, X)
    if found is None:
        return None
    lowest, linear = _linear_part(box, X, max(_LINEAR, _TINY - found[1] + found[0]))
    linear = X if residual and not softmax else linear
    unit = float(np.max(np.abs(linear)))
    size = np.linalg.norm((linear - X if residual and softmax else linear) / unit)
    bend = (0.05 if softmax else 1.0) * float(size)
    if bend == 0:
        return 0

    def bends(exponent: int) -> bool:
        value = _over(box, X, exponent)
        with np.errstate(over="ignore"):
            return value is not None and not np.linalg.norm((value - linear) / unit) <= bend

    high = next((i for i in range(lowest, _LARGEST, _STRIDE) if bends(i)), None)
    if high is None:
        return 0
    low = high - _STRIDE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bends(middle) else (middle, high)
    return high + int(softmax)


def _linear_part(box: BlackBox, X: np.ndarray, lowest: int) -> tuple[int, np.ndarray]:
    """The limit of 2^−i φ(2^i X) for small i, at the smallest i that the oracle's floats reach."""
    for exponent in (lowest, -100, -30):
        value = _over(box, X, exponent)
        if value is not None and value.any():
            return exponent, value
    raise Refusal("its outputs are too large or too small for its floats where it should be linear")


def _over(box: BlackBox, X: np.ndarray, exponent: int) -> np.ndarray | None:
    """2^−i φ(2^i X), or None where that is not finite."""
    output = _finite(box, np.ldexp(X, exponent))
    if output is None:
        return None
    with np.errstate(over="ignore"):
        scaled = np.ldexp(output, -exponent)
    return scaled if np.isfinite(scaled).all() else None


def _finite(box: BlackBox, X: np.ndarray) -> np.ndarray | None:
    """φ(X), or None where the black box overflows."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return box(X)
    except NotFiniteError:
        return None


def _top(output: np.ndarray) -> int | None:
    """The exponent of the largest entry, or None for zero."""
    largest = float(np.max(np.abs(output)))
    return int(np.frexp(largest)[1]) if largest > 0 else None
