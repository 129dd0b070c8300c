"""What a field of an architecture ranges over in a grid: ranges, lists, and sizes layer by layer.

A choice has a `count` and can be `pick`ed by its number, so that combinations are counted by
arithmetic, and a range stays the two numbers it was written as.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any, Literal, get_args

from neuromanifold.architecture import LARGEST_SIZE, Attention, Mask, Skip
from neuromanifold.errors import ArgumentError

_RANGE = re.compile(r"\s*(-?\d{1,13})\s*\.\.\s*(-?\d{1,13})(?:\s+step\s+(-?\d{1,13}))?\s*")

REPEATED = object()
"""Stands for a value that was given before."""

LARGEST_DEPTH = 1000
_ALTERNATIVES = 1000
"""The most alternatives of a field: each is compared with those before it."""

_WORDS = {"attention": Attention, "skip": Skip, "mask": Mask}
_LISTS = ("widths", "ranks", "value_ranks")
"""The fields with one size a layer."""
Layers = Literal["written", "equal", "each"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Values of a field.

    Attributes:
        values: the numbers or words; or lists, or sizes of which lists are made.
        layers: of a field with one size a layer, whether its lists are `written` out (None stands
            for no list), have an `equal` size in all layers, or `each` on its own.
    """

    values: Sequence[Any]
    layers: Layers | None = None

    def count(self, size: int) -> int:
        """How many values there are, for lists of this size."""
        if self.layers == "each":
            return len(self.values) ** size
        if self.layers == "written":
            return sum(sizes is None or len(sizes) == size for sizes in self.values)
        return len(self.values)

    def pick(self, index: int, size: int) -> Any:
        """The value with this number; of lists of each size, its digits to their base."""
        if self.layers != "each":
            value = self.values[index]
            return (value,) * size if self.layers == "equal" else value
        digits = []
        for _ in range(size):
            index, digit = divmod(index, len(self.values))
            digits.append(self.values[digit])
        return tuple(reversed(digits))

    def contains(self, value: Any) -> bool:
        """Whether this is one of the values."""
        if self.layers in (None, "written"):
            return value in self.values
        if not isinstance(value, tuple) or (self.layers == "equal" and len(set(value)) > 1):
            return False
        return all(size in self.values for size in value)


@dataclass(frozen=True, slots=True)
class Choice:
    """Several alternatives, one after the other."""

    alternatives: tuple[Alternative, ...]

    def count(self, size: int) -> int:
        """How many values there are for a list of this size."""
        return sum(alternative.count(size) for alternative in self.alternatives)

    def pick(self, index: int, size: int) -> Any:
        """The value with this number, or `REPEATED` if an earlier one is the same.

        Alternatives may overlap, as `[{each = "1..3"}, {equal = "1..3"}]` does.
        """
        for place, alternative in enumerate(self.alternatives):
            if index < alternative.count(size):
                value = alternative.pick(index, size)
                repeated = any(earlier.contains(value) for earlier in self.alternatives[:place])
                return REPEATED if repeated else value
            index -= alternative.count(size)
        raise IndexError(index)

    @property
    def list_sizes(self) -> set[int]:
        """The sizes of the lists that are written out."""
        written = [one.values for one in self.alternatives if one.layers == "written"]
        return {len(sizes) for values in written for sizes in values if sizes is not None}


def numbers(field: str, value: object) -> Sequence[int]:
    """The whole numbers that `3`, `[1, 2, 4]`, `"1..4"` or `"1..9 step 2"` stands for."""
    if isinstance(value, str):
        return _range(field, value)
    wanted = "a whole number, a list of them, or a range like '1..4'"
    return _values(field, value, lambda number: type(number) is int, wanted)


def _values(field: str, value: object, fits: Callable[[Any], bool], wanted: str) -> tuple[Any, ...]:
    """The different entries of a list, or the one value, if all of them fit."""
    found = entries(value)
    if not found:
        raise ArgumentError(f"{field} = {shortened(value)} is empty; give it at least one value")
    for one in found:
        if not fits(one):
            raise ArgumentError(f"{field} must be {wanted}; got {shortened(one)}")
        if not isinstance(one, str) and abs(one) > LARGEST_SIZE:
            raise ArgumentError(f"{field} must be at most {LARGEST_SIZE}; got a larger number")
    return tuple(dict.fromkeys(found))


def _range(field: str, text: str) -> range:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ArgumentError(
            f"{field} must be a whole number, a list of them, or a range like '1..4' or "
            f"'1..9 step 2'; got {shortened(text)}"
        )
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if step < 1:
        raise ArgumentError(f"the step of {field} must be at least 1; got {text!r}")
    found = range(first, last + 1, step)
    if not found:
        raise ArgumentError(f"{field} = {text!r} is empty; give it at least one value")
    return found


def choice_of(field: str, value: object) -> Choice:
    """What a field of an architecture ranges over."""
    if field in _LISTS:
        return _layer_choice(field, value)
    if field in _WORDS:
        known = get_args(_WORDS[field])
        found = _values(field, value, lambda word: word in known, f"some of {', '.join(known)}")
    elif field == "temperature":
        wanted = "a number or a list of them"
        found = _values(field, value, lambda number: type(number) in (int, float), wanted)
    else:
        found = numbers(field, value)
    return Choice((Alternative(found),))


def _layer_choice(field: str, value: object) -> Choice:
    """The choice of a field with one size a layer.

    A flat list is one list of sizes. Otherwise each alternative is a list of sizes, the word
    "none" for no list, or a table: `{each = "1..3"}` for all combinations, `{equal = "1..3"}` for
    the same size in all layers.
    """
    items = entries(value)
    flat = bool(items) and all(isinstance(item, int) for item in items)
    alternatives = [value] if flat else items
    if not alternatives:
        raise ArgumentError(f"{field} = {value!r} is empty; give it at least one value")
    if len(alternatives) > _ALTERNATIVES:
        raise ArgumentError(
            f"{field} has {len(alternatives)} alternatives, more than {_ALTERNATIVES}; describe "
            "them by ranges, or make several grids"
        )
    return Choice(tuple(_layer_alternative(field, alternative) for alternative in alternatives))


def _layer_alternative(field: str, value: object) -> Alternative:
    if value == "none" and field == "value_ranks":
        return Alternative((None,), "written")
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [numbers(field, item) for item in value]
        if sum(map(len, parts)) > LARGEST_DEPTH + 1:
            raise ArgumentError(
                f"a list of {field} has more than {LARGEST_DEPTH + 1} sizes; give a shorter one"
            )
        return Alternative((tuple(size for part in parts for size in part),), "written")
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("each", "equal"):
        ((kind, sizes),) = value.items()
        return Alternative(numbers(f"{field}.{kind}", sizes), kind)
    raise ArgumentError(
        f"{field} has one size a layer: give a list like [3, 3, 3], a list of such lists, "
        f"{{ each = '1..3' }} for all combinations or {{ equal = '1..3' }} for the same size in "
        f"all layers; got {shortened(value)}"
    )


def entries(value: object) -> Sequence[Any]:
    """The entries of a list, or the one value itself."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    return [value]
