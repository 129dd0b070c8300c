"""The black box: a function of X, counted, bounded, and checked at every call.

A float64 black box is any callable from a (d_0, t) array to a (d_l, t) array. An exact one is an
`ExactOracle`: the same with `Fraction` entries, or with residues mod p, in arrays of dtype object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, NotCoveredError
from neuromanifold.networks.attention import attention
from neuromanifold.networks.weights import Numeric, Weights
from neuromanifold.recovery.exact_field import ExactField
from neuromanifold.recovery.result import Refusal

Function = Callable[[np.ndarray], object]


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


class BlackBox:
    """An oracle together with the count of its calls.

    Attributes:
        calls: how often the oracle was called.
    """

    def __init__(
        self,
        function: Function,
        architecture: Architecture,
        max_calls: int,
        read: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """`read` turns an array into one of the right kind of numbers, or refuses it."""
        self.calls = 0
        self._function = function
        self._max_calls = max_calls
        self._read = read
        self._shape = (architecture.widths[-1], architecture.tokens)
        self._first: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """φ(X), its shape and entries checked; the first input is asked for twice."""
        output = self._call(X)
        if self._first is None:
            self._first = (X.copy(), output.copy())
            self.check_determinism()
        return output

    def check_determinism(self) -> None:
        """Ask for the first input again: the same output must come."""
        if self._first is None:
            return
        X, before = self._first
        if not np.array_equal(self._call(X), before):
            raise ArgumentError(
                "the oracle must be deterministic; it answered one input with two different "
                "outputs: fix its random numbers"
            )

    def _call(self, X: np.ndarray) -> np.ndarray:
        if self.calls >= self._max_calls:
            raise Refusal(f"the bound of {self._max_calls} oracle calls is used up")
        self.calls += 1
        output = self._read(_as_array(self._function(X.copy())))
        if output.shape != self._shape:
            raise ArgumentError(
                f"the oracle must return shape {self._shape}, one token a column; "
                f"got {output.shape}"
            )
        return output


def float_box(function: Function, architecture: Architecture, max_calls: int) -> BlackBox:
    """The black box of a float64 function."""
    return BlackBox(function, architecture, max_calls, _read_float64)


def exact_box(oracle: ExactOracle, architecture: Architecture, max_calls: int) -> BlackBox:
    """The black box of a function on exact numbers."""
    return BlackBox(oracle.function, architecture, max_calls, ExactField(oracle.prime).read)


def network_oracle(weights: Weights) -> Callable[[np.ndarray], np.ndarray]:
    """The float64 black box X ↦ φ_W(X) of given weights."""
    double = jax.tree.map(np.float64, weights)
    compiled = jax.jit(attention)

    def evaluate(X: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(compiled(double, jnp.asarray(X)))

    return evaluate


def exact_network_oracle(weights: Weights, prime: int | None = None) -> ExactOracle:
    """The exact black box of given weights: plain products V X Xᵀ Kᵀ Q X, layer after layer.

    Entries may be integers, `Fraction`s or floats; a float stands for its exact dyadic value.
    """
    if not is_plain_lightning(weights.architecture):
        raise NotCoveredError(
            "exact black boxes are made of lightning networks with one head, no skip, no mask and "
            f"unfactored values; got {weights.architecture.name}"
        )
    field = ExactField(prime)
    layers = [
        tuple(field.read(_dyadic(tensor[0])) for tensor in (layer.query, layer.key, layer.value))
        for layer in weights.layers
    ]

    def evaluate(X: np.ndarray) -> np.ndarray:
        for Q, K, V in layers:
            X = field.product(V, X, X.T, K.T, Q, X)
        return X

    return ExactOracle(evaluate, prime)


def is_plain_lightning(architecture: Architecture) -> bool:
    """Lightning attention with one head, no skip, no mask, unfactored values (def-2)."""
    return architecture.attention == "lightning" and is_plain(architecture)


def is_plain(architecture: Architecture) -> bool:
    """One head, no skip, no mask, unfactored values."""
    return (
        architecture.heads == 1
        and architecture.skip == "none"
        and architecture.mask == "none"
        and architecture.value_ranks is None
    )


def _read_float64(output: np.ndarray) -> np.ndarray:
    if output.dtype != np.float64:
        raise ArgumentError(
            f"the oracle must compute in float64; it returned {output.dtype}: with JAX, evaluate "
            "inside `jax.enable_x64(True)`"
        )
    if not np.isfinite(output).all():
        raise ArgumentError("the oracle returned NaN or infinity; it must be finite at every input")
    return output


def _dyadic(tensor: Numeric) -> np.ndarray:
    """Floats as the fractions they are; other numbers as they came."""
    array = np.asarray(tensor)
    if array.dtype.kind != "f":
        return array
    if not np.isfinite(array).all():
        raise ArgumentError("the weights hold NaN or infinity; an exact black box needs numbers")
    return np.vectorize(Fraction, otypes=[object])(array)


def _as_array(value: object) -> np.ndarray:
    """The answer of an oracle as an array of any kind."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ArgumentError(
            f"the oracle must return a matrix; its answer is none: {error}"
        ) from None


def relative_error(output: np.ndarray, wanted: np.ndarray) -> float | Fraction:
    """‖output − wanted‖ / ‖wanted‖; for exact arrays 0 when they are equal and else 1."""
    if wanted.dtype == object:
        return Fraction(0) if np.array_equal(output, wanted) else Fraction(1)
    size = np.linalg.norm(wanted)
    difference = float(np.linalg.norm(output - wanted))
    return difference / float(size) if size > 0 else difference
