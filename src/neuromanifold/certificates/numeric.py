"""Ranks in floating point: the rank of the Jacobian with its spectral gap, proved by nothing.

Why the rows are made of length one. A deep lightning network is homogeneous of degree 3^l in its
input, so the Jacobian's rows at normal inputs differ by many orders of magnitude, and the large
ones bury the small ones: the rank by the usual tolerance comes out far too small, even with a clear
gap in the wrong place. Scaling a row changes no rank. With rows of length one the entries of a row
have errors of a few units of rounding relative to one, and what is zero in exact arithmetic is seen
at about the unit of rounding times σ_1.

When a rank is called `numerical`. Let ε be the unit of rounding. A singular value counts as zero up
to τ = 100 ε σ_1, above the noise just described, and as non-zero from ε^(1/3) σ_1 on. If there is
none between, the rank is the number of the larger ones, with a gap σ_r/σ_{r+1} of at least 2·10^8
in float64 and 400 in float32; otherwise the answer is `undecided`. So wide a band is needed: a
layer cubes the ratios of the singular values of its tokens, so that later layers soon see a matrix
of rank one to within rounding, and true singular values lie far below ε. Lightning networks with
five layers of width 2 show a wrong number of singular values above τ at most weights, and at half
of those with a gap of more than 10^3. The band is experience and no proof: its upper end was chosen
on the spectra of 1,232 deep lightning networks of widths 2 and 3, as the first of a few powers of ε
that let none of their wrong counts through, and on nothing else. `certify` proves ranks.

What is lost before there is a spectrum. Inputs are scaled first (`input_scale`); those of a
piecewise function have several sizes, as in certificates (cells). A row that is zero or subnormal
all the same stands for an output whose derivatives were lost, unless pieces are constant, and
softmax that is saturated at most tokens for scores that were: then the answer is `undecided`
whatever the spectrum. So it is where the function does not move as the rows say (`confirmed_rows`),
and where the rank is another with one input less than were asked for, or at as many other inputs of
a piecewise function, alone or with the first ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Shaped

from neuromanifold.algebra.cells.piecewise import Piecewise
from neuromanifold.algebra.cells.points import SIZES
from neuromanifold.algebra.cells.whole import range_of
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.cells import pieces
from neuromanifold.certificates.confirmed_rows import confirmed_rows
from neuromanifold.certificates.input_scale import is_saturated, scaled_inputs
from neuromanifold.certificates.jacobian import SPARE_ROWS
from neuromanifold.certificates.spectrum import Matrix, clear_rank, read_off, unit_rows
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError, NeuromanifoldError
from neuromanifold.networks.family import Tensors
from neuromanifold.networks.network import Network
from neuromanifold.networks.weights import Weights, generator_of
from neuromanifold.symmetry.families import network

LARGEST_JACOBIAN = 2**27
"""The most entries of a Jacobian: one gigabyte in float64."""

NumericVerdict = Literal["numerical", "undecided"]


@dataclass(frozen=True, slots=True)
class Estimate(Recorded, Displayed):
    """A rank in floating point, with the singular values it was read off.

    Attributes:
        subject: the name of the network, with its readout.
        rank: the estimated dimension, or None when undecided.
        verdict: `numerical`, or `undecided` when the spectrum has no clear gap or `lost` says why.
        singular_values: of the Jacobian with rows of length one, decreasing; for decisions the
            constant is one more column, and the dimension one less than the number that counts.
        tolerance: what singular values must exceed to count.
        gap: σ_r/σ_{r+1} at the tolerance; None when it is infinite or nothing is above it.
        inputs: the number of normal inputs.
        seed: of the inputs, and of the weights when none were given.
        at_given_weights: whether the weights were given.
        dtype: the floating-point numbers used.
        lost: what floating point lost before there was a spectrum; None when that is nothing.
    """

    _json = "rank gap verdict"

    subject: str
    rank: int | None
    verdict: NumericVerdict
    singular_values: tuple[float, ...]
    tolerance: float
    gap: float | None
    inputs: int
    seed: int
    at_given_weights: bool
    dtype: str
    lost: str | None = None

    def __str__(self) -> str:
        where = " at the given weights" if self.at_given_weights else ""
        how = f"{self.dtype}, {self.inputs} inputs, seed {self.seed}"
        if self.rank is None:
            above = sum(value > self.tolerance for value in self.singular_values)
            why = self.lost or f"{above} singular values are above the noise, but not clearly"
            return f"{self.subject}: undecided{where}; {why} ({how}): certify it."
        gap = "no smaller singular value" if self.gap is None else f"gap {self.gap:.1e}"
        return f"{self.subject}: the dimension{where} is {self.rank} (numerical; {gap}; {how})."


def estimate(
    subject: Network | Architecture,
    *,
    weights: Any = None,
    seed: int = 0,
    inputs: int | None = None,
    readout: Readout = "logits",
    dtype: type[np.floating] = np.float64,
) -> Estimate:
    """Estimate the dimension by a rank in floating point, at random or at given weights.

    The module's docstring has the rule, and why the rows are scaled. It is no proof (field-rank).

    Args:
        subject: the network, or an architecture.
        weights: take the rank here, the local dimension; by default at random weights of the seed,
            which are normal and scaled so that tokens keep their size.
        seed: of the inputs and of those weights.
        inputs: the number of normal inputs, each of which gives all its outputs as rows; by default
            the upper bound of the dimension and 8 more, enough even if one row of each counted.
        readout: what is looked at of an architecture's output (readouts).
        dtype: float64, or float32 to see what that does.

    >>> print(estimate(Architecture(widths=(4, 2, 3), ranks=(2, 2), tokens=3)).rank)
    24
    """
    net = network(subject, readout=readout)
    count = _enough_inputs(net) if inputs is None else inputs
    at = net.draw(seed) if weights is None else net.values(weights)
    J, X = _jacobian(net, at, seed, count, dtype, scaled=True)
    unit = unit_rows(J)
    sigma = np.linalg.svd(unit, compute_uv=False) if J.size else np.zeros(0, dtype)
    rank, tolerance, gap, clear = read_off(sigma)
    lost = _lost(J, net, at, X) or _buried(unit, net, at, X, tolerance, seed)
    if clear and lost is None and net.architecture is None:
        lost = _unconfirmed(J, net, at, X, rank, seed)
    if clear and lost is None:
        lost = _unsettled(J, net, at, X, rank, seed)
    clear = clear and lost is None
    return Estimate(
        subject=net.name if net.readout == "logits" else f"{net.name}, {net.readout}",
        rank=max(0, rank - len(net.constants)) if clear else None,
        verdict="numerical" if clear else "undecided",
        singular_values=tuple(map(float, sigma)),
        tolerance=tolerance,
        gap=gap,
        inputs=count,
        seed=seed,
        at_given_weights=weights is not None,
        dtype=np.dtype(dtype).name,
        lost=lost,
    )


def numeric_jacobian(
    net: Network,
    weights: Tensors,
    *,
    seed: int = 0,
    inputs: int | None = None,
    dtype: type[np.floating] = np.float64,
    scaled: bool = False,
) -> Matrix:
    """The Jacobian at normal inputs, as it is: a row for each output number of each input.

    Columns are the weights in the network's order. The arguments are those of `estimate`; with
    `scaled` so are the inputs, each of the size at which the network shows most.
    """
    count = _enough_inputs(net) if inputs is None else inputs
    return _jacobian(net, weights, seed, count, dtype, scaled=scaled)[0]


def _jacobian(
    net: Network,
    weights: Tensors,
    seed: int,
    count: int,
    dtype: type[np.floating],
    *,
    scaled: bool,
    stream: int = 1,
) -> tuple[Matrix, Any]:
    """The Jacobian, and the inputs at which it was taken."""
    _check(net, count, dtype)
    X = _inputs(net, weights, count, generator_of(seed, stream), scaled=scaled)
    X = jax.tree.map(partial(_in_type, dtype=dtype), X)
    J = jacobian_at(net, weights, X, dtype)
    if not np.isfinite(J).all():
        raise ArgumentError(
            f"the Jacobian leaves the range of {J.dtype.name}; scale the weights, take float64, or "
            "certify the dimension, which knows no overflow"
        )
    return J, X


def jacobian_at(
    net: Network, weights: Tensors, X: Any, dtype: type[np.floating] = np.float64
) -> Matrix:
    """The Jacobian at inputs with a leading axis, in their floating-point numbers."""
    at = jax.tree.map(partial(np.asarray, dtype=dtype), net.assemble(net.flatten(weights)))
    with jax.enable_x64(True):
        outputs = jax.tree.leaves(
            _batched_jacobian(net.apply, at, X), is_leaf=lambda node: _is_of_weights(node, at)
        )
    return np.concatenate(
        [
            np.concatenate(
                [
                    np.asarray(part[tensor.name]).reshape(-1, prod(tensor.shape))
                    for tensor in net.tensors
                ],
                axis=1,
            )
            for part in outputs
        ]
    )


def _in_type(x: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
    """Real numbers in another type; whole numbers stay what they are."""
    return x.astype(dtype) if x.dtype.kind == "f" else x


def _is_of_weights(node: Any, weights: dict[str, Any]) -> bool:
    """Whether part of an output's Jacobian is that of one array: a dictionary like the weights."""
    return isinstance(node, dict) and node.keys() == weights.keys()


