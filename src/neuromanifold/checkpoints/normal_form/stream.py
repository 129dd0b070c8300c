"""Changes of basis of the whole stream, on folded tensors: x → R x, layer by layer."""

import numpy as np

from neuromanifold.checkpoints.block.block import Block

Tensors = dict[str, np.ndarray]
_READERS = ("query", "key", "value", "up", "gate")
_NORMS = ("attention_norm", "mlp_norm", "attention_out_norm", "mlp_out_norm")


def frees_rotation(block: Block) -> bool:
    """Whether the stream may be rotated: norms before the layers, and a head of its own."""
    return (
        block.placement in ("pre", "parallel", "parallel two")
        and block.norm is not None
        and block.final_norm
        and block.head.kind == "untied"
        and not block.embed_norm
        and bool(block.tables)
    )


def frees_permutation(block: Block) -> bool:
    """Whether the stream's coordinates may be permuted (with signs, unless norms are centred)."""
    return (
        block.placement != "post"
        and block.norm is not None
        and block.final_norm
        and block.head.kind != "none"
        and not block.embed_norm
        and bool(block.tables)
    )


def rotate_layer(tensors: Tensors, R: np.ndarray) -> Tensors:
    """A layer in the new basis: readers W Rᵀ, writers R W, norms permuted along.

    If R is no permutation the layer must be folded: then norms before the maps are constant.
    """
    moved = dict(tensors)
    permuted = _NORMS if is_whole(R) else _NORMS[2:]
    for name in _READERS:
        if name in tensors:
            moved[name] = tensors[name] @ R.T
    for name in ("output", "down", "output_bias", "down_bias"):
        if name in tensors:
            moved[name] = R @ tensors[name]
    for name in permuted:
        if name in tensors:
            moved[name] = np.abs(R) @ tensors[name]
        if f"{name}_shift" in tensors:
            moved[f"{name}_shift"] = R @ tensors[f"{name}_shift"]
    return moved


def rotate_outer(tensors: Tensors, R: np.ndarray) -> Tensors:
    """The tensors outside the layers in the new basis, folded if R is no permutation.

    Gain and shift of the last norm move along with a signed permutation.
    """
    moved = dict(tensors)
    for name in ("tokens", "positions", "types", "unembedding"):
        if name in tensors:
            moved[name] = tensors[name] @ R.T
    for name in ("patch", "patch_bias", "class_token"):
        if name in tensors:
            moved[name] = R @ tensors[name]
    if "final_norm" in tensors and is_whole(R):
        moved["final_norm"] = np.abs(R) @ tensors["final_norm"]
        if "final_norm_shift" in tensors:
            moved["final_norm_shift"] = R @ tensors["final_norm_shift"]
    return moved


def starts(block: Block, outer: Tensors) -> np.ndarray:
    """All vectors that tables write, as rows: what a change of basis is read from."""
    rows = [outer[name] for name, _ in block.tables]
    if block.patch is not None:
        rows += [outer["patch"].T, outer["patch_bias"][None], outer["class_token"][None]]
    return np.concatenate(rows)


def principal_axes(block: Block, outer: Tensors) -> np.ndarray | None:
    """The rotation to the principal axes of the tables, or None when they do not span the stream.

    The direction 1 stays where norms subtract the mean. Each axis points to where the cubes of the
    coordinates have positive sum.
    """
    rows = starts(block, outer)
    d = rows.shape[1]
    basis = complement_of_one(d) if block.centred else np.eye(d)
    small = rows @ basis
    values, vectors = np.linalg.eigh(small.T @ small)
    if values[0] <= values[-1] * d * 2.0**-50:
        return None
    axes = vectors[:, ::-1]
    axes = axes * np.where(np.sum((small @ axes) ** 3, axis=0) < 0, -1.0, 1.0)
    if not block.centred:
        return axes.T
    return basis @ axes.T @ basis.T + np.full((d, d), 1 / d)


def complement_of_one(d: int) -> np.ndarray:
    """An orthonormal basis (d, d − 1) of the vectors whose entries sum to zero."""
    full = np.concatenate([np.full((d, 1), d**-0.5), np.eye(d)[:, : d - 1]], axis=1)
    return np.linalg.qr(full)[0][:, 1:]


def coordinate_order(block: Block, outer: Tensors) -> np.ndarray:
    """The (signed) permutation that sorts the stream's coordinates by their size in the tables."""
    rows = starts(block, outer)
    order = np.argsort(-np.sum(rows**2, axis=0), kind="stable")
    R = np.eye(rows.shape[1])[order]
    if not block.centred:
        R = R * np.where(np.sum(rows**3, axis=0) < 0, -1.0, 1.0)
    return R


def carried(block: Block, first: np.ndarray, second: np.ndarray) -> np.ndarray | None:
    """The orthogonal R with first Rᵀ nearest to second, None when that is not determined.

    Polar factor of secondᵀ first; along 1, where centred tables say nothing, the identity.
    """
    d = first.shape[1]
    basis = complement_of_one(d) if block.centred else np.eye(d)
    U, S, Vt = np.linalg.svd((second @ basis).T @ (first @ basis))
    if S[-1] <= S[0] * d * 2.0**-50:
        return None
    R = basis @ (U @ Vt) @ basis.T
    return R + np.full((d, d), 1 / d) if block.centred else R


def is_whole(R: np.ndarray) -> bool:
    """Whether an orthogonal R is a signed permutation, to the last bit."""
    return np.array_equal(R, np.rint(R))


def as_signed_permutation(R: np.ndarray) -> np.ndarray | None:
    """The signed permutation nearest to R when R is near one, else None."""
    nearest = np.rint(R)
    near = np.abs(R - nearest).max() < 0.25
    return (
        nearest if near and np.array_equal(np.abs(nearest).sum(axis=0), np.ones(len(R))) else None
    )
