"""How surprised a language model is by a text: perplexity = exp(mean of −log p(token | all before it))."""

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from dragoman.errors import DataError
from dragoman.text.index import Ids
from dragoman.text.stream import encode_lines, windows_over
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives import WritingLoss

ROWS, LENGTH = 16, 256  # places of a text that are read side by side, and tokens at a time


class Perplexity(NamedTuple):
    nats_per_token: float
    tokens: int
    characters: int

    @property
    def per_token(self) -> float:
        return math.exp(self.nats_per_token)

    @property
    def bits_per_character(self) -> float:
        """What can be compared between tokenizers."""
        return self.nats_per_token * self.tokens / self.characters / math.log(2)


def perplexity(model: nn.Module, tokenizer: Tokenizer, lines: Iterable[str]) -> Perplexity:
    """Over all of a text's tokens, its line ends included."""
    encoded = list(encode_lines(lines, tokenizer))
    ids = np.array([tokenizer.special.end, *chain.from_iterable(ids for ids, _ in encoded)])
    if len(ids) < 2:
        raise DataError("E-DATA-10", "there is no text to score; give a file that is not empty")
    nats, tokens = text_nats(model, ids)
    return Perplexity(nats / tokens, len(ids) - 1, sum(characters for _, characters in encoded))


@torch.inference_mode()
def text_nats(model: nn.Module, ids: Ids, label_smoothing: float = 0.0) -> tuple[float, int]:
    """The sum of −log p over a text, and over how many tokens."""
    objective, nats, tokens = WritingLoss(label_smoothing), 0.0, 0
    writer: Any = model.eval()
    for window in windows_over(ids, ROWS, LENGTH):
        loss = objective(writer, window)
        nats, tokens = nats + loss.nats.item(), tokens + loss.tokens
    return nats, tokens
