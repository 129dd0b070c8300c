"""One model moved along its fiber as near to another as its symmetries allow.

The second model is folded, its stream, heads and neurons are matched to the first one's, every
head and neuron is put in the basis nearest to the first one's (gauge-qk, gauge-rope, gauge-ov,
mlp-scale), and then everything is unfolded with the first model's norms, dead biases and means
(norm-absorption, layernorm-centring, dead-key-bias, value-bias, stream-one, tables). Its function
stays; what is free of choice in its weights becomes the first model's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.audit import read_by
from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.checkpoint import Checkpoint, open_checkpoint
from neuromanifold.checkpoints.compare import Pair, check_comparable
from neuromanifold.checkpoints.fold import Incoming, gains
from neuromanifold.checkpoints.forms import Tensors, neuron_forms
from neuromanifold.checkpoints.frame import permute_heads, permute_neurons, with_bias
from neuromanifold.checkpoints.gauge.attention import absorbing_bias, unused_bucket
from neuromanifold.checkpoints.matching import match_neurons
from neuromanifold.checkpoints.nearest import nearest_basis, nearest_scale
from neuromanifold.checkpoints.running import deviation, random_inputs, run

FAINT = 1e-6
"""A gain this much smaller than the largest is not divided by: its norm stays folded."""
MIXTURES = (0.25, 0.5, 0.75)
"""The points of the straight line at which its barrier is measured."""


class Aligned:
    """The second model in the first one's gauge, one layer at a time."""

    def __init__(self, a: Checkpoint, b: Checkpoint) -> None:
        check_comparable(a, b)
        self.first, self.second = a, b
        self.pair = Pair(a, b)
        self._outer = _unfolded_outer(self.block, self.pair.outer[1], a.outer())
        self._held: tuple[int, Tensors] | None = None

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.second.block

    def outer(self) -> Tensors:
        """The tensors outside the layers."""
        return self._outer

    def layer(self, layer: int) -> Tensors:
        """The tensors of one layer; the last one asked for is kept."""
        if self._held is None or self._held[0] != layer:
            self._held = layer, self._aligned_layer(layer)
        return self._held[1]

    def tensor(self, name: str) -> np.ndarray:
        """A tensor by its name in the block."""
        if not name.startswith("layers."):
            return self._outer[name]
        _, layer, inner = name.split(".")
        return self.layer(int(layer))[inner]

    def _aligned_layer(self, layer: int) -> Tensors:
        block = self.block
        first, second = self.pair.layer(layer)
        moved = dict(second)
        permute_heads(block, moved, self.pair.match(first, second))
        mine, yours = neuron_forms(block, first), neuron_forms(block, moved)
        if mine is not None and yours is not None:
            permute_neurons(moved, match_neurons(mine, yours))
        _turn(block, first, moved, descend=False)
        raw = self.first.layer(layer)
        reads, own = (read_by(item, layer) for item in (self.first, self.second))
        _unfold_layer(block, moved, raw, reads, own, last=layer == block.stored_layers - 1)
        _set_means(block, moved, raw)
        _turn(block, raw, moved, descend=True)
        _unfold_biases(block, moved, raw)
        _set_means(block, moved, raw)
        return moved


def _turn(block: Block, first: Tensors, moved: Tensors, *, descend: bool) -> None:
    """Every head and neuron in the basis nearest to that of its counterpart, same function.

    Done twice: with folded tensors, where the two models differ by nothing else, and again where
    the norms are those that will be written, because nearness depends on them.
    """
    _turn_heads(block, first, moved, descend)
    if block.attention.qk_norm is not None:
        _turn_head_norms(block, first, moved)
    _turn_neurons(block, first, moved)


def _turn_head_norms(block: Block, first: Tensors, moved: Tensors) -> None:
    """Gains of query and key norms: one scale a plane, or a coordinate that stays."""
    a = block.attention
    planes = [*(a.rotary.planes if a.rotary else ()), *((i,) for i in range(a.rotated, a.key_size))]
    pairs = [
        [t[name] + a.qk_norm_offset for name in ("query_norm", "key_norm")] for t in (first, moved)
    ]
    for plane in planes:
        at = list(plane)
        (x, y), (x2, y2) = ([part[at] for part in pair] for pair in pairs)
        scale = nearest_scale(x, y, x2, y2)
        pairs[1][0][at], pairs[1][1][at] = scale * x2, y2 / scale
    for name, value in zip(("query_norm", "key_norm"), pairs[1], strict=True):
        moved[name] = value - a.qk_norm_offset


