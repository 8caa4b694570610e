"""Learning where a step changes a few rows of large tables: no gradient of a table's size, no optimizer beside it.

An objective that learns so works out slopes by hand (`look`) and moves the rows itself (`move`). A batch is looked at
in as many parts as there are threads, all at once; then the rows move, one part after the other. So the same batches
make the same model, whichever thread is the faster one.
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


class Moved(NamedTuple):
    loss: LossSum
    slope: float  # length of the gradient; where it is not finite nothing was moved
    read: int  # tokens, or whatever else the speed is told in


@runtime_checkable
class LearnsByRows(Protocol):
    def look(self, model: Any, batch: Any) -> Any:
        """What `move` needs to know of a batch; the model is left as it is."""
        ...

    def move(self, model: Any, looked: Any, rate: float) -> Moved: ...


def train_rows(
    model: Any,
    batches: Iterable[Sequence[Any]],  # each batch has `parts`
    objective: LearnsByRows,
    *,
    rate: Callable[[int], float],
    first: int = 1,
) -> Iterator[Step]:
    """What `loop.train` is for other models: a step for each item of `batches`."""

    def look(part: Any) -> Any:
        with torch.no_grad():  # which holds for one thread only
            return objective.look(model, part)

    with several(torch.get_num_threads()) as (threads, each):
        for number, micro_batches in enumerate(batches, start=first):
            looked = list(each(look, [part for batch in micro_batches for part in batch.parts(threads)]))
            with torch.no_grad():
                moved = [objective.move(model, one, rate(number)) for one in looked]
            nats, count = sum(one.loss.nats.item() for one in moved), sum(one.loss.tokens for one in moved)
            slope = hypot(*(one.slope for one in moved))
            yield Step(number, nats / max(1, count), sum(one.read for one in moved), slope, slope < float("inf"))


@contextmanager
def several(threads: int) -> Iterator[tuple[int, Callable[..., Iterable[Any]]]]:
    """How many work at once, and a `map` that makes them: each with one thread of torch's own."""
    if threads == 1:
        yield 1, map
        return
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield threads, pool.map


def add_to_rows(table: Float[Tensor, "V D"], rows: Int[Tensor, "*N"], moves: Float[Tensor, "*N D"]) -> None:
    """table[row] += move for each of them; a row that is there twice moves twice. (An expanded index takes torch's way
    for whole rows, which is faster than index_add_.)"""
    moves = moves.flatten(0, -2)
    table.scatter_add_(0, rows.flatten()[:, None].expand_as(moves), moves)