@partial(jax.jit, static_argnums=0)
def _batched_jacobian(f: Callable[[Any, Any], Any], weights: Any, X: Any) -> Any:
    return jax.vmap(jax.jacrev(f), in_axes=(None, 0))(weights, X)


def _enough_inputs(net: Network) -> int:
    """As many as the exact path takes with one row each (field-rank), of each size."""
    upper = net.parameters if net.bound is None else net.bound.value
    return len(_sizes(net)) * (upper + len(net.constants) + SPARE_ROWS)


def _sizes(net: Network) -> tuple[float, ...]:
    """The sizes of inputs, in turn: those of certificates where real numbers decide branches."""
    found = _pieces(net)
    return SIZES if found is not None and found.has_cells else SIZES[:1]


def _pieces(net: Network) -> Piecewise | None:
    """The network as a piecewise function; None also where certificates cannot read it."""
    try:
        return pieces(net.bare)
    except NeuromanifoldError:
        return None


def _inputs(
    net: Network, weights: Tensors, count: int, generator: np.random.Generator, *, scaled: bool
) -> Any:
    """Normal inputs of the sizes in turn, or whole numbers as their examples have them.

    With `scaled` those of an attention network in the sizes that show most.
    """
    sizes = np.resize(_sizes(net), count)

    def draw(leaf: Any) -> Shaped[np.ndarray, "..."]:
        shape, values = (count, *np.shape(leaf)), range_of(leaf)
        if values is None:
            return generator.standard_normal(shape) * sizes.reshape(-1, *[1] * (len(shape) - 1))
        return generator.integers(values.start, values.stop, shape)

    X = jax.tree.map(draw, net.sample)
    own = _attention_weights(net, weights)
    return scaled_inputs(own, X) if scaled and own is not None else X


