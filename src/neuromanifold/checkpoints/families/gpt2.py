"""GPT-2 (fused query, key and value; Conv1D weights are stored (in, out)) and GPT-J."""

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.families.layout import Family
from neuromanifold.checkpoints.families.rotary import rotary
from neuromanifold.checkpoints.families.settings import (
    Settings,
    language_head,
    plain_attention,
    usual_block,
)
from neuromanifold.errors import NotCoveredError

_KEYS = {
    "hidden_size": ("n_embd", "hidden_size"),
    "num_attention_heads": ("n_head",),
    "num_hidden_layers": ("n_layer",),
    "intermediate_size": ("n_inner",),
    "hidden_act": ("activation_function",),
    "layer_norm_eps": ("layer_norm_epsilon",),
}

_BASE = 10000.0
"""Of GPT-J's rotary positions, whatever a configuration says."""


def read(settings: Settings, held: Shapes) -> Block:
    """The block of a GPT-2 configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    rows, positions = settings.whole("vocab_size"), settings.whole("n_positions", "n_ctx")
    if settings.flag("scale_attn_by_inverse_layer_idx", False):
        raise NotCoveredError("scores that are divided by the number of the layer are not covered")
    unscaled = {} if settings.flag("scale_attn_weights", True) else {"scale": 1.0}
    return usual_block(
        settings,
        plain_attention(d, heads, bias=True, **unscaled),
        act="gelu_new",
        eps=1e-5,
        inner=4 * d,
        family="gpt2",
        final_norm=True,
        tables=(("tokens", rows), ("positions", positions)),
        head=language_head(settings, held, rows, tied=True),
    )


def read_gptj(settings: Settings, held: Shapes) -> Block:
    """The block of a GPT-J configuration: part of a head rotated, neighbours together."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    rows, turned = settings.whole("vocab_size"), settings.whole("rotary_dim")
    if settings.real("rope_theta", default=_BASE) != _BASE:
        raise NotCoveredError("the rotary positions of GPT-J have the base 10000; drop rope_theta")
    turning = rotary(settings, turned, layout="interleaved")
    return usual_block(
        settings,
        plain_attention(d, heads, bias=False, rotary=turning),
        act="gelu_new",
        eps=1e-5,
        inner=4 * d,
        family="gptj",
        placement="parallel",
        final_norm=True,
        tables=(("tokens", rows),),
        head=language_head(settings, held, rows, tied=False),
    )


FAMILY = Family(
    name="gpt2",
    model_types=("gpt2",),
    read=read,
    tensors={
        "@wte": "tokens",
        "@wpe": "positions",
        "@ln_f": "final_norm",
        "lm_head": "unembedding",
        "@h.{L}.attn.c_attn": "query key value",
        "@h.{L}.attn.c_proj": "output",
        "@h.{L}.mlp.c_fc": "up",
        "@h.{L}.mlp.c_proj": "down",
        "@h.{L}.ln_1": "attention_norm",
        "@h.{L}.ln_2": "mlp_norm",
    },
    turned=True,
    keys=_KEYS,
    signature=".attn.c_attn.weight",
    prefixes=("transformer.", ""),
    buffers=(".attn.bias", ".attn.masked_bias"),
)
GPTJ = Family(
    name="gptj",
    model_types=("gptj",),
    read=read_gptj,
    tensors={
        "@wte": "tokens",
        "@ln_f": "final_norm",
        "lm_head": "unembedding",
        **{f"@h.{{L}}.attn.{n[0]}_proj": n for n in ("query", "key", "value")},
        "@h.{L}.attn.out_proj": "output",
        "@h.{L}.mlp.fc_in": "up",
        "@h.{L}.mlp.fc_out": "down",
        "@h.{L}.ln_1": "attention_norm",
    },
    keys=_KEYS,
    prefixes=("transformer.", ""),
    buffers=(".attn.bias", ".attn.masked_bias"),
)
