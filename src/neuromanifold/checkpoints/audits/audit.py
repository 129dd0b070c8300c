"""`audit`: the redundancy of a checkpoint part by part, and what its heads look like."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from neuromanifold.checkpoints.audits.proof import SmallProof, certify_block
from neuromanifold.checkpoints.audits.spectra import (
    Spectrum,
    product_distance,
    product_spectrum,
    product_values,
)
from neuromanifold.checkpoints.audits.stabiliser import stabiliser_of
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, Float64Tensors
from neuromanifold.checkpoints.forms import Heads, folded, head_forms
from neuromanifold.checkpoints.gauge.group import PARTS, has_eps, unmet, unseen
from neuromanifold.checkpoints.gauge.part import Readout

PROBES = 8
"""Random vectors that tell heads apart."""
KNOWN = "upper bound: theorem; equality: conjecture"


@dataclass(frozen=True, slots=True)
class PartCount:
    """One part of the gauge group: its name, statement, formula and dimension."""

    name: str
    statement: str
    formula: str
    dimension: int


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """One query head.

    Attributes:
        layer, head, group: where it is; `group` is its key and value head.
        query_key: the spectrum of W_Qᵀ W_K, norms folded.
        value_output: the spectrum of W_O W_V.
        balance_query_key: the largest ratio between the sizes of a factor's singular directions and
            those of the balanced factor of the same product, 1 when it is balanced.
        balance_value_output: the same for value and output.
    """

    layer: int
    head: int
    group: int
    query_key: Spectrum
    value_output: Spectrum
    balance_query_key: float
    balance_value_output: float


@dataclass(frozen=True, slots=True)
class Dead:
    """Parameters the function does not see, with the evidence."""

    what: str
    count: int
    statement: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What a checkpoint holds, and how much of it its function sees.

    Attributes:
        model: the file or folder.
        block: what its configuration says.
        readout: `logits`, `probabilities`; hidden states when there is no head.
        parameters: of the block; a tied head counts once.
        parts: the parts of the gauge group with the dimension at generic weights.
        eps_parts: what would be added if the norms' eps were zero.
        unmet: why no total is claimed; empty when it is.
        stabiliser: by how much rank-deficient heads make the orbit at these weights smaller.
        heads: every head.
        equal_heads: pairs of heads of a layer that are equal up to gauge, with their distance.
        dead: dead parameters.
        slow_planes: rotary planes that turn less than half a radian over the whole context.
        outside: tensors that belong to parts outside the block.
        remarks: what a reader should know.
        proof: that nothing else is redundant in a small block of the kind, if it was asked for.
    """

    model: str
    block: Block
    readout: str
    parameters: int
    parts: tuple[PartCount, ...]
    eps_parts: tuple[PartCount, ...]
    unmet: tuple[str, ...]
    stabiliser: int
    heads: tuple[HeadRecord, ...]
    equal_heads: tuple[tuple[int, int, int, float], ...]
    dead: tuple[Dead, ...]
    slow_planes: int
    outside: tuple[str, ...]
    remarks: tuple[str, ...]
    proof: SmallProof | None = None

    @property
    def redundant(self) -> int | None:
        """The dimension of the gauge group, None where the count is not covered."""
        return None if self.unmet else sum(part.dimension for part in self.parts)

    @property
    def known(self) -> str:
        """How the count is known."""
        if self.unmet:
            return "not covered"
        small = self.proof is not None and self.proof.is_exact
        return f"{KNOWN} (exact for a small network of this kind)" if small else KNOWN

    @property
    def deficient(self) -> tuple[HeadRecord, ...]:
        """The heads of smaller rank than they could have."""
        return tuple(
            head for head in self.heads if head.query_key.deficient or head.value_output.deficient
        )

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON."""
        record = asdict(replace(self, proof=None))
        record["block"] = self.block.to_dict()
        record["equal_heads"] = [
            {"layer": layer, "heads": [first, second], "distance": distance}
            for layer, first, second, distance in self.equal_heads
        ]
        redundant = self.redundant
        record["redundant"] = redundant
        record["dimension"] = None if redundant is None else self.parameters - redundant
        record["known"] = self.known
        record["proof"] = None if self.proof is None else self.proof.to_dict()
        return record

    def __str__(self) -> str:
        redundant = self.redundant
        if redundant is None:
            return (
                f"{self.model}: {self.parameters:,} parameters; the redundancy is not covered: "
                f"{'; '.join(self.unmet)}."
            )
        share = 100 * redundant / self.parameters
        return (
            f"{self.model}: {redundant:,} of {self.parameters:,} parameters are redundant "
            f"({share:.3f} %), which leaves at most {self.parameters - redundant:,} dimensions "
            f"({self.known})."
        )


def audit(checkpoint: Checkpoint, readout: Readout = "logits", *, certify: bool = False) -> Audit:
    """Count the redundancy of a checkpoint and look at every head, one layer at a time.

    With `certify` the count is also proved for a small block of the same kind.
    """
    block = checkpoint.block
    heads: list[HeadRecord] = []
    equal: list[tuple[int, int, int, float]] = []
    dead_keys = 0.0
    stabiliser = 0
    form = folded(checkpoint)
    table = np.zeros((0, block.attention.heads))
    if "score_table" in block.shapes:
        table = block.used("score_table", checkpoint.tensor("score_table"))
    for layer in range(block.stored_layers):
        for name in {"up", "gate", "down"} & block.layer_shapes.keys():
            checkpoint.stored(f"layers.{layer}.{name}")  # no head's, but refused unless finite
        eps, tensors = _eps(checkpoint, layer), form.attention(layer)
        found = [_head(block, tensors, layer, head, eps) for head in range(block.attention.heads)]
        heads += found
        equal += _equal_heads(head_forms(block, tensors), layer, found, eps, table)
        stabiliser += stabiliser_of(checkpoint, layer, found, eps)
        if "key_bias" in block.layer_shapes:
            bias = checkpoint.tensor(f"layers.{layer}.key_bias")
            dead_keys = max(dead_keys, float(np.abs(bias).max()))
    return Audit(
        model=str(checkpoint.path),
        block=block,
        readout="hidden states" if block.head.kind == "none" else readout,
        parameters=block.parameters,
        parts=_counts(block, readout, eps=False),
        eps_parts=_counts(block, readout, eps=True),
        unmet=(*unmet(block), *unseen(block, readout)),
        stabiliser=stabiliser,
        heads=tuple(heads),
        equal_heads=tuple(equal),
        dead=tuple(_dead(checkpoint, dead_keys)),
        slow_planes=_slow_planes(checkpoint),
        outside=checkpoint.found.outside,
        remarks=(*checkpoint.remarks, *_remarks(block, readout)),
        proof=certify_block(block, readout) if certify else None,
    )


def _counts(block: Block, readout: Readout, *, eps: bool) -> tuple[PartCount, ...]:
    return tuple(
        PartCount(part.name, part.statement, part.formula, part.dimension(block, readout))
        for part in PARTS
        if part.dimension(block, readout) and eps == (part.without_eps and has_eps(block, part))
    )


def _eps(checkpoint: Checkpoint, layer: int) -> float:
    """The coarsest precision in which the factors of a layer's heads are stored."""
    names = ("query", "key", "value", "output")
    return max(float(precision(checkpoint.dtype(f"layers.{layer}.{name}"))) for name in names)


