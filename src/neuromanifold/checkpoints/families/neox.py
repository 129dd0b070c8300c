"""GPT-NeoX and Pythia: query, key and value of each head side by side, rows (H, 3, d_k)."""

from collections.abc import Mapping
from functools import partial

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.families.layout import Family, Settings, table_slots
from neuromanifold.checkpoints.families.rotary import rotary
from neuromanifold.checkpoints.families.settings import (
    activation,
    biased_mlp,
    language_head,
    layer_norm,
    plain_attention,
)

_TABLE = {
    "@embed_in": "tokens",
    "@final_layer_norm": "final_norm",
    "embed_out": "unembedding",
    "@layers.{L}.attention.query_key_value": "query key value",
    "@layers.{L}.attention.dense": "output",
    "@layers.{L}.mlp.dense_h_to_4h": "up",
    "@layers.{L}.mlp.dense_4h_to_h": "down",
    "@layers.{L}.input_layernorm": "attention_norm",
    "@layers.{L}.post_attention_layernorm": "mlp_norm",
}


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a GPT-NeoX configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    rows = settings.whole("vocab_size")
    bias = settings.flag("attention_bias", True)
    return Block(
        family="neox",
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=plain_attention(
            d, heads, bias=bias, rotary=rotary(settings, d // heads, share=("rotary_pct", 0.25))
        ),
        mlp=biased_mlp(
            settings.whole("intermediate_size"), activation(settings, "hidden_act", default="gelu")
        ),
        norm=layer_norm(settings, "layer_norm_eps", 1e-5),
        placement="parallel two" if settings.flag("use_parallel_residual", True) else "pre",
        final_norm=True,
        tables=(("tokens", rows),),
        head=language_head(settings, shapes, rows, tied=False, file="embed_out"),
    )


FAMILY = Family(
    name="neox",
    model_types=("gpt_neox",),
    block=block,
    slots=partial(table_slots, table=_TABLE, per_head=True),
    prefixes=("gpt_neox.", ""),
    buffers=(".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"),
)
