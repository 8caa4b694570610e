"""How surprised a language model is by a text: perplexity = exp(mean of −log p(token | all before it))."""

import math
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import nn

from dragoman.errors import DataError
from dragoman.text.index import Ids
from dragoman.text.stream import windows_over, write_stream
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives import WritingLoss

ROWS, LENGTH = 16, 256  # places of a text that are read side by side in validation, and tokens at a time


class Perplexity(NamedTuple):
    nats_per_token: float
    tokens: int
    characters: int
    unknown: int  # tokens that the tokenizer does not know; they are counted like others

    @property
    def per_token(self) -> float:
        return math.exp(self.nats_per_token)

    @property
    def bits_per_character(self) -> float:
        """What can be compared between tokenizers."""
        return self.nats_per_token * self.tokens / self.characters / math.log(2)


def perplexity(model: nn.Module, tokenizer: Tokenizer, lines: Iterable[str]) -> Perplexity:
    """Over all of a text's tokens, its line ends included, each after all that came before it."""
    with TemporaryDirectory() as scratch:
        begun = chain([""], lines)  # a text begins as a line does, after an `end`
        stream = write_stream(Path(scratch), begun, tokenizer)
        if len(stream) < 2:
            raise DataError("E-DATA-10", "there is no text to score; give a file that is not empty")
        nats, tokens = text_nats(model, stream.ids, rows=1)
        return Perplexity(nats / tokens, tokens, stream.about["characters"] - 1, stream.about["unknown"])


@torch.inference_mode()
def text_nats(model: nn.Module, ids: Ids, *, rows: int = ROWS, label_smoothing: float = 0.0) -> tuple[float, int]:
    """The sum of −log p over a text, and over how many tokens.

    Several rows are faster, but each begins without a past, and a few tokens that do not fill a row are left out.
    """
    objective, nats, tokens = WritingLoss(label_smoothing), 0.0, 0
    writer: Any = model.eval()
    for window in windows_over(ids, rows, LENGTH):
        loss = objective(writer, window)
        nats, tokens = nats + loss.nats.item(), tokens + loss.tokens
    return nats, tokens
