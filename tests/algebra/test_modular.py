"""Every primitive over a prime field, against float64 JAX at small whole numbers.

There a polynomial has whole values, exact in float64, and a rational function has values with small
denominators, which the floats determine. Both have residues that must come out.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import jaxprs_in_params

from neuromanifold.algebra.modular import over_prime_field
from neuromanifold.algebra.modular.coverage import COVERED, SUPPORTED
from neuromanifold.algebra.prime_field import PrimeField, ZeroResidueError

FIELD = PrimeField()
MASK = np.array([[True, False, True], [True, True, False]])


def points(*shapes, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.integers(-3, 4, shape) for shape in shapes]


def primitives(jaxpr):
    """All primitives of a jaxpr, also of those inside."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from primitives(inner)


def residues_of_floats(values, field=FIELD):
    """The residues of rational numbers with small denominators, from their floats."""
    values = np.asarray(values)
    near = [Fraction(x).limit_denominator(2000) for x in values.ravel().tolist()]
    assert all(
        abs(q - Fraction(x)) < 1e-11 for q, x in zip(near, values.ravel().tolist(), strict=True)
    )
    return np.array([field.from_fraction(q) for q in near]).reshape(values.shape)


def assert_agrees(f, *integers, field=FIELD):
    modular = over_prime_field(f, *(np.zeros(x.shape) for x in integers))
    found = modular(field, *(field.from_integers(x) for x in integers))
    with jax.enable_x64(True):
        expected = f(*(jnp.asarray(x, dtype=jnp.float64) for x in integers))
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(a, np.ndarray)
        assert a.dtype == np.float64
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, residues_of_floats(b, field))
    return modular


def grid(x, y):
    return jax.lax.scan(lambda c, row: (c * row + y, c + row), x[0], x)


@jax.custom_jvp
def squared(x):
    return x * x


squared.defjvps(lambda dx, _, x: 2 * x * dx)


@jax.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, u: (3 * x**2 * u,))