def _turn_heads(block: Block, first: Tensors, moved: Tensors, descend: bool) -> None:
    a = block.attention
    for g in range(a.groups):
        left, other = (
            np.moveaxis(t["output"][g], 2, 0).reshape(a.value_size, -1) for t in (first, moved)
        )
        C = nearest_basis(left, first["value"][g], other, moved["value"][g], descend=descend)
        moved["value"] = _replaced(moved["value"], g, C @ moved["value"][g])
        if "value_bias" in moved:
            moved["value_bias"] = _replaced(moved["value_bias"], g, C @ moved["value_bias"][g])
        moved["output"] = _replaced(moved["output"], g, moved["output"][g] @ np.linalg.inv(C))
        if a.qk_norm is None:
            C = _nearest_keys(block, first, moved, g, descend)
            D = np.linalg.inv(C).T
            for name, change in (("query", D), ("key", C)):
                moved[name] = _replaced(moved[name], g, change @ moved[name][g])
                bias = f"{name}_bias"
                if bias in moved:
                    turned = moved[bias][g] @ change.T
                    moved[bias] = _replaced(moved[bias], g, turned)


def _nearest_keys(
    block: Block, first: Tensors, moved: Tensors, g: int, descend: bool
) -> np.ndarray:
    """The C of the commutant of the rotations that is best for one group's queries and keys."""
    a = block.attention
    rows = [
        (
            np.moveaxis(with_bias(t, "query")[g], 1, 0).reshape(a.key_size, -1),
            t["key"][g] if a.constants_die else with_bias(t, "key")[g],
        )
        for t in (first, moved)
    ]
    C, r = np.eye(a.key_size), a.rotated
    if r < a.key_size:
        parts = [part[r:] for pair in rows for part in pair]
        C[r:, r:] = nearest_basis(*parts, descend=descend)
    if a.rotary is not None:
        x, y = np.array(a.rotary.planes).T
        q, k, q2, k2 = (part[x] + 1j * part[y] for pair in rows for part in pair)
        c = nearest_scale(k, q, k2, q2)
        C[x, x], C[y, y], C[x, y], C[y, x] = c.real, c.real, -c.imag, c.imag
    return C


def _turn_neurons(block: Block, first: Tensors, moved: Tensors) -> None:
    """Neurons scaled as near to their counterparts as they may be."""
    mlp = block.mlp
    if mlp is None or not (mlp.gated or mlp.activation in ("relu", "tanh")):
        return
    ups, downs = zip(*((with_bias(t, "up"), t["down"].T) for t in (first, moved)), strict=True)
    if mlp.activation == "tanh" and not mlp.gated:
        factor = np.where(
            np.sum(ups[0] * ups[1], 1) + np.sum(downs[0] * downs[1], 1) < 0, -1.0, 1.0
        )
    else:
        factor = nearest_scale(ups[0], downs[0], ups[1], downs[1], signed=mlp.gated)
    moved["up"] = factor[:, None] * moved["up"]
    if "up_bias" in moved:
        moved["up_bias"] = factor * moved["up_bias"]
    moved["down"] = moved["down"] / factor


def _replaced(array: np.ndarray, at: int, part: np.ndarray) -> np.ndarray:
    new = array.copy()
    new[at] = part
    return new


def _unfold_layer(
    block: Block,
    moved: Tensors,
    raw: Tensors,
    reads: Incoming | None,
    own: Incoming | None,
    *,
    last: bool,
) -> None:
    """Give a folded layer the norms, dead biases and means of the first model's layer `raw`."""
    readers = ["query", "key", "value"]
    hidden = [name for name in ("up", "gate") if name in moved]
    if block.placement == "post":
        _unfold_post(block, moved, raw, reads, own, last)
    elif block.placement == "parallel" and block.mlp is not None:
        _unfold_norm(block, moved, raw, "attention_norm", readers + hidden)
    elif block.norm is not None:
        _unfold_norm(block, moved, raw, "attention_norm", readers)
        if "mlp_norm" in moved:
            _unfold_norm(block, moved, raw, "mlp_norm", hidden)


