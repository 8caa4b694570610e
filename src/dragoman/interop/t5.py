"""T5: version 1.0 has one table for all and ReLU; version 1.1 a head of its own and a gated feed-forward network."""

from collections.abc import Collection
from typing import Any

from dragoman.config import Settings
from dragoman.interop.generation import search
from dragoman.interop.huggingface import ACTIVATIONS, Folder, Foreign
from dragoman.interop.tables import Moved, SameAs, Table, Unused
from dragoman.interop.tokens import open_pipeline, pieces_with_sentinels
from dragoman.models.t5 import T5Config
from dragoman.text.pipeline import Pipeline
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizer, Tokenizers

DISTANCES = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
END = 1  # where a folder does not say
PROJECTIONS = {"q": "query", "k": "key", "v": "value", "o": "output"}


def attention(theirs: str, ours: str) -> Table:
    return {f"{theirs}.{one}.weight": f"{ours}.to_{name}.weight" for one, name in PROJECTIONS.items()}


def feedforward(theirs: str, ours: str, gated: bool) -> Table:
    names = {"wi_0": "gate", "wi_1": "inward", "wo": "outward"} if gated else {"wi": "0", "wo": "2"}
    return {f"{theirs}.DenseReluDense.{name}.weight": f"{ours}.{own}.weight" for name, own in names.items()}


def stack(side: str, *, gated: bool, reads_source: bool) -> Table:
    layer, block = f"{side}.block.*.layer", f"{side}.blocks.*"
    last = 2 if reads_source else 1
    source: Table = {
        **attention(f"{layer}.1.EncDecAttention", f"{block}.source_attention"),
        f"{layer}.1.layer_norm.weight": f"{block}.around_source.norm.weight",
        f"{side}.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": Unused("distances to the source"),
    }
    return {
        f"{side}.{DISTANCES}": f"{side}_distances.table.weight",
        **attention(f"{layer}.0.SelfAttention", f"{block}.self_attention"),
        f"{layer}.0.layer_norm.weight": f"{block}.around_self.norm.weight",
        **(source if reads_source else {}),
        **feedforward(f"{layer}.{last}", f"{block}.feedforward", gated),
        f"{layer}.{last}.layer_norm.weight": f"{block}.around_feedforward.norm.weight",
        f"{side}.final_layer_norm.weight": f"{side}.final_norm.weight",
        f"{side}.embed_tokens.weight": SameAs("shared.weight"),
    }


def table(folder: Folder, names: Collection[str]) -> Table:
    gated, _ = feed_forward(folder)
    return {
        **embeddings(scaled=is_scaled(folder), own_head="lm_head.weight" in names),
        **stack("encoder", gated=gated, reads_source=False),
        **stack("decoder", gated=gated, reads_source=True),
    }


def embeddings(*, scaled: bool, own_head: bool) -> Table:
    """Where states are scaled, the head is the table itself. Else it is a table of its own, which a folder leaves out
    where its numbers are the same."""
    read, score = "source_embedding.table.weight", "scores.table.weight"
    if scaled:
        return {"shared.weight": read, "lm_head.weight": SameAs("shared.weight")}
    if own_head:
        return {"shared.weight": read, "lm_head.weight": score}
    return {"shared.weight": Moved((read, score), lambda tensor: [tensor, tensor])}


def is_scaled(folder: Folder) -> bool:
    """Version 1.0 multiplies its last states by 1/√width. Older folders say so by whether the head is tied."""
    return bool(folder.config.get("scale_decoder_outputs", folder.config.get("tie_word_embeddings", True)))


def feed_forward(folder: Folder) -> tuple[bool, str]:
    """Whether it is gated, and its activation. `gated-gelu` has always meant gelu_new."""
    known = [f"{gate}{name}" for gate in ("", "gated-") for name in ACTIVATIONS]
    gate, _, activation = folder.one_of("feed_forward_proj", "relu", *known).rpartition("-")
    return bool(gate), "gelu-tanh" if gate and activation == "gelu" else ACTIVATIONS[activation]


def config(folder: Folder) -> T5Config:
    c = folder.config
    gated, activation = feed_forward(folder)
    settings = {
        "source_vocabulary": c.get("vocab_size", 32128),
        "target_vocabulary": c.get("vocab_size", 32128),
        "width": c.get("d_model", 512),
        "heads": c.get("num_heads", 8),
        "head_width": c.get("d_kv", 64),
        "layers": c.get("num_layers", 6),
        "decoder_layers": c.get("num_decoder_layers"),
        "hidden": c.get("d_ff", 2048),
        "dropout": c.get("dropout_rate", 0.1),
        "activation": activation,
        "gated": gated,
        "buckets": c.get("relative_attention_num_buckets", 32),
        "furthest": c.get("relative_attention_max_distance", 128),
        "epsilon": c.get("layer_norm_epsilon", 1e-6),
        "tied": "all" if is_scaled(folder) else "inputs",
    }
    return folder.settings(T5Config, settings)


def tokenizers(folder: Folder) -> Tokenizers:
    pad = folder.token_id("pad_token_id", 0)
    start, (end, *others) = folder.token_id("decoder_start_token_id", pad), folder.token_ids("eos_token_id", END)
    special = SpecialIds(pad=pad, start=start, end=end, also_end=tuple(others), unknown=2)
    model = open_pipeline(folder)
    if model is None:
        one: Tokenizer = pieces_with_sentinels(folder, special)
    else:
        unknown = model.token_to_id(folder.token("unk_token", "<unk>"))
        sentinels = [model.token_to_id(f"<extra_id_{number}>") for number in range(model.get_vocab_size())]
        spans = tuple(found for found in sentinels if found is not None)
        one = Pipeline(model, special.changed({"unknown": unknown, "spans": spans}, section="special"))
    return Tokenizers(one, one)


def about(folder: Folder, config: Settings) -> dict[str, Any]:  # noqa: ARG001
    settings = search(folder, folder.token_ids("eos_token_id", END))
    return {"search": settings, "languages": ["", ""], "longest": folder.longest(512) - 1}


T5 = Foreign(config, table, tokenizers, about)
