"""GPT-NeoX and Pythia: query, key and value of each head side by side, rows (H, 3, d_k)."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Attention, Mlp, Norm
from neuromanifold.checkpoints.families.layout import (
    Family,
    Settings,
    Slot,
    from_heads,
    interleaved,
    plain,
)
from neuromanifold.checkpoints.families.rotary import rotary, scaling_of
from neuromanifold.checkpoints.families.settings import (
    activation,
    head_slots,
    language_head,
    norm_slots,
)


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a GPT-NeoX configuration."""
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    size, rows = d // heads, settings.whole("vocab_size")
    share = scaling_of(settings).real(
        "partial_rotary_factor", default=settings.real("rotary_pct", default=0.25)
    )
    bias = settings.flag("attention_bias", True)
    return Block(
        family="neox",
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=Attention(
            heads=heads,
            groups=heads,
            key_size=size,
            value_size=size,
            query_bias=bias,
            key_bias=bias,
            value_bias=bias,
            output_bias=bias,
            rotary=rotary(settings, int(size * share)),
            scale=size**-0.5,
        ),
        mlp=Mlp(
            size=settings.whole("intermediate_size"),
            activation=activation(settings, "hidden_act", default="gelu"),
            bias=True,
            output_bias=True,
        ),
        norm=Norm(kind="layer", shift=True, eps=settings.real("layer_norm_eps", default=1e-5)),
        placement="parallel two" if settings.flag("use_parallel_residual", True) else "pre",
        final_norm=True,
        tables=(("tokens", rows),),
        head=language_head(settings, shapes, rows, tied=False, file="embed_out"),
    )


def slots(block: Block) -> list[Slot]:
    """The tensors of a GPT-NeoX file."""
    outer, inner = block.global_shapes, block.layer_shapes
    found = [
        plain("@embed_in.weight", "tokens", outer["tokens"]),
        *norm_slots(outer, "final_norm", "@final_layer_norm"),
        *head_slots(outer, "tokens", file="embed_out"),
    ]
    for layer in range(block.layers):
        at, of = f"@layers.{layer}", f"layers.{layer}."
        for kind, suffix in (("weight", ""), ("bias", "_bias")):
            names = [f"{n}{suffix}" for n in ("query", "key", "value")]
            if names[0] in inner:
                found.append(
                    interleaved(
                        f"{at}.attention.query_key_value.{kind}",
                        {of + name: inner[name] for name in names},
                        block.attention.heads,
                    )
                )
        found.append(from_heads(f"{at}.attention.dense.weight", f"{of}output", inner["output"]))
        if "output_bias" in inner:
            found.append(
                plain(f"{at}.attention.dense.bias", f"{of}output_bias", inner["output_bias"])
            )
        found += [
            plain(f"{at}.mlp.dense_h_to_4h.weight", f"{of}up", inner["up"]),
            plain(f"{at}.mlp.dense_h_to_4h.bias", f"{of}up_bias", inner["up_bias"]),
            plain(f"{at}.mlp.dense_4h_to_h.weight", f"{of}down", inner["down"]),
            plain(f"{at}.mlp.dense_4h_to_h.bias", f"{of}down_bias", inner["down_bias"]),
            *norm_slots(inner, "attention_norm", f"{at}.input_layernorm", of),
            *norm_slots(inner, "mlp_norm", f"{at}.post_attention_layernorm", of),
        ]
    return found


FAMILY = Family(
    name="neox",
    model_types=("gpt_neox",),
    block=block,
    slots=slots,
    prefixes=("gpt_neox.", ""),
    buffers=(".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"),
)
