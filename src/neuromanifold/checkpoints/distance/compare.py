"""How far two models are from each other, measured so that no gauge changes the answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.adapters.low_rank import roundoff
from neuromanifold.checkpoints.checkpoint import Checkpoint, opened
from neuromanifold.checkpoints.distance.matching import (
    head_costs,
    match_heads,
    match_neurons,
    match_stream,
    moved_outer,
)
from neuromanifold.checkpoints.equality.uniform import block_difference
from neuromanifold.checkpoints.forms import (
    Heads,
    Neurons,
    Tensors,
    folded,
    head_forms,
    neuron_forms,
    vectors,
)
from neuromanifold.checkpoints.normal_form.constants import constant_terms
from neuromanifold.checkpoints.normal_form.stream import frees_rotation, rotate_layer
from neuromanifold.errors import ArgumentError

UNRELATED = 2**0.5
"""The relative distance of two matrices of equal norm that have nothing to do with each other."""
ARITHMETIC = 2.0**-48
"""What folding and turning the stream in float64 cost: a few dozen units of rounding."""


@dataclass(frozen=True)
class LayerDistance:
    """One layer; distances are relative to the larger of both norms, so √2 is unrelated.

    Attributes:
        layer: its number.
        heads: for every head of the first model its counterpart in the second.
        scores: for every head ‖QᵀK − Q′ᵀK′‖.
        writes: for every head ‖O V − O′V′‖.
        score_rounding: what the rounding of the files may make of equal scores, for each head.
        write_rounding: the same for writing.
        neurons: how many neurons have a counterpart of another number.
        mlp: the distance of all neurons together; None without MLP.
        neuron: the largest distance of a single neuron.
        neuron_rounding: what rounding may make of it.
        vectors: distances of what else is seen: constants, gains.
        vector_rounding: what rounding may make of each: constants are sums that may cancel.
    """

    layer: int
    heads: tuple[int, ...]
    scores: tuple[float, ...]
    writes: tuple[float, ...]
    score_rounding: tuple[float, ...]
    write_rounding: tuple[float, ...]
    neurons: int
    mlp: float | None
    neuron: float
    neuron_rounding: float
    vectors: dict[str, float]
    vector_rounding: dict[str, float]

    @property
    def largest(self) -> float:
        """The largest distance in the layer."""
        return max(self._distances)

    @property
    def _distances(self) -> tuple[float, ...]:
        return *self.scores, *self.writes, self.neuron, *self.vectors.values()

    @property
    def unchanged(self) -> bool:
        """Whether no distance exceeds what rounding may make of that part."""
        heads = (*self.score_rounding, *self.write_rounding)
        allowed = *heads, self.neuron_rounding, *self.vector_rounding.values()
        return all(one <= most for one, most in zip(self._distances, allowed, strict=True))

    def to_dict(self) -> dict[str, object]:
        """The JSON of one layer."""
        values = vars(self).items()
        lists = {key: list(value) for key, value in values if isinstance(value, tuple)}
        return {**vars(self), **lists, "unchanged": self.unchanged}


@dataclass(frozen=True)
class Comparison:
    """Two models, layer by layer and head by head; outside the layers whole, and by worst rows."""

    first: Path
    second: Path
    layers: tuple[LayerDistance, ...]
    outer: dict[str, float]
    rows: dict[str, float]
    rounding: float
    stream: str
    remarks: tuple[str, ...] = ()
    difference: str | None = None

    @property
    def median(self) -> float:
        """The median distance of all heads, scores and writing."""
        values = [x for layer in self.layers for x in (*layer.scores, *layer.writes)]
        return float(np.median(values))

    @property
    def unchanged(self) -> list[int]:
        """The layers without any change beyond rounding."""
        return [layer.layer for layer in self.layers if layer.unchanged]

    def most_moved(self, count: int = 3) -> list[tuple[int, int, float]]:
        """The heads with the largest distances: layer, head, distance."""
        found = [
            (layer.layer, head, max(layer.scores[head], layer.writes[head]))
            for layer in self.layers
            for head in range(len(layer.heads))
        ]
        return sorted(found, key=lambda item: -item[2])[:count]

    def __str__(self) -> str:
        names = f"{self.first} and {self.second}"
        outer = [name for name, value in self.rows.items() if value > self.rounding]
        said = ""
        if self.difference is not None:
            said = f" The configurations differ: {self.difference}; only weights are compared."
        if len(self.unchanged) == len(self.layers) and not outer:
            return f"{names}: no difference beyond rounding in any layer, table or head.{said}"
        heads = ", ".join(f"{layer}.{head}" for layer, head, _ in self.most_moved())
        unchanged = _runs(self.unchanged)
        return (
            f"{names}: median distance of heads {self.median:.3g} (0 equal, {UNRELATED:.2f} "
            f"unrelated); layers unchanged: {unchanged}; heads that moved most: {heads}; "
            f"outside the layers: {', '.join(outer) if outer else 'nothing'} changed.{said}"
        )

    def to_dict(self) -> dict[str, object]:
        """The JSON of `checkpoint compare`."""
        return {
            "first": str(self.first),
            "second": str(self.second),
            "summary": str(self),
            "median": self.median,
            "unrelated": UNRELATED,
            "stream": self.stream,
            "unchanged": self.unchanged,
            "most_moved": [
                {"layer": layer, "head": head, "distance": distance}
                for layer, head, distance in self.most_moved()
            ],
            "outer": self.outer,
            "rows": self.rows,
            "layers": [layer.to_dict() for layer in self.layers],
            "remarks": list(self.remarks),
        }


def compare(
    first: str | Path | Checkpoint,
    second: str | Path | Checkpoint,
    *,
    config: str | Path | Mapping[str, object] | None = None,
    heads: int | None = None,
    family: str | Path | None = None,
) -> Comparison:
    """Compare two models of one shape: distances that no gauge changes, after the best matching.

    Args:
        first: a checkpoint, or its path.
        second: another.
        config: for paths, a configuration where none lies beside the weights.
        heads: for paths, the number of heads where the configuration does not say.
        family: for paths, a file that describes a model of no known family.
    """
    a, b = (opened(item, config, heads, family) for item in (first, second))
    check_comparable(a, b)
    difference = block_difference(a.block, b.block)
    b = b.as_block(a.block) if difference is None else b  # in one rotary layout
    pair = Pair(a, b)
    u = ARITHMETIC + max(roundoff(item.dtype("layers.0.query")) for item in (a, b))
    layers = tuple(_compare_layer(pair, layer, u) for layer in range(a.block.stored_layers))
    outer, rows = (
        {name: measure(table, pair.outer[1][name]) for name, table in pair.outer[0].items()}
        for measure in (relative, worst_row)
    )
    remarks = tuple(dict.fromkeys((*a.remarks, *b.remarks)))
    said = pair.stream_kind, remarks, difference
    return Comparison(a.path, b.path, layers, outer, rows, 8 * u, *said)


class Pair:
    """Two models with folded tensors, the second one's stream moved to the first one's."""

    def __init__(self, a: Checkpoint, b: Checkpoint) -> None:
        self.block = a.block
        self.forms = folded(a), folded(b)
        first, second = (form.outer() for form in self.forms)
        self.rotation = match_stream(self.block, first, second)
        self.heads: np.ndarray | None = None
        second = moved_outer(self.block, first, second, self.rotation)
        if self.block.attention.relative is not None:
            # all layers use the columns of one table, so that one matching serves them all
            costs = sum(self.costs(layer) for layer in range(self.block.stored_layers))
            self.heads = match_heads(np.asarray(costs), self.block.attention.groups)
            second = {**second, "score_table": second["score_table"][:, self.heads]}
        self.outer = first, second

    @property
    def stream_kind(self) -> str:
        """What became of the second model's stream."""
        if self.rotation is None:
            return "identity"
        return "rotation" if frees_rotation(self.block) else "permutation"

    def layer(self, layer: int) -> tuple[Tensors, Tensors]:
        """The folded tensors of one layer of both."""
        first, second = (form.layer(layer) for form in self.forms)
        return first, second if self.rotation is None else rotate_layer(second, self.rotation)

    def costs(self, layer: int) -> np.ndarray:
        """Squared distances of all pairs of heads of a layer."""
        first, second = (head_forms(self.block, tensors) for tensors in self.layer(layer))
        return head_costs(first, second)

    def match(self, first: Tensors, second: Tensors) -> np.ndarray:
        """The matching of the heads of a layer."""
        if self.heads is not None:
            return self.heads
        costs = head_costs(head_forms(self.block, first), head_forms(self.block, second))
        return match_heads(costs, self.block.attention.groups)


