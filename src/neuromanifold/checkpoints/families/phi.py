"""Phi-1 and Phi-2: attention and MLP in parallel behind one layer norm, part of a head rotated."""

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
from neuromanifold.errors import NotCoveredError

_TABLE = {
    "@embed_tokens": "tokens",
    "@final_layernorm": "final_norm",
    "lm_head": "unembedding",
    **{f"@layers.{{L}}.self_attn.{name[0]}_proj": name for name in ("query", "key", "value")},
    "@layers.{L}.self_attn.dense": "output",
    "@layers.{L}.mlp.fc1": "up",
    "@layers.{L}.mlp.fc2": "down",
    "@layers.{L}.input_layernorm": "attention_norm",
}


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a Phi-1 or Phi-2 configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    vocabulary = settings.whole("vocab_size")
    if settings.flag("qk_layernorm", False):
        raise NotCoveredError("layer norms of queries and keys are not covered")
    act = activation(settings, "hidden_act", default="gelu_new")
    return Block(
        family="phi",
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=plain_attention(
            d,
            heads,
            bias=True,
            groups=settings.whole("num_key_value_heads", default=heads),
            rotary=rotary(settings, d // heads, share=("partial_rotary_factor", 0.5)),
        ),
        mlp=biased_mlp(settings.whole("intermediate_size"), act),
        norm=layer_norm(settings, "layer_norm_eps", 1e-5),
        placement="parallel",
        final_norm=True,
        tables=(("tokens", vocabulary),),
        head=language_head(settings, shapes, vocabulary, tied=False),
    )


FAMILY = Family(
    name="phi",
    model_types=("phi",),
    block=block,
    slots=partial(table_slots, table=_TABLE),
    prefixes=("model.", ""),
    buffers=(".rotary_emb.inv_freq",),
)
