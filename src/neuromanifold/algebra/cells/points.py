"""Branches at real points drawn from a seed: a point is taken only if its branches are proved."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from neuromanifold.algebra.cells.piecewise import Piecewise
from neuromanifold.algebra.cells.proof import Decided
from neuromanifold.algebra.cells.whole import WholeInputs
from neuromanifold.errors import ArgumentError

ATTEMPTS = 64
CHUNK = 16
"""Inputs that are evaluated at once."""
SIZES = (1.0, 8.0, 64.0)
"""Standard deviations of the entries of inputs, in turn: a cell may lie far from the origin."""
_TRIED = (1.0, 4.0, 0.25, 16.0, 0.0625, 1e-3)
_STREAM = "neuromanifold normal stream 1"


def normal(seed: int, label: str, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Normal numbers from the stream of `seed` and `label`.

    The stream is SHAKE-256 of a fixed text, cut into little-endian 64-bit words, the upper 53 bits
    of each of which give a number in (0, 1), and the inverse of the normal distribution of that.
    """
    count = math.prod(shape)
    digest = hashlib.shake_256(f"{_STREAM}|{seed}|{label}".encode()).digest(8 * count)
    words = np.frombuffer(digest, dtype="<u8") >> np.uint64(11)
    return np.asarray(ndtri((words + 0.5) * 2.0**-53), dtype=np.float64).reshape(shape)


def real_point(attempt: int, label: str, shapes: Any) -> Any:
    """A real point to try: normal numbers, in every other attempt their absolute values.

    Args:
        attempt: its number; attempts have several sizes in turn.
        label: what the point is for.
        shapes: a pytree of arrays or shapes.
    """
    leaves, structure = jax.tree.flatten(shapes)
    size, sign = _TRIED[attempt // 2 % len(_TRIED)], np.abs if attempt % 2 else np.asarray
    drawn = [
        sign(size * normal(attempt, f"{label} {k}", np.shape(leaf)))
        for k, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, drawn)


@dataclass(frozen=True)
class Branches:
    """The branches at several inputs, at the same weights.

    Attributes:
        arrays: one array for each decision of the function, inputs along its first axis.
        patterns: the number of distinct patterns among the inputs.
        whole: the number of distinct inputs of whole numbers; 0 if all inputs are real.
    """

    arrays: list[np.ndarray]
    patterns: int
    whole: int = 0


class BranchReader:
    """Reads branches of a function of weights and one input, compiled once.

    Args:
        function: the function.
        ranges: what each leaf of the input is drawn from; None for real ones.
    """

    def __init__(self, function: Piecewise, ranges: Sequence[range | None] | None = None) -> None:
        self._decided, self._shapes = Decided(function, CHUNK), jax.tree.leaves(function.shapes[1])
        self._ranges = [None] * len(self._shapes) if ranges is None else list(ranges)
        whole = [(s.shape, r) for s, r in zip(self._shapes, self._ranges, strict=True) if r]
        self.whole = WholeInputs([s for s, _ in whole], [r for _, r in whole]) if whole else None

    def read(self, weights: Any, seed: int, count: int, passed: Sequence[int] = ()) -> Branches:
        """The branches at the first inputs of the seed but some.

        Args:
            weights: real weights, a pytree of float64 arrays.
            seed: of the inputs, of which the real ones are normal, of the sizes in turn.
            count: how many inputs.
            passed: the numbers of inputs that are passed over.
        """
        kept = np.setdiff1d(np.arange(count + len(passed)), passed)[:count]
        chunks = np.unique(kept // CHUNK)
        parts = [self._chunk(weights, seed, CHUNK * chunk) for chunk in chunks.tolist()]
        places = CHUNK * np.searchsorted(chunks, kept // CHUNK) + kept % CHUNK
        arrays = [np.concatenate(part)[places] for part in zip(*parts, strict=True)]
        whole, branches = arrays[: self._whole], arrays[self._whole :]
        return Branches(branches, distinct(branches, count), distinct(whole, count) if whole else 0)

    @property
    def _whole(self) -> int:
        """How many leaves are whole numbers."""
        return sum(r is not None for r in self._ranges)

    def _chunk(self, weights: Any, seed: int, start: int) -> list[np.ndarray]:
        """Whole inputs and branches of one chunk; one program serves all, which are as long."""
        found: list[np.ndarray] = []
        missing = np.ones(CHUNK, dtype=bool)
        for attempt in range(ATTEMPTS):
            inputs = self._inputs(seed, start, attempt)
            whole = [x for x, r in zip(inputs, self._ranges, strict=True) if r is not None]
            branches, holds = self._decided.at(weights, inputs, missing)
            arrays = [*whole, *branches]
            if not found:
                found = [np.zeros(x.shape) for x in arrays]
            for every, part in zip(found, arrays, strict=True):
                every[holds] = part[holds]
            missing &= ~holds
            if not missing.any():
                return found
        raise ArgumentError(
            f"at {ATTEMPTS} random inputs in a row the function compares values that are not "
            "proved to differ, makes whole numbers beyond 32 bits, or has no value: a "
            "comparison between two equal functions decides nothing, nor does one at weights on "
            "the edge of a cell, such as zeros before a ReLU; leave it out, or take other weights"
        )

    def _inputs(self, seed: int, start: int, attempt: int) -> list[np.ndarray]:
        """A chunk of inputs, leaf by leaf."""
        numbers = range(start, start + CHUNK)
        drawn = self.whole.drawn(seed, [n + attempt for n in numbers]) if self.whole else []
        whole = iter(drawn)
        leaves = []
        for k, (leaf, values) in enumerate(zip(self._shapes, self._ranges, strict=True)):
            if values is not None:
                leaves.append(next(whole).astype(leaf.dtype))
                continue
            label = f"leaf {k} attempt {attempt}"
            rows = [
                SIZES[n % len(SIZES)] * normal(seed, f"cell input {n} {label}", leaf.shape)
                for n in numbers
            ]
            leaves.append(np.stack(rows))
        return leaves


def distinct(arrays: list[np.ndarray], count: int) -> int:
    """How many rows of several arrays differ."""
    if not arrays:
        return 1
    rows = np.concatenate([x.reshape(count, -1) for x in arrays], axis=1)
    return len(np.unique(rows, axis=0))
