"""Tasks, one certificate each, how long they may take, and batches of tasks of similar cost."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from neuromanifold.architecture import Architecture, Readout
from neuromanifold.atlas.grid import Dropped, Grid
from neuromanifold.cost import Cost, certifying, sizes_of
from neuromanifold.errors import ArgumentError

BATCH_SECONDS = 1.0
"""A batch is meant to take so long: far above the few milliseconds that sending one costs, and
little enough to lose with a killed worker."""

BATCH_TASKS = 32


@dataclass(frozen=True, slots=True)
class Task:
    """One certificate to be made.

    Attributes:
        architecture: the network.
        readout: what is looked at of its output.
        seed: of the random point.
        prime: the prime of the field.
    """

    architecture: Architecture
    readout: Readout
    seed: int
    prime: int


@dataclass(frozen=True, slots=True)
class Survey:
    """A grid walked through, once, before anything is computed.

    Attributes:
        grid: the grid.
        networks: the architectures it covers.
        dropped: how many combinations were dropped, by reason.
        cost: memory of the largest certificate, and roughly the time of all, one after the other.
    """

    grid: Grid
    networks: tuple[Architecture, ...]
    dropped: dict[Dropped, int]
    cost: Cost

    @property
    def architectures(self) -> int:
        """How many architectures there are."""
        return len(self.networks)

    @property
    def tasks(self) -> int:
        """How many certificates."""
        return self.architectures * tasks_each(self.grid)

    def __iter__(self) -> Iterator[Task]:
        """All tasks, those of one architecture together."""
        primes = largest_primes(self.grid.primes)
        for network in self.networks:
            for readout in self.grid.readouts:
                for prime in primes:
                    for seed in range(self.grid.seeds):
                        yield Task(network, readout, seed, prime)


def tasks_each(grid: Grid) -> int:
    """How many tasks an architecture has."""
    return len(grid.readouts) * grid.seeds * grid.primes


def survey(grid: Grid) -> Survey:
    """Walk through a grid; one without any architecture is refused."""
    dropped: Counter[Dropped] = Counter()
    architectures: list[Architecture] = []
    cost = Cost(0, 0)
    for judged in grid.examine():
        if isinstance(judged, Architecture):
            architectures.append(judged)
            cost += certifying(sizes_of(judged))
        else:
            dropped[judged] += 1
    if not architectures:
        reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        raise ArgumentError(
            f"the grid {grid.name} contains no architecture: of its "
            f"{count_text(grid.combinations)} combinations {reasons or 'none was looked at'}; "
            "widen its values or its filter"
        )
    return Survey(grid, tuple(architectures), dict(dropped), tasks_each(grid) * cost)


def count_text(count: int) -> str:
    """A count as it can be read: digits, or the power of ten below it."""
    if count < 10**12:
        return str(count)
    return f"more than 10^{math.floor(count.bit_length() * math.log10(2)) - 1}"


def batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Cut a stream of tasks into batches of similar cost.

    Tasks are collected in one open batch for every power of two of their cost, so that what is held
    does not grow with the number of tasks. A batch is closed when it is worth `BATCH_SECONDS`.
    """
    open_batches: dict[int, list[Task]] = {}
    for task in tasks:
        cost = math.ceil(math.log2(certifying(sizes_of(task.architecture)).seconds))
        batch = open_batches.setdefault(cost, [])
        batch.append(task)
        if len(batch) * 2.0**cost >= BATCH_SECONDS or len(batch) >= BATCH_TASKS:
            yield open_batches.pop(cost)
    # The costly ones first: the short ones then fill the gaps at the end.
    yield from (open_batches[cost] for cost in sorted(open_batches, reverse=True))


def largest_primes(count: int) -> list[int]:
    """The largest primes below 2^23, in falling order."""
    odd = range(2**23 - 1, 2**20, -2)
    return list(
        islice((n for n in odd if all(n % q for q in range(3, math.isqrt(n) + 1, 2))), count)
    )
