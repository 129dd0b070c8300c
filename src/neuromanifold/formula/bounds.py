"""All proved upper bounds of the dimension of a network, each with the statement that proves it."""

from collections.abc import Iterator
from dataclasses import dataclass

from neuromanifold.architecture import READOUTS, Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.formula.all_widths import virtual_upper_bound
from neuromanifold.formula.ambient import polynomial_maps
from neuromanifold.formula.heads import Inputs, layer_bounds, layer_dimension, linear_maps
from neuromanifold.formula.layers import layers_bound
from neuromanifold.formula.readouts import narrowed


@dataclass(frozen=True, slots=True)
class Bound:
    """A proved upper bound of a dimension.

    Attributes:
        value: the dimension is at most this.
        statement: the id of the statement that proves it.
        name: what is counted, in a few words.
    """

    value: int
    statement: str
    name: str

    def __str__(self) -> str:
        return f"at most {self.value} by {self.name} ({self.statement})"


def proved_bounds(architecture: Architecture, readout: str = "logits") -> tuple[Bound, ...]:
    """Every upper bound that theory proves for the dimension of a network, the smallest first.

    Symmetries prove further bounds, by the rank of their tangent vectors; those are certificates'.

    Args:
        architecture: the network.
        readout: one of `READOUTS`, what of the output counts (readouts).

    >>> print(proved_bounds(Architecture((2, 4), (2,), 2, heads=3, value_ranks=(1,)))[0])
    at most 21 by output flattening (flattening-bounds)
    """
    if readout not in READOUTS:
        raise ArgumentError(f"readout must be one of {', '.join(READOUTS)}; got {readout!r}")
    if readout == "logits":
        found = _of_logits(architecture)
    elif architecture.widths[-1] == 1:
        found = iter((Bound(0, "readouts", "one output coordinate"),))
    elif architecture.skip == "residual":
        found = _of_residual_differences(architecture, readout)
    else:
        found = _of_differences(architecture, readout)
    return tuple(sorted(found, key=lambda bound: bound.value))


def _of_logits(architecture: Architecture) -> Iterator[Bound]:
    virtual = virtual_upper_bound(architecture)
    if virtual is not None:
        yield Bound(virtual, "virtual-bound", "virtual weights")
    else:
        if architecture.depth == 1:
            d, d_out = architecture.widths
            for name, value in layer_bounds(architecture, 0, Inputs.free(d), d_out).items():
                yield Bound(value, "flattening-bounds", name)
        else:
            yield Bound(layers_bound(architecture), "layers-bound", "layers")
        if architecture.attention == "softmax" and architecture.tokens == 1:
            yield Bound(linear_maps(architecture), "layers-bound", "linear maps")
    most = architecture.parameters
    ends = architecture.widths[0], architecture.widths[-1]
    maps = polynomial_maps(architecture, *ends, architecture.depth, most)
    if maps < most:
        yield Bound(maps, "polynomial-maps", "polynomial maps")


def _of_differences(architecture: Architecture, readout: str) -> Iterator[Bound]:
    """Without residual skip: the logits of one output less; decisions one dimension less."""
    for bound in _of_logits(narrowed(architecture)):
        yield Bound(bound.value - (readout == "decisions"), bound.statement, bound.name)


def _of_residual_differences(architecture: Architecture, readout: str) -> Iterator[Bound]:
    """With residual skip the last value maps V_h are seen as E V_h only, E taking differences.

    So the last layer counts as one from width d to d − 1, which decisions, having fewer
    dimensions than probabilities or as many, cannot exceed. One token under softmax shows a linear
    map to d − 1 coordinates, decisions up to a constant.
    """
    d, last = architecture.widths[0], architecture.depth - 1
    outputs = [d] * last + [d - 1]
    layers = sum(layer_dimension(architecture, i, Inputs.free(d), n) for i, n in enumerate(outputs))
    yield Bound(layers, "layers-bound", "layers")
    if architecture.attention == "softmax" and architecture.tokens == 1:
        yield Bound(d * (d - 1) - (readout == "decisions"), "layers-bound", "linear maps")
