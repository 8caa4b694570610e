"""Learning where a step changes a few rows of large tables: no gradient of a table's size, no optimizer beside it.

An objective that learns so works out slopes by hand and moves the rows at once (`learn`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import hypot
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.training.loop import Step
from dragoman.training.objectives import LossSum
from dragoman.training.team import computing_with


class Learned(NamedTuple):
    loss: LossSum
    slope: float  # length of the gradient; where it is not finite nothing was moved
    read: int  # tokens, or whatever else the speed is told in


@runtime_checkable
class LearnsByRows(Protocol):
    def learn(self, model: Any, batch: Any, rate: float) -> Learned: ...


def train_rows(
    model: Any,
    batches: Iterable[Sequence[Any]],
    objective: LearnsByRows,
    *,
    rate: Callable[[int], float],
    first: int = 1,
) -> Iterator[Step]:
    """What `loop.train` is for other models: a step for each item of `batches`. Nothing is added up: rows of the first
    micro-batch have moved when the second one is looked at."""
    for number, micro_batches in enumerate(batches, start=first):
        with torch.no_grad(), computing_with(1):  # on such small matrices two threads wait longer than they work
            done = [objective.learn(model, batch, rate(number)) for batch in micro_batches]
        nats, count = sum(one.loss.nats.item() for one in done), sum(one.loss.tokens for one in done)
        slope = hypot(*(one.slope for one in done))
        yield Step(number, nats / max(1, count), sum(one.read for one in done), slope, slope < float("inf"))


def add_to_rows(table: Float[Tensor, "V D"], rows: Int[Tensor, "*N"], moves: Float[Tensor, "*N D"]) -> None:
    """table[row] += move for each of them; a row that is there twice moves twice. (An expanded index takes torch's way
    for whole rows, which is faster than index_add_.)"""
    moves = moves.flatten(0, -2)
    table.scatter_add_(0, rows.flatten()[:, None].expand_as(moves), moves)
