"""Token ids to vectors, and states back to a score for every token."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """A table of V vectors, multiplied by √D as they are read (Vaswani et al. 2017, §3.4).

    The table starts with deviation 1/√D, so a scaled vector has parts of variance 1, the size of the
    positions that are added to it; unscaled, the same table can serve as the output layer. GPT and BERT
    do not scale: their vectors start small, and so do the positions they learn.
    """

    def __init__(self, vocabulary: int, width: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.scale = math.sqrt(width) if scaled else 1.0
        nn.init.normal_(self.table.weight, std=width**-0.5 if scaled else 0.02)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return self.table(ids) * self.scale if self.scale != 1.0 else self.table(ids)


class TokenScores(nn.Module):
    """logits = E x (+ b): each token's score is its vector's dot product with the state.

    Given the table of an embedding, input and output are tied: one table, read both ways (Press & Wolf 2017).
    """

    def __init__(
        self, vocabulary: int, width: int, tied_to: TokenEmbedding | None = None, *, bias: bool = False
    ) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocabulary)) if bias else None
        self.table = tied_to.table if tied_to else nn.Embedding(vocabulary, width)
        if tied_to is None:
            nn.init.normal_(self.table.weight, std=width**-0.5)

    def forward(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N V"]:
        return nn.functional.linear(states, self.table.weight, self.bias)
