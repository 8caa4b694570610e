"""Go on with a text: a writer, its tokenizer and sampling, put together.

A text's line ends are its `end` tokens; where the tokenizer writes line ends itself, as GPT-2's does, `end` ends the
text.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from dragoman.decoding.engine import Engine, make_engine
from dragoman.decoding.rules import against_repetition
from dragoman.decoding.sample import keep_likely
from dragoman.decoding.settings import SampleConfig
from dragoman.errors import DataError, UsageError
from dragoman.modules.activations import softmax
from dragoman.text.stream import encode_text
from dragoman.text.tokenizer import Tokenizers

HALF = "\ufffd"  # how half of a character is decoded, until its other bytes come


class TextWriter:
    """What `dragoman.load` gives for a language model."""

    def __init__(self, model: nn.Module, tokenizers: Tokenizers, sampling: SampleConfig | None = None) -> None:
        self.model: Any = model.eval()  # a module that is also `Writing`
        self.engine: Engine | None = None  # made when it is first asked for
        self.tokenizer = tokenizers.target
        self.sampling = sampling or SampleConfig()  # where a caller says nothing
        self.longest: int | None = getattr(self.model.config, "longest", None)  # tokens in its window, if it has one

    def generate(
        self, prompt: str = "", *, tokens: int | None = None, sampling: SampleConfig | None = None, stop: str = ""
    ) -> str:
        """What follows the prompt: up to so many tokens, or to `stop`, drawn as `sampling` says."""
        return "".join(self.stream(prompt, tokens=tokens, sampling=sampling, stop=stop))

    def stream(
        self, prompt: str = "", *, tokens: int | None = None, sampling: SampleConfig | None = None, stop: str = ""
    ) -> Iterator[str]:
        """What follows the prompt, as it is written, up to `stop` and without it."""
        if tokens is not None and tokens < 1:
            raise UsageError("E-USE-12", f"{tokens} tokens ask for nothing; give 1 or more")
        sampling = sampling or self.sampling
        parts = self.parts(prompt, tokens or sampling.tokens, sampling)
        return until(stop, parts) if stop else parts

    @torch.inference_mode()
    def parts(self, prompt: str, tokens: int, sampling: SampleConfig) -> Iterator[str]:
        """A token's text may hang on the line before it: a space, or half of a character; so each line is decoded as a
        whole, and what is new of it given out."""
        whole = self.tokenizer.writes_newlines  # then all of the text is one line
        line = self.tokenizer.encode([prompt if whole else prompt.rpartition("\n")[2]])[0]
        shown = self.tokenizer.decode(line)
        for token in self.draw(self.read(prompt), tokens, sampling):
            if token == self.tokenizer.special.end:
                if whole:
                    break
                yield self.tokenizer.decode(line)[len(shown) :] + "\n"
                line, shown = [], ""
                continue
            line.append(token)
            text = self.tokenizer.decode(line)
            if not text.endswith(HALF):
                yield text[len(shown) :]
                shown = text
            if self.ends_with(token):
                break
        yield self.tokenizer.decode(line)[len(shown) :]

    def ends_with(self, token: int) -> bool:
        """Whether a text is over with this token: with `end`, where that does not end lines, or with another end."""
        special = self.tokenizer.special
        return token in special.also_end or (self.tokenizer.writes_newlines and token == special.end)

    def read(self, prompt: str) -> list[int]:
        """Ids of the prompt; a text begins as a line does, after `end`. Where `end` ends whole texts, a prompt may be
        the middle of one."""
        special = self.tokenizer.special
        ids = encode_text(prompt, self.tokenizer)
        if self.tokenizer.writes_newlines:
            return ids or [special.start]
        if special.unknown in ids:
            strange = [part for part in dict.fromkeys(prompt) if special.unknown in self.tokenizer.encode([part])[0]]
            named = f"{' '.join(map(repr, strange))}, which" if strange else "what"
            raise DataError("E-TEXT-01", f"the prompt {prompt!r} holds {named} this model has never seen; leave it out")
        return [special.end, *ids]

    def complaint(self, prompt: str) -> str:
        """What is to be said of a prompt that is longer than the model's window; nothing of any other."""
        tokens = len(self.read(prompt))
        if not self.longest or tokens <= self.longest:
            return ""
        window = f"this model looks back over {self.longest:,}"
        return f"the prompt has {tokens:,} tokens and {window}; its last {self.remembered():,} are seen"

    def remembered(self) -> int:
        """Tokens that a model with a full window goes on from: half of it, so that there is room for others."""
        return max(1, (self.longest or 0) // 2)

    def writer(self) -> Any:
        """The engine, or the model itself where the engine cannot take it."""
        self.engine = self.engine or make_engine(self.model)
        return self.engine.with_threads(torch.get_num_threads()) if self.engine else self.model

    def draw(self, ids: list[int], tokens: int, config: SampleConfig) -> Iterator[int]:
        """Token after token. A model with a window that is full goes on from the second half of it."""
        luck = torch.Generator().manual_seed(config.seed % (1 << 63))
        never = self.tokenizer.special.never_written()
        writer = self.writer()
        text, newest, state, seen = list(ids), list(ids), writer.begin(1), 0
        for _ in range(tokens):
            if self.longest and seen + len(newest) > self.longest:
                newest, state, seen = text[-self.remembered() :], writer.begin(1), 0
            logits, state = writer.decode(torch.tensor([newest]), state)
            seen += len(newest)
            scores = against_repetition(logits[:, -1], torch.tensor([text]), config.repetition).clone()
            scores[:, never] = -torch.inf
            scores -= scores.amax(dim=-1, keepdim=True)  # the best stays, however low the temperature
            likely = softmax(keep_likely(scores / config.temperature, config))
            newest = [int(torch.multinomial(likely, 1, generator=luck))]
            text += newest
            yield newest[0]


def until(stop: str, parts: Iterator[str]) -> Iterator[str]:
    """The text up to `stop`; what could be the beginning of it is held back until it is clear."""
    held = ""
    for part in parts:
        held += part
        if stop in held:
            yield held.partition(stop)[0]
            return
        safe = len(held) - next(n for n in range(len(stop) - 1, -1, -1) if held.endswith(stop[:n]))
        yield held[:safe]
        held = held[safe:]
    yield held
