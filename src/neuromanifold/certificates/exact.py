"""Certificates: dimensions proved by ranks over a prime field (field-rank, softmax-exact).

The lower bound is the rank of the Jacobian mod p. The upper bound is the smaller of what the
symmetries prove, parameters less the rank of their tangent vectors, and what theory proves for the
network (virtual-bound and the like). When they meet, the dimension is proved.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, get_args

import jax
import numpy as np

from neuromanifold import __version__
from neuromanifold.algebra.balls import floats_taken
from neuromanifold.algebra.balls.arrays import PRECISION
from neuromanifold.algebra.modular import Obligation
from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.ball_rank import ball_rank
from neuromanifold.certificates.certificate import Certificate, Function, Reading
from neuromanifold.certificates.jacobian import (
    JacobianRank,
    Readings,
    jacobian_rank,
    settled_rank,
)
from neuromanifold.certificates.point import GivenWeights, Point, in_shown_cells
from neuromanifold.certificates.probable import Probable, probable
from neuromanifold.certificates.symmetry_bound import (
    FamilyRank,
    KnownKernel,
    known_kernel,
)
from neuromanifold.certificates.virtual_rank import at_weights
from neuromanifold.errors import ArgumentError, DiagramError, NotCoveredError
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import network
from neuromanifold.symmetry.one_parameter import Action

SMALLEST_PRIME = 2**20
"""Certificates take primes above this, so that an unlucky point is rare."""
MOST_INPUTS = 10**7
"""More would take days for a network of any size."""


def certify(
    subject: Network | Architecture,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    weights: Any = None,
    readout: Readout = "logits",
    inputs: int | None = None,
    reading: Reading = "residues",
) -> Certificate:
    """Prove bounds for the dimension of a network's functions, at generic or at given weights.

    Given weights are floats, that is dyadic rationals, and have exact residues: the rank found is a
    lower bound for the rank at these very weights, and the symmetries' tangent vectors there give
    the upper bound, with those of queries and keys behind a softmax layer that makes all tokens
    equal (softmax-fibers). (A rank can be smaller mod p than over the rationals when p divides all
    large minors; a second prime makes that all but impossible.)

    Args:
        subject: the network, or an architecture.
        seed: of the random point.
        prime: p, between 2^20 and 2^23.
        weights: take the rank here instead of at random weights.
        readout: what is looked at of an architecture's output (readouts).
        inputs: use exactly so many inputs; by default as many as the upper bound calls for.
        reading: `balls` proves the rank at given weights in ball arithmetic, for anything analytic
            and without obligations.
    """
    started = time.perf_counter()
    field = certificate_field(prime, inputs)
    if reading not in get_args(Reading):
        raise ArgumentError(f"a reading is one of {', '.join(get_args(Reading))}; got {reading!r}")
    net = at_weights(network(subject, readout=readout), weights)
    if reading == "balls":
        return certify_in_balls(net, weights, field, seed, inputs)
    given = None if weights is None else given_weights(net, weights)
    bare = net.bare

    def compute(point: Point) -> Certificate:
        kernel = known_kernel(net, net.assemble(point.weights), point.field, point.seed)
        upper, source = upper_bound(net, kernel.families)
        if inputs is None:
            found = settled_rank(bare, point, upper, kernel.checks, without=kernel.pivots)
        else:
            found = jacobian_rank(bare, point, upper, kernel.checks, inputs, without=kernel.pivots)
        check_kernel(net, found, kernel)
        point = replace(point, cells=found.readings.cells or None)
        shown = point.obligations(bare, found.batch)
        rank = max(0, found.rank - len(net.constants))
        if rank > upper and all(one.met for one in shown):
            raise _contradiction(net, rank, upper, source)
        if found.rank == 0 and net.architecture is None:
            raise ArgumentError(
                f"the output of {net.name} depends on none of its weights, or not near random "
                "ones; of a JAX function these are the first argument"
            )
        return Certificate(
            attempt=point.attempt,
            inputs=found.inputs,
            rank=rank,
            upper=upper,
            upper_source=source,
            symmetries=kernel.families,
            kernel_checks=found.kernel_checks,
            obligations=shown,
            user_symmetries=not net.is_built_in and upper < net.parameters,
            readings=found.readings,
            probable=further_points(bare, point, found.rank, found.inputs, upper, shown),
            **_named(net, weights, field, seed, started),
        )

    return in_shown_cells(net, field, seed, compute, lambda one: one.obligations, given)


def _named(
    net: Network, weights: Any, field: PrimeField, seed: int, started: float
) -> dict[str, Any]:
    """What every certificate says about its subject and its making."""
    return {
        "architecture": net.architecture,
        "function": None if net.architecture else Function(net.name, net.fingerprint),
        "readout": net.readout,
        "weights": None if weights is None else weights_hash(net, weights),
        "prime": field.modulus,
        "seed": seed,
        "parameters": net.parameters,
        "versions": {
            "neuromanifold": __version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
        },
        "seconds": time.perf_counter() - started,
    }


def certify_in_balls(
    net: Network,
    weights: Any,
    field: PrimeField,
    seed: int,
    inputs: int | None,
    bits: int = PRECISION,
) -> Certificate:
    """The certificate at given weights with a rank that is proved in balls.

    Symmetries of a user are not checked in balls, nor used for the upper bound.
    """
    started = time.perf_counter()
    if weights is None:
        raise ArgumentError("balls prove ranks at given weights: give weights=")
    if net.constants:
        raise NotCoveredError(
            f"{net.name} looks at a map up to a factor, which is not covered in balls; take "
            "reading='residues'"
        )
    upper, source, symmetries = net.parameters, "parameters", ()
    if net.is_built_in:
        at = net.assemble(given_weights(net, weights)(field))
        symmetries = known_kernel(net, at, field, seed).families
        upper, source = upper_bound(net, symmetries)
    rank, count = ball_rank(net, net.values(weights), upper, seed, inputs, bits)
    return Certificate(
        inputs=count,
        rank=rank,
        upper=upper,
        upper_source=source,
        symmetries=symmetries,
        readings=Readings(dyadic=floats_taken(net.apply, *net.shapes)),
        reading="balls",
        **_named(net, weights, field, seed, started),
    )


def certify_function(
    f: Callable[[Any, Any], Any],
    weights: Any,
    inputs: Any,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    symmetries: Sequence[Action] = (),
    name: str | None = None,
) -> Certificate:
    """`certify` of the network that `nm.network` makes of a JAX function.

    Args:
        f: a function of a pytree of weights and of one sample X.
        weights: a pytree with the shapes of the weights; the values do not matter.
        inputs: a pytree with the shapes of one sample.
        seed: of the random point.
        prime: p, between 2^20 and 2^23.
        symmetries: known symmetries, each a function (s, weights) ↦ weights that is the identity at
            s = 0 and under which f does not change. That they lie in the kernel is checked at the
            point, which is no proof: the verdict is then `exact given symmetries`.
        name: how the certificate calls the function.
    """
    net = network(f, weights, inputs, symmetries=symmetries, name=name)
    return certify(net, seed=seed, prime=prime)


def upper_bound(net: Network, symmetries: tuple[FamilyRank, ...]) -> tuple[int, str]:
    """The smaller of the two upper bounds, and which one it is.

    With a constant μ as a parameter the cone has dimension ≤ parameters + 1 − rank, and what is
    measured one less: parameters − rank again.
    """
    from_symmetries = max(0, net.parameters - sum(family.dimension for family in symmetries))
    if net.bound is not None and net.bound.value <= from_symmetries:
        return net.bound.value, net.bound.name
    return from_symmetries, "symmetries" if symmetries else "parameters"


def further_points(
    net: Network,
    point: Point,
    rank: int,
    inputs: int,
    upper: int,
    shown: tuple[Obligation, ...],
) -> Probable | None:
    """Further points for a user's function whose bounds do not meet, once its rank is proved."""
    decided = rank - len(net.constants) == upper or not all(one.met for one in shown)
    return None if decided or net.architecture else probable(net, point, rank, inputs)


