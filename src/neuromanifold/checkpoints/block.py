"""`Block`: what a configuration says about a transformer, as one value.

With the stream x of width d, its norm n = N(x), and linear maps stored (out, in),

    attention(x)_i = b_O + Σ_h W_O^h Σ_j P^h_ij (W_V^g n_j + b_V^g),        g = ⌊h / (H/G)⌋
    P^h_i· = softmax_j(cap(scale · ⟨R_i ν(W_Q^h n_i + b_Q^h), R_j ν(W_K^g n_j + b_K^g)⟩) + B^h_ij)

The tensors of a block have heads as leading axes: query (G, H/G, d_k, d), key (G, d_k, d), value
(G, d_v, d), output (G, H/G, d, d_v); their names and shapes are `layer_shapes` and `global_shapes`.
"""

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import prod
from typing import Any, Literal, get_args

from neuromanifold.errors import ArchitectureError

Layout = Literal["half", "interleaved"]
Placement = Literal["pre", "post", "sandwich", "parallel", "parallel two"]
Activation = Literal["gelu", "gelu_tanh", "relu", "relu2", "silu", "tanh"]
HeadKind = Literal["none", "tied", "untied"]
NormKind = Literal["layer", "rms"]
Shapes = dict[str, tuple[int, ...]]


def _positive(owner: str, **sizes: int) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ArchitectureError(
                f"{owner}: {name} must be a positive whole number; got {size!r}"
            )


