"""How surprised a language model is by a text: perplexity = exp(mean of −log p(token | all before it))."""

import math
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from dragoman.errors import DataError
from dragoman.text.index import Ids
from dragoman.text.stream import windows_over, write_stream
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives import WritingLoss, surprise

ROWS, LENGTH = 16, 256  # places of a text that are read side by side in validation, and tokens at a time
AT_ONCE = 4096  # tokens read at once by a model that looks back over a window


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
        stream = write_stream(Path(scratch), lines, tokenizer, before=[tokenizer.special.end])  # as a line begins
        if len(stream) < 2:
            raise DataError("E-DATA-10", "there is no text to score; give a file that is not empty")
        nats, tokens = text_nats(model, stream.ids, rows=1)
        return Perplexity(nats / tokens, tokens, stream.about["characters"], stream.about["unknown"])


@torch.inference_mode()
def text_nats(model: nn.Module, ids: Ids, *, rows: int = ROWS, label_smoothing: float = 0.0) -> tuple[float, int]:
    """The sum of −log p over a text, and over how many tokens.

    A recurrent model reads it through, in several rows if that may be faster: then each begins without a past, and a
    few tokens that do not fill a row are left out. A model with a window sees each token after half a window at least.
    """
    writer: Any = model.eval()
    if not writer.carries:
        return windowed_nats(writer, ids, label_smoothing)
    objective, nats, tokens = WritingLoss(label_smoothing), 0.0, 0
    for window in windows_over(ids, rows, LENGTH):
        loss = objective(writer, window)
        nats, tokens = nats + loss.nats.item(), tokens + loss.tokens
    return nats, tokens


def windowed_nats(writer: Any, ids: Ids, label_smoothing: float) -> tuple[float, int]:
    """Windows that overlap by half: all of the first counts, and of each later one what no other has counted."""
    last = len(ids) - 1  # tokens to predict
    longest = min(writer.config.longest, last)
    step = max(1, longest // 2)
    ends = list(range(longest + step, last + 1, step))
    left_over = last - (ends[-1] if ends else longest)
    at_once = max(1, AT_ONCE // longest)
    groups = [([longest], longest), *((ends[i : i + at_once], step) for i in range(0, len(ends), at_once))]
    groups += [([last], left_over)] if left_over else []
    nats, tokens = 0.0, 0
    for group, counted in groups:
        window = torch.from_numpy(np.stack([ids[end - longest : end + 1] for end in group]).astype(np.int64))
        states, _ = writer.write(window[:, :-1], writer.begin(len(group)))
        wanted = window[:, -counted:].flatten()
        states = states[:, -counted:].flatten(0, 1)
        nats += surprise(states, writer.scores, wanted, label_smoothing).item()
        tokens += len(wanted)
    return nats, tokens
