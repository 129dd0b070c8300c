"""Whether two folded layers agree to within the rounding of what is stored.

Products P^H F of two factors are equal exactly when F = C^H F′ for the C with P′ = C P: one factor
gives the frame, by least squares, and the other is compared in it entry by entry, so that a single
wrong entry is seen beside the rounding of that entry and not beside that of all. The tolerance
knows the dtype, the sizes and, because C carries the errors of the first factor, the condition of
the frame. Where a factor gives no frame (a head that lacks rank) the columns of the products are
compared, through QR of the stacked factors: they are never formed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuromanifold.checkpoints.audits.audit import precision
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.distance.matching import (
    head_costs,
    match_heads,
    match_neurons,
)
from neuromanifold.checkpoints.forms import Heads, Neurons, head_forms, neuron_forms

SAFETY = 4.0
"""Both factors of both models are rounded, and folding rounds gain and map: four errors.

Sums of many rounded terms are bounded in quadrature, as independent errors add up: this is no
worst-case bound, and the answer says so.
"""
USELESS = 0.25
"""A tolerance above this share of the product itself decides nothing."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """How one part of two models differs.

    Attributes:
        part: what was compared: `query–key`, `value–output`, `MLP`, or a tensor's name.
        layer: the layer, None outside the layers.
        head: the head (or neuron, or column) where it differs most, None where that has no meaning.
        deviation: the largest deviation there, relative to the size of the part.
        tolerance: what rounding explains there, relative to the same.
        allowed: the largest ratio of deviation to tolerance, over all columns; same if at most 1.
    """

    part: str
    layer: int | None
    head: int | None
    deviation: float
    tolerance: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """Whether rounding explains the deviation."""
        return self.allowed <= 1.0

    @property
    def is_blunt(self) -> bool:
        """Whether agreeing means nothing: the tolerance is not well below the part itself."""
        return self.deviation > 0 and self.tolerance > USELESS

    def __str__(self) -> str:
        place = "" if self.layer is None else f"layer {self.layer} "
        which = "" if self.head is None else f" {self.head}"
        return f"{place}{self.part}{which}: {self.deviation:.1e} against {self.tolerance:.1e}"


@dataclass(frozen=True, slots=True)
class Rounding:
    """Relative rounding of what is stored, in each of the two models."""

    first: float
    second: float

    def is_of(self, first: np.dtype, second: np.dtype) -> bool:
        """Whether it is that of numbers in these dtypes, and nobody's judgement."""
        return (self.first, self.second) == (unit(first), unit(second))


def unit(dtype: np.dtype) -> float:
    """The largest relative error of rounding to a dtype; folding and QR lose bits of float64."""
    return max(precision(dtype) / 2, 2.0**-46)


