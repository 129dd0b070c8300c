"""GPT-NeoX and Pythia: query, key and value of each head side by side, rows (H, 3, d_k)."""

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.families.layout import Family
from neuromanifold.checkpoints.families.rotary import rotary
from neuromanifold.checkpoints.families.settings import (
    Settings,
    language_head,
    plain_attention,
    usual_block,
)


def read(settings: Settings, held: Shapes) -> Block:
    """The block of a GPT-NeoX configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    rows, bias = settings.whole("vocab_size"), settings.flag("attention_bias", True)
    turning = rotary(settings, d // heads, share=("rotary_pct", 0.25))
    return usual_block(
        settings,
        plain_attention(d, heads, bias=bias, rotary=turning),
        act="gelu",
        eps=1e-5,
        family="neox",
        placement="parallel two" if settings.flag("use_parallel_residual", True) else "pre",
        final_norm=True,
        tables=(("tokens", rows),),
        head=language_head(settings, held, rows, tied=False, file="embed_out"),
    )


FAMILY = Family(
    name="neox",
    model_types=("gpt_neox",),
    read=read,
    tensors={
        "@embed_in": "tokens",
        "@final_layer_norm": "final_norm",
        "embed_out": "unembedding",
        "@layers.{L}.attention.query_key_value": "query key value",
        "@layers.{L}.attention.dense": "output",
        "@layers.{L}.mlp.dense_h_to_4h": "up",
        "@layers.{L}.mlp.dense_4h_to_h": "down",
        "@layers.{L}.input_layernorm": "attention_norm",
        "@layers.{L}.post_attention_layernorm": "mlp_norm",
    },
    per_head=True,
    prefixes=("gpt_neox.", ""),
    buffers=(".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"),
)