def check_kernel(net: Network, found: JacobianRank, kernel: KnownKernel) -> None:
    """Raise when a symmetry changes the function."""
    pairs = zip(kernel.checked, found.kernel_holds, strict=True)
    wrong = [name for name, holds in pairs if not holds]
    if not wrong:
        return
    if net.is_built_in:
        raise RuntimeError(
            f"the built-in symmetry {wrong[0]} of {net.name} does not lie in the kernel of its "
            "Jacobian"
        )
    raise DiagramError(
        f"the symmetry {wrong[0]!r} changes {net.name}: its tangent vectors are not in the kernel "
        "of the Jacobian at a random point; correct its group or leave it out"
    )


def _contradiction(net: Network, rank: int, upper: int, source: str) -> Exception:
    """A proved rank above a bound: one of the two is wrong, and neither is to be certified."""
    if net.is_built_in:
        return RuntimeError(
            f"the rank {rank} of {net.name} is proved and exceeds its bound {upper} by {source}"
        )
    return DiagramError(
        f"the bound {upper} by {source} is wrong for {net.name}: it has at least {rank} "
        "dimensions; correct the bound or leave it out"
    )


def certificate_field(prime: int, inputs: int | None = None) -> PrimeField:
    """The field of a prime that is large enough, once the number of inputs makes sense too."""
    field = PrimeField(prime)
    if prime <= SMALLEST_PRIME:
        raise ArgumentError(
            f"a certificate needs a prime above 2^20 = {SMALLEST_PRIME}; got {prime}: "
            f"take {DEFAULT_PRIME}"
        )
    if inputs is not None and not isinstance(inputs, (int, np.integer)):
        raise ArgumentError(f"inputs must be a whole number; got {inputs!r}")
    if inputs is not None and not 1 <= inputs <= MOST_INPUTS:
        raise ArgumentError(f"inputs must be at least 1 and at most {MOST_INPUTS}; got {inputs}")
    return field


def given_weights(net: Network, weights: Any) -> GivenWeights:
    """The exact residues of float weights over any field, with ones for the constants."""
    return GivenWeights(net.flatten(net.values(weights)))


def weights_hash(net: Network, weights: Any) -> str:
    """A hash of the values of weights, to tell whether a certificate is about them."""
    values = net.values(weights)
    vector = np.concatenate([values[t.name].ravel() for t in net.tensors if t.name in values])
    return hashlib.sha256(np.ascontiguousarray(vector, dtype=np.float64).tobytes()).hexdigest()
