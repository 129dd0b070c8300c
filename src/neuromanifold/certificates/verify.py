"""Verification: a certificate recomputed by other means (field-rank, softmax-exact).

The points are drawn again from the recorded seed. The Jacobian and the exponents come from the
naive twin, dual numbers in plain integers, and all ranks, of the Jacobian, the symmetries' tangent
vectors and the exponents, from python-flint. The twin knows exponentials without relations; where
there are other formal functions the rows come from the traced program again. The obligations of
all formal elements are checked again in any case.
"""

from dataclasses import dataclass
from typing import Any

import flint
import jax
import numpy as np
from jaxtyping import Float, Int64

from neuromanifold.algebra.modular import Obligation
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import given_weights, upper_bound, weights_hash
from neuromanifold.certificates.jacobian import Point, at_a_point, drawn, jacobian_rows, samples
from neuromanifold.certificates.symmetry_bound import FamilyRank, known_generators
from neuromanifold.certificates.twin import Integers, Twin, TwinExponentials
from neuromanifold.display import Displayed
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import network


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
class Verification(Displayed):
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
    certificate: Certificate,
    subject: Network | Architecture | None = None,
    *,
    prime: int | None = None,
    weights: Any = None,
) -> Verification:
    """Recompute a certificate, optionally with another prime.

    Args:
        certificate: the certificate.
        subject: the network; not needed where the certificate names an architecture.
        prime: another prime; by default the recorded one.
        weights: the given weights, for a certificate of a local dimension.
    """
    net = _subject(certificate, subject)
    _check_weights(certificate, net, weights)
    field = PrimeField(prime or certificate.prime)
    given = None if weights is None else given_weights(net, weights)

    def compute(point: Point) -> Verification:
        blocks = known_generators(net, net.assemble(point.weights), field)
        rows = [(block.family, net.dense(block)) for block in blocks]
        families = _family_ranks(rows, field.modulus)
        upper, source = upper_bound(net, families)
        # The relations of formal elements, and so the rows, depend on how many are checked at once.
        checks = point.obligations(net, certificate.inputs)
        exponents = None
        if _has_twin(checks):
            matrix = twin_rows(net, point, certificate.inputs)
            if certificate.independence is not None:
                count = certificate.independence.columns
                exponents = _twin_exponents(net, point, count, fixed_weights=weights is not None)
        else:
            rows = list(jacobian_rows(net, point, certificate.inputs))
            matrix = np.concatenate(rows)[: certificate.inputs]
        rank = max(0, flint_rank(matrix, field.modulus) - len(net.constants))
        found = Recomputed(rank, upper, source, families, checks, exponents)
        return _compared(certificate, field.modulus, found)

    return at_a_point(net, field, certificate.seed, compute, given)


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the values of a certificate were recomputed to be."""

    rank: int
    upper: int
    upper_source: str
    families: tuple[FamilyRank, ...]
    obligations: tuple[Obligation, ...]
    exponents: tuple[int, int] | None


def _has_twin(obligations: tuple[Obligation, ...]) -> bool:
    """Whether the naive twin knows all the formal elements."""
    known = {"exponentials", "maxima"}
    return all(o.name in known and not o.relations for o in obligations)


def _subject(certificate: Certificate, subject: Network | Architecture | None) -> Network:
    """The network that a certificate is about."""
    if certificate.architecture is not None:
        return network(certificate.architecture, readout=certificate.readout)
    if subject is None:
        raise ArgumentError(
            f"the certificate is about the function {certificate.subject}; "
            "give the network itself to verify it"
        )
    net = network(subject)
    recorded = certificate.function.fingerprint if certificate.function else "none"
    if recorded != net.fingerprint:
        raise ArgumentError(
            f"the certificate is about another function or other shapes: it has the fingerprint "
            f"{recorded[:12]}, and this function {net.fingerprint[:12]}"
        )
    return net


def flint_rank(
    matrix: Float[np.ndarray, "rows columns"] | Int64[np.ndarray, "rows columns"], prime: int
) -> int:
    """The rank mod p by python-flint."""
    rows, columns = matrix.shape
    entries = np.mod(matrix, prime).astype(np.int64).ravel().tolist()
    return flint.nmod_mat(rows, columns, entries, prime).rank() if entries else 0


def _compared(certificate: Certificate, prime: int, found: Recomputed) -> Verification:
    recorded = {family.name: family.dimension for family in certificate.symmetries}
    families = found.families
    checks = [
        Check("rank", certificate.rank, found.rank),
        Check("upper", certificate.upper, found.upper),
        Check("upper_source", certificate.upper_source, found.upper_source),
        *(Check(f"symmetries {f.name}", recorded.get(f.name), f.dimension) for f in families),
        Check("symmetry families", sorted(recorded), sorted(f.name for f in families)),
    ]
    shown = {o.name: [o.columns, o.rank, o.relations] for o in certificate.obligations}
    again = {o.name: [o.columns, o.rank, o.relations] for o in found.obligations}
    checks += [Check(name, shown.get(name), again.get(name)) for name in {**shown, **again}]
    if certificate.independence is not None and found.exponents is not None:
        check = certificate.independence
        checks.append(Check("exponents by the twin", (check.columns, check.rank), found.exponents))
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


def _twin(net: Network, point: Point, what: str = "") -> Twin:
    label = f"{what} attempt {point.attempt}"
    exponentials = TwinExponentials.of(point.field.modulus, point.seed, label)
    return Twin(net, point.field.modulus, exponentials)


def twin_rows(net: Network, point: Point, count: int) -> Integers:
    """The first rows uᵀ J, from the naive twin."""
    twin, p = _twin(net, point), point.field.modulus
    inputs, cotangents = samples(net, point, count)
    weights = _integers(point.weights, p)
    rows = []
    for n in range(count):
        X, u = _sample((inputs, cotangents), n, p)
        flat = np.concatenate([np.ravel(part) for part in jax.tree.leaves(u)])
        rows.append((flat[:, None] * twin.jacobian(weights, X) % p).sum(axis=0) % p)
    return np.stack(rows)


def _twin_exponents(
    net: Network, point: Point, count: int, *, fixed_weights: bool
) -> tuple[int, int]:
    """How many distinct exponents that are not always 0 the twin finds, and their rank.

    In place of derivatives it takes differences at two inputs with the same weights, from which
    combinations that depend on weights alone disappear too.
    """
    p, rows = point.field.modulus, count + 8
    fresh = point.draw("independence weights", (rows, net.columns))
    sides = []
    for side in ("first", "second"):
        twin = _twin(net, point, f"independence {side}")
        inputs = drawn(net.sample, point, f"independence inputs {side}", rows)
        values = []
        for n in range(rows):
            weights = _integers(point.weights if fixed_weights else fresh[n], p)
            values.append(twin.arguments(weights, _sample(inputs, n, p)))
        sides.append(np.stack(values))
    columns = np.unique(np.concatenate(sides), axis=1)
    columns = columns[:, np.any(columns, axis=0)]
    difference = (columns[:rows] - columns[rows:]) % p
    return difference.shape[1], flint_rank(difference, p)


def _sample(samples: Any, n: int, p: int) -> Any:
    """The n-th of some samples, in integers."""
    leaves, structure = jax.tree.flatten(samples)
    return jax.tree.unflatten(structure, [_integers(leaf[n], p) for leaf in leaves])


def _integers(residues: Any, p: int) -> Integers:
    return np.asarray(np.mod(residues, p)).astype(np.int64)


def _check_weights(certificate: Certificate, net: Network, weights: Any) -> None:
    if certificate.weights is None and weights is not None:
        raise ArgumentError("the certificate is about generic weights; leave the weights out")
    if certificate.weights is not None:
        if weights is None:
            raise ArgumentError(
                "the certificate is about given weights; give the weights file it was made for"
            )
        if weights_hash(net, weights) != certificate.weights:
            raise ArgumentError("these are not the weights that the certificate is about")
