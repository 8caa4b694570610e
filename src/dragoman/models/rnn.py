"""The recurrent encoder-decoder: one fixed vector for a sentence, and what attention did to that.

    none         s<i> = cell(y<i−1>, s<i−1>)                     all that the decoder knows of the source is its first
                                                                 state s<0> (Sutskever et al. 2014)
    additive     c<i> = attention(s<i−1>, A)                     asks with the state before the step, and reads the
                 s<i> = cell([y<i−1>; c<i>], s<i−1>)             answer in it (Bahdanau et al. 2015)
    the others   s<i> = cell(y<i−1>, s<i−1>)                     asks with the state after the step
                 c<i> = attention(s<i>, A)                       (Luong et al. 2015)

    readout      t<i> = tanh(W [c<i>; s<i>]),  scores over the vocabulary = E t<i>
    input feeding     the cell reads [y<i−1>; t<i−1>]: it is told what was attended to

A holds the states of the encoder, one a word. Without attention and without feeding no step waits for the output of
the one before it: the whole target goes through the fused kernel at once.
"""

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.models.writer import TranslatingModel
from dragoman.modules.activations import tanh
from dragoman.modules.attention import (
    Attention,
    Memory,
    additive_attention,
    bilinear_attention,
    dot_attention,
    low_rank_attention,
    scaled_attention,
)
from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.masks import hide_padding
from dragoman.modules.recurrent import GATES, Cell, CellState, Reader, RecurrentStack

Kind = Literal["none", "additive", "dot", "bilinear", "low-rank", "scaled"]


class RnnConfig(Settings):
    source_vocabulary: int = Field(gt=0, description="tokens the encoder knows")
    target_vocabulary: int = Field(gt=0, description="tokens the decoder knows")
    cell: Cell = Field("lstm", description="rnn (plain), gru or lstm")
    attention: Kind = Field("none", description="how the decoder looks at the source's states; none: it cannot")
    width: int = Field(512, gt=0, description="numbers in a state")
    embedding: int = Field(256, gt=0, description="numbers in a token's vector")
    layers: int = Field(1, gt=0, description="recurrent layers in the encoder, and as many in the decoder")
    dropout: float = Field(0.2, ge=0, lt=1, description="share of vectors, states and readouts zeroed in training")
    two_way: bool = Field(True, description="the encoder reads forwards and backwards, each with half of the width")
    input_feeding: bool = Field(False, description="the cell also reads the readout of the step before")
    rank: int = Field(64, gt=0, description="of low-rank attention")
    tied: Literal["all", "target", "none"] = Field(
        "all", description="share one table: by both embeddings and the output, by the target's two, or by none"
    )

    @model_validator(mode="after")
    def parts_fit_together(self) -> "RnnConfig":
        if self.two_way and self.width % 2:
            raise ValueError(f"width {self.width} is odd and the two ways of the encoder need half of it each")
        if self.input_feeding and self.attention in ("none", "additive"):
            raise ValueError(
                f"input_feeding tells the cell what was attended to; with attention {self.attention!r} "
                + ("there is nothing to tell" if self.attention == "none" else "the cell reads that already")
            )
        if self.tied == "all" and self.source_vocabulary != self.target_vocabulary:
            raise ValueError(
                f"one table cannot serve {self.source_vocabulary} source and {self.target_vocabulary} target tokens; "
                "use a joint tokenizer, or tied = 'target'"
            )
        return self

    @property
    def fed(self) -> int:
        """Numbers that the decoder's cell reads beside the token's vector."""
        return self.width if self.attention == "additive" else self.embedding if self.input_feeding else 0

    def products_per_token(self) -> int:
        """Multiplications for one source and one target token, forwards."""
        w, e, gates = self.width, self.embedding, GATES[self.cell]
        share = w // 2 if self.two_way else w
        upper = (self.layers - 1) * gates * w
        encoder = gates * w * (e + share) + upper * (w + share)
        decoder = gates * w * (e + self.fed + w) + upper * 2 * w
        attention = {"additive": 2 * w * w + w, "bilinear": w * w, "low-rank": 2 * self.rank * w}.get(self.attention, 0)
        readout = e * (w if self.attention == "none" else 2 * w)
        return encoder + decoder + attention + readout + self.target_vocabulary * e

    def shape(self) -> str:
        ways = "two-way" if self.two_way else "one-way"
        fed = " with input feeding" if self.input_feeding else ""
        return (
            f"{ways} {self.cell}, {self.layers}+{self.layers} layers, width {self.width}, vectors of {self.embedding}, "
            f"attention {self.attention}{fed}"
        )


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "embedding": 128},
    "small": {"width": 256, "embedding": 256},
    "base": {"width": 512, "embedding": 256},
}


