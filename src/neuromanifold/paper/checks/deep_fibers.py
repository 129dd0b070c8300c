"""Check of the fibers of deep lightning networks in virtual weights."""

from fractions import Fraction

import jax
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import certify_function
from neuromanifold.networks.virtual import VirtualWeights, evaluate_virtual, virtual_weights
from neuromanifold.networks.weights import Weights
from neuromanifold.paper.checks.evaluation import DIFFERENT, distance, normal_input
from neuromanifold.paper.checks.trial import Trial, check
from neuromanifold.paper.checks.virtual_weights import value
from neuromanifold.recovery.oracle import exact_network_oracle
from neuromanifold.recovery.recover import recover

_RECOVERED = [Architecture((2, 2, 2), (2, 2), 3), Architecture((3, 2, 2), (2, 2), 3)]
_DIFFERENTIALS = [(2, 2, 2), (3, 2, 2), (2, 1, 3), (3, 3, 2), (2, 2, 3)]
"""d_0, d_l and depth."""


@check("thm-3.7")
def rescalings_only(trial: Trial) -> str:
    """For t ≥ 3, rank M_i ≥ 2, M_i not skew and L ≠ 0 the fiber is the rescalings (thm-3.7).

    From the function alone, over the rational numbers, (M, L) comes back up to scale; and for
    (M, L) with full forms, the differential of (M, L) ↦ φ has a kernel of dimension l, over GF(p).
    """
    networks = trial.some(_RECOVERED, 1)
    for network in networks:
        _recovered(trial, network)
    kernels = {}
    for d, d_out, depth in trial.some(_DIFFERENTIALS, 2):
        network = Architecture((d,) * depth + (d_out,), (d,) * depth, 3)
        found = certify_virtual(network, trial.seed)
        name = f"d_0 = {d}, d_l = {d_out}, l = {depth}"
        kernels[name] = found.parameters - found.lower
        trial.equal(f"kernel at {name}", depth, kernels[name])
    trial.numbers["dimensions of the kernel of the differential"] = kernels
    _zero_linear_map(trial)
    return (
        f"{len(networks)} networks recovered from their functions over the rational "
        f"numbers; kernels of {len(kernels)} differentials over GF(p), exactly (seed {trial.seed})"
    )


def _recovered(trial: Trial, network: Architecture) -> None:
    """(M, L) of the weights found from the exact black box, against the true ones."""
    generator = np.random.default_rng((trial.seed, 21))
    W = Weights.made(network, lambda _, shape: generator.integers(-3, 4, shape))
    found = recover(exact_network_oracle(W), network, seed=trial.seed)
    if found.weights is None:
        trial.case(f"{network}: recovered", found.reason)
        return
    true, back = _exact_virtual(W), _exact_virtual(found.weights)
    names = [*(f"M_{i + 1}" for i in range(network.depth)), "L"]
    for name, first, second in zip(names, true, back, strict=True):
        trial.equal(f"{network}: {name} up to scale", True, _proportional(first, second))


def _exact_virtual(weights: Weights) -> list[np.ndarray]:
    """M_1, …, M_l, L in rational numbers (eq-8)."""
    found = virtual_weights(jax.tree.map(np.vectorize(Fraction, otypes=[object]), weights))
    return [np.asarray(part) for part in (*found.forms, found.linear)]


def _proportional(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two exact matrices, not zero, are multiples of each other."""
    place = np.flatnonzero(first.ravel())[0]
    scale = second.ravel()[place] / first.ravel()[place]
    return bool(scale != 0 and np.array_equal(scale * first, second))


def certify_virtual(network: Architecture, seed: int) -> Certificate:
    """The rank of (M, L) ↦ φ at random (M, L) over GF(p), forms of the input width."""
    d = network.widths[0]
    forms = tuple(np.zeros((d, d)) for _ in network.ranks)
    weights = VirtualWeights(forms, np.zeros((network.widths[-1], d)), network)
    X = np.zeros((d, network.tokens))
    return certify_function(evaluate_virtual, weights, X, seed=seed, name="virtual weights")


def _zero_linear_map(trial: Trial) -> None:
    """L = 0: two (M, 0) with the zero function that are no rescalings of each other."""
    network = Architecture((2, 2, 2), (2, 2), 3)
    M, other = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [3.0, 1.0]])
    zero = np.zeros((2, 2))
    X = normal_input(network, trial.seed)
    values = [value(VirtualWeights((first, M), zero, network), X) for first in (M, other)]
    both_zero = not any(np.any(one) for one in values)
    apart = distance(M / np.linalg.norm(M), other / np.linalg.norm(other))
    trial.refute(
        "L = 0, l = 2, t = 3, M_2 = [[1, 2], [0, 1]], and M_1 = [[1, 2], [0, 1]] or [[1, 0], "
        "[3, 1]]: all of rank 2, none skew, both functions zero, and the two are no rescalings of "
        "each other. So L ≠ 0 is needed.",
        both_zero and apart > DIFFERENT,
        {"largest output": max(float(np.abs(one).max()) for one in values)},
    )
