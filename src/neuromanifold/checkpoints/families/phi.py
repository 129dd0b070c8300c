"""Phi-1 and Phi-2: attention and MLP in parallel behind one layer norm, part of a head rotated."""

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


def read(settings: Settings, held: Shapes) -> Block:
    """The block of a Phi-1 or Phi-2 configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    rows, groups = (
        settings.whole("vocab_size"),
        settings.whole("num_key_value_heads", default=heads),
    )
    if settings.flag("qk_layernorm", False):
        raise NotCoveredError("layer norms of queries and keys are not covered")
    turning = rotary(settings, d // heads, share=("partial_rotary_factor", 0.5))
    return usual_block(
        settings,
        plain_attention(d, heads, bias=True, groups=groups, rotary=turning),
        act="gelu_new",
        eps=1e-5,
        family="phi",
        placement="parallel",
        final_norm=True,
        tables=(("tokens", rows),),
        head=language_head(settings, held, rows, tied=False),
    )


FAMILY = Family(
    name="phi",
    model_types=("phi",),
    read=read,
    tensors={
        "@embed_tokens": "tokens",
        "@final_layernorm": "final_norm",
        "lm_head": "unembedding",
        **{f"@layers.{{L}}.self_attn.{name[0]}_proj": name for name in ("query", "key", "value")},
        "@layers.{L}.self_attn.dense": "output",
        "@layers.{L}.mlp.fc1": "up",
        "@layers.{L}.mlp.fc2": "down",
        "@layers.{L}.input_layernorm": "attention_norm",
    },
    prefixes=("model.", ""),
    buffers=(".rotary_emb.inv_freq",),
)
