"""Verification: a certificate recomputed by other means (field-rank, softmax-exact).

The points are drawn again from the recorded seed. The Jacobian and the exponents come from the
naive twin, dual numbers in plain integers, and all ranks, of the Jacobian, the symmetries' tangent
vectors and the exponents, from python-flint. From the certificate comes only what was asked;
whatever else it claims is compared, field by field, with what comes out. The twin knows
exponentials without relations; where there are other formal functions, or large numbers that stand
for minus infinity, the rows come from the traced program again. The obligations of all formal
elements are checked again in any case.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from neuromanifold.algebra.balls.arrays import PRECISION
from neuromanifold.algebra.integer_rank import flint_rank
from neuromanifold.algebra.modular import Obligation
from neuromanifold.algebra.prime_field import ZeroResidueError
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.cells import pieces
from neuromanifold.certificates.certificate import Certificate, Function
from neuromanifold.certificates.exact import (
    certificate_field,
    certify_in_balls,
    further_points,
    given_weights,
    upper_bound,
    weights_hash,
)
from neuromanifold.certificates.features import NAME, freed
from neuromanifold.certificates.jacobian import (
    batches,
    drawn,
    jacobian_rows,
    less_in_floats,
    most_inputs,
    readings_of,
    samples,
)
from neuromanifold.certificates.point import MOST_TRIED, Point, at_a_point
from neuromanifold.certificates.probable import Probable
from neuromanifold.certificates.symmetry_bound import (
    FamilyRank,
    known_generators,
    known_kernel,
)
from neuromanifold.certificates.twin import Integers, Twin, TwinExponentials
from neuromanifold.certificates.virtual_rank import at_weights
from neuromanifold.cost import Cost, sizes_of, usual_limits, verifying
from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.network import Network
from neuromanifold.symmetry.families import network


@dataclass(frozen=True, slots=True)
class Check(Recorded):
    """One recorded value and what it was recomputed to be."""

    _json = "name recorded recomputed agrees"

    name: str
    recorded: object
    recomputed: object

    @property
    def agrees(self) -> bool:
        """Whether the two are equal."""
        return self.recorded == self.recomputed


@dataclass(frozen=True, slots=True)
class Verification(Recorded, Displayed):
    """A certificate, recomputed.

    Attributes:
        certificate: what was checked.
        prime: the prime it was recomputed with.
        checks: every value that was compared.
    """

    _json = "subject=certificate.subject agrees prime checks"

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


def verify(
    certificate: Certificate,
    subject: Network | Architecture | None = None,
    *,
    prime: int | None = None,
    weights: Any = None,
    limits: Cost | None = None,
) -> Verification:
    """Recompute a certificate, optionally with another prime.

    The sizes of an architecture are what a file says: what would cost too much is refused before
    anything is made of them.

    Args:
        certificate: the certificate.
        subject: the network; not needed where the certificate names an architecture.
        prime: another prime; by default the recorded one.
        weights: the given weights, for a certificate of a local dimension.
        limits: the memory and time allowed for an architecture; by default half of the free memory
            and an hour.
    """
    if not isinstance(certificate, Certificate):
        raise ArgumentError(
            f"a certificate was wanted; got {type(certificate).__name__}: certify makes one, "
            "load_certificate reads one from a file"
        )
    if certificate.architecture is not None:
        sizes = sizes_of(certificate.architecture)
        expected = verifying(sizes, min(certificate.inputs, most_inputs(sizes.parameters)))
        expected.check(limits or usual_limits(), "verifying")
    net = _subject(certificate, subject)
    _check_weights(certificate, net, weights)
    most, claimed = most_inputs(net.columns), max(certificate.inputs, certificate.readings.cells)
    if claimed > most:
        raise ArgumentError(
            f"the certificate claims {claimed} inputs, and verification takes at most "
            f"{most} for {net.columns} columns; make it again with fewer"
        )
    if any(n >= MOST_TRIED for n in certificate.readings.passed):
        raise ArgumentError(
            f"the certificate passes over point {max(certificate.readings.passed)}, and at most "
            f"{MOST_TRIED} are tried; make it again"
        )
    net = at_weights(net, weights)
    field = certificate_field(certificate.prime if prime is None else prime, certificate.inputs)
    if certificate.reading == "balls":  # with balls of twice the precision
        seed, count, bits = certificate.seed, certificate.inputs, 2 * PRECISION
        found = certify_in_balls(net, weights, field, seed, count, bits)
        found = replace(found, function=_function(certificate, net))
        return Verification(certificate, field.modulus, _compared(certificate, found))
    given = None if weights is None else given_weights(net, weights)
    # Over the recorded prime at the recorded point; over another one at any point that will do.
    attempts = range(certificate.attempt, certificate.attempt + 1) if prime is None else None

    def compute(point: Point) -> Verification:
        expected, twin = _recomputed(certificate, net, point)
        checks = _compared(certificate, expected) + twin
        return Verification(certificate, field.modulus, checks)

    return at_a_point(net, field, certificate.seed, compute, given, attempts)


_ASKED = frozenset(
    {"format", "version", "checksum", "versions", "seconds"}
    | {"architecture", "prime", "seed", "attempt", "inputs", "reading"}
)
"""What verification takes from a certificate, or what claims nothing; all else is recomputed."""


def _compared(certificate: Certificate, expected: Certificate) -> tuple[Check, ...]:
    claims, found = certificate.to_dict(), expected.to_dict()
    return tuple(Check(key, claims[key], found[key]) for key in claims if key not in _ASKED)


def _function(certificate: Certificate, net: Network) -> Function | None:
    name = certificate.function.name if certificate.function else net.name
    return None if net.architecture else Function(name, net.fingerprint)


def _recomputed(
    certificate: Certificate, net: Network, point: Point
) -> tuple[Certificate, tuple[Check, ...]]:
    """The certificate as it has to be, made by other means, and what only the twin can check.

    Only what was asked comes from the certificate: the network, the point, the number of inputs and
    of those that give the branches.
    """
    p, count = point.field.modulus, certificate.inputs
    asked = certificate.readings
    point = replace(point, cells=asked.cells or None, passed=asked.passed)
    weights = net.assemble(point.weights)
    blocks = known_generators(net, weights, point.field)
    families = _family_ranks([(block.family, net.dense(block)) for block in blocks], p)
    upper, source = upper_bound(net, families)
    bare = net.bare
    obligations = point.obligations(bare, count)
    readings = readings_of(bare, point, count, batches(count)[1])
    known = not readings.masks and _has_twin(obligations)  # constants are numbers to the twin
    matrix, exponents = _rows(bare, point, count, obligations, known)
    kernel = known_kernel(net, weights, point.field, point.seed).checks
    products = _integers(matrix, p) @ _integers(kernel, p) % p  # below 2^63: see the twin's bounds
    checks = [Check("rows times kernel vectors", 0, int(np.count_nonzero(products)))]
    claimed = next((o for o in obligations if o.name == "exponentials"), None)
    if claimed is not None and exponents is not None:
        pair = [claimed.columns, claimed.rank]
        checks.append(Check("exponents by the twin", pair, list(exponents)))
    rank = flint_rank(matrix, p)
    less = less_in_floats(bare, point, rank, np.arange(bare.columns), [count])
    rank = rank if less is None else less.rank
    expected = replace(
        certificate,
        architecture=net.architecture,
        readout=net.readout,
        function=_function(certificate, net),
        weights=certificate.weights,  # compared with the weights themselves before
        prime=p,
        parameters=net.parameters,
        rank=max(0, rank - len(net.constants)),
        upper=upper,
        upper_source=source,
        symmetries=families,
        kernel_checks=kernel.shape[1],
        obligations=obligations,
        user_symmetries=not net.is_built_in and any(f.dimension for f in families),
        readings=readings,
        probable=_further(certificate, bare, point, rank, upper, obligations),
    )
    return expected, tuple(checks)


def _further(
    certificate: Certificate,
    net: Network,
    point: Point,
    rank: int,
    upper: int,
    obligations: tuple[Obligation, ...],
) -> Probable | None:
    """The further points of the recorded prime, also where the rest is taken over another one."""

    def compute(recorded: Point) -> Probable | None:
        recorded = replace(recorded, cells=point.cells, passed=point.passed)
        return further_points(net, recorded, rank, certificate.inputs, upper, obligations)

    if point.field.modulus == certificate.prime:
        return compute(point)
    field, attempt = certificate_field(certificate.prime), certificate.attempt
    attempts = range(attempt, attempt + 1)
    return at_a_point(net, field, certificate.seed, compute, point.given, attempts)


def _rows(
    net: Network, point: Point, count: int, obligations: tuple[Obligation, ...], known: bool
) -> tuple[Any, tuple[int, int] | None]:
    """The rows uᵀ J and the exponents' count and rank, from the twin where it knows the network.

    The twin evaluates everything, also what no output needs; a denominator that is zero only there
    is no fault of the certificate, nor is a function that the twin does not know, and the rows come
    from the traced program again.
    """
    if known and pieces(net) is None:
        try:
            rows = twin_rows(net, point, count)
        except (NotCoveredError, ZeroResidueError):
            pass
        else:
            formal = any(o.name == "exponentials" for o in obligations)
            return rows, _twin_exponents(net, point) if formal else None
    return np.concatenate(list(jacobian_rows(net, point, count)))[:count], None


def _has_twin(obligations: tuple[Obligation, ...]) -> bool:
    """Whether the naive twin knows all the formal elements."""
    known = {NAME, "exponentials", "maxima"}
    return all(o.name in known and not o.relations for o in obligations)


def _subject(certificate: Certificate, subject: Network | Architecture | None) -> Network:
    """The network that a certificate is about."""
    if certificate.architecture is not None:
        own = network(certificate.architecture, readout=certificate.readout)
        if subject is not None and network(subject).architecture != certificate.architecture:
            raise ArgumentError(
                f"the certificate is about {certificate.subject}, and another network was given; "
                "leave it out"
            )
        return own
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
    return Twin(freed(net), point.field.modulus, exponentials)


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


def _twin_exponents(net: Network, point: Point) -> tuple[int, int] | None:
    """How many distinct exponents that are not always 0 the twin finds, and their rank.

    In place of derivatives it takes differences at two inputs with the same weights, from which
    combinations that depend on weights alone disappear too. These points are its own: where a
    denominator is zero it draws others.
    """
    for attempt in range(_DRAWS):
        try:
            return _exponents_at(net, point, f"independence {attempt}")
        except ZeroResidueError:
            continue
    return None


_DRAWS = 5


def _exponents_at(net: Network, point: Point, label: str) -> tuple[int, int]:
    p = point.field.modulus
    weights = _integers(point.weights, p)
    one = _sample(drawn(freed(net).sample, point, f"{label} count", 1), 0, p)
    rows = len(_twin(net, point, label).arguments(weights, one)) + 8
    fresh = point.draw(f"{label} weights", (rows, net.columns))
    sides = []
    for side in ("first", "second"):
        twin = _twin(net, point, f"{label} {side}")
        inputs = drawn(freed(net).sample, point, f"{label} inputs {side}", rows)
        values = []
        for n in range(rows):
            at = weights if point.given is not None else _integers(fresh[n], p)
            values.append(twin.arguments(at, _sample(inputs, n, p)))
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
