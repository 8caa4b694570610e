"""The bag of vectors: a text's class from its tokens' vectors alone, whatever their order.

    token ids ─ embedding ─ pooled: their mean, or what one learned query looks at ─ (W, tanh) ─ scores of the classes

What the order of words tells is lost on purpose: this is what every other classifier has to beat. With `pairs` a token
brings a second vector, added to its own, for itself after the token before it: `How many` and `not good` then say more
than their words, and what is further apart is still without order. There are too many pairs for a vector each; a hash
gives each one of P, which several share (Joulin et al. 2017):

    h<t> = e(x<t>) + p(hash(x<t-1>, x<t>) mod P)
"""

from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.modules.activations import activation
from dragoman.modules.dropout import Dropout, WordDropout
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.modules.pooling import make_pool


class BagConfig(Settings):
    vocabulary: int = Field(gt=0, description="tokens it knows")
    classes: tuple[str, ...] = Field(min_length=2, description="names of the labels, in the order of their scores")
    width: int = Field(128, gt=0, description="numbers in a token's vector")
    pooling: Literal["mean", "attention"] = Field("mean", description="how many vectors become one")
    heads: int = Field(1, gt=0, description="parts of the query that look each for itself; must divide the width")
    pairs: int = Field(0, ge=0, description="vectors that all pairs of neighbouring tokens share; 0: none")
    pair_dropout: float = Field(0.5, ge=0, lt=1, description="share of the pairs' vectors that are zeroed in training")
    hidden: int = Field(0, ge=0, description="width of a layer between the pooled vector and the classes; 0: none")
    dropout: float = Field(
        0.3, ge=0, lt=1, description="share of the numbers in vectors zeroed in training, before and after pooling"
    )
    word_dropout: float = Field(0.1, ge=0, lt=1, description="share of tokens whose whole vector is zeroed in training")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "BagConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be split into {self.heads} equal heads")
        return self

    def products_per_token(self) -> int:
        """Multiplications for one token, forwards: its score, and its part of the weighted mean."""
        return 2 * self.width

    def shape(self) -> str:
        layer = f", a layer of {self.hidden}" if self.hidden else ""
        heads = f" by {self.heads} heads" if self.pooling == "attention" and self.heads > 1 else ""
        pairs = f" for tokens and {self.pairs:,} for pairs of them" if self.pairs else ""
        return f"vectors of {self.width}{pairs}, {self.pooling} pooling{heads}{layer}, {len(self.classes)} classes"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 64, "heads": 8},
    "small": {"width": 128, "heads": 8},
    "base": {"width": 256, "heads": 8, "hidden": 256},
}


FACTORS = 2_654_435_761, 2_246_822_519  # large and odd: frequent tokens have small ids, and those must spread too


class PairEmbedding(nn.Module):
    """A vector for each token and the one before it; none for the first."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width)
        nn.init.zeros_(self.table.weight)  # a pair that was never met says nothing

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        mixed = FACTORS[0] * tokens[:, :-1] + FACTORS[1] * tokens[:, 1:]
        found = self.table((mixed ^ mixed >> 17) % self.table.num_embeddings)
        return torch.nn.functional.pad(found, (0, 0, 1, 0))


class Bag(nn.Module):
    def __init__(self, config: BagConfig) -> None:
        super().__init__()
        self.config = c = config
        self.embedding = TokenEmbedding(c.vocabulary, c.width, scaled=False)
        self.pairs = PairEmbedding(c.pairs, c.width) if c.pairs else None
        self.pool = make_pool(c.pooling, c.width, c.heads)
        self.word_dropout, self.pair_dropout = WordDropout(c.word_dropout), WordDropout(c.pair_dropout)
        self.dropout = Dropout(c.dropout)
        layer = (
            nn.Sequential(nn.Linear(c.width, c.hidden), activation("tanh"), self.dropout) if c.hidden else nn.Identity()
        )
        self.hidden, self.to_classes = layer, nn.Linear(c.hidden or c.width, len(c.classes))

    def forward(self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """A score for every class. A place where `real` is False is not looked at."""
        states = self.embedding(tokens)
        if self.pairs is not None:
            states = states + self.pair_dropout(self.pairs(tokens))
        pooled = self.pool(self.word_dropout(self.dropout(states)), real)
        return self.to_classes(self.hidden(self.dropout(pooled)))
