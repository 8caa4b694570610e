"""From sentences of token ids to padded rectangles, and which sentences make up batch k.

A batch holds pairs of like length up to a budget of tokens, so little of it is padding. Which pairs these are is a
function of (seed, epoch, k) alone: nothing has to be remembered, or skipped, to go on from batch 1,000,000.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from dragoman.text.special import SpecialIds

Item = TypeVar("Item")
Sentence = Sequence[int] | NDArray[np.integer]


class Batch(NamedTuple):
    """Sentence pairs laid out for teacher forcing: read `source` and `target_in`, predict `target_out`."""

    source: Int[Tensor, "B S"]  # x1 … xm <end>
    source_mask: Bool[Tensor, "B S"]
    target_in: Int[Tensor, "B T"]  # <start> y1 … yn
    target_out: Int[Tensor, "B T"]  # y1 … yn <end>
    target_mask: Bool[Tensor, "B T"]


def make_batch(pairs: Sequence[tuple[Sentence, Sentence]], special: SpecialIds) -> Batch:
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    source, source_mask = pad(sources, special.pad, after=special.end)
    target_in, target_mask = pad(targets, special.pad, before=special.start)
    target_out, _ = pad(targets, special.pad, after=special.end)
    return Batch(source, source_mask, target_in, target_out, target_mask)


def make_source(sources: Sequence[Sentence], special: SpecialIds) -> tuple[Int[Tensor, "B S"], Bool[Tensor, "B S"]]:
    return pad(sources, special.pad, after=special.end)


def like_lengths(items: Iterable[Item], length: Callable[[Item], int], budget: int) -> Iterator[list[Item]]:
    """Items of like length together, as many as their rectangle's budget allows; the shortest first."""
    batch: list[Item] = []
    for item in sorted(items, key=length):
        if batch and (len(batch) + 1) * length(item) > budget:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


class Reading(NamedTuple):
    """Texts for a model that only reads."""

    tokens: Int[Tensor, "B T"]  # [CLS] x1 … xn [SEP], which are `start` and `end`
    real: Bool[Tensor, "B T"]


def make_reading(texts: Sequence[Sentence], special: SpecialIds) -> Reading:
    return Reading(*pad(texts, special.pad, before=special.start, after=special.end))


class LabelledBatch(NamedTuple):
    """Texts for a model that tells their class."""

    tokens: Int[Tensor, "B T"]
    real: Bool[Tensor, "B T"]
    wanted: Int[Tensor, " B"]  # the class of each, by its number


def pad(
    sentences: Sequence[Sentence], filler: int, *, before: int | None = None, after: int | None = None
) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """One row a sentence, with a token before or after it; and where the row is real."""
    first = 0 if before is None else 1
    extra = first + (0 if after is None else 1)
    lengths = np.array([len(sentence) for sentence in sentences])
    ids = np.full((len(sentences), int(lengths.max()) + extra), filler, dtype=np.int64)
    for row, sentence in zip(ids, sentences, strict=True):
        row[first : first + len(sentence)] = sentence
    if before is not None:
        ids[:, 0] = before
    if after is not None:
        ids[np.arange(len(ids)), first + lengths] = after
    real = np.arange(ids.shape[1]) < (lengths + extra)[:, None]
    return torch.from_numpy(ids), torch.from_numpy(real)


class BatchOrder:
    """Batch k of an epoch, for pairs of these lengths, as the rows that it holds.

    Each epoch the pairs are sorted by their cell (target length, then source length, in steps of a tenth) and at
    random within it, and cut where the sum of the padded sizes passes the budget; then the batches are shuffled.
    Cells do not change, so every epoch has the same number of batches.
    """

    def __init__(self, lengths: Int[np.ndarray, "N 2"], tokens_per_batch: int, seed: int) -> None:
        self.seed = seed
        source, target = round_up(lengths[:, 0] + 1), round_up(lengths[:, 1] + 1)  # with <end> or <start>
        self.cells = target.astype(np.int64) << 20 | source
        sizes = np.sort(self.cells)
        spent = np.cumsum((sizes >> 20) + (sizes & 0xFFFFF)) / 2  # a pair costs the mean of its two sides
        batch_of = np.maximum(0, np.ceil(spent / tokens_per_batch) - 1).astype(np.int64)
        self.starts = np.append(np.flatnonzero(np.diff(batch_of, prepend=-1)), len(lengths))
        self.shuffled: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.starts) - 1

    def rows(self, epoch: int, k: int) -> NDArray[np.int64]:
        if self.shuffled is None or self.shuffled[0] != epoch:
            self.shuffled = (epoch, *self.shuffle(epoch))
        _, order, batches = self.shuffled
        return order[self.starts[batches[k]] : self.starts[batches[k] + 1]]

    def shuffle(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs in their order for this epoch, and its batches in theirs."""
        random = np.random.default_rng([self.seed, epoch])
        chance = random.integers(0, 1 << 22, len(self.cells))  # beside the cell's 40 bits in one int64: one fast sort
        order = np.argsort((self.cells << 22) | chance, kind="stable")
        return order, random.permutation(len(self))


def round_up(lengths: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Each length to the next of 1, 2, … 10, 11, 13, 15, 17, …: steps of about a tenth."""
    steps = [1]
    while steps[-1] < int(lengths.max(initial=1)):
        steps.append(max(steps[-1] + 1, int(steps[-1] * 1.1)))
    return np.array(steps)[np.searchsorted(steps, lengths)]
