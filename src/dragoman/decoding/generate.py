"""Go on with a text: a writer, its tokenizer and sampling, put together. A text's line ends are its `end` tokens."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dragoman.decoding.sample import SampleConfig, keep_likely
from dragoman.errors import DataError
from dragoman.runs.model import open_model
from dragoman.text.tokenizer import Tokenizers


class TextWriter:
    def __init__(self, model: nn.Module, tokenizers: Tokenizers) -> None:
        self.model: Any = model.eval()  # a module that is also `Writing`
        self.tokenizer = tokenizers.target

    def generate(self, prompt: str = "", *, tokens: int = 200, sampling: SampleConfig | None = None) -> str:
        return "".join(self.stream(prompt, tokens=tokens, sampling=sampling))

    @torch.inference_mode()
    def stream(self, prompt: str = "", *, tokens: int = 200, sampling: SampleConfig | None = None) -> Iterator[str]:
        """What follows the prompt, as it is written. A token's space may hang on what stands before it in the line; so
        each line is decoded as a whole, and what is new of it given out."""
        line = self.tokenizer.encode([prompt.rpartition("\n")[2]])[0]
        shown = self.tokenizer.decode(line)
        for token in self.draw(self.read(prompt), tokens, sampling or SampleConfig()):
            if token == self.tokenizer.special.end:
                yield "\n"
                line, shown = [], ""
                continue
            line.append(token)
            text = self.tokenizer.decode(line)
            yield text[len(shown) :]
            shown = text

    def read(self, prompt: str) -> list[int]:
        """Ids of the prompt; a text begins as a line does, after `end`."""
        special = self.tokenizer.special
        lines = self.tokenizer.encode(prompt.split("\n"))
        ids = list(chain.from_iterable((*line, special.end) for line in lines[:-1])) + lines[-1]
        if special.unknown in ids:
            strange = [part for part in dict.fromkeys(prompt) if special.unknown in self.tokenizer.encode([part])[0]]
            named = f"{' '.join(map(repr, strange))}, which" if strange else "what"
            raise DataError("E-TEXT-01", f"the prompt {prompt!r} holds {named} this model has never seen; leave it out")
        return [special.end, *ids]

    def draw(self, ids: list[int], tokens: int, config: SampleConfig) -> Iterator[int]:
        luck = torch.Generator().manual_seed(config.seed % (1 << 63))
        never = self.tokenizer.special.never_written()
        newest, state = torch.tensor([ids]), self.model.begin(1)
        for _ in range(tokens):
            logits, state = self.model.decode(newest, state)
            scores = logits[:, -1].clone()
            scores[:, never] = -torch.inf
            scores -= scores.amax(dim=-1, keepdim=True)  # the best stays, however low the temperature
            likely = keep_likely(scores / config.temperature, config).softmax(dim=-1)
            newest = torch.multinomial(likely, 1, generator=luck)
            yield int(newest)


def load_writer(path: str | Path) -> TextWriter:
    """The language model in a run's folder, or in a model's."""
    saved = open_model(Path(path))
    if saved.task != "write":
        raise DataError(
            "E-RUN-10",
            f"{path} holds a model that learned to {saved.task}, not to write text; give it sentence pairs in "
            "`score`, or sentences in `translate`",
        )
    return TextWriter(saved.model, saved.tokenizers)
