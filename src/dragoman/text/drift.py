"""Where two files stop being translations of each other, told without knowing either language.

A line and its translation have like lengths and share numbers, punctuation and names. How like, the corpus itself
shows: pairs as they stand are held against pairs taken at random, and each degree of likeness earns the score

    log( how often among the pairs that fit / how often among random pairs )

Then the best path is sought from the first line to the last (Viterbi 1967). Its states are the shifts, source line i
beside target line i + shift, and "lost", which scores nothing; a change of state costs CHANGE. One missing line makes
every later pair a random one, so a dozen lines are enough to see it.
"""

import functools
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8, UInt32, UInt64

CHANGE = 20.0  # odds of e^20 to 1 against a change where there is none: ten million lines seldom show a false one
SURE = 80.0  # nats by which pairs must differ from random ones; pure noise reaches about 50
SMALLEST_REACH, LARGEST_REACH = 5, 40
BLOCK = 16  # lines; the path is sought in steps of blocks, then the line within them
PIECE = 1 << 16  # lines compared at a time, to keep memory small
FEW = 30  # lines from which nothing can be learned
MARK = re.compile(r"\d+|[^\w\s]|\w{4,}")
SHARED = np.array([0.05, 0.15, 0.3, 0.5])
LENGTHS = 12
DEGREES = LENGTHS * (len(SHARED) + 1)


class Trace(NamedTuple):
    """What is kept of one side's lines: twelve bytes each."""

    lengths: UInt32[np.ndarray, " N"]  # in characters
    marks: UInt64[np.ndarray, " N"]  # a bit for every number, punctuation sign and beginning of a word, hashed to 64


class Drift(NamedTuple):
    line: int  # the first source line that stands beside a wrong target line; counted from 1
    shift: int | None  # from there on source line i belongs to target line i + shift; None where no small shift fits
    before: float  # by what share the lengths of a pair differ, on the median, before that line
    after: float


def trace(lines: Iterable[str]) -> Trace:
    lengths, marks = array("I"), array("Q")
    for line in lines:
        lengths.append(len(line))
        marks.append(marks_of(line))
    return Trace(np.array(lengths, np.uint32), np.array(marks, np.uint64))


def marks_of(line: str) -> int:
    marks = 0
    for word in MARK.findall(line):
        marks |= bit_of(word[:4])  # four letters, so that "Musiker" meets "musician"
    return marks


@functools.lru_cache(maxsize=1 << 16)
def bit_of(word: str) -> int:
    return 1 << (zlib.crc32(word.casefold().encode("utf-8", "replace")) & 63)


def find_drift(source: Trace, target: Trace) -> Drift | None:
    """The first place from which another shift fits better, or none does; None where no such place is seen."""
    if min(len(source.lengths), len(target.lengths)) < FEW:
        return None
    reach = min(max(SMALLEST_REACH, abs(len(source.lengths) - len(target.lengths)) + 1), LARGEST_REACH)
    shifts = [0, *(sign * size for size in range(1, reach + 1) for sign in (1, -1))]
    likeness = Likeness(source, target)
    strength, scores = max((likeness.learn(shift) for shift in shifts), key=lambda learned: learned[0])
    if strength < SURE:
        return None
    for _ in range(2):  # once more, with scores learned from all the pairs that fit, and only from them
        path = best_path(np.stack([sum_blocks(scores[likeness.beside(shift)]) for shift in shifts], axis=1))
        scores = learn_scores(likeness.along(path, shifts), likeness.random)
    changed = np.flatnonzero(path)
    if not len(changed):
        return None
    state = int(path[changed[0]])
    shift = shifts[state] if state < len(shifts) else None
    now = scores[likeness.beside(0)]
    then = np.zeros_like(now) if shift is None else scores[likeness.beside(shift)]
    line = best_cut(now, then, int(changed[0]))
    return Drift(line + 1, shift, likeness.difference(line - 200, line), likeness.difference(line, line + 200))


