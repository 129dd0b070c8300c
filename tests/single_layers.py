"""Single layers whose A and V have given ranks."""

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.networks.weights import Weights


def architecture(d, d_out, a):
    return Architecture(widths=(d, d_out), ranks=(a,), tokens=2)


def layer(query, key, value, a=None):
    """The weights of one layer from matrices; rows of zeros bring Q and K up to a rows."""
    rows, d = query.shape
    a = rows if a is None else a
    Q, K = (np.concatenate([x, np.zeros((a - rows, d))]) for x in (query, key))
    tensors = {"query": Q[None], "key": K[None], "value": value[None]}
    return Weights.from_tensors(architecture(d, len(value), a), [tensors])


def integer_layer(d, d_out, a, rank_A, rank_V, seed, *, parallel=False):
    """Small integer weights with rank A and rank V as given, for all but few seeds."""
    generator = np.random.default_rng(seed)

    def integers(*shape):
        return (generator.integers(1, 9, shape) * generator.choice([-1, 1], shape)).astype(float)

    Q, K = integers(rank_A, d), integers(rank_A, d)
    rows = K[:1] if parallel else integers(rank_V, d)
    return layer(Q, K, integers(d_out, rank_V) @ rows, a)


def float_layer(d, d_out, a, rank_A, rank_V, seed, *, parallel=False):
    """Well conditioned floats with rank A and rank V as given, Q and K without zero rows."""
    generator = np.random.default_rng(seed)

    def frame(size, of):
        return np.linalg.qr(generator.standard_normal((of, size)))[0].T

    Q, K = frame(rank_A, d) * generator.uniform(0.5, 2, (rank_A, 1)), frame(rank_A, d)
    rows = K[:1] if parallel else frame(rank_V, d)
    V = (frame(rank_V, d_out).T * generator.uniform(0.5, 2, rank_V)) @ rows
    C = frame(a, a) * generator.uniform(0.5, 2, (a, 1))
    pad = np.zeros((a - rank_A, d))
    K_all = C @ np.concatenate([K, pad])
    Q_all = np.linalg.solve(C.T, np.concatenate([Q, pad]))
    return layer(Q_all, K_all, V)
