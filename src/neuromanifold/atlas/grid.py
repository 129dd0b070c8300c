"""Grids: which architectures a sweep covers, and how often each is certified."""

import hashlib
import json
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import accumulate, count
from math import prod
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Literal

from neuromanifold.architecture import READOUTS, Architecture, Readout
from neuromanifold.atlas.choices import (
    LARGEST_DEPTH,
    REPEATED,
    Choice,
    choice_of,
    entries,
    numbers,
)
from neuromanifold.atlas.expression import Condition, parse_condition
from neuromanifold.atlas.shipped import named_file
from neuromanifold.errors import ArchitectureError, ArgumentError, FileFormatError

_FIELDS = tuple(field.name for field in fields(Architecture))
NETWORK_NAMES = (*_FIELDS, "depth", "parameters")
"""The names that a condition can use about an architecture."""
_NEEDED = ("widths", "ranks", "tokens")
_TRIES, _TRIES_PER_SAMPLE = 50_000, 1000
"""A sample is given up after so many draws, and so many more for each architecture it found."""

_LARGEST_FILE = 2**20

Dropped = Literal["repeated", "no network", "filtered out", "too many parameters"]


@dataclass(frozen=True)
class Grid:
    """A sweep over architectures.

    Attributes:
        name: how the sweep is called.
        depths: the numbers of layers.
        fields: for each field of an architecture that is given, what it ranges over.
        readouts: what is looked at of every network.
        seeds: certify with the seeds 0, …, seeds − 1.
        primes: certify over so many primes, the largest below 2^23.
        where: keep only the architectures for which this holds.
        max_parameters: leave out larger networks.
        sample: take only so many architectures, at random.
        sample_seed: the seed of that choice.
        source: the plain data that the grid was read from.
    """

    name: str
    depths: tuple[int, ...]
    fields: tuple[tuple[str, Choice], ...]
    readouts: tuple[Readout, ...] = ("logits",)
    seeds: int = 1
    primes: int = 1
    where: Condition | None = None
    max_parameters: int | None = None
    sample: int | None = None
    sample_seed: int = 0
    source: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], name: str = "grid") -> "Grid":
        """The grid with this plain form, that of its TOML file."""
        _known("the grid", data, ("name", "about", "architecture", "tasks"))
        given, tasks = _table(data, "architecture"), _table(data, "tasks")
        _known("[architecture]", given, ("depth", *_FIELDS))
        missing = [field for field in _NEEDED if field not in given]
        if missing:
            raise ArgumentError(f"the grid's [architecture] lacks {missing[0]!r}; add it")
        choices = {field: choice_of(field, given[field]) for field in _FIELDS if field in given}
        _known("[tasks]", tasks, tuple(_TASKS))
        wanted = {field: _TASKS[field](field, value) for field, value in tasks.items()}
        return cls(
            name=str(data.get("name", name))[:100],
            depths=_depths(given.get("depth"), choices),
            fields=tuple(choices.items()),
            source=json.dumps({"architecture": given, "tasks": tasks}, sort_keys=True, default=str),
            **wanted,
        )

    @property
    def fingerprint(self) -> str:
        """A hash of what the grid covers, by which a store knows its sweeps."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def combinations(self) -> int:
        """How many combinations of values there are, before any is dropped: arithmetic."""
        return self._starts[-1]

    @cached_property
    def _counts(self) -> list[list[int]]:
        """For every depth how many values each field has."""
        return [
            [choice.count(_size(field, depth)) for field, choice in self.fields]
            for depth in self.depths
        ]

    @cached_property
    def _starts(self) -> list[int]:
        """The number of the first combination of every depth, and of all combinations."""
        return list(accumulate(map(prod, self._counts), initial=0))

    def candidate(self, index: int) -> dict[str, Any]:
        """The combination with this number, as fields of an architecture."""
        place = bisect_right(self._starts, index) - 1
        index -= self._starts[place]
        values = {}
        for (field, choice), many in zip(
            reversed(self.fields), reversed(self._counts[place]), strict=True
        ):
            index, digit = divmod(index, many)
            values[field] = choice.pick(digit, _size(field, self.depths[place]))
        return values

    def examine(self) -> Iterator[Architecture | Dropped]:
        """Every combination that the sweep looks at: an architecture, or why it is none of it."""
        if self.sample is None:
            yield from map(self._judge, range(self.combinations))
            return
        found = 0
        for draw, index in self._random_order():
            judged = self._judge(index)
            found += isinstance(judged, Architecture)
            yield judged
            if found == self.sample or draw > _TRIES + _TRIES_PER_SAMPLE * found:
                return

    def _random_order(self) -> Iterator[tuple[int, int]]:
        """Draws with the numbers of different combinations, each depth in turn.

        All depths get their share, though nearly all combinations have the largest. The stream of
        draws is ours: library generators change between versions, and the same grid must stay the
        same sweep. A draw of 256 bits makes the bias of the remainder negligible.
        """
        starts, drawn = self._starts, set[int]()
        for draw in count():
            if len(drawn) == starts[-1]:
                return
            first, end = starts[draw % len(self.depths) :][:2]
            if first == end:
                continue
            digest = hashlib.sha256(f"atlas sample {self.sample_seed} {draw}".encode()).digest()
            index = first + int.from_bytes(digest) % (end - first)
            if index not in drawn:
                drawn.add(index)
                yield draw, index

    def architectures(self) -> Iterator[Architecture]:
        """The architectures of the sweep, one at a time."""
        return (judged for judged in self.examine() if isinstance(judged, Architecture))

    def _judge(self, index: int) -> Architecture | Dropped:
        fields = self.candidate(index)
        if REPEATED in fields.values():
            return "repeated"
        try:
            architecture = Architecture(**fields)
        except ArchitectureError:
            return "no network"
        values = {name: getattr(architecture, name) for name in NETWORK_NAMES}
        if self.where is not None and not self.where.holds(values):
            return "filtered out"
        if self.max_parameters is not None and architecture.parameters > self.max_parameters:
            return "too many parameters"
        return architecture


def load_grid(path: str | Path) -> Grid:
    """Read a grid from a TOML file, or one of the package by its name."""
    path = named_file(path, "grids")
    if path.stat().st_size > _LARGEST_FILE:
        raise FileFormatError(f"{path} is larger than a grid can be; describe it by ranges")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # among the first, too many digits
        raise FileFormatError(f"{path} is not valid TOML: {error}") from None
    try:
        return Grid.from_dict(data, path.stem)
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None


def _size(field: str, depth: int) -> int:
    """How many numbers a list-valued field has; 0, which no list fits, for the others."""
    return {"widths": depth + 1, "ranks": depth, "value_ranks": depth}.get(field, 0)


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, Mapping):
        raise ArgumentError(f"{key} must be a table of fields; got {shortened(table)}")
    return table


def _known(where: str, data: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = [key for key in data if key not in known]
    if unknown:
        raise ArgumentError(
            f"unknown field {shortened(unknown[0])} in {where}; the fields are {', '.join(known)}"
        )


def _depths(given: object, choices: Mapping[str, Choice]) -> tuple[int, ...]:
    """The depths given, or those of the lists that are written out, or one layer."""
    lists = {size - (field == "widths") for field in choices for size in choices[field].list_sizes}
    depths = tuple(sorted(lists)) or (1,) if given is None else numbers("depth", given)
    # A range is not walked through: it is monotone.
    ends = (depths[0], depths[-1]) if isinstance(depths, range) else depths
    if min(ends) < 1:
        raise ArgumentError(f"depth must be at least 1; got {shortened(min(ends))}")
    if max(ends) > LARGEST_DEPTH:
        raise ArgumentError(f"depth must be at most {LARGEST_DEPTH}; got {shortened(max(ends))}")
    astray = sorted(lists - set(depths))
    if astray:
        raise ArgumentError(
            f"a list is written out for {astray[0]} layers, which is none of the depths "
            f"{list(depths)}; mend the list or the depth"
        )
    return tuple(depths)


def _where(field: str, value: object) -> Condition:
    if not isinstance(value, str):
        raise ArgumentError(f"{field} must be a condition as text; got {shortened(value)}")
    return parse_condition(value, NETWORK_NAMES)


def _readouts(field: str, value: object) -> tuple[Readout, ...]:
    listed = entries(value)
    if not listed or any(readout not in READOUTS for readout in listed):
        raise ArgumentError(
            f"{field} must be some of {', '.join(READOUTS)}; got {shortened(value)}"
        )
    return tuple(dict.fromkeys(listed))


def _whole(field: str, value: object, *, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(
            f"{field} must be a whole number of at least {least}; got {shortened(value)}"
        )
    if value > most:
        raise ArgumentError(f"{field} must be at most {most}; got a larger number")
    return value


_TASKS: dict[str, Callable[[str, object], Any]] = {
    "readouts": _readouts,
    "seeds": partial(_whole, least=1, most=10**9),
    "primes": partial(_whole, least=1, most=100),
    "where": _where,
    "max_parameters": partial(_whole, least=1, most=10**15),
    "sample": partial(_whole, least=1, most=10**9),
    "sample_seed": partial(_whole, least=0, most=10**15),
}
"""How each field of [tasks] is read."""
