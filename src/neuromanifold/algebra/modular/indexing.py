"""Gathers, dynamic slices and scatters at known positions.

Where each entry goes depends on many parameters, and JAX knows them: the primitive itself is
applied once to the numbers of the entries instead of the entries, and tells which one lands where.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.modular.recorder import Known, Recorder, Rule, Setting, Value
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.errors import ArgumentError, NotCoveredError

# For each primitive the operands whose entries it moves; the others say where to.
_MOVED = {
    "dynamic_slice": (0,),
    "dynamic_update_slice": (0, 1),
    "gather": (0,),
    "scatter": (0, 2),
}


def _positions(
    recorder: Recorder, equation: Any, values: Sequence[Value], moved: tuple[int, ...]
) -> dict[int, Any]:
    positions = {}
    for place, value in enumerate(values):
        if place in moved:
            continue
        if not isinstance(value, Known):
            raise NotCoveredError(
                f"{recorder.where(equation)} takes its positions from an argument of the function; "
                "over a prime field positions must be constants"
            )
        positions[place] = jnp.asarray(value.array)
    return positions


def _move(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Number all entries that may be moved, move the numbers, and read off the source of each.

    The numbers are floats, so that JAX marks a read outside by NaN.
    """
    moved = _MOVED[equation.primitive.name]
    sources = [recorder.unknown(values[place], equation) for place in moved]
    with jax.enable_x64(True):
        operands = _positions(recorder, equation, values, moved)
        start = 0
        for place, source in zip(moved, sources, strict=True):
            size = int(np.prod(source.shape))
            operands[place] = jnp.arange(start, start + size, dtype=jnp.float64).reshape(
                source.shape
            )
            start += size
        ordered = [operands[place] for place in sorted(operands)]
        numbers = np.asarray(equation.primitive.bind(*ordered, **equation.params))
    if np.isnan(numbers).any():
        raise ArgumentError(
            f"{recorder.where(equation)} reads outside its operand, which gives NaN: "
            "keep the positions inside"
        )
    sources_of = numbers.astype(np.intp)

    def move(*arrays: np.ndarray) -> np.ndarray:
        return np.concatenate([array.reshape(-1) for array in arrays])[sources_of]

    return [recorder.move(move, sources, numbers.shape)]


def _scatter_add(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Scattering is linear in the updates; its transpose tells the target of each of them.

    Entry k gets at most as many terms as there are updates, each below p/2 + 4: exact in float64
    for up to 2^30 updates.
    """
    operand, updates = (recorder.finite(values[place], equation) for place in (0, 2))
    with jax.enable_x64(True):
        indices = _positions(recorder, equation, values, (0, 2))[1]
        zeros = jnp.zeros(operand.shape)
        size = int(np.prod(operand.shape))
        numbers = jnp.arange(1.0, size + 1.0).reshape(operand.shape)

        def scattered(u: jax.Array) -> jax.Array:
            return equation.primitive.bind(zeros, indices, u, **equation.params)

        shape = jax.ShapeDtypeStruct(updates.shape, jnp.float64)
        transposed = jax.linear_transpose(scattered, shape)
        # Number 0 marks an update that falls outside and is dropped.
        targets = np.asarray(transposed(numbers)[0]).astype(np.int64).reshape(-1)

    def add(setting: Setting, x: Residues, u: Residues) -> Residues:
        total = np.bincount(targets, weights=u.reshape(-1), minlength=size + 1)[1:]
        return setting.field.reduce(np.asarray(x + total.reshape(x.shape)))

    return [recorder.emit(add, [operand, updates], operand.shape)]


INDEXING: dict[str, Rule] = {**dict.fromkeys(_MOVED, _move), "scatter-add": _scatter_add}
