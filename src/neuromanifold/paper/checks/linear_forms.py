"""Checks of one layer as forms: factors of A, products of linear forms, Whitney's umbrella."""

from itertools import product

import numpy as np

from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank, right_inverse
from neuromanifold.architecture import Architecture
from neuromanifold.geometry.differential import factor_differential
from neuromanifold.geometry.layer import Factors
from neuromanifold.geometry.segre import evaluate_table, product_table, read_table, table_of
from neuromanifold.geometry.slices import WHITNEY_UMBRELLA
from neuromanifold.paper.checks.evaluation import integers, output
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


@check("prop-a.5")
def products_of_linear_forms(trial: Trial) -> str:
    """φ is, linearly and both ways, the table of products α_m · ν_n (prop-a.5)."""
    sizes = trial.some([(2, 1, 2), (3, 2, 1), (2, 3, 2), (4, 2, 3)], 2)
    for d, d_out, a in sizes:
        layer = Architecture((d, d_out), (a,), 2)
        W, X = integers(layer, trial.seed)
        table = table_of(W)
        trial.equal(f"{layer}: from the table", output(W, X), evaluate_table(table, X))
        read = read_table(lambda Y, W=W: output(W, Y), d)
        trial.equal(f"{layer}: from the function", table, read)
        A, V = Factors.of(W).form, Factors.of(W).value_map
        for m, n in product(range(d), range(d_out)):
            expected = [
                A[i, m] * V[n, j] + (A[j, m] * V[n, i] if i != j else 0)
                for i in range(d)
                for j in range(i, d)
            ]
            trial.equal(f"{layer}: α_{m + 1} ν_{n + 1}", expected, table[m, n])
    return (
        f"{len(sizes)} layers with integer weights, exactly: the table from the weights, from "
        f"values of the function, and back (seed {trial.seed})"
    )


@check("whitney-umbrella")
def umbrella(trial: Trial) -> str:
    """x² − s y², b xy + c y² cut out c² = s b², singular on b = c = 0 (whitney-umbrella)."""
    steps = np.linspace(-1, 1, 5 if trial.quick else 9)
    trial.equal("equation", "-s*b^2 + c^2", WHITNEY_UMBRELLA.polynomial)
    inside = 0
    for s, b, c in product(steps, repeat=3):
        on_surface = c * c == s * b * b
        expected = on_surface and (s >= 0 or b != 0)
        found = WHITNEY_UMBRELLA.membership(np.array([s, b, c])).member
        trial.equal(f"(s, b, c) = ({s:g}, {b:g}, {c:g})", expected, found)
        inside += found
    for s in steps:
        point = WHITNEY_UMBRELLA.membership(np.array([s, 0.0, 0.0]))
        trial.equal(f"(s, 0, 0), s = {s:g}: in the closure", True, point.in_closure)
        trial.equal(f"(s, 0, 0), s = {s:g}: a member", s >= 0, point.member)
    roots = steps[steps >= 0]
    for root, b in product(roots, steps):
        table = product_table(np.array([[1.0, 0.0], [root, b]]), np.array([[1.0, -root]]))
        forms = WHITNEY_UMBRELLA.forms(np.array([root**2, b, -root * b]))
        trial.equal(f"weights at root {root:g}, b = {b:g}", forms, table[:, 0])
    trial.numbers |= {"equation": WHITNEY_UMBRELLA.polynomial, "points inside": inside}
    return (
        f"{len(steps) ** 3} points of a grid, {inside} of them in the neuromanifold; "
        f"{len(steps)} points of the singular line; {roots.size * steps.size} points with their "
        "weights written down"
    )