def _one_of(owner: str, name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArchitectureError(
            f"{owner}: {name} must be one of {', '.join(choices)}; got {value!r}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotary:
    """Rotary positions on the first `size` coordinates of a head.

    Attributes:
        size: the number r of rotated coordinates.
        layout: the planes are (i, i + r/2) in `half`, (2i, 2i+1) in `interleaved`.
        frequencies: the angle per position of each of the r/2 planes.
        factor: on cosine and sine.
    """

    size: int
    layout: Layout
    frequencies: tuple[float, ...]
    factor: float = 1.0

    def __post_init__(self) -> None:
        _positive("rotary positions", size=self.size)
        _one_of("rotary positions", "layout", self.layout, get_args(Layout))
        if self.size % 2 or len(self.frequencies) != self.size // 2:
            raise ArchitectureError(
                f"rotary positions on {self.size} coordinates need an even number of them and half "
                f"as many frequencies; got {len(self.frequencies)}"
            )

    @property
    def planes(self) -> tuple[tuple[int, int], ...]:
        """The two coordinates of each plane."""
        half = self.size // 2
        if self.layout == "half":
            return tuple((i, i + half) for i in range(half))
        return tuple((2 * i, 2 * i + 1) for i in range(half))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """A table of score biases by distance, shared by all layers (T5).

    Attributes:
        buckets: the rows of the table.
        distance: from here on all distances fall into the last bucket.
        both: whether keys after the query have buckets of their own.
    """

    buckets: int
    distance: int
    both: bool

    def __post_init__(self) -> None:
        _positive("the table of score biases", buckets=self.buckets, distance=self.distance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The attention of a layer.

    Attributes:
        heads: the number H of query heads.
        groups: the number G of key and value heads; query head h uses ⌊h / (H/G)⌋.
        key_size: d_k.
        value_size: d_v.
        query_bias, key_bias, value_bias, output_bias: whether there is one.
        rotary: rotary positions, or None.
        qk_norm: None, or `rms_head`: an RMS norm of every query and key, before the rotation.
        qk_norm_eps: its eps.
        qk_norm_offset: what is added to its stored gain.
        scale: the factor on scores.
        softcap: c in c tanh(s/c), or None.
        relative: a table of score biases, or None.
        causal: whether a token sees only itself and those before it.
        windows: for each layer how many tokens back it sees, None for all; empty for all layers.
    """

    heads: int
    groups: int
    key_size: int
    value_size: int
    query_bias: bool = False
    key_bias: bool = False
    value_bias: bool = False
    output_bias: bool = False
    rotary: Rotary | None = None
    qk_norm: Literal["rms_head"] | None = None
    qk_norm_eps: float = 0.0
    qk_norm_offset: float = 0.0
    scale: float = 1.0
    softcap: float | None = None
    relative: Relative | None = None
    causal: bool = True
    windows: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        _positive(
            "attention",
            heads=self.heads,
            groups=self.groups,
            key_size=self.key_size,
            value_size=self.value_size,
        )
        if self.heads % self.groups:
            raise ArchitectureError(
                f"{self.heads} query heads cannot share {self.groups} key heads evenly; the number "
                "of key heads must divide that of query heads"
            )
        if self.rotated > self.key_size:
            raise ArchitectureError(
                f"rotary positions on {self.rotated} coordinates of heads of size {self.key_size}"
            )

    @property
    def rotated(self) -> int:
        """The number of rotated coordinates."""
        return 0 if self.rotary is None else self.rotary.size

    @property
    def sharing(self) -> int:
        """How many query heads share a key head: H/G."""
        return self.heads // self.groups

    @property
    def constants_die(self) -> bool:
        """Whether a constant added to all scores of a query, as by a key bias, is not seen."""
        return self.softcap is None and self.qk_norm is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """A norm of the stream.

    Attributes:
        kind: `layer` subtracts the mean, `rms` does not.
        shift: whether there is a shift β.
        eps: what is added to the variance.
        offset: what is added to the stored gain (Gemma stores γ − 1).
    """

    kind: NormKind
    shift: bool = False
    eps: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        _one_of("norm", "kind", self.kind, get_args(NormKind))
        if not 0 <= self.eps < 1:
            raise ArchitectureError(f"the eps of a norm lies in [0, 1); got {self.eps!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp:
    """The MLP of a layer: down · act(up x), or down · (act(gate x) ∘ up x) when gated."""

    size: int
    activation: Activation
    gated: bool = False
    bias: bool = False
    output_bias: bool = False

    def __post_init__(self) -> None:
        _positive("MLP", size=self.size)
        _one_of("MLP", "activation", self.activation, get_args(Activation))


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """The map from image patches, with its bias, to the stream, and the class token before them.

    Attributes:
        channels, height, width: of a patch.
    """

    channels: int
    height: int
    width: int

    def __post_init__(self) -> None:
        _positive("patches", channels=self.channels, height=self.height, width=self.width)

    @property
    def size(self) -> int:
        """The numbers in a patch."""
        return self.channels * self.height * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What reads the stream at the end.

    Attributes:
        kind: `none` (hidden states), `tied` to the token table, or `untied`.
        rows: the number of outputs, 0 without head.
        bias: whether it has a bias.
        softcap: c in c tanh(l/c) on the logits, or None.
        scale: a factor on the stream before it.
    """

    kind: HeadKind = "none"
    rows: int = 0
    bias: bool = False
    softcap: float | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        _one_of("head", "kind", self.kind, get_args(HeadKind))
        if (self.kind == "none") != (self.rows == 0):
            raise ArchitectureError(f"a head of kind {self.kind} with {self.rows} outputs")


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
    head: Head = Head()

    def __post_init__(self) -> None:
        _positive("block", width=self.width, layers=self.layers)
        _one_of("block", "placement", self.placement, get_args(Placement))
        for name, rows in self.tables:
            _one_of("block", "table", name, ("tokens", "positions", "types"))
            _positive("tables", **{name: rows})
        if self.norm is None and (self.final_norm or self.embed_norm or self.placement == "post"):
            raise ArchitectureError("a block without norms has neither final nor embedding norm")
        if self.head.kind == "tied" and self.rows("tokens") != self.head.rows:
            raise ArchitectureError(
                f"a tied head has the {self.rows('tokens')} rows of the token table; "
                f"got {self.head.rows}"
            )
        windows = self.attention.windows
        if windows and len(windows) != self.layers:
            raise ArchitectureError(f"{self.layers} layers and {len(windows)} windows")

    def rows(self, table: str) -> int:
        """The rows of a table, 0 when there is none."""
        return dict(self.tables).get(table, 0)

    @property
    def stored_layers(self) -> int:
        """How many layers have weights of their own."""
        return 1 if self.shared else self.layers

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
    def from_dict(cls, record: dict[str, Any]) -> "Block":
        """The block of a JSON record, checked field by field."""
        parts = {
            "attention": Attention,
            "mlp": Mlp,
            "norm": Norm,
            "patch": Patch,
            "head": Head,
            "rotary": Rotary,
            "relative": Relative,
        }
        return _from_record(cls, record, parts)


def _from_record(cls: Any, record: Any, parts: dict[str, Any]) -> Any:
    if not isinstance(record, dict):
        raise ArchitectureError(
            f"a record of the fields of {cls.__name__} was wanted; got {record!r}"
        )
    known = {field.name for field in fields(cls)}
    for name in record:
        if name not in known:
            raise ArchitectureError(
                f"{cls.__name__} has no field {name!r}; its fields are {', '.join(sorted(known))}"
            )
    values: dict[str, Any] = {}
    for name, value in record.items():
        if name in parts and value is not None:
            values[name] = _from_record(parts[name], value, parts)
        elif name == "tables" and value is not None:
            values[name] = tuple((str(table), rows) for table, rows in value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
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
