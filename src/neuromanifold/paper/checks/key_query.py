"""Check of the factors of the attention matrix."""

from itertools import product

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank, right_inverse
from neuromanifold.geometry.differential import factor_differential
from neuromanifold.geometry.layer import Factors
from neuromanifold.paper.checks.trial import Trial, check


@check("lemma-3.1")
def factors_of_attention(trial: Trial) -> str:
    """Factors of A differ by exactly one C, and such A have dimension 2ad − a² (lemma-3.1).

    Over GF(p): K' = C K and Q' = C^{-T} Q are made with a random C, and C is found again from K and
    K' alone. It is unique because the rows of K are independent. The dimension is the rank of the
    differential of (K, Q) ↦ KᵀQ.
    """
    field, seed = PrimeField(), trial.seed
    sizes = [(d, a) for d, a in product(range(1, 4 if trial.quick else 7), repeat=2) if a <= d]
    for d, a in sizes:
        K, Q, C = (
            field.random(seed, f"{name} {d} {a}", shape)
            for name, shape in (("key", (a, d)), ("query", (a, d)), ("change", (a, a)))
        )
        K_new = field.matmul(C, K)
        Q_new = field.matmul(right_inverse(C, field).T, Q)
        same = field.reduce(field.matmul(K_new.T, Q_new) - field.matmul(K.T, Q))
        trial.equal(f"d = {d}, a = {a}: the same A", 0 * same, same)
        found = field.matmul(K_new, right_inverse(K, field))
        trial.equal(f"d = {d}, a = {a}: C from K and K'", C, found)
        moved = factor_differential(Factors(Q, K, np.zeros((1, d)), None))[: d * d, : 2 * a * d]
        dimension = rank(np.ascontiguousarray(moved), field)
        trial.equal(f"d = {d}, a = {a}: dimension", 2 * a * d - a * a, dimension)
    # Where K has rank 1 and a = 2, C ↦ C K has a kernel: entries of C that K does not fix.
    row = field.random(seed, "beyond", (1, 3))
    beyond = 2 * (2 - rank(np.concatenate([row, row]), field))
    trial.equal("C for rank A < a: not unique", True, beyond > 0)
    trial.numbers["free entries of C at rank A = 1, a = 2"] = beyond
    return (
        f"{len(sizes)} sizes a ≤ d over GF({field.modulus}), exactly (seed {seed}); and one A of "
        "rank 1 < a = 2, where C is not unique"
    )
