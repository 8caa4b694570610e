"""T5: text to text (Raffel et al. 2020). The encoder-decoder of 2017 with other parts:

    positions       none are added; each head adds to its scores a number learned for the distance between two tokens
    norm            RMSNorm, before each sublayer: x / √mean(x²), without a mean taken off and without biases
    attention       q·k without 1/√d: its first weights are drawn smaller instead, which suits the optimizer it was made
                    with; Muon turns all weights alike, and learns faster `scaled`. Heads need not make up the width
    feed-forward    ReLU, or in version 1.1 gated: W₂ (gelu(W x) ⊙ V x)

All blocks of a stack share one table of distances.
"""

import math
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.models.transformer import TransformerState
from dragoman.models.writer import TranslatingModel
from dragoman.modules.activations import activation
from dragoman.modules.attention import Attention, dot, scaled_dot
from dragoman.modules.block import Block, Stack, length_of
from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.masks import hide_future, hide_padding
from dragoman.modules.positions import RelativePositions


class T5Config(Settings):
    source_vocabulary: int = Field(gt=0, description="tokens the encoder knows")
    target_vocabulary: int = Field(gt=0, description="tokens the decoder knows: the same ones")
    width: int = Field(512, gt=0, description="numbers in a token's vector, d_model")
    heads: int = Field(8, gt=0, description="attention heads")
    head_width: int = Field(64, gt=0, description="numbers in a head's queries, keys and values, d_kv")
    layers: int = Field(6, gt=0, description="blocks in the encoder")
    decoder_layers: int | None = Field(None, gt=0, description="blocks in the decoder; else as many")
    hidden: int = Field(2048, gt=0, description="width inside the feed-forward network, d_ff")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of each sublayer's output that is zeroed in training")
    activation: Literal["relu", "gelu", "gelu-tanh"] = Field("relu", description="of the feed-forward network")
    gated: bool = Field(False, description="a second projection multiplies the feed-forward's inside (version 1.1)")
    scaled: bool = Field(False, description="divide q·k by √head_width, as the Transformer does; imported ones do not")
    buckets: int = Field(32, gt=3, description="distances told apart")
    furthest: int = Field(128, gt=4, description="distance from which on all are alike")
    epsilon: float = Field(1e-6, gt=0, description="added to the mean square in norms")
    tied: Literal["all", "inputs"] = Field(
        "all", description="share one table: by both embeddings and the output, which reads it with 1/√width; or not"
    )

    @model_validator(mode="after")
    def parts_fit_together(self) -> "T5Config":
        if self.source_vocabulary != self.target_vocabulary:
            raise ValueError(
                f"one table cannot serve {self.source_vocabulary} source and {self.target_vocabulary} target tokens; "
                "use a joint tokenizer"
            )
        return self

    @property
    def blocks(self) -> tuple[int, int]:
        return self.layers, self.layers if self.decoder_layers is None else self.decoder_layers

    def products_per_token(self) -> int:
        """Multiplications for one source and one target token, forwards."""
        attention = 4 * self.width * self.heads * self.head_width
        feedforward = (3 if self.gated else 2) * self.width * self.hidden
        encoder, decoder = self.blocks
        return (
            encoder * (attention + feedforward)
            + decoder * (2 * attention + feedforward)
            + self.target_vocabulary * self.width
        )

    def shape(self) -> str:
        encoder, decoder = self.blocks
        gated = "gated " if self.gated else ""
        return f"{encoder}+{decoder} blocks, width {self.width}, {self.heads} heads, {gated}feed-forward {self.hidden}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "heads": 4, "head_width": 32, "layers": 3, "hidden": 512, "scaled": True},
    "small": {"width": 256, "heads": 4, "head_width": 64, "layers": 3, "hidden": 1024, "scaled": True},
    "base": {"width": 512, "heads": 8, "head_width": 64, "layers": 6, "hidden": 2048, "scaled": True},
}


class T5(TranslatingModel):
    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.config = c = config
        encoder, decoder = c.blocks
        self.source_embedding = self.target_embedding = TokenEmbedding(c.source_vocabulary, c.width, scaled=False)
        nn.init.normal_(self.source_embedding.table.weight, std=1.0)
        self.scores = TokenScores(c.target_vocabulary, c.width, self.target_embedding if c.tied == "all" else None)
        self.dropout = Dropout(c.dropout)
        self.encoder_distances = RelativePositions(c.heads, c.buckets, c.furthest, both_ways=True)
        self.decoder_distances = RelativePositions(c.heads, c.buckets, c.furthest, both_ways=False)
        self.encoder = make_stack(c, encoder, reads_source=False)
        self.decoder = make_stack(c, decoder, reads_source=True)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> TransformerState:
        mask = hide_padding(source_mask)
        x = self.source_embedding(source).masked_fill(~source_mask[:, :, None], 0.0)
        length = source.shape[1]
        x, _ = self.encoder(self.dropout(x), mask, self.encoder_distances(0, length, length))
        return TransformerState(self.decoder.remember_source(self.dropout(x)), mask)

    def write(
        self, tokens: Int[Tensor, "B T"], state: TransformerState
    ) -> tuple[Float[Tensor, "B T D"], TransformerState]:
        start, length = length_of(state.past), tokens.shape[1]
        x = self.dropout(self.target_embedding(tokens))
        mask = hide_future(length, start + length, tokens.device)
        distances = self.decoder_distances(start, length, start + length)
        x, past = self.decoder(x, mask, distances, state.past, state.source, state.source_mask)
        x = self.dropout(x)
        return (x * self.config.width**-0.5 if self.config.tied == "all" else x), state._replace(past=past)


class GatedFeedForward(nn.Module):
    """W₂ (f(W x) ⊙ V x): what is let through is computed apart from what it is (Shazeer 2020)."""

    def __init__(self, width: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.gate, self.inward = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.outward, self.activation = nn.Linear(hidden, width, bias=False), activation

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.outward(self.activation(self.gate(x)) * self.inward(x))


def make_stack(c: T5Config, blocks: int, *, reads_source: bool) -> Stack:
    norm = partial(nn.RMSNorm, c.width, eps=c.epsilon)
    return Stack(
        (
            Block(
                self_attention=make_attention(c),
                source_attention=make_attention(c) if reads_source else None,
                feedforward=make_feedforward(c),
                norm=norm,
                norm_first=True,
                dropout=c.dropout,
            )
            for _ in range(blocks)
        ),
        final_norm=norm(),
    )


def make_attention(c: T5Config) -> Attention:
    inner = c.heads * c.head_width
    q, k, v = (nn.Linear(c.width, inner, bias=False) for _ in "qkv")
    o = nn.Linear(inner, c.width, bias=False)
    small = 1.0 if c.scaled else c.head_width**-0.5  # for q's first weights, in place of 1/√d
    for projection, share in ((q, small), (k, 1.0), (v, 1.0)):
        nn.init.normal_(projection.weight, std=share * c.width**-0.5)
    nn.init.normal_(o.weight, std=inner**-0.5)
    return Attention(
        score=scaled_dot if c.scaled else dot, to_query=q, to_key=k, to_value=v, to_output=o, heads=c.heads
    )


def make_feedforward(c: T5Config) -> nn.Module:
    curve = activation(c.activation)
    if c.gated:
        made: nn.Module = GatedFeedForward(c.width, c.hidden, curve)
    else:
        inward, outward = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.hidden, c.width, bias=False)
        made = nn.Sequential(inward, curve, outward)
    for parameter in made.parameters():
        with torch.no_grad():
            parameter.normal_(std=1 / math.sqrt(parameter.shape[1]))
    return made