def _set_means(block: Block, moved: Tensors, raw: Tensors) -> None:
    """What is written along 1, where that is lost, as in `raw`."""
    if not block.centred or not (block.final_norm or block.placement == "post"):
        return
    for name, axis in {"output": 2, "output_bias": 0, "down": 0, "down_bias": 0}.items():
        if name in moved:
            change = raw[name].mean(axis=axis, keepdims=True) - moved[name].mean(
                axis=axis, keepdims=True
            )
            moved[name] = moved[name] + change


def _unfold_biases(block: Block, moved: Tensors, raw: Tensors) -> None:
    """Biases that softmax does not see, or that another bias pays for, as in `raw`."""
    a = block.attention
    if a.key_bias and a.constants_die:
        turns = np.arange(a.key_size) < a.rotated
        moved["key_bias"] = np.where(turns, moved["key_bias"], raw["key_bias"])
    takes = absorbing_bias(block)
    if a.value_bias and takes is not None:
        change = raw["value_bias"] - moved["value_bias"]
        moved[takes] = moved[takes] - np.einsum("grdv,gv->d", moved["output"], change)
        moved["value_bias"] = raw["value_bias"]
    if block.is_parallel and "output_bias" in moved and "down_bias" in moved:
        change = raw["down_bias"] - moved["down_bias"]
        moved["output_bias"] = moved["output_bias"] - change
        moved["down_bias"] = raw["down_bias"]


def _unfold_norm(block: Block, moved: Tensors, raw: Tensors, norm: str, readers: list[str]) -> None:
    """Give a folded norm a gain near to that of `raw`, its shift, and the readers what that takes.

    A reader W of the folded norm becomes (W + μ 1ᵀ)/γ, for any γ and, where means are removed, any
    μ, here that of `raw`; W β goes to its bias. Every γ is chosen so that it and its columns are
    nearest. Rows that no bias serves have their constant along 1, and μ must keep it.
    """
    gamma, beta = gains(block, raw, norm), raw.get(f"{norm}_shift")
    if np.abs(gamma).min() <= FAINT * np.abs(gamma).max() or (
        beta is not None and not block.centred
    ):
        return
    served = {name: _served(block, moved, name) for name in readers}
    slope = 0.0 if beta is None else np.sum(beta / gamma)
    forced = beta is not None and not all(rows.all() for rows in served.values())
    if forced and abs(slope) <= 1e-3 * np.linalg.norm(beta / gamma):
        return
    columns = {name: moved[name] for name in readers}
    if block.centred:
        for name in readers:
            W, mean = moved[name], moved[name].mean(axis=-1)
            mu = (raw[name] * gamma).mean(axis=-1)
            if beta is not None:
                W = W - mean[..., None]
                mu = np.where(served[name], mu, (mean - W @ (beta / gamma)) / (slope or 1.0))
            columns[name] = W + mu[..., None]
    if not forced:
        gamma = _nearest_gain(gamma, raw, columns)
    for name in readers:
        moved[name] = columns[name] / gamma
        if beta is not None:
            _pay(block, moved, name, moved[name] @ beta)
    moved[norm] = gamma - (0.0 if block.norm is None else block.norm.offset)
    if beta is not None:
        moved[f"{norm}_shift"] = beta


def _nearest_gain(gamma: np.ndarray, raw: Tensors, columns: Tensors) -> np.ndarray:
    """For every coordinate the gain that is, with the columns divided by it, nearest to `raw`."""
    width = len(gamma)
    mine = np.vstack([raw[name].reshape(-1, width) for name in columns]).T
    yours = np.vstack([columns[name].reshape(-1, width) for name in columns]).T
    return nearest_scale(gamma[:, None], mine, np.ones((width, 1)), yours)


def _served(block: Block, moved: Tensors, name: str) -> np.ndarray:
    """Which rows of a reader have something that takes up a constant, or nobody who sees it."""
    rows = np.zeros(moved[name].shape[:-1], bool)
    if f"{name}_bias" in moved or (name == "value" and absorbing_bias(block) is not None):
        return ~rows
    if name == "key" and block.attention.constants_die:
        rows[:, block.attention.rotated :] = True
    return rows


def _pay(block: Block, moved: Tensors, name: str, constant: np.ndarray) -> None:
    """Take back a constant that a shift adds to what a reader reads."""
    takes = absorbing_bias(block)
    if f"{name}_bias" in moved:
        moved[f"{name}_bias"] = moved[f"{name}_bias"] - constant
    elif name == "value" and takes is not None:
        moved[takes] = moved[takes] - np.einsum("grdv,gv->d", moved["output"], constant)


