"""T5's encoder: RMS norms before, scale one, one table of score biases for all layers."""

from collections.abc import Mapping

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.block_parts import Mlp, Norm, Relative
from neuromanifold.checkpoints.families.layout import Family, Settings, Slot, copied, table_slots
from neuromanifold.checkpoints.families.settings import activation, plain_attention

_AT = "encoder.block.{L}.layer."
_TABLE = {
    "shared": "tokens",
    "encoder.block.0.layer.0.SelfAttention.relative_attention_bias": "score_table",
    "encoder.final_layer_norm": "final_norm",
    **{f"{_AT}0.SelfAttention.{n[0]}": n for n in ("query", "key", "value", "output")},
    f"{_AT}0.layer_norm": "attention_norm",
    f"{_AT}1.layer_norm": "mlp_norm",
    f"{_AT}1.DenseReluDense.wo": "down",
}


def block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a T5 configuration's encoder."""
    d, heads = settings.whole("d_model"), settings.whole("num_heads")
    word = settings.word("feed_forward_proj", default="relu")
    gated = word.startswith("gated-")
    act = {"gated-gelu": "gelu_new"}.get(word, word.removeprefix("gated-"))
    return Block(
        family="t5",
        width=d,
        layers=settings.whole("num_layers"),
        attention=plain_attention(
            d,
            heads,
            bias=False,
            size=settings.whole("d_kv"),
            scale=1.0,
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
    gated = block.mlp is not None and block.mlp.gated
    into = {"wi_0": "gate", "wi_1": "up"} if gated else {"wi": "up"}
    mlp = {f"{_AT}1.DenseReluDense.{file}": name for file, name in into.items()}
    copy = copied("encoder.embed_tokens.weight", "tokens", block.global_shapes["tokens"])
    return [*table_slots(block, _TABLE | mlp), copy]


FAMILY = Family(
    name="t5",
    model_types=("t5", "mt5"),
    block=block,
    slots=slots,
    signature=".layer.0.SelfAttention.q.weight",
    outside=("decoder.", "lm_head"),
    lookers=("decoder.", "lm_head"),
)