def check_comparable(a: Checkpoint, b: Checkpoint) -> None:
    """Refuse models of different shapes with the first shape that differs."""
    shapes, others = a.block.shapes, b.block.shapes
    if a.block.layers != b.block.layers:
        raise ArgumentError(
            f"{a.path} has {a.block.layers} layers and {b.path} {b.block.layers}; "
            "models of one shape can be compared"
        )
    for name in dict.fromkeys((*shapes, *others)):
        if shapes.get(name) != others.get(name):
            raise ArgumentError(
                f"{name} is {shapes.get(name, 'missing')} in {a.path} and "
                f"{others.get(name, 'missing')} in {b.path}; models of one shape can be compared"
            )


def _compare_layer(pair: Pair, layer: int, u: float) -> LayerDistance:
    block = pair.block
    first, second = pair.layer(layer)
    heads = pair.match(first, second)
    found = head_distances(head_forms(block, first), head_forms(block, second), heads, u)
    scores, writes, of_scores, of_writes = (tuple(map(float, part)) for part in found)
    a, b = neuron_forms(block, first), neuron_forms(block, second)
    moved, mlp, neuron = 0, None, 0.0
    if a is not None and b is not None:
        partners = match_neurons(a, b)
        moved = int(np.sum(partners != np.arange(len(partners))))
        pairs = matched_neurons(a, b, partners)
        mlp, neuron = relative(*pairs), worst_row(*pairs)
    return LayerDistance(
        layer,
        tuple(map(int, heads)),
        scores,
        writes,
        of_scores,
        of_writes,
        moved,
        mlp,
        neuron,
        8 * u,
        *_vector_distances(pair, layer, vectors(block, first), vectors(block, second), u),
    )


