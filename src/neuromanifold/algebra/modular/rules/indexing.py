"""Gathers, dynamic slices and scatters at known positions.

Where each entry goes depends on many parameters, and JAX knows them: the primitive itself is
applied once to the numbers of the entries instead of the entries, and tells which one lands where.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuromanifold.algebra.modular.recorder import Known, Recorder, Rule, Shape, Value
from neuromanifold.algebra.modular.rules.arithmetic import product
from neuromanifold.algebra.modular.tangents import Setting
from neuromanifold.algebra.prime_field import Residues
from neuromanifold.errors import ArgumentError, NotCoveredError

MOVED = {
    "dynamic_slice": (0,),
    "dynamic_update_slice": (0, 1),
    "gather": (0,),
    "scatter": (0, 2),
}
"""For each primitive the operands whose entries it moves; the others say where to."""
# What says where the updates of a scatter go, for every way to combine them.
_SCATTERING = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")


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


def sources_of(equation: Any, operands: Sequence[Any]) -> Any:
    """For each entry of the result the number of the entry that is moved there.

    All entries that may be moved are numbered, operand after operand; what a gather reads outside
    of its operand has the first number that is none of theirs. Of operands whose entries are moved
    only the shapes are used.
    """
    params, start, numbered = dict(equation.params), 0, list(operands)
    if "fill_value" in params:
        params["fill_value"] = -1.0
    for place in MOVED[equation.primitive.name]:
        shape = np.shape(operands[place])
        stop = start + math.prod(shape)
        numbered[place] = jnp.arange(start, stop, dtype=jnp.float64).reshape(shape)
        start = stop
    numbers = equation.primitive.bind(*map(jnp.asarray, numbered), **params)
    return jnp.where(numbers < 0, start, numbers).astype(jnp.int32)


def _move(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """The entries from where `sources_of` says; one more source holds what a gather fills in."""
    moved = MOVED[equation.primitive.name]
    sources = [recorder.beside(values[place], equation) for place in moved]
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        operands = _positions(recorder, equation, values, moved)
        operands |= {k: np.empty(x.shape) for k, x in zip(moved, sources, strict=True)}
        numbers = np.asarray(sources_of(equation, [operands[k] for k in sorted(operands)]))
    if (numbers == sum(math.prod(x.shape) for x in sources)).any():
        filling = equation.params["fill_value"]
        if filling is None or np.isnan(filling):
            raise ArgumentError(
                f"{recorder.where(equation)} reads outside its operand, which gives NaN: "
                "keep the positions inside"
            )
        sources.append(recorder.unknown(Known(np.full(1, filling, np.float64)), equation))

    def move(*arrays: np.ndarray) -> np.ndarray:
        return np.concatenate([array.reshape(-1) for array in arrays])[numbers]

    return [recorder.move(move, sources, numbers.shape)]


def scatter_targets(equation: Any, shape: Shape, indices: np.ndarray, updates: Shape) -> np.ndarray:
    """For each update of a scatter the number, from 1, of the entry it meets; 0 if it is dropped.

    Adding updates is linear in them, and its transpose tells the target of each.
    """
    dimensions, *how = (equation.params[name] for name in _SCATTERING)
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        zeros = jnp.zeros(shape)
        numbers = jnp.arange(1.0, zeros.size + 1.0).reshape(shape)

        def scattered(u: jax.Array) -> jax.Array:
            rest = dict(zip(_SCATTERING[1:], how, strict=True))
            return jax.lax.scatter_add(zeros, jnp.asarray(indices), u, dimensions, **rest)

        transposed = jax.linear_transpose(scattered, jax.ShapeDtypeStruct(updates, jnp.float64))
        return np.asarray(transposed(numbers)[0]).astype(np.int64).reshape(-1)


def _targets(recorder: Recorder, equation: Any, values: Sequence[Value]) -> np.ndarray:
    operand, updates = (recorder.finite(values[place], equation) for place in (0, 2))
    indices = _positions(recorder, equation, values, (0, 2))[1]
    return scatter_targets(equation, operand.shape, np.asarray(indices), updates.shape)


def _scatter_add(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Entry k gets at most as many terms as there are updates, each below p/2 + 4.

    Exact in float64 for up to 2^30 updates.
    """
    operand, updates = (recorder.finite(values[place], equation) for place in (0, 2))
    targets, size = _targets(recorder, equation, values), int(np.prod(operand.shape))
    sign = -1.0 if equation.primitive.name == "scatter-sub" else 1.0

    def add(setting: Setting, x: Residues, u: Residues) -> Residues:
        total = np.bincount(targets, weights=sign * u.reshape(-1), minlength=size + 1)[1:]
        return setting.field.reduce(np.asarray(x + total.reshape(x.shape)))

    return [recorder.emit(add, [operand, updates], operand.shape, degree=1)]


def _scatter_mul(recorder: Recorder, equation: Any, values: Sequence[Value]) -> list[Value]:
    """Entry k is multiplied by its updates one after the other: each product is of two residues."""
    result, updates = (recorder.finite(values[place], equation) for place in (0, 2))
    targets, shape = _targets(recorder, equation, values), result.shape
    ones = recorder.unknown(Known(np.ones(shape)), equation)
    for turn in _turns(targets):

        def placed(u: np.ndarray, one: np.ndarray, turn: np.ndarray = turn) -> np.ndarray:
            factors = one.reshape(-1).copy()
            factors[targets[turn] - 1] = u.reshape(-1)[turn]
            return factors.reshape(shape)

        result = product(recorder, result, recorder.move(placed, [updates, ones], shape))
    return [result]


def _turns(targets: np.ndarray) -> list[np.ndarray]:
    """The updates that are not dropped, in rounds that meet each entry at most once."""
    left = np.flatnonzero(targets)
    rounds: list[np.ndarray] = []
    while left.size:
        _, first = np.unique(targets[left], return_index=True)
        rounds.append(left[first])
        left = np.delete(left, first)
    return rounds


INDEXING: dict[str, Rule] = {
    **dict.fromkeys(MOVED, _move),
    "scatter-add": _scatter_add,
    "scatter-mul": _scatter_mul,
    "scatter-sub": _scatter_add,
}
