"""Checks of the gauge group of real transformers: its elements leave the function alone."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, product
from typing import Any

import jax
import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.forward import apply
from neuromanifold.checkpoints.block.parts import (
    Attention,
    Head,
    Mlp,
    Norm,
    Patch,
    Relative,
    Rotary,
)
from neuromanifold.checkpoints.gauge.group import PARTS, act
from neuromanifold.checkpoints.gauge.part import GaugePart, Readout, Tensors
from neuromanifold.checkpoints.gauge.stream import antisymmetric, cayley, rotate_stream
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.statements.gauge import STATEMENTS

TOLERANCE = 1e-10
"""Relative to the largest output; elements near the identity have condition below 10."""
_TOKENS = 9
Weights = dict[str, np.ndarray]


def blocks() -> dict[str, Block]:
    """Small blocks among which every part of the gauge group occurs, with eps = 0."""
    biases = {"query_bias": True, "key_bias": True, "value_bias": True, "output_bias": True}
    plain = Attention(heads=2, groups=2, key_size=2, value_size=2, **biases)
    turning = Rotary(size=2, layout="half", frequencies=(0.7,))
    partly = replace(plain, key_size=3, rotary=turning)
    shared = Attention(heads=4, groups=2, key_size=2, value_size=2, rotary=turning)
    gelu = Mlp(size=4, activation="gelu", bias=True, output_bias=True)
    gated = Mlp(size=4, activation="silu", gated=True)
    layer, rms = Norm(kind="layer", shift=True), Norm(kind="rms")
    tables = (("tokens", _TOKENS), ("positions", 3))
    tied = Head(kind="tied", rows=_TOKENS, bias=True)
    untied = Head(kind="untied", rows=_TOKENS, bias=True)

    def block(**fields: Any) -> Block:
        values: dict[str, Any] = {"width": 6, "layers": 2, "final_norm": True}
        return Block(**(values | fields))

    relative = Relative(buckets=4, distance=3, both=True)
    table = Attention(heads=2, groups=2, key_size=2, value_size=2, causal=False, relative=relative)
    bert = {"attention": replace(plain, causal=False), "mlp": gelu, "norm": layer}
    llama = {"mlp": gated, "norm": rms, "tables": tables[:1], "head": untied}
    return {
        "tied, layer norms": block(attention=plain, mlp=gelu, norm=layer, tables=tables, head=tied),
        "untied, layer norms": block(
            attention=plain, mlp=gelu, norm=layer, tables=tables, head=untied
        ),
        "untied, RMS norms, gated": block(attention=shared, **llama),
        "norms of queries and keys": block(
            **llama
            | {
                "attention": replace(shared, qk_norm="rms_head"),
                "mlp": replace(gated, activation="relu"),
            }
        ),
        "sandwich, caps": block(
            **llama
            | {
                "attention": replace(shared, softcap=4.0),
                "norm": replace(rms, offset=1.0),
                "placement": "sandwich",
                "head": Head(kind="tied", rows=_TOKENS, softcap=3.0),
            }
        ),
        "parallel, partly rotary": block(
            attention=partly,
            mlp=gelu,
            norm=layer,
            placement="parallel",
            tables=tables[:1],
            head=untied,
        ),
        "norms after the sum": block(
            **bert,
            placement="post",
            final_norm=False,
            embed_norm=True,
            tables=(tables[0], ("positions", 5), ("types", 2)),
            position_offset=2,
        ),
        "table of score biases": block(
            attention=table, mlp=Mlp(size=4, activation="relu2"), norm=rms, tables=tables[:1]
        ),
        "image patches": block(
            **bert,
            tables=(("positions", 4),),
            patch=Patch(channels=1, height=2, width=2),
            head=untied,
        ),
    }


def weights_of(block: Block, generator: np.random.Generator) -> Weights:
    """Random tensors with gains away from zero."""
    weights = {}
    for name, shape in block.shapes.items():
        value = 0.7 * generator.normal(size=shape)
        weights[name] = 1 + 0.3 * np.tanh(value) if name.endswith("norm") else value
    return weights


def inputs_of(block: Block, generator: np.random.Generator) -> Weights:
    """A random input."""
    if block.patch is not None:
        count = block.rows("positions") - 1
        return {"patches": generator.normal(size=(block.patch.size, count))}
    return {
        "tokens": generator.integers(0, _TOKENS, 3),
        "types": generator.integers(0, max(block.rows("types"), 1), 3),
    }


def _change(
    block: Block, readout: Readout, before: Tensors, after: Tensors, inputs: Tensors
) -> float:
    """The largest difference of the outputs at two weights, relative to the first."""
    with jax.enable_x64(True):
        first, second = (np.asarray(apply(block, one, inputs)) for one in (before, after))
    if readout == "probabilities":
        first, second = first - first[:1], second - second[:1]
    return float(np.abs(second - first).max() / np.abs(first).max())


def _moved(
    part: GaugePart, block: Block, readout: Readout, generator: np.random.Generator
) -> float:
    """How far a random element of a part moves the outputs."""
    weights, inputs = weights_of(block, generator), inputs_of(block, generator)
    element = {
        name: 0.2 * generator.normal(size=shape)
        for name, shape in part.shapes(block, readout).items()
    }
    with jax.enable_x64(True):
        after = act(block, {part.name: element}, weights)
    return _change(block, readout, weights, after, inputs)


def _errors(statement: str, seed: int) -> Iterator[tuple[str, float]]:
    """How far random elements of the parts that a statement is about move the outputs."""
    generator = np.random.default_rng(seed)
    for name, block in blocks().items():
        rotary = block.attention.rotary is not None
        every: tuple[Readout, ...] = ("logits", "probabilities")
        readouts = every if block.head.kind != "none" else every[:1]
        for part, readout in product(PARTS, readouts):
            own = "gauge-rope" if part.statement == "gauge-qk" and rotary else part.statement
            if own == statement and part.dimension(block, readout):
                error = _moved(part, block, readout, generator)
                yield f"{name}: {part.name}, {readout}", error


def _symmetry(statement: str, trial: Trial) -> str:
    rounds = range(trial.seed, trial.seed + (1 if trial.quick else 10))
    for number in rounds:
        for subject, error in islice(_errors(statement, number), 3 if trial.quick else None):
            trial.close(subject, error, TOLERANCE)
    return f"random elements on {len(blocks())} kinds of blocks, outputs in float64"


for _one in STATEMENTS:
    check(_one.id)(partial(_symmetry, _one.id))


@check("tied-rotation")
def tied_rotation(trial: Trial) -> str:
    """A rotation moves a tied model, signs and permutations do not (tied-rotation)."""
    block = replace(blocks()["untied, RMS norms, gated"], head=Head(kind="tied", rows=_TOKENS))
    for number in range(trial.seed, trial.seed + (1 if trial.quick else 5)):
        generator = np.random.default_rng(number)
        weights, inputs = weights_of(block, generator), inputs_of(block, generator)
        signs = np.diag(generator.choice([-1.0, 1.0], 6))
        order = np.eye(6)[generator.permutation(6)]
        with jax.enable_x64(True):
            R = np.asarray(cayley(antisymmetric(block, 0.3 * generator.normal(size=15), 6)))
            turned, signed, along = (rotate_stream(block, C, weights) for C in (R, signs, order))
        along |= {"final_norm": order @ weights["final_norm"]}
        trial.apart("a rotation", _change(block, "logits", weights, turned, inputs), 1e-3)
        trial.close("signs", _change(block, "logits", weights, signed, inputs), TOLERANCE)
        error = _change(block, "logits", weights, along, inputs)
        trial.close("a permutation, with the gain", error, TOLERANCE)
    return "a tied block under rotations, signs and permutations"
