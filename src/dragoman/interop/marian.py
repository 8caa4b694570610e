"""Marian: the OPUS translators. One vocabulary for both sides, or one for each; a bias for each token."""

from collections.abc import Collection
from typing import Any

from dragoman.config import Settings
from dragoman.interop.generation import search
from dragoman.interop.huggingface import ACTIVATIONS, Folder, Foreign, read_json
from dragoman.interop.tables import SameAs, Table, Unused, flat
from dragoman.interop.tokens import pieces_by_list
from dragoman.models.marian import MarianConfig
from dragoman.modules.activations import named_by_huggingface
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizers

CURVES = named_by_huggingface("silu") | ACTIVATIONS
END = 0  # where a folder does not say
PROJECTIONS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}


def stack(side: str, attentions: dict[str, str]) -> Table:
    """`attentions` gives our name for each kind of theirs."""
    layer, block = f"model.{side}.layers.*", f"{side}.blocks.*"
    table: dict[str, Any] = {
        f"{layer}.fc1.*": f"{block}.feedforward.0.*",
        f"{layer}.fc2.*": f"{block}.feedforward.2.*",
        f"{layer}.final_layer_norm.*": f"{block}.around_feedforward.norm.*",
        f"model.{side}.embed_positions.weight": Unused("the waves of the positions"),
    }
    for theirs, ours in attentions.items():
        table[f"{layer}.{theirs}_layer_norm.*"] = f"{block}.around_{ours}.norm.*"
        for projection, own in PROJECTIONS.items():
            table[f"{layer}.{theirs}.{projection}.*"] = f"{block}.{ours}_attention.to_{own}.*"
    return table


def table(folder: Folder, names: Collection[str]) -> Table:  # noqa: ARG001
    source, target = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
    match tied(folder):
        case "all":
            shared = "model.shared.weight"
            embeddings: Table = {
                shared: "source_embedding.table.weight",
                **{name: SameAs(shared) for name in (source, target, "lm_head.weight")},
            }
        case kind:
            head = SameAs(target) if kind == "target" else "scores.table.weight"
            embeddings = {
                source: "source_embedding.table.weight",
                target: "target_embedding.table.weight",
                "lm_head.weight": head,
            }
    return {
        **embeddings,
        "final_logits_bias": flat("scores.bias"),
        **stack("encoder", {"self_attn": "self"}),
        **stack("decoder", {"self_attn": "self", "encoder_attn": "source"}),
    }


def tied(folder: Folder) -> str:
    if folder.config.get("share_encoder_decoder_embeddings", True):
        return "all"
    return "target" if folder.config.get("tie_word_embeddings", True) else "none"


def config(folder: Folder) -> MarianConfig:
    folder.one_of("static_position_embeddings", True)
    for name in ("normalize_before", "add_final_layer_norm", "normalize_embedding"):
        folder.one_of(name, False)
    c = folder.config
    settings = {
        "source_vocabulary": c.get("vocab_size", 58101),
        "target_vocabulary": c.get("decoder_vocab_size") or c.get("vocab_size", 58101),
        "width": c.get("d_model", 1024),
        "heads": c.get("encoder_attention_heads", 16),
        "decoder_heads": c.get("decoder_attention_heads", 16),
        "layers": c.get("encoder_layers", 12),
        "decoder_layers": c.get("decoder_layers", 12),
        "hidden": c.get("encoder_ffn_dim", 4096),
        "decoder_hidden": c.get("decoder_ffn_dim", 4096),
        "dropout": c.get("dropout", 0.1),
        "attention_dropout": c.get("attention_dropout", 0.0),
        "activation": CURVES[folder.one_of("activation_function", "gelu", *CURVES)],
        "scaled": c.get("scale_embedding", False),
        "tied": tied(folder),
    }
    return folder.settings(MarianConfig, settings)


def tokenizers(folder: Folder) -> Tokenizers:
    """A source and a target side even where the ids are the same: each has its own way to cut a text."""
    listed = read_json(folder.path / "vocab.json")
    pad = folder.token_id("pad_token_id", 58100)
    end, *others = folder.token_ids("eos_token_id", END)
    special = SpecialIds(
        pad=pad,
        start=folder.token_id("decoder_start_token_id", pad),
        end=end,
        also_end=tuple(others),
        unknown=listed.get(folder.token("unk_token", "<unk>"), 1),
    )
    apart = "target_vocab.json" if folder.tokenizer.get("separate_vocabs", False) else "vocab.json"
    return Tokenizers(
        pieces_by_list(folder, "source", "vocab.json", special), pieces_by_list(folder, "target", apart, special)
    )


def about(folder: Folder, config: Settings) -> dict[str, Any]:  # noqa: ARG001
    languages = [str(folder.tokenizer.get(name) or "") for name in ("source_lang", "target_lang")]
    longest = folder.config.get("max_position_embeddings", 1024) - 1
    ends = folder.token_ids("eos_token_id", END)
    settings = search(folder, ends, {"forced_eos_token_id": ends[0]})
    return {"search": settings, "languages": languages, "longest": longest}


MARIAN = Foreign(config, table, tokenizers, about)
