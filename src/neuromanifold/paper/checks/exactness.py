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
from neuromanifold.paper.checks.evaluation import distance, generic, integers, output
from neuromanifold.paper.checks.exact_dimensions import certified
from neuromanifold.paper.checks.trial import Trial, check

_PRIMES = (3, 5, 7, 1009, DEFAULT_PRIME)
_SECOND_PRIME = 8388587


@check("field-rank")
def rank_is_a_bound(trial: Trial) -> str:
    """Ranks mod p are at most those over Q; certificates stand a second look (field-rank)."""
    ranks: dict[str, dict[str, int]] = {}
    for d, d_out, a in trial.some([(2, 1, 2), (2, 2, 1), (3, 2, 2)], 1):
        layer = Architecture((d, d_out), (a,), 2)
        J = _integer_jacobian(layer, trial.seed)
        rational = int(fmpz_mat(J.tolist()).rank())
        found = {str(p): rank(PrimeField(p).from_integers(J), PrimeField(p)) for p in _PRIMES}
        for p, value in found.items():
            trial.at_most(f"{layer}: rank mod {p} and over the rationals", value, rational)
        trial.equal(f"{layer} mod {DEFAULT_PRIME}", rational, found[str(DEFAULT_PRIME)])
        ranks[layer.name] = {"over the rationals": rational, **found}
    trial.numbers["ranks"] = ranks
    networks = [Architecture((3, 2, 3), (2, 2), 3), Architecture((3, 3), (2,), 3, "softmax")]
    for network in networks:
        certificate = certified(network, trial.seed)
        trial.equal(f"{network}: naive twin and flint", True, verify(certificate).agrees)
        other = certify(network, seed=trial.seed + 1, prime=_SECOND_PRIME)
        trial.equal(f"{network}: another prime", certificate.lower, other.lower)
    return (
        f"ranks of {len(ranks)} integer Jacobians mod {', '.join(map(str, _PRIMES))} and over the "
        f"rationals (python-flint); {len(networks)} certificates recomputed by a naive twin and "
        f"with the prime {_SECOND_PRIME} (seed {trial.seed})"
    )


def _integer_jacobian(layer: Architecture, seed: int) -> np.ndarray:
    """A Jacobian of integers, at integer weights and inputs, with rows to spare."""
    W, _ = integers(layer, seed)
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


_SOFTMAX = [
    Architecture((3, 3), (2,), 3, "softmax"),
    Architecture((3, 2, 3), (2, 2), 3, "softmax"),
    Architecture((3, 3), (2,), 3, "softmax", heads=2),
    Architecture((3, 3, 3), (2, 2), 3, "softmax", mask="causal"),
    Architecture((2, 2, 2, 2), (2, 1, 2), 3, "softmax", temperature=0.5),
]


@check("softmax-exact")
def formal_exponentials(trial: Trial) -> str:
    """Formal exponentials for independent exponents; others are noticed (softmax-exact)."""
    networks = trial.some(_SOFTMAX, 2)
    columns = {}
    for network in networks:
        found = certified(network, trial.seed)
        proved = found.independence is not None and found.independence.met
        trial.equal(f"{network}: exponents independent", True, proved)
        trial.equal(f"{network}: float64 rank", found.lower, estimate(network).rank)
        columns[network.name] = found.independence and found.independence.columns
    opposite = _opposite_heads(trial.seed)
    special = certify(opposite.architecture, seed=trial.seed, weights=opposite)
    numeric = estimate(opposite.architecture, weights=opposite, seed=trial.seed)
    relations = special.independence.relations if special.independence else 0
    trial.equal("heads (A, V), (−A, V): relations between exponents", 2, relations)
    trial.equal("heads (A, V), (−A, V): rank over a basis", 12, special.lower)
    trial.equal("heads (A, V), (−A, V): float64 rank", 12, numeric.rank)
    trial.numbers |= {
        "independent exponents": columns,
        "dependent heads": {
            "relations": relations,
            "rank over a basis of exponents": special.rank,
            "true rank": numeric.rank,
        },
    }
    return (
        f"{len(networks)} softmax networks: the exponents' independence by a rank, and the "
        "dimension by float64 too; and heads (A, V), (−A, V), whose exponents depend on each "
        f"other (seed {trial.seed})"
    )


def _opposite_heads(seed: int) -> Weights:
    """Two heads (A, V) and (−A, V), d = t = 2: exponents f and −f."""
    (one,) = conditioned_weights(Architecture((2, 2), (2,), 2, "softmax"), seed).layers
    tensors = one.arrays()
    both = {name: np.concatenate([tensor, tensor]) for name, tensor in tensors.items()}
    both["key"] = np.concatenate([tensors["key"], -tensors["key"]])
    return Weights.from_tensors(Architecture((2, 2), (2,), 2, "softmax", heads=2), [both])


@check("readouts")
def readouts(trial: Trial) -> str:
    """Probabilities show differences of logits, decisions up to a constant (readouts)."""
    sizes = trial.some([((3, 3), (2,)), ((3, 2, 3), (2, 2)), ((2, 4), (1,))], 1)
    dimensions = {}
    for widths, ranks in sizes:
        network = Architecture(widths, ranks, 3)
        Y = output(*generic(network, trial.seed))
        P = np.asarray(probabilities(Y))
        logs = np.log(P[1:]) - np.log(P[:1])
        error = distance(logs, np.asarray(read_out(Y, "probabilities")))
        trial.close(f"{network}: differences from probabilities", error, 1e-4)
        shifted = np.asarray(probabilities(Y + 1.0))
        trial.close(f"{network}: a common shift", distance(P, shifted), 1e-5)
        less = Architecture((*widths[:-1], widths[-1] - 1), ranks, 3)
        narrower = certified(less, trial.seed).lower
        dimensions[network.name] = {"logits": certified(network, trial.seed).lower}
        for word, expected in (("probabilities", narrower), ("decisions", narrower - 1)):
            found = certify(network, seed=trial.seed, readout=word).lower
            trial.equal(f"{network}: {word}", expected, found)
            dimensions[network.name][word] = found
    single = Architecture((3, 1), (2,), 3)
    for word in ("probabilities", "decisions"):
        trial.equal(f"{single}: {word}", 0, certify(single, seed=trial.seed, readout=word).lower)
    trial.numbers["dimensions"] = dimensions
    return (
        f"{len(sizes)} networks: dimensions of what each readout shows by exact ranks, equal to "
        f"those of one output less; one output coordinate, where nothing is shown "
        f"(seed {trial.seed})"
    )
