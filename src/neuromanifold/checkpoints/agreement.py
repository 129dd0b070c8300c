"""Whether two folded layers agree, product by product, to within the rounding of what is stored.

A product Lᵀ R of two factors whose entries carry relative errors u has in column j an error of at
most u Σ_i ‖l_i‖ |r_ij| from the right factor, and as much from the left one. Tolerances are built
from that: they know the dtype, the sizes, and, because unbalanced factors are larger than their
product, the condition of the gauge. The deviation of a column is computed through QR of the stacked
factors, so the products are never formed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.forms import Heads, Neurons, head_forms, neuron_forms
from neuromanifold.checkpoints.matching import (
    head_costs,
    match_heads,
    match_neurons,
)

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
    def decides(self) -> bool:
        """Whether agreeing means anything: the tolerance is well below the part itself."""
        return self.tolerance <= USELESS

    def __str__(self) -> str:
        place = "" if self.layer is None else f"layer {self.layer} "
        which = "" if self.head is None else f" {self.head}"
        return f"{place}{self.part}{which}: {self.deviation:.1e} against {self.tolerance:.1e}"


@dataclass(frozen=True, slots=True)
class Rounding:
    """Relative rounding of what is stored, in each of the two models."""

    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors Lᵀ R of the products of a layer's heads.

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

    def of(self, head: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The factors of one head."""
        return (
            self.left[head],
            self.right[head],
            self.left_constants[head],
            self.right_constants[head],
        )


def compare_products(
    part: str, layer: int, first: Factors, second: Factors, rounding: Rounding
) -> Deviation:
    """Products Lᵀ R, head by head; the worst head is reported."""
    worst = Deviation(part, layer, None, 0.0, 0.0, 0.0)
    for head in range(len(first.left)):
        l1, r1, lc1, rc1 = first.of(head)
        l2, r2, lc2, rc2 = second.of(head)
        if l1.shape[0] == 0:
            continue
        size = max(_size(l1, r1), _size(l2, r2), 1e-300)
        sides = ((l1, r1, rc1, l2, r2, rc2), (r1, l1, lc1, r2, l2, lc2))
        for left, right, constants, other_left, other_right, other_constants in sides:
            columns = _column_norms(left, right, other_left, other_right)
            bound = SAFETY * (
                rounding.first * _bounds(left, right, constants)
                + rounding.second * _bounds(other_left, other_right, other_constants)
            )
            ratio = float(np.max(columns / np.maximum(bound, 1e-300)))
            if ratio > worst.allowed or worst.head is None:
                total, most = np.linalg.norm(columns), np.linalg.norm(bound)
                worst = Deviation(part, layer, head, float(total / size), float(most / size), ratio)
    return worst


def _size(left: np.ndarray, right: np.ndarray) -> float:
    """‖Lᵀ R‖ from the triangular factors."""
    a, b = (np.asarray(np.linalg.qr(factor.T, mode="r")) for factor in (left, right))
    return float(np.linalg.norm(a @ b.conj().T))


def _column_norms(
    left: np.ndarray, right: np.ndarray, other_left: np.ndarray, other_right: np.ndarray
) -> np.ndarray:
    """The norms of the columns of L^H R − L′^H R′."""
    triangle = np.linalg.qr(np.concatenate([left, -other_left]).conj().T, mode="r")
    return np.linalg.norm(triangle @ np.concatenate([right, other_right]), axis=0)


def _bounds(left: np.ndarray, right: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Σ_i ‖l_i‖ (2 |r_ij| + ‖r_i‖/√e): rounding of both factors, spread by centring and rotation.

    In the last column also the terms that were summed there.
    """
    lengths = np.linalg.norm(left, axis=1)
    spread = np.linalg.norm(right, axis=1) / np.sqrt(right.shape[1])
    bound = lengths @ (2 * np.abs(right) + spread[:, None])
    bound[-1] += lengths @ constants
    return bound


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
            if sum(d.allowed for d in matched) < sum(d.allowed for d in found):
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
        if matched.allowed < found.allowed:
            order, found = other, matched
    return order, [found]