CASES = {
    "abs": (lambda x: jnp.abs(jnp.fft.fft(x)) ** 2, (4,)),
    "complex": (lambda x: (jax.lax.complex(x, 2 * x) ** 2).imag, (3,)),
    "conj": (lambda x: (jnp.fft.fft(x).conj() * (1 + 1j)).real, (4,)),
    "fft": (lambda x: jnp.fft.ifft2(jnp.fft.fft2(x) ** 2).real, (2, 4)),
    "imag": (lambda x: jnp.fft.rfft(x).imag, (4,)),
    "real": (lambda x: jnp.fft.ifft(x).real, (4,)),
    "add": (lambda x: x + x[::-1], (3,)),
    "add_any": (jax.grad(lambda x: jnp.sum(x * x[::-1] + x**3)), (4,)),
    "broadcast_in_dim": (lambda x: jnp.broadcast_to(x[:, None], (3, 4)), (3,)),
    "concatenate": (lambda x: jnp.concatenate([x, 2 * x, jnp.ones((1, 3))]), (2, 3)),
    "cond": (lambda x: jax.lax.cond(True, lambda y: y * y, lambda y: 3 * y, x), (3,)),
    "convert_element_type": (lambda x: x * jnp.asarray(MASK[0]), (3,)),
    "conv_general_dilated": (
        lambda x: jax.lax.conv_general_dilated(x, x[:, :, :2, 1:], (1, 2), "SAME"),
        (2, 2, 4, 5),
    ),
    "copy": (lambda x: jnp.copy(x) + 1, (3,)),
    "cumprod": (lambda x: jnp.cumprod(x, axis=1), (2, 5)),
    "cumsum": (lambda x: jnp.cumsum(x, axis=1), (2, 5)),
    "custom_jvp_call": (squared, (3,)),
    "custom_vjp_call": (cubed, (3,)),
    "custom_linear_solve": (lambda x: jnp.linalg.solve(x + 9 * jnp.eye(2), x[0]), (2, 2)),
    "div": (lambda x: x[0] / (x[1] ** 2 + 7), (2, 3)),
    "dot_general": (lambda x: jnp.einsum("bij,bkj->bik", x, x), (4, 2, 3)),
    "dynamic_slice": (lambda x: jax.lax.dynamic_slice(x, (1, 0), (1, 2)), (2, 3)),
    "dynamic_update_slice": (
        lambda x: jax.lax.dynamic_update_slice(x, 2 * x[:1, :2], (1, 1)),
        (2, 3),
    ),
    "eq": (lambda x: jnp.where(jnp.arange(3) == 1, x, 2 * x), (3,)),
    "gather": (lambda x: x[:, np.array([2, 0, 0, 1])], (2, 3)),
    "ge": (lambda x: jnp.tril(x), (3, 3)),
    "gt": (lambda x: jnp.where(jnp.arange(3) > 1, x, 2 * x), (3,)),
    "integer_pow": (lambda x: x**5, (3,)),
    "iota": (lambda x: x * jnp.arange(3), (3,)),
    "is_finite": (lambda x: jnp.where(jnp.isfinite(x), x, 0), (3,)),
    "jit": (lambda x: jax.jit(lambda y: y * y + 1)(x), (3,)),
    "le": (lambda x: jnp.where(jnp.arange(3) <= 1, x, 2 * x), (3,)),
    "lt": (lambda x: jnp.where(jnp.arange(3) < 1, x, 2 * x), (3,)),
    "lu": (lambda x: jax.lax.linalg.lu(x + 9 * jnp.eye(2))[0], (2, 2)),
    "mul": (lambda x: 3 * x * x[::-1], (3,)),
    "neg": (lambda x: -x, (3,)),
    "name": (lambda x: checkpoint_name(x + 1, "activations"), (3,)),
    "optimization_barrier": (lambda x: jax.lax.optimization_barrier((x + 1, 2 * x)), (3,)),
    "pad": (lambda x: jax.lax.pad(x, 5.0, ((1, 2, 0), (-1, 1, 2))), (2, 3)),
    "platform_index": (lambda x: jnp.diagonal(x), (3, 3)),
    "pow": (lambda x: jnp.power(x, 3.0), (3,)),
    "reduce_max": (lambda x: x - jax.lax.stop_gradient(jnp.max(0 * x, axis=0)), (2, 3)),
    "reduce_precision": (lambda x: jax.lax.reduce_precision(x, 8, 7), (3,)),
    "reduce_prod": (lambda x: jnp.prod(x, axis=1), (2, 3)),
    "reduce_sum": (lambda x: jnp.sum(x, axis=(0, 2)), (2, 3, 4)),
    "reduce_window_sum": (
        lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (1, 2), "SAME"),
        (3, 4),
    ),
    "remat2": (jax.grad(jax.checkpoint(lambda x: jnp.sum(x**3))), (3,)),
    "reshape": (lambda x: x.reshape(3, 2), (2, 3)),
    "rev": (lambda x: jnp.flip(x, 0), (2, 3)),
    "scan": (lambda x: grid(x, x[1]), (3, 2)),
    "scatter": (lambda x: x.at[np.array([2, 0])].set(x[:2] * 5), (3,)),
    "scatter-add": (lambda x: x.at[np.array([1, 1, 2])].add(x), (3,)),
    "scatter-mul": (lambda x: x.at[np.array([1, 1, 2, 9])].multiply(x), (4,)),
    "scatter-sub": (lambda x: x.at[np.array([1, 1, 9])].subtract(x), (3,)),
    "select_n": (lambda x: jnp.where(MASK, x, -x), (2, 3)),
    "slice": (lambda x: x[:, 1:4:2], (2, 5)),
    "split": (lambda x: jnp.split(x, [1, 3], axis=1), (2, 5)),
    "square": (lambda x: jnp.square(x), (3,)),
    "squeeze": (lambda x: jnp.squeeze(x, 1), (2, 1)),
    "stack": (lambda x: jnp.stack([x, x + 1], axis=1), (2, 3)),
    "stop_gradient": (lambda x: jax.lax.stop_gradient(x), (3,)),
    "sub": (lambda x: x - x[::-1] - 1, (3,)),
    "tile": (lambda x: jnp.tile(x, (2, 1, 3)), (2, 3)),
    "transpose": (lambda x: jnp.transpose(x, (2, 0, 1)), (2, 3, 4)),
    "triangular_solve": (
        lambda x: jax.lax.linalg.triangular_solve(x + 9 * jnp.eye(2), x, lower=True),
        (2, 2),
    ),
    "unstack": (lambda x: jax.numpy.unstack(x, axis=1), (2, 3)),
    "while": (
        lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1],
        (3,),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_primitive_agrees_with_whole_numbers(name):
    f, shape = CASES[name]
    assert_agrees(f, *points(shape))
    assert name in set(primitives(jax.make_jaxpr(f)(jnp.zeros(shape)).jaxpr))


def test_every_rule_has_a_case():
    masks = {"max", "min", "ne"}
    formal = COVERED["formal functions, and what is rational in them"]  # tested by themselves
    assert set(CASES) | masks | formal == SUPPORTED


@pytest.mark.parametrize(
    "padding", [(0, 0, 0), (-2, 0, 1), (0, -3, 2), (3, -1, 1), (-4, 2, 0), (-1, -7, 2), (1, 1, 3)]
)
def test_padding_of_every_sign_agrees_with_jax(padding):
    assert_agrees(lambda x: jax.lax.pad(x, 5.0, (padding,)), *points((4,)))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0)])
def test_scalars_and_empty_arrays_are_arrays_too(shape):
    assert_agrees(lambda x: (x * x + 1, -x, jnp.sum(x), x**3, x / 7), *points(shape))


