"""Weights in units that suit them: powers of two divided out, so that no number is huge or tiny.

Changing the unit of a coordinate between two layers, of a key against its query, or of the whole
output, by a power of two, is a symmetry (or a known factor) and changes no digit of any float. In
the units chosen here every row of keys, queries and values has size about one, so that products
neither overflow nor vanish, and rows of very different size do not hide one another:

    X = 2^s X̂ at the input,    φ_W(2^s X̂) = 2^o φ_Ŵ(X̂).

Softmax keeps the size of its scores (no symmetry changes it), a residual skip the size of its
updates, the inner skip both. Lightning without inner skip gives the size of A to V (eq-13).

Every entry comes with its rounding: the root mean square of its error when it was rounded once to
its own dtype, and as much again for the arithmetic here in float64.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from neuromanifold.errors import WeightsError
from neuromanifold.networks.weights import Weights

_NOTHING = -(10**6)
"""The exponent of zero: below that of every float."""

_ARITHMETIC = 2.0 * np.finfo(np.float64).eps


@dataclass(frozen=True, slots=True)
class InUnits:
    """Weights in units, with what the units do to input and output.

    Attributes:
        weights: Ŵ, float64.
        rounding: for each layer and tensor the error of each entry, in the same units.
        shifts: for each layer and tensor the exponents k with Ŵ = 2^k W.
        input: s.
        output: o.
    """

    weights: Weights
    rounding: tuple[dict[str, np.ndarray], ...]
    shifts: tuple[dict[str, np.ndarray], ...]
    input: int
    output: int

    @property
    def is_finite(self) -> bool:
        """Whether units were enough: skips and softmax fix sizes, which may be beyond float64."""
        return all(np.isfinite(T).all() for _, T in self.weights.named_tensors())


def in_float64(weights: Weights) -> Weights:
    """The same weights as float64 NumPy arrays; what those do not hold exactly is an error."""
    if not isinstance(weights, Weights):
        raise WeightsError(
            f"Weights were wanted; got {type(weights).__name__}: take them from random_weights, "
            "load_weights or Weights.from_tensors"
        )
    for name, tensor in weights.named_tensors():
        array = np.asarray(tensor)
        kind = "complex" if array.dtype.kind == "c" else str(array.dtype)
        if not (jnp.issubdtype(array.dtype, np.floating) or array.dtype.kind in "iu"):
            raise WeightsError(f"weights must be real floats; {name} is {kind}: convert it")
        with np.errstate(all="ignore"):
            double = array.astype(np.float64)
            held = np.array_equal(double.astype(array.dtype), array, equal_nan=True)
        if not np.isfinite(double).all():
            raise WeightsError(
                f"weights must be finite; {name} has entries that are NaN or infinite: mend them"
            )
        if not held:
            raise WeightsError(
                f"weights must be float64 or shorter; {name} ({kind}) has more digits"
            )
    return jax.tree.map(partial(np.asarray, dtype=np.float64), weights)


def _precision(dtype: np.dtype) -> jnp.finfo:
    """The numbers of a dtype; those of float64 for longer floats and for whole numbers."""
    short = jnp.issubdtype(dtype, np.floating) and dtype.itemsize < 8
    return jnp.finfo(dtype if short else np.float64)


def unit_roundoff(*weights: Weights) -> float:
    """The distance from 1 to the next number, in the coarsest dtype among the tensors."""
    return max(
        float(_precision(np.asarray(tensor).dtype).eps)
        for w in weights
        for _, tensor in w.named_tensors()
    )


def in_units(weights: Weights, input_exponent: int = 0) -> InUnits:
    """The weights in the units of the module's docstring, with s = `input_exponent`."""
    architecture = weights.architecture
    residual = architecture.adds_input
    c = np.full(architecture.widths[0], input_exponent, dtype=np.int64)
    output = input_exponent if residual else 0
    layers: list[dict[str, np.ndarray]] = []
    rounding: list[dict[str, np.ndarray]] = []
    exponents: list[dict[str, np.ndarray]] = []
    for i, (stored, layer) in enumerate(
        zip(weights.layers, in_float64(weights).layers, strict=True)
    ):
        tensors = layer.arrays()
        shifts = _score_shifts(tensors["key"], tensors["query"], c)
        free = np.zeros(architecture.heads, dtype=np.int64)
        if architecture.trades_scale:
            free = _size_of_forms(tensors, shifts)
            shifts["key"] = shifts["key"] - (free // 2)[:, None, None]
            shifts["query"] = shifts["query"] - (free - free // 2)[:, None, None]
        shifts |= _value_shifts(tensors, c, free, balanced=residual)
        last = "output" if "output" in tensors else "value"
        rows = _tops(tensors[last], shifts[last], axis=2).max(axis=0)
        if residual:
            c_next = c
        elif i + 1 < architecture.depth:
            c_next = np.where(rows == _NOTHING, 0, rows)
        else:
            output = int(rows.max()) if rows.max() > _NOTHING else 0
            c_next = np.full(len(rows), output)
        shifts[last] = shifts[last] - c_next[:, None]
        with np.errstate(over="ignore", under="ignore"):
            layers.append({name: np.ldexp(T, shifts[name]) for name, T in tensors.items()})
        rounding.append(
            {
                name: _rounding(np.asarray(stored.tensors()[name]).dtype, T, layers[-1][name], k)
                for name, T in tensors.items()
                for k in [shifts[name]]
            }
        )
        exponents.append(shifts)
        c = c_next
    scaled = Weights.from_tensors(architecture, layers)
    return InUnits(scaled, tuple(rounding), tuple(exponents), input_exponent, output)


def size_exponent(weights: Weights) -> int:
    """The exponent e such that inputs of size 2^(−e/2) give a first layer of ordinary size.

    For softmax ‖A_h‖ is about 2^e, so that scores have size one; for lightning, where the update of
    a residual skip has size ‖V_h‖ ‖A_h‖ ‖X‖³, e belongs to that product.
    """
    tensors = in_float64(weights).layers[0].arrays()
    none = np.zeros(tensors["key"].shape[2], dtype=np.int64)
    shifts = _score_shifts(tensors["key"], tensors["query"], none)
    sizes = _size_of_forms(tensors, shifts)
    if weights.architecture.is_linear_in_scores and weights.architecture.adds_input:
        for name in ("value", "output"):
            if name in tensors:
                tops = _exponents(tensors[name]).max(axis=(1, 2))
                sizes = sizes + np.where(tops > _NOTHING, tops, 0)
    return int(sizes.max()) - int(np.frexp(weights.architecture.temperature)[1])


def _exponents(T: np.ndarray) -> Int[np.ndarray, "..."]:
    """The binary exponents of all entries."""
    return np.where(T == 0, _NOTHING, np.frexp(T)[1].astype(np.int64))


def _tops(T: np.ndarray, shift: np.ndarray, axis: int) -> Int[np.ndarray, "..."]:
    """The largest exponent along an axis after a shift, that of zero where all are zero."""
    return np.where(T == 0, _NOTHING, _exponents(T) + shift).max(axis=axis)


def _balance(first: np.ndarray, second: np.ndarray) -> Int[np.ndarray, "..."]:
    """How far to shift one of two factors, and the other back, so that both have one size."""
    both = (first > _NOTHING) & (second > _NOTHING)
    alone = np.where(first > _NOTHING, -first, np.where(second > _NOTHING, second, 0))
    return np.where(both, (second - first) // 2, alone)


def _score_shifts(K: np.ndarray, Q: np.ndarray, c: np.ndarray) -> dict[str, np.ndarray]:
    """Keys and queries in the units of the layer's input, row r of one as large as of the other."""
    s = _balance(_tops(K, c, axis=2), _tops(Q, c, axis=2))[:, :, None]
    return {"key": c + s, "query": c - s}


def _size_of_forms(
    tensors: dict[str, np.ndarray], shifts: dict[str, np.ndarray]
) -> Int[np.ndarray, " head"]:
    """The exponent of the largest product of a row of K with a row of Q, for each head."""
    key, query = (_tops(tensors[name], shifts[name], axis=2) for name in ("key", "query"))
    sizes = np.where((key > _NOTHING) & (query > _NOTHING), key + query, _NOTHING).max(axis=1)
    return np.where(sizes > _NOTHING, sizes, 0)


def _value_shifts(
    tensors: dict[str, np.ndarray], c: np.ndarray, free: np.ndarray, *, balanced: bool
) -> dict[str, np.ndarray]:
    """Values in the units of the input and with the size of the forms.

    Where the unit of the output is not free O and V are balanced; else V has rows of size one.
    """
    value = np.broadcast_to(c + free[:, None, None], tensors["value"].shape)
    if "output" not in tensors:
        return {"value": value}
    none = np.zeros((), dtype=np.int64)
    rows, columns = _tops(tensors["value"], value, 2), _tops(tensors["output"], none, 1)
    s = _balance(rows, columns if balanced else np.full_like(columns, _NOTHING))
    return {
        "value": value + s[:, :, None],
        "output": np.broadcast_to(-s[:, None, :], tensors["output"].shape),
    }


def _rounding(
    dtype: np.dtype, T: np.ndarray, scaled: np.ndarray, shift: np.ndarray
) -> Float[np.ndarray, "..."]:
    """The error of each entry: relative to it, and absolute where it is subnormal; zeros stand."""
    numbers, double = _precision(dtype), np.finfo(np.float64)
    error = (float(numbers.eps) + _ARITHMETIC) * np.abs(scaled)
    vanishing = (T != 0) & (np.abs(scaled) < double.tiny)
    error = np.where(vanishing, np.maximum(error, double.smallest_subnormal), error)
    subnormal = (T != 0) & (np.abs(T) < numbers.tiny)
    if subnormal.any():
        smallest = np.ldexp(float(numbers.smallest_subnormal), shift)
        error = np.where(subnormal, np.maximum(error, smallest), error)
    return error
