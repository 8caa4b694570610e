"""Which target tokens may come up in a translation, told by the tokens of its source: a few hundred of many thousand.

How likely source token x becomes target token y is learned from the training pairs by IBM model 1 (Brown et al. 1993):
every y of a pair comes from one of its x, and which one it is is shared out by what is known so far,

    count(x, y) = Σ over pairs  t(y | x) / Σₓ′ t(y | x′),      t(y | x) = count(x, y) / Σ_y′ count(x, y′)

A sentence may use all that its tokens make likely enough, and what is frequent anyway.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from dragoman.text.index import PairIndex

ALWAYS = 256  # the most frequent target tokens are on every list
CELLS = 16_000_000  # (x, y) of a pair that are counted: more pairs teach little more, and take memory
ROUNDS = 2  # more make the likely ones likelier, and forget rare ones


class Shortlist(NamedTuple):
    always: Int[np.ndarray, " A"]
    starts: Int[np.ndarray, " S+1"]  # where the list of each source token begins, and the end of the last
    tokens: Int[np.ndarray, " N"]
    copies: bool  # both sides have one vocabulary: a source token may come up as it is

    def of(self, source: Sequence[int]) -> Int[np.ndarray, " K"]:
        """The tokens that may come up in the translation of this sentence, in their order."""
        lists = [self.tokens[self.starts[x] : self.starts[x + 1]] for x in set(source)]
        own = [np.array(source, dtype=np.int64)] if self.copies else []
        return np.unique(np.concatenate([self.always, *lists, *own]))


class Lexicon(NamedTuple):
    """t(y | x) of each x and y that stand in a pair, in the order of x."""

    x: Int[np.ndarray, " U"]
    y: Int[np.ndarray, " U"]
    t: Float[np.ndarray, " U"]
    frequent: Int[np.ndarray, " A"]

    def shortlist(self, least: float, vocabulary: int, always: Sequence[int], *, copies: bool) -> Shortlist:
        """With all that is at least so likely, for a source vocabulary of so many; `always` are tokens that belong to
        every text, such as its end."""
        likely = self.t >= least
        starts = np.searchsorted(self.x[likely], np.arange(vocabulary + 1))
        return Shortlist(np.union1d(self.frequent, np.array(always, dtype=np.int64)), starts, self.y[likely], copies)


class Cells(NamedTuple):
    """Every source token of a pair with every target token of it."""

    x: Int[np.ndarray, " C"]
    y: Int[np.ndarray, " C"]
    asks: Int[np.ndarray, " C"]  # which y of which pair it is: its count of one is shared out among these


def learn_lexicon(pairs: PairIndex, target: int) -> Lexicon:
    """From pairs of ids; those of the target side are below `target`."""
    cells = gather(pairs)
    keys, cell = np.unique(cells.x.astype(np.int64) * target + cells.y, return_inverse=True)
    x, t = keys // target, np.ones(len(keys))
    for _ in range(ROUNDS):
        weights = t[cell]
        counts = np.bincount(cell, weights / np.bincount(cells.asks, weights)[cells.asks])
        t = counts / np.bincount(x, counts)[x]
    once = np.unique(cells.asks, return_index=True)[1]  # one cell of each y of each pair
    frequent = np.argsort(-np.bincount(cells.y[once], minlength=target), kind="stable")[:ALWAYS]
    return Lexicon(x, keys % target, t, frequent)


def gather(pairs: PairIndex) -> Cells:
    parts, asked, count = list[Cells](), 0, 0
    for row in spread(len(pairs)):
        xs, ys = (np.unique(side).astype(np.int32) for side in pairs[row])
        which = np.repeat(np.arange(asked, asked + len(ys), dtype=np.int32), len(xs))
        if count + len(which) > CELLS:
            break
        parts.append(Cells(np.tile(xs, len(ys)), np.repeat(ys, len(xs)), which))
        asked, count = asked + len(ys), count + len(which)
    return Cells(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def spread(count: int) -> Iterator[int]:
    """All places below `count`, in an order whose every beginning is spread over them."""
    apart = max(1, count // 1000)
    for first in range(apart):
        yield from range(first, count, apart)
