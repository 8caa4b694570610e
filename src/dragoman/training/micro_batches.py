"""A step's batch in parts. Every part gives sums, so the parts of a batch give what the whole would have given.

    accumulate batches  ×  slices of each  =  the micro-batches of a step, numbered 0 … M−1

Which sentences micro-batch i holds follows from (seed, epoch, k) and from nothing else: not from the number of
workers, who take what is theirs by its number.
"""

from collections.abc import Callable, Sequence
from typing import Any, overload

import torch
from torch import Tensor

from dragoman.text.corruption import MaskedBatch


class MicroBatches(Sequence[Any]):
    """Those of one step. Each is made when it is asked for: a worker makes its own and no others."""

    def __init__(self, batch_at: Callable[[int], Any], first: int, batches: int, slices: int = 1) -> None:
        self.batch_at, self.first, self.batches, self.slices = batch_at, first, batches, slices
        self.made: tuple[int, list[Any]] = (-1, [])  # the slices of the newest batch: a worker takes some of them

    def __len__(self) -> int:
        return self.batches * self.slices

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Any]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(i)
        k, part = divmod(i, self.slices)
        if self.made[0] != k:
            self.made = (k, cut(self.batch_at(self.first + k), self.slices))
        return self.made[1][part]


def rows_of(batch: Any) -> int:
    return len(batch[0])


def cut(batch: Any, parts: int) -> list[Any]:
    """Every `parts`-th row of a batch, from each of its first ones on: like rows lie side by side, so parts are alike.

    Where there are fewer rows than parts, the last parts have none.
    """
    if parts == 1:
        return [batch]
    if isinstance(batch, MaskedBatch):
        return [cut_masked(batch, part, parts) for part in range(parts)]
    return [
        type(batch)(*(one[part::parts] if isinstance(one, Tensor) else one for one in batch)) for part in range(parts)
    ]


def cut_masked(batch: MaskedBatch, part: int, parts: int) -> MaskedBatch:
    """What is wanted stands in one row for the whole batch: that of a part is found by its place."""
    places = torch.full(batch.asked.shape, -1)
    places[batch.asked] = torch.arange(len(batch.wanted))
    tokens, real, asked = (one[part::parts] for one in (batch.tokens, batch.real, batch.asked))
    return MaskedBatch(tokens, real, asked, batch.wanted[places[part::parts][asked]])