def precision(dtype: np.dtype) -> float:
    """The distance from 1 to the next number of a dtype."""
    if dtype.name == "bfloat16":
        return 2.0**-7
    return float(np.finfo(dtype).eps)


def head_factors(block: Block, folded: Float64Tensors, head: int) -> dict[str, np.ndarray]:
    """The factors of a head: query (k, d), key (k, d), value (v, d), output (v, d)."""
    g, r = divmod(head, block.attention.sharing)
    query, key = folded["query"][g, r], folded["key"][g]
    if block.attention.qk_norm is not None:
        offset = block.attention.qk_norm_offset
        query = (folded["query_norm"] + offset)[:, None] * query
        key = (folded["key_norm"] + offset)[:, None] * key
    return {
        "query": query,
        "key": key,
        "value": folded["value"][g],
        "output": folded["output"][g, r].T,
    }


def _head(block: Block, folded: Float64Tensors, layer: int, head: int, eps: float) -> HeadRecord:
    f = head_factors(block, folded, head)
    qk = product_spectrum(f["query"], f["key"], eps)
    ov = product_spectrum(f["output"], f["value"], eps)
    return HeadRecord(
        layer=layer,
        head=head,
        group=head // block.attention.sharing,
        query_key=qk,
        value_output=ov,
        balance_query_key=_balance(f["query"], f["key"], qk),
        balance_value_output=_balance(f["output"], f["value"], ov),
    )


def _balance(left: np.ndarray, right: np.ndarray, product: Spectrum) -> float:
    """How far two factors are from balanced: ‖L‖²_F + ‖R‖²_F over twice the sum of the σ_i.

    The sum of squares is smallest, twice the nuclear norm of the product, exactly when the factors
    are balanced; the square root of the ratio is the root mean square of their stretching.
    """
    least = 2 * sum(product.values)
    size = float(np.sum(left**2) + np.sum(right**2))
    return float(np.sqrt(size / least)) if least > 0 else float("inf") if size > 0 else 1.0


