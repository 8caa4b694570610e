"""BERT: the reader with its head for masked places or for classes, or alone, as models for sentence vectors are."""

from collections.abc import Collection
from typing import Any

from dragoman.interop.huggingface import ACTIVATIONS, Folder, Foreign
from dragoman.interop.tables import SameAs, Table, Unused, prefixed
from dragoman.interop.tokens import id_of, open_pipeline, word_pieces
from dragoman.models.bert import BertConfig, BertVectorsConfig
from dragoman.models.bert_classifier import BertClassifierConfig
from dragoman.text.pipeline import Pipeline
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizers


def norm(theirs: str, ours: str) -> Table:
    """A norm's weight and bias; the oldest folders call them gamma and beta."""
    names = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
    return {f"{theirs}.{name}": f"{ours}.{own}" for name, own in names.items()}


BLOCK = "reader.encoder.blocks.*"
READER: Table = {
    "embeddings.word_embeddings.weight": "reader.embedding.table.weight",
    "embeddings.position_embeddings.weight": "reader.positions.table.weight",
    "embeddings.token_type_embeddings.weight": "reader.segments.weight",
    **norm("embeddings.LayerNorm", "reader.norm"),
    "encoder.layer.*.attention.self.query.*": f"{BLOCK}.self_attention.to_query.*",
    "encoder.layer.*.attention.self.key.*": f"{BLOCK}.self_attention.to_key.*",
    "encoder.layer.*.attention.self.value.*": f"{BLOCK}.self_attention.to_value.*",
    "encoder.layer.*.attention.output.dense.*": f"{BLOCK}.self_attention.to_output.*",
    **norm("encoder.layer.*.attention.output.LayerNorm", f"{BLOCK}.around_self.norm"),
    "encoder.layer.*.intermediate.dense.*": f"{BLOCK}.feedforward.0.*",
    "encoder.layer.*.output.dense.*": f"{BLOCK}.feedforward.2.*",
    **norm("encoder.layer.*.output.LayerNorm", f"{BLOCK}.around_feedforward.norm"),
    "embeddings.position_ids": Unused("the numbers 0, 1, 2 …"),
}
HEAD: Table = {
    "cls.predictions.transform.dense.*": "transform.0.*",
    **norm("cls.predictions.transform.LayerNorm", "transform.2"),
    "cls.predictions.bias": "scores.bias",
    "cls.predictions.decoder.bias": SameAs("cls.predictions.bias"),
    "cls.seq_relationship.*": Unused("the head for the next sentence"),
}
POOLER: Table = {"pooler.dense.*": Unused("the pooler, which sentence vectors by the mean do not use")}
CLASSES: Table = {"pooler.dense.*": "pooler.*"}


def table(folder: Folder, names: Collection[str]) -> Table:
    prefix = "bert." if any(name.startswith("bert.") for name in names) else ""
    if folder.architecture == "BertForSequenceClassification":
        return {**prefixed({**READER, **CLASSES}, prefix), "classifier.*": "to_classes.*"}
    reader = prefixed({**READER, **POOLER}, prefix)
    if folder.architecture == "BertModel":
        return reader
    return {**reader, **HEAD, "cls.predictions.decoder.weight": SameAs(f"{prefix}embeddings.word_embeddings.weight")}


def config(folder: Folder) -> BertConfig:
    """What is absent in config.json is as the reference has it."""
    for name, only in (("position_embedding_type", "absolute"), ("is_decoder", False), ("tie_word_embeddings", True)):
        folder.one_of(name, only)
    c = folder.config
    settings = {
        "vocabulary": c.get("vocab_size", 30522),
        "width": c.get("hidden_size", 768),
        "heads": c.get("num_attention_heads", 12),
        "layers": c.get("num_hidden_layers", 12),
        "hidden": c.get("intermediate_size", 3072),
        "longest": c.get("max_position_embeddings", 512),
        "segments": c.get("type_vocab_size", 2),
        "dropout": c.get("hidden_dropout_prob", 0.1),
        "attention_dropout": c.get("attention_probs_dropout_prob", 0.1),
        "activation": ACTIVATIONS[folder.one_of("hidden_act", *ACTIVATIONS)],
        "epsilon": c.get("layer_norm_eps", 1e-12),
    }
    match folder.architecture:
        case "BertModel":
            return folder.settings(BertVectorsConfig, settings)
        case "BertForSequenceClassification":
            return folder.settings(BertClassifierConfig, {**settings, **classes(folder)})
        case _:
            return folder.settings(BertConfig, settings)


def classes(folder: Folder) -> dict[str, Any]:
    """The labels in the order of their scores, and where a second text begins."""
    folder.one_of("problem_type", None, "single_label_classification")
    named = folder.config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    ordered = [str(named[number]) for number in sorted(named, key=int)]
    return {"classes": ordered, "separator": tokenizers(folder).special.end}


def tokenizers(folder: Folder) -> Tokenizers:
    model = open_pipeline(folder) or word_pieces(folder)
    special = SpecialIds(
        pad=id_of(model, folder, "pad_token", "[PAD]"),
        start=id_of(model, folder, "cls_token", "[CLS]"),
        end=id_of(model, folder, "sep_token", "[SEP]"),
        unknown=id_of(model, folder, "unk_token", "[UNK]"),
        mask=id_of(model, folder, "mask_token", "[MASK]"),
    )
    one = Pipeline(model, special)
    return Tokenizers(one, one)


BERT = Foreign(config, table, tokenizers, lambda _folder, _config: {})
