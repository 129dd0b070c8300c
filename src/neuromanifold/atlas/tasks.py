"""Tasks, one certificate each, how long they may take, and batches of tasks of similar cost."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from neuromanifold.architecture import Architecture, Readout
from neuromanifold.atlas.grid import Dropped, Grid
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
    """What a grid comes to before anything is computed.

    Attributes:
        architectures: how many architectures it covers.
        tasks: how many certificates.
        dropped: how many combinations were dropped, by reason.
        seconds: roughly how long the certificates take, one after the other.
    """

    architectures: int
    tasks: int
    dropped: dict[Dropped, int]
    seconds: float


def tasks_of(grid: Grid) -> Iterator[Task]:
    """All tasks of a grid, those of one architecture together."""
    primes = largest_primes(grid.primes)
    for architecture in grid.architectures():
        yield from _tasks(grid, architecture, primes)


def _tasks(grid: Grid, architecture: Architecture, primes: list[int]) -> Iterator[Task]:
    for readout in grid.readouts:
        for prime in primes:
            for seed in range(grid.seeds):
                yield Task(architecture, readout, seed, prime)


def survey(grid: Grid) -> Survey:
    """Count the tasks of a grid; a grid without any architecture is refused."""
    dropped: Counter[Dropped] = Counter()
    architectures, seconds = 0, 0.0
    each = len(grid.readouts) * grid.seeds * grid.primes
    for judged in grid.examine():
        if isinstance(judged, Architecture):
            architectures += 1
            seconds += each * expected_seconds(judged)
        else:
            dropped[judged] += 1
    if not architectures:
        reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        raise ArgumentError(
            f"the grid {grid.name} contains no architecture: of its {grid.combinations} "
            f"combinations {reasons or 'none was looked at'}; widen its values or its filter"
        )
    return Survey(architectures, architectures * each, dict(dropped), seconds)


def expected_seconds(architecture: Architecture) -> float:
    """Roughly how long one certificate takes on one core.

    Tracing the network grows with its layers, with softmax several times as much; evaluating N ≈
    parameters rows of length N, and their rank, grow as N² and N³. The constants were measured on
    one machine; only the order of magnitude matters.
    """
    N = architecture.parameters
    tracing = 0.02 * architecture.depth * (4 if architecture.attention == "softmax" else 1)
    evaluating = 4e-7 * N**2 * (1 + architecture.tokens / 4) * architecture.depth
    return 0.01 + tracing + evaluating + 2e-10 * N**3


def batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Cut a stream of tasks into batches of similar cost.

    Tasks are collected in one open batch for every power of two of their cost, so that what is held
    does not grow with the number of tasks. A batch is closed when it is worth `BATCH_SECONDS`.
    """
    open_batches: dict[int, list[Task]] = {}
    for task in tasks:
        seconds = expected_seconds(task.architecture)
        cost = math.ceil(math.log2(seconds))
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