def _attention_weights(net: Network, weights: Tensors) -> Weights | None:
    """The weights of an attention network in float64; None for other networks."""
    if net.architecture is None:
        return None
    values = {name: np.asarray(T, dtype=np.float64) for name, T in weights.items()}
    return Weights.from_named(net.architecture, values)


def _lost(J: Matrix, net: Network, weights: Tensors, X: Any) -> str | None:
    """What floating point lost before there is a spectrum, in words."""
    largest = np.max(np.abs(J), axis=1, initial=0) if J.size else np.ones(0)
    numbers = np.finfo(J.dtype)
    small = largest < numbers.tiny / numbers.eps
    if _pieces(net) is not None and largest.any():  # there the function may be constant
        small &= largest > 0
    vanished = int(np.sum(small))
    if vanished:
        return f"{vanished} of {len(J)} rows of the Jacobian are zero or lost to underflow"
    own = _attention_weights(net, weights)
    if own is not None and is_saturated(own, X):
        return "softmax is saturated at most tokens, so that scores are hidden in rounding"
    return None


def _buried(
    unit: Matrix, net: Network, weights: Tensors, X: Any, tolerance: float, seed: int
) -> str | None:
    """Columns that are no rounding, and yet as small beside the others; in words.

    Weights that differ by 10^-11 have the same column to about that, and other rounding.
    """
    lengths = np.linalg.norm(unit, axis=0)
    small = (lengths > 0) & (lengths <= tolerance)
    if not small.any():
        return None
    generator = generator_of(seed, 2)
    near = {
        name: np.asarray(w * (1 + 1e-11 * generator.standard_normal(w.shape)))
        for name, w in weights.items()
    }
    again = unit_rows(jacobian_at(net, near, X))
    moved = np.linalg.norm(again[:, small] - unit[:, small], axis=0)
    count = int(np.sum(moved < lengths[small] / 2))
    said = "columns of the Jacobian are as small as rounding beside the others, but no rounding"
    return f"{count} {said}" if count else None


