"""Exact and float ranks of the Jacobian of a function, for tests of formal functions."""

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.modular import (
    Source,
    obligations,
    relations_of,
    rows_over_prime_field,
)
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.algebra.rank import rank

FIELD = PrimeField()


def exact_rank(f, weights, sample, *, seed=3, field=FIELD):
    """The rank over the prime field, and the obligations of its program by name."""
    parameters = sum(np.size(leaf) for leaf in jax.tree.leaves(weights))
    rows = rows_over_prime_field(f, weights, sample, parameters + 8)
    relations = relations_of(rows, field)
    source = Source(field, seed, "test")
    checks = {check.name: check for check in obligations(rows, source, relations)}
    point = source.settled(rows, 77, relations)
    values = rows(field, *point.arguments, elements=point.elements)
    matrix = [leaf.reshape(parameters + 8, -1) for leaf in jax.tree.leaves(values)]
    return rank(np.concatenate(matrix, axis=1), field), checks


def float_rank(f, weights, sample, *, inputs=60, gap=1e5, seed=0):
    """The rank in float64 at positive weights and inputs, once its gap is seen to be clear."""
    generator = np.random.default_rng(seed)

    def draw(shape):
        return jnp.asarray(generator.uniform(0.3, 1.2, shape))

    with jax.enable_x64(True):
        at = jax.tree.map(lambda leaf: draw(np.shape(leaf)), weights)
        points = jax.tree.map(lambda leaf: draw((inputs, *np.shape(leaf))), sample)
        jacobian = jax.vmap(jax.jacrev(f), in_axes=(None, 0))(at, points)
        columns = [
            np.asarray(leaf).reshape(-1, max(1, int(np.prod(np.shape(weight)))))
            for leaf, weight in zip(
                jax.tree.leaves(jacobian), jax.tree.leaves(weights), strict=True
            )
        ]
    singular = np.linalg.svd(np.concatenate(columns, axis=1), compute_uv=False)
    found = int(np.sum(singular > 1e-10 * singular[0]))
    assert found == singular.size or singular[found - 1] > gap * singular[found]
    return found
