"""A frame for every head and neuron that depends on the function alone, and their order.

Factors of a product leftᵀ right are replaced by √S Uᵀ and √S Vᵀ of its singular value
decomposition (gauge-qk, gauge-ov); on rotary planes, where only a complex number is free, by equal
norms and the phase that makes the key's largest entry positive (gauge-rope). Rows whose singular
values are nearly equal are determined only together.
"""

import numpy as np

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.parts import Attention

Tensors = dict[str, np.ndarray]


def with_bias(tensors: Tensors, name: str) -> np.ndarray:
    """A map with its bias as one more column, zero when it has none."""
    bias = tensors.get(f"{name}_bias")
    if bias is None:
        bias = np.zeros(tensors[name].shape[:-1])
    return np.concatenate([tensors[name], bias[..., None]], axis=-1)


def put_with_bias(tensors: Tensors, name: str, value: np.ndarray) -> None:
    """Store a map and its bias again."""
    tensors[name] = value[..., :-1]
    if f"{name}_bias" in tensors:
        tensors[f"{name}_bias"] = value[..., -1]


def balanced(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors (n, a), (n, b) with the same product leftᵀ right, balanced, in decreasing order.

    The largest entry of each row of the first is positive. Singular values that are rounding of the
    factors are zero: their roots are large, and their vectors arbitrary.
    """
    count = left.shape[0]
    Ql, Rl = np.linalg.qr(left.T)
    Qr, Rr = np.linalg.qr(right.T)
    U, S, Vt = np.linalg.svd(Rl @ Rr.T)
    size = len(S)
    S = np.where(count * 2.0**-50 * np.linalg.norm(Rl) * np.linalg.norm(Rr) < S, S, 0.0)
    new_left = np.sqrt(S)[:, None] * (Ql @ U[:, :size]).T
    new_right = np.sqrt(S)[:, None] * (Qr @ Vt[:size].T).T
    signs = _signs(new_left)[:, None]
    pad = ((0, count - size), (0, 0))
    return np.pad(signs * new_left, pad), np.pad(signs * new_right, pad)


def _signs(rows: np.ndarray) -> np.ndarray:
    """The sign of the largest entry of each row, 1 for rows of zeros."""
    largest = rows[np.arange(len(rows)), np.argmax(np.abs(rows), axis=1)]
    return np.where(largest < 0, -1.0, 1.0)


def _balanced_planes(
    a: Attention, query: np.ndarray, key: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Every rotary plane with equal norms, and the key's largest entry positive."""
    if a.rotary is None:
        return query, key
    query, key = query.copy(), key.copy()
    for first, second in a.rotary.planes:
        q, k = query[first] + 1j * query[second], key[first] + 1j * key[second]
        norm_q, norm_k = np.linalg.norm(q), np.linalg.norm(k)
        if norm_q > 0 and norm_k > 0:
            top = k[np.argmax(np.abs(k))]
            c = np.sqrt(norm_q / norm_k) * abs(top) / top
            q, k = q / np.conj(c), k * c
        else:
            q, k = 0 * q, 0 * k
        query[first], query[second] = q.real, q.imag
        key[first], key[second] = k.real, k.imag
    return query, key


def frame_heads(block: Block, tensors: Tensors) -> None:
    """Query–key and value–output factors of every group in their own frame."""
    a = block.attention
    value, output = with_bias(tensors, "value"), tensors["output"].copy()
    for g in range(a.groups):
        stacked = output[g].reshape(-1, a.value_size).T
        new_output, value[g] = balanced(stacked, value[g])
        output[g] = new_output.T.reshape(output[g].shape)
    put_with_bias(tensors, "value", value)
    tensors["output"] = output
    if a.qk_norm is not None:
        _frame_norms(a, tensors)
        return
    query, key = with_bias(tensors, "query"), with_bias(tensors, "key")
    for g in range(a.groups):
        rows = query[g].transpose(1, 0, 2).reshape(a.key_size, -1)
        rows, key[g] = _balanced_planes(a, rows, key[g])
        r = a.rotated
        if r < a.key_size:
            rows[r:], key[g, r:] = balanced(rows[r:], key[g, r:])
        query[g] = rows.reshape(a.key_size, a.sharing, -1).transpose(1, 0, 2)
    put_with_bias(tensors, "query", query)
    put_with_bias(tensors, "key", key)


def _frame_norms(a: Attention, tensors: Tensors) -> None:
    """Gains of query and key norms with equal norms on each plane, the first entry positive."""
    gains = {n: tensors[n] + a.qk_norm_offset for n in ("query_norm", "key_norm")}
    planes = [*(a.rotary.planes if a.rotary else ()), *((i,) for i in range(a.rotated, a.key_size))]
    for plane in planes:
        at = list(plane)
        q, k = gains["query_norm"][at], gains["key_norm"][at]
        if np.linalg.norm(q) > 0 and np.linalg.norm(k) > 0:
            factor = np.sqrt(np.linalg.norm(k) / np.linalg.norm(q)) * _signs(q[None])[0]
            gains["query_norm"][at], gains["key_norm"][at] = q * factor, k / factor
    for name, value in gains.items():
        tensors[name] = value - a.qk_norm_offset


def frame_neurons(block: Block, tensors: Tensors) -> None:
    """Neurons whose rows and columns have equal norms; signs where they are free (mlp-scale)."""
    mlp = block.mlp
    if mlp is None:
        return
    powers = mlp.scalings
    if not powers:
        return
    rows = {name: with_bias(tensors, name) for name in powers}
    down = tensors["down"].copy()
    norms = {name: np.linalg.norm(value, axis=1) for name, value in rows.items()}
    column = np.linalg.norm(down, axis=0)
    alive = (column > 0) & np.all([n > 0 for n in norms.values()], axis=0)
    # The common norm m has m = ‖column‖ ∏ (‖row‖ / m)^power, and each row is scaled by m / ‖row‖.
    total = 1 + sum(powers.values())
    product = column * np.prod([norms[n] ** power for n, power in powers.items()], axis=0)
    common = np.where(alive, product, 1.0) ** (1 / total)
    for name, power in powers.items():
        factor = np.where(alive, common / np.where(alive, norms[name], 1.0), 1.0)
        if name == "up" and mlp.gated:
            factor = factor * _signs(rows[name])
        rows[name] = np.where(alive, factor, 0.0)[:, None] * rows[name]
        down = down / factor**power
        put_with_bias(tensors, name, rows[name])
    tensors["down"] = np.where(alive, down, 0.0)


def permute_heads(block: Block, tensors: Tensors, order: np.ndarray) -> None:
    """Query heads in another order, which must keep the groups together (discrete part)."""
    a = block.attention
    heads = order.reshape(a.groups, a.sharing)
    groups = heads[:, 0] // a.sharing
    for name in ("query", "query_bias", "output"):
        if name in tensors:
            flat = tensors[name].reshape(a.heads, *tensors[name].shape[2:])
            tensors[name] = flat[order].reshape(tensors[name].shape)
    for name in ("key", "key_bias", "value", "value_bias"):
        if name in tensors:
            tensors[name] = tensors[name][groups]


def permute_neurons(tensors: Tensors, order: np.ndarray) -> None:
    """Neurons in another order."""
    for name in ("up", "up_bias", "gate", "gate_bias"):
        if name in tensors:
            tensors[name] = tensors[name][order]
    if "down" in tensors:
        tensors["down"] = tensors["down"][:, order]


def head_order(block: Block, tensors: Tensors) -> np.ndarray:
    """Groups by the size of their key and value, heads inside by that of query and output."""
    a = block.attention
    of_group = np.sum(tensors["key"] ** 2, axis=(1, 2)) + np.sum(tensors["value"] ** 2, axis=(1, 2))
    of_head = np.sum(tensors["query"] ** 2, axis=(2, 3)) + np.sum(
        tensors["output"] ** 2, axis=(2, 3)
    )
    order: list[int] = []
    for g in np.argsort(-of_group, kind="stable"):
        order += [g * a.sharing + r for r in np.argsort(-of_head[g], kind="stable")]
    return np.array(order)


def neuron_order(tensors: Tensors) -> np.ndarray:
    """Neurons by size."""
    size = np.sum(tensors["down"] ** 2, axis=0)
    for name in ("up", "gate"):
        if name in tensors:
            size = size + np.sum(tensors[name] ** 2, axis=1)
    return np.argsort(-size, kind="stable")