def _vector_distances(
    pair: Pair, layer: int, first: Tensors, second: Tensors, u: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Distances of constants and gains, and what rounding of the terms of a constant makes."""
    terms = [constant_terms(form.checkpoint, layer) for form in pair.forms]
    distances: dict[str, float] = {}
    rounding: dict[str, float] = {}
    for name, vector in first.items():
        summed = max(np.linalg.norm(one.get(name, 0.0)) for one in terms)
        size = max(np.linalg.norm(vector), np.linalg.norm(second[name]))
        distances[name] = relative(vector, second[name])
        rounding[name] = float(8 * u * (1 + summed / size)) if size else 0.0
    return distances, rounding


def head_distances(
    a: Heads, b: Heads, partners: np.ndarray, u: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For matched heads the relative distances of scores and writing, and what rounding makes.

    Rounding a factor by u‖·‖ moves a product by 2u‖L‖‖R‖: more than u times the product where the
    factors are badly conditioned.
    """
    share = a.sharing
    group, other = np.arange(len(partners)) // share, partners // share
    parts = [
        _difference(a.query, a.key[group], b.query[partners], b.key[other]),
        _planes_difference(
            a.query_planes, a.key_planes[group], b.query_planes[partners], b.key_planes[other]
        ),
    ]
    distance, *norms, size = (np.sqrt(sum(part[i] ** 2 for part in parts)) for i in range(4))
    scores, rounding = _relative(distance, *norms), _relative(8 * u * size, *norms)
    lengths = (a.query_all, b.query_all[partners]), (a.key_all[group], b.key_all[other])
    for mine, yours in lengths:
        scores = np.maximum(scores, _relative(*_difference(mine, mine, yours, yours)[:3]))
    part = _difference(a.output, a.value[group], b.output[partners], b.value[other])
    return scores, _relative(*part[:3]), rounding, _relative(8 * u * part[3], *part[1:3])


def _difference(
    L: np.ndarray, R: np.ndarray, M: np.ndarray, S: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """‖LᵀR − MᵀS‖, ‖LᵀR‖, ‖MᵀS‖ and the larger ‖L‖‖R‖ for stacks of factors (heads, size, width).

    QR of the factors side by side, so that equal products cancel to rounding and not to its root.
    """
    size = L.shape[1]
    left = np.linalg.qr(np.swapaxes(np.concatenate([L, M], 1), 1, 2), mode="r")
    right = np.linalg.qr(np.swapaxes(np.concatenate([R, S], 1), 1, 2), mode="r")

    def norm(keep: np.ndarray) -> np.ndarray:
        return np.linalg.norm((left * keep) @ np.conj(np.swapaxes(right, 1, 2)), axis=(1, 2))

    first, second = np.repeat([1.0, 0.0], size), np.repeat([0.0, 1.0], size)
    sizes = [
        np.linalg.norm(x, axis=(1, 2)) * np.linalg.norm(y, axis=(1, 2)) for x, y in ((L, R), (M, S))
    ]
    return norm(first - second), norm(first), norm(second), np.maximum(*sizes)


def _planes_difference(
    q: np.ndarray, k: np.ndarray, q2: np.ndarray, k2: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same for the products q̄ k of every plane, summed over planes; arrays (H, p, width)."""
    heads, planes, width = q.shape

    def single(x: np.ndarray) -> np.ndarray:
        return x.reshape(heads * planes, 1, width)

    # (L̄ᵀ R) is what `_difference` forms of L and R̄; conjugation changes no norm
    found = _difference(single(q), single(k), single(q2), single(k2))
    return tuple(np.linalg.norm(x.reshape(heads, planes), axis=1) for x in found)  # type: ignore


def _relative(distance: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    size = np.maximum(first, second)
    return np.divide(distance, size, out=np.zeros_like(distance), where=size > 0)


def matched_neurons(a: Neurons, b: Neurons, partners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of matched neurons, with the signs that bring them together."""
    signed, fixed = b.signed[partners], b.fixed[partners]
    if a.mirrored:
        signed = signed * np.where(np.sum(a.signed * signed, 1) < 0, -1.0, 1.0)[:, None]
    return np.hstack([a.signed, a.fixed]), np.hstack([signed, fixed])


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """‖a − b‖ over the larger of both norms; 0 when both vanish."""
    size = max(np.linalg.norm(a), np.linalg.norm(b))
    return float(np.linalg.norm(a - b) / size) if size else 0.0


def worst_row(a: np.ndarray, b: np.ndarray) -> float:
    """The largest ‖a_i − b_i‖ over the norm of that row, or of a row of the mean size."""
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    norms = [np.linalg.norm(rows, axis=1) for rows in (a, b)]
    size = np.maximum(np.maximum(*norms), np.sqrt(np.mean(norms[0] ** 2)))
    off = np.linalg.norm(a - b, axis=1)
    return float(np.max(np.divide(off, size, out=np.zeros_like(off), where=size > 0), initial=0.0))


def _runs(numbers: list[int]) -> str:
    """Numbers as runs: 0–3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return ", ".join(words) if words else "none"