@pytest.mark.parametrize(
    "subscripts",
    ["ij,jk->ik", "ij,kj->ki", "bij,jk->bik", "ij,bjk->bik", "bhi,bhj->bhij", "i,i->", "i,j->ij",
     "ijk,ljk->il", "hij,bjk->bhik", "bij,bij->b"],
)  # fmt: skip
def test_einsum_agrees_with_whole_numbers(subscripts):
    sizes = {letter: 2 + i for i, letter in enumerate("bhijkl")}
    operands = subscripts.split("->")[0].split(",")
    shapes = [tuple(sizes[letter] for letter in operand) for operand in operands]
    assert_agrees(lambda x, y: jnp.einsum(subscripts, x, y), *points(*shapes))


def test_reversed_loops_and_sums_run_backwards():
    step = lambda c, row: (c * row + 1, c - row)  # noqa: E731
    assert_agrees(lambda x: jax.lax.scan(step, x[0], x, reverse=True), *points((3, 2)))
    assert_agrees(lambda x: jax.lax.cumsum(x, axis=0, reverse=True), *points((3, 2)))


def test_a_loop_counter_may_be_an_index():
    f = lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * x[i] + i, x)  # noqa: E731
    assert_agrees(f, *points((3,)))


def test_negative_powers_invert():
    (x,) = points((5,))
    assert_agrees(lambda x: (x**2 + 1) ** -2, x)


def test_division_by_zero_asks_for_another_point():
    quotient = over_prime_field(lambda x, y: x / y, np.zeros(2), np.zeros(2))
    with pytest.raises(ZeroResidueError):
        quotient(FIELD, FIELD.from_integers([1, 2]), FIELD.from_integers([3, 0]))


def test_derivatives_of_nested_transformations_agree():
    f = lambda x: jnp.sum(jax.vmap(lambda r: jnp.dot(r, r) * r)(x) ** 2)  # noqa: E731
    x = points((3, 2))
    assert_agrees(jax.grad(f), *x)
    assert_agrees(jax.hessian(f), *x)
    assert_agrees(jax.jacfwd(jax.jit(jax.grad(jax.checkpoint(f)))), *x)
    assert_agrees(jax.grad(lambda x: jnp.sum(squared(x) * cubed(x))), *x)


def test_pytrees_go_in_and_come_out():
    f = lambda w: {"a": w["x"] @ w["y"], "b": (w["x"],)}  # noqa: E731
    x, y = points((2, 3), (3, 2))
    modular = over_prime_field(f, {"x": np.zeros((2, 3)), "y": jax.ShapeDtypeStruct((3, 2), float)})
    found = modular(FIELD, {"x": FIELD.from_integers(x), "y": FIELD.from_integers(y)})
    np.testing.assert_array_equal(found["a"], x @ y)
    np.testing.assert_array_equal(found["b"][0], x)


@pytest.mark.parametrize("prime", [3, 7, 251, 65537, 1048573, 8388593])
def test_every_prime_gives_the_same_polynomial(prime):
    field = PrimeField(prime)
    f = lambda x: (x @ x.T) ** 3 - jnp.cumsum(x @ x.T, 0)  # noqa: E731
    (x,) = points((3, 4))
    value = x.astype(object) @ x.T.astype(object)
    expected = field.from_integers(value**3 - np.cumsum(value, 0))
    found = over_prime_field(f, np.zeros((3, 4)))(field, field.from_integers(x))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("length", [1, 510, 511, 512, 1023, 3000])
def test_products_of_the_largest_residues_are_exact_at_every_length(length):
    h = (FIELD.modulus - 1) // 2
    signs = np.where(np.random.default_rng(length).random((2, length)) < 0.1, -1, 1)
    rows = h * signs
    product = over_prime_field(lambda x: x @ x.T, np.zeros((2, length)))
    exact = rows.astype(object) @ rows.T.astype(object)
    found = product(FIELD, FIELD.from_integers(rows))
    np.testing.assert_array_equal(found, FIELD.from_integers(exact))


def test_sums_of_the_largest_residues_are_exact():
    h, n = (FIELD.modulus - 1) // 2, 100_000
    f = lambda x: (jnp.sum(x), jnp.cumsum(x)[-1], x.at[jnp.zeros(n, int)].add(x)[0])  # noqa: E731
    found = over_prime_field(f, np.zeros(n))(FIELD, np.full(n, float(h)))
    assert [int(x) for x in found] == [int(FIELD.from_integers(k * h)) for k in (n, n, n + 1)]


def test_tracing_leaves_x64_off():
    over_prime_field(lambda x: x * x, np.zeros(3))
    assert jnp.ones(3).dtype == jnp.float32


def test_one_trace_serves_many_points_and_primes():
    square = over_prime_field(lambda x: x * x / 3, np.zeros(2))
    for prime in (101, 8388593):
        field = PrimeField(prime)
        for value in (6, 9):
            found = square(field, field.from_integers([value, 0]))
            assert found.tolist() == [float(field.from_integers(value**2 // 3)), 0.0]
