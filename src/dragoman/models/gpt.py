"""The decoder-only Transformer: GPT, what comes next from all that may be seen of what came before.

    token ids ─ embedding + learned positions ─ blocks that never look ahead ─ norm ─ scores over the vocabulary

It is the encoder of 2017 with the mask of its decoder, or its decoder without a source: one kind of unit. The text so
far is kept as keys and values, so each new token costs one pass of one token. Its past ends at `longest` tokens.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.models.writer import TextModel
from dragoman.modules.activations import activation
from dragoman.modules.attention import multi_head_attention
from dragoman.modules.block import Block, Past, Stack, feedforward, length_of
from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.masks import hide_future
from dragoman.modules.positions import LearnedPositions


class GptConfig(Settings):
    vocabulary: int = Field(gt=0, description="tokens it knows")
    width: int = Field(512, gt=0, description="numbers in a token's vector, d_model")
    heads: int = Field(8, gt=0, description="attention heads; must divide the width")
    layers: int = Field(6, gt=0, description="blocks")
    hidden: int = Field(2048, gt=0, description="width inside the feed-forward network, d_ff")
    longest: int = Field(256, gt=0, description="tokens it can look back on, the newest included")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of each sublayer's output that is zeroed in training")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="share of attention weights zeroed in training")
    activation: Literal["relu", "gelu", "gelu-tanh"] = Field("gelu", description="of the feed-forward network")
    biases: bool = Field(True, description="whether linear layers and norms have them")
    epsilon: float = Field(1e-5, gt=0, description="added to the variance in norms")
    tied: bool = Field(True, description="one table for the vectors that are read and those that score")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "GptConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be split into {self.heads} equal heads")
        return self

    def products_per_token(self) -> int:
        """Multiplications for one token, forwards; those of attention itself are few beside them."""
        return self.layers * (4 * self.width**2 + 2 * self.width * self.hidden) + self.vocabulary * self.width

    def shape(self) -> str:
        return (
            f"{self.layers} blocks, width {self.width}, {self.heads} heads, feed-forward {self.hidden}, "
            f"looking back {self.longest} tokens"
        )


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "heads": 4, "layers": 4, "hidden": 512, "longest": 64},
    "small": {"width": 256, "heads": 4, "layers": 6, "hidden": 1024, "longest": 256},
    "base": {"width": 512, "heads": 8, "layers": 6, "hidden": 2048, "longest": 256},
}


class GptState(NamedTuple):
    past: Past = ()  # what each block has written; grows with the text


class Gpt(TextModel):
    carries = False  # its state is the past itself; a new window begins anew

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        self.config = c = config
        self.embedding = TokenEmbedding(c.vocabulary, c.width, scaled=False)
        self.scores = TokenScores(c.vocabulary, c.width, self.embedding if c.tied else None)
        self.positions = LearnedPositions(c.longest, c.width)
        self.dropout = Dropout(c.dropout)
        norm = partial(nn.LayerNorm, c.width, eps=c.epsilon, bias=c.biases)
        self.blocks = Stack(
            (
                Block(
                    self_attention=multi_head_attention(c.width, c.heads, bias=c.biases, dropout=c.attention_dropout),
                    feedforward=feedforward(c.width, c.hidden, activation(c.activation), bias=c.biases),
                    norm=norm,
                    norm_first=True,
                    dropout=c.dropout,
                )
                for _ in range(c.layers)
            ),
            final_norm=norm(),
        )

    def begin(self, rows: int) -> GptState:  # noqa: ARG002  an empty past has no rows yet
        return GptState()

    def write(self, tokens: Int[Tensor, "B T"], state: GptState) -> tuple[Float[Tensor, "B T D"], GptState]:
        start, length = length_of(state.past), tokens.shape[1]
        x = self.dropout(self.embedding(tokens) + self.positions(start, length))
        x, past = self.blocks(x, hide_future(length, start + length, tokens.device), None, state.past)
        return x, GptState(past)
