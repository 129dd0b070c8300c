"""Single wrong numbers, where the rounding of all others would hide what they do.

Numbers of two files are roundings of common ones when they differ by no more than the roundings of
both. Symmetries act on the rows and columns of maps and tables as a whole: they move many numbers
of a row or of a column, or none that can be seen. So numbers that are not roundings of common ones
and stand alone there are a fault, or a symmetry so small that rounding hides the rest of it.

If few tensors hold such numbers, the first model is run as it is and with them taken from the
second: all other numbers are common, and only errors of those few have to be exceeded. Had a
symmetry moved them, the exchange would take all of it over. A symmetry that moves many tensors,
some of them by less than their rounding, is not taken over whole: then nothing is exchanged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from scipy.special import gammaln

from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.equality.agreement import Rounding
from neuromanifold.checkpoints.equality.element import Ordered
from neuromanifold.checkpoints.normal_form.fold import gains, norm_of
from neuromanifold.checkpoints.running import TOKENS, Layered, inputs_reaching, noise_of, run

FEW = 4
"""A wrong edit of two heads is in the weights and biases of queries and in the outputs."""
DRAWS = 4
"""Draws of errors for the model before and after: eight degrees of freedom in all."""
SHOWN = 6.0
"""Exchanged numbers show when they do this many times what errors do that are twice a rounding's.

If errors move the outputs in one direction only, the ratio to the root mean square of eight draws
is Student's: above 12 with a probability of 2e-6. In more directions its tails are lighter.
"""
RARE = 1e-9
"""A symmetry that leaves so many numbers unseen with a smaller probability is none."""
TWICE = 17 / 16
"""A number that was rounded to float32 before it was rounded to half precision errs by more."""
MANY = 7
"""Of the numbers of a map less than a twentieth are as small as the rounding of their row allows
in bfloat16, and fewer in finer dtypes: seven by chance with a probability below 10^-9."""
SEEN = 0.25
"""Where less of a row and of a column is wrong, no symmetry is seen to have moved it."""


@dataclass(frozen=True)
class Replaced:
    """A model with other tensors in the place of some."""

    model: Layered
    tensors: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.model.block

    def outer(self) -> Float64Tensors:
        """The tensors outside the layers."""
        return {name: self.tensors.get(name, v) for name, v in self.model.outer().items()}

    def layer(self, layer: int) -> Float64Tensors:
        """The tensors of a layer."""
        at = f"layers.{0 if self.block.shared else layer}."
        return {name: self.tensors.get(at + name, v) for name, v in self.model.layer(layer).items()}


@dataclass(frozen=True)
class Pair:
    """A tensor in two models, of which some numbers are not roundings of common ones.

    Attributes:
        name: inside the block.
        first, second: the numbers.
        explained: by how much roundings of a common number may differ.
        dtypes: in which the files store it.
    """

    name: str
    first: np.ndarray
    second: np.ndarray
    explained: np.ndarray
    dtypes: tuple[np.dtype, np.dtype]

    @property
    def is_vector(self) -> bool:
        """Whether this is a bias, a gain or a shift: there symmetries move single numbers."""
        return self.first.ndim == 1 or self.name.endswith("_bias")

    @property
    def wrong(self) -> np.ndarray:
        """The numbers that are not roundings of common ones."""
        return np.abs(self.first - self.second) > self.explained

    @property
    def mixed(self) -> np.ndarray:
        """The first tensor with the wrong numbers of the second."""
        return np.where(self.wrong, self.second, self.first)

    def matrix(self, value: np.ndarray) -> np.ndarray:
        """An array of this shape as the matrix on whose rows and columns symmetries act."""
        if self.is_vector:
            return value.reshape(1, -1)
        if self.name.endswith(".output"):
            return np.moveaxis(value, -2, 0).reshape(value.shape[-2], -1)
        return value.reshape(-1, value.shape[-1])

    @property
    def alone(self) -> int:
        """How many wrong numbers are in rows and columns of which few are.

        A row that is scaled by little more than a rounding is wrong in few places, but nowhere by
        more than that and the two roundings.
        """
        wrong = self.matrix(self.wrong)
        far = self.matrix(np.abs(self.first - self.second) > 3 * self.explained)
        seen = wrong.mean(axis=1, keepdims=True) >= SEEN
        if not self.is_vector:
            seen = seen | (wrong.mean(axis=0) >= SEEN)
        return int(np.sum(far & ~seen))

    def errors(self, rounding: float) -> np.ndarray:
        """What rounding or a symmetry may have left in the wrong numbers, if not six times that.

        In rows or columns that are wrong as a whole the exchange takes a symmetry over, and leaves
        the rounding of their numbers, those that are not wrong among them. Where most are not
        wrong a symmetry Δ_il = Σ_k ε_k w_kl moved the row by as little as `_unseen` says, or the
        column, or scaled either by less than a rounding.
        """
        wrong, size = self.matrix(self.wrong), self.matrix(np.abs(self.mixed))
        if self.is_vector:
            found = np.full(wrong.shape, rounding * size.max())
        else:
            count = wrong.sum(axis=1, keepdims=True), wrong.sum(axis=0, keepdims=True)
            lengths = wrong.shape[1], wrong.shape[0]
            rows, columns = (np.sqrt(np.mean(size**2, axis=k, keepdims=True)) for k in (1, 0))
            share = np.maximum(count[0] / lengths[0], count[1] / lengths[1])
            with np.errstate(divide="ignore"):
                dense = rounding * np.maximum(rows, columns) / np.sqrt(share)
            unseen = [_unseen(n, k) for n, k in zip(lengths, count, strict=True)]
            small = rounding * (unseen[0] * columns + unseen[1] * rows)
            found = np.minimum(dense, small + self.matrix(self.explained) / 3)
        found = np.where(wrong, found, 0.0)
        if self.name.endswith(".output"):
            shape = np.moveaxis(self.first, -2, 0).shape
            return np.moveaxis(found.reshape(shape), 0, -2)
        return found.reshape(self.first.shape)


def _unseen(n: int, wrong: np.ndarray) -> np.ndarray:
    """How much a symmetry that shows in so few of n numbers moves them, in units of rounding.

    Moved by τ in units of its size a number stays a rounding of a common one, |Δ| ≤ 2u|w|, with
    the probability (2/π) arctan(2u/τ), that of a ratio of independent normal numbers: n − k of n
    do with at most C(n, k) times its power n − k. The τ/2u where that is `RARE`.
    """
    unseen = np.maximum(n - wrong, 1e-9)
    ways = gammaln(n + 1) - gammaln(wrong + 1) - gammaln(n - wrong + 1)
    probability = np.exp((np.log(RARE) - ways) / unseen)
    with np.errstate(divide="ignore"):
        return 1 / np.tan(np.pi / 2 * probability)


def exchange(
    first: Checkpoint, second: Ordered, rounding: Rounding, seed: int
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Outputs before and after the exchange, and what errors of the exchanged numbers make.

    None when there is nothing to exchange, or in more than a few tensors.
    """
    taken: dict[str, Pair] = {}
    for pair in _pairs(first, second, rounding, folded=False):
        if pair.wrong.any():
            taken[pair.name] = pair
        if len(taken) > FEW:
            return None
    if not taken:
        return None
    tables = [taken[name] for name, _ in first.block.tables if name in taken]
    rows = {table.name: int(np.argmax(table.wrong.any(axis=1))) for table in tables}
    # long, because a neuron may be silent at most tokens
    inputs = inputs_reaching(first.block, rows, seed, 4 * TOKENS)
    models = [{n: p.first for n, p in taken.items()}, {n: p.mixed for n, p in taken.items()}]
    outputs = [run(Replaced(first, tensors), inputs).outputs for tensors in models]
    errors = {n: p.errors(rounding.first + rounding.second) for n, p in taken.items()}

    def spoiled(tensors: Float64Tensors, draw: int) -> Replaced:
        signs = np.random.default_rng((seed, draw))
        spoil = {n: e * signs.choice([-1.0, 1.0], e.shape) for n, e in errors.items()}
        return Replaced(first, {n: value + spoil[n] for n, value in tensors.items()})

    noise = [
        noise_of(clean, [spoiled(tensors, draw) for draw in range(DRAWS)], inputs)
        for clean, tensors in zip(outputs, models, strict=True)
    ]
    return outputs[0], outputs[1], float(np.sqrt(np.mean(np.square(noise))))


