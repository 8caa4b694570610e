"""GPT-2: linear layers are stored (inputs, outputs), and those of queries, keys and values side by side as one."""

from collections.abc import Collection
from typing import Any

from dragoman.config import Settings
from dragoman.interop.generation import sampling
from dragoman.interop.huggingface import ACTIVATIONS, Folder, Foreign
from dragoman.interop.tables import SameAs, Table, Unused, prefixed, split, transposed
from dragoman.interop.tokens import byte_pairs, open_pipeline
from dragoman.models.gpt import GptConfig
from dragoman.text.pipeline import Pipeline
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizers

BLOCK = "blocks.blocks.*"
ATTENTION = f"{BLOCK}.self_attention"
BODY: Table = {
    "wte.weight": "embedding.table.weight",
    "wpe.weight": "positions.table.weight",
    "h.*.ln_1.*": f"{BLOCK}.around_self.norm.*",
    "h.*.attn.c_attn.weight": split(*(f"{ATTENTION}.to_{part}.weight" for part in ("query", "key", "value"))),
    "h.*.attn.c_attn.bias": split(*(f"{ATTENTION}.to_{part}.bias" for part in ("query", "key", "value"))),
    "h.*.attn.c_proj.weight": transposed(f"{ATTENTION}.to_output.weight"),
    "h.*.attn.c_proj.bias": f"{ATTENTION}.to_output.bias",
    "h.*.ln_2.*": f"{BLOCK}.around_feedforward.norm.*",
    "h.*.mlp.c_fc.weight": transposed(f"{BLOCK}.feedforward.0.weight"),
    "h.*.mlp.c_fc.bias": f"{BLOCK}.feedforward.0.bias",
    "h.*.mlp.c_proj.weight": transposed(f"{BLOCK}.feedforward.2.weight"),
    "h.*.mlp.c_proj.bias": f"{BLOCK}.feedforward.2.bias",
    "ln_f.*": "blocks.final_norm.*",
    "h.*.attn.bias": Unused("masks of the future"),
    "h.*.attn.masked_bias": Unused("masks of the future"),
}


def table(folder: Folder, names: Collection[str]) -> Table:
    prefix = "transformer." if any(name.startswith("transformer.") for name in names) else ""
    tied = folder.config.get("tie_word_embeddings", True)
    return {
        **prefixed(BODY, prefix),
        "lm_head.weight": SameAs(f"{prefix}wte.weight") if tied else "scores.table.weight",
    }


def config(folder: Folder) -> GptConfig:
    for name, only in (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    ):
        folder.one_of(name, only)
    c = folder.config
    width = c.get("n_embd", 768)
    settings = {
        "vocabulary": c.get("vocab_size", 50257),
        "width": width,
        "heads": c.get("n_head", 12),
        "layers": c.get("n_layer", 12),
        "hidden": c.get("n_inner") or 4 * width,
        "longest": c.get("n_positions", 1024),
        "dropout": c.get("resid_pdrop", 0.1),
        "attention_dropout": c.get("attn_pdrop", 0.1),
        "activation": ACTIVATIONS[folder.one_of("activation_function", "gelu_new", *ACTIVATIONS)],
        "epsilon": c.get("layer_norm_epsilon", 1e-5),
        "tied": c.get("tie_word_embeddings", True),
    }
    return folder.settings(GptConfig, settings)


def tokenizers(folder: Folder) -> Tokenizers:
    """One id is padding, start, end and unknown at once: bytes leave nothing unknown."""
    end, *others = folder.token_ids("eos_token_id", 50256)
    start = folder.token_id("bos_token_id", end)
    special = SpecialIds(pad=end, start=start, end=end, also_end=tuple(others), unknown=end)
    one = Pipeline(open_pipeline(folder) or byte_pairs(folder), special)
    return Tokenizers(one, one)


def about(folder: Folder, config: Settings) -> dict[str, Any]:  # noqa: ARG001
    return {"sampling": sampling(folder)}


GPT2 = Foreign(config, table, tokenizers, about)
