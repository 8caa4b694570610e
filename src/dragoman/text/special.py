"""The ids with a meaning of their own. They are saved with the tokenizer and never inferred.

With which token a decoder starts differs in the field: lecture 002 gives it a token of its own, lecture 003 starts
from <eos>, Marian and T5 from <pad>. Here `start` is a setting like the others.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from dragoman.config import Settings


class SpecialIds(Settings):
    pad: int = Field(0, ge=0, description="fills the rectangle; never looked at")
    start: int = Field(1, ge=0, description="what the decoder is given before the first token")
    end: int = Field(2, ge=0, description="ends every source and every target")
    also_end: tuple[Annotated[int, Field(ge=0)], ...] = Field((), description="end an output, too, and stand in it")
    unknown: int = Field(3, ge=0, description="stands for what the tokenizer has no token for")
    mask: int | None = Field(None, ge=0, description="stands for a token that is hidden, for a model that fills it in")
    spans: tuple[int, ...] = Field((), description="stand for spans that are hidden, the first one first")

    def never_written(self) -> list[int]:
        """Tokens that no output may hold: the decoder writes words, and `end`."""
        silent = {self.pad, self.start, self.unknown} | ({self.mask} if self.mask is not None else set())
        return sorted(silent - {*self.ends})

    @property
    def ends(self) -> tuple[int, ...]:
        """All at which an output is over; `end` comes first, and is the only one that is no part of it."""
        return self.end, *self.also_end

    def ended(self, tokens: Sequence[int]) -> list[int]:
        """An output with the token that ended it: `end`, unless another one stands there already."""
        return list(tokens) if tokens and tokens[-1] in self.also_end else [*tokens, self.end]

    def pieces(self) -> dict[int, str]:
        """How each is written where tokens are shown; where two share an id, the last name here counts."""
        named = {self.unknown: "<unk>", self.end: "</s>", self.start: "<s>", self.pad: "<pad>"}
        hidden = {} if self.mask is None else {self.mask: "<mask>"}
        return named | hidden | {span: f"<{number}>" for number, span in enumerate(self.spans)}
