"""GPT-2: fused query, key and value; Conv1D weights are stored (in, out)."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Attention, Mlp, Norm
from neuromanifold.checkpoints.families.layout import (
    Family,
    Settings,
    Slot,
    from_heads,
    plain,
    stacked,
    transposed,
)
from neuromanifold.checkpoints.families.settings import (
    activation,
    head_slots,
    language_head,
    norm_slots,
)
from neuromanifold.errors import NotCoveredError


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a GPT-2 configuration."""
    d, heads = settings.whole("n_embd", "hidden_size"), settings.whole("n_head")
    layers, rows = settings.whole("n_layer"), settings.whole("vocab_size")
    size = d // heads
    if settings.flag("scale_attn_by_inverse_layer_idx", False):
        raise NotCoveredError("scores that are divided by the number of the layer are not covered")
    return Block(
        family="gpt2",
        width=d,
        layers=layers,
        attention=Attention(
            heads=heads,
            groups=heads,
            key_size=size,
            value_size=size,
            query_bias=True,
            key_bias=True,
            value_bias=True,
            output_bias=True,
            scale=size**-0.5 if settings.flag("scale_attn_weights", True) else 1.0,
        ),
        mlp=Mlp(
            size=settings.whole("n_inner", default=4 * d),
            activation=activation(settings, "activation_function", default="gelu_new"),
            bias=True,
            output_bias=True,
        ),
        norm=Norm(kind="layer", shift=True, eps=settings.real("layer_norm_epsilon", default=1e-5)),
        final_norm=True,
        tables=(("tokens", rows), ("positions", settings.whole("n_positions", "n_ctx"))),
        head=language_head(settings, shapes, rows, tied=True),
    )


def slots(block: Block) -> list[Slot]:
    """The tensors of a GPT-2 file."""
    outer, inner = block.global_shapes, block.layer_shapes
    found = [
        plain("@wte.weight", "tokens", outer["tokens"]),
        plain("@wpe.weight", "positions", outer["positions"]),
        *norm_slots(outer, "final_norm", "@ln_f"),
        *head_slots(outer, "tokens"),
    ]
    for layer in range(block.layers):
        at, of = f"@h.{layer}", f"layers.{layer}."
        for kind in ("weight", "bias"):
            suffix = "" if kind == "weight" else "_bias"
            fused = stacked(
                f"{at}.attn.c_attn.{kind}",
                {f"{of}{n}{suffix}": inner[f"{n}{suffix}"] for n in ("query", "key", "value")},
            )
            found.append(transposed(fused) if kind == "weight" else fused)
        found += [
            transposed(from_heads(f"{at}.attn.c_proj.weight", f"{of}output", inner["output"])),
            plain(f"{at}.attn.c_proj.bias", f"{of}output_bias", inner["output_bias"]),
            transposed(plain(f"{at}.mlp.c_fc.weight", f"{of}up", inner["up"])),
            plain(f"{at}.mlp.c_fc.bias", f"{of}up_bias", inner["up_bias"]),
            transposed(plain(f"{at}.mlp.c_proj.weight", f"{of}down", inner["down"])),
            plain(f"{at}.mlp.c_proj.bias", f"{of}down_bias", inner["down_bias"]),
            *norm_slots(inner, "attention_norm", f"{at}.ln_1", of),
            *norm_slots(inner, "mlp_norm", f"{at}.ln_2", of),
        ]
    return found


FAMILY = Family(
    name="gpt2",
    model_types=("gpt2",),
    block=block,
    slots=slots,
    signature=".attn.c_attn.weight",
    prefixes=("transformer.", ""),
    buffers=(".attn.bias", ".attn.masked_bias"),
)
