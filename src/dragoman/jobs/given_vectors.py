"""`--embeddings FILE`: a model's table of token vectors begins with vectors of words that were learned elsewhere.

A token that is a whole word of the file gets the word's vector; all others keep their random ones. Given vectors are
scaled to the deviation that the table has, so that the model starts as it would have.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from dragoman.config import Settings
from dragoman.decoding.words import WordVectors
from dragoman.errors import DataError, UsageError
from dragoman.jobs.request import Request
from dragoman.models import find_family
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.runs.model import open_model
from dragoman.text.boundaries import whole_words
from dragoman.text.tokenizer import Tokenizer, Tokenizers
from dragoman.text.vectors import NamedVectors, read_vectors

HEAD = 32  # numbers that an attention head has at least, where the width was not chosen by us


def open_vectors(path: Path) -> NamedVectors:
    """A file that word2vec or GloVe wrote, or a run of one of them here."""
    if not path.is_dir():
        return read_vectors(path)
    saved = open_model(path)
    if not hasattr(saved.model, "vectors"):
        raise DataError(
            "E-RUN-10", f"{path} holds a model that learned to {saved.task}, and has no vectors of words; give another"
        )
    found = WordVectors(saved.model, saved.tokenizers)
    return NamedVectors(found.words, found.vectors)


def fit_width(request: Request, width: int) -> Request:
    """The request for a model whose vectors are as wide as those given, unless another width was asked for."""
    asked, fields = request.asked("model"), find_family(request.task, request.family).config.model_fields
    if request.preset or width_name(fields) in asked:
        return request
    chosen = {width_name(fields): width}
    if "heads" in fields:
        heads = max(heads for heads in range(1, max(1, width // HEAD) + 1) if width % heads == 0)
        chosen |= {"heads": heads} | ({"hidden": 4 * width} if "layers" in fields else {})  # a bag has no blocks
        chosen |= {"head_width": width // heads} if "head_width" in fields else {}
    return request.model_copy(update={"settings": {**request.settings, "model": {**chosen, **asked}}})


def refuse_other_width(config: Settings, vectors: NamedVectors, path: str) -> None:
    name = width_name(type(config).model_fields)
    wanted, given = getattr(config, name), vectors.vectors.shape[1]
    if wanted != given:
        raise UsageError(
            "E-USE-16",
            f"the vectors in {path} have {given} numbers and those of this model {wanted}; leave out model.{name} and "
            f"--preset, or give vectors of {wanted}",
        )


def width_name(fields: Any) -> str:
    return "embedding" if "embedding" in fields else "width"


@torch.no_grad()
def put_vectors(model: nn.Module, tokenizers: Tokenizers | None, vectors: NamedVectors, path: str) -> str:
    """Write them into the model's tables; how many there were, as a sentence."""
    tables = [(name, part.table.weight) for name, part in model.named_modules() if isinstance(part, TokenEmbedding)]
    if not tables or tokenizers is None:
        raise UsageError("E-USE-16", f"this family has no table of token vectors to begin with {path}; see --from")
    rows = {word: row for row, word in enumerate(vectors.words)}
    told = []
    for name, table in tables:
        side = tokenizers.source if name.endswith("source_embedding") else tokenizers.target
        found = found_in(rows, side)
        if found:
            given = torch.from_numpy(vectors.vectors[list(found.values())])
            table[list(found)] = given * (table.std() / given.std())
        of = f" of the {name.removesuffix('_embedding')}" if len(tables) > 1 else ""
        told.append((len(found), f"{len(found):,} of {len(side):,} tokens{of}"))
    if not any(count for count, _ in told):
        raise DataError(
            "E-WORD-06",
            f"none of the {len(tokenizers.target):,} {tokenizers.target.kind} of this model is a word with a vector in "
            f"{path}; try --set tokenizer.kind=words, or vectors of another language",
        )
    return f"{' and '.join(sentence for _, sentence in told)} begin with a vector of {path}"


def found_in(rows: dict[str, int], tokenizer: Tokenizer) -> dict[int, int]:
    """The row of each token that is a word, as it is or written small."""
    found = {i: rows.get(word, rows.get(word.lower())) for i, word in whole_words(tokenizer).items()}
    return {i: row for i, row in found.items() if row is not None}
