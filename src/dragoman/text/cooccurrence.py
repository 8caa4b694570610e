"""How often each word stands near each other one: a text as counts of pairs, in bounded memory, for GloVe.

    X[i, j] = Σ over all places where i and j are on one line, d ≤ reach words apart: 1/d        (X[i, j] = X[j, i])

A piece of the text is counted in memory and put away in several files, each for its share of all pairs; when the text
is read, a file after the other is added up. What is kept, some pairs aside for validation:

train.keys, train.counts   i · V + j of each pair that there is, and its count
valid.keys, valid.counts   the same, of the pairs held back
index.json                 how many there are; written last
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from dragoman.errors import DataError, SaveError
from dragoman.text.index import Ids, map_file
from dragoman.text.special import SpecialIds

HELD = 1 << 22  # pairs in memory at a time
HELD_BACK = 0.01  # of all pairs, for validation
MOST_FILES = 512


class Counts(NamedTuple):
    keys: Int[np.ndarray, " N"]
    counts: Float[np.ndarray, " N"]


class PairBatch(NamedTuple):
    words: Int[Tensor, " N"]
    neighbours: Int[Tensor, " N"]
    counts: Float[Tensor, " N"]


class PairOrder:
    """Batch k of an epoch, a function of (seed, epoch, k): every pair once, in an order that needs no memory.

    Place n has pair (a n + b) mod N, with a and b drawn for each epoch, a and N without a common divisor: in steps of a
    through the list, so that each batch has pairs of all of it.
    """

    def __init__(self, pairs: Counts, vocabulary: int, size: int, seed: int) -> None:
        self.pairs, self.vocabulary, self.seed = pairs, vocabulary, seed
        self.size = min(size, len(pairs.keys))

    def __len__(self) -> int:
        return max(1, len(self.pairs.keys) // self.size)

    def batch(self, epoch: int, k: int) -> PairBatch:
        total = len(self.pairs.keys)
        random = np.random.default_rng([self.seed, epoch])
        start, step = int(random.integers(total)), int(random.integers(1, total + 1))
        while gcd(step, total) > 1:
            step += 1
        last = total if k == len(self) - 1 else (k + 1) * self.size
        places = (start + step * np.arange(k * self.size, last)) % total
        words, neighbours = np.divmod(np.asarray(self.pairs.keys[places]), self.vocabulary)
        return PairBatch(*(torch.from_numpy(a) for a in (words, neighbours, np.asarray(self.pairs.counts[places]))))


def open_counts(folder: Path, part: str) -> Counts:
    try:
        pairs = json.loads((folder / "index.json").read_text())[part]
        found = Counts(
            map_file(folder / f"{part}.keys", np.dtype(np.int64)),
            map_file(folder / f"{part}.counts", np.dtype(np.float32)),
        )
        whole = len(found.keys) == len(found.counts) == pairs
    except (OSError, ValueError, LookupError, TypeError):
        whole = False
    if not whole:
        raise DataError("E-DATA-08", f"the counts of pairs in {folder} are damaged; begin anew with --fresh")
    return found


# ── counting ──────────────────────────────────────────────────────────────────────────────


def count_pairs(
    ids: Ids, vocabulary: int, special: SpecialIds, reach: int, folder: Path, *, held: int = HELD
) -> dict[str, int]:
    """Write the counts of a text; how many pairs there are in each part."""
    files = min(MOST_FILES, 1 + 2 * reach * len(ids) // held)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for piece in pieces(ids, vocabulary, special, reach, max(1, held // (2 * reach))):
            put_away(folder, piece, (shares(piece.keys, vocabulary) * files).astype(np.int64), files)
        for number in range(files):
            whole = add_up(take_out(folder, f"part-{number}"))
            back = shares(whole.keys, vocabulary) * files % 1 < HELD_BACK
            append(folder, "train", Counts(whole.keys[~back], whole.counts[~back]))
            append(folder, "valid", Counts(whole.keys[back], whole.counts[back]))
        found = {part: (folder / f"{part}.keys").stat().st_size // 8 for part in ("train", "valid")}
        (folder / "index.json").write_text(json.dumps(found))
    except OSError as problem:
        raise SaveError("E-SAVE-01", f"the pairs could not be written to {folder} ({problem.strerror})") from problem
    return found


def pieces(ids: Ids, vocabulary: int, special: SpecialIds, reach: int, size: int) -> Iterator[Counts]:
    """Counts of one piece of the text after the other, each with the last words before it. What is no word is not
    there: its neighbours stand beside each other."""
    silent, lines = np.array(sorted(special.pieces())), 0
    words, line = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for start in range(0, len(ids), size):
        piece = np.asarray(ids[start : start + size]).astype(np.int64)
        numbers, known = lines + np.cumsum(piece == special.end), ~np.isin(piece, silent)
        lines, before = int(numbers[-1]), len(words)
        words, line = np.concatenate([words, piece[known]]), np.concatenate([line, numbers[known]])
        yield add_up(near_pairs(words, line, before, vocabulary, reach))
        words, line = words[-reach:], line[-reach:]


def near_pairs(words: NDArray[np.int64], line: NDArray[np.int64], before: int, vocabulary: int, reach: int) -> Counts:
    """Every pair whose second word is not one of those `before`, both ways; d words apart counts 1/d."""
    keys, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for distance in range(1, reach + 1):
        second = np.arange(max(before, distance), len(words))
        second = second[line[second] == line[second - distance]]
        a, b = words[second - distance], words[second]
        keys += [a * vocabulary + b, b * vocabulary + a]
        weights.append(np.full(2 * len(a), 1 / distance, np.float32))
    return Counts(np.concatenate(keys), np.concatenate(weights))


def add_up(counts: Counts) -> Counts:
    """Each pair once."""
    order = np.argsort(counts.keys, kind="stable")
    keys, values = counts.keys[order], counts.counts[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.add.reduceat(values.astype(np.float64), starts) if len(keys) else values
    return Counts(keys[starts], sums.astype(np.float32))


def shares(keys: NDArray[np.int64], vocabulary: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each pair, as if at random, and the same both ways."""
    i, j = np.divmod(keys, vocabulary)
    mixed = (np.minimum(i, j) * vocabulary + np.maximum(i, j)).astype(np.uint64)
    for _ in range(2):
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(11)).astype(np.float64) / (1 << 53)


def put_away(folder: Path, counts: Counts, numbers: NDArray[np.int64], files: int) -> None:
    """Each pair to the end of the file of its number."""
    order = np.argsort(numbers, kind="stable")
    keys, values = counts.keys[order], counts.counts[order]
    bounds = np.searchsorted(numbers[order], np.arange(files + 1)).tolist()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        append(folder, f"part-{number}", Counts(keys[start:stop], values[start:stop]))


def append(folder: Path, name: str, counts: Counts) -> None:
    for kind, values in counts._asdict().items():
        with (folder / f"{name}.{kind}").open("ab") as file:
            file.write(values.tobytes())


def take_out(folder: Path, name: str) -> Counts:
    paths = [folder / f"{name}.{kind}" for kind in Counts._fields]
    found = Counts(np.fromfile(paths[0], np.int64), np.fromfile(paths[1], np.float32))
    for path in paths:
        path.unlink()
    return found
