"""Running a model in float64 with the weights of one layer in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.forward import embed, layer_step, readout

TOKENS = 12
"""The length of the random text; every length up to it is a prefix when the mask is causal."""


class Layered(Protocol):
    """Something whose tensors can be asked for layer by layer."""

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        ...

    def outer(self) -> Mapping[str, np.ndarray]:
        """The tensors outside the layers."""
        ...

    def layer(self, layer: int) -> Mapping[str, np.ndarray]:
        """The tensors of a layer."""
        ...


class Noisy:
    """A model whose tensors carry relative noise of a given size."""

    def __init__(self, model: Layered, size: float, seed: tuple[int, ...]) -> None:
        self.model, self.block, self.size, self.seed = model, model.block, size, seed

    def outer(self) -> dict[str, np.ndarray]:
        """The tensors outside the layers, spoiled."""
        return self._spoiled(self.model.outer(), -1)

    def layer(self, layer: int) -> dict[str, np.ndarray]:
        """The tensors of a layer, spoiled."""
        return self._spoiled(self.model.layer(layer), layer)

    def _spoiled(self, tensors: Mapping[str, np.ndarray], label: int) -> dict[str, np.ndarray]:
        generator = np.random.default_rng((*self.seed, label + 1))
        return {
            name: value * (1 + self.size * generator.uniform(-1, 1, value.shape))
            for name, value in tensors.items()
        }


@dataclass(frozen=True, slots=True)
class Run:
    """What a model did with an input.

    Attributes:
        outputs: logits, or hidden states, one column a token.
        streams: the stream after each layer, normalised without gain and shift.
    """

    outputs: np.ndarray
    streams: tuple[np.ndarray, ...]


def random_inputs(block: Block, seed: int, tokens: int = TOKENS) -> dict[str, np.ndarray]:
    """Tokens (or patches) drawn from the seed."""
    generator = np.random.default_rng(seed)
    if block.patch is not None:
        count = block.rows("positions") - 1
        return {"patches": generator.normal(size=(block.patch.size, count))}
    if not block.tables:
        return {"stream": generator.normal(size=(block.width, tokens))}
    room = block.rows("positions") - block.position_offset
    count = min(tokens, room) if block.rows("positions") else tokens
    inputs = {"tokens": generator.integers(0, block.rows("tokens"), count)}
    if block.rows("types"):
        inputs["types"] = generator.integers(0, block.rows("types"), count)
    return inputs


def inputs_reaching(
    block: Block, rows: Mapping[str, int], seed: int, tokens: int = TOKENS
) -> dict[str, np.ndarray]:
    """Random inputs that begin with a given row of tokens and types, and reach one of positions."""
    reached = rows.get("positions", 0) - block.position_offset + 1
    inputs = random_inputs(block, seed, max(tokens, reached))
    if block.padding is not None:
        inputs["tokens"][inputs["tokens"] == block.padding] = (block.padding + 1) % block.rows(
            "tokens"
        )
        if rows.get("positions") == block.padding:
            inputs["tokens"][0] = block.padding
    for name in ("tokens", "types"):
        if name in inputs and name in rows:
            inputs[name][0] = rows[name]
    return inputs


def run(model: Layered, inputs: Mapping[str, np.ndarray]) -> Run:
    """Run a model in float64."""
    block = model.block
    with jax.enable_x64(True):
        outer = model.outer()
        x = embed(block, outer, inputs)
        streams = []
        for layer in range(block.layers):
            tensors = dict(model.layer(0 if block.shared else layer))
            if block.attention.relative is not None:
                tensors["score_table"] = outer["score_table"]
            x = layer_step(block, tensors, x, layer)
            streams.append(_normalised(block, tensors, x))
        return Run(np.asarray(readout(block, outer, x)), tuple(streams))


def _normalised(block: Block, tensors: Mapping[str, np.ndarray], x: jax.Array) -> np.ndarray:
    """What is left of a stream when all that a norm removes, gain and shift are taken away."""
    if block.placement == "post" and block.norm is not None and "mlp_norm" in tensors:
        x = x - tensors["mlp_norm_shift"][:, None] if block.norm.shift else x
        x = x / (tensors["mlp_norm"] + block.norm.offset)[:, None]
    if block.centred:
        x = x - jnp.mean(x, axis=0)
    size = jnp.sqrt(jnp.mean(x**2, axis=0))
    return np.asarray(x / jnp.where(size > 0, size, 1.0))


def noise_of(
    outputs: np.ndarray, spoiled: Iterable[Layered], inputs: Mapping[str, np.ndarray]
) -> float:
    """How far the outputs of spoiled models are from these, root mean square."""
    found = [deviation(outputs, run(model, inputs).outputs) for model in spoiled]
    return float(np.sqrt(np.mean(np.square(found))))


def deviation(first: np.ndarray, second: np.ndarray) -> float:
    """The largest difference, relative to the largest entry."""
    scale = float(np.abs(first).max())
    return float(np.abs(first - second).max()) / (scale if scale > 0 else 1.0)