def _equal_heads(
    heads: Heads, layer: int, found: list[HeadRecord], eps: float, table: np.ndarray
) -> list[tuple[int, int, int, float]]:
    """Pairs of heads that do the same to rounding: in their scores, and in what they write.

    What they write of a few random vectors shows most pairs to be far apart: its square is on
    average that of the product.
    """
    seen = np.random.default_rng(0).normal(size=(heads.value.shape[-1], PROBES)) / np.sqrt(PROBES)
    values = heads.value.repeat(heads.sharing, axis=0)
    written = np.swapaxes(heads.output, 1, 2) @ (values @ seen)
    sizes = [
        float(np.linalg.norm(o) * np.linalg.norm(v))
        for o, v in zip(heads.output, values, strict=True)
    ]
    alive = [head.head for head in found if head.query_key.values[0] > 0]
    pairs = []
    for i, j in combinations(alive, 2):
        far = np.linalg.norm(written[i] - written[j]) > 4 * eps * (sizes[i] + sizes[j])
        column = table[:, i] - table[:, j]
        if far or np.any(np.abs(column - column[:1]) > eps * np.abs(table).max(initial=0.0)):
            continue
        forms = zip(_forms(heads, i), _forms(heads, j), strict=True)
        known = [_distance(one, other, eps) for one, other in forms]
        if all(is_rounding for _, is_rounding in known):
            pairs.append((layer, i, j, max(distance for distance, _ in known)))
    return pairs


Form = list[tuple[np.ndarray, np.ndarray]]
"""Products of factors (n, a) and (n, b) that are seen together."""


def _forms(heads: Heads, head: int) -> tuple[Form, Form, Form]:
    """All that the function sees of a head, constants included: scores, lengths and writing.

    Under rotary positions the scores are one complex product for each plane, and a real one on the
    rest (gauge-rope); a norm of queries and keys sees their lengths as well (gauge-qk-norm).
    """
    g = head // heads.sharing
    planes = zip(heads.query_planes[head].conj(), heads.key_planes[g], strict=True)
    scores = [(heads.query[head], heads.key[g]), *((q[None], k[None]) for q, k in planes)]
    lengths = [(rows, rows) for rows in (heads.query_all[head], heads.key_all[g])]
    return scores, lengths, [(heads.output[head], heads.value[g])]


def _distance(first: Form, second: Form, eps: float) -> tuple[float, bool]:
    """The relative distance of two forms, and whether rounding of their factors explains it.

    Factors that are off by u‖L‖ and u‖R‖ (Frobenius) make LᵀR off by u(‖L‖‖R‖₂ + ‖L‖₂‖R‖); twice
    that is allowed, for factors that were computed from rounded ones.
    """
    squares, norm = np.zeros(3), np.linalg.norm
    for (left, right), (other_left, other_right) in zip(first, second, strict=True):
        if not left.size:
            continue
        allowed = sum(
            float(norm(x) * norm(y, 2) + norm(x, 2) * norm(y))
            for x, y in ((left, right), (other_left, other_right))
        )
        apart = product_distance(left, right, other_left, other_right)
        squares += apart**2, (eps * allowed) ** 2, np.sum(product_values(left, right) ** 2)
    apart, allowed, size = map(float, np.sqrt(squares))
    return apart / size if size else 0.0, apart <= allowed


def _dead(checkpoint: Checkpoint, largest_key_bias: float) -> Iterator[Dead]:
    block, a = checkpoint.block, checkpoint.block.attention
    if a.key_bias and a.constants_die and a.key_size > a.rotated:
        count = block.stored_layers * a.groups * (a.key_size - a.rotated)
        yield Dead(
            "key biases",
            count,
            "dead-key-bias",
            f"they add a constant to all scores of a query; the largest is {largest_key_bias:.3g}",
        )
    if unused := len(block.unused("positions")):
        yield Dead(
            "position rows",
            unused * block.width,
            "tables",
            f"padding has row {unused}, and positions start after it",
        )
    for name, _ in block.tables:
        table = checkpoint.stored(name)
        empty = int(np.sum(~np.any(table != 0, axis=1)))
        if empty:
            yield Dead(f"rows of {name}", 0, "tables", f"{empty} rows are zero: perhaps never used")


def _slow_planes(checkpoint: Checkpoint) -> int:
    rotary = checkpoint.block.attention.rotary
    context = checkpoint.model.config.get("max_position_embeddings")
    if rotary is None or not isinstance(context, int):
        return 0
    return sum(frequency * context < 0.5 for frequency in rotary.frequencies)


def _remarks(block: Block, readout: Readout) -> list[str]:
    remarks = []
    if block.attention.qk_norm is not None:
        remarks.append("queries and keys are normalised: their spectra are those of the maps only")
    if block.head.kind == "tied":
        remarks.append("the head is the token table: the stream cannot be rotated (tied-rotation)")
    if readout == "probabilities" and block.head.kind == "none":
        remarks.append("there is no head: the hidden states were read instead of probabilities")
    return remarks
