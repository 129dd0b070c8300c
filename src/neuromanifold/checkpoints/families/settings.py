"""A configuration, and the values that several families read from it in the same way."""

from collections.abc import Callable, Mapping
from reprlib import repr as shortened
from typing import Any

from neuromanifold.checkpoints.block.block import MOST_LAYERS, Block, Shapes
from neuromanifold.checkpoints.block.parts import Activation, Attention, Head, Mlp, Norm
from neuromanifold.errors import FileFormatError, NotCoveredError

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_fast",
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
        "is_llama_config",
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
        "rope_interleaved",
        "task_specific_params",
        "tokenizer_class",
        "torch_dtype",
        "torchscript",
        "transformers.js_config",
        "transformers_version",
        "use_cache",
    )
)
_SILENT_PARTS = ("dropout", "pdrop", "token_id", "general.", "tokenizer.", "summary_", "unsloth")


class Settings:
    """A configuration that names the key it misses, and knows which keys nobody asked for.

    Attributes:
        config: what is said; a default that is said to be null is not there.
        keys: other keys to look under, for some of those that are asked for.
        asked: the keys that were asked for.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        keys: Mapping[str, tuple[str, ...]] | None = None,
        asked: set[str] | None = None,
    ) -> None:
        self.config = config
        self.keys = {} if keys is None else keys
        self.asked = set() if asked is None else asked

    def __contains__(self, key: str) -> bool:
        self.asked.add(key)
        return self.config.get(key) is not None

    def under(
        self,
        *,
        keys: Mapping[str, tuple[str, ...]] | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> "Settings":
        """The same configuration under other keys; those that are missing, not null, by default."""
        return Settings({**(defaults or {}), **self.config}, keys or self.keys, self.asked)

    @property
    def unread(self) -> dict[str, object]:
        """What the configuration says and nobody asked for."""
        return {k: v for k, v in self.config.items() if k not in self.asked and v is not None}

    def section(self, *keys: str) -> "Settings":
        """The record under the first of the keys that is there, empty without."""
        found = next((key for key in keys if key in self), None)
        return Settings({} if found is None else self._value((found,), None, Mapping, "a record"))

    def whole(
        self, *keys: str, default: int | None = None, least: int = 1, largest: int = 2**31
    ) -> int:
        """A whole number under the first of the keys that is there."""
        wanted = f"a whole number from {least} to {largest}"
        return self._value(keys, default, int, wanted, lambda value: least <= value <= largest)

    def real(self, *keys: str, default: float | None = None, least: float = 1e-30) -> float:
        """A number under the first of the keys that is there; none of them is ever negative."""
        wanted = f"a number from {least:g} to 1e30"
        found = self._value(
            keys, default, int | float, wanted, lambda value: least <= value <= 1e30
        )
        return float(found)

    def eps(self, key: str, default: float) -> float:
        """What a norm adds to the variance."""
        return self.real(key, default=default, least=0.0)

    def layers(self, key: str = "num_hidden_layers") -> int:
        """The number of layers, which is also that of some lists."""
        return self.whole(key, largest=MOST_LAYERS)

    def word(self, *keys: str, default: str | None = None) -> str:
        """A word under the first of the keys that is there."""
        return self._value(keys, default, str, "a word")

    def flag(self, key: str, default: bool) -> bool:
        """Whether the key is set."""
        return self._value((key,), default, bool, "true or false")

    def _value(
        self,
        keys: tuple[str, ...],
        default: object,
        kind: Any,
        wanted: str,
        allows: Callable[[Any], bool] = lambda _: True,
    ) -> Any:
        keys = tuple(own for key in keys for own in self.keys.get(key, (key,)))
        self.asked.update(keys)
        key = next((key for key in keys if self.config.get(key) is not None), keys[0])
        value = self.config.get(key)
        value = default if value is None else value
        if value is None:
            raise FileFormatError(
                f"the configuration has no {key!r}, which is needed; "
                "add it to the model's config.json, or give a configuration with --config"
            )
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits or not allows(value):
            got = shortened(value)
            raise FileFormatError(f"the configuration's {key} must be {wanted}; got {got}")
        return value


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
            f"the activation {shortened(word)} is not covered; those that are: "
            f"{', '.join(_ACTIVATIONS)}"
        )
    return _ACTIVATIONS[word]


def language_head(
    settings: Settings,
    held: Shapes,
    rows: int,
    *,
    tied: bool,
    file: str = "lm_head",
    softcap: float | None = None,
) -> Head:
    """The head of a language model: tied or not as the configuration says (`tied` by default).

    A file without a head is tied when the configuration says so, and otherwise ends with the hidden
    states; whether a stored head that should be tied is equal to the token table is checked later,
    when the values are read.
    """
    says_tied, bias = settings.flag("tie_word_embeddings", tied), "unembedding_bias" in held
    if "unembedding" not in held and not says_tied:
        if bias:
            raise FileFormatError(
                f"{file}.weight is missing, and tie_word_embeddings is false; "
                "add the missing file, or set tie_word_embeddings to true"
            )
        return Head()
    return Head(kind="tied" if says_tied else "untied", rows=rows, bias=bias, softcap=softcap)


def plain_attention(width: int, heads: int, *, bias: bool, **fields: Any) -> Attention:
    """Attention whose maps all have a bias or none, with scores divided by √size."""
    size = width // heads
    usual: dict[str, Any] = {"groups": heads, "key_size": size, "value_size": size}
    usual |= dict.fromkeys(("query_bias", "key_bias", "value_bias", "output_bias"), bias)
    return Attention(heads=heads, **{"scale": max(size, 1) ** -0.5, **usual, **fields})


def usual_block(
    settings: Settings,
    attention: Attention,
    *,
    act: str,
    eps: float,
    inner: int | None = None,
    **fields: Any,
) -> Block:
    """A block with layer norms that shift, and MLPs of two maps with biases.

    Args:
        settings: the configuration.
        attention: what is read of it already.
        act: the activation that is meant where none is said.
        eps: that of the norms, likewise.
        inner: the size of the MLP, likewise.
        **fields: the other fields of the block.
    """
    return Block(
        width=settings.whole("hidden_size"),
        layers=settings.layers(),
        attention=attention,
        mlp=Mlp(
            size=settings.whole("intermediate_size", default=inner),
            activation=activation(settings, "hidden_act", default=act),
            bias=True,
            output_bias=True,
        ),
        norm=Norm(kind="layer", shift=True, eps=settings.eps("layer_norm_eps", eps)),
        **fields,
    )


def windows(settings: Settings, layers: int, *, every: bool) -> tuple[int | None, ...]:
    """How many tokens back each layer sees."""
    first = settings.whole("max_window_layers", default=0, least=0)
    narrow = [layer >= first and (every or layer % 2 == 0) for layer in range(layers)]
    used = settings.flag("use_sliding_window", True) and "sliding_window" in settings
    if "layer_types" in settings:
        types, known = settings.config["layer_types"], ["full_attention", "sliding_attention"]
        if not isinstance(types, list) or [t in known for t in types] != [True] * layers:
            raise FileFormatError(
                f"the configuration's layer_types must be {layers} of {' and '.join(known)}; "
                f"got {shortened(types)}"
            )
        narrow, used = [kind == known[1] for kind in types], True
    if not used or not any(narrow):
        return ()
    size = settings.whole("sliding_window")
    return tuple(size if one else None for one in narrow)
