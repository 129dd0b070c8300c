"""`Architecture`: which attention network is meant, and nothing else.

Pure Python, so that a command which only counts starts fast.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, Literal, get_args

from neuromanifold.display import Displayed, Recorded
from neuromanifold.errors import ArchitectureError

Attention = Literal["lightning", "softmax"]
Skip = Literal["none", "residual", "inner"]
Mask = Literal["none", "causal"]
Readout = Literal["logits", "probabilities", "decisions"]

READOUTS: tuple[Readout, ...] = get_args(Readout)

LARGEST_SIZE = 10**12
"""No network has a larger size, and what is counted from sizes up to it can be printed."""


@dataclass(frozen=True, slots=True)
class Architecture(Displayed, Recorded):
    """A deep attention network without its weights (def-1, def-2, eq-15).

    Layer i (1-based) maps width `widths[i-1]` to `widths[i]` with query/key rank `ranks[i-1]`.
    Tokens are columns: an input has shape `(widths[0], tokens)`. Token i attends to token j with
    weight `(K x_j)·(Q x_i)`; softmax normalises it over j at the given temperature, and the causal
    mask keeps j ≤ i.

    Attributes:
        widths: d_0, …, d_l: one more than there are layers.
        ranks: a_1, …, a_l.
        tokens: the number t of tokens.
        attention: `lightning` (no normalisation) or `softmax`.
        heads: the number of heads, the same in every layer.
        value_ranks: None, or one rank v_i a layer, which factors every head's value map as O_h V_h.
        skip: `none`; `residual`, X + φ(X); or `inner`, Σ_h V_h (X + X P_h), P_h the weights.
        mask: `none` or `causal`.
        temperature: the softmax temperature.
    """

    widths: tuple[int, ...]
    ranks: tuple[int, ...]
    tokens: int
    attention: Attention = "lightning"
    heads: int = 1
    value_ranks: tuple[int, ...] | None = None
    skip: Skip = "none"
    mask: Mask = "none"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", _sizes("widths", self.widths))
        object.__setattr__(self, "ranks", _sizes("ranks", self.ranks))
        if len(self.widths) < 2:
            raise ArchitectureError(
                f"widths must list at least two sizes, input and output; got {list(self.widths)}"
            )
        _one_per_layer("ranks", self.ranks, self.widths)
        object.__setattr__(self, "tokens", _size("tokens", self.tokens))
        object.__setattr__(self, "heads", _size("heads", self.heads))
        if self.value_ranks is not None:
            object.__setattr__(self, "value_ranks", _sizes("value_ranks", self.value_ranks))
            _one_per_layer("value_ranks", self.value_ranks, self.widths)
        _word("attention", self.attention, get_args(Attention))
        _word("skip", self.skip, get_args(Skip))
        _word("mask", self.mask, get_args(Mask))
        object.__setattr__(self, "temperature", _temperature(self.temperature, self.attention))
        if self.skip == "residual" and len(set(self.widths)) > 1:
            raise ArchitectureError(
                "the residual skip X + φ(X) needs equal widths; "
                f"got widths {list(self.widths)}: make them equal or use skip 'inner'"
            )

    @property
    def depth(self) -> int:
        """The number l of layers."""
        return len(self.ranks)

    @property
    def parameters(self) -> int:
        """The number of parameters, Σ_i d_{i-1}(2 a_i + d_i) for one head without factors (def-3).

        >>> Architecture(widths=(4, 2, 3), ranks=(2, 2), tokens=3).parameters
        38
        """
        return sum(math.prod(shape) for layer in self.shapes for shape in layer.values())

    @property
    def shapes(self) -> tuple[dict[str, tuple[int, int, int]], ...]:
        """For each layer the shape (head, row, column) of each of its weight tensors, by name."""
        layers = []
        for i, a in enumerate(self.ranks):
            H, d, d_next = self.heads, self.widths[i], self.widths[i + 1]
            layer = {"query": (H, a, d), "key": (H, a, d)}
            if self.value_ranks is None:
                layer["value"] = (H, d_next, d)
            else:
                v = self.value_ranks[i]
                layer |= {"value": (H, v, d), "output": (H, d_next, v)}
            layers.append(layer)
        return tuple(layers)

    def layer(self, i: int) -> "Architecture":
        """Layer i, counted from 0, as a network of its own."""
        return replace(
            self,
            widths=self.widths[i : i + 2],
            ranks=self.ranks[i : i + 1],
            value_ranks=self.value_ranks and self.value_ranks[i : i + 1],
        )

    @property
    def free_widths(self) -> tuple[int, ...]:
        """The widths between layers in which any basis will do: none with a residual skip."""
        return () if self.skip == "residual" else self.widths[1:-1]

    @property
    def scores(self) -> int:
        """The number of scores that one input gives, in all layers and heads."""
        return self.depth * self.heads * self.tokens**2

    @property
    def exponentials(self) -> int:
        """The number of exponentials that one input needs: one for each score, or none (eq-15)."""
        return self.scores if self.attention == "softmax" else 0

    # What the kind of a network means, in the words of the theorems. All others ask these questions
    # instead of comparing words, so that a new kind is answered for here. Each is true of the kinds
    # that it names and of no other: what is not known here has none of these properties.

    @property
    def is_linear_in_scores(self) -> bool:
        """Whether a layer depends on Σ_h V_h ⊗ A_h alone: lightning attention (eq-3)."""
        return self.attention == "lightning"

    @property
    def averages_tokens(self) -> bool:
        """Whether the attention weights of a token are positive with sum one: softmax (eq-15)."""
        return self.attention == "softmax"

    @property
    def adds_nothing(self) -> bool:
        """Whether a layer is its heads and nothing else: no skip (def-1)."""
        return self.skip == "none"

    @property
    def adds_input(self) -> bool:
        """Whether a layer adds X itself, which fixes the basis of all widths (residual-skip)."""
        return self.skip == "residual"

    @property
    def adds_values(self) -> bool:
        """Whether a layer adds Σ_h V_h X, so that Σ_h V_h is seen by itself (inner-skip)."""
        return self.skip == "inner"

    def adds_alike(self, other: "Architecture") -> bool:
        """Whether the layers of another network add the same to their heads."""
        return self.skip == other.skip

    @property
    def attends_to_all(self) -> bool:
        """Whether a token attends to all tokens, so that their order does not matter: no mask."""
        return self.mask == "none"

    @property
    def attends_to_past(self) -> bool:
        """Whether token i attends to the tokens j ≤ i: the causal mask."""
        return self.mask == "causal"

    @property
    def has_one_head(self) -> bool:
        """Whether no two heads can mix or change places."""
        return self.heads == 1

    @property
    def is_plain(self) -> bool:
        """Whether a layer is Σ_h V_h X P_h over all tokens: neither skip nor mask."""
        return self.adds_nothing and self.attends_to_all

    @property
    def variation(self) -> str:
        """The words for its skip and its mask; none for a plain network."""
        return "" if self.is_plain else f" {self.skip} {self.mask} "

    @property
    def kind(self) -> str:
        """The words for what a layer does with (A, V), whatever their sizes."""
        return self.attention + self.variation

    @property
    def is_single(self) -> bool:
        """Whether a layer is V X P over all tokens: one head, and its value map not factored."""
        return self.is_plain and self.has_one_head and self.value_ranks is None

    @property
    def is_homogeneous(self) -> bool:
        """Whether φ(sX) = s^(3^l) φ(X): lightning without skip (def-2)."""
        return self.is_linear_in_scores and self.adds_nothing

    @property
    def trades_scale(self) -> bool:
        """Whether (λ A, V/λ) has the function of (A, V): V occurs in products with A (eq-13)."""
        return self.is_linear_in_scores and (self.adds_nothing or self.adds_input)

    @property
    def has_virtual_weights(self) -> bool:
        """Whether all that is seen is (M, L): one head, nothing but V X P and V X (eq-8)."""
        return self.has_one_head and (self.adds_nothing or self.adds_values)

    @property
    def network(self) -> Any:
        """The diagram of its spaces, with the tensors, their function and their symmetries.

        >>> Architecture((4, 2, 3), (2, 2), 3).network.spaces[1].group
        GL(size=2)
        """
        # By name: an architecture lies below all array libraries, its diagram above them.
        return import_module("neuromanifold.symmetry.families").network(self)

    @property
    def name(self) -> str:
        """A short readable name.

        >>> Architecture((3, 3, 3), (2, 2), 3, "softmax", heads=2, mask="causal").name
        'softmax 3-3-3 ranks 2,2 tokens 3 heads 2 causal'
        """
        words = [
            self.attention,
            "-".join(map(str, self.widths)),
            "ranks " + ",".join(map(str, self.ranks)),
            f"tokens {self.tokens}",
        ]
        if self.heads > 1:
            words.append(f"heads {self.heads}")
        if self.value_ranks is not None:
            words.append("value-ranks " + ",".join(map(str, self.value_ranks)))
        if self.skip != "none":
            words.append(f"{self.skip}-skip")
        if self.mask != "none":
            words.append(self.mask)
        if self.temperature != 1:
            words.append(f"temperature {self.temperature:g}")
        return " ".join(words)

    def __str__(self) -> str:
        return self.name

    def _repr_latex_(self) -> str:
        """The map of one layer in formulas, with the widths of the whole network (def-1, eq-15)."""
        scores = r"X^\top K_h^\top Q_h X"
        if self.attention == "softmax":
            scale = "" if self.temperature == 1 else rf"\tfrac{{1}}{{{self.temperature:g}}}"
            scores = rf"\operatorname{{softmax}}({scale}{scores})"
        values = "V_h" if self.value_ranks is None else "O_h V_h"
        skip = {"none": "", "residual": "X + ", "inner": rf"\sum_h {values} X + "}[self.skip]
        widths = r" \to ".join(rf"\mathbb{{R}}^{{{d} \times {self.tokens}}}" for d in self.widths)
        heads = r"\sum_{h=1}^{" + str(self.heads) + "} " if self.heads > 1 else ""
        layer = f"{skip}{heads}{values} X \\, {scores}"
        layer = layer if self.heads > 1 else layer.replace("_h", "").replace(r"\sum ", "")
        return rf"${widths}, \quad X \mapsto {layer}$"

    def to_json(self) -> str:
        """The JSON form, as text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: object) -> "Architecture":
        """The architecture with this JSON form; fields left out take their defaults."""
        if not isinstance(data, Mapping):
            raise ArchitectureError(
                f"an architecture is a JSON object with its fields; got {type(data).__name__}"
            )
        known = [field.name for field in fields(cls)]
        unknown = [str(key) for key in data if key not in known]
        if unknown:
            raise ArchitectureError(
                f"unknown architecture field {unknown[0]!r}; the fields are {', '.join(known)}"
            )
        missing = [key for key in ("widths", "ranks", "tokens") if key not in data]
        if missing:
            raise ArchitectureError(f"the architecture lacks its field {missing[0]!r}; add it")
        return cls(**data)

    @classmethod
    def from_json(cls, text: str) -> "Architecture":
        """The architecture with this JSON text."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise ArchitectureError(f"the architecture is not valid JSON: {error}") from None


def _size(field: str, value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArchitectureError(f"{field} must be a whole number; got {value!r}")
    size = value.__index__()
    if size < 1:
        raise ArchitectureError(f"{field} must be at least 1; got {size}")
    if size > LARGEST_SIZE:
        raise ArchitectureError(f"{field} must be at most {LARGEST_SIZE}; got a larger number")
    return size


def _sizes(field: str, values: object) -> tuple[int, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ArchitectureError(f"{field} must be a list of whole numbers; got {values!r}")
    return tuple(_size(f"{field}[{i}]", value) for i, value in enumerate(values))


def _one_per_layer(field: str, values: tuple[int, ...], widths: tuple[int, ...]) -> None:
    layers = len(widths) - 1
    if len(values) != layers:
        raise ArchitectureError(
            f"{field} must list one number for each of the {layers} layers that widths "
            f"{list(widths)} describe; got {len(values)}: {list(values)}"
        )


def _word(field: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ArchitectureError(f"{field} must be one of {', '.join(known)}; got {value!r}")


def _temperature(value: object, attention: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArchitectureError(f"temperature must be a number; got {value!r}")
    if isinstance(value, int) and abs(value) > LARGEST_SIZE:
        raise ArchitectureError(f"temperature must be at most {LARGEST_SIZE}")
    if not (math.isfinite(value) and value > 0):
        raise ArchitectureError(f"temperature must be positive and finite; got {value}")
    if attention == "lightning" and value != 1:
        raise ArchitectureError(
            f"temperature belongs to softmax attention; got {value} with lightning: leave it out"
        )
    return float(value)
