"""Phi-1 and Phi-2: attention and MLP in parallel behind one layer norm, part of a head rotated."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Attention, Mlp, Norm
from neuromanifold.checkpoints.families.bert import layer_slots
from neuromanifold.checkpoints.families.layout import Family, Settings, Slot, plain
from neuromanifold.checkpoints.families.rotary import rotary, scaling_of
from neuromanifold.checkpoints.families.settings import (
    activation,
    head_slots,
    language_head,
    norm_slots,
)
from neuromanifold.errors import NotCoveredError


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a Phi-1 or Phi-2 configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    size, vocabulary = d // heads, settings.whole("vocab_size")
    if settings.flag("qk_layernorm", False):
        raise NotCoveredError("layer norms of queries and keys are not covered")
    share = scaling_of(settings).real(
        "partial_rotary_factor", default=settings.real("partial_rotary_factor", default=0.5)
    )
    return Block(
        family="phi",
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=Attention(
            heads=heads,
            groups=settings.whole("num_key_value_heads", default=heads),
            key_size=size,
            value_size=size,
            query_bias=True,
            key_bias=True,
            value_bias=True,
            output_bias=True,
            rotary=rotary(settings, int(size * share)),
            scale=size**-0.5,
        ),
        mlp=Mlp(
            size=settings.whole("intermediate_size"),
            activation=activation(settings, "hidden_act", default="gelu_new"),
            bias=True,
            output_bias=True,
        ),
        norm=Norm(kind="layer", shift=True, eps=settings.real("layer_norm_eps", default=1e-5)),
        placement="parallel",
        final_norm=True,
        tables=(("tokens", vocabulary),),
        head=language_head(settings, shapes, vocabulary, tied=False),
    )


def slots(block: Block) -> list[Slot]:
    """The tensors of a Phi-1 or Phi-2 file."""
    outer = block.global_shapes
    found = [
        plain("@embed_tokens.weight", "tokens", outer["tokens"]),
        *norm_slots(outer, "final_norm", "@final_layernorm"),
        *(head_slots(outer, "tokens") if block.head.kind != "none" else []),
    ]
    for layer in range(block.layers):
        at, of = f"@layers.{layer}", f"layers.{layer}."
        found += layer_slots(
            block.layer_shapes,
            of,
            {n: f"{at}.self_attn.{n[0]}_proj" for n in ("query", "key", "value")},
            f"{at}.self_attn.dense",
            (f"{at}.mlp.fc1", f"{at}.mlp.fc2"),
            (f"{at}.input_layernorm", ""),
        )
    return found


FAMILY = Family(
    name="phi",
    model_types=("phi",),
    block=block,
    slots=slots,
    prefixes=("model.", ""),
    buffers=(".rotary_emb.inv_freq",),
)