class RnnState(NamedTuple):
    source: tuple[Memory, ...]  # what attention reads; () where there is none
    source_mask: Bool[Tensor, "B 1 1 S"]
    cells: tuple[CellState, ...]  # of each decoder layer
    readout: Float[Tensor, "B F"]  # the newest, where it is fed to the next step; else no numbers


class Rnn(TranslatingModel):
    def __init__(self, config: RnnConfig) -> None:
        super().__init__()
        self.config = c = config
        self.source_embedding = TokenEmbedding(c.source_vocabulary, c.embedding)
        self.target_embedding = (
            self.source_embedding if c.tied == "all" else TokenEmbedding(c.target_vocabulary, c.embedding)
        )
        self.scores = TokenScores(c.target_vocabulary, c.embedding, None if c.tied == "none" else self.target_embedding)
        self.dropout = Dropout(c.dropout)
        self.encoder = Reader(c.cell, c.embedding, c.width, c.layers, c.dropout, two_way=c.two_way)
        self.decoder = RecurrentStack(c.cell, c.embedding + c.fed, c.width, c.layers, c.dropout)
        parts = 2 if c.cell == "lstm" else 1
        self.bridges = nn.ModuleList(nn.Linear(c.width, parts * c.width) for _ in range(c.layers))
        self.source_attention = make_attention(c)
        self.to_readout = nn.Linear(c.width if c.attention == "none" else 2 * c.width, c.embedding)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> RnnState:
        x = self.source_embedding(source).masked_fill(~source_mask[:, :, None], 0.0)
        states, lasts = self.encoder(self.dropout(x), source_mask)
        cells = tuple(self.cross(bridge, last) for bridge, last in zip(self.bridges, lasts, strict=True))
        source_memory = () if self.source_attention is None else (self.source_attention.remember(states),)
        readout = x.new_zeros(len(x), self.config.embedding if self.config.input_feeding else 0)
        return RnnState(source_memory, hide_padding(source_mask), cells, readout)

    def cross(self, bridge: nn.Module, last: Float[Tensor, "B D"]) -> CellState:
        """s<0> = tanh(W [a→<last>; a←<first>]): where the decoder starts from, an LSTM's cell included."""
        return tanh(bridge(last)).split(self.config.width, dim=-1)

    def write(self, tokens: Int[Tensor, "B T"], state: RnnState) -> tuple[Float[Tensor, "B T E"], RnnState]:
        y = self.dropout(self.target_embedding(tokens))
        if self.config.attention == "additive":
            return self.ask_then_step(y, state)
        if self.config.input_feeding:
            return self.step_and_feed(y, state)
        states, cells = self.decoder(y, state.cells)
        return self.read_out(states, state), state._replace(cells=cells)

    def read_out(self, states: Float[Tensor, "B T D"], state: RnnState) -> Float[Tensor, "B T E"]:
        """tanh(W [c; s]) with c what these states find in the source, all of them at once."""
        if self.source_attention is not None:
            context = self.source_attention(states, state.source[0], state.source_mask)
            states = torch.cat([context, states], dim=-1)
        return self.dropout(tanh(self.to_readout(states)))

    def ask_then_step(self, y: Float[Tensor, "B T E"], state: RnnState) -> tuple[Float[Tensor, "B T E"], RnnState]:
        """Bahdanau's decoder; only the readouts, which nothing waits for, are made together."""
        assert self.source_attention is not None
        cells, found = state.cells, []
        for word in y.unbind(dim=1):
            context = self.source_attention(cells[-1][0][:, None], state.source[0], state.source_mask)[:, 0]
            cells = self.decoder.step(torch.cat([word, context], dim=-1), cells)
            found.append(torch.cat([context, cells[-1][0]], dim=-1))
        readouts = self.dropout(tanh(self.to_readout(torch.stack(found, dim=1))))
        return readouts, state._replace(cells=cells)

    def step_and_feed(self, y: Float[Tensor, "B T E"], state: RnnState) -> tuple[Float[Tensor, "B T E"], RnnState]:
        """Luong's decoder with input feeding: the readout itself goes into the next step."""
        cells, readout, readouts = state.cells, state.readout, []
        for word in y.unbind(dim=1):
            cells = self.decoder.step(torch.cat([word, readout], dim=-1), cells)
            readout = self.read_out(cells[-1][0][:, None], state)[:, 0]
            readouts.append(readout)
        return torch.stack(readouts, dim=1), state._replace(cells=cells, readout=readout)


def make_attention(c: RnnConfig) -> Attention | None:
    match c.attention:
        case "none":
            return None
        case "additive":
            return additive_attention(c.width, c.width, c.width)
        case "dot":
            return dot_attention()
        case "scaled":
            return scaled_attention()
        case "bilinear":
            return bilinear_attention(c.width, c.width)
        case "low-rank":
            return low_rank_attention(c.width, c.width, c.rank)
