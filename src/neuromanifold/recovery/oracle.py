"""The black box: a function of X, counted, bounded, and checked at every call.

A float64 black box is any callable from a (d_0, t) array to a (d_l, t) array. An exact one is an
`ExactOracle`: the same with `Fraction` entries, or with residues mod p, in arrays of dtype object.
A `PreciseOracle` gives any number of digits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Integral

import flint
import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.exact_field import ExactField
from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.attention import attention
from neuromanifold.networks.evaluation import evaluate
from neuromanifold.networks.weights import Numeric, Weights, generator_of
from neuromanifold.recovery.result import Refusal

Function = Callable[[np.ndarray], object]

_GUARD = 30
"""Digits beyond those asked for: sums and quotients of a small network lose fewer."""


@dataclass(frozen=True, slots=True)
class ExactOracle:
    """A function on exact numbers.

    Attributes:
        function: from a (d_0, t) array of dtype object to one of shape (d_l, t). Entries are
            `Fraction` (the answer may also hold `int` or python-flint's `fmpq`) or, with a prime,
            `int` residues.
        prime: None for the rational numbers, p for the field GF(p).
    """

    function: Function
    prime: int | None = None


@dataclass(frozen=True, slots=True)
class PreciseOracle:
    """A function on real numbers that can be asked for any number of digits.

    Attributes:
        function: of a (d_0, t) array of `Fraction`s (dtype object) and a number of digits, to an
            array of shape (d_l, t) that is correct to an absolute error of 10^−digits. Its entries
            may be `Fraction`, `int`, python-flint's `arb` or mpmath's `mpf`.
    """

    function: Callable[[np.ndarray, int], object]


class NotFiniteError(ArgumentError):
    """The oracle answered with NaN or infinity."""


class BlackBox:
    """An oracle together with the count of its calls.

    Attributes:
        calls: how often the oracle was called.
        architecture: the network that it should be.
        noise: by how much two answers to one input may differ, relatively, each from the truth.
    """

    def __init__(
        self,
        function: Callable[..., object],
        architecture: Architecture,
        max_calls: int,
        read: Callable[..., np.ndarray],
        noise: float = 0.0,
    ) -> None:
        """`read` turns an array into one of the right kind of numbers, or refuses it."""
        self.calls = 0
        self.noise = noise
        self.architecture = architecture
        self._function = function
        self._max_calls = max_calls
        self._read = read
        self._first: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """φ(X), its shape and entries checked; the first input is asked for twice."""
        output = self.ask(X)
        if self._first is None:
            self._first = (X.copy(), output)
            self.check_determinism()
        return output

    def check_determinism(self) -> None:
        """Ask for the first input again: the same output must come, up to the noise."""
        if self._first is None:
            return
        X, before = self._first
        after = self.ask(X)
        if np.array_equal(after, before):
            return
        if not self.noise:
            raise ArgumentError(
                "the oracle must be deterministic; it answered one input with two different "
                "outputs: fix its random numbers, or state how large they are with `noise`"
            )
        unit = float(np.max(np.abs(before))) or 1.0
        size = float(np.linalg.norm(before / unit)) or 1.0
        apart = float(np.linalg.norm(after / unit - before / unit)) / size
        if apart > 2 * self.noise * (1 + self.noise):
            raise ArgumentError(
                f"the noise was stated as {self.noise:.1e}; two answers to one input differ by "
                f"{apart:.1e} relatively: state a larger noise"
            )

    def ask(self, X: np.ndarray, *digits: int) -> np.ndarray:
        """One call, to so many digits if the oracle can be asked for them."""
        if self.calls >= self._max_calls:
            raise Refusal(f"the bound of {self._max_calls} oracle calls is used up")
        self.calls += 1
        output = self._read(_as_array(self._function(X.copy(), *digits)), *digits)
        wanted = (self.architecture.widths[-1], self.architecture.tokens)
        if output.shape != wanted:
            raise ArgumentError(
                f"the oracle must return shape {wanted}, one token a column; got {output.shape}"
            )
        return output


def black_box(
    oracle: Function | ExactOracle | PreciseOracle,
    architecture: Architecture,
    max_calls: int,
    noise: float | None,
) -> BlackBox:
    """The black box of an oracle; one in floats answers in float64 unless a noise is stated."""
    if isinstance(oracle, ExactOracle):
        return BlackBox(oracle.function, architecture, max_calls, ExactField(oracle.prime).read)
    if isinstance(oracle, PreciseOracle):
        return BlackBox(oracle.function, architecture, max_calls, _read_balls)
    read = partial(_read_floats, narrow=noise is not None)
    return BlackBox(oracle, architecture, max_calls, read, noise or 0.0)


def value_at_zero(
    function: Callable[[float], np.ndarray], *, reach: float, nodes: int
) -> np.ndarray:
    """The interpolating polynomial at Chebyshev nodes in (0, reach], evaluated at 0.

    Exact for polynomials of degree below `nodes`. Errors of the function grow by the sum of the
    absolute values of Lagrange's weights: Lebesgue's constant, at most (2/π) log(nodes) + 1.
    """
    points = reach * (1 - np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)) / 2
    terms = []
    for i, u in enumerate(points):
        others = np.delete(points, i)
        terms.append(float(np.prod(others / (others - u))) * function(float(u)))
    return np.sum(terms, axis=0)


def network_oracle(weights: Weights) -> Callable[[np.ndarray], np.ndarray]:
    """The float64 black box X ↦ φ_W(X) of given weights."""
    double = jax.tree.map(np.float64, weights)
    compiled = jax.jit(attention)

    def values(X: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(compiled(double, jnp.asarray(X)))

    return values


def oracle_of(
    weights: Weights, noise: float | None = None, seed: int = 0
) -> Function | ExactOracle | PreciseOracle:
    """The black box of given weights that shows all of their layers, with noise if some is stated.

    From depth 3 on that is an exact one for plain lightning and a precise one for plain softmax.
    """
    if weights.architecture.depth > 2 and weights.architecture.is_single:
        exact = weights.architecture.is_linear_in_scores
        return exact_network_oracle(weights) if exact else precise_network_oracle(weights)
    function = network_oracle(weights)
    if noise is None:
        return function
    generator, size = generator_of(seed), float(noise)

    def noisy(X: np.ndarray) -> np.ndarray:
        output = function(X)
        error = generator.standard_normal(output.shape)
        return output + size * np.linalg.norm(output) / np.linalg.norm(error) * error

    return noisy


def precise_network_oracle(weights: Weights) -> PreciseOracle:
    """The black box of a softmax network in ball arithmetic, to any number of digits (eq-15)."""
    architecture = weights.architecture
    _check_single(architecture, "precise", "softmax")
    layers = [
        {
            "query": _dyadic(layer.key[0]).T @ _dyadic(layer.query[0]),
            "value": _dyadic(layer.value[0]),
        }
        for layer in weights.layers
    ]

    def values(X: np.ndarray, digits: int) -> np.ndarray:
        with flint.ctx.workdps(digits + _GUARD):
            maps = [{name: as_balls(T)[None] for name, T in layer.items()} for layer in layers]
            return evaluate(maps, as_balls(X), architecture)

    return PreciseOracle(values)


def _check_single(architecture: Architecture, kind: str, attention: str) -> None:
    if architecture.attention != attention or not architecture.is_single:
        raise NotCoveredError(
            f"{kind} black boxes are made of {attention} networks with one head, no skip, no mask "
            f"and unfactored values; got {architecture.name}"
        )


def as_balls(array: np.ndarray) -> np.ndarray:
    """Exact numbers, and numbers of many digits, as balls at the precision of the moment."""
    return np.vectorize(_ball, otypes=[object])(array)


def _ball(x: object) -> flint.arb:
    if isinstance(x, flint.arb):
        return x
    if isinstance(x, flint.fmpq):
        return flint.arb(x)
    if hasattr(x, "_mpf_"):
        sign, mantissa, exponent, _ = x._mpf_
        return flint.arb(int(mantissa) * (-1) ** sign) * flint.arb(2) ** int(exponent)
    if isinstance(x, Integral | Fraction):
        return flint.arb(flint.fmpq(int(x.numerator), int(x.denominator)))
    raise ArgumentError(
        "a precise oracle must return whole numbers, fractions, or numbers of python-flint or "
        f"mpmath; got {x!r}"
    )


def exact_network_oracle(weights: Weights, prime: int | None = None) -> ExactOracle:
    """The exact black box of given weights: plain products V X Xᵀ Kᵀ Q X, layer after layer.

    Entries may be integers, `Fraction`s or floats; a float stands for its exact dyadic value.
    """
    _check_single(weights.architecture, "exact", "lightning")
    field = ExactField(prime)
    layers = [
        tuple(field.read(_dyadic(tensor[0])) for tensor in (layer.query, layer.key, layer.value))
        for layer in weights.layers
    ]

    def values(X: np.ndarray) -> np.ndarray:
        for Q, K, V in layers:
            X = field.product(V, X, X.T, K.T, Q, X)
        return X

    return ExactOracle(values, prime)


def _read_floats(output: np.ndarray, *, narrow: bool) -> np.ndarray:
    if output.dtype != np.float64 and not (narrow and output.dtype.kind == "f"):
        raise ArgumentError(
            f"the oracle must compute in float64; it returned {output.dtype}: with JAX, evaluate "
            "inside `jax.enable_x64(True)`, or state its error with `noise`"
        )
    if not np.isfinite(output).all():
        raise NotFiniteError(
            "the oracle returned NaN or infinity; it must be finite at every input"
        )
    return output.astype(np.float64)


def _read_balls(output: np.ndarray, digits: int) -> np.ndarray:
    found = as_balls(output)
    if any(not x.is_finite() or x.rad() > flint.arb(10) ** -digits for x in found.ravel()):
        raise ArgumentError(f"the oracle must be correct to {digits} digits; its answer is not")
    return found


def _dyadic(tensor: Numeric) -> np.ndarray:
    """Floats as the fractions they are; other numbers as they came."""
    array = np.asarray(tensor)
    if array.dtype.kind != "f":
        return array
    if not np.isfinite(array).all():
        raise ArgumentError("the weights hold NaN or infinity; an exact black box needs numbers")
    return np.vectorize(Fraction, otypes=[object])(array)


def _as_array(value: object) -> np.ndarray:
    """The answer of an oracle as an array of any kind, which the oracle cannot change any more."""
    try:
        return np.array(value)
    except (ValueError, TypeError) as error:
        raise ArgumentError(
            f"the oracle must return a matrix; its answer is none: {error}"
        ) from None
