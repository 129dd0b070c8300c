"""T5's encoder: RMS norms before, scale one, one table of score biases for all layers."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Attention, Mlp, Norm, Relative
from neuromanifold.checkpoints.families.layout import (
    Family,
    Part,
    Settings,
    Slot,
    from_heads,
    plain,
    rows,
)
from neuromanifold.checkpoints.families.settings import activation, norm_slots


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a T5 configuration's encoder."""
    d, heads = settings.whole("d_model"), settings.whole("num_heads")
    size = settings.whole("d_kv")
    word = settings.word("feed_forward_proj", default="relu")
    gated = word.startswith("gated-")
    act = {"gated-gelu": "gelu_new"}.get(word, word.removeprefix("gated-"))
    return Block(
        family="t5",
        width=d,
        layers=settings.whole("num_layers"),
        attention=Attention(
            heads=heads,
            groups=heads,
            key_size=size,
            value_size=size,
            relative=Relative(
                buckets=settings.whole("relative_attention_num_buckets", default=32),
                distance=settings.whole("relative_attention_max_distance", default=128),
                both=True,
            ),
            causal=False,
        ),
        mlp=Mlp(
            size=settings.whole("d_ff"),
            activation=activation(Settings({"act": act}), "act"),
            gated=gated,
        ),
        norm=Norm(kind="rms", eps=settings.real("layer_norm_epsilon", default=1e-6)),
        final_norm=True,
        tables=(("tokens", settings.whole("vocab_size")),),
    )


def slots(block: Block) -> list[Slot]:
    """The tensors of a T5 file's encoder."""
    outer, inner = block.global_shapes, block.layer_shapes
    tokens = outer["tokens"]
    copy = Part("tokens", tokens, None, (0, 1), tokens)
    bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    found = [
        plain("shared.weight", "tokens", tokens),
        Slot("encoder.embed_tokens.weight", tokens, (copy,), copy=True),
        plain(bias, "score_table", outer["score_table"]),
        *norm_slots(outer, "final_norm", "encoder.final_layer_norm"),
    ]
    gated = block.mlp is not None and block.mlp.gated
    for layer in range(block.layers):
        at, of = f"encoder.block.{layer}.layer", f"layers.{layer}."
        reads = ("query", "key", "value")
        found += [
            *(rows(f"{at}.0.SelfAttention.{n[0]}.weight", of + n, inner[n]) for n in reads),
            from_heads(f"{at}.0.SelfAttention.o.weight", f"{of}output", inner["output"]),
            *norm_slots(inner, "attention_norm", f"{at}.0.layer_norm", of),
            *norm_slots(inner, "mlp_norm", f"{at}.1.layer_norm", of),
            plain(f"{at}.1.DenseReluDense.wo.weight", f"{of}down", inner["down"]),
        ]
        into = {"wi_0": "gate", "wi_1": "up"} if gated else {"wi": "up"}
        found += [
            plain(f"{at}.1.DenseReluDense.{file}.weight", of + name, inner[name])
            for file, name in into.items()
        ]
    return found


FAMILY = Family(
    name="t5",
    model_types=("t5", "mt5"),
    block=block,
    slots=slots,
    signature=".layer.0.SelfAttention.q.weight",
    outside=("decoder.", "lm_head"),
)
