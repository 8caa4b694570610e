"""A Hugging Face folder as a model of ours: which kinds are known, and what is said of one that came."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from dragoman import models
from dragoman.errors import DataError, DragomanError
from dragoman.interop.bert import BERT
from dragoman.interop.generation import DRAWN, SEARCHED, not_obeyed
from dragoman.interop.gpt2 import GPT2
from dragoman.interop.huggingface import Folder, Foreign, Notice, open_folder, read_weights
from dragoman.interop.marian import MARIAN
from dragoman.interop.t5 import T5
from dragoman.interop.tables import move_in
from dragoman.interop.vit import VIT
from dragoman.models.shapes import shapes_only
from dragoman.runs.model import SavedModel
from dragoman.runs.scrutiny import USUAL, refuse_no_numbers, too_large
from dragoman.text.tokenizer import Tokenizer, Tokenizers, one_line

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

OBEYED = {"search": SEARCHED, "sampling": DRAWN}  # settings of generation_config.json, by what becomes of them
MORE = 4  # times the numbers in the file: tables may be tied, and one is left out where it is a copy
Read = TypeVar("Read")


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
    config: Any = understood(folder, lambda: foreign.config(folder))
    about = understood(folder, lambda: foreign.about(folder, config))
    weights = read_weights(path, notice)
    refuse_no_numbers(weights, path)
    refuse_absurd(path, config, weights)
    tokenizers = read_tokenizers(foreign, folder)
    if tokenizers is not None:
        refuse_large(path, tokenizers, config)
        refuse_beyond(folder, tokenizers, config)
    model = models.build(config)
    unused = move_in(weights, foreign.table(folder, weights.keys()), model, str(path))
    obeyed = next((names for part, names in OBEYED.items() if part in about), None)
    if obeyed and tokenizers is not None:
        asked = not_obeyed(folder, obeyed, tokenizers.special.end)
        if asked:
            notice(f"generation_config.json asks for {', '.join(asked)}, which dragoman does not do")
    size = sum(parameter.numel() for parameter in model.parameters())
    left_out = f"; left out: {'; '.join(unused)}" if unused else ""
    task, family = models.task_and_family_of(config)
    story = f"{folder.architecture} as a {family} to {task}: {config.shape()}, {size:,} parameters{left_out}"
    return Imported(SavedModel(model.eval(), tokenizers, about), story)


def understood(folder: Folder, read: Callable[[], Read]) -> Read:
    """What was read off the folder's settings; a value of a kind that they never have is a fault of the folder."""
    try:
        return read()
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as problem:
        raise DataError(
            "E-IMP-02", f"the settings in {folder.path} cannot be understood ({one_line(problem)}); fetch them again"
        ) from None


def refuse_absurd(path: Path, config: Any, weights: Mapping[str, Tensor]) -> None:
    """Settings that ask for far more than the weights hold, before anything is made as large as they say."""
    there = sum(tensor.numel() for tensor in weights.values())
    for key, value in too_large(config, there, len(weights)):
        raise DataError(
            "E-IMP-03",
            f"the weights in {path} do not fit its config.json, which gives {key} = {value:,}: there are "
            f"{there:,} numbers in {len(weights):,} tensors; fetch both again",
        )
    with shapes_only():
        asked = sum(parameter.numel() for parameter in models.build(config).parameters())
    if asked > MORE * max(there, USUAL):
        raise DataError(
            "E-IMP-03",
            f"the weights in {path} do not fit its config.json, which asks for {asked:,} numbers: there are {there:,}; "
            "fetch both again",
        )


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
    for tokenizer, known in vocabularies(tokenizers, config):
        if len(tokenizer) > known:
            raise DataError(
                "E-IMP-05",
                f"the tokenizer in {path} has {len(tokenizer):,} tokens and its model {known:,}; fetch both again",
            )


def refuse_beyond(folder: Folder, tokenizers: Tokenizers, config: Any) -> None:
    """Special ids stand in config.json, apart from the tokenizer, and may be those of a larger model."""
    for tokenizer, known in vocabularies(tokenizers, config):
        special = tokenizer.special
        beyond = [i for i in (*special.pieces(), *special.ends) if i >= known]
        if beyond:
            raise DataError(
                "E-IMP-05",
                f"{folder.path} has {folder.naming(beyond[0])} and a model of {known:,} tokens; mend its config.json "
                "and generation_config.json",
            )


def vocabularies(tokenizers: Tokenizers, config: Any) -> list[tuple[Tokenizer, int]]:
    """The tokenizer of each side, and for how many tokens the model has vectors there."""
    sizes = config.model_dump()
    sides = (("source_vocabulary", tokenizers.source), ("target_vocabulary", tokenizers.target))
    return [(tokenizer, sizes.get(side, sizes.get("vocabulary"))) for side, tokenizer in sides]
