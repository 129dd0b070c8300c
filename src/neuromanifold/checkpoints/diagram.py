"""A block as a `Network` of spaces, so that everything that asks about a function can ask it.

Keys, values, neurons and what a norm puts out are spaces with groups; the heads are spaces that
number their copies, and the stream is one space for all layers. What is no change of basis (shifts,
the direction 1, exchanged tables, rotations of the stream between two norms) are families, one for
each part of the gauge group. Inputs are mixtures of tokens, with weights that sum to one.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.forward import apply
from neuromanifold.checkpoints.gauge.family import PartFamily
from neuromanifold.checkpoints.gauge.group import parts
from neuromanifold.checkpoints.gauge.norms import readings
from neuromanifold.checkpoints.gauge.part import Readout
from neuromanifold.networks.network import Network
from neuromanifold.networks.space import Axis, Group, Space, Tensor
from neuromanifold.symmetry.groups import GL, Monomial, RotationCommutant

_PAIRING = {"half": "halves", "interleaved": "neighbours"}


def block_network(block: Block, readout: Readout = "logits", tokens: int = 2) -> Network:
    """The network of a block, with the gauge group that is claimed for it.

    Args:
        block: what the tensors mean.
        readout: what is looked at of the output.
        tokens: how many there are in one input.
    """

    def function(weights: Any, inputs: dict[str, Any]) -> jax.Array:
        y = apply(block, weights, inputs if block.patch else _mixtures(inputs))
        return y - y[:1] if readout == "probabilities" and block.head.kind != "none" else y

    diagram = _Diagram(block)
    tensors = tuple(Tensor(name, diagram.axes(name)) for name in block.shapes)
    name = f"{block.family}, {block.layers} layer{'s' if block.layers > 1 else ''}"
    made = Network(tensors, function, _sample(block, tokens), name=name, is_built_in=True)
    named = {space.family for space in made.spaces if space.group is not None}
    rest = [part for part in parts(block, readout) if part.name not in named]
    return replace(made, families=tuple(PartFamily(part, block, readout, made) for part in rest))


def _mixtures(inputs: dict[str, Any]) -> dict[str, Any]:
    """Weights of all rows of a table from those of all but the last."""
    return {
        name: jnp.concatenate([x, 1 - x.sum(axis=0, keepdims=True)]) for name, x in inputs.items()
    }


def _sample(block: Block, tokens: int) -> dict[str, jax.ShapeDtypeStruct]:
    if block.patch is not None:
        shape = block.patch.size, block.rows("positions") - 1
        return {"patches": jax.ShapeDtypeStruct(shape, np.float64)}
    rows = {name: block.rows(name) for name in ("tokens", "types") if block.rows(name)}
    return {name: jax.ShapeDtypeStruct((n - 1, tokens), np.float64) for name, n in rows.items()}


@dataclass(frozen=True)
class _Line:
    """A space of every layer: its name and group, and the part of the gauge group it stands for."""

    name: str
    group: Group
    part: str
    statement: str

    def space(self, at: str, over: tuple[Space, ...] = ()) -> Space:
        return Space(
            f"{at}{self.name}", self.group.size, self.group, over, self.part, self.statement
        )


class _Diagram:
    """The spaces of a block, made once, and the axes of its tensors in them."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.made: dict[str, Space] = {}
        self.stream = Space("stream", block.width)
        self.read = self._norm_spaces()

    def _norm_spaces(self) -> dict[str, Space]:
        """For each norm whose gain is free, and each tensor that reads it, the space between."""
        found: dict[str, Space] = {}
        if self.block.norm is None or self.block.norm.offset:
            return found
        for r in readings(self.block):
            if r.alone:
                group = Monomial(self.block.shapes[r.norm][0], "nonzero")
                line = _Line(f"{r.norm} output", group, "norm gains", "norm-absorption")
                space = line.space("")
                names = (r.norm, f"{r.norm}_shift", *(r.at + reader for reader in r.readers))
                found |= dict.fromkeys(names, space)
        return found

    def once(self, name: str, size: int) -> Space:
        """The space of this name, without a group."""
        return self.made.setdefault(name, Space(name, size))

    def axes(self, name: str) -> list[Space | Axis]:
        """The axes of a tensor."""
        at, _, last = name.rpartition(".")
        shape = self.block.shapes[name]
        if name in self.read and len(shape) == 1:
            return [self.read[name]]
        head = self._head_axes(f"{at}.", last)
        found = head if head is not None else self._neuron_axes(f"{at}.", last)
        if found is not None:
            return [self._reading(name) if axis == "reads" else axis for axis in found]
        plain: list[Space | Axis] = [self.once(f"{name} axis {k}", n) for k, n in enumerate(shape)]
        if name in self.read:
            plain[-1] = self.read[name].dual
        return plain

    def _reading(self, name: str) -> Axis:
        return self.read[name].dual if name in self.read else self.stream.dual

    def _head_axes(self, at: str, last: str) -> list[Any] | None:
        a = self.block.attention
        kind = last.removesuffix("_bias")
        if kind not in ("query", "key", "value", "output") or last == "output_bias":
            return None
        groups, members = self.once(f"{at}groups", a.groups), self.once(f"{at}queries", a.sharing)
        space = self._keys(at, groups) if kind in ("query", "key") else self._values(at, groups)
        front = [groups, members] if kind in ("query", "output") else [groups]
        if kind == "output":
            return [*front, self.stream, space.dual]
        own = space.dual if kind == "query" else space.axis
        return [*front, own] if last != kind else [*front, own, "reads"]

    def _keys(self, at: str, groups: Space) -> Space:
        a = self.block.attention
        if a.qk_norm is not None:
            return self.once(f"{at}keys", a.key_size)
        group: Group = GL(a.key_size)
        if a.rotary is not None:
            pairing: Any = _PAIRING[a.rotary.layout]
            group = RotationCommutant(a.key_size, a.rotated, pairing)
        line = _Line("keys", group, "query–key", "gauge-qk")
        return self.made.setdefault(f"{at}keys", line.space(at, (groups,)))

    def _values(self, at: str, groups: Space) -> Space:
        line = _Line("values", GL(self.block.attention.value_size), "value–output", "gauge-ov")
        return self.made.setdefault(f"{at}values", line.space(at, (groups,)))

    def _neuron_axes(self, at: str, last: str) -> list[Any] | None:
        mlp = self.block.mlp
        if mlp is None or last not in ("up", "up_bias", "gate", "gate_bias", "down"):
            return None
        rectified = mlp.activation in ("relu", "relu2")
        if mlp.gated and rectified:  # two scales a neuron: the part of the gauge group has both
            neurons = self.once(f"{at}neurons", mlp.size)
        else:
            scale: Any = "nonzero" if mlp.gated else "positive" if rectified else "none"
            line = _Line("neurons", Monomial(mlp.size, scale, True), "MLP scale", "mlp-scale")
            neurons = self.made.setdefault(f"{at}neurons", line.space(at))
        squared = mlp.activation == "relu2" and not mlp.gated
        exponent = {"up": 1, "gate": 0, "down": -2 if squared else -1}[last.removesuffix("_bias")]
        own = neurons.power(exponent)
        if last == "down":
            return [self.stream, own]
        return [own, "reads"] if last in ("up", "gate") else [own]
