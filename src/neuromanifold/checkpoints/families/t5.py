"""T5's encoder: RMS norms before, scale one, one table of score biases for all layers."""

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.block.parts import Mlp, Norm, Relative
from neuromanifold.checkpoints.families.layout import Family, Slot, copied, slot_of
from neuromanifold.checkpoints.families.settings import Settings, activation, plain_attention

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


def read(settings: Settings, held: Shapes) -> Block:
    """The block of a T5 configuration's encoder."""
    d, heads, size = (settings.whole(key) for key in ("d_model", "num_heads", "d_kv"))
    word = settings.word("feed_forward_proj", default="relu")
    act = {"gated-gelu": "gelu_new"}.get(word, word.removeprefix("gated-"))
    relative = Relative(
        buckets=settings.whole("relative_attention_num_buckets", default=32),
        distance=settings.whole("relative_attention_max_distance", default=128),
        both=True,
    )
    sizes = {"key_size": size, "value_size": size, "scale": 1.0}
    return Block(
        family="t5",
        width=d,
        layers=settings.layers("num_layers"),
        attention=plain_attention(d, heads, bias=False, relative=relative, causal=False, **sizes),
        mlp=Mlp(
            size=settings.whole("d_ff"),
            activation=activation(Settings({"act": act}), "act"),
            gated=word.startswith("gated-"),
        ),
        norm=Norm(kind="rms", eps=settings.eps("layer_norm_epsilon", 1e-6)),
        final_norm=True,
        tables=(("tokens", settings.whole("vocab_size")),),
    )


def _others(block: Block) -> list[Slot]:
    """The copy of the token table, and the maps into the MLP, named by whether it is gated."""
    gated = block.mlp is not None and block.mlp.gated
    found = [copied("encoder.embed_tokens.weight", "tokens", block.global_shapes["tokens"])]
    for layer in range(block.layers):
        at = f"{_AT}1.DenseReluDense.".replace("{L}", str(layer))
        for file, name in {"wi_0": "gate", "wi_1": "up"}.items() if gated else [("wi", "up")]:
            held = {f"layers.{layer}.{name}": block.layer_shapes[name]}
            found.append(slot_of(f"{at}{file}.weight", held, 1))
    return found


FAMILY = Family(
    name="t5",
    model_types=("t5", "mt5"),
    read=read,
    tensors=_TABLE,
    others=_others,
    signature=".layer.0.SelfAttention.q.weight",
    outside=("decoder.", "lm_head"),
    lookers=("decoder.", "lm_head"),
)
