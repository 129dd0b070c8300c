"""Llama, Mistral, SmolLM, Qwen2, Qwen3, Gemma 2, Phi-3: RMS norms, gated MLPs, rotary positions."""

from collections.abc import Mapping
from functools import partial

from neuromanifold.checkpoints.block import Block, Placement
from neuromanifold.checkpoints.block_parts import Attention, Mlp, Norm
from neuromanifold.checkpoints.families.layout import Family, Settings, table_slots
from neuromanifold.checkpoints.families.rotary import rotary
from neuromanifold.checkpoints.families.settings import activation, language_head, windows

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


def _attention(settings: Settings, shapes: Mapping[str, tuple[int, ...]], model: str) -> Attention:
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    size = settings.whole("head_dim", default=d // heads)
    scale = settings.real("query_pre_attn_scalar", default=float(size)) ** -0.5
    bias = {n: f"@layers.0.self_attn.{n}_proj.bias" in shapes for n in "qkvo"}
    normed = "@layers.0.self_attn.q_norm.weight" in shapes
    return Attention(
        heads=heads,
        groups=settings.whole("num_key_value_heads", default=heads),
        key_size=size,
        value_size=size,
        query_bias=bias["q"],
        key_bias=bias["k"],
        value_bias=bias["v"],
        output_bias=bias["o"],
        rotary=rotary(settings, size),
        qk_norm="rms_head" if normed else None,
        qk_norm_eps=settings.real("rms_norm_eps", default=1e-6) if normed else 0.0,
        scale=scale,
        softcap=(
            settings.real("attn_logit_softcapping")
            if "attn_logit_softcapping" in settings
            else None
        ),
        windows=windows(settings, settings.whole("num_hidden_layers"), every=model != "gemma2"),
    )


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a configuration of this kind."""
    model = settings.word("model_type", default="llama")
    settings = settings.with_defaults(DEFAULTS.get(model, {}))
    d, vocabulary = settings.whole("hidden_size"), settings.whole("vocab_size")
    gemma = model == "gemma2"
    placement: Placement = "sandwich" if gemma else "pre"
    softcap = (
        settings.real("final_logit_softcapping") if "final_logit_softcapping" in settings else None
    )
    return Block(
        family={"gemma2": "gemma2", "phi3": "phi3"}.get(model, "llama"),
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=_attention(settings, shapes, model),
        mlp=Mlp(
            size=settings.whole("intermediate_size"),
            activation=activation(
                settings, "hidden_activation" if gemma else "hidden_act", default="silu"
            ),
            gated=True,
            bias="@layers.0.mlp.up_proj.bias" in shapes,
            output_bias="@layers.0.mlp.down_proj.bias" in shapes,
        ),
        norm=Norm(
            kind="rms",
            eps=settings.real("rms_norm_eps", default=1e-6),
            offset=1.0 if gemma else 0.0,
        ),
        placement=placement,
        final_norm=True,
        embed_scale=d**0.5 if gemma else 1.0,
        tables=(("tokens", vocabulary),),
        head=language_head(settings, shapes, vocabulary, tied=gemma, softcap=softcap),
    )


def _family(name: str, model_types: tuple[str, ...], table: dict[str, str]) -> Family:
    return Family(
        name=name,
        model_types=model_types,
        block=block,
        slots=partial(table_slots, table=_OUTER | table),
        prefixes=("model.", ""),
        buffers=(".rotary_emb.inv_freq",),
    )


LLAMA = _family("llama", ("llama", "mistral", "qwen2", "qwen3", "smollm"), _MAPS | _NORMS)
GEMMA2 = _family("gemma2", ("gemma2",), _MAPS | _FOUR_NORMS)
PHI3 = _family("phi3", ("phi3",), _FUSED | _NORMS)