@dataclass(frozen=True)
class Apart:
    """Numbers of two models that are not roundings of common ones.

    Attributes:
        wrong: how many there are.
        alone: how many of them stand alone, where no symmetry is seen.
        place: the tensor with the first that stands alone.
    """

    wrong: int
    alone: int
    place: str | None

    @property
    def is_suspect(self) -> bool:
        """Whether some stand alone, and so few that a fault may have met numbers this small."""
        return 0 < self.alone < MANY


def apart(first: Checkpoint, second: Ordered, rounding: Rounding) -> Apart:
    """Count the numbers that the function sees and that are not roundings of common ones.

    A bias may be moved alone, and a gain, if something else is: they stand alone where nothing
    else is seen to be moved. Numbers in a finer dtype than the rounding says were computed: wrong
    or not, they do not stand alone.
    """
    wrong, moved = 0, False
    found: dict[bool, list[tuple[int, str]]] = {False: [], True: []}
    for pair in _pairs(first, second, rounding, folded=True):
        count = int(pair.wrong.sum())
        alone = pair.alone if count and rounding.is_of(*pair.dtypes) else 0
        wrong, moved = wrong + count, moved or 2 * alone < count
        found[pair.is_vector].append((alone, pair.name))
    counted = [one for one in found[False] + ([] if moved else found[True]) if one[0]]
    return Apart(wrong, sum(n for n, _ in counted), counted[0][1] if counted else None)


def _pairs(
    first: Checkpoint, second: Ordered, rounding: Rounding, *, folded: bool
) -> Iterator[Pair]:
    """The tensors of two models; `folded`: with gains that differ in the maps that read them."""
    block = first.block
    unseen = {"key_bias"} if block.attention.constants_die else set()
    unseen |= {norm_of(block, name) for name in ("unembedding", *block.layer_shapes)}
    offset = max(block.attention.qk_norm_offset, 0.0 if block.norm is None else block.norm.offset)
    for layer in (None, *range(block.stored_layers)):
        at = "" if layer is None else f"layers.{layer}."
        mine, theirs = (m.outer() if layer is None else m.layer(layer) for m in (first, second))
        for name in mine:
            x, y, factor = mine[name], theirs[name], 1.0
            dtypes = first.dtype(at + name), second.model.dtype(at + name)
            if folded:
                if name in unseen:  # dead, or a gain that is compared in the maps
                    continue
                norm = norm_of(block, name)
                if norm is not None and not np.array_equal(mine[norm], theirs[norm]):
                    factor = 2.0  # the gain is rounded too
                    x, y = (v * gains(block, t, norm) for v, t in ((x, mine), (y, theirs)))
                x, y = (block.used(name, value) for value in (x, y))
            least = max(float(ml_dtypes.finfo(dtype).smallest_subnormal) for dtype in dtypes)
            gain = offset if name.endswith("norm") else 0.0
            roundings = rounding.first * np.abs(x + gain) + rounding.second * np.abs(y + gain)
            yield Pair(at + name, x, y, TWICE * factor * roundings + least, dtypes)
