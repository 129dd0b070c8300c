"""What a computation costs, told from sizes alone before anything is allocated.

An estimate is a *model*: its terms are the arrays that an algorithm holds and the products it
forms, its constants were measured on one core (`benchmarks/costs.py`). It is good to about a factor
of three, which is enough to tell what fits into a machine from what does not. Pure Python, so that
a command can refuse before it loads an array library.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError

_FLOAT = 8
"""Bytes of a number."""
_BATCH = 512
"""The most inputs that are evaluated at a time."""
_PROGRAM = 200 * 2**20
"""Bytes that the array libraries take, however small the question."""


class TooLargeError(ArgumentError):
    """What was asked for costs more than is allowed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Memory and time that something takes, or that are allowed.

    Attributes:
        bytes: the most that is held at a time.
        seconds: roughly how long it takes on one core.
    """

    bytes: float
    seconds: float

    def __add__(self, other: "Cost") -> "Cost":
        """One after the other: the memory of the larger one, the time of both."""
        return Cost(max(self.bytes, other.bytes), self.seconds + other.seconds)

    def __rmul__(self, times: int) -> "Cost":
        """So many times, one after the other."""
        return Cost(self.bytes, times * self.seconds)

    def __str__(self) -> str:
        seconds = max(self.seconds, 0.1)  # an estimate is never that nothing is to be done
        return f"about {memory_text(self.bytes)} of memory and {duration_text(seconds)}"

    def check(self, allowed: "Cost", doing: str) -> None:
        """Refuse what costs more, with the estimate and the option that lifts the limit."""
        if self.bytes > allowed.bytes:
            most, remedy = memory_text(allowed.bytes), "a higher --max-memory"
        elif self.seconds > allowed.seconds:
            most, remedy = duration_text(allowed.seconds), "a longer --max-time"
        else:
            return
        raise TooLargeError(
            f"{doing} would take {self}, and {most} are allowed: give smaller sizes, or {remedy}"
        )


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes on which costs depend.

    Attributes:
        parameters: N, the columns of the Jacobian.
        depth: how many layers are traced.
        activations: the numbers that one input passes through.
        exponentials: how many exponentials one input needs.
        outputs: the numbers that come out for one input.
        largest: the longest side of a matrix of weights.
        unknowns: the sides of all matrices squared, and their entries: what discovery solves for.
        kernel: kernel directions that changes of basis span, whose columns are left out of a rank.
        mixings: pairs of heads of a layer, if heads can mix: unknowns of their own in each layer.
    """

    parameters: int
    depth: int
    activations: int
    exponentials: int
    outputs: int
    largest: int
    unknowns: int
    kernel: int = 0
    mixings: int = 0


