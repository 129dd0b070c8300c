"""Verification: a certificate recomputed by other means (field-rank, softmax-exact).

The points are drawn again from the recorded seed. For networks the Jacobian and the exponents come
from the naive twin in plain integers, for a user's function from the traced function again. All
ranks, of the Jacobian, the symmetries' tangent vectors and the exponents, come from python-flint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from jaxtyping import Float, Int64

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import (
    Symmetry,
    network_upper,
    residues_of,
    user_generators,
    weights_hash,
)
from neuromanifold.certificates.independence import Independence, exponent_differences
from neuromanifold.certificates.jacobian import Point, at_a_point, drawn, jacobian_rows, samples
from neuromanifold.certificates.problem import Problem, network_problem
from neuromanifold.certificates.symmetry_bound import (
    FamilyRank,
    dense,
    known_generators,
    slot_columns,
)
from neuromanifold.certificates.twin import Integers, Twin, TwinExponentials
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.weights import Weights, unflatten


@dataclass(frozen=True, slots=True)
class Check:
    """One recorded value and what it was recomputed to be."""

    name: str
    recorded: object
    recomputed: object

    @property
    def agrees(self) -> bool:
        """Whether the two are equal."""
        return self.recorded == self.recomputed


@dataclass(frozen=True, slots=True)
class Verification:
    """A certificate, recomputed.

    Attributes:
        certificate: what was checked.
        prime: the prime it was recomputed with.
        checks: every value that was compared.
    """

    certificate: Certificate
    prime: int
    checks: tuple[Check, ...]

    @property
    def agrees(self) -> bool:
        """Whether all values agree."""
        return all(check.agrees for check in self.checks)

    def __str__(self) -> str:
        subject = self.certificate.subject
        if self.agrees:
            return f"{subject}: all {len(self.checks)} values agree (prime {self.prime})."
        wrong = [check for check in self.checks if not check.agrees]
        listed = "; ".join(f"{c.name} {c.recorded}, recomputed {c.recomputed}" for c in wrong)
        return f"{subject}: the certificate does not hold (prime {self.prime}): {listed}."

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "subject": self.certificate.subject,
            "agrees": self.agrees,
            "prime": self.prime,
            "checks": [
                {
                    "name": check.name,
                    "recorded": check.recorded,
                    "recomputed": check.recomputed,
                    "agrees": check.agrees,
                }
                for check in self.checks
            ],
        }


def verify(
    certificate: Certificate, *, prime: int | None = None, weights: Weights | None = None
) -> Verification:
    """Recompute a network's certificate, optionally with another prime.

    Args:
        certificate: the certificate.
        prime: another prime; by default the recorded one.
        weights: the given weights, for a certificate of a local dimension.
    """
    architecture = certificate.architecture
    if architecture is None:
        raise ArgumentError(
            f"the certificate is about the function {certificate.subject}; "
            "give the function itself to verify it"
        )
    _check_weights(certificate, weights)
    field = PrimeField(prime or certificate.prime)
    problem = network_problem(architecture, certificate.readout)
    given = None if weights is None else residues_of(weights, architecture, problem, field)

    def compute(point: Point) -> Verification:
        vector = point.weights[: architecture.parameters]
        blocks = known_generators(unflatten(architecture, vector), field, certificate.readout)
        places = slot_columns(architecture)
        rows = [(block.family, dense(block, places, problem.columns)) for block in blocks]
        families = _family_ranks(rows, field.modulus)
        upper, source = network_upper(architecture, certificate.readout, problem, families)
        lower = flint_rank(twin_jacobian(certificate, problem, point), field.modulus)
        exponents = None
        if certificate.independence is not None:
            exponents = _twin_independence(problem, point, certificate, weights is not None)
        found = (max(0, lower - problem.constants), upper, source, families, exponents)
        return _compared(certificate, field.modulus, found)

    return at_a_point(problem, field, certificate.seed, compute, given)


def verify_function(
    certificate: Certificate,
    f: Callable[[Any, Any], Any],
    weights: Any,
    inputs: Any,
    *,
    symmetries: Sequence[Symmetry] = (),
    prime: int | None = None,
) -> Verification:
    """Recompute the certificate of a user's function, given again as for `certify_function`."""
    problem = Problem(f, weights, inputs)
    recorded = certificate.function.fingerprint if certificate.function else "none"
    if recorded != problem.fingerprint:
        raise ArgumentError(
            f"the certificate is about another function or other shapes: it has the fingerprint "
            f"{recorded[:12]}, and this function {problem.fingerprint[:12]}"
        )
    field = PrimeField(prime or certificate.prime)

    def compute(point: Point) -> Verification:
        generators = user_generators(problem, point, symmetries)
        rank = flint_rank(generators, field.modulus)
        families = (FamilyRank("given", rank),) if symmetries else ()
        upper = problem.parameters - rank
        rows = np.concatenate(list(jacobian_rows(problem, point, certificate.inputs)))
        lower = flint_rank(rows[: certificate.inputs], field.modulus)
        exponents = None
        if certificate.independence is not None:
            difference = exponent_differences(problem, point)
            exponents = Independence(difference.shape[1], flint_rank(difference, field.modulus))
        source = "symmetries" if symmetries else "parameters"
        return _compared(certificate, field.modulus, (lower, upper, source, families, exponents))

    return at_a_point(problem, field, certificate.seed, compute)


