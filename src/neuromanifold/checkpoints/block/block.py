"""`Block`: what a configuration says about a transformer, as one value.

With the stream x of width d, its norm n = N(x), and linear maps stored (out, in),

    attention(x)_i = b_O + Σ_h W_O^h Σ_j P^h_ij (W_V^g n_j + b_V^g),        g = ⌊h / (H/G)⌋
    P^h_i· = softmax_j(cap(scale · ⟨R_i ν(W_Q^h n_i + b_Q^h), R_j ν(W_K^g n_j + b_K^g)⟩) + B^h_ij)

The tensors of a block have heads as leading axes: query (G, H/G, d_k, d), key (G, d_k, d), value
(G, d_v, d), output (G, H/G, d, d_v); their names and shapes are `layer_shapes` and `global_shapes`.
"""

from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cached_property
from math import prod
from reprlib import repr as shortened
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from neuromanifold.checkpoints.block.parts import (
    Attention,
    Head,
    Mlp,
    Norm,
    Patch,
    above_zero,
    one_of,
    positive,
)
from neuromanifold.errors import ArchitectureError

Placement = Literal["pre", "post", "sandwich", "parallel", "parallel two"]
Shapes = dict[str, tuple[int, ...]]
MOST_LAYERS = 10_000
"""More than any model has: each has a list of tensors."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A transformer: the value every question about a checkpoint starts from.

    Attributes:
        family: the family whose files it is read from.
        width: d.
        layers: how many layers are applied.
        attention, mlp: what a layer is made of; the MLP may be missing.
        norm: the norms of the stream, None without any.
        placement: `pre` x + f(N x); `post` N(x + f x); `sandwich` x + N′ f(N x); `parallel`
            x + attention(N x) + mlp(N x), `parallel two` with a norm for each.
        shared: whether all layers have the same weights (ALBERT).
        final_norm: whether a norm follows the last layer.
        embed_norm: whether a norm follows the tables.
        embed_width: the width of the tables when a linear map takes them to the stream.
        embed_scale: a factor on the token table.
        tables: the rows of the tables that are added: `tokens`, `positions`, `types`.
        position_offset: the row of the first position.
        patch: image patches instead of tokens.
        head: what reads the stream at the end.
        shows_tokens: whether parts outside the block read the token table, too.
    """

    width: int
    layers: int
    attention: Attention
    mlp: Mlp | None = None
    norm: Norm | None = None
    family: str = "block"
    placement: Placement = "pre"
    shared: bool = False
    final_norm: bool = False
    embed_norm: bool = False
    embed_width: int | None = None
    embed_scale: float = 1.0
    tables: tuple[tuple[str, int], ...] = ()
    position_offset: int = 0
    patch: Patch | None = None
    head: Head = field(default_factory=Head)
    shows_tokens: bool = False

    def __post_init__(self) -> None:
        positive("block", width=self.width, layers=self.layers, after=self.position_offset + 1)
        above_zero("block", embed_scale=self.embed_scale)
        if self.embed_width is not None:
            positive("block", embed_width=self.embed_width)
        if self.position_offset and self.position_offset >= self.rows("positions"):
            raise ArchitectureError(f"there is no position from row {self.position_offset} on")
        if self.padding is not None and self.padding >= self.rows("tokens"):
            raise ArchitectureError(
                f"padding is token {self.padding}, and the token table has "
                f"{self.rows('tokens')} rows"
            )
        if self.layers > MOST_LAYERS:
            raise ArchitectureError(f"a block has at most {MOST_LAYERS} layers; got {self.layers}")
        one_of("block", "placement", self.placement, get_args(Placement))
        for name, rows in self.tables:
            one_of("block", "table", name, ("tokens", "positions", "types"))
            positive("tables", **{name: rows})
        if self.norm is None and (self.final_norm or self.embed_norm or self.placement == "post"):
            raise ArchitectureError("a block without norms has neither final nor embedding norm")
        if self.head.kind == "tied" and self.rows("tokens") != self.head.rows:
            raise ArchitectureError(
                f"a tied head has the {self.rows('tokens')} rows of the token table; "
                f"got {self.head.rows}"
            )
        if self.shows_tokens and not self.rows("tokens"):
            raise ArchitectureError("a block that shows its tokens has no table of them")
        if self.patch is not None and (
            [name for name, _ in self.tables] != ["positions"]
            or self.position_offset
            or self.embed_scale != 1
            or self.embed_width is not None
        ):
            raise ArchitectureError(
                "patches are added to one table, positions from the first row on, and to no other"
            )
        windows = self.attention.windows
        if windows and len(windows) != self.layers:
            raise ArchitectureError(f"{self.layers} layers and {len(windows)} windows")

    def rows(self, table: str) -> int:
        """The rows of a table, 0 when there is none."""
        return dict(self.tables).get(table, 0)

    def unused(self, table: str) -> list[int]:
        """The rows of a table that nothing reads: before the first position, a distance of none.

        Padding has the row before the first position of a text.
        Keys after the query have buckets of their own where `both` is set: none is at distance 0.
        """
        relative = self.attention.relative
        if table == "score_table" and relative is not None and relative.both:
            return [relative.buckets // 2]
        return list(range(self.position_offset - 1)) if table == "positions" else []

    @property
    def padding(self) -> int | None:
        """The token that has no place in a text, and the row before the first position for it."""
        return self.position_offset - 1 if self.position_offset else None

    @property
    def lone_padding(self) -> int | None:
        """`padding` where its rows of tokens and of positions are read only together."""
        return None if self.keeps_tokens else self.padding

    def used(self, table: str, rows: np.ndarray) -> np.ndarray:
        """The rows of a table that something reads."""
        unused = self.unused(table)
        return np.delete(rows, unused, axis=0) if unused else rows

    @property
    def stored_layers(self) -> int:
        """How many layers have weights of their own."""
        return 1 if self.shared else self.layers

    @property
    def keeps_tokens(self) -> bool:
        """Whether the token table is read by more than the tables' sum: then it stays as it is."""
        return self.shows_tokens or self.head.kind == "tied"

    @property
    def centred(self) -> bool:
        """Whether the norms subtract the mean, so that the direction 1 of the stream is lost."""
        return self.norm is not None and self.norm.kind == "layer"

    @property
    def is_parallel(self) -> bool:
        """Whether attention and MLP read the same stream."""
        return self.placement in ("parallel", "parallel two") and self.mlp is not None

    @cached_property
    def layer_shapes(self) -> Shapes:
        """Name and shape of every tensor of a layer."""
        return {**_attention_shapes(self), **_mlp_shapes(self), **_norm_shapes(self)}

    @cached_property
    def global_shapes(self) -> Shapes:
        """Name and shape of every tensor outside the layers."""
        d, e = self.width, self.embed_width or self.width
        shapes: Shapes = {name: (rows, e) for name, rows in self.tables}
        if self.patch is not None:
            shapes |= {"patch": (d, self.patch.size), "patch_bias": (d,), "class_token": (d,)}
        if self.embed_norm:
            shapes |= _one_norm("embed_norm", e, self.norm)
        if self.embed_width is not None:
            shapes |= {"embed_map": (d, e), "embed_map_bias": (d,)}
        if self.attention.relative is not None:
            shapes["score_table"] = (self.attention.relative.buckets, self.attention.heads)
        if self.final_norm:
            shapes |= _one_norm("final_norm", d, self.norm)
        if self.head.kind == "untied":
            shapes["unembedding"] = (self.head.rows, d)
        if self.head.bias:
            shapes["unembedding_bias"] = (self.head.rows,)
        return shapes

    @cached_property
    def shapes(self) -> Shapes:
        """Name and shape of every tensor; those of layer L are `layers.L.name`."""
        shapes = dict(self.global_shapes)
        for layer in range(self.stored_layers):
            shapes |= {f"layers.{layer}.{name}": s for name, s in self.layer_shapes.items()}
        return shapes

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        layer = sum(prod(shape) for shape in self.layer_shapes.values())
        return sum(prod(s) for s in self.global_shapes.values()) + self.stored_layers * layer

    def to_dict(self) -> dict[str, Any]:
        """The block as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: object) -> "Block":
        """The block of a JSON record, checked field by field."""
        return _read("the block", cls, record)


def _read(name: str, kind: Any, value: Any) -> Any:
    """A value of JSON as the annotation of a field asks for it."""
    if is_dataclass(kind):
        return _from_record(name, kind, value)
    choices = get_args(kind)
    if NoneType in choices:
        return None if value is None else _read(name, choices[0], value)
    if get_origin(kind) is tuple and type(value) in (list, tuple):
        kinds = [choices[0]] * len(value) if choices[-1] is ... else choices
        if len(kinds) == len(value):
            return tuple(_read(name, one, part) for one, part in zip(kinds, value, strict=True))
    if kind is float and type(value) in (int, float) and abs(value) < 1e30:
        return float(value)
    plain = kind is not float and type(value) is kind
    if plain or (get_origin(kind) is Literal and value in choices):
        return value
    wanted = str(choices or kind.__name__).replace("Ellipsis", "…")
    raise ArchitectureError(f"{name} must be of {wanted}; got {shortened(value)}")


def _from_record(name: str, cls: Any, record: Any) -> Any:
    kinds = get_type_hints(cls)
    if not isinstance(record, dict):
        raise ArchitectureError(
            f"a record of the fields of {cls.__name__} was wanted for {name}; got "
            f"{shortened(record)}"
        )
    for key in record:
        if key not in kinds:
            raise ArchitectureError(
                f"{cls.__name__} has no field {shortened(key)}; its fields are "
                f"{', '.join(sorted(kinds))}"
            )
    values = {key: _read(key, kinds[key], value) for key, value in record.items()}
    try:
        return cls(**values)
    except TypeError as error:
        missing = str(error).split("argument")[-1].lstrip("s: ")
        raise ArchitectureError(f"{cls.__name__} needs the field {missing}") from None


def _one_norm(name: str, size: int, norm: Norm | None) -> Shapes:
    if norm is None:
        return {}
    shapes: Shapes = {name: (size,)}
    return shapes | {f"{name}_shift": (size,)} if norm.shift else shapes


def _attention_shapes(block: Block) -> Shapes:
    d, a = block.width, block.attention
    G, R = a.groups, a.sharing
    shapes: Shapes = {
        "query": (G, R, a.key_size, d),
        "key": (G, a.key_size, d),
        "value": (G, a.value_size, d),
        "output": (G, R, d, a.value_size),
    }
    biases = {
        "query_bias": (a.query_bias, (G, R, a.key_size)),
        "key_bias": (a.key_bias, (G, a.key_size)),
        "value_bias": (a.value_bias, (G, a.value_size)),
        "output_bias": (a.output_bias, (d,)),
        "query_norm": (a.qk_norm is not None, (a.key_size,)),
        "key_norm": (a.qk_norm is not None, (a.key_size,)),
    }
    return shapes | {name: shape for name, (present, shape) in biases.items() if present}


def _mlp_shapes(block: Block) -> Shapes:
    d, mlp = block.width, block.mlp
    if mlp is None:
        return {}
    shapes: Shapes = {"up": (mlp.size, d), "down": (d, mlp.size)}
    if mlp.bias:
        shapes["up_bias"] = (mlp.size,)
    if mlp.output_bias:
        shapes["down_bias"] = (d,)
    if mlp.gated:
        shapes["gate"] = (mlp.size, d)
        if mlp.bias:
            shapes["gate_bias"] = (mlp.size,)
    return shapes


def _norm_shapes(block: Block) -> Shapes:
    names = ["attention_norm"]
    if block.mlp is not None and block.placement != "parallel":
        names.append("mlp_norm")
    if block.placement == "sandwich":
        names += [name.replace("_norm", "_out_norm") for name in names]
    shapes: Shapes = {}
    for name in names:
        shapes |= _one_norm(name, block.width, block.norm)
    return shapes
