"""How strongly the function of a network sees each of its tensors, on data of a given spread.

A dimension can be there in theory and gone in floating point. Inputs are columns near one point,
c + ε z_k: the spread ε is what tells tokens apart. For each tensor the singular values of its
columns of the Jacobian say how much the function moves with it, and the slope between ε and ε/2
at which order in ε it does. For softmax networks with one head, no mask and no skip the queries and
keys of layer i are seen at order 2·3^{i−1} (consensus): relative to the spread 1, 5, 17, 53.
"""

from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from jaxtyping import Float

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.numeric import jacobian_at
from neuromanifold.display import Recorded
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.family import Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.weights import generator_of
from neuromanifold.statements import Facts, applies, get
from neuromanifold.symmetry.families import network


@dataclass(frozen=True, slots=True)
class TensorSensitivity:
    """How the function sees one tensor.

    Attributes:
        tensor: its name.
        singular_values: of its columns of the Jacobian, the largest first.
        order: the exponent of ε with which the largest one goes, from ε and ε/2; None when it is
            too small for float64 at ε/2 to be more than rounding.
        predicted: that exponent in theory, None where theory does not say (consensus).
        layer: counted from 1; None where tensors are not named by layers.
        family: what the tensor does in its layer: query, key, value or output; else its name.
    """

    tensor: str
    singular_values: tuple[float, ...]
    order: float | None
    predicted: int | None
    layer: int | None
    family: str


@dataclass(frozen=True, slots=True)
class Sensitivity(Recorded):
    """How strongly the function sees each tensor.

    Attributes:
        subject: the network.
        spread: ε, the distance of the tokens of an input.
        inputs: how many inputs.
        seed: of the inputs, and of the weights when none are given.
        tensors: what was found, in the order of the network's tensors.
        lost: tensors whose largest singular value is, in float32, rounding beside the largest.
    """

    subject: str
    spread: float
    inputs: int
    seed: int
    tensors: tuple[TensorSensitivity, ...]
    lost: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.subject}, tokens {self.spread:g} apart ({self.inputs} inputs)"]
        for one in self.tensors:
            order = "below rounding" if one.order is None else f"order {one.order:.2f}"
            theory = "" if one.predicted is None else f", in theory {one.predicted}"
            lines.append(f"{one.tensor}: {one.singular_values[0]:.2e}, {order}{theory}")
        if self.lost:
            lines.append(f"lost in float32: {', '.join(self.lost)}")
        return "\n".join(lines)


def sensitivity(
    subject: Network | Architecture,
    *,
    weights: Any = None,
    spread: float = 0.1,
    inputs: int = 32,
    seed: int = 0,
) -> Sensitivity:
    """How strongly the function sees each tensor, on tokens that are `spread` apart (consensus).

    Args:
        subject: the network, or an architecture; an input must be one matrix of token columns.
        weights: look here; by default at random weights of the seed.
        spread: ε, at most 1.
        inputs: the number of inputs.
        seed: of the inputs and of those weights.

    >>> found = sensitivity(Architecture((2, 2, 2), (2, 2), 3, "softmax"), spread=0.01)
    >>> [(one.tensor, one.predicted) for one in found.tensors if "key" in one.tensor]
    [('layers.0.key', 2), ('layers.1.key', 6)]
    """
    net = network(subject)
    shape, kind = np.shape(net.sample), getattr(net.sample, "dtype", np.dtype(object)).kind
    if len(shape) != 2 or shape[1] < 2 or kind != "f":
        raise ArgumentError(
            "sensitivity wants inputs of two or more token columns of real numbers; "
            f"{net.name} takes {shape}{' of whole numbers' if kind in 'iub' else ''}"
        )
    if not isinstance(spread, int | float) or not 0 < spread <= 1:
        raise ArgumentError(f"spread must be above 0 and at most 1; got {spread!r}")
    if not isinstance(inputs, int) or inputs < 1:
        raise ArgumentError(f"inputs must be at least 1; got {inputs!r}")
    at = net.draw(seed) if weights is None else net.values(weights)
    generator = generator_of(seed, 61)
    centres = generator.standard_normal((inputs, shape[0], 1))
    noise = generator.standard_normal((inputs, *shape))
    noise -= noise.mean(2, keepdims=True)
    here, half = (_blocks(net, at, centres + size * noise) for size in (spread, spread / 2))
    top = max(values[0] for values in here.values())
    found = tuple(
        TensorSensitivity(
            tensor=name,
            singular_values=tuple(map(float, values)),
            order=_order(values[0], half[name][0], top),
            predicted=_predicted(net.architecture, name),
            layer=None if net.architecture is None else int(name.split(".")[1]) + 1,
            family=name if net.architecture is None else name.split(".")[2],
        )
        for name, values in here.items()
    )
    lost = tuple(
        one.tensor for one in found if one.singular_values[0] < np.finfo(np.float32).eps * top
    )
    return Sensitivity(net.name, spread, inputs, seed, found, lost)


def _blocks(
    net: Network, weights: Tensors, X: Float[np.ndarray, "inputs d t"]
) -> dict[str, Float[np.ndarray, " n"]]:
    """The singular values of every tensor's columns of the Jacobian, in float64."""
    J = jacobian_at(net, weights, X)
    return {
        name: np.linalg.svd(columns.reshape(len(J), -1), compute_uv=False)
        for name, columns in net.assemble(J, (len(J),)).items()
        if name not in net.constants
    }


def _order(here: float, half: float, top: float) -> float | None:
    """The slope, unless the smaller value is rounding: 1e−13 of the largest of all."""
    return None if half <= 1e-13 * top else log2(here / half)


def _predicted(architecture: Architecture | None, name: str) -> int | None:
    """The order of queries and keys of layer i, 2·3^{i−1}, where (consensus) applies."""
    if architecture is None or not applies(get("consensus"), Facts.of(architecture)):
        return None
    _, layer, kind = name.split(".")
    return 2 * 3 ** int(layer) if kind in ("query", "key") else None
