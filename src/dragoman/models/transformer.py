"""The encoder-decoder Transformer of 'Attention Is All You Need' (Vaswani et al. 2017).

    source ids ─ embedding·√D + positions ─ encoder blocks ──────┐ keys and values, for every decoder block
    target ids ─ embedding·√D + positions ─ decoder blocks ──────┴─ scores over the vocabulary

Every decoder block reads the output of the LAST encoder block.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.models.writer import TranslatingModel
from dragoman.modules.activations import activation
from dragoman.modules.attention import multi_head_attention
from dragoman.modules.block import Block, Past, Stack, feedforward, length_of
from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.masks import hide_future, hide_padding
from dragoman.modules.positions import LearnedPositions, SinusoidalPositions


class TransformerConfig(Settings):
    source_vocabulary: int = Field(gt=0, description="tokens the encoder knows")
    target_vocabulary: int = Field(gt=0, description="tokens the decoder knows")
    width: int = Field(512, gt=0, description="numbers in a token's vector, d_model")
    heads: int = Field(8, gt=0, description="attention heads; must divide the width")
    layers: int = Field(6, gt=0, description="blocks in the encoder")
    decoder_layers: int | None = Field(None, gt=0, description="blocks in the decoder; else as many")
    hidden: int = Field(2048, gt=0, description="width inside the feed-forward network, d_ff")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of each sublayer's output that is zeroed in training")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="share of attention weights zeroed in training")
    activation: Literal["relu", "gelu"] = Field("relu", description="non-linearity of the feed-forward network")
    norm_first: bool = Field(False, description="normalise before each sublayer instead of after")
    positions: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="how positions are told")
    longest: int = Field(512, gt=0, description="positions there are, where they are learned")
    tied: Literal["all", "target", "none"] = Field(
        "all", description="share one table: by both embeddings and the output, by the target's two, or by none"
    )

    @model_validator(mode="after")
    def parts_fit_together(self) -> "TransformerConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be split into {self.heads} equal heads")
        if self.width % 2 and self.positions == "sinusoidal":
            raise ValueError(f"width {self.width} is odd; sinusoidal positions come in pairs of numbers")
        if self.tied == "all" and self.source_vocabulary != self.target_vocabulary:
            raise ValueError(
                f"one table cannot serve {self.source_vocabulary} source and {self.target_vocabulary} target tokens; "
                "use a joint tokenizer, or tied = 'target'"
            )
        return self

    @property
    def blocks_that_write(self) -> int:
        """Blocks of the decoder."""
        return self.decoder_layers or self.layers

    def products_per_token(self) -> int:
        """Multiplications for one source and one target token, forwards."""
        encoder = self.layers * (4 * self.width**2 + 2 * self.width * self.hidden)
        decoder = self.blocks_that_write * (8 * self.width**2 + 2 * self.width * self.hidden)
        return encoder + decoder + self.target_vocabulary * self.width

    def shape(self) -> str:
        blocks = f"{self.layers}+{self.blocks_that_write} blocks"
        return f"{blocks}, width {self.width}, {self.heads} heads, feed-forward {self.hidden}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "heads": 4, "layers": 4, "hidden": 256, "norm_first": True},
    "small": {"width": 256, "heads": 4, "layers": 3, "hidden": 1024, "norm_first": True},
    "base": {"width": 512, "heads": 8, "layers": 6, "hidden": 2048, "dropout": 0.1, "norm_first": False},
    "small-deep": {"width": 256, "heads": 4, "layers": 6, "decoder_layers": 1, "hidden": 1024, "norm_first": True},
    "base-deep": {"width": 512, "heads": 8, "layers": 12, "decoder_layers": 1, "hidden": 2048, "norm_first": True},
}


class TransformerState(NamedTuple):
    source: Past  # what each decoder block reads of the source; never changes
    source_mask: Bool[Tensor, "B 1 1 S"]
    past: Past = ()  # what each decoder block has written; grows with the text


class EncoderDecoder(TranslatingModel):
    """How text goes through the parts, whatever they are."""

    source_embedding: TokenEmbedding
    target_embedding: TokenEmbedding
    source_positions: SinusoidalPositions | LearnedPositions
    target_positions: SinusoidalPositions | LearnedPositions
    dropout: Dropout
    encoder: Stack
    decoder: Stack

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> TransformerState:
        mask = hide_padding(source_mask)
        x = self.source_embedding(source) + self.source_positions(0, source.shape[1])
        x = x.masked_fill(~source_mask[:, :, None], 0.0)  # a hidden NaN would still spoil the sum: 0 · NaN is NaN
        x, _ = self.encoder(self.dropout(x), mask)
        return TransformerState(self.decoder.remember_source(x), mask)

    def write(
        self, tokens: Int[Tensor, "B T"], state: TransformerState
    ) -> tuple[Float[Tensor, "B T D"], TransformerState]:
        start, length = length_of(state.past), tokens.shape[1]
        x = self.dropout(self.target_embedding(tokens) + self.target_positions(start, length))
        mask = hide_future(length, start + length, tokens.device)
        x, past = self.decoder(x, mask, None, state.past, state.source, state.source_mask)
        return x, state._replace(past=past)


class Transformer(EncoderDecoder):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = c = config
        self.source_embedding = TokenEmbedding(c.source_vocabulary, c.width)
        self.target_embedding = (
            self.source_embedding if c.tied == "all" else TokenEmbedding(c.target_vocabulary, c.width)
        )
        self.scores = TokenScores(c.target_vocabulary, c.width, None if c.tied == "none" else self.target_embedding)
        sinusoidal = c.positions == "sinusoidal"
        self.source_positions = SinusoidalPositions(c.width) if sinusoidal else LearnedPositions(c.longest, c.width)
        self.target_positions = SinusoidalPositions(c.width) if sinusoidal else LearnedPositions(c.longest, c.width)
        self.dropout = Dropout(c.dropout)
        self.encoder = make_stack(c, c.layers, reads_source=False)
        self.decoder = make_stack(c, c.blocks_that_write, reads_source=True)


def make_stack(c: TransformerConfig, layers: int, *, reads_source: bool) -> Stack:
    attention = partial(multi_head_attention, c.width, c.heads, dropout=c.attention_dropout)
    norm = partial(nn.LayerNorm, c.width)
    return Stack(
        (
            Block(
                self_attention=attention(),
                source_attention=attention() if reads_source else None,
                feedforward=feedforward(c.width, c.hidden, activation(c.activation)),
                norm=norm,
                norm_first=c.norm_first,
                dropout=c.dropout,
            )
            for _ in range(layers)
        ),
        final_norm=norm() if c.norm_first else None,
    )
