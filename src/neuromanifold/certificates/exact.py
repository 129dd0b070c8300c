"""Certificates: dimensions proved by ranks over a prime field (field-rank, softmax-exact).

The lower bound is the rank of the Jacobian mod p. The upper bound is the smaller of what the
symmetries prove, parameters less the rank of their tangent vectors, and what the virtual weights
prove (virtual-bound). When they meet, the dimension is proved.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold import __version__
from neuromanifold.algebra.echelon import EchelonForm
from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField, Residues
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.certificate import Certificate, Function, UpperSource
from neuromanifold.certificates.independence import Independence, independence
from neuromanifold.certificates.jacobian import JacobianRank, Point, at_a_point, jacobian_rank
from neuromanifold.certificates.problem import Problem, network_problem, weight_values
from neuromanifold.certificates.symmetry_bound import (
    FamilyRank,
    generator_ranks,
    known_generators,
    random_kernel_vectors,
)
from neuromanifold.errors import ArgumentError, NeuromanifoldError
from neuromanifold.formula.readouts import readout_upper_bound
from neuromanifold.networks.weights import Weights, unflatten

SMALLEST_PRIME = 2**20
"""Certificates take primes above this, so that an unlucky point is rare."""

Symmetry = Callable[[Any, Any], Any]
"""A one-parameter action (s, weights) ↦ weights that is the identity at s = 0."""


def certify(
    architecture: Architecture,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    weights: Weights | None = None,
    readout: Readout = "logits",
    inputs: int | None = None,
) -> Certificate:
    """Prove bounds for the dimension of a network's functions, at generic or at given weights.

    Given weights are floats, that is dyadic rationals, and have exact residues: the rank found is a
    lower bound for the rank at these very weights, and the symmetries' tangent vectors there give
    the upper bound. (A rank can be smaller mod p than over the rationals when p divides all large
    minors; a second prime makes that all but impossible.)

    Args:
        architecture: the network.
        seed: of the random point.
        prime: p, between 2^20 and 2^23.
        weights: take the rank here instead of at random weights.
        readout: what is looked at of the output (readouts).
        inputs: use exactly so many inputs; by default as many as the upper bound calls for.
    """
    started = time.perf_counter()
    field = certificate_field(prime, inputs)
    problem = network_problem(architecture, readout)
    given = None if weights is None else residues_of(weights, architecture, problem, field)

    def compute(point: Point) -> Certificate:
        symmetries, kernel = _network_symmetries(architecture, problem, point, readout)
        upper, source = network_upper(architecture, readout, problem, symmetries)
        found = jacobian_rank(problem, point, upper, kernel, inputs)
        if not found.kernel_holds:
            raise NeuromanifoldError(
                f"a built-in symmetry of {architecture.name} does not lie in the kernel of its "
                "Jacobian; this is an error of the program: please report it"
            )
        return _certificate(
            started,
            problem,
            point,
            found,
            (upper, source),
            symmetries,
            architecture=architecture,
            readout=readout,
            weights=weights,
        )

    return at_a_point(problem, field, seed, compute, given)


def certify_function(
    f: Callable[[Any, Any], Any],
    weights: Any,
    inputs: Any,
    *,
    seed: int = 0,
    prime: int = DEFAULT_PRIME,
    symmetries: Sequence[Symmetry] = (),
    name: str | None = None,
) -> Certificate:
    """Prove bounds for the dimension of the functions X ↦ f(weights, X) of any JAX function.

    Args:
        f: a function of a pytree of weights and of one sample X, made of rational operations and
            exponentials.
        weights: a pytree with the shapes of the weights; the values do not matter.
        inputs: a pytree with the shapes of one sample.
        seed: of the random point.
        prime: p, between 2^20 and 2^23.
        symmetries: known symmetries, each a function (s, weights) ↦ weights that is the identity at
            s = 0 and under which f does not change. That they lie in the kernel is checked at the
            point, which is no proof: the verdict is then `exact given symmetries`.
        name: how the certificate calls the function.
    """
    started = time.perf_counter()
    field = certificate_field(prime)
    problem = Problem(f, weights, inputs)
    name = name or getattr(f, "__name__", "function")
    if problem.columns == 0:
        raise ArgumentError(f"{name} has no weights; give a pytree with at least one array")

    def compute(point: Point) -> Certificate:
        generators = user_generators(problem, point, symmetries)
        form = EchelonForm(problem.columns, point.field)
        form.add(generators)
        upper = problem.parameters - form.rank
        found = jacobian_rank(problem, point, upper, np.ascontiguousarray(generators.T))
        if not found.kernel_holds:
            raise ArgumentError(
                f"one of the {len(symmetries)} given symmetries changes {name}: its tangent vector "
                "is not in the kernel of the Jacobian; correct it or leave it out"
            )
        if found.rank == 0:
            raise ArgumentError(
                f"the output of {name} depends on none of its weights; "
                "give the weights as the first argument"
            )
        ranks = (FamilyRank("given", form.rank),) if symmetries else ()
        source: UpperSource = "symmetries" if symmetries else "parameters"
        return _certificate(
            started,
            problem,
            point,
            found,
            (upper, source),
            ranks,
            function=Function(name, problem.fingerprint),
            user_symmetries=form.rank > 0,
        )

    return at_a_point(problem, field, seed, compute)


def _certificate(
    started: float,
    problem: Problem,
    point: Point,
    found: JacobianRank,
    bound: tuple[int, UpperSource],
    symmetries: tuple[FamilyRank, ...],
    *,
    architecture: Architecture | None = None,
    function: Function | None = None,
    readout: Readout = "logits",
    weights: Weights | None = None,
    user_symmetries: bool = False,
) -> Certificate:
    """The certificate, once the rank is known: what is left is the check of the exponents."""
    check: Independence | None = None
    if found.uses_exponentials:
        check = independence(problem, point, fixed_weights=weights is not None)
    return Certificate(
        architecture=architecture,
        function=function,
        readout=readout,
        weights=None if weights is None else weights_hash(weights),
        prime=point.field.modulus,
        seed=point.seed,
        attempt=point.attempt,
        inputs=found.inputs,
        parameters=problem.parameters,
        lower=max(0, found.rank - problem.constants),
        upper=bound[0],
        upper_source=bound[1],
        symmetries=symmetries,
        kernel_checks=found.kernel_checks,
        independence=check,
        user_symmetries=user_symmetries,
        dyadic_constants=found.dyadic_constants,
        versions={"neuromanifold": __version__, "jax": jax.__version__, "numpy": np.__version__},
        seconds=time.perf_counter() - started,
    )


def _network_symmetries(
    architecture: Architecture, problem: Problem, point: Point, readout: Readout
) -> tuple[tuple[FamilyRank, ...], Float[np.ndarray, "columns checks"]]:
    """What each family adds to the kernel at the point, and a few random kernel vectors."""
    weights = unflatten(architecture, point.weights[: architecture.parameters])
    blocks = known_generators(weights, point.field, readout)
    ranks = generator_ranks(blocks, architecture, problem.columns, point.field)
    kernel = random_kernel_vectors(blocks, architecture, problem.columns, point.field, point.seed)
    return ranks, kernel


def network_upper(
    architecture: Architecture,
    readout: Readout,
    problem: Problem,
    symmetries: tuple[FamilyRank, ...],
) -> tuple[int, UpperSource]:
    """The smaller of the two upper bounds, and which one it is.

    With the constant μ as a parameter the cone has dimension ≤ parameters + 1 − rank, and what is
    measured one less: parameters − rank again.
    """
    from_symmetries = max(0, problem.parameters - sum(family.dimension for family in symmetries))
    from_virtual = readout_upper_bound(architecture, readout)
    if from_virtual is not None and from_virtual <= from_symmetries:
        return from_virtual, "virtual weights"
    return from_symmetries, "symmetries"


def user_generators(
    problem: Problem, point: Point, symmetries: Sequence[Symmetry]
) -> Float[np.ndarray, "symmetries columns"]:
    """The tangent vectors at s = 0 of the user's actions, on residues."""
    rows = [np.zeros((0, problem.columns))]
    for action in symmetries:

        def tangent(weights: Any, action: Symmetry = action) -> Any:
            def along(s: Any) -> Any:
                return action(s, weights)

            return jax.jvp(along, (0.0,), (1.0,))[1]

        value = over_prime_field(tangent, problem.weights)(
            point.field, problem.assemble(point.weights)
        )
        leaves = [
            np.broadcast_to(leaf, shape).reshape(-1)
            for leaf, shape in zip(jax.tree.leaves(value), problem.shapes, strict=True)
        ]
        rows.append(np.concatenate(leaves)[None])
    return np.concatenate(rows)


def certificate_field(prime: int, inputs: int | None = None) -> PrimeField:
    """The field of a prime that is large enough, once the number of inputs makes sense too."""
    field = PrimeField(prime)
    if prime <= SMALLEST_PRIME:
        raise ArgumentError(
            f"a certificate needs a prime above 2^20 = {SMALLEST_PRIME}; got {prime}: "
            f"take {DEFAULT_PRIME}"
        )
    if inputs is not None and inputs < 1:
        raise ArgumentError(f"inputs must be at least 1; got {inputs}")
    return field


def residues_of(
    weights: Weights, architecture: Architecture, problem: Problem, field: PrimeField
) -> Residues:
    """The exact residues of float weights: a float is m·2^e, and 2 is invertible mod p."""
    values = weight_values(weights, architecture)
    residues = [field.from_fraction(Fraction(float(value))) for value in values]
    return np.array(residues + [1.0] * problem.constants)


def weights_hash(weights: Weights) -> str:
    """A hash of the values of weights, to tell whether a certificate is about them."""
    values = np.ascontiguousarray(weights.flatten(), dtype=np.float64)
    return hashlib.sha256(values.tobytes()).hexdigest()
