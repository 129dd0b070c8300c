"""Checks of one layer as products of linear forms, and of its slice that is Whitney's umbrella."""

from itertools import product

import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.geometry.segre import evaluate_table, product_table, read_table, table_of
from neuromanifold.geometry.slices import WHITNEY_UMBRELLA
from neuromanifold.paper.checks.evaluation import integers, output
from neuromanifold.paper.checks.trial import Trial, check


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
        (part,) = W.layers
        A, V = part.attention_matrices()[0], part.value_maps()[0]
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
