"""Recurrent cells: a state that is carried from word to word. ⊙ multiplies number by number, σ is the sigmoid.

    plain     h' = tanh(W x + b + U h + c)

    GRU       r = σ(W_r x + b_r + U_r h + c_r)                 reset: how much of the past the new thought reads
              z = σ(W_z x + b_z + U_z h + c_z)                 update: how much of the past is kept
              n = tanh(W_n x + b_n + r ⊙ (U_n h + c_n))        (reset after U h, as torch and cuDNN have it)
              h' = (1 − z) ⊙ n + z ⊙ h

    LSTM      i, f, o = σ(W x + b + U h + c), each its own     input, forget and output gate
              g = tanh(W_g x + b_g + U_g h + c_g)
              m' = f ⊙ m + i ⊙ g                               the cell: a sum, so gradients pass through it unshrunk
              h' = o ⊙ tanh(m')

The weights are the same at every step of a sequence; they change once, when the optimizer steps. Where the whole input
is known torch's fused kernels run over it; `step` is one step by the equations above, for a decoder whose next input
hangs on its last output, and for whoever watches the gates. A test holds the two equal.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from dragoman.modules.activations import sigmoid, tanh
from dragoman.modules.dropout import Dropout

Cell = Literal["rnn", "gru", "lstm"]
CellState = tuple[Tensor, ...]  # (h,), or (h, m) for an LSTM; each (B D)

GATES: dict[Cell, int] = {"rnn": 1, "gru": 3, "lstm": 4}  # rows of W and U, in states
FUSED: dict[Cell, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Turn(NamedTuple):
    """One step of a cell, as a watcher is shown it."""

    gates: dict[str, Tensor]  # by their names, each (B D), between 0 and 1; a plain cell has none
    state: Float[Tensor, "B D"]  # h', after the step


class Recurrent(nn.Module):
    """One layer, in one direction."""

    def __init__(self, cell: Cell, inputs: int, width: int) -> None:
        super().__init__()
        self.cell, self.width = cell, width
        self.watcher: Callable[[Turn], None] | None = None
        self.fused: Any = FUSED[cell](inputs, width, batch_first=True)
        for gate in range(GATES[cell]):
            rows = slice(gate * width, (gate + 1) * width)
            nn.init.xavier_uniform_(self.fused.weight_ih_l0[rows])
            nn.init.orthogonal_(self.fused.weight_hh_l0[rows])  # keeps the length of what it carries
        nn.init.zeros_(self.fused.bias_ih_l0)
        nn.init.zeros_(self.fused.bias_hh_l0)
        if cell == "lstm":
            nn.init.ones_(self.fused.bias_ih_l0[width : 2 * width])  # at first forget little (Jozefowicz et al. 2015)

    @property
    def parts(self) -> int:
        """Vectors in its state."""
        return 2 if self.cell == "lstm" else 1

    def zeros(self, rows: int) -> CellState:
        return tuple(self.fused.weight_hh_l0.new_zeros(rows, self.width) for _ in range(self.parts))

    def forward(self, x: Float[Tensor, "B T I"], state: CellState) -> tuple[Float[Tensor, "B T D"], CellState]:
        """All steps in one call; or one by one, where the gates are watched."""
        if self.watcher is not None:
            return self.step_by_step(x, state)
        given = tuple(part.unsqueeze(0) for part in state)
        states, last = self.fused(x, given if self.cell == "lstm" else given[0])
        return states, tuple(part.squeeze(0) for part in (last if self.cell == "lstm" else (last,)))

    def step(self, x: Float[Tensor, "B I"], state: CellState) -> CellState:
        h = state[0]
        from_input = F.linear(x, self.fused.weight_ih_l0, self.fused.bias_ih_l0)
        from_past = F.linear(h, self.fused.weight_hh_l0, self.fused.bias_hh_l0)
        gates: dict[str, Tensor] = {}
        if self.cell == "rnn":
            after: CellState = (tanh(from_input + from_past),)
        elif self.cell == "gru":
            (xr, xz, xn), (hr, hz, hn) = from_input.chunk(3, dim=-1), from_past.chunk(3, dim=-1)
            r, z = sigmoid(xr + hr), sigmoid(xz + hz)
            n = tanh(xn + r * hn)
            gates, after = {"reset": r, "update": z}, (n + z * (h - n),)
        else:
            i, f, g, o = (from_input + from_past).chunk(4, dim=-1)
            i, f, o = sigmoid(i), sigmoid(f), sigmoid(o)
            m = f * state[1] + i * tanh(g)
            gates, after = {"forget": f, "input": i, "output": o}, (o * tanh(m), m)
        if self.watcher is not None:
            self.watcher(Turn(gates, after[0]))
        return after

    def step_by_step(self, x: Float[Tensor, "B T I"], state: CellState) -> tuple[Float[Tensor, "B T D"], CellState]:
        states = []
        for word in x.unbind(dim=1):
            state = self.step(word, state)
            states.append(state[0])
        return torch.stack(states, dim=1), state


class RecurrentStack(nn.Module):
    """Layers on top of one another, each reading the states of the one below; dropout between them."""

    def __init__(self, cell: Cell, inputs: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Recurrent(cell, inputs if i == 0 else width, width) for i in range(layers))
        self.dropout = Dropout(dropout)

    def __iter__(self) -> Iterator[Recurrent]:
        return cast("Iterator[Recurrent]", iter(self.layers))

    def zeros(self, rows: int) -> tuple[CellState, ...]:
        return tuple(layer.zeros(rows) for layer in self)

    def forward(
        self, x: Float[Tensor, "B T I"], states: tuple[CellState, ...]
    ) -> tuple[Float[Tensor, "B T D"], tuple[CellState, ...]]:
        after = []
        for i, (layer, state) in enumerate(zip(self, states, strict=True)):
            x, last = layer(x if i == 0 else self.dropout(x), state)
            after.append(last)
        return x, tuple(after)

    def step(self, x: Float[Tensor, "B I"], states: tuple[CellState, ...]) -> tuple[CellState, ...]:
        """One step of every layer; the state of the last one is the newest."""
        after: list[CellState] = []
        for i, (layer, state) in enumerate(zip(self, states, strict=True)):
            after.append(layer.step(x if i == 0 else self.dropout(x), state))
            x = after[-1][0]
        return tuple(after)


class Reader(nn.Module):
    """Reads a padded sentence forwards, or both ways: A<t> = [a→<t>; a←<t>], where each way has half of the width.

    Its states tell of each word within its sentence; its last ones, layer by layer, of the sentence as a whole.
    """

    def __init__(self, cell: Cell, inputs: int, width: int, layers: int, dropout: float, *, two_way: bool) -> None:
        super().__init__()
        share = width // 2 if two_way else width
        sizes = [inputs, *[width] * (layers - 1)]
        self.forwards = nn.ModuleList(Recurrent(cell, size, share) for size in sizes)
        self.backwards = nn.ModuleList(Recurrent(cell, size, share) for size in sizes) if two_way else None
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "B S I"], real: Bool[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B S D"], list[Float[Tensor, "B D"]]]:
        lengths = real.sum(dim=1)
        last_word = (lengths - 1).clamp(min=0)
        rows = torch.arange(len(x), device=x.device)
        lasts = []
        for i, forwards in enumerate(self.forwards):
            x = x if i == 0 else self.dropout(x)
            ways = [read(forwards, x)]
            last = [ways[0][rows, last_word]]
            if self.backwards is not None:
                mirrored = read(self.backwards[i], mirror(x, lengths))
                last.append(mirrored[rows, last_word])
                ways.append(mirror(mirrored, lengths))
            x = torch.cat(ways, dim=-1).masked_fill(~real[:, :, None], 0.0)
            lasts.append(torch.cat(last, dim=-1))
        return x, lasts


def read(layer: nn.Module, x: Float[Tensor, "B S I"]) -> Float[Tensor, "B S D"]:
    assert isinstance(layer, Recurrent)
    return layer(x, layer.zeros(len(x)))[0]


def mirror(x: Float[Tensor, "B S D"], lengths: Tensor) -> Float[Tensor, "B S D"]:
    """Each sentence back to front, its padding left where it is: done twice, nothing has happened."""
    place = torch.arange(x.shape[1], device=x.device)
    back = lengths[:, None] - 1 - place
    return x.gather(1, torch.where(back >= 0, back, place)[:, :, None].expand_as(x))


# ── looking inside ────────────────────────────────────────────────────────────────────────


@contextmanager
def watching_gates(stack: RecurrentStack) -> Iterator[list[list[Turn]]]:
    """Inside this block, collect every step of every layer of `stack`."""
    seen: list[list[Turn]] = [[] for _ in stack]
    for layer, turns in zip(stack, seen, strict=True):
        layer.watcher = turns.append
    try:
        yield seen
    finally:
        for layer in stack:
            layer.watcher = None
