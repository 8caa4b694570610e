"""Texts as vectors: the mean of a reader's states, of length 1, so that a dot product is a cosine."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.text.batches import like_lengths, make_reading
from dragoman.text.reading import as_strings, clean
from dragoman.text.tokenizer import Tokenizers

ROW_TOKENS = 8192  # tokens read at once


class Embedder:
    def __init__(self, model: nn.Module, tokenizers: Tokenizers) -> None:
        self.model: Any = model.eval()  # a module with a `reader`
        self.tokenizer = tokenizers.target

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """A row for each text. One that is longer than the model reads is read in parts, and their mean is taken."""
        room = self.model.config.longest - 2
        parts = [
            (number, ids[start : start + room])
            for number, ids in enumerate(self.tokenizer.encode([clean(text) for text in as_strings("texts", texts)]))
            for start in range(0, max(1, len(ids)), room)
        ]
        sums = torch.zeros(len(texts), self.model.config.width)
        counts = torch.zeros(len(texts))
        for batch in batches_of(parts):
            rows = torch.tensor([number for number, _ in batch])
            found, tokens = self.add_up([ids for _, ids in batch])
            sums.index_add_(0, rows, found)
            counts.index_add_(0, rows, tokens)
        return nn.functional.normalize(sums / counts[:, None], dim=-1).numpy()

    @torch.inference_mode()
    def add_up(self, parts: list[list[int]]) -> tuple[Float[Tensor, "N D"], Float[Tensor, " N"]]:
        reading = make_reading(parts, self.tokenizer.special)
        states = self.model.reader(reading.tokens, reading.real)
        return states.masked_fill(~reading.real[:, :, None], 0.0).sum(dim=1), reading.real.sum(dim=1).float()


def batches_of(parts: list[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Parts of texts, each with the number of its text, in batches that are read at once."""
    return like_lengths(parts, lambda part: len(part[1]) + 2, ROW_TOKENS)


def nearest(vectors: Float[np.ndarray, "N D"], count: int) -> list[list[tuple[int, float]]]:
    """For each row, the `count` other rows with the largest cosine, and it."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    best = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(vectors) - 1)]
    return [[(int(other), float(cosines[row, other])) for other in others] for row, others in enumerate(best)]
