"""BERT, MiniLM, RoBERTa, ALBERT: norms after the sum; what reads the hidden states is outside."""

from collections.abc import Mapping
from functools import partial

from neuromanifold.checkpoints.block import Block
from neuromanifold.checkpoints.families.layout import Family, Settings, table_slots
from neuromanifold.checkpoints.families.settings import (
    activation,
    biased_mlp,
    layer_norm,
    plain_attention,
)
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
_LOOKERS = ("cls.", "lm_head", "predictions.")
_OUTSIDE = ("pooler", "cls.", "classifier", "qa_outputs", "lm_head", "predictions.", "sop_")


def bert_block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of a BERT or RoBERTa configuration."""
    offset = 0
    if settings.word("model_type", default="bert") != "bert":
        offset = settings.whole("pad_token_id", default=1) + 1
    return _block(settings, "bert", offset)


def albert_block(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Block:
    """The block of an ALBERT configuration."""
    if (
        settings.whole("num_hidden_groups", default=1) != 1
        or settings.whole("inner_group_num", default=1) != 1
    ):
        raise NotCoveredError("ALBERT with several groups of layers is not covered")
    return _block(settings, "albert", 0, settings.whole("embedding_size", default=128))


def _block(settings: Settings, family: str, offset: int, embed: int | None = None) -> Block:
    d, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    kind = settings.word("position_embedding_type", default="absolute")
    if kind != "absolute":
        raise NotCoveredError(f"positions of type {kind!r} are not covered; absolute ones are")
    tables = (
        ("tokens", settings.whole("vocab_size")),
        ("positions", settings.whole("max_position_embeddings")),
        ("types", settings.whole("type_vocab_size", default=2)),
    )
    return Block(
        family=family,
        width=d,
        layers=settings.whole("num_hidden_layers"),
        attention=plain_attention(d, heads, bias=True, causal=settings.flag("is_decoder", False)),
        mlp=biased_mlp(
            settings.whole("intermediate_size"),
            activation(settings, "hidden_act", default="gelu" if embed is None else "gelu_new"),
        ),
        norm=layer_norm(settings, "layer_norm_eps", 1e-12),
        placement="post",
        shared=family == "albert",
        embed_norm=True,
        embed_width=embed,
        tables=tables,
        position_offset=offset,
    )


_ALIASES = ((".LayerNorm.weight", ".LayerNorm.gamma"), (".LayerNorm.bias", ".LayerNorm.beta"))

BERT = Family(
    name="bert",
    model_types=("bert", "roberta", "xlm-roberta", "camembert"),
    block=bert_block,
    slots=partial(table_slots, table=_BERT),
    signature=".attention.self.query.weight",
    prefixes=("bert.", "roberta.", ""),
    buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
    outside=_OUTSIDE,
    lookers=_LOOKERS,
    aliases=_ALIASES,
)
ALBERT = Family(
    name="albert",
    model_types=("albert",),
    block=albert_block,
    slots=partial(table_slots, table=_ALBERT),
    signature=".albert_layers.0.ffn.weight",
    prefixes=("albert.", ""),
    buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
    outside=_OUTSIDE,
    lookers=_LOOKERS,
    aliases=_ALIASES,
)
