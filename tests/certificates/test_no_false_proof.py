"""Functions with dependencies that are easily missed: what is proved is never more than is true."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import neuromanifold as nm
from neuromanifold.errors import NeuromanifoldError, NotCoveredError

MASK = np.array([True, False])
ONE = np.zeros(())
BASE = 1.2345678
BALANCE = np.full(9, 9.0)
LOW = -20000.0
LOFTY, LOFTY_SINGLE = 999999 / 999997, np.float32(97 / 99)
TRIPLED, TRIPLED_SINGLE = 999907 / 999983, np.float32(51 / 25)
NEAR, NEARER = np.float32(97 / 98), np.float32(98 / 99)
STEPS = np.diff(np.linspace(0, 1, 11))
GRID_SINGLE = np.linspace(0, 1, 11, dtype=np.float32)
HALF_LOW, HALF_HIGH = np.array([0.0, LOW]), np.array([0.0, -LOW])
PRIME = 8388593
NEARLY_ZERO = np.array([1.0, -0.9])
TENTH_AND_LOWEST = np.array([0.1, -np.inf])
QUARTER = jnp.asarray(np.pi / 2, jnp.bfloat16)


def vanishes(g):
    """One weight on a function that is zero, written so that this does not show, and one on x."""
    return lambda w, x: w[0] * g(x) + w[1] * jnp.sum(x)


def halved(g, dtype):
    """The same in half precision, in which constants have few bits."""
    return vanishes(lambda x: g(x.astype(dtype)))


def vanishes_on_weights(g):
    """The same for a function of a weight, which is seen by itself."""
    return lambda w, x: w[0] * g(w[1]) * x * x + w[1] * x


def chosen(truth):
    """The second weight is seen only where something that is always true is false."""
    return lambda w, x: jnp.where(truth(x), w[0] * x, w[0] * x + w[1])


def guarded(truth):
    """A weight on something that is never true."""
    return vanishes(lambda x: jnp.where(truth(x), 1.0, 0.0))


def grid_beside_steps(x):
    """Zero, of a grid of single precision and of the float differences of its points."""
    moved = GRID_SINGLE[1:] * x - GRID_SINGLE[:-1] * x
    return jnp.sum(np.arange(1, 11) * (np.diff(GRID_SINGLE) * x - moved))


def masked(f):
    return vanishes(lambda x: f(jnp.where(MASK, x, LOW))[1] - f(LOW + 0 * x))


def tiny(x):
    return jnp.exp(jnp.array([-500.0, -600.0]) - x * x)


def smallest(x):
    """Within a factor of ten of the least float that is not zero."""
    return jnp.exp(-707 - 0.1 * jnp.tanh(x))


def large(x):
    return jnp.exp(720 + jnp.tanh(x))


def huge(x):
    return jnp.exp(800 + jnp.tanh(x))


def far_from(x, g):
    """What is zero, behind a neuron that is off at inputs that are not large."""
    hidden = 1 - jnp.exp((x[1] + HALF_LOW) + (-x[1] - HALF_LOW))[1]
    return jax.nn.relu(x[0] - 12) * g(x[1]) * hidden


def wrapped(n):
    """Zero where whole numbers have 32 bits."""
    return (n * 65536 * 65536 % 7).astype(jnp.float32)


def four_bits(x):
    return x.astype(jnp.int4).astype(jnp.float32)


def byte(x, place):
    """The byte of a number at a place."""
    return lax.bitcast_convert_type(x, jnp.uint8)[place].astype(jnp.float32)


def small(x):
    return jax.nn.softmax(jnp.stack([0 * x, -1e4 - x * x, -1e4 - 1 - x * x]))


def largest_multiplier(x):
    """The multiplier of an elimination with pivots is that of the larger entry."""
    sizes = jnp.abs(x[::2])
    multiplier = lax.linalg.lu(x.reshape(2, 2))[0][1, 0]
    return jnp.abs(multiplier) - jnp.min(sizes) / jnp.max(sizes)


def determinants(x):
    sign, size = jnp.linalg.slogdet(x.reshape(2, 2))
    return sign * jnp.exp(size) - (x[0] * x[3] - x[1] * x[2])


# Each is one function of the inputs, up to scale: of two weights only one is seen.
ONE_DIMENSION = {
    "a power of two": (vanishes(lambda x: jnp.exp2(x + 1) - 2 * jnp.exp2(x)), ONE),
    "a power": (vanishes(lambda x: jnp.power(2.0, x + 1) - 2 * jnp.power(2.0, x)), ONE),
    "fourth roots": (vanishes(lambda x: (16 * x) ** 0.25 - 2 * x**0.25), ONE),
    "a fourth root of a square": (vanishes(lambda x: (x * x) ** 0.25 - jnp.sqrt(x)), ONE),
    "a base that is a float": (vanishes(lambda x: BASE ** (x + 1) - BASE * BASE**x), ONE),
    "base 6": (vanishes(lambda x: 6.0**x - 2.0**x * 3.0**x), ONE),
    "log2": (vanishes(lambda x: jnp.log2(2 * x) - jnp.log2(x) - 1), ONE),
    "log10": (vanishes(lambda x: jnp.log10(10 * x) - jnp.log10(x) - 1), ONE),
    "e": (vanishes(lambda x: jnp.exp(x + 1) - np.e * jnp.exp(x)), ONE),
    "e in bfloat16": (halved(lambda x: jnp.exp(x + 1) - np.e * jnp.exp(x), jnp.bfloat16), ONE),
    "e in float16, in cells": (
        halved(lambda x: jnp.abs(jnp.exp(x + 1) - np.e * jnp.exp(x)), jnp.float16),
        ONE,
    ),
    "a quarter turn in bfloat16, inside": (
        halved(jax.jit(lambda x: jnp.sin(x + QUARTER) - jnp.cos(x)), jnp.bfloat16),
        ONE,
    ),
    "log 3": (vanishes(lambda x: jnp.exp(x + np.log(3.0)) - 3 * jnp.exp(x)), ONE),
    "a quarter turn": (vanishes(lambda x: jnp.sin(x + np.pi / 2) - jnp.cos(x)), ONE),
    "a whole turn": (
        vanishes(lambda x: jnp.sin(2 * np.pi * (x + 1)) - jnp.sin(2 * np.pi * x)),
        ONE,
    ),
    "a quarter turn of a weight": (
        vanishes_on_weights(lambda v: jnp.sin(v + np.pi / 2) - jnp.cos(v)),
        ONE,
    ),
    "a power of two by a weight": (
        vanishes_on_weights(lambda v: jnp.exp2(v + 1) - 2 * jnp.exp2(v)),
        ONE,
    ),
    "e and its square": (
        vanishes_on_weights(lambda v: jnp.exp(v + 1) ** 2 - jnp.exp(v + 2) * jnp.exp(v)),
        ONE,
    ),
    "e to the prime": (
        vanishes_on_weights(
            lambda v: (
                lax.integer_pow(jnp.exp(v + 1), PRIME)
                - jnp.exp(v + PRIME) * lax.integer_pow(jnp.exp(v), PRIME - 1)
            )
        ),
        ONE,
    ),
    "log 2 and log 6": (
        vanishes_on_weights(
            lambda v: jnp.log(4 * v) - jnp.log(2 * v) - jnp.log(6 * v) + jnp.log(3 * v)
        ),
        ONE,
    ),
    "sin 1": (
        vanishes(lambda x: jnp.sin(x + 1) - np.sin(1) * jnp.cos(x) - np.cos(1) * jnp.sin(x)),
        ONE,
    ),
    "tanh 1": (
        vanishes(
            lambda x: jnp.tanh(x + 1) * (1 + np.tanh(1) * jnp.tanh(x)) - jnp.tanh(x) - np.tanh(1)
        ),
        ONE,
    ),
    "1 + e": (vanishes(lambda x: jnp.exp(x + 1) + jnp.exp(x) - (1 + np.e) * jnp.exp(x)), ONE),
    "e^0.12345": (vanishes(lambda x: jnp.exp(x + 0.12345) - np.exp(0.12345) * jnp.exp(x)), ONE),
    "e^36, a whole float": (vanishes(lambda x: jnp.exp(x + 36) - np.exp(36.0) * jnp.exp(x)), ONE),
    "e^0.6 in single precision": (
        vanishes(lambda x: jnp.exp(x + 0.6) - np.float32(np.exp(0.6)) * jnp.exp(x)),
        ONE,
    ),
    "a constant and its double": (
        vanishes(lambda x: 2 * (LOFTY * x * x) - (2 * LOFTY) * x * x),
        ONE,
    ),
    "a constant of single precision and its double": (
        vanishes(lambda x: 2 * (LOFTY_SINGLE * x * x) - (2 * LOFTY_SINGLE) * x * x),
        ONE,
    ),
    "a constant and its triple": (
        vanishes(lambda x: 3 * (TRIPLED * x * x) - (3 * TRIPLED) * x * x),
        ONE,
    ),
    "a constant of single precision and its triple": (
        vanishes(lambda x: 3 * (TRIPLED_SINGLE * x * x) - (3 * TRIPLED_SINGLE) * x * x),
        ONE,
    ),
    "a difference of constants": (
        vanishes(lambda x: (1 / 3 - 0.3) * x * x - (1 / 3 * x * x - 0.3 * x * x)),
        ONE,
    ),
    "a difference of constants of single precision": (
        vanishes(lambda x: (NEAR - NEARER) * x * x - (NEAR * x * x - NEARER * x * x)),
        ONE,
    ),
    "steps of a grid of single precision": (
        vanishes(lambda x: grid_beside_steps(x * x)),
        ONE,
    ),
    "constants and their difference inside a function of the inputs": (
        lambda w, x: (
            w[0]
            * (
                jnp.arctan(x[0] + (NEAR * x[1] - NEARER * x[1]))
                - jnp.arctan(x[0] + (NEAR - NEARER) * x[1])
            )
            + w[1] * jnp.arctan(x[0] + (NEAR - NEARER) * x[1])
        ),
        np.zeros(2),
    ),
    "masks that are subtracted and cancel": (
        lambda w, x: w[0] * (1 - jnp.exp((x[1] + HALF_LOW) - (x[1] + HALF_LOW)))[1] + w[1] * x[0],
        np.zeros(2),
    ),
    "a mask that is subtracted, and undone": (
        lambda w, x: w[0] * (1 - jnp.exp((x[1] - HALF_HIGH) + (HALF_HIGH - x[1])))[1] + w[1] * x[0],
        np.zeros(2),
    ),
    "shares of a quantile": (
        lambda w, x: jnp.quantile(w[0] + x, 0.3) - w[0] + w[1] * x[0],
        np.zeros(4),
    ),
    "steps of a grid": (vanishes(lambda x: jnp.sum(STEPS * x * x) - x * x), ONE),
    "steps of a grid as weights of exponentials": (
        lambda w, x: w[0] * (jnp.sum(STEPS * jnp.exp(x)) - jnp.exp(x)) + w[1] * jnp.exp(2 * x),
        ONE,
    ),
    "log 123": (vanishes(lambda x: jnp.log(123 * x) - jnp.log(x) - np.log(123)), ONE),
    "a constant in disguise": (vanishes(lambda x: jnp.sin(x - x + 0.7) - np.sin(0.7)), ONE),
    "too small for a float": (chosen(lambda x: jnp.exp(-1e4 * (1 + x * x)) > 0), ONE),
    "order of small ones": (chosen(lambda x: jnp.exp(-1e4 - x * x) > jnp.exp(-1e5 - x * x)), ONE),
    "small products": (chosen(lambda x: jnp.exp(-500 - x * x) * jnp.exp(-500 - x * x) > 0), ONE),
    "small quotients": (chosen(lambda x: jnp.exp(-500 - x * x) / jnp.exp(500 + x * x) > 0), ONE),
    "small shares": (chosen(lambda x: small(x)[1] > small(x)[2]), ONE),
    "small powers": (chosen(lambda x: jnp.power(0.5, 1e4 * (1 + x * x)) > 0), ONE),
    "small inner products": (chosen(lambda x: tiny(x) @ tiny(x) > 0), ONE),
    "small products of all": (chosen(lambda x: jnp.prod(tiny(x)) > 0), ONE),
    "small partial products": (chosen(lambda x: jnp.cumprod(tiny(x))[1] > 0), ONE),
    "small differences": (chosen(lambda x: smallest(x) - 0.9 * smallest(x) > 0), ONE),
    "small sums": (chosen(lambda x: jnp.sum(NEARLY_ZERO * smallest(x)) > 0), ONE),
    "too large for a float": (chosen(lambda x: large(x) * 1e-20 < 1e300), ONE),
    "large quotients": (chosen(lambda x: jnp.maximum(large(x) / 1e20, 1e300) <= 1e300), ONE),
    "the logarithm of what is too large": (
        chosen(lambda x: (jnp.log(huge(x)) - 800) ** 2 < 2500),
        ONE,
    ),
    "a bump of what is too large": (
        chosen(lambda x: 1 / (1 + (jnp.log(huge(x)) - 800) ** 2) > 0.4),
        ONE,
    ),
    "the logarithm of what is too small": (
        chosen(lambda x: jnp.exp(-((jnp.log(1 / huge(x)) + 800) ** 2)) > 0.3),
        ONE,
    ),
    "the logarithm of what is too small, and scaled": (
        chosen(lambda x: (jnp.log(jnp.full(9, 1e30) @ (1e-30 / huge(x) / BALANCE)) + 800) ** 2 < 9),
        ONE,
    ),
    "the reciprocal of what is too small": (
        chosen(lambda x: (jnp.log(1 / jnp.exp(-800 + jnp.tanh(x))) - 800) ** 2 < 2500),
        ONE,
    ),
    "a root of what is too large": (
        chosen(lambda x: (huge(x) ** 0.001 / np.exp(0.8) - 1) ** 2 < 0.1),
        ONE,
    ),
    "a sum of many that are too small": (
        chosen(lambda x: jnp.log(lax.fori_loop(0, 1200, lambda _, h: h + h, 1 / huge(x))) < 40),
        ONE,
    ),
    "a half, rounded away from zero": (
        vanishes(lambda x: 1 - jnp.abs(lax.round(jnp.where(x > 0, 0.5, -0.5)))),
        ONE,
    ),
    "a low number, raised": (masked(lambda x: jnp.exp(x - LOW)), ONE),
    "a low number, scaled": (masked(lambda x: jnp.exp(x / 20000.0)), ONE),
    "a low number, scaled down": (masked(lambda x: jnp.exp(x * 1e-9)), ONE),
    "a low number in tanh": (masked(lambda x: jnp.tanh(x / 20000.0)), ONE),
    "a low number, on a high variable": (
        vanishes(lambda x: jnp.exp((x + 20000.0) + HALF_LOW)[1] - jnp.exp(x)),
        ONE,
    ),
    "a low number, on a high multiple": (
        vanishes(lambda x: jnp.exp(20000.0 * (1 + x) + HALF_LOW)[1] - jnp.exp(20000.0 * x)),
        ONE,
    ),
    "shares beside a low number": (
        vanishes(
            lambda x: (
                jax.nn.softmax(jnp.stack([x, 20000.0 + 2 * x]) + HALF_LOW)[1]
                - jax.nn.softmax(jnp.stack([x, 2 * x]))[1]
            )
        ),
        ONE,
    ),
    "two low numbers that cancel": (
        vanishes(lambda x: (jnp.exp(x + x * x) - jnp.exp((x + HALF_LOW) + (x * x - HALF_LOW)))[1]),
        ONE,
    ),
    "a low number that cancels beside a large value": (
        lambda w, x: jnp.stack(
            [
                w[1] * jnp.exp(x**2 + 40.0),
                w[0] * (jnp.exp(x + x * x) - jnp.exp((x + HALF_LOW) + (x * x - HALF_LOW)))[1],
            ]
        ),
        ONE,
    ),
    "a low number that is taken away again": (
        lambda w, x: w[0] * (1 - jnp.exp((x[1] + HALF_LOW) + (-x[1] - HALF_LOW)))[1] + w[1] * x[0],
        np.zeros(2),
    ),
    "a low number that cancels far from the origin": (
        lambda w, x: w[0] * far_from(x, lambda y: y) + w[1] * x[0],
        np.zeros(2),
    ),
    "a low number that cancels far from the origin, at a logarithm": (
        lambda w, x: w[0] * far_from(x, lambda _: jnp.log(x[0] - 11)) + w[1] * x[0],
        np.zeros(2),
    ),
    "a scalar of 33 bits": (guarded(lambda _: jnp.asarray(np.array(2**33 + 1)) > 5), ONE),
    "a term that a sum loses": (
        chosen(lambda x: jnp.sum(jnp.stack([1 + 0 * x, jnp.exp(-50 - x * x), -1 + 0 * x])) > 0),
        ONE,
    ),
    "a tenth beside minus infinity": (
        chosen(lambda x: ((x + TENTH_AND_LOWEST)[0] - x) * 10 <= 1),
        ONE,
    ),
    "a remainder beyond floats": (chosen(lambda x: lax.rem(x, 1e-20) < 1e-20), ONE),
    "bits of whole numbers": (
        lambda w, x: w[0] * x[0] + w[1] * (lax.population_count(jnp.argmax(x) - 1000) > 40),
        np.zeros(4),
    ),
    "pivots": (vanishes(largest_multiplier), np.zeros(4)),
    "signs of determinants": (vanishes(determinants), np.zeros(4)),
    "cummax": (vanishes(lambda x: lax.cummax(x)[2] - jnp.max(x)), np.zeros(3)),
    "cummin": (vanishes(lambda x: lax.cummin(x, reverse=True)[0] - jnp.min(x)), np.zeros(3)),
    "cumlogsumexp": (
        vanishes(lambda x: lax.cumlogsumexp(x)[2] - jax.nn.logsumexp(x)),
        np.zeros(3),
    ),
    "hypot": (vanishes(lambda x: jnp.hypot(*x) - jnp.sqrt(jnp.sum(x * x))), np.zeros(2)),
    "a guard of what is infinite": (guarded(lambda x: jnp.isfinite(1 / (x - x))), ONE),
    "a guard of what has no value": (guarded(lambda x: jnp.isfinite(jnp.log(-1 - x * x))), ONE),
    "a guard of minus infinity": (guarded(lambda x: jnp.isfinite(jnp.log(x - x))), ONE),
    "a comparison with minus infinity": (guarded(lambda x: jnp.log(x - x) > -jnp.inf), ONE),
    "a comparison with infinity": (guarded(lambda x: 1 / (x - x) < jnp.inf), ONE),
    "a guard beside a branch": (
        guarded(lambda x: jnp.isfinite(jnp.sqrt(-1 - jnp.abs(x)))),
        ONE,
    ),
    "whole parts of 32 bits": (
        lambda w, x: w[0] * x + w[1] * wrapped(jnp.floor(x).astype(int)),
        ONE,
    ),
    "counts of 32 bits": (lambda w, x: w[0] * x[0] + w[1] * wrapped(jnp.sum(x > 0)), np.zeros(4)),
    "constants of 32 bits": (
        lambda w, x: w[0] * x[0] + w[1] * wrapped(jnp.arange(4)) @ x**2,
        np.zeros(4),
    ),
    "the end of 8 bits": (
        lambda w, x: w[0] * x + w[1] * x**2 * ((300.7 * jnp.arange(2)).astype(jnp.int8)[1] - 127),
        ONE,
    ),
    "a number that 4 bits do not hold": (
        lambda w, x: w[0] * x + w[1] * x**2 * (four_bits(5 * jnp.arange(3.0))[2] - 7),
        ONE,
    ),
    "a sum of 8 bits": (
        lambda w, x: w[0] * x + w[1] * x**2 * jnp.sum(jnp.full(4, 64, jnp.uint8), dtype=jnp.uint8),
        ONE,
    ),
    "bytes of a number of single precision": (
        lambda w, x: w[0] * x + w[1] * x**2 * (byte(np.ones((), np.float32), 3) - 63),
        ONE,
    ),
    "bytes of a number of JAX's precision": (
        lambda w, x: w[0] * x + w[1] * x**2 * (byte(jnp.ones(()), 3) - 63),
        ONE,
    ),
    "bits in common": (
        lambda w, x: w[0] * x + w[1] * x**2 * jnp.bitwise_and.reduce(jnp.arange(1, 3)),
        ONE,
    ),
    "a number that is none of a case": (
        lambda w, x: lax.select_n(jnp.floor(3 + x * x).astype("int32"), w[0] * x, w[1] * x),
        ONE,
    ),
    "a constant that is the number of no case": (
        lambda w, x: (
            w[0] * x - lax.select_n(jnp.full((), 5, "int32"), 0 * x, w[0] * x) + w[1] * x * x
        ),
        ONE,
    ),
    "whole numbers of 32 bits": (
        lambda w, t: w[0] + w[1] * (t * 65536 * 65536 % 7).astype(jnp.float32),
        np.int64(5),
    ),
}


@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_a_hidden_dependency_is_no_dimension(name):
    f, x = ONE_DIMENSION[name]
    try:
        certificate = nm.certify(nm.network(f, np.zeros(2), x))
    except NeuromanifoldError:
        return
    assert certificate.lower <= 1, certificate


def test_constants_that_are_read_in_two_ways_determine_nothing_more():
    """In floats nothing of the first weight is seen, nor in real numbers."""
    net = nm.network(ONE_DIMENSION["a difference of constants"][0], np.zeros(2), ONE)
    certificate = nm.certify(net)
    assert nm.verify(certificate, net).agrees
    assert nm.identifiable(net, lambda w: w[0]).answer == "no"
    assert nm.identifiable(net, lambda w: w[1]).answer == "yes"


def test_masks_that_inputs_choose_and_that_are_added_are_covered():
    def f(w, x):
        return jax.nn.softmax(w @ x["x"] + jnp.where(x["m"], 0.0, -1e9))

    certificate = nm.certify(
        nm.network(f, np.zeros((3, 3)), {"m": np.ones(3, bool), "x": np.zeros(3)})
    )
    assert certificate.lower == 6


def test_what_floats_do_not_see_of_masked_inputs_is_no_dimension():
    """Where something is masked, an entry of its own stands for it, which nothing sees."""

    def f(w, x):
        seen = jnp.concatenate([jnp.ones(1, bool), x["m"]])
        h = jnp.where(seen[:, None], x["x"], w["stand-in"])
        return jax.nn.softmax(h @ w["q"] + jnp.where(seen, 0.0, -1e9)) @ h

    weights = {"q": np.zeros(2), "stand-in": np.zeros(2)}
    found = nm.certify(nm.network(f, weights, {"m": np.ones(2, bool), "x": np.zeros((3, 2))}))
    assert found.lower <= 2


def test_masks_that_the_arguments_decide_are_refused():
    """Their shift would move every logit, and it moves none."""

    def route(w, x):
        logits = w @ x
        return jax.nn.softmax(jnp.where(logits >= jnp.sort(logits)[1], logits, -1e9))

    with pytest.raises(NotCoveredError, match=r"puts -1e\+09 at places that the arguments decide"):
        nm.certify(nm.network(route, np.zeros((3, 3)), np.zeros(3)))


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda w, x: w[0] * jnp.exp2(w[1] * x), ONE),
        (lambda w, x: w[0] * jnp.log2(w[1] + x), ONE),
        (lambda w, x: w[0] * jnp.sin(2 * np.pi * w[1] * x), ONE),
        (lambda w, x: w[0] * jnp.exp(x + 1) + w[1] * x * jnp.exp(x), ONE),
        (lambda w, x: w[0] * (jnp.exp(w[1] + 1) - jnp.exp(w[1])) * x * x + w[1] * x, ONE),
        (lambda w, x: w[0] * (jax.nn.softplus(x * w[1]) - np.log(2.0)), ONE),
        (lambda w, x: w[0] * x * 5e-324 + w[1], ONE),
        (lambda w, x: jnp.hypot(w[0] * x, w[1]), ONE),
        (lambda w, x: w @ lax.cummax(x), np.zeros(2)),
        (lambda w, x: w[0] * jnp.where(jnp.isfinite(jnp.log(x)), jnp.log(x), 0.0) + w[1], ONE),
        (lambda w, x: w @ lax.cumlogsumexp(x), np.zeros(2)),
        (lambda w, x: jnp.interp(x, np.array([-1.0, 1.0]), w), ONE),
        (lambda w, x: jnp.clip(w[0] * x + w[1], 0.0, jnp.inf), ONE),
        (lambda w, x: w[0] * jax.nn.relu(x) + jnp.sqrt(w[1]) * x, ONE),
        (lambda w, x: w[0] * jax.nn.relu(x) + jnp.log(w[1]) * x, ONE),
        (lambda w, x: (jax.debug.print("{}", x), w[0] * x + w[1])[1], ONE),
    ],
)
def test_what_is_independent_is_proved(f, x):
    assert nm.certify(nm.network(f, np.zeros(2), x)).verdict == "exact"


def test_a_bound_that_is_crossed_has_no_slope():
    """The value is the upper bound, wherever the lower one and the number between them are."""

    def f(w, x):
        upper = lax.clamp(x[0] + 3, x[0], x[0] + 1)
        return w[0] * jnp.arctan(upper - x[0] + x[1]) + w[1] * jnp.arctan(1 + x[1])

    with pytest.raises(NotCoveredError, match="of 2 only 1 were shown to be"):
        nm.certify(nm.network(f, np.zeros(2), np.zeros(2)))
    net = nm.network(lambda w, x: lax.clamp(w[0], x, w[1]) - w[1], np.zeros(2), ONE)
    assert nm.certify(net, weights=np.array([0.5, -0.5]), reading="balls").lower == 0


def features(w, x):
    """Where it has a value at w = (1, 0), the function of x is constant."""
    return w[0] * jnp.sqrt(w[1] - jnp.where(x > 0, 0.1 + 0.01 * jnp.arctan(x), -1.0))


def test_functions_of_inputs_are_shown_where_the_given_weights_have_a_value():
    net = nm.network(features, np.zeros(2), ONE)
    assert nm.certify(net).verdict == "exact"
    assert nm.certify(net, weights=np.array([1.0, 0.0])).lower <= 1


@pytest.mark.parametrize("reading", ["residues", "balls"])
@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: jax.nn.relu(w[0] * x) + jax.nn.relu(w[1] * x),
        lambda w, x: jnp.abs(w[0] * x) + jnp.maximum(w[1] * x, -w[1] * x),
        lambda w, x: jnp.where(w[0] * x >= 0, w[0] * x, w[1] * x),
    ],
)
def test_weights_on_the_edge_of_a_cell_prove_nothing(f, reading):
    net = nm.network(f, np.zeros(2), ONE)
    if reading == "balls":
        assert nm.certify(net, weights=np.zeros(2), reading="balls").lower == 0
        return
    with pytest.raises(NeuromanifoldError, match="take other weights"):
        nm.certify(net, weights=np.zeros(2))


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: jnp.where(w[0] == w[1], w[0] * x + w[1] * x * x, 0.0),
        lambda w, x: jnp.where(w[0] == 1, w[0] * x + w[1] * x * x, 0.0),
        lambda w, x: jnp.where(w[0] >= w[1], w[0] * x + w[1] * x * x, 0.0),
        lambda w, x: (w[0] == w[1]).astype(float) * (w[0] * x + w[1] * x * x),
        lambda w, x: jnp.floor(w[0]) * (w[0] * x + w[1] * x * x),
    ],
)
def test_weights_that_are_equal_are_on_an_edge(f):
    net = nm.network(f, np.zeros(2), ONE)
    assert nm.certify(net, weights=np.ones(2), reading="balls").lower == 0
    with pytest.raises(NeuromanifoldError, match="take other weights"):
        nm.certify(net, weights=np.ones(2))


def either(w, *cases):
    return jnp.where(w[0] + w[1] >= 2, *cases)


@pytest.mark.parametrize("reading", ["residues", "balls"])
@pytest.mark.parametrize(
    "f",
    [
        lambda w: (lax.clamp(w[1], w[0], 3.0) == w[0]) & (lax.clamp(w[0], w[1], 3.0) == w[1]),
        lambda w: (jnp.max(w[:2]) == w[0]) & (jnp.max(w[1::-1]) == w[1]),
        lambda w: (jnp.abs(w[0] - 1) == w[0] - 1) & (jnp.abs(1 - w[0]) == 1 - w[0]),
        lambda w: (either(w, *w[:2]) == w[0]) & (either(w, *w[1::-1]) == w[0]),
        lambda w: jnp.clip(w[0], 0.5, 1.5).astype(int) * (2 - jnp.clip(w[0], 0.5, 1.5)).astype(int),
        lambda w: jnp.arctan2(w[0] - 1, -1.0) + jnp.arctan2(1 - w[0], -1.0),
        lambda w: jnp.isfinite(jnp.sqrt(w[0] - 1)) & jnp.isfinite(jnp.sqrt(1 - w[0])),
        lambda w: (jnp.sqrt(w[0] - 1) + 1 > 0) & (jnp.sqrt(1 - w[0]) + 1 > 0),
        lambda w: jnp.isfinite(jnp.arccos(w[0])) & jnp.isfinite(jnp.arccos(2 - w[0])),
        lambda w: jnp.power(0.0, (w[0] - 1) ** 2),
    ],
)  # fmt: skip
def test_what_is_seen_on_an_edge_alone_is_not_proved(f, reading):
    """Each is zero but for a set without interior, and at ones it is not."""
    net = nm.network(lambda w, x: f(w) * w[2] * x, np.zeros(3), ONE)
    try:
        certificate = nm.certify(net, weights=np.ones(3), reading=reading)
    except NeuromanifoldError:
        return
    assert certificate.lower == 0, certificate


def test_small_weights_that_are_equal_are_on_an_edge():
    net = nm.network(lambda w, x: jnp.where(w[0] == w[1], w[2] * x, 0.0), np.zeros(3), ONE)
    with pytest.raises(NeuromanifoldError, match="take other weights"):
        nm.certify(net, weights=np.array([1e-300, 1e-300, 1.0]))


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: (6.0 ** w[0] - 2.0 ** w[0] * 3.0 ** w[0]) * x,
        lambda w, x: lax.erf_inv(lax.erf(w[0] * x / 9)) - w[0] * x / 9,
        lambda w, x: jnp.exp2(w[0] * x) - jnp.power(2.0, w[0] * x),
    ],
)
def test_constants_of_derivatives_prove_nothing_in_balls(f):
    """The rules of JAX bring floats of their own, which are no derivatives to their last place."""
    net = nm.network(f, np.zeros(1), ONE)
    assert nm.certify(net, weights=np.array([0.7]), reading="balls").lower == 0


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda w, x: w[0] * x + w[1] * wrapped(jnp.floor(8 * x).astype(int)), ONE),
        (lambda w, x: w[0] * x[0] + w[1] * wrapped(jnp.sum(x > 0)), np.zeros(4)),
        (lambda w, t: w[0] + w[1] * wrapped(t.astype(int)), np.int32(5)),
    ],
)
def test_whole_numbers_beyond_32_bits_are_refused_in_balls(f, x):
    with pytest.raises(NeuromanifoldError, match="beyond 32 bits"):
        nm.certify(nm.network(f, np.zeros(2), x), weights=np.ones(2), reading="balls")


def test_the_last_case_has_a_derivative_where_numbers_are_beyond_it():
    def f(w, x):
        return w * x - lax.select_n(jnp.floor(3 + x * x).astype("int32"), 0 * x, w * x)

    assert nm.certify(nm.network(f, ONE, ONE), weights=np.ones(()), reading="balls").lower == 0


def test_loops_that_are_too_long_are_refused_at_once():
    def f(w, x):
        return lax.scan(lambda c, _: (c + w[0] * x, None), w[1], None, length=20_000)[0]

    with pytest.raises(NeuromanifoldError, match="more than 5000 turns"):
        nm.certify(nm.network(f, np.zeros(2), ONE))


@pytest.mark.parametrize(
    "scores",
    [
        lambda x: jnp.where(np.array([True, True, False]), x, -1e9),
        lambda x: x + (1 - np.array([1.0, 1.0, 0.0])) * -10000.0,
        lambda x: (x + np.array([0.0, 0.0, -1e9])) / 8,
    ],
)
def test_certificates_with_masks_of_large_numbers_verify(scores):
    net = nm.network(lambda w, x: w @ jax.nn.softmax(scores(x)), np.zeros(3), np.zeros(3))
    certificate = nm.certify(net)
    assert certificate.rank == 2
    assert certificate.readings.masks
    assert nm.verify(certificate, net).agrees


MASKED_THIRD = np.array([0.0, 0.0, -1e9])
SHARES = jax.nn.softmax
THIRD = np.array([False, False, True])


@pytest.mark.parametrize(
    ("f", "dimension"),
    [
        (lambda w, x: SHARES(jnp.concatenate([w @ x, np.array([-1e9])])), 6),
        (lambda w, x: SHARES(jnp.pad(w @ x, 1, constant_values=-1e9)), 6),
        (lambda w, x: SHARES((w @ x).at[2].set(-1e9)), 3),
        (lambda w, x: SHARES(w @ x - np.array([0.0, 0.0, 1e9])), 3),
        (lambda w, x: jax.nn.sigmoid(w @ x + MASKED_THIRD), 6),
        (lambda w, x: jax.nn.sigmoid(jnp.where(THIRD, -jnp.inf, w @ x)), 6),
    ],
)
def test_what_is_laid_beside_others_or_seen_by_a_sigmoid_is_a_mask(f, dimension):
    net = nm.network(f, np.zeros((3, 3)), np.zeros(3))
    found = nm.certify(net)
    assert found.lower == dimension
    assert nm.verify(found, net).agrees


@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: SHARES(-jnp.where(THIRD, 1e9, w @ x)),
        lambda w, x: SHARES(np.eye(3) @ (w @ x + MASKED_THIRD)),
        lambda w, x: lax.erf(w @ x + 1e5 * np.arange(3)),
    ],
)
def test_numbers_that_floats_have_as_masks_prove_nothing(f):
    net = nm.network(f, np.zeros((3, 3)), np.zeros(3))
    found = nm.certify(net)
    assert found.lower == 0
    assert "floats have 0 or infinity for exponentials in it" in str(found)
    assert nm.verify(found, net).agrees


def test_large_constants_that_no_exponential_sees_are_numbers():
    f = lambda w, x: w[0] * jnp.exp(x / 20000.0) + w[1] * jnp.exp(1e-3 * (1000.0 + x) * x)  # noqa: E731
    assert nm.certify(nm.network(f, np.zeros(2), ONE)).verdict == "exact"


def test_a_low_constant_that_a_subtraction_raises_is_a_number():
    f = lambda w, x: w[0] * jnp.exp(((x + HALF_LOW) - LOW)[1]) + w[1] * x  # noqa: E731
    assert nm.certify(nm.network(f, np.zeros(2), ONE)).verdict == "exact"
