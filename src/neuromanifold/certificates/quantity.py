"""Quantities written as text: entries, squared norms and their products and ratios."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.network import Network
from neuromanifold.networks.virtual import virtual_weights

Scalar = Float[Array, ""]
Quantity = Callable[[Any], Any]
"""A function of the weights that JAX can trace, with a number or an array as its value."""

_FACTOR = re.compile(r"(?P<name>[\w.]+)\[(?P<index>\d+(?:,\d+)*|)\]|norm\((?P<normed>[\w.]+)\)")
_NAMES = "layers.0.query (key, value, output), A.0, V.0, M.0 or L"


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A named tensor made from the weights, with its shape."""

    name: str
    of: Callable[[Any], Any]
    shape: tuple[int, ...]


def parse_quantity(
    text: str, subject: Architecture | Network
) -> tuple[str, Callable[[Any], Scalar]]:
    """The quantity that a text names, for this network, with the text in its normal form.

    A quantity is a factor, or factors joined by `*` and `/`, read from the left. A factor is an
    entry `tensor[…]` or the squared Frobenius norm `norm(tensor)`. All counting starts at 0:

        layers.0.query[h,r,c]   a weight tensor (query, key, value, output), head, row, column
        A.0[h,r,c]              the attention matrix KᵀQ of a layer, head, row, column
        V.0[h,r,c]              the value map of a layer (O V when factored), head, row, column
        M.1[r,c], L[r,c]        virtual weights of a network with one head (eq-8); M.0 is A.0

    The tensors of any other network are its weights by name, one index an axis.

    >>> parse_quantity("A.0[0,0,1] / A.0[0,0,0]", Architecture((3, 2), (2,), 3))[0]
    'A.0[0,0,1]/A.0[0,0,0]'

    Args:
        text: the text.
        subject: the network.
    """
    subject = getattr(subject, "architecture", None) or subject
    name = "".join(text.split())
    pieces = re.split(r"([*/])", name)
    factors = [_factor(piece, subject) for piece in pieces[::2]]
    operations = pieces[1::2]

    def quantity(weights: Any) -> Scalar:
        value = factors[0](weights)
        for operation, factor in zip(operations, factors[1:], strict=True):
            value = value * factor(weights) if operation == "*" else value / factor(weights)
        return value

    return name, quantity


def _factor(text: str, subject: Architecture | Network) -> Callable[[Any], Scalar]:
    match = _FACTOR.fullmatch(text)
    if match is None:
        raise ArgumentError(
            f"{text!r} is no quantity; write an entry like A.0[0,1,2] or L[0,1], a squared norm "
            "like norm(A.0), or a product or ratio of such"
        )
    if match["normed"] is not None:
        normed = _tensor(match["normed"], subject)

        def norm(weights: Any) -> Scalar:
            return jnp.sum(jnp.square(jnp.asarray(normed.of(weights))))

        return norm
    tensor = _tensor(match["name"], subject)
    index = tuple(map(int, filter(None, match["index"].split(","))))
    inside = len(index) == len(tensor.shape) and all(
        i < size for i, size in zip(index, tensor.shape, strict=True)
    )
    if not inside:
        first = ",".join("0" * len(tensor.shape))
        raise ArgumentError(
            f"{tensor.name} of {subject.name} has the shape {tensor.shape}; an entry of it is "
            f"{tensor.name}[{first}], counted from 0; got [{match['index']}]"
        )

    def entry(weights: Any) -> Scalar:
        return jnp.asarray(tensor.of(weights))[index]

    return entry


def _tensor(name: str, subject: Architecture | Network) -> _Tensor:
    """The tensor of this name."""
    if isinstance(subject, Architecture):
        return _of_layers(name, subject)
    shapes = {tensor.name: tensor.shape for tensor in subject.tensors}
    if name not in shapes:
        raise ArgumentError(f"{subject.name} has no {name}; name {' or '.join(shapes)}")
    return _Tensor(name, lambda weights: subject.named(weights)[name], shapes[name])


def _of_layers(name: str, architecture: Architecture) -> _Tensor:
    """A tensor of an attention network, or what its layers make of several."""
    letter, *rest = name.split(".")
    match letter, rest:
        case "layers", [layer, part]:
            i = _layer(name, layer, architecture)
            if part in architecture.shapes[i]:
                shape = architecture.shapes[i][part]
                return _Tensor(name, lambda w: w.layers[i].tensors()[part], shape)
        case "A" | "V", [layer]:
            i = _layer(name, layer, architecture)
            H, d, d_next = architecture.heads, *architecture.widths[i : i + 2]
            if letter == "A":
                return _Tensor(name, lambda w: w.layers[i].attention_matrices(), (H, d, d))
            return _Tensor(name, lambda w: w.layers[i].value_maps(), (H, d_next, d))
        case "M", [layer]:
            i, d = _layer(name, layer, architecture), architecture.widths[0]
            _check_virtual(name, architecture)
            return _Tensor(name, lambda w: virtual_weights(w).forms[i], (d, d))
        case "L", []:
            _check_virtual(name, architecture)
            shape = (architecture.widths[-1], architecture.widths[0])
            return _Tensor(name, lambda w: virtual_weights(w).linear, shape)
        case _:
            pass
    raise ArgumentError(f"{architecture.name} has no {name}; name {_NAMES}")


def _layer(name: str, text: str, architecture: Architecture) -> int:
    if not text.isdecimal() or int(text) >= architecture.depth:
        raise ArgumentError(
            f"the layers of {architecture.name} are 0 to {architecture.depth - 1}; got {name}"
        )
    return int(text)


def _check_virtual(name: str, architecture: Architecture) -> None:
    if not architecture.has_virtual_weights:
        raise ArgumentError(
            f"{name} is a virtual weight, which only networks with one head and no residual skip "
            f"have; got {architecture.name}"
        )
