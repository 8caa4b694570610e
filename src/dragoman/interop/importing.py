"""A Hugging Face folder as a model of ours: which kinds are known, and what is said of one that came."""

from pathlib import Path
from typing import Any, NamedTuple

from dragoman import models
from dragoman.errors import DataError, DragomanError
from dragoman.interop.bert import BERT
from dragoman.interop.generation import not_obeyed
from dragoman.interop.gpt2 import GPT2
from dragoman.interop.huggingface import Folder, Foreign, Notice, open_folder, read_weights
from dragoman.interop.marian import MARIAN
from dragoman.interop.t5 import T5
from dragoman.interop.tables import move_in
from dragoman.interop.vit import VIT
from dragoman.runs.model import SavedModel
from dragoman.text.tokenizer import Tokenizers, one_line

ARCHITECTURES: dict[str, Foreign] = {
    "BertModel": BERT,
    "BertForMaskedLM": BERT,
    "BertForPreTraining": BERT,
    "BertForSequenceClassification": BERT,
    "GPT2LMHeadModel": GPT2,
    "GPT2Model": GPT2,
    "T5ForConditionalGeneration": T5,
    "MarianMTModel": MARIAN,
    "ViTForImageClassification": VIT,
    "ViTModel": VIT,
}


class Imported(NamedTuple):
    saved: SavedModel
    story: str  # what came, in one sentence


def import_folder(path: Path, notice: Notice) -> Imported:
    folder = open_folder(path)
    if folder.architecture not in ARCHITECTURES:
        named = repr(folder.architecture) if folder.architecture else "none"
        raise DataError(
            "E-IMP-02", f"{path} holds the architecture {named}; dragoman can import {', '.join(ARCHITECTURES)}"
        )
    foreign = ARCHITECTURES[folder.architecture]
    config: Any = foreign.config(folder)
    weights = read_weights(path, notice)
    tokenizers = read_tokenizers(foreign, folder)
    if tokenizers is not None:
        refuse_large(path, tokenizers, config)
    model = models.build(config)
    unused = move_in(weights, foreign.table(folder, weights.keys()), model, str(path))
    about = foreign.about(folder, config)
    if "search" in about and not_obeyed(folder):
        notice(f"generation_config.json asks for {', '.join(not_obeyed(folder))}, which dragoman does not do")
    size = sum(parameter.numel() for parameter in model.parameters())
    left_out = f"; left out: {'; '.join(unused)}" if unused else ""
    task, family = models.task_and_family_of(config)
    story = f"{folder.architecture} as a {family} to {task}: {config.shape()}, {size:,} parameters{left_out}"
    return Imported(SavedModel(model.eval(), tokenizers, about), story)


def read_tokenizers(foreign: Foreign, folder: Folder) -> Tokenizers | None:
    if foreign.tokenizers is None:
        return None
    try:
        return foreign.tokenizers(folder)
    except DragomanError:
        raise
    except Exception as problem:  # `tokenizers` and sentencepiece raise no narrower kind for a damaged file
        raise DataError(
            "E-IMP-05", f"the tokenizer in {folder.path} cannot be read ({one_line(problem)}); fetch it again"
        ) from None


def refuse_large(path: Path, tokenizers: Tokenizers, config: Any) -> None:
    """A model may have more vectors than its tokenizer has tokens, as T5 has, but not fewer."""
    sizes = config.model_dump()
    for side, tokenizer in (("source_vocabulary", tokenizers.source), ("target_vocabulary", tokenizers.target)):
        known = sizes.get(side, sizes.get("vocabulary"))
        if len(tokenizer) > known:
            raise DataError(
                "E-IMP-05",
                f"the tokenizer in {path} has {len(tokenizer):,} tokens and its model {known:,}; fetch both again",
            )