def sizes_of(architecture: Architecture) -> Sizes:
    """The sizes of a network."""
    t, H = architecture.tokens, architecture.heads
    layers = architecture.shapes
    matrices = [shape[1:] for layer in layers for shape in layer.values()]
    inner = [layer[name][1:] for layer in layers for name in ("query", "output") if name in layer]
    changes = H * sum(min(m, n) ** 2 for m, n in inner)
    changes += sum(d * d for d in architecture.free_widths)
    return Sizes(
        parameters=architecture.parameters,
        depth=architecture.depth,
        activations=architecture.scores + sum(H * (m + n) * t for m, n in matrices),
        exponentials=architecture.exponentials,
        outputs=architecture.widths[-1] * t,
        largest=max(*architecture.widths, *architecture.ranks),
        unknowns=H * sum(m * m + n * n + m * n for m, n in matrices),
        kernel=min(changes, 2 * architecture.parameters // 3),
        mixings=0 if H == 1 or not architecture.is_linear_in_scores else H * H,
    )


def function_sizes(parameters: int, inputs: int, outputs: int, unknowns: int) -> Sizes:
    """The sizes of a user's function, as far as its arguments tell them."""
    activations = parameters + inputs + outputs
    return Sizes(parameters, 1, activations, 0, outputs, max(inputs, outputs), unknowns)


def holding(sizes: Sizes, copies: int = 4) -> Cost:
    """Drawing, reading or writing weights."""
    return _cost(copies * sizes.parameters, 3e-8 * copies * sizes.parameters)


def certifying(sizes: Sizes, inputs: int | None = None) -> Cost:
    """A rank over a prime field with its upper bound, and the independence of the exponentials.

    The echelon form has at most n = N − kernel rows and columns; it is held twice while it grows.
    Rows of N columns are evaluated `_BATCH` at a time. The tangent vectors of one family after the
    other are held with their own echelon form, each in the columns of a layer or two. With E
    exponentials their exponents fill a square of side E, of which an elimination holds several
    copies; the mixings of heads fill one too, layer by layer.
    """
    N, E, M = sizes.parameters, sizes.exponentials, sizes.mixings
    n, layer = N - sizes.kernel, N / sizes.depth
    rows = n + 8 if inputs is None else inputs
    batch = min(rows, _BATCH)
    held = min(rows, n) * n + batch * (4 * N + 4 * sizes.activations) + 10 * E * E
    tracing = 0.05 + 0.05 * sizes.depth * (2 if E else 1)
    evaluating = 1e-8 * rows * (N + sizes.activations)
    elimination = 6e-11 * min(rows, n) ** 2 * float(n) + 1e-10 * float(E) ** 3
    symmetries = 6e-11 * sizes.kernel * layer * layer + 1e-8 * sizes.depth * M * (M + layer)
    held += sizes.kernel * layer + 2 * M * (M + layer)
    return _cost(held, tracing + evaluating + elimination + symmetries)


def discovering(sizes: Sizes) -> Cost:
    """A square of equations for all unknowns, its null space, and a certificate."""
    U = float(sizes.unknowns)
    return certifying(sizes) + _cost(
        4 * U * U, 0.1 * sizes.depth + 2e-8 * U * (sizes.parameters + U) + 1.5e-10 * U**3
    )


def sensing(sizes: Sizes, inputs: int) -> Cost:
    """The singular values of every tensor's columns of the Jacobian at all inputs, twice.

    The reverse passes of all R outputs go through all inputs at once.
    """
    N = sizes.parameters
    R = inputs * sizes.outputs
    passes = float(R) * inputs * sizes.activations
    return _cost(4 * R * N + 2 * passes, 2.0 + 4e-9 * passes + 3e-10 * float(R) * N * min(R, N))


def verifying(sizes: Sizes, inputs: int | None = None) -> Cost:
    """The same by plain integers and python-flint, which hold a Python integer for a number."""
    N, E = sizes.parameters, sizes.exponentials
    rows = N + 8 if inputs is None else inputs
    proof = certifying(sizes, inputs)
    held = 12 * rows * N + 20 * E * E
    # A row costs what the network costs, with N derivatives beside every number. The exponents are
    # those of 2 E inputs, one Python integer after the other.
    naive = 1.2e-8 * rows * N * sizes.activations * sizes.largest
    naive += 2e-10 * rows * N * N + 4e-10 * float(E) ** 3
    naive += 2e-3 * sizes.depth * rows + 2 * E * (2e-3 * sizes.depth + 5e-6 * E)
    naive += 2e-9 * (sizes.kernel + sizes.depth * sizes.mixings) * float(N) * N
    return proof + _cost(held, naive)


def estimating(sizes: Sizes, inputs: int | None = None) -> Cost:
    """The singular values of a Jacobian in which every input gives all its outputs as rows."""
    N = sizes.parameters
    rows = (N + 8 if inputs is None else inputs) * sizes.outputs
    return _cost(3 * rows * N, 1.0 + 1.5e-10 * rows * N * min(rows, N))


def transforming(sizes: Sizes) -> Cost:
    """Comparing, moving or normalising weights: a few factorisations of every matrix."""
    return _cost(
        20 * sizes.parameters + 64 * sizes.activations,
        2.0 + 1e-9 * sizes.parameters * sizes.largest + 1e-7 * sizes.activations,
    )


def classifying(sizes: Sizes) -> Cost:
    """Ranks of the differentials of one layer, whose values are cubic forms in the input."""
    d = float(sizes.largest)
    return _cost(4 * d**6, 0.1 + 1e-9 * d**8)


def recovering(sizes: Sizes) -> Cost:
    """Weights from a function: least squares in the entries of its tables of coefficients."""
    d = sizes.largest
    return _cost(4 * float(d) ** 4 + 64 * sizes.activations, 1.0 + 1e-8 * float(d) ** 6)


def counting(monomials: int) -> Cost:
    """The points of a fiber: eliminations over two primes in the space of so many monomials."""
    return _cost(6 * float(monomials) ** 2, 5.0 + 4e-10 * float(monomials) ** 3)


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """The sizes of a real model.

    Attributes:
        layers: how many layers it has.
        layer: the numbers in one of them.
        outside: the numbers outside all layers.
        width: the width of the stream.
    """

    layers: int
    layer: int
    outside: int
    width: int


def looking(*models: ModelSizes) -> Cost:
    """Factorisations of every matrix of a model, one layer in memory in float64 at a time."""
    layer, outside = (sum(getattr(m, name) for m in models) for name in ("layer", "outside"))
    work = sum(m.width * float(m.layers * m.layer + m.outside) for m in models)
    return _cost(6 * layer + 3 * outside, 0.5 + 3e-10 * work)


def factoring(stored: int) -> Cost:
    """Small factorisations of all the pairs of matrices in files of so many bytes."""
    return _cost(stored, 1.0 + 1e-7 * stored)


def _cost(numbers: float, seconds: float) -> Cost:
    return Cost(_PROGRAM + _FLOAT * numbers, seconds)


def usual_limits() -> Cost:
    """What is allowed where nobody says: half of the free memory, and an hour."""
    return Cost(free_memory() / 2, 3600.0)


def free_memory() -> int:
    """The memory that could be had now: what the system says, or less where a group has a limit."""
    found = [_meminfo()]
    group = Path("/sys/fs/cgroup")
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            limit, taken = int((group / most).read_text()), int((group / used).read_text())
        except (OSError, ValueError):
            continue
        found.append(max(0, limit - taken))
    return min(found)


def _meminfo() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_UNITS = ((2**40, "TB"), (2**30, "GB"), (2**20, "MB"))


def memory_text(amount: float) -> str:
    """An amount of memory in the unit that suits it."""
    if amount >= 1000 * 2**40:
        return f"{amount / 2**40:.0e} TB".replace("e+0", "e").replace("e+", "e")
    unit, name = next(((u, n) for u, n in _UNITS if amount >= u), _UNITS[-1])
    return f"{amount / unit:.3g} {name}"


def duration_text(seconds: float) -> str:
    """A duration in the unit that suits it."""
    if seconds >= 1000 * 365 * 86400:
        return "more than a thousand years"
    for unit, size in (("years", 365 * 86400), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
