"""Llama, Mistral, SmolLM, Qwen2, Qwen3, Gemma 2, Phi-3: RMS norms, gated MLPs, rotary positions."""

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.block.parts import Attention, Mlp, Norm
from neuromanifold.checkpoints.families.layout import Family
from neuromanifold.checkpoints.families.rotary import rotary
from neuromanifold.checkpoints.families.settings import (
    Settings,
    activation,
    language_head,
    windows,
)
from neuromanifold.errors import FileFormatError

_OUTER = {"@embed_tokens": "tokens", "@norm": "final_norm", "lm_head": "unembedding"}
_AT = "@layers.{L}."
_MAPS = {
    **{f"{_AT}self_attn.{n[0]}_proj": n for n in ("query", "key", "value", "output")},
    **{f"{_AT}self_attn.{n[0]}_norm": n for n in ("query_norm", "key_norm")},
    **{f"{_AT}mlp.{n}_proj": n for n in ("gate", "up", "down")},
}
_FUSED = {
    f"{_AT}self_attn.qkv_proj": "query key value",
    f"{_AT}self_attn.o_proj": "output",
    f"{_AT}mlp.gate_up_proj": "gate up",
    f"{_AT}mlp.down_proj": "down",
}
_NORMS = {
    f"{_AT}input_layernorm": "attention_norm",
    f"{_AT}post_attention_layernorm": "mlp_norm",
}
_FOUR_NORMS = {
    f"{_AT}input_layernorm": "attention_norm",
    f"{_AT}post_attention_layernorm": "attention_out_norm",
    f"{_AT}pre_feedforward_layernorm": "mlp_norm",
    f"{_AT}post_feedforward_layernorm": "mlp_out_norm",
}

DEFAULTS: dict[str, dict[str, object]] = {
    "gemma2": {
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
    },
    "mistral": {"sliding_window": 4096},
    "phi3": {"rms_norm_eps": 1e-5},
    "qwen2": {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28},
    "qwen3": {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28},
}
"""What Hugging Face's classes take where a configuration does not say, unless all take it."""


_BIASES = {
    "attention_bias": ("query_bias", "key_bias", "value_bias", "output_bias"),
    "mlp_bias": ("gate_bias", "up_bias", "down_bias"),
}
_WITHOUT_FLAGS = ("mistral", "qwen2")
"""Models whose classes do not ask the configuration for biases."""


def _attention(settings: Settings, held: Shapes, model: str) -> Attention:
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    size = settings.whole("head_dim", default=d // heads)
    normed = "query_norm" in held
    return Attention(
        heads=heads,
        groups=settings.whole("num_key_value_heads", default=heads),
        key_size=size,
        value_size=size,
        query_bias="query_bias" in held,
        key_bias="key_bias" in held,
        value_bias="value_bias" in held,
        output_bias="output_bias" in held,
        rotary=rotary(settings, size),
        qk_norm="rms_head" if normed else None,
        qk_norm_eps=settings.eps("rms_norm_eps", 1e-6) if normed else 0.0,
        scale=settings.real("query_pre_attn_scalar", default=float(size)) ** -0.5,
        softcap=_cap(settings, "attn_logit_softcapping"),
        windows=windows(settings, settings.layers(), every=model != "gemma2"),
    )


def _check_biases(settings: Settings, held: Shapes) -> None:
    """Biases are read as the file has them; a class that is told there are none drops them."""
    for key, names in _BIASES.items():
        stored = [name for name in names if name in held]
        if not settings.flag(key, True) and stored:
            raise FileFormatError(
                f"the configuration's {key} is false, and the file has a {stored[0]}; "
                "correct the configuration, or remove the biases"
            )


def _cap(settings: Settings, key: str) -> float | None:
    return settings.real(key) if key in settings else None


def read(settings: Settings, held: Shapes) -> Block:
    """The block of a configuration of this kind."""
    model = settings.word("model_type", default="llama")
    settings = settings.under(defaults=DEFAULTS.get(model))
    if model not in _WITHOUT_FLAGS:
        _check_biases(settings, held)
    d, vocabulary = settings.whole("hidden_size"), settings.whole("vocab_size")
    gemma = model == "gemma2"
    act, softcap = "hidden_activation" if gemma else "hidden_act", "final_logit_softcapping"
    return Block(
        family={"gemma2": "gemma2", "phi3": "phi3"}.get(model, "llama"),
        width=d,
        layers=settings.layers(),
        attention=_attention(settings, held, model),
        mlp=Mlp(
            size=settings.whole("intermediate_size"),
            activation=activation(settings, act, default="silu"),
            gated=True,
            bias="up_bias" in held,
            output_bias="down_bias" in held,
        ),
        norm=Norm(
            kind="rms",
            eps=settings.eps("rms_norm_eps", 1e-6),
            offset=1.0 if gemma else 0.0,
        ),
        placement="sandwich" if gemma else "pre",
        final_norm=True,
        embed_scale=d**0.5 if gemma else 1.0,
        tables=(("tokens", vocabulary),),
        head=language_head(settings, held, vocabulary, tied=gemma, softcap=_cap(settings, softcap)),
    )


def _family(name: str, model_types: tuple[str, ...], tensors: dict[str, str]) -> Family:
    return Family(
        name=name,
        model_types=model_types,
        read=read,
        tensors=_OUTER | tensors,
        prefixes=("model.", ""),
        buffers=(".rotary_emb.inv_freq",),
    )


LLAMA = _family("llama", ("llama", "mistral", "qwen2", "qwen3", "smollm"), _MAPS | _NORMS)
GEMMA2 = _family("gemma2", ("gemma2",), _MAPS | _FOUR_NORMS)
PHI3 = _family("phi3", ("phi3",), _FUSED | _NORMS)