def _unfold_post(
    block: Block,
    moved: Tensors,
    raw: Tensors,
    reads: Incoming | None,
    own: Incoming | None,
    last: bool,
) -> None:
    """Norms after the sum: gains stay the second model's, shifts become the first one's."""
    inner = Incoming(gains(block, moved, "attention_norm"), raw.get("attention_norm_shift"))
    outer = None if reads is None or own is None else Incoming(own.gain, reads.shift)
    steps = (
        (outer, ("query", "key", "value"), "output_bias"),
        (inner, ("up", "gate"), "down_bias"),
    )
    for norm, readers, carried in steps:
        if norm is None or norm.shift is None:
            continue
        g = 1 / norm.gain
        for name in (name for name in readers if name in moved):
            if block.centred:
                moved[name] = moved[name] + (raw[name] @ g)[..., None] * g / (g @ g)
            moved[f"{name}_bias"] = moved[f"{name}_bias"] - moved[name] @ norm.shift
        moved[carried] = moved[carried] - norm.shift
    if inner.shift is not None:
        moved["attention_norm_shift"] = inner.shift
    if "mlp_norm_shift" in moved and not last:
        moved["mlp_norm_shift"] = raw["mlp_norm_shift"]


def _unfolded_outer(block: Block, folded: Mapping[str, np.ndarray], raw: Tensors) -> Tensors:
    """The folded tensors outside the layers with the first model's norms, means and exchanges."""
    moved = dict(folded)
    if block.head.kind == "untied" and block.final_norm:
        _unfold_norm(block, moved, raw, "final_norm", ["unembedding"])
    if block.embed_norm and block.embed_width is not None:
        _unfold_norm(block, moved, raw, "embed_norm", ["embed_map"])
    elif block.placement == "post" and "embed_norm_shift" in moved:
        moved["embed_norm_shift"] = raw["embed_norm_shift"]
    _unfold_tables(block, moved, raw)
    if "score_table" in moved:
        used = np.ones((len(raw["score_table"]), 1))
        unused = unused_bucket(block)
        if unused is not None:
            used[unused] = 0.0
        mean = (raw["score_table"] * used).sum(axis=0) / used.sum()
        moved["score_table"] = np.where(used > 0, moved["score_table"] + mean, raw["score_table"])
    return moved


def _unfold_tables(block: Block, moved: Tensors, raw: Tensors) -> None:
    names = [name for name, _ in block.tables]
    if block.patch is not None:
        mean, first = raw["positions"][1:].mean(axis=0), raw["positions"][:1]
        moved["positions"] = np.vstack([first, moved["positions"][1:] + mean])
        moved["patch_bias"] = moved["patch_bias"] - mean
        moved["class_token"] = moved["class_token"] - first[0]
        names += ["patch", "patch_bias", "class_token"]
    else:
        takes, *others = [n for n in names if n != "tokens" or block.head.kind != "tied"] or [""]
        scale = block.embed_scale if takes == "tokens" else 1.0
        for name in others:
            mean = raw[name].mean(axis=0)
            moved[name] = moved[name] + mean
            moved[takes] = moved[takes] - mean / scale
    if block.centred and (block.final_norm or block.placement == "post"):
        for name in names:
            if name == "tokens" and block.head.kind == "tied":
                continue
            axis = 1 if name in dict(block.tables) else 0
            mean = moved[name].mean(axis=axis, keepdims=True)
            moved[name] = moved[name] - mean + raw[name].mean(axis=axis, keepdims=True)


@dataclass(frozen=True)
class Mixture:
    """The model on the straight line between two others."""

    first: "Checkpoint | Aligned"
    second: "Checkpoint | Aligned"
    share: float

    @property
    def block(self) -> Block:
        """What the tensors mean."""
        return self.first.block

    def outer(self) -> Tensors:
        """The tensors outside the layers."""
        return self._mixed(self.first.outer(), self.second.outer())

    def layer(self, layer: int) -> Tensors:
        """The tensors of a layer."""
        return self._mixed(self.first.layer(layer), self.second.layer(layer))

    def _mixed(self, a: Tensors, b: Tensors) -> Tensors:
        return {name: (1 - self.share) * a[name] + self.share * b[name] for name in a}