class Likeness:
    """How like source line i and target line i + shift are, as one of DEGREES; DEGREES itself where one is missing."""

    def __init__(self, source: Trace, target: Trace) -> None:
        self.lines = min(len(source.lengths), len(target.lengths))
        self.source, self.target = source, target
        self.source_log, self.target_log = (np.log(side.lengths + np.float32(5)) for side in (source, target))
        self.ratio = np.median(self.target_log) - np.median(self.source_log)
        rows = np.arange(min(self.lines, PIECE))
        chance = np.random.default_rng(0)  # not at a fixed distance: a text may repeat itself
        far = [self.compare(rows, chance.integers(0, self.lines, len(rows))) for _ in range(4)]
        lengths, shared = (np.concatenate(values) for values in zip(*far, strict=True))
        # so that random pairs fall into every degree of length alike
        self.edges = np.quantile(lengths, np.arange(1, LENGTHS) / LENGTHS)
        self.random = self.degree(lengths, shared)

    def compare(
        self, rows: Int[np.ndarray, " P"], columns: Int[np.ndarray, " P"]
    ) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """By how much the log lengths differ from the usual, and what share of their marks the lines have in common."""
        lengths = np.abs(self.target_log[columns] - self.source_log[rows] - self.ratio)
        ours, theirs = self.source.marks[rows], self.target.marks[columns]
        return lengths, np.bitwise_count(ours & theirs) / np.maximum(np.bitwise_count(ours | theirs), 1)

    def degree(self, lengths: Float[np.ndarray, " P"], shared: Float[np.ndarray, " P"]) -> UInt8[np.ndarray, " P"]:
        return (np.digitize(lengths, self.edges) + LENGTHS * np.digitize(shared, SHARED)).astype(np.uint8)

    def beside(self, shift: int) -> UInt8[np.ndarray, " N"]:
        found = np.full(self.lines, DEGREES, np.uint8)
        start, end = max(0, -shift), min(self.lines, len(self.target.lengths) - shift)
        for first in range(start, end, PIECE):
            rows = np.arange(first, min(first + PIECE, end))
            found[rows] = self.degree(*self.compare(rows, rows + shift))
        return found

    def learn(self, shift: int) -> tuple[float, Float32[np.ndarray, " d"]]:
        """Scores from the beginning of the file at this shift, as far as it goes well, and how sure they are."""
        return max(self.learn_beginnings(shift), key=lambda learned: learned[0])

    def learn_beginnings(self, shift: int) -> Iterator[tuple[float, Float32[np.ndarray, " d"]]]:
        """n · KL(pairs || random pairs), for longer and longer beginnings: it falls once wrong pairs are taken in."""
        beside, size = self.beside(shift), 64
        while size < 2 * self.lines or size == 64:  # a file of few lines has one beginning
            scores = learn_scores(beside[:size], self.random)
            yield float(scores[beside[:size]].sum()), scores
            size *= 2

    def along(self, path: Int[np.ndarray, " b"], shifts: list[int]) -> UInt8[np.ndarray, " P"]:
        """The degrees of those pairs that the path holds for fitting."""
        states = np.repeat(path, BLOCK)[: self.lines]
        used = [(state, shift) for state, shift in enumerate(shifts) if (path == state).any()]
        return np.concatenate([self.beside(0)[:0], *(self.beside(shift)[states == state] for state, shift in used)])

    def difference(self, start: int, end: int) -> float:
        rows = np.arange(max(0, start), min(self.lines, end))
        return float(np.expm1(np.median(self.compare(rows, rows)[0]))) if len(rows) else 0.0


def learn_scores(fitting: UInt8[np.ndarray, " P"], random: UInt8[np.ndarray, " R"]) -> Float32[np.ndarray, " d"]:
    """log p(degree | fits) / p(degree | random), never under log 0.05, as corpora have noise; 0 if one is missing."""
    chance = np.bincount(random, minlength=DEGREES)[:DEGREES] + 0.5
    chance /= chance.sum()
    seen = np.bincount(fitting, minlength=DEGREES)[:DEGREES] + DEGREES * chance
    return np.append(np.log(0.95 * seen / seen.sum() / chance + 0.05), 0.0).astype(np.float32)


def sum_blocks(scores: Float32[np.ndarray, " N"]) -> Float32[np.ndarray, " b"]:
    return np.add.reduceat(scores, np.arange(0, len(scores), BLOCK))


def best_path(scores: Float32[np.ndarray, "b s"]) -> Int[np.ndarray, " b"]:
    """For each block the state of the best path; it starts in state 0, and state `s` is "lost"."""
    scores = np.pad(scores, ((0, 0), (0, 1)))
    states = np.arange(scores.shape[1])
    came_from = np.empty(scores.shape, np.int16)
    best = np.where(states == 0, 0.0, -CHANGE)
    for block, score in enumerate(scores):
        top = int(best.argmax())
        stays = best >= best[top] - CHANGE
        came_from[block] = np.where(stays, states, top)
        best = np.where(stays, best, best[top] - CHANGE) + score
    path = np.empty(len(scores), np.int64)
    state = int(best.argmax())
    for block in range(len(scores) - 1, -1, -1):
        path[block] = state
        state = int(came_from[block, state])
    return path


def best_cut(now: Float32[np.ndarray, " N"], then: Float32[np.ndarray, " N"], block: int) -> int:
    """The line near this block at which it is best to change from one row of scores to the other."""
    start, end = max(0, (block - 2) * BLOCK), (block + 2) * BLOCK
    gain = np.cumsum((now - then)[start:end])
    return start + int(np.argmax(np.concatenate([[0.0], gain])))
