"""Marian's Transformer (Junczys-Dowmunt et al. 2018), as the OPUS translators have it: the one of 2017 in other sizes.

positions       the same waves, all sines before all cosines
scores          a bias for each token, beside the dot product with its vector
sizes           encoder and decoder each have their own number of blocks, of heads, and their own feed-forward width
"""

from functools import partial
from typing import Any, Literal

from pydantic import Field, model_validator
from torch import nn

from dragoman.config import Settings
from dragoman.models.transformer import EncoderDecoder
from dragoman.modules.activations import activation
from dragoman.modules.attention import multi_head_attention
from dragoman.modules.block import Block, Stack, feedforward
from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.positions import SinusoidalPositions, split_sinusoids


class MarianConfig(Settings):
    source_vocabulary: int = Field(gt=0, description="tokens the encoder knows")
    target_vocabulary: int = Field(gt=0, description="tokens the decoder knows")
    width: int = Field(512, gt=0, description="numbers in a token's vector, d_model")
    heads: int = Field(8, gt=0, description="attention heads in the encoder; must divide the width")
    decoder_heads: int | None = Field(None, gt=0, description="attention heads in the decoder; else as many")
    layers: int = Field(6, gt=0, description="blocks in the encoder")
    decoder_layers: int | None = Field(None, gt=0, description="blocks in the decoder; else as many")
    hidden: int = Field(2048, gt=0, description="width inside the encoder's feed-forward network, d_ff")
    decoder_hidden: int | None = Field(None, gt=0, description="the same in the decoder; else as wide")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of each sublayer's output that is zeroed in training")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="share of attention weights zeroed in training")
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = Field("silu", description="of the feed-forward network")
    scaled: bool = Field(True, description="multiply token vectors by √width as they are read")
    tied: Literal["all", "target", "none"] = Field(
        "all", description="share one table: by both embeddings and the output, by the target's two, or by none"
    )

    @model_validator(mode="after")
    def parts_fit_together(self) -> "MarianConfig":
        for heads in (self.heads, self.decoder_heads or self.heads):
            if self.width % heads:
                raise ValueError(f"width {self.width} cannot be split into {heads} equal heads")
        if self.width % 2:
            raise ValueError(f"width {self.width} is odd; sinusoidal positions come in pairs of numbers")
        if self.tied == "all" and self.source_vocabulary != self.target_vocabulary:
            raise ValueError(
                f"one table cannot serve {self.source_vocabulary} source and {self.target_vocabulary} target tokens; "
                "use a joint tokenizer, or tied = 'target'"
            )
        return self

    @property
    def decoder(self) -> tuple[int, int, int]:
        """Blocks, heads and feed-forward width of the decoder."""
        return self.decoder_layers or self.layers, self.decoder_heads or self.heads, self.decoder_hidden or self.hidden

    def products_per_token(self) -> int:
        """Multiplications for one source and one target token, forwards."""
        layers, _, hidden = self.decoder
        encoder = self.layers * (4 * self.width**2 + 2 * self.width * self.hidden)
        return encoder + layers * (8 * self.width**2 + 2 * self.width * hidden) + self.target_vocabulary * self.width

    def shape(self) -> str:
        layers, _, _ = self.decoder
        return f"{self.layers}+{layers} blocks, width {self.width}, {self.heads} heads, feed-forward {self.hidden}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "heads": 4, "layers": 4, "hidden": 256},
    "small": {"width": 256, "heads": 4, "layers": 3, "hidden": 1024},
    "base": {"width": 512, "heads": 8, "layers": 6, "hidden": 2048},
    "small-deep": {"width": 256, "heads": 4, "layers": 6, "decoder_layers": 1, "hidden": 1024},
    "base-deep": {"width": 512, "heads": 8, "layers": 12, "decoder_layers": 1, "hidden": 2048},
}


class Marian(EncoderDecoder):
    def __init__(self, config: MarianConfig) -> None:
        super().__init__()
        self.config = c = config
        embedding = partial(TokenEmbedding, width=c.width, scaled=c.scaled)
        self.source_embedding = embedding(c.source_vocabulary)
        self.target_embedding = self.source_embedding if c.tied == "all" else embedding(c.target_vocabulary)
        tied_to = None if c.tied == "none" else self.target_embedding
        self.scores = TokenScores(c.target_vocabulary, c.width, tied_to, bias=True)
        self.source_positions = self.target_positions = SinusoidalPositions(c.width, waves=split_sinusoids)
        self.dropout = Dropout(c.dropout)
        self.encoder = make_stack(c, c.layers, c.heads, c.hidden, reads_source=False)
        self.decoder = make_stack(c, *c.decoder, reads_source=True)


def make_stack(c: MarianConfig, layers: int, heads: int, hidden: int, *, reads_source: bool) -> Stack:
    attention = partial(multi_head_attention, c.width, heads, dropout=c.attention_dropout)
    return Stack(
        Block(
            self_attention=attention(),
            source_attention=attention() if reads_source else None,
            feedforward=feedforward(c.width, hidden, activation(c.activation)),
            norm=partial(nn.LayerNorm, c.width),
            norm_first=False,
            dropout=c.dropout,
        )
        for _ in range(layers)
    )
