"""Random functions of weights and inputs, each both in JAX and in many digits.

Every expression is written once, against a `Floats` (JAX) or a `Digits` (mpmath) that knows the
functions; so the two have no evaluation and no derivative in common. Values are pairs of numbers.
A function is Σ w_k φ_k, where the φ_k are random expressions of the inputs, some of which are
whole numbers, and of two inner weights, and some come with a *twin*: the same or a dependent
function, written in another way.
"""

# ruff: noqa: ARG005 - all expressions take the same arguments

import functools
import operator

import numpy as np

from expressions.twins import TWINS

UNARY = (
    *("exp", "log", "sqrt", "sin", "cos", "tanh", "sinh", "cosh", "expm1", "log1p", "asinh"),
    *("erf", "rsqrt", "logistic", "relu", "softplus", "silu", "gelu", "softmax", "abs", "tan"),
    *("cumsum", "cumprod", "flip", "mixed", "filled", "looped", "convolved", "normed", "stopped"),
    *("sort", "exp2", "erfc", "wrong_rule", "power_spectrum", "there_and_back"),
    *("log2", "turned", "cummax", "cumlogsumexp", "raised", "tiny", "relu6"),
    *("ceil", "clipped", "cummin", "wrapped", "top_k", "repeated"),
    *("window_max", "window_min", "window_sum"),
)
BINARY = (operator.add, operator.sub, operator.mul, operator.truediv)


def _looked_up(B, w, x):
    """Entries of a vector at places that are inputs."""
    return B.taken(x["a"] + w[:2], x["t"])


def _truth(B, w, x):
    """Input truth values as numbers."""
    return B.numbers(x["c"]) * x["b"]


def _inner(generator, depth, whole):
    """A random expression of inputs and inner weights."""
    if depth == 0 or generator.random() < 0.15:
        leaf = int(generator.integers(8 if whole else 6))
        if leaf >= 6:
            return (_looked_up, _truth)[leaf % 2]
        return lambda B, w, x: (x["a"], x["a"], x["b"], x["b"] + w[:2], x["a"] * w[:2], w[:2])[leaf]
    if generator.random() < 0.4:
        left, right = (_inner(generator, depth - 1, whole) for _ in range(2))
        operation = BINARY[int(generator.integers(len(BINARY)))]
        return lambda B, w, x: operation(left(B, w, x), right(B, w, x))
    name, inside = str(generator.choice(UNARY)), _inner(generator, depth - 1, whole)
    return lambda B, w, x: getattr(B, name)(inside(B, w, x))


def _pair(generator, whole):
    first, second = TWINS[int(generator.integers(len(TWINS)))]
    u, v = (_inner(generator, int(generator.integers(0, 2)), whole) for _ in range(2))
    return [lambda B, w, x, f=f: f(B, u(B, w, x), v(B, w, x)) for f in (first, second)]


def twin_functions():
    """For each pair of twins a function of both, of a backend, weights and inputs."""

    def function(pair):
        return lambda B, w, x: sum(w[2 + k] * f(B, x["a"], x["b"]) for k, f in enumerate(pair))

    return [function(pair) for pair in TWINS]


def random_function(seed):
    """A function of a backend, weights and inputs; how many weights; whether of whole numbers."""
    generator = np.random.default_rng(seed)
    whole = bool(generator.random() < 0.2)
    terms = _pair(generator, whole)
    for _ in range(int(generator.integers(0, 2))):
        terms.append(_inner(generator, 2, whole))
    if generator.random() < 0.2:
        terms += _pair(generator, whole)
    if generator.random() < 0.3:
        outer, body = str(generator.choice(UNARY)), terms[-1]
        terms[-1] = lambda B, w, x: getattr(B, outer)(body(B, w, x))

    # Inputs that enter through functions which are not read, here and there too many of them.
    warped = [name for name in "ab" if generator.random() < 0.2]
    kept = generator.random() < 0.2

    def function(B, w, x):
        given = x
        for name, warp in zip("ab", (B.atan, B.cbrt), strict=True):
            if name in warped:
                x = x | {name: warp(x[name]) + (given["a"] if kept else 0)}
        return functools.reduce(
            operator.add, (w[2 + k] * term(B, w, x) for k, term in enumerate(terms))
        )

    return function, 2 + len(terms), whole