def _unconfirmed(
    J: Matrix, net: Network, weights: Tensors, X: Any, rank: int, seed: int
) -> str | None:
    """That rows which the function does not confirm decide the rank, in words."""
    good = confirmed_rows(net, weights, X, J, seed)
    if good.all():
        return None
    if clear_rank(J[good]) == rank and J[~good].any(axis=1).all():
        return None
    return (
        f"the function does not move as {int(np.sum(~good))} of {len(J)} rows of the Jacobian say "
        "(a derivative of its own, numbers of less precision, or mere rounding)"
    )


def _unsettled(
    J: Matrix, net: Network, weights: Tensors, X: Any, rank: int, seed: int
) -> str | None:
    """That the rank is another at one input less or, of a piecewise function, at others; in words.

    Where one input more adds nothing, no further ones do. But those of a rare cell may be missed.
    """
    if rank == net.columns:
        return None
    leaves, structure = jax.tree.flatten(X)
    count = len(leaves[0])
    seen: list[Matrix] = []
    if count < _enough_inputs(net):
        less = jax.tree.unflatten(structure, [leaf[:-1] for leaf in leaves])
        seen.append(jacobian_at(net, weights, less, J.dtype.type) if count > 1 else J[:0])
    if _pieces(net) is not None:
        other, _ = _jacobian(net, weights, seed, count, J.dtype.type, scaled=True, stream=3)
        seen += [other, np.concatenate([J, other])]
    if all(clear_rank(rows) == rank for rows in seen):
        return None
    return f"{count} inputs show {rank} dimensions, and fewer or others another number"


def _check(net: Network, inputs: int, dtype: type[np.floating]) -> None:
    if dtype not in (np.float32, np.float64, "float32", "float64"):
        raise ArgumentError(
            f"dtype must be float32 or float64; got {getattr(dtype, '__name__', dtype)}"
        )
    if not isinstance(inputs, int | np.integer) or inputs < 1:
        raise ArgumentError(f"inputs must be at least 1; got {inputs!r}")
    rows = inputs * sum(prod(leaf.shape) for leaf in jax.tree.leaves(net.output))
    if rows * net.columns > LARGEST_JACOBIAN:
        raise ArgumentError(
            f"a Jacobian of {rows} × {net.columns} numbers is too large for an estimate; give "
            "fewer inputs, or certify the dimension, which is exact and takes less memory"
        )
