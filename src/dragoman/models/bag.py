"""The bag of vectors: a text's class from its tokens' vectors alone, whatever their order.

    token ids ─ embedding ─ pooled: their mean, or what one learned query looks at ─ (W, tanh) ─ scores of the classes

What the order of words tells is lost on purpose: this is what every other classifier has to beat.
"""

from typing import Any, Literal

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
        return f"vectors of {self.width}, {self.pooling} pooling{heads}{layer}, {len(self.classes)} classes"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 64, "heads": 8},
    "small": {"width": 128, "heads": 8},
    "base": {"width": 256, "heads": 8, "hidden": 256},
}


class Bag(nn.Module):
    def __init__(self, config: BagConfig) -> None:
        super().__init__()
        self.config = c = config
        self.embedding = TokenEmbedding(c.vocabulary, c.width, scaled=False)
        self.pool = make_pool(c.pooling, c.width, c.heads)
        self.word_dropout, self.dropout = WordDropout(c.word_dropout), Dropout(c.dropout)
        layer = (
            nn.Sequential(nn.Linear(c.width, c.hidden), activation("tanh"), self.dropout) if c.hidden else nn.Identity()
        )
        self.hidden, self.to_classes = layer, nn.Linear(c.hidden or c.width, len(c.classes))

    def forward(self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """A score for every class. A place where `real` is False is not looked at."""
        pooled = self.pool(self.word_dropout(self.dropout(self.embedding(tokens))), real)
        return self.to_classes(self.hidden(self.dropout(pooled)))
