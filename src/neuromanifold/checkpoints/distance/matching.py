"""Which head, neuron and stream coordinate of one model answers to which of another."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.forms import Heads, Neurons, Tensors
from neuromanifold.checkpoints.normal_form.stream import (
    carried,
    frees_permutation,
    frees_rotation,
    rotate_outer,
    starts,
)

SAME = 1e-9
"""A rearrangement must be better than none by this relative amount to be made."""


def match_stream(
    block: Block, first: Tensors, second: Tensors, rounding: float = 0.0
) -> np.ndarray | None:
    """The R, x → R x, that carries the second model's stream nearest to the first one's.

    Read off the folded tables: a rotation where the head is untied (stream-rotation), a
    permutation, with signs under RMS norms, where it is tied (tied-rotation). None when nothing
    but the identity is free, or nothing is better by more than the relative `rounding` of rows.
    """
    if not frees_rotation(block) and not frees_permutation(block):
        return None
    mine, theirs = starts(block, first), starts(block, second)
    if frees_rotation(block):
        R = carried(block, theirs, mine)
    else:
        cross = mine.T @ theirs
        rows, columns = linear_sum_assignment(cross if block.centred else abs(cross), maximize=True)
        R = np.zeros_like(cross)
        negative = (cross[rows, columns] < 0) & (not block.centred)
        R[rows, columns] = np.where(negative, -1.0, 1.0)
    return _if_better(mine, theirs, R, rounding)


def match_tables(block: Block, first: Tensors, second: Tensors) -> np.ndarray | None:
    """The R that carries the second model's tables to the first's where one map reads them alone.

    None when they are not read so, or nothing is better than the identity.
    """
    if block.embed_width is None or not block.embed_norm or block.keeps_tokens:
        return None
    a, b = starts(block, first), starts(block, second)
    return _if_better(a, b, carried(block, b, a))


def _if_better(
    first: np.ndarray, second: np.ndarray, R: np.ndarray | None, rounding: float = 0.0
) -> np.ndarray | None:
    """The orthogonal R, unless rows of the second are as near to those of the first without it.

    ‖A − B‖² − ‖A − B Rᵀ‖² = 2 ⟨AᵀB, R − 1⟩, which needs no product with the whole table.
    """
    if R is None or np.array_equal(R, np.eye(len(R))):
        return None
    nearer = 2 * float(np.sum((first.T @ second) * (R - np.eye(len(R)))))
    return R if nearer > max(SAME, rounding**2) * float(np.sum(first**2)) else None


def moved_outer(block: Block, first: Tensors, second: Tensors, R: np.ndarray | None) -> Tensors:
    """The second model's folded outer tensors where the first one has them."""
    turned = second if R is None else rotate_outer(second, R)
    T = match_tables(block, first, turned)
    if T is None:
        return turned
    moved = {**turned, "embed_map": turned["embed_map"] @ T.T}
    return moved | {name: turned[name] @ T.T for name, _ in block.tables}


def head_products(a: Heads, b: Heads) -> tuple[np.ndarray, np.ndarray]:
    """⟨·,·⟩ of every head's form, and of its O V, with every head's of the other: (H, H′) each.

    ⟨QᵀK, Q′ᵀK′⟩ is the sum of the entrywise product of Q Q′ᵀ and K K′ᵀ, of the size of a head.
    """
    keys, other_keys, values, other_values, k_planes, other_k_planes = (
        np.repeat(part, a.sharing, axis=0)
        for part in (a.key, b.key, a.value, b.value, a.key_planes, b.key_planes)
    )
    scores = _factor_products(a.query, keys, b.query, other_keys)
    turned = _plane_products(a.query_planes, b.query_planes).conj()
    turned = np.sum(turned * _plane_products(k_planes, other_k_planes), axis=0).real
    return scores + turned, _factor_products(a.output, values, b.output, other_values)


def _plane_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Σ x̄ y over the width for every plane and pair of heads: (p, H, H′)."""
    return np.conj(np.swapaxes(x, 0, 1)) @ np.moveaxis(y, 0, 2)


def _factor_products(
    left: np.ndarray, right: np.ndarray, other_left: np.ndarray, other_right: np.ndarray
) -> np.ndarray:
    """⟨LᵀR, L′ᵀR′⟩ for all pairs of heads; arrays are (H, size, width)."""
    heads, size, _ = left.shape
    if size == 0:
        return np.zeros((heads, len(other_left)))

    def gram(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        product = x.reshape(heads * size, -1) @ y.reshape(len(y) * size, -1).T
        return product.reshape(heads, size, len(y), size)

    return np.einsum("hmin,hmin->hi", gram(left, other_left), gram(right, other_right))


def head_costs(a: Heads, b: Heads) -> np.ndarray:
    """Squared distances of all pairs of heads (H, H′), scores and writing weighed equally."""
    total = np.zeros((len(a.query), len(b.query)))
    for cross, own, other in zip(
        head_products(a, b), head_products(a, a), head_products(b, b), strict=True
    ):
        x, y = np.diag(own), np.diag(other)
        size = max(float(x.sum() + y.sum()), np.finfo(float).tiny)
        total += (x[:, None] + y[None, :] - 2 * cross) / size
    return total


def match_heads(costs: np.ndarray, groups: int) -> np.ndarray:
    """For every head its counterpart; whole groups are matched, and heads inside them."""
    heads = len(costs)
    share = heads // groups
    group_costs = np.zeros((groups, groups))
    inside = np.zeros((groups, groups, share), int)
    for g in range(groups):
        for h in range(groups):
            part = costs[g * share : (g + 1) * share, h * share : (h + 1) * share]
            rows, columns = linear_sum_assignment(part)
            group_costs[g, h], inside[g, h] = part[rows, columns].sum(), columns
    partners = linear_sum_assignment(group_costs)[1]
    found = np.concatenate([h * share + inside[g, h] for g, h in enumerate(partners)])
    return _unless_equal(costs, found)


def neuron_costs(a: Neurons, b: Neurons) -> np.ndarray:
    """Squared distances of all pairs of neurons."""
    cross = a.signed @ b.signed.T
    if a.mirrored:
        cross = abs(cross)
    if a.fixed.size:
        cross = cross + a.fixed @ b.fixed.T
    x, y = (np.sum(n.signed**2, 1) + np.sum(n.fixed**2, 1) for n in (a, b))
    return x[:, None] + y[None, :] - 2 * cross


def match_neurons(a: Neurons, b: Neurons) -> np.ndarray:
    """For every neuron its counterpart, the assignment of least total distance.

    Where every neuron's own number is nearest to it the identity is that assignment, and nothing
    has to be solved.
    """
    costs = neuron_costs(a, b)
    order = np.arange(len(costs))
    if np.array_equal(np.argmin(costs, axis=1), order):
        return order
    return _unless_equal(costs, linear_sum_assignment(costs)[1])


def _unless_equal(costs: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The assignment found, or the identity when that is as good."""
    order = np.arange(len(costs))
    gained = costs[order, order].sum() - costs[order, found].sum()
    return found if gained > SAME * abs(costs).sum() / len(costs) else order