Sized = tuple[np.ndarray, np.ndarray]
"""Rows, and the sizes of the terms that folding summed in their last entries."""


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors L^H R of the products of a layer's heads.

    Attributes:
        left: (H, n, e).
        right: (H, n, e′).
        left_constants: (H, n), the size of the terms that folding summed in the last column of
            `left`; zero without.
        right_constants: the same for `right`.
    """

    left: np.ndarray
    right: np.ndarray
    left_constants: np.ndarray
    right_constants: np.ndarray

    def of(self, head: int) -> tuple[Sized, Sized]:
        """The factors of one head."""
        return (
            (self.left[head], self.left_constants[head]),
            (self.right[head], self.right_constants[head]),
        )


def compare_products(
    part: str, layer: int, first: Factors, second: Factors, rounding: Rounding
) -> Deviation:
    """Products L^H R, head by head; the worst head is reported."""
    found = [Deviation(part, layer, None, 0.0, 0.0, 0.0)]
    for head in range(len(first.left) if first.left.shape[1] else 0):
        (left, right), (other_left, other_right) = first.of(head), second.of(head)
        for sides in (
            (left, right, other_left, other_right),
            (right, left, other_right, other_left),
        ):
            size, off, bound = _in_frame(*sides, rounding) or _by_columns(*sides, rounding)
            ratio = float(np.max(off / np.maximum(bound, 1e-300)))
            total, most = (float(np.linalg.norm(one)) / size for one in (off, bound))
            found.append(Deviation(part, layer, head, total, most, ratio))
    return max(found, key=lambda d: (not d.agrees, d.is_blunt, d.allowed, d.head is not None))


Compared = tuple[float, np.ndarray, np.ndarray]
"""The size of what was compared, its deviations, and what rounding explains of them."""


def _in_frame(P: Sized, F: Sized, P2: Sized, F2: Sized, rounding: Rounding) -> Compared | None:
    """F against C^H F′ for the C with P′ = C P, entry by entry; None when that decides nothing.

    With the dual rows D = (P P^H)^-1 P, C = P′ D^H. Errors s of P′ − C P, those of rounding or, if
    larger, those that are seen, make errors Σ_j s_lj² |D_ij|² of C_li², which reach F′.
    """
    p, f, p2, f2 = P[0], F[0], P2[0], F2[0]
    noise_p, noise_f = (rounding.first * _entry_noise(*part) for part in (P, F))
    noise_p2, noise_f2 = (rounding.second * _entry_noise(*part) for part in (P2, F2))
    values, vectors = np.linalg.eigh(p @ p.conj().T)
    if values[0] <= max(float(np.sum(noise_p**2)), 2.0**-40 * values[-1]):
        return None
    dual = (vectors / values) @ (vectors.conj().T @ p)
    C = p2 @ dual.conj().T
    weights = np.abs(C) ** 2
    errors = np.maximum(noise_p2**2 + weights @ noise_p**2, np.abs(p2 - C @ p) ** 2)
    of_frame = errors @ (np.abs(dual) ** 2).T
    square = noise_f**2 + weights.T @ noise_f2**2 + of_frame.T @ np.abs(f2) ** 2
    size, tolerance = float(np.linalg.norm(f)), SAFETY * np.sqrt(square)
    if not np.linalg.norm(tolerance) < USELESS * size:  # nor if both are zero
        return None
    return size, np.abs(f - C.conj().T @ f2), tolerance


def _by_columns(L: Sized, R: Sized, L2: Sized, R2: Sized, rounding: Rounding) -> Compared:
    """The columns of L^H R − L′^H R′, from triangular factors of the left ones."""
    triangle = np.linalg.qr(np.concatenate([L[0], -L2[0]]).conj().T, mode="r")
    off = np.linalg.norm(triangle @ np.concatenate([R[0], R2[0]]), axis=0)
    bound = SAFETY * (rounding.first * _bounds(L, R) + rounding.second * _bounds(L2, R2))
    return max(_size(L[0], R[0]), _size(L2[0], R2[0]), 1e-300), off, bound


def _bounds(L: Sized, R: Sized) -> np.ndarray:
    """Σ_i ‖l_i‖ times the noise of r_ij: rounding of both factors, were it all of one sign."""
    return np.linalg.norm(L[0], axis=1) @ _entry_noise(*R)


def _entry_noise(rows: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """2 |r_ij| + ‖r_i‖/√e, rounding of an entry and of what centring and rotation spread.

    In the last column also the terms that were summed there.
    """
    spread = np.linalg.norm(rows, axis=1, keepdims=True) / np.sqrt(rows.shape[1])
    noise = 2 * np.abs(rows) + spread
    noise[:, -1] += terms
    return noise


def _size(left: np.ndarray, right: np.ndarray) -> float:
    """‖Lᵀ R‖ from the triangular factors."""
    a, b = (np.asarray(np.linalg.qr(factor.T, mode="r")) for factor in (left, right))
    return float(np.linalg.norm(a @ b.conj().T))


def compare_rows(
    part: str,
    layer: int | None,
    first: np.ndarray,
    second: np.ndarray,
    rounding: Rounding,
    terms: np.ndarray | float = 0.0,
) -> Deviation:
    """Rows entry by entry, relative to the entry and to the size of its row.

    `terms` is the size of what folding summed in each entry, or in all of them.
    """
    rows, others = np.atleast_2d(first), np.atleast_2d(second)
    difference = np.abs(rows - others)
    u = rounding.first + rounding.second
    spread = np.linalg.norm(rows, axis=1, keepdims=True) / np.sqrt(rows.shape[1])
    spread = np.maximum(spread, np.linalg.norm(rows) / np.sqrt(rows.size))
    bound = SAFETY * u * (np.maximum(np.abs(rows), np.abs(others)) + spread + terms)
    ratio = difference / np.maximum(bound, 1e-300)
    at = int(np.argmax(ratio.max(axis=1))) if ratio.size else 0
    size = max(float(np.linalg.norm(rows)), 1e-300)
    return Deviation(
        part,
        layer,
        at if len(rows) > 1 else None,
        float(np.linalg.norm(difference)) / size,
        float(np.linalg.norm(bound)) / size,
        float(ratio.max()) if ratio.size else 0.0,
    )


@dataclass(frozen=True)
class LayerAgreement:
    """How two layers agree: the deviations of their parts, and how heads and neurons match."""

    deviations: tuple[Deviation, ...]
    heads: np.ndarray
    neurons: np.ndarray | None


Constants = Mapping[str, np.ndarray]
"""By the name of a map the size of the terms whose sum is its folded constant, one for each row."""


def compare_layers(
    block: Block,
    layer: int,
    first: tuple[dict[str, np.ndarray], Constants],
    second: tuple[dict[str, np.ndarray], Constants],
    rounding: Rounding,
) -> LayerAgreement:
    """Compare two folded layers in the same basis of the stream.

    Args:
        block: what the tensors mean.
        layer: its number.
        first: the tensors of one model, and the sizes of its constants' terms.
        second: those of the other.
        rounding: of the stored values.
    """
    a, b = head_forms(block, first[0]), head_forms(block, second[0])
    sizes = first[1], second[1]
    order = np.arange(block.attention.heads)
    found = _head_deviations(block, layer, (a, b), order, sizes, rounding)
    if not all(one.agrees for one in found):
        other = match_heads(head_costs(a, b), block.attention.groups)
        if not np.array_equal(order, other):
            matched = _head_deviations(block, layer, (a, b), other, sizes, rounding)
            if sum(d.deviation for d in matched) < sum(d.deviation for d in found):
                order, found = other, matched
    neurons, more = _neuron_agreement(block, layer, first, second, rounding)
    vectors = [
        compare_rows(
            name,
            layer,
            first[0][name],
            second[0][name],
            rounding,
            np.maximum(first[1].get(name, 0.0), second[1].get(name, 0.0)),
        )
        for name, shape in block.layer_shapes.items()
        if len(shape) == 1 and name not in ("query_norm", "key_norm", "up_bias", "gate_bias")
    ]
    return LayerAgreement((*found, *more, *vectors), order, neurons)


def _head_deviations(
    block: Block,
    layer: int,
    models: tuple[Heads, Heads],
    order: np.ndarray,
    sizes: tuple[Constants, Constants],
    rounding: Rounding,
) -> list[Deviation]:
    own = np.arange(len(order))
    pairs = [
        _head_factors(block, heads, which, size)
        for heads, which, size in zip(models, (own, order), sizes, strict=True)
    ]
    words = ("query–key, head", "value–output, head", "query–key, head")
    found = [
        compare_products(part, layer, x, y, rounding)
        for part, x, y in zip(words, *pairs, strict=True)
        if x.left.shape[0] and x.left.shape[1]
    ]
    planes = models[0].query_planes.shape[1]
    if planes:  # every plane was a product of its own
        worst = found.pop()
        head = None if worst.head is None else worst.head // planes
        found.append(replace(worst, head=head))
    if block.attention.qk_norm is not None:
        (a, b), share = models, models[0].sharing
        keys = _flat(a.key_all[own // share]), _flat(b.key_all[order // share])
        found += [
            compare_rows("query", layer, _flat(a.query_all), _flat(b.query_all[order]), rounding),
            compare_rows("key", layer, *keys, rounding),
        ]
    return found


def _head_factors(
    block: Block, heads: Heads, which: np.ndarray, sizes: Constants
) -> tuple[Factors, Factors, Factors]:
    """Scores off the rotary planes, what is written, and scores on each plane, as factors."""
    a, groups = block.attention, which // heads.sharing
    query = sizes["query"].reshape(a.heads, -1)[which]
    key, value = sizes["key"][groups], sizes["value"][groups]
    r = a.rotated
    still = Factors(heads.query[which], heads.key[groups], query[:, r:], key[:, r:])
    written = Factors(heads.output[which], heads.value[groups], np.zeros_like(value), value)
    if a.rotary is None:
        return still, written, Factors(*(np.zeros((0, 0, 1)),) * 4)
    first, second = np.array(a.rotary.planes).T

    def one_by_one(part: np.ndarray) -> np.ndarray:
        return part.reshape(-1, 1, part.shape[-1])

    turning = Factors(
        one_by_one(heads.query_planes[which]),
        one_by_one(heads.key_planes[groups]),
        (query[:, first] + query[:, second]).reshape(-1, 1),
        (key[:, first] + key[:, second]).reshape(-1, 1),
    )
    return still, written, turning


def _flat(part: np.ndarray) -> np.ndarray:
    return part.reshape(-1, part.shape[-1])


def _rescaled(tensors: Mapping[str, np.ndarray], forms: Neurons) -> np.ndarray:
    """By how much framing scaled every neuron's row."""
    up = np.linalg.norm(tensors["up"], axis=1)
    framed = np.linalg.norm(forms.signed[:, : tensors["up"].shape[1]], axis=1)
    return framed / np.maximum(up, 1e-300)


