"""Values that several families read from a configuration in the same way."""

from collections.abc import Mapping
from typing import Any

from neuromanifold.checkpoints.block_parts import Activation, Attention, Head, Mlp, Norm
from neuromanifold.checkpoints.families.layout import Settings
from neuromanifold.errors import FileFormatError, NotCoveredError

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}


def activation(settings: Settings, *keys: str, default: str | None = None) -> Activation:
    """The activation under the first of these keys."""
    word = settings.word(*keys, default=default)
    if word not in _ACTIVATIONS:
        raise NotCoveredError(
            f"the activation {word!r} is not covered; those that are: {', '.join(_ACTIVATIONS)}"
        )
    return _ACTIVATIONS[word]


def language_head(
    settings: Settings,
    shapes: Mapping[str, tuple[int, ...]],
    rows: int,
    *,
    tied: bool,
    file: str = "lm_head",
    **fields: float | None,
) -> Head:
    """The head of a language model: tied or not as the configuration says (`tied` by default).

    A file without a head is tied when the configuration says so, and otherwise ends with the hidden
    states; whether a stored head that should be tied is equal to the token table is checked later,
    when the values are read.
    """
    says_tied = settings.flag("tie_word_embeddings", tied)
    stored = f"{file}.weight" in shapes
    if not stored and not says_tied:
        if f"{file}.bias" in shapes:
            raise FileFormatError(
                f"{file}.weight is missing, and tie_word_embeddings is false; "
                "add the missing file, or set tie_word_embeddings to true"
            )
        return Head()
    bias = f"{file}.bias" in shapes
    kind = "tied" if says_tied else "untied"
    return Head(kind=kind, rows=rows, bias=bias, **fields)  # type: ignore[arg-type]


def plain_attention(
    width: int, heads: int, *, bias: bool, size: int | None = None, **fields: Any
) -> Attention:
    """Attention whose maps all have a bias or none, with scores divided by √size."""
    size = width // heads if size is None else size
    biases = ("query_bias", "key_bias", "value_bias", "output_bias")
    given: dict[str, Any] = dict.fromkeys(biases, bias)
    given |= {"groups": heads, "scale": size**-0.5, **fields}
    return Attention(heads=heads, key_size=size, value_size=size, **given)


def biased_mlp(size: int, act: Activation) -> Mlp:
    """An MLP of two maps with biases."""
    return Mlp(size=size, activation=act, bias=True, output_bias=True)


def layer_norm(settings: Settings, key: str, default: float) -> Norm:
    """Layer norms with gain and shift."""
    return Norm(kind="layer", shift=True, eps=settings.real(key, default=default))


def windows(settings: Settings, layers: int, *, every: bool) -> tuple[int | None, ...]:
    """How many tokens back each layer sees."""
    types = settings.config.get("layer_types")
    if isinstance(types, list) and len(types) == layers:
        if all(kind == "full_attention" for kind in types):
            return ()
        size = settings.whole("sliding_window")
        return tuple(size if kind == "sliding_attention" else None for kind in types)
    if "sliding_window" not in settings or not settings.flag("use_sliding_window", True):
        return ()
    size = settings.whole("sliding_window")
    return tuple(size if every or layer % 2 == 0 else None for layer in range(layers))
