"""`same`: do two files hold the same function, and which symmetry, or which part, makes it so.

Both models are written in one block, folded, and put in one basis of the stream; then the products
that the function sees are compared head by head and neuron by neuron. `same` needs all of them to
agree to rounding, and the outputs too; `different` needs an input that shows it.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from neuromanifold.checkpoints.audits.audit import precision
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.distance.matching import match_stream, match_tables, moved_outer
from neuromanifold.checkpoints.equality.agreement import (
    Deviation,
    LayerAgreement,
    Rounding,
    compare_layers,
    compare_rows,
    unit,
)
from neuromanifold.checkpoints.equality.element import Ordered, note_changes, note_raw
from neuromanifold.checkpoints.equality.exact import proved_same
from neuromanifold.checkpoints.equality.exchange import SHOWN, Apart, apart, exchange
from neuromanifold.checkpoints.equality.outside import unexplained
from neuromanifold.checkpoints.equality.sameness import Sameness, Witness
from neuromanifold.checkpoints.equality.uniform import uniform
from neuromanifold.checkpoints.forms import folded
from neuromanifold.checkpoints.normal_form.canonical import Canonical
from neuromanifold.checkpoints.normal_form.constants import constant_terms
from neuromanifold.checkpoints.normal_form.stream import as_signed_permutation, rotate_layer
from neuromanifold.checkpoints.running import (
    Noisy,
    deviation,
    inputs_reaching,
    noise_of,
    random_inputs,
    run,
)
from neuromanifold.errors import NotCoveredError

DRAWS = 8
"""Draws of noise for each model, where something is not explained; else one is enough."""
NOISE = 12.0
"""Outputs agree when they differ by at most this many times what rounding-size noise makes.

If it moves them in one direction only, the ratio is Student's with eight degrees of freedom, above
12 with a probability of 2e-6; in more directions its tails are lighter.
"""


def same(
    first: Checkpoint, second: Checkpoint, *, rtol: float | None = None, seed: int = 0
) -> Sameness:
    """Say whether two checkpoints hold the same function.

    Args:
        first: a model.
        second: another one with the same sizes and parts.
        rtol: the relative rounding of what is stored; by default that of each file's dtype.
        seed: of the inputs on which outputs are compared.
    """
    a, b, notes = uniform(first, second)
    rounding = Rounding(_rounding(a, rtol), _rounding(b, rtol))
    found = _decided(a, b, notes, rounding, seed)
    if found.verdict != "different" or rtol is not None:
        return found
    for place, model in {"first": a, "second": b}.items():
        dtype = _fitting(model)
        coarse = 0.0 if dtype is None else precision(dtype) / 2
        if coarse > getattr(rounding, place):
            again = _decided(a, b, notes, replace(rounding, **{place: coarse}), seed)
            if again.verdict == "different":
                return again
            reason = (
                f"all numbers of {model.path} fit {dtype}, and at that rounding the verdict is "
                f"{again.verdict} ({again.reason}); if it was stored so, say --rtol {coarse:.1e}"
            )
            return again.undecided(reason)
    return found


def _fitting(model: Checkpoint) -> np.dtype | None:
    """The coarsest dtype that holds every number of a model as it is."""
    for dtype in map(np.dtype, (ml_dtypes.bfloat16, np.float16)):
        with np.errstate(over="ignore"):
            values = (model.tensor(name) for name in model.block.shapes)
            if all(np.array_equal(value, value.astype(dtype)) for value in values):
                return dtype
    return None


def _decided(
    a: Checkpoint, b: Checkpoint, notes: list[str], rounding: Rounding, seed: int
) -> Sameness:
    found = None
    with (
        np.errstate(over="raise", invalid="raise"),
        suppress(FloatingPointError, np.linalg.LinAlgError),
    ):
        found = _compare(a, b, rounding)
    broken: list[Deviation] = [] if found is None else found.broken
    draws = DRAWS if broken else 1
    ran = _run_both(a, b, random_inputs(a.block, seed), rounding, draws, seed)
    rows = {d.part: d.head for d in broken if d.part in dict(a.block.tables) and d.head is not None}
    if rows and ran.error <= ran.tolerance:  # the text may not have met the rows that differ
        ran = _run_both(a, b, inputs_reaching(a.block, rows, seed), rounding, draws, seed)
    if found is None or not np.isfinite([ran.noise, ran.error]).all():
        raise NotCoveredError(
            f"the numbers of {a.path} or {b.path} are so large that float64 overflows "
            "where the models are compared; rescale them"
        )
    return _verdict(a, b, found, notes, rounding, seed, ran)


@dataclass(frozen=True)
class _Ran:
    """Outputs of two models at the same inputs, and what noise of the size of rounding does."""

    outputs: np.ndarray
    others: np.ndarray
    noise: float

    @property
    def error(self) -> float:
        """How far the outputs are apart."""
        return deviation(self.outputs, self.others)

    @property
    def tolerance(self) -> float:
        """How far they may be apart."""
        return NOISE * self.noise


def _run_both(
    a: Checkpoint,
    b: Checkpoint,
    inputs: Mapping[str, np.ndarray],
    rounding: Rounding,
    draws: int,
    seed: int,
) -> _Ran:
    outputs, others = run(a, inputs).outputs, run(b, inputs).outputs
    noise = math.hypot(
        *(
            noise_of(clean, [Noisy(model, size, (seed, k)) for k in range(draws)], inputs)
            for model, clean, size in (
                (a, outputs, rounding.first),
                (b, others, rounding.second),
            )
        )
    )
    return _Ran(outputs, others, noise)


@dataclass(frozen=True)
class _Found:
    deviations: tuple[Deviation, ...]
    stream: np.ndarray | None
    layers: tuple[LayerAgreement, ...]
    changes: Mapping[str, np.ndarray]
    moved: frozenset[str]
    outside: tuple[str, ...]
    bits: tuple[str, ...]

    @property
    def broken(self) -> list[Deviation]:
        """What rounding does not explain, the worst first."""
        return sorted((d for d in self.deviations if not d.agrees), key=lambda d: -d.allowed)

    def ordered(self, model: Checkpoint) -> Ordered | None:
        """The second model in the first one's order, unless its stream is rotated."""
        turn = None if self.stream is None else as_signed_permutation(self.stream)
        same_order = (
            "score_table" not in model.block.shapes
            or len({tuple(one.heads) for one in self.layers}) == 1
        )
        plain = self.stream is None or turn is not None
        return Ordered(model, self.layers, turn) if plain and same_order else None


