"""A block as a `Network` of spaces, so that everything that asks about a function can ask it.

Keys, values, neurons and what a norm puts out are spaces with groups; the heads are spaces that
number their copies, and the stream is one space for all layers. What is no change of basis (shifts,
the direction 1, exchanged tables, rotations of the stream between two norms) are families, one for
each part of the gauge group. Inputs are mixtures of tokens, with weights that sum to one.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.forward import apply
from neuromanifold.checkpoints.gauge.attention import key_group
from neuromanifold.checkpoints.gauge.family import PartFamily
from neuromanifold.checkpoints.gauge.group import parts
from neuromanifold.checkpoints.gauge.norms import readings
from neuromanifold.checkpoints.gauge.part import Readout
from neuromanifold.networks.network import Network
from neuromanifold.networks.space import Axis, Group, Space, Tensor
from neuromanifold.symmetry.groups import GL, Monomial, Scale


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


class _Diagram:
    """The spaces of a block, made once, and the axes of its tensors in them."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.made: dict[str, Space] = {}
        self.stream = Space("stream", block.width)
        self.read = self._norm_spaces()

    def space(self, name: str, size: int) -> Space:
        """The space of this name, without a group."""
        return self.made.setdefault(name, Space(name, size))

    def changed(
        self, name: str, group: Group, part: str, statement: str, over: tuple[Space, ...] = ()
    ) -> Space:
        """The space of this name, whose group is a part of the gauge group."""
        return self.made.setdefault(name, Space(name, group.size, group, over, part, statement))

    def _norm_spaces(self) -> dict[str, Space]:
        """For each norm whose gain is free, and each tensor that reads it, the space between."""
        found: dict[str, Space] = {}
        if self.block.norm is None or self.block.norm.offset:
            return found
        for r in readings(self.block):
            if r.alone:
                group = Monomial(self.block.shapes[r.norm][0], "nonzero")
                space = self.changed(f"{r.norm} output", group, "norm gains", "norm-absorption")
                names = (r.norm, f"{r.norm}_shift", *(r.at + reader for reader in r.readers))
                found |= dict.fromkeys(names, space)
        return found

    def axes(self, name: str) -> list[Space | Axis]:
        """The axes of a tensor."""
        at, _, last = name.rpartition(".")
        shape = self.block.shapes[name]
        if name in self.read and len(shape) == 1:
            return [self.read[name]]
        reads = self.read[name].dual if name in self.read else self.stream.dual
        found = self._head_axes(f"{at}.", last, reads) or self._neuron_axes(f"{at}.", last, reads)
        if found:
            return found
        plain: list[Space | Axis] = [self.space(f"{name} axis {k}", n) for k, n in enumerate(shape)]
        return [*plain[:-1], reads] if name in self.read else plain

    def _head_axes(self, at: str, last: str, reads: Axis) -> list[Space | Axis]:
        a, kind = self.block.attention, last.removesuffix("_bias")
        if kind not in ("query", "key", "value", "output") or last == "output_bias":
            return []
        groups, members = self.space(f"{at}groups", a.groups), self.space(f"{at}queries", a.sharing)
        space = self._keys(at, groups) if kind in ("query", "key") else self._values(at, groups)
        front = [groups, members] if kind in ("query", "output") else [groups]
        if kind == "output":
            return [*front, self.stream, space.dual]
        own = space.dual if kind == "query" else space.axis
        return [*front, own] if last != kind else [*front, own, reads]

    def _keys(self, at: str, groups: Space) -> Space:
        group = key_group(self.block.attention)
        if group is None:
            return self.space(f"{at}keys", self.block.attention.key_size)
        return self.changed(f"{at}keys", group, "query–key", "gauge-qk", (groups,))

    def _values(self, at: str, groups: Space) -> Space:
        group = GL(self.block.attention.value_size)
        return self.changed(f"{at}values", group, "value–output", "gauge-ov", (groups,))

    def _neuron_axes(self, at: str, last: str, reads: Axis) -> list[Space | Axis]:
        mlp = self.block.mlp
        if mlp is None or last not in ("up", "up_bias", "gate", "gate_bias", "down"):
            return []
        scalings = mlp.scalings
        if len(scalings) > 1:  # two scales a neuron: the part of the gauge group has both
            neurons = self.space(f"{at}neurons", mlp.size)
        else:
            scale: Scale = "nonzero" if mlp.gated else "positive" if scalings else "none"
            group = Monomial(mlp.size, scale, True)
            neurons = self.changed(f"{at}neurons", group, "MLP scale", "mlp-scale")
        paid = -scalings.get("up", 1)
        own = neurons.power({"up": 1, "gate": 0, "down": paid}[last.removesuffix("_bias")])
        if last == "down":
            return [self.stream, own]
        return [own, reads] if last in ("up", "gate") else [own]
