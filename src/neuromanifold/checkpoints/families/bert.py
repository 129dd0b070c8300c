"""BERT, MiniLM, RoBERTa, ALBERT: norms after the sum; what reads the hidden states is outside."""

from dataclasses import replace

from neuromanifold.checkpoints.block.block import Block, Shapes
from neuromanifold.checkpoints.families.layout import Family
from neuromanifold.checkpoints.families.settings import Settings, plain_attention, usual_block
from neuromanifold.errors import NotCoveredError

_TABLES = {
    "@embeddings.word_embeddings": "tokens",
    "@embeddings.position_embeddings": "positions",
    "@embeddings.token_type_embeddings": "types",
    "@embeddings.LayerNorm": "embed_norm",
}
_LAYER = "@encoder.layer.{L}"
_BERT = _TABLES | {
    **{f"{_LAYER}.attention.self.{name}": name for name in ("query", "key", "value")},
    f"{_LAYER}.attention.output.dense": "output",
    f"{_LAYER}.intermediate.dense": "up",
    f"{_LAYER}.output.dense": "down",
    f"{_LAYER}.attention.output.LayerNorm": "attention_norm",
    f"{_LAYER}.output.LayerNorm": "mlp_norm",
}
_SHARED = "@encoder.albert_layer_groups.0.albert_layers.0"
_ALBERT = _TABLES | {
    "@encoder.embedding_hidden_mapping_in": "embed_map",
    **{f"{_SHARED}.attention.{name}": name for name in ("query", "key", "value")},
    f"{_SHARED}.attention.dense": "output",
    f"{_SHARED}.ffn": "up",
    f"{_SHARED}.ffn_output": "down",
    f"{_SHARED}.attention.LayerNorm": "attention_norm",
    f"{_SHARED}.full_layer_layer_norm": "mlp_norm",
}


def read_bert(settings: Settings, held: Shapes) -> Block:
    """The block of a BERT or RoBERTa configuration."""
    offset = 0
    if settings.word("model_type", default="bert") != "bert":
        offset = settings.whole("pad_token_id", default=1, least=0) + 1
    return _block(settings, "bert", "gelu", position_offset=offset)


def read_albert(settings: Settings, held: Shapes) -> Block:
    """The block of an ALBERT configuration."""
    if any(settings.whole(key, default=1) != 1 for key in ("num_hidden_groups", "inner_group_num")):
        raise NotCoveredError("ALBERT with several groups of layers is not covered")
    embed = settings.whole("embedding_size", default=128)
    return _block(settings, "albert", "gelu_new", shared=True, embed_width=embed)


def _block(settings: Settings, family: str, act: str, **fields: int) -> Block:
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    kind = settings.word("position_embedding_type", default="absolute")
    if kind != "absolute":
        raise NotCoveredError(f"positions of type {kind!r} are not covered; absolute ones are")
    return usual_block(
        settings,
        plain_attention(d, heads, bias=True, causal=settings.flag("is_decoder", False)),
        act=act,
        eps=1e-12,
        family=family,
        placement="post",
        embed_norm=True,
        tables=(
            ("tokens", settings.whole("vocab_size")),
            ("positions", settings.whole("max_position_embeddings")),
            ("types", settings.whole("type_vocab_size", default=2)),
        ),
        **fields,
    )


BERT = Family(
    name="bert",
    model_types=("bert", "roberta", "xlm-roberta", "camembert"),
    read=read_bert,
    tensors=_BERT,
    signature=".attention.self.query.weight",
    prefixes=("bert.", "roberta.", ""),
    buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
    outside=("pooler", "cls.", "classifier", "qa_outputs", "lm_head", "predictions.", "sop_"),
    lookers=("cls.", "lm_head", "predictions."),
    aliases=((".LayerNorm.weight", ".LayerNorm.gamma"), (".LayerNorm.bias", ".LayerNorm.beta")),
)
ALBERT = replace(
    BERT,
    name="albert",
    model_types=("albert",),
    read=read_albert,
    tensors=_ALBERT,
    signature=".albert_layers.0.ffn.weight",
    prefixes=("albert.", ""),
)