def _neuron_agreement(
    block: Block,
    layer: int,
    first: tuple[dict[str, np.ndarray], Constants],
    second: tuple[dict[str, np.ndarray], Constants],
    rounding: Rounding,
) -> tuple[np.ndarray | None, list[Deviation]]:
    a, b = neuron_forms(block, first[0]), neuron_forms(block, second[0])
    if a is None or b is None:
        return None, []

    def terms(order: np.ndarray) -> np.ndarray:
        """Only constants are sums, and their rows may have been rescaled: by at most their size."""
        total = np.zeros((len(order), a.fixed.shape[1] + a.signed.shape[1]))
        for (tensors, sizes), forms, rows in ((first, a, own), (second, b, order)):
            scale = _rescaled(tensors, forms)
            at = a.fixed.shape[1] + tensors["up"].shape[1]
            total[:, at] += (sizes["up"] * scale)[rows]
            if a.fixed.shape[1]:
                total[:, a.fixed.shape[1] - 1] += sizes["gate"][rows]
        return total

    def deviation(order: np.ndarray) -> Deviation:
        signed = b.signed[order]
        if a.mirrored:
            signs = np.where(np.sum(a.signed * signed, axis=1) < 0, -1.0, 1.0)
            signed = signs[:, None] * signed
        rows, others = np.hstack([a.fixed, a.signed]), np.hstack([b.fixed[order], signed])
        return compare_rows("MLP, neuron", layer, rows, others, rounding, terms(order))

    order = own = np.arange(len(a.signed))
    found = deviation(order)
    if not found.agrees:
        other = match_neurons(a, b)
        matched = deviation(other)
        if matched.deviation < found.deviation:
            order, found = other, matched
    return order, [found]
