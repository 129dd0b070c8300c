"""Heads and neurons of one layer put in the bases nearest to those of another's.

Their function stays (gauge-qk, gauge-rope, gauge-ov, gauge-qk-norm, mlp-scale).
"""

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.distance.nearest import nearest_basis, nearest_scale
from neuromanifold.checkpoints.forms import Tensors
from neuromanifold.checkpoints.normal_form.frame import with_bias


def turn(block: Block, first: Tensors, moved: Tensors, *, descend: bool) -> None:
    """Every head and neuron in the basis nearest to that of its counterpart, same function.

    Done twice: with folded tensors, where the two models differ by nothing else, and again where
    the norms are those that will be written, because nearness depends on them.
    """
    _turn_heads(block, first, moved, descend)
    if block.attention.qk_norm is not None:
        _turn_head_norms(block, first, moved)
    _turn_neurons(block, first, moved)


def _turn_head_norms(block: Block, first: Tensors, moved: Tensors) -> None:
    """Gains of query and key norms: one scale a plane, or a coordinate that stays."""
    a = block.attention
    planes = [*(a.rotary.planes if a.rotary else ()), *((i,) for i in range(a.rotated, a.key_size))]
    pairs = [
        [t[name] + a.qk_norm_offset for name in ("query_norm", "key_norm")] for t in (first, moved)
    ]
    for plane in planes:
        at = list(plane)
        (x, y), (x2, y2) = ([part[at] for part in pair] for pair in pairs)
        scale = nearest_scale(x, y, x2, y2)
        pairs[1][0][at], pairs[1][1][at] = scale * x2, y2 / scale
    for name, value in zip(("query_norm", "key_norm"), pairs[1], strict=True):
        moved[name] = value - a.qk_norm_offset


def _turn_heads(block: Block, first: Tensors, moved: Tensors, descend: bool) -> None:
    a = block.attention
    for g in range(a.groups):
        left, other = (
            np.moveaxis(t["output"][g], 2, 0).reshape(a.value_size, -1) for t in (first, moved)
        )
        C = nearest_basis(left, first["value"][g], other, moved["value"][g], descend=descend)
        moved["value"] = _replaced(moved["value"], g, C @ moved["value"][g])
        if "value_bias" in moved:
            moved["value_bias"] = _replaced(moved["value_bias"], g, C @ moved["value_bias"][g])
        moved["output"] = _replaced(moved["output"], g, moved["output"][g] @ np.linalg.inv(C))
        if a.qk_norm is None:
            C = _nearest_keys(block, first, moved, g, descend)
            D = np.linalg.inv(C).T
            for name, change in (("query", D), ("key", C)):
                moved[name] = _replaced(moved[name], g, change @ moved[name][g])
                bias = f"{name}_bias"
                if bias in moved:
                    turned = moved[bias][g] @ change.T
                    moved[bias] = _replaced(moved[bias], g, turned)


def _nearest_keys(
    block: Block, first: Tensors, moved: Tensors, g: int, descend: bool
) -> np.ndarray:
    """The C of the commutant of the rotations that is best for one group's queries and keys."""
    a = block.attention
    rows = [
        (
            np.moveaxis(with_bias(t, "query")[g], 1, 0).reshape(a.key_size, -1),
            t["key"][g] if a.constants_die else with_bias(t, "key")[g],
        )
        for t in (first, moved)
    ]
    C, r = np.eye(a.key_size), a.rotated
    if r < a.key_size:
        parts = [part[r:] for pair in rows for part in pair]
        C[r:, r:] = nearest_basis(*parts, descend=descend)
    if a.rotary is not None:
        x, y = np.array(a.rotary.planes).T
        q, k, q2, k2 = (part[x] + 1j * part[y] for pair in rows for part in pair)
        c = nearest_scale(k, q, k2, q2)
        C[x, x], C[y, y], C[x, y], C[y, x] = c.real, c.real, -c.imag, c.imag
    return C


def _turn_neurons(block: Block, first: Tensors, moved: Tensors) -> None:
    """Neurons scaled as near to their counterparts as they may be (mlp-scale).

    A gate that may be scaled gets its counterpart's length, and then the rows that it multiplies
    are brought near.
    """
    mlp = block.mlp
    if mlp is None:
        return
    if mlp.homogeneous == "gate":
        mine, yours = (np.linalg.norm(with_bias(t, "gate"), axis=1) for t in (first, moved))
        alive = (mine > 0) & (yours > 0)
        ratio = np.divide(mine, yours, out=np.ones_like(mine), where=alive)
        _scale_neurons(moved, "gate", ratio, mlp.scalings["gate"])
    ups, downs = zip(*((with_bias(t, "up"), t["down"].T) for t in (first, moved)), strict=True)
    pairs = ups[0], downs[0], ups[1], downs[1]
    if mlp.gated:
        _scale_neurons(moved, "up", nearest_scale(*pairs))
    elif mlp.homogeneous is not None:
        power = mlp.scalings["up"]
        _scale_neurons(moved, "up", nearest_scale(*pairs, signed=False, power=power), power)
    elif mlp.activation == "tanh":
        agreeing = np.sum(ups[0] * ups[1], 1) + np.sum(downs[0] * downs[1], 1)
        _scale_neurons(moved, "up", np.where(agreeing < 0, -1.0, 1.0))


def _scale_neurons(moved: Tensors, name: str, factor: np.ndarray, power: int = 1) -> None:
    """Rows times a factor, and the columns that they lead to divided by its power."""
    moved[name] = factor[:, None] * moved[name]
    if f"{name}_bias" in moved:
        moved[f"{name}_bias"] = factor * moved[f"{name}_bias"]
    moved["down"] = moved["down"] / factor**power


def _replaced(array: np.ndarray, at: int, part: np.ndarray) -> np.ndarray:
    new = array.copy()
    new[at] = part
    return new