@dataclass(frozen=True)
class Alignment:
    """What aligning did.

    Attributes:
        file: what was written; None when nothing was.
        first, second: the models.
        deviation: the largest relative change of the second model's outputs, in float64; it is
            zero up to rounding, because its function stays.
        distance: ‖θ − θ′‖/‖θ‖ of all weights, before and after.
        barrier: how far outputs on the straight line between the models are from the straight
            line between their outputs, relative to the larger of them, before and after: the
            largest of the mixtures 1/4, 1/2, 3/4.
        stream: what became of the second model's stream.
        seed: of the random inputs.
    """

    file: str | None
    first: str
    second: str
    deviation: float
    distance: tuple[float, float]
    barrier: tuple[float, float]
    stream: str
    seed: int

    def __str__(self) -> str:
        written = "" if self.file is None else f" Written to {self.file}."
        return (
            f"{self.second} moved towards {self.first}: distance of weights "
            f"{self.distance[0]:.3g} before, {self.distance[1]:.3g} after; barrier of the straight "
            f"line {self.barrier[0]:.3g} before, {self.barrier[1]:.3g} after (random inputs, seed "
            f"{self.seed}); outputs deviate by {self.deviation:.1e} in float64.{written}"
        )

    def to_dict(self) -> dict[str, object]:
        """The JSON of `checkpoint align`."""
        return {**vars(self), "distance": list(self.distance), "barrier": list(self.barrier)}


def align(
    first: str | Path | Checkpoint,
    second: str | Path | Checkpoint,
    out: str | Path | None = None,
    *,
    dtype: np.dtype | None = None,
    force: bool = False,
    seed: int = 0,
    config: str | Path | Mapping[str, object] | None = None,
    heads: int | None = None,
    family: str | Path | None = None,
) -> Alignment:
    """Move the second model along its fiber towards the first, and write it.

    Independently trained models are not brought together by this: gauge is not what separates
    them. Siblings, and models that a tool has rotated, permuted or rescaled, are.

    Args:
        first: a checkpoint, or its path.
        second: the one that is moved.
        out: the safetensors file to write, in the second model's names, layout and dtypes.
        dtype: of the tensors written.
        force: replace an existing file.
        seed: of the random inputs on which outputs are compared.
        config: for paths, a configuration where none lies beside the weights.
        heads: for paths, the number of heads where the configuration does not say.
        family: for paths, a file that describes a model of no known family.
    """
    a, b = (
        item
        if isinstance(item, Checkpoint)
        else open_checkpoint(item, config=config, heads=heads, family=family)
        for item in (first, second)
    )
    aligned = Aligned(a, b)
    inputs = random_inputs(a.block, seed)
    outputs = {name: run(model, inputs).outputs for name, model in (("a", a), ("b", b))}
    report = Alignment(
        None,
        str(a.path),
        str(b.path),
        deviation(outputs["b"], run(aligned, inputs).outputs),
        (weight_distance(a, b), weight_distance(a, aligned)),
        (
            barrier(a, b, inputs, outputs["a"], outputs["b"]),
            barrier(a, aligned, inputs, outputs["a"], outputs["b"]),
        ),
        aligned.pair.stream_kind,
        seed,
    )
    if out is None:
        return report
    b.write(out, aligned.tensor, dtype=dtype, force=force)
    return replace(report, file=str(out))


def barrier(
    a: Checkpoint,
    b: "Checkpoint | Aligned",
    inputs: Mapping[str, np.ndarray],
    first: np.ndarray,
    second: np.ndarray,
) -> float:
    """The largest distance of mixed models' outputs from the mixed outputs `first`, `second`."""
    size = max(np.linalg.norm(first), np.linalg.norm(second))
    found = [
        np.linalg.norm(run(Mixture(a, b, t), inputs).outputs - (1 - t) * first - t * second)
        for t in MIXTURES
    ]
    return float(max(found) / size) if size else 0.0


def weight_distance(a: Checkpoint, b: "Checkpoint | Aligned") -> float:
    """‖θ_A − θ_B‖/‖θ_A‖ over all tensors, one layer in memory at a time."""
    squares = np.zeros(2)
    pairs = [(a.outer, b.outer)]
    pairs += [
        (lambda layer=layer: a.layer(layer), lambda layer=layer: b.layer(layer))
        for layer in range(a.block.stored_layers)
    ]
    for mine, yours in pairs:
        x, y = mine(), yours()
        squares += [
            sum(float(np.sum((x[name] - y[name]) ** 2)) for name in x),
            sum(float(np.sum(x[name] ** 2)) for name in x),
        ]
    return float(np.sqrt(squares[0] / squares[1])) if squares[1] else 0.0
