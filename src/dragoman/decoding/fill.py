"""Fill in what is hidden: for each [MASK] in a text, the tokens that a model thinks likeliest there."""

from typing import Any, NamedTuple

import torch
from torch import nn

from dragoman.errors import DataError, UsageError
from dragoman.modules.activations import softmax
from dragoman.text.batches import make_reading
from dragoman.text.reading import clean
from dragoman.text.tokenizer import Tokenizers

MASK = "[MASK]"


class Candidate(NamedTuple):
    token: str  # as people read it
    probability: float
    text: str  # the whole text with it; other places filled with their likeliest


class Filler:
    def __init__(self, model: nn.Module, tokenizers: Tokenizers) -> None:
        self.model: Any = model.eval()  # a Bert
        self.tokenizer = tokenizers.target

    @torch.inference_mode()
    def fill(self, text: str, *, top: int = 5) -> list[list[Candidate]]:
        """For each place, its candidates, the likeliest first."""
        ids = self.read(text)
        reading = make_reading([ids], self.tokenizer.special)
        asked = reading.tokens == self.tokenizer.special.mask
        logits = self.model.scores(self.model.states(reading.tokens, reading.real, asked))
        logits[:, self.tokenizer.special.never_written()] = -torch.inf
        found = softmax(logits).topk(min(top, logits.shape[-1]))
        best = found.indices[:, 0].tolist()
        return [
            [
                Candidate(self.tokenizer.decode([token]), share, self.text(ids, [*best[:i], token, *best[i + 1 :]]))
                for token, share in zip(tokens, shares, strict=True)
            ]
            for i, (tokens, shares) in enumerate(zip(found.indices.tolist(), found.values.tolist(), strict=True))
        ]

    def read(self, text: str) -> list[int]:
        mask, longest = self.tokenizer.special.mask, self.model.config.longest
        assert mask is not None
        if MASK not in text:
            raise UsageError("E-USE-14", f"there is no {MASK} in {text!r}; write it where a word is to be filled in")
        first, *rest = self.tokenizer.encode([clean(part) for part in text.split(MASK)])
        ids = first + [token for part in rest for token in (mask, *part)]
        if len(ids) + 2 > longest:
            raise DataError(
                "E-LONG-01",
                f"the text has {len(ids):,} tokens and this model reads {longest - 2:,} at most; shorten it",
            )
        return ids

    def text(self, ids: list[int], chosen: list[int]) -> str:
        given = iter(chosen)
        return self.tokenizer.decode([next(given) if i == self.tokenizer.special.mask else i for i in ids])
