"""Words and their neighbours, as word2vec is shown them: piece after piece of a text, thinned out by chance.

A text is one long row of ids with `end` after each line; neighbours stand on the same line.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from dragoman.text.index import Ids
from dragoman.text.special import SpecialIds

LENGTH = 32  # words in a block: each is compared with each other one, as one small matrix
DRAWN = 32  # random words for a block
AT_ONCE = 1 << 22  # ids counted at a time


class Blocks(NamedTuple):
    """Words in the order of the text, cut into blocks; only words of one block are neighbours."""

    words: Int[Tensor, "N L"]
    line: Int[Tensor, "N L"]  # the line that each stands on; −1 where a block is not full
    reach: Int[Tensor, "N L"]  # how far each looks to both sides
    drawn: Int[Tensor, "N K"]  # at random, to be told apart from neighbours
    read: int  # ids of the text that this was made of

    def foretold(self) -> Int[Tensor, "N M"]:
        """All that might be: the words of each block, then the random ones."""
        return torch.cat([self.words, self.drawn], dim=1)

    def near(self) -> Bool[Tensor, "N L L"]:
        """Whether j looks as far as i: place (i, j)."""
        near = distances(self.words.shape[1]) <= self.reach[:, None, :]
        near &= self.line[:, :, None] == self.line[:, None, :]
        return near.logical_and_(self.line[:, None, :] >= 0)


@cache
def distances(length: int) -> Int[Tensor, "L L"]:
    """Between any two places of a block; from a place to itself it is as far as to no other, for it is no neighbour."""
    places = torch.arange(length)
    return (places[:, None] - places).abs().fill_diagonal_(length)


class BlockedText:
    """Batch k of an epoch, a function of (seed, epoch, k): the k-th piece of the text, without what chance left out.

    A word whose share of the text is f stays with probability √(t/f) + t/f, which is above 1 for rare ones; those left
    then stand closer together. Each looks 1 … reach words far, all numbers being equally likely, so that close
    neighbours are looked at more often. Random words are drawn by f^¾ (Mikolov et al. 2013).
    """

    def __init__(
        self,
        ids: Ids,
        counts: Int[np.ndarray, " V"],
        special: SpecialIds,
        *,
        reach: int,
        sample: float,
        tokens: int,
        seed: int,
    ) -> None:
        self.ids, self.seed, self.reach, self.size = ids, seed, reach, tokens
        self.end = special.end
        self.stays = chance_to_stay(counts, sample)
        self.below = np.cumsum(chance_to_draw(counts))  # that it is this word or one before it
        self.below /= self.below[-1]  # 1 to the last digit

    def __len__(self) -> int:
        return max(1, len(self.ids) // self.size)

    def batch(self, epoch: int, k: int) -> Blocks:
        random = np.random.default_rng([self.seed, epoch, k])
        last = len(self.ids) if k == len(self) - 1 else (k + 1) * self.size
        piece = np.asarray(self.ids[k * self.size : last]).astype(np.int64)
        stays = random.random(len(piece)) < self.stays[piece]
        lines = np.cumsum(piece == self.end)
        filled = (fill(piece[stays], self.end), fill(lines[stays], -1))
        reach = random.integers(1, self.reach + 1, filled[0].shape)
        drawn = self.draw(len(reach) * DRAWN, random).reshape(-1, DRAWN)
        words, line, looks, others = (torch.from_numpy(part) for part in (*filled, reach, drawn))
        return Blocks(words, line, looks, others, read=len(piece))

    def draw(self, count: int, random: np.random.Generator) -> Int[np.ndarray, " N"]:
        """Random words. Chances in order are found faster, so they are put in disorder afterwards."""
        found = np.searchsorted(self.below, np.sort(random.random(count)), side="right")
        random.shuffle(found)
        return found


def count_words(ids: Ids, vocabulary: int, special: SpecialIds) -> Int[np.ndarray, " V"]:
    """How often each word is there; marks with a meaning of their own are no words."""
    counts = np.zeros(vocabulary, np.int64)
    for start in range(0, len(ids), AT_ONCE):
        counts += np.bincount(ids[start : start + AT_ONCE], minlength=vocabulary)
    counts[list(special.pieces())] = 0
    return counts


def chance_to_stay(counts: Int[np.ndarray, " V"], sample: float) -> Float[np.ndarray, " V"]:
    there = counts > 0
    if not sample:
        return there.astype(float)
    ratio = sample * counts.sum() / np.maximum(1, counts)
    return np.where(there, np.sqrt(ratio) + ratio, 0.0)


def chance_to_draw(counts: Int[np.ndarray, " V"]) -> Float[np.ndarray, " V"]:
    powers = counts**0.75
    return powers / powers.sum()


def fill(row: NDArray[np.int64], filler: int) -> Int[np.ndarray, "N L"]:
    """A row as blocks, one at least; the last one is filled up."""
    blocks = np.full(max(1, -(-len(row) // LENGTH)) * LENGTH, filler, dtype=np.int64)
    blocks[: len(row)] = row
    return blocks.reshape(-1, LENGTH)
