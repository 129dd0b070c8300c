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

HEAD_KEYS = ("num_attention_heads", "n_head", "num_heads")
_SILENT = frozenset(
    (
        "_name_or_path",
        "architectures",
        "attn_implementation",
        "auto_map",
        "directionality",
        "dtype",
        "finetuning_task",
        "gradient_checkpointing",
        "id2label",
        "initializer_factor",
        "initializer_range",
        "label2id",
        "max_position_embeddings",
        "model_type",
        "num_labels",
        "output_attentions",
        "output_hidden_states",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
        "pretraining_tp",
        "problem_type",
        "reorder_and_upcast_attn",
        "return_dict",
        "task_specific_params",
        "tokenizer_class",
        "torch_dtype",
        "torchscript",
        "transformers_version",
        "use_cache",
    )
)
_SILENT_PARTS = ("dropout", "pdrop", "token_id", "general.", "tokenizer.", "summary_", "unsloth")


def unexplained(settings: Settings, heads: int) -> dict[str, object]:
    """What a configuration says that was not read, and is not known to change no function."""
    return {
        key: value
        for key, value in settings.unread.items()
        if key not in _SILENT
        and not any(part in key for part in _SILENT_PARTS)
        and not (key in HEAD_KEYS and value == heads)
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
    first = settings.whole("max_window_layers", default=0)
    narrow = [layer >= first and (every or layer % 2 == 0) for layer in range(layers)]
    used = settings.flag("use_sliding_window", True) and "sliding_window" in settings
    if "layer_types" in settings:
        types, known = settings.config["layer_types"], ["full_attention", "sliding_attention"]
        if not isinstance(types, list) or [t in known for t in types] != [True] * layers:
            raise FileFormatError(
                f"the configuration's layer_types must be {layers} of {' and '.join(known)}; "
                f"got {types!r}"
            )
        narrow, used = [kind == known[1] for kind in types], True
    if not used or not any(narrow):
        return ()
    size = settings.whole("sliding_window")
    return tuple(size if one else None for one in narrow)
