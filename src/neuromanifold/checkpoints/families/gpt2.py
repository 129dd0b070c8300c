"""GPT-2: fused query, key and value; Conv1D weights are stored (in, out)."""

from collections.abc import Mapping
from functools import partial

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.families.layout import Family, Settings, table_slots
from neuromanifold.checkpoints.families.settings import (
    activation,
    biased_mlp,
    language_head,
    layer_norm,
    plain_attention,
)
from neuromanifold.errors import NotCoveredError

_TABLE = {
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
}


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a GPT-2 configuration."""
    d, heads = settings.whole("n_embd", "hidden_size"), settings.whole("n_head")
    layers, rows = settings.whole("n_layer"), settings.whole("vocab_size")
    if settings.flag("scale_attn_by_inverse_layer_idx", False):
        raise NotCoveredError("scores that are divided by the number of the layer are not covered")
    scale = (d // heads) ** -0.5 if settings.flag("scale_attn_weights", True) else 1.0
    act = activation(settings, "activation_function", default="gelu_new")
    return Block(
        family="gpt2",
        width=d,
        layers=layers,
        attention=plain_attention(d, heads, bias=True, scale=scale),
        mlp=biased_mlp(settings.whole("n_inner", default=4 * d), act),
        norm=layer_norm(settings, "layer_norm_epsilon", 1e-5),
        final_norm=True,
        tables=(("tokens", rows), ("positions", settings.whole("n_positions", "n_ctx"))),
        head=language_head(settings, shapes, rows, tied=True),
    )


FAMILY = Family(
    name="gpt2",
    model_types=("gpt2",),
    block=block,
    slots=partial(table_slots, table=_TABLE, turned=True),
    signature=".attn.c_attn.weight",
    prefixes=("transformer.", ""),
    buffers=(".attn.bias", ".attn.masked_bias"),
)
