"""Inputs that are whole numbers or truth values: tokens, classes, masks.

Each is drawn from a range, and is a constant of its row. The range of an integer array is that from
0, or its smallest entry if that is negative, to its largest entry.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuromanifold.errors import ArgumentError

_STREAM = "neuromanifold whole stream 1"
MOST_LISTED = 2**16
"""Inputs of whole numbers up to which all of them are gone through, in a random order."""


def range_of(leaf: Any) -> range | None:
    """The range that an input is drawn from, by an example of it, with 0; None if it is real."""
    dtype = np.dtype(getattr(leaf, "dtype", type(leaf) if isinstance(leaf, int) else float))
    if dtype.kind == "b":
        return range(2)
    if dtype.kind not in "iu":
        return None
    values = None if type(leaf).__name__ == "ShapeDtypeStruct" else np.asarray(leaf)
    low, high = (0, 0) if values is None or not values.size else (values.min(), values.max())
    if low >= 0 and high < 1:
        raise ArgumentError(
            "an input of integers is drawn from 0 to the largest entry of its example, and this "
            "one has no entry above 0: give an example that contains the largest integer, such as "
            "the last token of the vocabulary"
        )
    return range(min(0, int(low)), max(0, int(high)) + 1)


class WholeInputs:
    """The inputs of whole numbers of a seed, one after another.

    Few enough are listed in a random order, again and again, so that all of them come up; of more
    each is drawn by itself.

    Attributes:
        possible: how many there are.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], ranges: Sequence[range]) -> None:
        self._shapes, self._ranges = list(shapes), list(ranges)
        entries = [(r, math.prod(s)) for s, r in zip(shapes, ranges, strict=True)]
        self._radices = [len(r) for r, size in entries for _ in range(size)]
        self.possible = math.prod(self._radices)

    def drawn(self, seed: int, numbers: Sequence[int]) -> list[np.ndarray]:
        """The inputs with these numbers, a leading axis for each leaf."""
        if self.possible <= MOST_LISTED:
            order = np.argsort(_words(f"{seed}|order", self.possible), kind="stable")
            places = order[np.asarray(numbers) % self.possible]
            rows = np.stack(np.unravel_index(places, self._radices), axis=1)
        else:
            words = [_words(f"{seed}|{number}", len(self._radices)) for number in numbers]
            rows = (np.stack(words) % np.array(self._radices, dtype=np.uint64)).astype(np.int64)
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])[:-1]
        return [
            part.reshape(len(rows), *shape) + values.start
            for part, shape, values in zip(
                np.split(rows, ends, axis=1), self._shapes, self._ranges, strict=True
            )
        ]


def _words(text: str, count: int) -> np.ndarray:
    digest = hashlib.shake_256(f"{_STREAM}|{text}".encode()).digest(8 * count)
    return np.frombuffer(digest, dtype="<u8")
