"""Checks of the gauge group of real transformers: its elements leave the function alone."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import jax
import numpy as np

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import (
    Attention,
    Head,
    Mlp,
    Norm,
    Patch,
    Relative,
    Rotary,
)
from neuromanifold.checkpoints.forward import apply
from neuromanifold.checkpoints.gauge.group import PARTS, act
from neuromanifold.checkpoints.gauge.part import GaugePart, Readout
from neuromanifold.checkpoints.gauge.stream import antisymmetric, cayley, rotate_stream
from neuromanifold.paper.checks.evidence import Case, Check, Finding, apart, close
from neuromanifold.statements.gauge import STATEMENTS

TOLERANCE = 1e-10
"""Relative to the largest output; elements near the identity have condition below 10."""
_TOKENS = 9


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
    return {
        "tied, layer norms": block(attention=plain, mlp=gelu, norm=layer, tables=tables, head=tied),
        "untied, layer norms": block(
            attention=plain, mlp=gelu, norm=layer, tables=tables, head=untied
        ),
        "untied, RMS norms, gated": block(
            attention=shared, mlp=gated, norm=rms, tables=tables[:1], head=untied
        ),
        "norms of queries and keys": block(
            attention=replace(shared, qk_norm="rms_head"),
            mlp=replace(gated, activation="relu"),
            norm=rms,
            tables=tables[:1],
            head=untied,
        ),
        "sandwich, caps": block(
            attention=replace(shared, softcap=4.0),
            mlp=gated,
            norm=replace(rms, offset=1.0),
            placement="sandwich",
            tables=tables[:1],
            head=Head(kind="tied", rows=_TOKENS, softcap=3.0),
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
            attention=replace(plain, causal=False),
            mlp=gelu,
            norm=layer,
            placement="post",
            final_norm=False,
            embed_norm=True,
            tables=(*tables, ("types", 2)),
        ),
        "table of score biases": block(
            attention=table, mlp=Mlp(size=4, activation="relu2"), norm=rms, tables=tables[:1]
        ),
        "image patches": block(
            attention=replace(plain, causal=False),
            mlp=gelu,
            norm=layer,
            tables=(("positions", 4),),
            patch=Patch(channels=1, height=2, width=2),
            head=untied,
        ),
    }


def weights_of(block: Block, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Random tensors with gains away from zero."""
    weights = {}
    for name, shape in block.shapes.items():
        value = 0.7 * generator.normal(size=shape)
        weights[name] = 1 + 0.3 * np.tanh(value) if name.endswith("norm") else value
    return weights


def inputs_of(block: Block, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """A random input."""
    if block.patch is not None:
        count = block.rows("positions") - 1
        return {"patches": generator.normal(size=(block.patch.size, count))}
    return {
        "tokens": generator.integers(0, _TOKENS, 3),
        "types": generator.integers(0, max(block.rows("types"), 1), 3),
    }


def _moved(
    part: GaugePart, block: Block, readout: Readout, generator: np.random.Generator
) -> float:
    """The largest change of the outputs under a random element of a part, relative."""
    weights, inputs = weights_of(block, generator), inputs_of(block, generator)
    element = {
        name: 0.2 * generator.normal(size=shape)
        for name, shape in part.shapes(block, readout).items()
    }
    with jax.enable_x64(True):
        before = np.asarray(apply(block, weights, inputs))
        after = np.asarray(apply(block, act(block, {part.name: element}, weights), inputs))
    if readout == "probabilities":
        before, after = before - before[:1], after - after[:1]
    return float(np.abs(after - before).max() / np.abs(before).max())


def _cases(statement: str, seed: int) -> Iterator[Case]:
    generator = np.random.default_rng(seed)
    for name, block in blocks().items():
        rotary = block.attention.rotary is not None
        readouts: tuple[Readout, ...] = ("logits",)
        if block.head.kind != "none":
            readouts = ("logits", "probabilities")
        for part in PARTS:
            own = part.statement
            if own == "gauge-qk" and rotary:
                own = "gauge-rope"
            for readout in readouts:
                if own == statement and part.dimension(block, readout):
                    error = _moved(part, block, readout, generator)
                    yield close(f"{name}: {part.name}, {readout}", error, TOLERANCE)


def _symmetry(statement: str) -> Check:
    def check(quick: bool, seed: int) -> Finding:
        rounds = range(seed, seed + (1 if quick else 10))
        each = 3 if quick else None
        cases = [case for number in rounds for case in islice(_cases(statement, number), each)]
        return Finding(
            f"random elements on {len(blocks())} kinds of blocks, outputs in float64", cases, {}
        )

    return check


def tied_rotation(quick: bool, seed: int) -> Finding:
    """A rotation moves a tied model, signs and permutations do not (tied-rotation)."""
    cases = []
    block = replace(blocks()["untied, RMS norms, gated"], head=Head(kind="tied", rows=_TOKENS))
    for number in range(seed, seed + (1 if quick else 5)):
        generator = np.random.default_rng(number)
        weights, inputs = weights_of(block, generator), inputs_of(block, generator)
        signs = np.diag(generator.choice([-1.0, 1.0], 6))
        order = np.eye(6)[generator.permutation(6)]
        with jax.enable_x64(True):
            R = np.asarray(cayley(antisymmetric(block, 0.3 * generator.normal(size=15), 6)))
            before = np.asarray(apply(block, weights, inputs))
            for name, change in (("a rotation", R), ("signs", signs)):
                after = np.asarray(apply(block, rotate_stream(block, change, weights), inputs))
                error = float(np.abs(after - before).max() / np.abs(before).max())
                case = apart if name == "a rotation" else close
                cases.append(case(name, error, 1e-3 if name == "a rotation" else TOLERANCE))
            along = rotate_stream(block, order, weights) | {
                "final_norm": order @ weights["final_norm"]
            }
            after = np.asarray(apply(block, along, inputs))
            error = float(np.abs(after - before).max() / np.abs(before).max())
            cases.append(close("a permutation, with the gain", error, TOLERANCE))
    return Finding("a tied block under rotations, signs and permutations", cases, {})


CHECKS: dict[str, Check] = {statement.id: _symmetry(statement.id) for statement in STATEMENTS} | {
    "tied-rotation": tied_rotation
}
