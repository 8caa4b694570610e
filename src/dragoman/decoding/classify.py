"""Texts in, labels out: a classifier and its tokenizer, put together."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.decoding.embed import batches_of
from dragoman.modules.activations import softmax
from dragoman.text.batches import make_reading
from dragoman.text.labels import clean_text, encode_texts
from dragoman.text.reading import as_strings
from dragoman.text.tokenizer import Tokenizers


class Classified(NamedTuple):
    label: str
    probability: float
    probabilities: dict[str, float]  # of every class, in the model's order


class Classifier:
    """What `dragoman.load` gives for a model that labels texts."""

    def __init__(self, model: nn.Module, tokenizers: Tokenizers) -> None:
        self.model: Any = model.eval()  # tokens and where they are real -> a score for every class
        self.tokenizer = tokenizers.target

    @property
    def classes(self) -> tuple[str, ...]:
        return self.model.config.classes

    def classify(
        self, texts: Sequence[str], *, first_line: int = 1, notice: Callable[[str], None] | None = None
    ) -> list[Classified]:
        """The likeliest label of each text; a tab in it divides two that are judged together.

        One that is longer than the model reads is read in parts, which is said; each part counts by its tokens.
        """
        ids = encode_texts([clean_text(text) for text in as_strings("texts", texts)], self.tokenizer)
        longest = getattr(self.model.config, "longest", None)
        room = longest - 2 if longest else max([1, *map(len, ids)])
        for line, tokens in enumerate(ids, start=first_line):
            if notice and len(tokens) > room:
                parts = -(-len(tokens) // room)
                notice(f"line {line:,} has {len(tokens):,} tokens and this model reads {room:,}: read in {parts} parts")
        return [self.name(row) for row in self.probabilities(ids, room).tolist()]

    def probabilities(self, texts: list[list[int]], room: int) -> Float[Tensor, "N C"]:
        parts = [
            (number, ids[start : start + room])
            for number, ids in enumerate(texts)
            for start in range(0, max(1, len(ids)), room)
        ]
        sums, counts = torch.zeros(len(texts), len(self.classes)), torch.zeros(len(texts), 1)
        for batch in batches_of(parts):
            rows = torch.tensor([number for number, _ in batch])
            weights = torch.tensor([[len(ids) or 1] for _, ids in batch], dtype=torch.float32)
            sums.index_add_(0, rows, weights * self.read([ids for _, ids in batch]))
            counts.index_add_(0, rows, weights)
        return sums / counts

    @torch.inference_mode()
    def read(self, parts: list[list[int]]) -> Float[Tensor, "N C"]:
        reading = make_reading(parts, self.tokenizer.special)
        return softmax(self.model(reading.tokens, reading.real))

    def name(self, probabilities: list[float]) -> Classified:
        best = max(range(len(probabilities)), key=probabilities.__getitem__)
        named = dict(zip(self.classes, probabilities, strict=True))
        return Classified(self.classes[best], probabilities[best], named)
