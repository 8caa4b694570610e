"""What all models that write have in common: from `write`, which gives states, follow logits, and so `forward`."""

from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman.models.state import Decoded, State
from dragoman.modules.embeddings import TokenScores


class WritingModel(nn.Module):
    scores: TokenScores  # the states of `write` to a score for every token

    def write(self, tokens: Int[Tensor, "B T"], state: State) -> tuple[Float[Tensor, "B T D"], Any]:
        """Continue the text by T tokens: their states before `scores`, and what to go on with."""
        raise NotImplementedError

    def decode(self, tokens: Int[Tensor, "B T"], state: State) -> Decoded:
        """The same with logits: all tokens of a text in training, one at a time in search."""
        states, state = self.write(tokens, state)
        return Decoded(self.scores(states), state)


class TranslatingModel(WritingModel):
    """One that reads a source first."""

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> State:
        """The state before the first token of the target."""
        raise NotImplementedError

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        return self.scores(self.states(source, source_mask, target))

    def states(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """The decoder's last states, before `scores`: training need not score the padded places."""
        return self.write(target, self.encode(source, source_mask))[0]


class TextModel(WritingModel):
    """One that begins with nothing."""

    carries: bool  # whether its state goes on from one window of a text into the next

    def begin(self, rows: int) -> State:
        """The state before the first token of so many texts."""
        raise NotImplementedError

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        return self.decode(tokens, self.begin(len(tokens))).logits
