"""Checks of the method: ranks over prime fields, formal exponentials, readouts."""

import numpy as np
from flint import fmpz_mat

from neuromanifold.algebra.prime_field import DEFAULT_PRIME, PrimeField
from neuromanifold.algebra.rank import rank
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.exact import certify
from neuromanifold.certificates.numeric import estimate
from neuromanifold.certificates.verify import verify
from neuromanifold.networks.readout import probabilities, read_out
from neuromanifold.networks.weights import Weights, conditioned_weights, unflatten
from neuromanifold.paper.checks.evaluation import (
    distance,
    integer_weights,
    normal_input,
    output,
)
from neuromanifold.paper.checks.evidence import Case, Check, Finding, close, equal
from neuromanifold.paper.checks.exact_dimensions import certified

_PRIMES = (3, 5, 7, 1009, DEFAULT_PRIME)
_SECOND_PRIME = 8388587


def rank_is_a_bound(quick: bool, seed: int) -> Finding:
    """Ranks mod p are at most those over Q; certificates stand a second look (field-rank)."""
    cases: list[Case] = []
    ranks: dict[str, dict[str, int]] = {}
    for d, d_out, a in [(2, 1, 2)] if quick else [(2, 1, 2), (2, 2, 1), (3, 2, 2)]:
        layer = Architecture((d, d_out), (a,), 2)
        J = _integer_jacobian(layer, seed)
        rational = int(fmpz_mat(J.tolist()).rank())
        found = {str(p): rank(PrimeField(p).from_integers(J), PrimeField(p)) for p in _PRIMES}
        for p, value in found.items():
            more = f"rank {value} mod {p} exceeds {rational} over the rationals"
            cases.append(Case(f"{layer} mod {p}", more if value > rational else None))
        cases.append(equal(f"{layer} mod {DEFAULT_PRIME}", rational, found[str(DEFAULT_PRIME)]))
        ranks[layer.name] = {"over the rationals": rational, **found}
    networks = [Architecture((3, 2, 3), (2, 2), 3), Architecture((3, 3), (2,), 3, "softmax")]
    for network in networks:
        certificate = certified(network, seed)
        again = verify(certificate)
        cases.append(equal(f"{network}: naive twin and flint", True, again.agrees))
        other = certify(network, seed=seed + 1, prime=_SECOND_PRIME)
        cases.append(equal(f"{network}: another prime", certificate.lower, other.lower))
    return Finding(
        f"ranks of {len(ranks)} integer Jacobians mod {', '.join(map(str, _PRIMES))} and over the "
        f"rationals (python-flint); {len(networks)} certificates recomputed by a naive twin and "
        f"with the prime {_SECOND_PRIME} (seed {seed})",
        cases,
        {"ranks": ranks},
    )


def _integer_jacobian(layer: Architecture, seed: int) -> np.ndarray:
    """A Jacobian of integers, at integer weights and inputs, with rows to spare."""
    W = integer_weights(layer, seed)
    (d, d_out), t = layer.widths, layer.tokens
    generator = np.random.default_rng((seed, 31))
    blocks = []
    for _ in range(layer.parameters):
        X = generator.integers(-2, 3, (d, t)).astype(np.float64)
        columns = [
            output(_nudged(W, k), X) - output(W, X) for k in range(layer.parameters)
        ]  # linear in every single weight, so a unit step is the derivative
        blocks.append(np.stack([column.ravel() for column in columns], axis=1))
        if len(blocks) * d_out * t >= 2 * layer.parameters:
            break
    return np.concatenate(blocks).astype(np.int64)


def _nudged(weights: Weights, k: int) -> Weights:
    vector = weights.flatten()
    vector[k] += 1.0
    return unflatten(weights.architecture, vector)