def flint_rank(
    matrix: Float[np.ndarray, "rows columns"] | Int64[np.ndarray, "rows columns"], prime: int
) -> int:
    """The rank mod p by python-flint."""
    rows, columns = matrix.shape
    entries = np.mod(matrix, prime).astype(np.int64).ravel().tolist()
    return flint.nmod_mat(rows, columns, entries, prime).rank() if entries else 0


def _compared(
    certificate: Certificate,
    prime: int,
    found: tuple[int, int, str, tuple[FamilyRank, ...], Independence | None],
) -> Verification:
    lower, upper, source, families, exponents = found
    recorded = {family.name: family.dimension for family in certificate.symmetries}
    checks = [
        Check("lower", certificate.lower, lower),
        Check("upper", certificate.upper, upper),
        Check("upper_source", certificate.upper_source, source),
        *(Check(f"symmetries {f.name}", recorded.get(f.name), f.dimension) for f in families),
        Check("symmetry families", sorted(recorded), sorted(f.name for f in families)),
    ]
    if certificate.independence is not None and exponents is not None:
        checks.append(Check("exponents", certificate.independence.columns, exponents.columns))
        checks.append(Check("exponents' rank", certificate.independence.rank, exponents.rank))
    return Verification(certificate, prime, tuple(checks))


def _family_ranks(
    blocks: list[tuple[str, Float[np.ndarray, "_ columns"]]], prime: int
) -> tuple[FamilyRank, ...]:
    """What each family adds to the rank, from the ranks of all rows up to it."""
    names = list(dict.fromkeys(name for name, _ in blocks))
    ranks: list[FamilyRank] = []
    before = 0
    for k, name in enumerate(names):
        rows = np.concatenate([rows for other, rows in blocks if other in names[: k + 1]])
        total = flint_rank(rows, prime)
        ranks.append(FamilyRank(name, total - before))
        before = total
    return tuple(ranks)


def _twin(certificate: Certificate, point: Point, what: str = "") -> Twin:
    architecture = certificate.architecture
    if architecture is None:
        raise ArgumentError("the naive twin exists for networks only")
    label = f"{what} attempt {point.attempt}"
    exponentials = TwinExponentials.of(point.field.modulus, point.seed, label)
    return Twin(architecture, point.field.modulus, exponentials)


def twin_jacobian(certificate: Certificate, problem: Problem, point: Point) -> Integers:
    """The recorded number of rows uᵀ J, from the naive twin."""
    twin, p = _twin(certificate, point), point.field.modulus
    inputs, cotangents = samples(problem, point, certificate.inputs)
    weights, constant = _twin_weights(certificate, point.weights, p)
    rows = [
        twin.row(weights, _integers(X, p), _integers(u, p), certificate.readout, constant)
        for X, u in zip(inputs, cotangents, strict=True)
    ]
    return np.stack(rows)


def _twin_independence(
    problem: Problem, point: Point, certificate: Certificate, fixed_weights: bool
) -> Independence:
    """The check of the exponents, from the naive twin: every exponent that is not always 0."""
    p = point.field.modulus
    count = certificate.independence.columns if certificate.independence else 0
    rows = count + 8
    differences = []
    fresh = point.draw("independence weights", (rows, problem.columns))
    sides = [
        (
            _twin(certificate, point, f"independence {side}"),
            drawn(problem.inputs, point, f"independence inputs {side}", rows),
        )
        for side in ("first", "second")
    ]
    for n in range(rows):
        vector = point.weights if fixed_weights else fresh[n]
        weights, _ = _twin_weights(certificate, vector, p)
        first, second = (twin.exponents(weights, _integers(X[n], p)) for twin, X in sides)
        differences.append((first - second) % p)
    matrix = np.stack(differences)
    return Independence(matrix.shape[1], flint_rank(matrix, p))


def _twin_weights(
    certificate: Certificate, vector: Float[np.ndarray, " columns"], p: int
) -> tuple[list[dict[str, Integers]], int | None]:
    """The point's weights as integers, and the constant of decisions."""
    architecture = certificate.architecture
    if architecture is None:
        raise ArgumentError("the naive twin exists for networks only")
    weights = unflatten(architecture, vector[: architecture.parameters])
    layers = [
        {name: _integers(np.asarray(tensor), p) for name, tensor in layer.tensors().items()}
        for layer in weights.layers
    ]
    return layers, (int(vector[-1]) % p if certificate.readout == "decisions" else None)


def _integers(residues: np.ndarray, p: int) -> Integers:
    return np.mod(residues, p).astype(np.int64)


def _check_weights(certificate: Certificate, weights: Weights | None) -> None:
    if certificate.weights is None and weights is not None:
        raise ArgumentError("the certificate is about generic weights; leave the weights out")
    if certificate.weights is not None:
        if weights is None:
            raise ArgumentError(
                "the certificate is about given weights; give the weights file it was made for"
            )
        if weights_hash(weights) != certificate.weights:
            raise ArgumentError("these are not the weights that the certificate is about")
