"""Two models as tensors of one block: the same rotary layout, the same kind of head."""

from dataclasses import fields, replace

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, layout_order
from neuromanifold.checkpoints.normal_form.fold import untied
from neuromanifold.errors import ArgumentError

CONSTANTS = 2.0**-23
"""Relative error of frequencies whose base and factor somebody rounded to float32."""


def uniform(first: Checkpoint, second: Checkpoint) -> tuple[Checkpoint, Checkpoint, list[str]]:
    """Both models in the first one's terms, and in what they were written differently.

    Raises:
        ArgumentError: they have different sizes or are made of different parts.
    """
    a, b = first.block, second.block
    notes: list[str] = []
    both_tied = a.head.kind == b.head.kind == "tied"
    target = a if both_tied or a.head.kind == "none" else untied(a)
    other = b if both_tied or b.head.kind == "none" else untied(b)
    if a.head.kind != b.head.kind:
        notes.append("untied head")
    if layout_order(a.attention.rotary, b.attention.rotary) is not None:
        notes.append("rotary layout")
    difference = block_difference(target, other)
    if difference is not None:
        raise ArgumentError(
            f"{first.path} and {second.path} are models of different kinds: {difference}; "
            "only models with the same sizes and parts can be the same function by gauge"
        )
    own, mine, theirs = target, a.attention.rotary, b.attention.rotary
    if mine is not None and theirs is not None:  # each runs with its own frequencies
        turning = replace(mine, frequencies=theirs.frequencies)
        own = replace(target, attention=replace(target.attention, rotary=turning))
    return first.as_block(target), second.as_block(own), notes


def block_difference(first: Block, second: Block) -> str | None:
    """The first field in which two blocks describe different functions, in words."""
    norm = first.norm and second.norm and replace(second.norm, offset=first.norm.offset)
    attention = second.attention
    if first.attention.rotary is not None and attention.rotary is not None:
        turning = replace(attention.rotary, layout=first.attention.rotary.layout)
        mine = first.attention.rotary.frequencies
        if len(mine) == len(turning.frequencies) and np.allclose(
            turning.frequencies, mine, rtol=CONSTANTS, atol=0.0
        ):
            turning = replace(turning, frequencies=first.attention.rotary.frequencies)
        attention = replace(attention, rotary=turning)
    same = replace(second, family=first.family, norm=norm or second.norm, attention=attention)
    same = replace(same, shows_tokens=first.shows_tokens)
    for name in (field.name for field in fields(Block)):
        mine, theirs = getattr(first, name), getattr(same, name)
        if mine != theirs:
            if hasattr(mine, "__dataclass_fields__") and type(mine) is type(theirs):
                for part in (field.name for field in fields(mine)):
                    if getattr(mine, part) != getattr(theirs, part):
                        return f"{name} {part} {getattr(mine, part)} and {getattr(theirs, part)}"
            return f"{name} {mine} and {theirs}"
    return None
