"""A corpus in numbers: how much there is, how long its sentences are, how often it repeats itself."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.text.corpus import Corpus, Dropped, keep


@dataclass(frozen=True)
class Side:
    language: str
    words: int  # separated by spaces
    characters: int
    mean_length: float  # of a sentence, in words
    median_length: float
    length_95: float  # 95 % of the sentences have at most as many words
    longest: int
    distinct_words: int
    distinct_characters: int


@dataclass(frozen=True)
class Stats:
    pairs: int  # with text on both sides
    empty: int  # pairs with an empty side; they count nowhere else
    duplicates: float  # share of the pairs that stood there before
    length_ratio: float  # target to source, in characters
    shared_characters: int  # letters and signs that both sides use
    source: Side
    target: Side


class Tally:
    """What is counted of one side while reading; words by their hashes, never the sentences."""

    def __init__(self) -> None:
        self.lengths = array("I")
        self.characters = 0
        self.words: set[int] = set()
        self.alphabet: set[str] = set()

    def add(self, text: str) -> None:
        words = text.split(" ")
        self.lengths.append(len(words))
        self.characters += len(text)
        self.words.update(map(hash, words))
        self.alphabet.update(text)

    def sum_up(self, language: str) -> Side:
        lengths = np.array(self.lengths or [0], np.int64)
        return Side(
            language=language,
            words=int(lengths.sum()),
            characters=self.characters,
            mean_length=round(float(lengths.mean()), 2),
            median_length=float(np.median(lengths)),
            length_95=float(np.quantile(lengths, 0.95, method="inverted_cdf")),
            longest=int(lengths.max()),
            distinct_words=len(self.words),
            distinct_characters=len(self.alphabet),
        )


def stats(corpus: Corpus) -> Stats:
    dropped, seen = Dropped(), array("q")
    source, target = Tally(), Tally()
    number = 0
    for number, raw in enumerate(corpus.pairs(), start=1):
        pair = keep(raw, number, dropped)
        if pair is not None:
            seen.append(hash(pair))
            source.add(pair.source)
            target.add(pair.target)
    return Stats(
        pairs=len(seen),
        empty=number - len(seen),
        duplicates=round(share_repeated(seen), 4),
        length_ratio=round(target.characters / max(source.characters, 1), 3),
        shared_characters=len(source.alphabet & target.alphabet),
        source=source.sum_up(corpus.languages[0]),
        target=target.sum_up(corpus.languages[1]),
    )


def share_repeated(hashes: Sequence[int]) -> float:
    return 1 - len(np.unique(np.array(hashes, np.int64))) / len(hashes) if len(hashes) else 0.0