def _rounding(model: Checkpoint, rtol: float | None) -> float:
    if rtol is not None:
        return rtol
    return max(unit(model.dtype(name)) for name in model.block.shapes)


def _compare(a: Checkpoint, b: Checkpoint, rounding: Rounding) -> _Found:
    block = a.block
    forms = folded(a), folded(b)
    outer, other = forms[0].outer(), forms[1].outer()
    R = match_stream(block, outer, other, rounding.first + rounding.second)
    tables = match_tables(block, outer, other)
    other = moved_outer(block, outer, other, R)
    deviations = _outer_deviations(block, a, outer, other, rounding)
    layers: list[LayerAgreement] = []
    changes: dict[str, np.ndarray] = {} if tables is None else {"tables": tables}
    moved: set[str] = set() if tables is None else {"tables rotated"}
    for layer in range(block.stored_layers):
        mine, turned, agreement = _agreement(*forms, layer, R, rounding)
        layers.append(agreement)
        deviations += agreement.deviations
        if "score_table" in outer:
            table = other["score_table"][:, agreement.heads]
            deviations.append(
                compare_rows("score_table", layer, outer["score_table"], table, rounding)
            )
        note_changes(block, layer, mine, turned, agreement, changes, moved, rounding)
        note_raw(a, b, layer, moved)
    outside = [unexplained(a, b, R, allowed) for allowed in (rounding, Rounding(0.0, 0.0))]
    return _Found(tuple(deviations), R, tuple(layers), changes, frozenset(moved), *outside)


def _agreement(
    a: Canonical, b: Canonical, layer: int, R: np.ndarray | None, rounding: Rounding
) -> tuple[Float64Tensors, Float64Tensors, LayerAgreement]:
    """One layer of two folded models in the first one's basis, and how they agree."""
    mine, theirs = a.layer(layer), b.layer(layer)
    turned = theirs if R is None else rotate_layer(theirs, R)
    first = mine, constant_terms(a.checkpoint, layer)
    second = turned, constant_terms(b.checkpoint, layer)
    return mine, turned, compare_layers(a.block, layer, first, second, rounding)


def agrees_at(layer: int | None, a: Canonical, b: Canonical, found: Sameness) -> bool:
    """Whether a layer of two folded models, or what lies outside, agrees as an answer allows."""
    R = found.element.get("stream")
    if layer is not None:
        deviations = _agreement(a, b, layer, R, found.rounding)[2].deviations
    else:
        outer = a.outer()
        other = moved_outer(a.block, outer, b.outer(), R)
        deviations = _outer_deviations(a.block, a.checkpoint, outer, other, found.rounding)
    return all(one.agrees for one in deviations)


def _outer_deviations(
    block: Block, a: Checkpoint, outer: Float64Tensors, other: Float64Tensors, rounding: Rounding
) -> list[Deviation]:
    """Tensors outside the layers, entry by entry; means of tables and folded shifts are sums."""
    found = []
    for name in block.global_shapes:
        if name == "score_table":
            continue
        terms = float(np.abs(outer[name]).max()) if name in dict(block.tables) else 0.0
        if name in ("unembedding", "unembedding_bias") and "final_norm_shift" in block.shapes:
            rows = np.abs(a.tensor("unembedding")) @ np.abs(a.tensor("final_norm_shift"))
            terms = float(rows.max())
        found.append(compare_rows(name, None, outer[name], other[name], rounding, terms))
    return found


