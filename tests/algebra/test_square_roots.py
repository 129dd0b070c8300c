"""Points at which all radicands are squares, found token by token and row by row."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from formal_ranks import FIELD, exact_rank, float_rank
from neuromanifold.algebra.modular import Source, relations_of, rows_over_prime_field
from neuromanifold.algebra.modular.square_roots.radicands import Free
from neuromanifold.algebra.modular.square_roots.roots import square_root
from neuromanifold.errors import NotCoveredError


def is_square(x, field):
    return square_root(x, field) > 0


def rms(x):
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1)


def two_norms_a_token(w, x):
    """Three radicands a token with nothing free between them: 2^18 for six tokens at once."""
    n = rms(x) * w["gain"]
    return rms(n @ w["query"]) + rms(n @ w["key"]) * w["scale"]


TWO_NORMS = {
    "gain": np.zeros(3),
    "query": np.zeros((3, 2)),
    "key": np.zeros((3, 2)),
    "scale": np.zeros(2),
}


def class_token(w, x):
    """The norm of a token of weights in one array with those of the inputs."""
    return w["v"] * rms(jnp.concatenate([w["token"][None], x * w["gain"]]))


CLASS_TOKEN = {"v": np.zeros((3, 2)), "token": np.zeros(2), "gain": np.zeros(2)}


@pytest.mark.parametrize(
    ("f", "weights", "sample", "roots"),
    [
        (two_norms_a_token, TWO_NORMS, np.zeros((6, 3)), 18),
        (class_token, CLASS_TOKEN, np.zeros((2, 2)), 3),
        (lambda w, x: rms(w["table"]) @ x + w["b"], {"table": np.zeros((9, 2)), "b": 0.0}, 2, 9),
    ],
)
def test_every_radicand_is_shown_and_the_rank_is_that_of_floats(f, weights, sample, roots):
    sample = np.zeros(sample) if isinstance(sample, int) else sample
    weights = jax.tree.map(np.asarray, weights)
    found, checks = exact_rank(f, weights, sample)
    assert found == float_rank(f, weights, sample)
    assert (checks["square roots"].columns, checks["square roots"].rank) == (roots, roots)


@pytest.mark.parametrize(
    ("f", "weights", "sample"),
    [
        (lambda w, x: w[0] * jnp.sum(jnp.sqrt(jnp.stack([w[1] ** 2, x]))), np.zeros(2), 0.0),
        (
            lambda w, x: jnp.sum(jnp.sqrt(jnp.stack([4 * w[0], w[0]])) * w) + jnp.sqrt(x),
            np.zeros(2),
            0.0,
        ),
        (lambda w, x: w[0] * jnp.sqrt(x[0] ** 2) + w[1] * jnp.sqrt(x[1]), np.zeros(2), np.zeros(2)),
    ],
)
def test_a_root_that_exists_already_is_told_beside_others(f, weights, sample):
    _, checks = exact_rank(f, weights, np.asarray(sample))
    assert checks["square roots"].columns - checks["square roots"].rank == 1


def test_a_root_of_weights_times_a_square_of_the_input_is_not_claimed():
    """√(w x²) is one root for all inputs, up to signs that are not free."""
    for seed in range(6):
        try:
            _, checks = exact_rank(
                lambda w, x: jnp.sqrt(w[0] * x**2) + w[1], np.zeros(2), np.zeros(()), seed=seed
            )
        except NotCoveredError:
            continue
        assert not checks["square roots"].met


@pytest.mark.parametrize("seed", range(4))
def test_radicands_of_later_norms_are_shown_together(seed):
    """The tokens of one norm change together with those of the one before, but are independent."""

    def f(w, x):
        n = rms(x)
        x = x + w[2] * jax.nn.softmax(w[0] * n @ n.T, axis=-1) @ n
        x = x + w[1] * jnp.tanh(w[3:8] * rms(x)[:, 0])[:, None]
        return rms(x)

    _, checks = exact_rank(f, np.zeros(40), np.zeros((5, 2)), seed=seed)
    assert (checks["square roots"].columns, checks["square roots"].rank) == (15, 15)


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_a_settled_point_has_square_radicands_only(batch):
    rows = rows_over_prime_field(two_norms_a_token, TWO_NORMS, np.zeros((2, 3)), batch)
    relations = relations_of(rows, FIELD)
    point = Source(FIELD, 1, "test").settled(rows, 0, relations)
    w, x, _ = point.arguments
    assert not point.moved
    powers = FIELD.reduce(np.sum(FIELD.multiply(x, x), axis=2))
    means = FIELD.multiply(powers, np.asarray(FIELD.from_fraction(Fraction(1, 3))))
    assert is_square(FIELD.reduce(means + 1), FIELD).all()
    assert np.isfinite(
        jax.tree.leaves(rows(FIELD, *point.arguments, elements=point.elements))[0]
    ).all()
    assert sorted(w) == sorted(TWO_NORMS)


def test_weights_are_drawn_again_row_by_row():
    """Twelve rows with a norm each: only rows whose radicand is no square are other ones."""
    table = {"table": np.zeros((12, 2)), "v": np.zeros(2)}
    rows = rows_over_prime_field(lambda w, x: rms(w["table"]) @ (w["v"] * x), table, np.zeros(2), 4)
    source = Source(FIELD, 2, "test")
    before = source.arguments(rows, 0)[0]
    point = source.settled(rows, 0, relations_of(rows, FIELD))
    after = point.arguments[0]["table"]
    half = np.asarray(FIELD.from_fraction(Fraction(1, 2)))

    def good(x):
        return is_square(
            FIELD.reduce(FIELD.multiply(FIELD.reduce(np.sum(x * x, 1)), half) + 1), FIELD
        )

    assert good(after).all()
    np.testing.assert_array_equal(np.any(before != after, axis=1), ~good(before))
    assert point.moved


def test_a_certificate_at_mended_weights_is_about_those_weights():
    """The tangent vector of the symmetry is the table: that of other weights is in no kernel."""

    def f(w, x):
        return w["table"] / jnp.sqrt(jnp.sum(w["table"] ** 2, axis=1, keepdims=True)) @ x

    def scaled(s, w):
        return {"table": w["table"] * (1 + s)}

    net = nm.network(f, {"table": np.zeros((6, 2))}, np.zeros(2), symmetries=[scaled], name="f")
    found = nm.certify(net, seed=4)
    assert found.lower_is_proved
    assert (found.attempt, found.lower, found.upper) == (0, 6, 11)
    assert nm.verify(found, net).agrees


def test_elements_made_of_others_change_with_them():
    """exp(2x) is exp(x)², and its root has to be looked at when exp(x) is drawn again."""

    def f(w, x):
        first = w[0] * jnp.sqrt(1 + x)
        return first + w[1] * jnp.sqrt(3 + jnp.exp(x)) + w[2] * jnp.sqrt(2 + jnp.exp(2 * x))

    found, checks = exact_rank(f, np.zeros(3), np.zeros(()))
    assert found == 3
    assert all(check.met for check in checks.values())


def test_too_many_roots_of_the_same_entries_are_refused():
    def f(w, x):
        return jnp.sum(w * jnp.sqrt(x + np.arange(1.0, 12.0)))

    with pytest.raises(NotCoveredError, match=r"11 square roots, with `sqrt` .* take fewer heads"):
        nm.certify(nm.network(f, np.zeros(11), np.zeros(()), name="roots"))


def counted_draws(monkeypatch):
    """A list that grows by one with every draw."""
    draws, fresh = [], Free.fresh
    monkeypatch.setattr(Free, "fresh", lambda self, atoms: draws.append(1) or fresh(self, atoms))
    return draws


@pytest.mark.parametrize("others", [0, 8])
def test_radicands_that_are_never_squares_together_are_refused(others, monkeypatch):
    """Three is no square mod p, so that x and 3x are none of them together."""
    draws = counted_draws(monkeypatch)
    three = next(n for n in range(2, 50) if not is_square(np.asarray(float(n)), FIELD))

    def f(w, x):
        roots = jnp.sqrt(x + np.arange(1.0 + others))
        return w["a"] @ roots + w["b"] * jnp.sqrt(three * x)

    weights = {"a": np.zeros(1 + others), "b": np.zeros(())}
    with pytest.raises(NotCoveredError, match="one of them may be a multiple of another"):
        nm.certify(nm.network(f, weights, np.zeros(()), name="roots"))
    assert len(draws) < 200  # the affine space of their characters is seen to miss zero


@pytest.mark.parametrize(
    ("radicand", "roots"),
    [
        (lambda w, _: w, 1),
        (lambda w, x: x - x + w, 0),
        (lambda w, x: w * x ** (FIELD.modulus - 1), 0),
    ],
)
def test_roots_of_weights_alone_are_read_off_the_program(radicand, roots):
    """x^(p−1) is 1 at every sample, and yet √(w x^(p−1)) is no root of weights alone."""
    net = nm.network(
        lambda w, x: w[0] * jnp.sqrt(radicand(w[1], x)) + w[2] * x, np.zeros(3), np.zeros(())
    )
    shown = next(o for o in nm.certify(net).obligations if o.name == "square roots")
    assert (shown.columns, shown.rank) == (1, roots)


def test_cells_in_which_a_root_is_one_of_weights_alone_are_passed_over():
    def f(w, x):
        return w[0] * jnp.sqrt(jnp.where(x > 0, w[1] ** 2 + 1, x**2 + 2)) + w[2] * x

    certificate = nm.certify(nm.network(f, np.zeros(3), np.zeros(())))
    assert (certificate.lower, certificate.readings.patterns) == (2, 1)
    assert certificate.readings.passed


def test_a_group_that_owns_nothing_useful_is_joined_to_the_one_before():
    """The second radicand owns y, which enters it as a square: only x can make it a square."""

    def f(w, x):
        return w[0] * jnp.sqrt(x[0] + 1) + w[1] * jnp.sqrt((x[0] + 2) * x[1] ** 2 + 0)

    _, checks = exact_rank(f, np.zeros(2), np.zeros(2))
    assert checks["square roots"].met


def test_draws_of_one_token_cost_what_one_token_costs(monkeypatch):
    draws = counted_draws(monkeypatch)
    rows = rows_over_prime_field(two_norms_a_token, TWO_NORMS, np.zeros((6, 3)), 16)
    Source(FIELD, 5, "test").settled(rows, 0, relations_of(rows, FIELD))
    assert len(draws) < 200  # 2^3 a token, 16 of them at once; 2^18 for all tokens together
