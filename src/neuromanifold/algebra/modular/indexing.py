"""Gathers, dynamic slices and scatters at known positions.

Where each entry goes depends on many parameters, and JAX knows them: the primitive itself is applied
once to the numbers of the entries instead of the entries, and tells which one lands where.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.modular.location import where_from
from neuromanifold.algebra.modular.recorder import Known, Recorder, Setting, Unknown, Value
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.errors import ArgumentError, NotCoveredError

# For each primitive the operands whose entries it moves; the others say where to.
_MOVED = {
    "dynamic_slice": (0,),
    "dynamic_update_slice": (0, 1),
    "gather": (0,),
    "scatter": (0, 2),
}


def _positions(values: Sequence[Value], moved: tuple[int, ...], equation: Any) -> dict[int, Any]:
    positions = {}
    for place, value in enumerate(values):
        if place in moved:
            continue
        if not isinstance(value, Known):
            raise NotCoveredError(
                f"{where_from(equation)} takes its positions from an argument of the function; "
                "over a prime field positions must be constants"
            )
        positions[place] = jnp.asarray(value.array)
    return positions


def _move(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Number all entries that may be moved, move the numbers, and read off the source of each."""
    moved = _MOVED[equation.primitive.name]
    sources = [recorder.unknown(values[place], equation) for place in moved]
    with jax.enable_x64(True):
        operands = _positions(values, moved, equation)
        start = 0
        for place, source in zip(moved, sources, strict=True):
            size = int(np.prod(source.shape))
            operands[place] = jnp.arange(start, start + size).reshape(source.shape)
            start += size
        ordered = [operands[place] for place in sorted(operands)]
        numbers = np.asarray(equation.primitive.bind(*ordered, **equation.params))
    if numbers.size and (numbers.min() < 0 or numbers.max() >= start):
        raise ArgumentError(
            f"{where_from(equation)} reads outside its operand, which gives NaN: "
            "keep the positions inside"
        )

    def move(*arrays: np.ndarray) -> np.ndarray:
        flat = [array.reshape(-1) for array in arrays]
        return (flat[0] if len(flat) == 1 else np.concatenate(flat))[numbers]

    masked = None
    if any(source.masked is not None for source in sources):
        masked = move(*[_mask(source) for source in sources])
    return [recorder.emit(lambda _, *xs: move(*xs), sources, numbers.shape, masked)]


def _mask(value: Unknown) -> np.ndarray:
    return np.zeros(value.shape, dtype=bool) if value.masked is None else value.masked


def _scatter_add(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Scattering is linear in the updates; its transpose tells the target of each of them.

    Entry k gets at most as many terms as there are updates, each below p/2 + 4: exact in float64 for
    up to 2^30 updates.
    """
    operand, updates = (recorder.finite(values[place], equation) for place in (0, 2))
    with jax.enable_x64(True):
        indices = _positions(values, (0, 2), equation)[1]
        zeros = jnp.zeros(operand.shape)
        size = int(np.prod(operand.shape))
        numbers = jnp.arange(1.0, size + 1.0).reshape(operand.shape)
        transposed = jax.linear_transpose(
            lambda u: equation.primitive.bind(zeros, indices, u, **equation.params),
            jax.ShapeDtypeStruct(updates.shape, jnp.float64),
        )
        # Number 0 marks an update that falls outside and is dropped.
        targets = np.asarray(transposed(numbers)[0]).astype(np.int64).reshape(-1)

    def add(setting: Setting, x: Residues, u: Residues) -> Residues:
        total = np.bincount(targets, weights=u.reshape(-1), minlength=size + 1)[1:]
        return setting.field.reduce(np.asarray(x + total.reshape(x.shape)))

    return [recorder.emit(add, [operand, updates], operand.shape)]


Rule = Callable[[Recorder, Any, Sequence[Value]], list[Value]]

INDEXING: dict[str, Rule] = dict.fromkeys(_MOVED, _move) | {"scatter-add": _scatter_add}
