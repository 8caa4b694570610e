"""The recurrent language model: what comes next, from all that came before.

    h<t> = cell(embedding of x<t>, h<t−1>)
    p(x<t+1> | x<1> … x<t>) = softmax(E tanh(W h<t>))

The state is all it remembers. Trained by truncated backpropagation through time: gradients flow back over one window
of the text, the state itself goes on into the next.
"""

from typing import Any, NamedTuple

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.models.writer import TextModel
from dragoman.modules.activations import tanh
from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.recurrent import GATES, Cell, CellState, RecurrentStack


class RnnWriterConfig(Settings):
    vocabulary: int = Field(gt=0, description="tokens it knows")
    cell: Cell = Field("lstm", description="rnn (plain), gru or lstm")
    width: int = Field(512, gt=0, description="numbers in a state")
    embedding: int = Field(256, gt=0, description="numbers in a token's vector")
    layers: int = Field(2, gt=0, description="recurrent layers, each reading the one below")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of vectors, states and readouts zeroed in training")
    tied: bool = Field(True, description="one table for the vectors that are read and those that score")

    def products_per_token(self) -> int:
        """Multiplications for one token, forwards."""
        w, gates = self.width, GATES[self.cell]
        cells = gates * w * (self.embedding + w) + (self.layers - 1) * gates * w * 2 * w
        return cells + self.embedding * (w + self.vocabulary)

    def shape(self) -> str:
        return f"{self.cell}, {self.layers} layers, width {self.width}, vectors of {self.embedding}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "embedding": 128},
    "small": {"width": 256, "embedding": 256},
    "base": {"width": 512, "embedding": 256},
}


class WriterState(NamedTuple):
    cells: tuple[CellState, ...]  # of each layer


class RnnWriter(TextModel):
    carries = True  # its state goes on from window to window, however long the text is

    def __init__(self, config: RnnWriterConfig) -> None:
        super().__init__()
        self.config = c = config
        self.embedding = TokenEmbedding(c.vocabulary, c.embedding)
        self.scores = TokenScores(c.vocabulary, c.embedding, self.embedding if c.tied else None)
        self.stack = RecurrentStack(c.cell, c.embedding, c.width, c.layers, c.dropout)
        self.to_readout = nn.Linear(c.width, c.embedding)
        self.dropout = Dropout(c.dropout)

    def begin(self, rows: int) -> WriterState:
        """The state before the first token: nothing remembered."""
        return WriterState(self.stack.zeros(rows))

    def write(self, tokens: Int[Tensor, "B T"], state: WriterState) -> tuple[Float[Tensor, "B T E"], WriterState]:
        states, cells = self.stack(self.dropout(self.embedding(tokens)), state.cells)
        return self.dropout(tanh(self.to_readout(self.dropout(states)))), WriterState(cells)
