"""Two files with the same function in real arithmetic, proved from the numbers that they store.

What determines the function (`invariants`) are polynomials in the stored numbers, which are dyadic.
If the numerator of every difference is zero modulo primes whose product exceeds its size, every
difference is zero, and the functions are equal.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint
from neuromanifold.checkpoints.equality.agreement import LayerAgreement
from neuromanifold.checkpoints.equality.dyadic import depth, primes_beyond
from neuromanifold.checkpoints.equality.element import Ordered
from neuromanifold.checkpoints.equality.invariants import (
    INCOMING,
    Numbers,
    Side,
    attention_agrees,
    mlp_agrees,
    mlp_norm,
    outer_agrees,
)
from neuromanifold.checkpoints.normal_form.fold import incoming_norm
from neuromanifold.checkpoints.normal_form.stream import as_signed_permutation

_STEPS = 256
"""Entries of a change of basis of the stream that are multiples of 1/256 are tried."""
_MLP = (
    *("up", "gate", "down", "up_bias", "gate_bias", "down_bias"),
    *("mlp_norm", "mlp_norm_shift", "mlp_out_norm", "mlp_out_norm_shift"),
)


def proved_same(
    a: Checkpoint, b: Checkpoint, stream: np.ndarray | None, layers: Sequence[LayerAgreement]
) -> int | None:
    """How many primes prove that two models in the terms of one block are the same function.

    None when it is not proved. Tensors that are equal as they are stored need no prime.

    Args:
        a: a model.
        b: another, read as tensors of the same block.
        stream: R, x → R x, that carries the second model's stream to the first one's.
        layers: how heads and neurons of the second answer to those of the first.
    """
    turn = None if stream is None else _exact_turn(a.block, stream)
    if _constants(a) != _constants(b) or (stream is not None and turn is None):
        return None
    if "score_table" in a.block.shapes and len({tuple(one.heads) for one in layers}) > 1:
        return None  # all layers use the columns of one table
    if a.block.placement == "post" and a.block.mlp is None:
        return None
    used = 0
    for first, second, agree in _parts(a, b, turn, layers):
        if turn is None and _equal(first, second):
            continue
        primes = _primes(a.block, turn, first, second)
        for prime in primes:
            field = PrimeField(prime)
            moved = None if turn is None else field.from_floats(turn)
            x, y = (
                Side(a.block, field, {n: field.from_floats(v) for n, v in part.items()}, R)
                for part, R in ((first, None), (second, moved))
            )
            if not agree(x, y):
                return None
        used = max(used, len(primes))
    return used


def _constants(model: Checkpoint) -> tuple[object, ...]:
    """What the comparison of blocks allows to differ a little, or converts in floating point."""
    block = model.found.block
    rotary = block.attention.rotary
    return rotary and rotary.frequencies, block.norm and block.norm.offset


def _exact_turn(block: Block, stream: np.ndarray) -> np.ndarray | None:
    """The change of basis with dyadic entries near to this one, if it is one: R Rᵀ = 1, R 1 = 1."""
    whole = np.rint(_STEPS * stream).astype(np.int64)
    orthogonal = np.array_equal(whole @ whole.T, _STEPS**2 * np.eye(len(whole), dtype=np.int64))
    fixes = not block.centred or bool(np.all(whole.sum(axis=1) == _STEPS))
    plain = block.placement != "sandwich" or as_signed_permutation(stream) is not None
    plain = plain and block.embed_width is None
    return whole / _STEPS if orthogonal and fixes and plain else None


def _equal(first: Numbers, second: Numbers) -> bool:
    return all(np.array_equal(value, second[name]) for name, value in first.items())


def _primes(
    block: Block, turn: np.ndarray | None, first: Numbers, second: Numbers
) -> tuple[int, ...]:
    """Primes whose product exceeds the numerator of every difference.

    All numbers, gains with their offset too, are multiples of 2^-E and at most L ≥ 1. An invariant
    is a polynomial of degree at most D, so 2^(ED) times it is whole. For an N that no size of the
    stream, the tables or all heads exceeds, an entry of A has at most 2N monomials (2N² with R),
    one of c N + 1, one of a writer 2N (2N²), and sums over a head or all heads have N terms: so the
    coefficients of an invariant sum to at most (2N²)^D, and a difference of two is at most
    2 (2N²L)^D 2^(ED).
    """
    a, mlp, R = block.attention, block.mlp, 0 if turn is None else 1
    powers = 0 if mlp is None else sum(mlp.scalings.values())
    D = max(2 * (2 + R), powers * (2 + R) + 1 + R)
    N = max(block.width, block.embed_width or 0, a.heads * max(a.key_size, a.value_size))
    offsets = np.array([a.qk_norm_offset, 0.0 if block.norm is None else block.norm.offset])
    values = [*first.values(), *second.values(), offsets, *([] if turn is None else [turn])]
    L = 1 + np.abs(offsets).max() + max(float(np.abs(v).max(initial=0.0)) for v in values)
    E = max(depth(value) for value in values)
    return primes_beyond(1 + D * (1 + 2 * math.log2(N) + math.log2(L) + E))


Agree = Callable[[Side, Side], bool]


def _parts(
    a: Checkpoint, b: Checkpoint, turn: np.ndarray | None, layers: Sequence[LayerAgreement]
) -> Iterator[tuple[Numbers, Numbers, Agree]]:
    """The parts of both models, in the same order of heads and neurons, and what each must meet."""
    block, other = a.block, Ordered(b, layers)
    yield a.outer(), other.outer(), outer_agrees
    shared = ("down_bias",) if block.is_parallel else ()
    for layer in range(block.stored_layers):
        first, second = a.layer(layer), other.layer(layer)
        for model, found in ((a, first), (b, second)):
            _add_incoming(model, layer, found)
        if turn is not None:  # gains of norms of what is written move along with a permutation
            second |= {n: np.abs(turn) @ v for n, v in second.items() if n.endswith("_out_norm")}
            second |= {n: turn @ v for n, v in second.items() if n.endswith("_out_norm_shift")}
        names = [n for n in first if n not in _MLP or n in shared]
        mine, theirs = ({n: t[n] for n in names} for t in (first, second))
        yield mine, theirs, attention_agrees
        if block.mlp is not None:
            wanted = dict.fromkeys((*_MLP, mlp_norm(block), f"{mlp_norm(block)}_shift"))
            names = [n for n in wanted if n in first and n not in shared]
            mine, theirs = ({n: t[n] for n in names} for t in (first, second))
            if turn is not None or not _equal(mine, theirs):
                _add_signs(block, turn, mine, theirs)
            last = layer == block.stored_layers - 1
            yield mine, theirs, partial(mlp_agrees, last=last)


def _add_incoming(model: Checkpoint, layer: int, found: Numbers) -> None:
    """Add the norm that a layer reads; shared layers are seen as maps of the stream itself."""
    name = None if model.block.shared else incoming_norm(model.block, layer)
    for ending in ("", "_shift"):
        if f"{name}{ending}" in model.block.shapes:  # as stored: the sum with the offset rounds
            found[INCOMING + ending] = model.tensor(f"{name}{ending}")


def _add_signs(block: Block, turn: np.ndarray | None, first: Numbers, second: Numbers) -> None:
    """Add the signs of an entry of every row that only positive factors may scale.

    The entry of A that is largest in the first model has its sign in float64 if it exceeds 2^-20
    times the sum of its terms and no term is near underflow; where one does not, the signs are made
    to differ.
    """
    mlp = block.mlp
    if mlp is None:
        return
    name = mlp.homogeneous
    if name is None:
        first["sign"] = second["sign"] = np.zeros(mlp.size)
        return
    norm = mlp_norm(block)
    rows: list[np.ndarray] = []
    sizes: list[np.ndarray] = []
    for tensors, R in ((first, None), (second, turn)):
        offset = 0.0 if block.norm is None else block.norm.offset
        A = tensors[name] * (tensors[norm] + offset if norm in tensors else 1.0)
        sizes.append(np.abs(A).sum(axis=1))
        A = A - A.mean(axis=1, keepdims=True) if block.centred else A
        rows.append(A if R is None else A @ R.T)
    at = np.argmax(np.abs(rows[0]), axis=1)[:, None]
    entries = [np.take_along_axis(A, at, 1)[:, 0] for A in rows]
    known = [
        np.abs(e) > np.maximum(2.0**-20 * size, 2.0**-900)
        for e, size in zip(entries, sizes, strict=True)
    ]
    first["sign"] = np.where(known[0] & known[1], np.sign(entries[0]), 2.0)
    second["sign"] = np.where(known[0] & known[1], np.sign(entries[1]), 3.0)
