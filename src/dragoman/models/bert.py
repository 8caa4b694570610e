"""The encoder-only Transformer: BERT (Devlin et al. 2019), which reads a text in both directions at once.

    token ids ─ embedding + learned positions + segments ─ norm ─ blocks without a mask for the future ─ states

What is put on top decides what it is for: scores over the vocabulary fill masked places; the state of the first token,
[CLS], tells a class; the mean of all states is a vector for the sentence.
"""

from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.modules.activations import activation
from dragoman.modules.attention import multi_head_attention
from dragoman.modules.block import Block, Stack, feedforward
from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.masks import hide_padding
from dragoman.modules.positions import LearnedPositions


class BertConfig(Settings):
    vocabulary: int = Field(gt=0, description="tokens it knows")
    width: int = Field(512, gt=0, description="numbers in a token's vector, d_model")
    heads: int = Field(8, gt=0, description="attention heads; must divide the width")
    layers: int = Field(6, gt=0, description="blocks")
    hidden: int = Field(2048, gt=0, description="width inside the feed-forward network, d_ff")
    longest: int = Field(256, gt=2, description="tokens it can read, [CLS] and [SEP] included")
    segments: int = Field(2, gt=0, description="kinds of sentences told apart: the first and the second of a pair")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of each sublayer's output that is zeroed in training")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="share of attention weights zeroed in training")
    activation: Literal["relu", "gelu", "gelu-tanh"] = Field("gelu", description="of the feed-forward network")
    norm_first: bool = Field(False, description="normalise before each sublayer instead of after: learns more surely")
    epsilon: float = Field(1e-12, gt=0, description="added to the variance in norms")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "BertConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be split into {self.heads} equal heads")
        return self

    def products_per_token(self) -> int:
        """Multiplications for one token, forwards; a masked one, every seventh, is scored over the vocabulary too."""
        blocks = self.layers * (4 * self.width**2 + 2 * self.width * self.hidden)
        return blocks + (self.width**2 + self.vocabulary * self.width) // 7

    def shape(self) -> str:
        return f"{self.layers} blocks, width {self.width}, {self.heads} heads, feed-forward {self.hidden}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "heads": 4, "layers": 3, "hidden": 512, "longest": 128, "norm_first": True},
    "small": {"width": 256, "heads": 4, "layers": 4, "hidden": 1024, "norm_first": True},
    "base": {"width": 512, "heads": 8, "layers": 6, "hidden": 2048, "norm_first": True},
}


class BertReader(nn.Module):
    """A text as states, one a token, each of which has seen all others: what every use of BERT begins with."""

    def __init__(self, c: BertConfig) -> None:
        super().__init__()
        norm = partial(nn.LayerNorm, c.width, eps=c.epsilon)
        self.embedding = TokenEmbedding(c.vocabulary, c.width, scaled=False)
        self.positions = LearnedPositions(c.longest, c.width)
        self.segments = nn.Embedding(c.segments, c.width)
        nn.init.normal_(self.segments.weight, std=0.02)
        self.norm, self.dropout = norm(), Dropout(c.dropout)
        blocks = (
            Block(
                self_attention=multi_head_attention(c.width, c.heads, dropout=c.attention_dropout),
                feedforward=feedforward(c.width, c.hidden, activation(c.activation)),
                norm=norm,
                norm_first=c.norm_first,
                dropout=c.dropout,
            )
            for _ in range(c.layers)
        )
        self.encoder = Stack(blocks, final_norm=norm() if c.norm_first else None)

    def forward(
        self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """A place where `real` is False is seen by no other."""
        kinds = torch.zeros_like(tokens) if segments is None else segments
        x = self.embedding(tokens) + self.positions(0, tokens.shape[1]) + self.segments(kinds)
        x = self.dropout(self.norm(x)).masked_fill(~real[:, :, None], 0.0)
        return self.encoder(x, hide_padding(real))[0]


class Bert(nn.Module):
    """The reader, and the head that tells what stands in masked places."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = c = config
        self.reader = BertReader(c)
        norm = nn.LayerNorm(c.width, eps=c.epsilon)
        self.transform = nn.Sequential(nn.Linear(c.width, c.width), activation(c.activation), norm)
        self.scores = TokenScores(c.vocabulary, c.width, self.reader.embedding, bias=True)

    def forward(
        self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """A score for every token at every place."""
        return self.scores(self.transform(self.reader(tokens, real, segments)))

    def states(
        self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"], asked: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "N D"]:
        """What `scores` is to be given for the places that are asked for."""
        return self.transform(self.reader(tokens, real)[asked])


class BertVectorsConfig(BertConfig):
    """A reader alone, as models for sentence vectors are handed on."""


class BertVectors(nn.Module):
    """The reader without a head: it cannot fill in, but the mean of its states is a vector for a text."""

    def __init__(self, config: BertVectorsConfig) -> None:
        super().__init__()
        self.config = config
        self.reader = BertReader(config)

    def forward(
        self, tokens: Int[Tensor, "B T"], real: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        return self.reader(tokens, real, segments)