def formal_exponentials(quick: bool, seed: int) -> Finding:
    """Formal exponentials for independent exponents; others are noticed (softmax-exact)."""
    networks = [
        Architecture((3, 3), (2,), 3, "softmax"),
        Architecture((3, 2, 3), (2, 2), 3, "softmax"),
        Architecture((3, 3), (2,), 3, "softmax", heads=2),
        Architecture((3, 3, 3), (2, 2), 3, "softmax", mask="causal"),
        Architecture((2, 2, 2, 2), (2, 1, 2), 3, "softmax", temperature=0.5),
    ][: 2 if quick else None]
    cases: list[Case] = []
    checks = {}
    for network in networks:
        found = certified(network, seed)
        proved = found.independence is not None and found.independence.met
        cases.append(equal(f"{network}: exponents independent", True, proved))
        cases.append(equal(f"{network}: float64 rank", found.lower, estimate(network).rank))
        checks[network.name] = found.independence and found.independence.columns
    opposite = _opposite_heads(seed)
    special = certify(opposite.architecture, seed=seed, weights=opposite)
    numeric = estimate(opposite.architecture, weights=opposite, seed=seed)
    relations = special.independence.relations if special.independence else 0
    cases.append(equal("heads (A, V), (−A, V): relations between exponents", 2, relations))
    cases.append(equal("heads (A, V), (−A, V): rank over a basis", 12, special.lower))
    cases.append(equal("heads (A, V), (−A, V): float64 rank", 12, numeric.rank))
    return Finding(
        f"{len(networks)} softmax networks: the exponents' independence by a rank, and the "
        "dimension by float64 too; and heads (A, V), (−A, V), whose exponents depend on each "
        f"other (seed {seed})",
        cases,
        {
            "independent exponents": checks,
            "dependent heads": {
                "relations": relations,
                "rank over a basis of exponents": special.rank,
                "true rank": numeric.rank,
            },
        },
    )


def _opposite_heads(seed: int) -> Weights:
    """Two heads (A, V) and (−A, V), d = t = 2: exponents f and −f."""
    one = conditioned_weights(Architecture((2, 2), (2,), 2, "softmax"), seed).layers[0]
    tensors = {name: np.asarray(tensor) for name, tensor in one.tensors().items()}
    both = {name: np.concatenate([tensor, tensor]) for name, tensor in tensors.items()}
    both["key"] = np.concatenate([tensors["key"], -tensors["key"]])
    return Weights.from_tensors(Architecture((2, 2), (2,), 2, "softmax", heads=2), [both])


def readouts(quick: bool, seed: int) -> Finding:
    """Probabilities show differences of logits, decisions up to a constant (readouts)."""
    cases: list[Case] = []
    sizes = [((3, 3), (2,))] if quick else [((3, 3), (2,)), ((3, 2, 3), (2, 2)), ((2, 4), (1,))]
    dimensions = {}
    for widths, ranks in sizes:
        network = Architecture(widths, ranks, 3)
        Y = output(conditioned_weights(network, seed), normal_input(network, seed))
        P = np.asarray(probabilities(Y))
        logs = np.log(P[1:]) - np.log(P[:1])
        error = distance(logs, np.asarray(read_out(Y, "probabilities")))
        cases.append(close(f"{network}: differences from probabilities", error, 1e-4))
        shifted = np.asarray(probabilities(Y + 1.0))
        cases.append(close(f"{network}: a common shift", distance(P, shifted), 1e-5))
        less = Architecture((*widths[:-1], widths[-1] - 1), ranks, 3)
        seen = {
            word: certify(network, seed=seed, readout=word)
            for word in ("probabilities", "decisions")
        }
        narrower = certified(less, seed).lower
        cases.append(equal(f"{network}: probabilities", narrower, seen["probabilities"].lower))
        cases.append(equal(f"{network}: decisions", narrower - 1, seen["decisions"].lower))
        dimensions[network.name] = {
            "logits": certified(network, seed).lower,
            **{word: found.lower for word, found in seen.items()},
        }
    single = Architecture((3, 1), (2,), 3)
    for word in ("probabilities", "decisions"):
        found = certify(single, seed=seed, readout=word)
        cases.append(equal(f"{single}: {word}", 0, found.lower))
    return Finding(
        f"{len(sizes)} networks: dimensions of what each readout shows by exact ranks, equal to "
        f"those of one output less; one output coordinate, where nothing is shown (seed {seed})",
        cases,
        {"dimensions": dimensions},
    )


CHECKS: dict[str, Check] = {
    "field-rank": rank_is_a_bound,
    "softmax-exact": formal_exponentials,
    "readouts": readouts,
}