def _verdict(
    a: Checkpoint,
    b: Checkpoint,
    found: _Found,
    notes: list[str],
    rounding: Rounding,
    seed: int,
    ran: _Ran,
) -> Sameness:
    element = dict(found.changes) | ({} if found.stream is None else {"stream": found.stream})
    agreed = Sameness(
        verdict="same",
        level="equal to rounding",
        reason="",
        symmetries=_symmetries(found, notes),
        differences=tuple(found.broken),
        error=ran.error,
        noise=ran.noise,
        tolerance=ran.tolerance,
        rounding=rounding,
        seed=seed,
        witness=None,
        element=element,
    )
    # whatever float64 makes of numbers that cancel
    primes = None if found.bits else proved_same(a, b, found.stream, found.layers)
    if primes is not None:
        reason = "the stored numbers are equal" + (", in another order" if element else "")
        if primes:
            reason = f"all that determines the function is equal, proved modulo {primes} primes"
        return replace(agreed, level="exact", reason=reason, differences=(), primes=primes)
    other = found.ordered(b)
    count = None if other is None else apart(a, other, rounding)
    if not found.broken:
        return _together(count, found, agreed)
    if count is not None and not count.wrong:
        return agreed.undecided(
            "every number that is seen of one is to rounding that of the other, but "
            f"{_first(found.broken)} is not explained by independent rounding: rows that nothing "
            "reads, numbers too small for their dtype, or rounded all to one side"
        )
    return _apart(a, other, agreed, Witness.of(ran.outputs, ran.others, seed))


def _apart(a: Checkpoint, b: Ordered | None, agreed: Sameness, witness: Witness) -> Sameness:
    """The answer where some part is not explained by rounding."""
    part = f"{_first(agreed.differences)} is not explained by rounding"
    if agreed.error > agreed.tolerance:
        return agreed.different(f"{part}; the outputs differ by {agreed.error:.1e}", witness)
    exchanged = None if b is None else exchange(a, b, agreed.rounding, agreed.seed)
    if exchanged is not None:
        before, after, noise = exchanged
        error, tolerance = deviation(before, after), SHOWN * noise
        if error > tolerance:
            shown = replace(agreed, error=error, noise=noise, tolerance=tolerance)
            reason = (
                f"{part}; exchanging the entries that are not changes the outputs by {error:.1e}, "
                f"and their errors by {noise:.1e}"
            )
            return shown.different(reason, Witness.of(before, after, agreed.seed))
    return agreed.undecided(
        f"{part}, and the outputs differ by {agreed.error:.1e}, of which rounding may make "
        f"{agreed.tolerance:.1e}: a symmetry this does not know, too few inputs, or a fault that "
        "rounding hides"
    )


def _together(count: Apart | None, found: _Found, agreed: Sameness) -> Sameness:
    """The answer where every part agrees to rounding."""
    error, agrees_out = agreed.error, agreed.error <= agreed.tolerance
    if found.outside:
        return agreed.undecided(
            f"the block is the same, but {found.outside[0]} is not equal in both files "
            f"({len(found.outside)} such), and nothing is known about what that changes"
        )
    if count is not None and count.is_suspect:
        return agreed.undecided(
            f"every part agrees to rounding, and the outputs to {error:.1e}, but {count.alone} "
            f"stored number(s), the first in {count.place}, differ by more than their own rounding "
            "where the rest of the row and column does not: a fault smaller than the rounding of "
            "its row, or a symmetry as small"
        )
    if count is not None and not count.wrong and agrees_out:
        return replace(
            agreed,
            reason="every number that is seen of one is to rounding that of the other, and the "
            f"outputs agree to {error:.1e}",
        )
    blunt = [d for d in found.deviations if d.agrees and d.is_blunt]
    if blunt:
        return agreed.undecided(
            f"{blunt[0]}: the factors are too badly conditioned for their dtype to decide"
        )
    if not agrees_out:
        return agreed.undecided(
            f"every part agrees to rounding, and the outputs differ by {error:.1e} where noise "
            f"makes {agreed.noise:.1e}"
        )
    return replace(agreed, reason=f"every part agrees to rounding, and the outputs to {error:.1e}")


def _first(broken: Sequence[Deviation]) -> str:
    """The first broken part in the order of the model, which is where an edit went wrong."""
    return str(min(broken, key=lambda d: (-1 if d.layer is None else d.layer, -d.allowed)))


def _symmetries(found: _Found, notes: list[str]) -> tuple[str, ...]:
    used = [*notes]
    if found.stream is not None:
        signed = np.abs(np.abs(found.stream).sum(axis=0) - 1).max() < 1e-9
        used.append("stream permuted" if signed else "stream rotated")
    return (*used, *sorted(found.moved))
