"""A vector for each word, learned from the company it keeps: word2vec (Mikolov et al. 2013) and GloVe (Pennington,
Socher and Manning 2014).

    skip-gram   a word foretells each of its neighbours            log σ(x·y) + Σ log σ(−x·n)      n drawn at random
    cbow        the mean x̄ of the neighbours foretells the word    log σ(x̄·y) + Σ log σ(−x̄·n)
    glove       two words foretell how often they are neighbours   x·y + b + c ≈ log count

Each word has two vectors: x for the word itself, y for the word as a neighbour of others. How they are learned is in
training/word2vec.py and training/glove.py.
"""

from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from dragoman.config import Settings


class Word2VecConfig(Settings):
    vocabulary: int = Field(gt=0, description="words it knows")
    width: int = Field(100, gt=0, description="numbers in a word's vector")
    kind: Literal["skip-gram", "cbow"] = Field("skip-gram", description="a word foretells its neighbours, or they it")
    reach: int = Field(5, gt=0, lt=32, description="neighbours on each side, at most: for each word fewer may be drawn")
    negatives: int = Field(5, gt=0, description="random words that each neighbour is told apart from")
    sample: float = Field(1e-3, ge=0, description="words that are a larger share of the text are thinned out; 0: none")

    def shape(self) -> str:
        return f"{self.kind}, vectors of {self.width}, reach {self.reach}, {self.negatives} negatives"


class GloveConfig(Settings):
    vocabulary: int = Field(gt=0, description="words it knows")
    width: int = Field(100, gt=0, description="numbers in a word's vector")
    reach: int = Field(10, gt=0, description="neighbours on each side; one at distance d counts 1/d")
    most: float = Field(100.0, gt=0, description="counts from here on weigh alike, x_max")
    power: float = Field(0.75, gt=0, description="how the weight grows below that, α")

    def shape(self) -> str:
        return f"vectors of {self.width}, reach {self.reach}"


PRESETS: dict[str, dict[str, Any]] = {"tiny": {"width": 50}, "small": {"width": 100}, "base": {"width": 300}}


class Word2Vec(nn.Module):
    """The words' vectors start as small random ones and the neighbours' at 0, as in word2vec.c."""

    def __init__(self, config: Word2VecConfig) -> None:
        super().__init__()
        self.config = c = config
        self.words, self.neighbours = nn.Embedding(c.vocabulary, c.width), nn.Embedding(c.vocabulary, c.width)
        nn.init.uniform_(self.words.weight, -0.5 / c.width, 0.5 / c.width)
        nn.init.zeros_(self.neighbours.weight)

    def vectors(self) -> Float[Tensor, "V D"]:
        """What is kept of each word."""
        return self.words.weight.detach()


class Glove(nn.Module):
    def __init__(self, config: GloveConfig) -> None:
        super().__init__()
        self.config = c = config
        self.words, self.neighbours = nn.Embedding(c.vocabulary, c.width), nn.Embedding(c.vocabulary, c.width)
        self.word_bias, self.neighbour_bias = (nn.Parameter(torch.zeros(c.vocabulary)) for _ in range(2))
        for table in (self.words, self.neighbours):
            nn.init.uniform_(table.weight, -0.5 / c.width, 0.5 / c.width)

    def vectors(self) -> Float[Tensor, "V D"]:
        """The sum of both: counts are the same both ways, so they differ only in how they began."""
        return (self.words.weight + self.neighbours.weight).detach()
