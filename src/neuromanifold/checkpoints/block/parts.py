"""What a block is made of: attention, norms, MLP, patches and head, each a checked value."""

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from neuromanifold.errors import ArchitectureError

Layout = Literal["half", "interleaved"]
Activation = Literal["gelu", "gelu_tanh", "gelu_fast", "relu", "relu2", "silu", "tanh"]
HeadKind = Literal["none", "tied", "untied"]
NormKind = Literal["layer", "rms"]


def positive(owner: str, **sizes: int) -> None:
    """Raise unless all sizes are positive whole numbers."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ArchitectureError(
                f"{owner}: {name} must be a positive whole number; got {size!r}"
            )


def above_zero(owner: str, **numbers: float | None) -> None:
    """Raise unless all numbers that are there are positive."""
    for name, number in numbers.items():
        if number is not None and not 0 < number < inf:
            raise ArchitectureError(f"{owner}: {name} must be a positive number; got {number!r}")


def check_eps(eps: float) -> None:
    """Raise unless a norm may add this to the variance."""
    if not 0 <= eps < 1:
        raise ArchitectureError(f"the eps of a norm lies in [0, 1); got {eps!r}")


def one_of(owner: str, name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise unless a value is one of the choices."""
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
        positive("rotary positions", size=self.size)
        one_of("rotary positions", "layout", self.layout, get_args(Layout))
        above_zero("rotary positions", factor=self.factor)
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
        positive("the table of score biases", buckets=self.buckets, distance=self.distance)
        exact = self.buckets // (4 if self.both else 2)
        if not 1 <= exact < self.distance:
            raise ArchitectureError(
                f"a table of score biases with {self.buckets} buckets has one for each distance "
                f"below {exact}: that must be 1 or more, and less than the largest distance; "
                f"got {self.distance}"
            )


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
        positive(
            "attention",
            heads=self.heads,
            groups=self.groups,
            key_size=self.key_size,
            value_size=self.value_size,
            **{
                f"window {layer}": size
                for layer, size in enumerate(self.windows)
                if size is not None
            },
        )
        check_eps(self.qk_norm_eps)
        above_zero("attention", scale=self.scale, softcap=self.softcap)
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
        one_of("norm", "kind", self.kind, get_args(NormKind))
        check_eps(self.eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp:
    """The MLP of a layer: down · act(up x), or down · (act(gate x) ∘ up x) when gated."""

    size: int
    activation: Activation
    gated: bool = False
    bias: bool = False
    output_bias: bool = False

    def __post_init__(self) -> None:
        positive("MLP", size=self.size)
        one_of("MLP", "activation", self.activation, get_args(Activation))

    @property
    def homogeneous(self) -> str | None:
        """The map behind which the activation lets positive factors through, to some power."""
        name = "gate" if self.gated else "up"
        return name if self.activation in ("relu", "relu2") else None

    @property
    def scalings(self) -> dict[str, int]:
        """The maps whose rows may be scaled, and the power of the factor that `down` pays."""
        found = {"up": 1} if self.gated else {}
        if self.homogeneous is not None:
            found[self.homogeneous] = 2 if self.activation == "relu2" else 1
        return found


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
        positive("patches", channels=self.channels, height=self.height, width=self.width)

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
        one_of("head", "kind", self.kind, get_args(HeadKind))
        above_zero("head", scale=self.scale, softcap=self.softcap)
        if (self.kind == "none") != (self.rows == 0):
            raise ArchitectureError(f"a head of kind {self.kind} with {self.rows} outputs")
        if self.bias and self.scale != 1:
            raise ArchitectureError(
                f"a head with a bias has no factor before it; got {self.scale!r}: multiply it in"
            )
