"""Learning where a step changes a few rows of large tables: no gradient of a table's size, no optimizer beside it.

An objective that learns so works out slopes by hand and moves the rows at once (`learn`). A step has several batches.
With more than one thread they are learned from side by side, as in word2vec.c: where two move a row at the same moment,
which is seldom, a little of one move is lost (Hogwild; Recht et al. 2011). Between two steps no one moves anything.
With one thread the same batches make the same model to the last bit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import hypot
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.training.loop import Step
from dragoman.training.objectives import LossSum


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
    """What `loop.train` is for other models: a step for each item of `batches`."""

    def learn(batch: Any) -> Learned:
        with torch.no_grad():  # which holds for one thread only
            return objective.learn(model, batch, rate(number))

    upcoming, number = iter(batches), first
    micro_batches = next(upcoming, None)
    with several(torch.get_num_threads()) as each:
        while micro_batches:
            working = each(learn, micro_batches)
            micro_batches = next(upcoming, None)  # the next ones are made while these are learned from
            yield step_of(number, list(working))
            number += 1


def step_of(number: int, done: Sequence[Learned]) -> Step:
    nats, count = sum(one.loss.nats.item() for one in done), sum(one.loss.tokens for one in done)
    slope = hypot(*(one.slope for one in done))
    return Step(number, nats / max(1, count), sum(one.read for one in done), slope, slope < float("inf"))


@contextmanager
def several(threads: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` by so many threads, each with one of torch's own."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield pool.map


def add_to_rows(table: Float[Tensor, "V D"], rows: Int[Tensor, "*N"], moves: Float[Tensor, "*N D"]) -> None:
    """table[row] += move for each of them; a row that is there twice moves twice. (An expanded index takes torch's way
    for whole rows, which is faster than index_add_.)"""
    moves = moves.flatten(0, -2)
    table.scatter_add_(0, rows.flatten()[:, None].expand_as(moves), moves)
