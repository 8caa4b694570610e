"""BERT that tells a class: the reader, and on it what Devlin et al. (2019, §4.1) fine-tune.

    states ─ that of [CLS], or the mean of all ─ tanh(W h + b) ─ dropout ─ scores of the classes

Two texts are read as one, [CLS] a [SEP] b [SEP]; what stands behind the first [SEP] is the second segment.
"""

from typing import Literal

from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from dragoman.models.bert import PRESETS as PRESETS
from dragoman.models.bert import BertConfig, BertReader
from dragoman.modules.activations import tanh
from dragoman.modules.dropout import Dropout
from dragoman.modules.pooling import mean_pool


class BertClassifierConfig(BertConfig):
    classes: tuple[str, ...] = Field(min_length=2, description="names of the labels, in the order of their scores")
    pooling: Literal["first", "mean"] = Field("first", description="what tells the class: the state of [CLS], or all")
    separator: int = Field(2, ge=0, description="the token [SEP]: what stands behind it is of the second segment")

    def products_per_token(self) -> int:
        """Multiplications for one token, forwards; what is done once a text is not worth counting."""
        return self.layers * (4 * self.width**2 + 2 * self.width * self.hidden)

    def shape(self) -> str:
        return f"{super().shape()}, {self.pooling} pooling, {len(self.classes)} classes"


class BertClassifier(nn.Module):
    def __init__(self, config: BertClassifierConfig) -> None:
        super().__init__()
        self.config = c = config
        self.reader = BertReader(c)
        self.pooler, self.to_classes = nn.Linear(c.width, c.width), nn.Linear(c.width, len(c.classes))
        for linear in (self.pooler, self.to_classes):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)
        self.dropout = Dropout(c.dropout)

    def forward(
        self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B C"]:
        """A score for every class. Without `segments`, the tokens themselves say where the second one begins."""
        states = self.reader(tokens, real, self.segments(tokens) if segments is None else segments)
        pooled = states[:, 0] if self.config.pooling == "first" else mean_pool(states, real)
        return self.to_classes(self.dropout(tanh(self.pooler(pooled))))

    def segments(self, tokens: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        ends = (tokens == self.config.separator).long()
        return (ends.cumsum(dim=1) - ends).clamp(max=self.config.segments - 1)
