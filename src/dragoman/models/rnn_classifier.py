"""The recurrent classifier: reads a text forwards and backwards, and tells its class from the states.

A<t> = [a→<t>; a←<t>]
last        c = [a→<T>; a←<1>]         all that either way remembers at its end
mean        c = 1/T Σ A<t>             each word within its sentence, all alike
attention   c = Σ α<t> A<t>            as one learned query weighs them
"""

from typing import Any, Literal

from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.modules.dropout import Dropout, WordDropout
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.modules.pooling import make_pool
from dragoman.modules.recurrent import GATES, Cell, Reader


class RnnClassifierConfig(Settings):
    vocabulary: int = Field(gt=0, description="tokens it knows")
    classes: tuple[str, ...] = Field(min_length=2, description="names of the labels, in the order of their scores")
    cell: Cell = Field("lstm", description="rnn (plain), gru or lstm")
    width: int = Field(128, gt=0, description="numbers in a state, half of them for each way")
    embedding: int = Field(128, gt=0, description="numbers in a token's vector")
    layers: int = Field(1, gt=0, description="recurrent layers, each reading the one below")
    pooling: Literal["last", "mean", "attention"] = Field("mean", description="how many states become one")
    dropout: float = Field(0.5, ge=0, lt=1, description="share of the numbers in vectors and states zeroed in training")
    word_dropout: float = Field(0.3, ge=0, lt=1, description="share of tokens whose whole vector is zeroed in training")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "RnnClassifierConfig":
        if self.width % 2:
            raise ValueError(f"width {self.width} is odd and each of the two ways needs half of it")
        return self

    def products_per_token(self) -> int:
        """Multiplications for one token, forwards."""
        w, gates = self.width, GATES[self.cell]
        return gates * w * (self.embedding + w // 2) + (self.layers - 1) * gates * w * (w + w // 2)

    def shape(self) -> str:
        layers = f"{self.layers} layer{'s' if self.layers > 1 else ''}"
        return (
            f"two-way {self.cell}, {layers}, width {self.width}, vectors of {self.embedding}, "
            f"{self.pooling} pooling, {len(self.classes)} classes"
        )


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 64, "embedding": 64},
    "small": {"width": 128, "embedding": 128},
    "base": {"width": 512, "embedding": 256},
}


class RnnClassifier(nn.Module):
    def __init__(self, config: RnnClassifierConfig) -> None:
        super().__init__()
        self.config = c = config
        self.embedding = TokenEmbedding(c.vocabulary, c.embedding, scaled=False)
        self.encoder = Reader(c.cell, c.embedding, c.width, c.layers, c.dropout, two_way=True)
        self.pool = None if c.pooling == "last" else make_pool(c.pooling, c.width)
        self.to_classes = nn.Linear(c.width, len(c.classes))
        self.word_dropout, self.dropout = WordDropout(c.word_dropout), Dropout(c.dropout)

    def forward(self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """A score for every class. A place where `real` is False is not looked at."""
        x = self.word_dropout(self.dropout(self.embedding(tokens))).masked_fill(~real[:, :, None], 0.0)
        states, lasts = self.encoder(x, real)
        pooled = lasts[-1] if self.pool is None else self.pool(states, real)
        return self.to_classes(self.dropout(pooled))
