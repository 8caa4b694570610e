"""How good a classifier is: which labels it gave to which, and what follows from that.

accuracy     right / all, with Wilson's 95 % interval (Wilson 1927)
precision    of those it gave a label, how many have it          P = right / given
recall       of those that have a label, how many it gave it to  R = right / there
F1           2 P R / (P + R); macro-F1 is the mean over the labels that are there or were given
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from jaxtyping import Int

from dragoman.decoding.classify import Classifier
from dragoman.errors import DataError
from dragoman.text.labels import Labelled, number_of

AT_ONCE = 2000  # texts classified together at most
Z = 1.959964  # standard deviations that hold 95 % of a normal distribution


@dataclass(frozen=True)
class ClassScore:
    label: str
    texts: int  # that have this label
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Confusion:
    classes: tuple[str, ...]
    counts: Int[np.ndarray, "C C"]  # a row for each right label, a column for each given one
    counted: str = "texts"  # or images: what was labelled

    @property
    def texts(self) -> int:
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        return int(self.counts.trace())

    @property
    def accuracy(self) -> float:
        return self.right / max(1, self.texts)

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, self.texts)

    @property
    def by_class(self) -> list[ClassScore]:
        right, there, given = self.counts.diagonal(), self.counts.sum(axis=1), self.counts.sum(axis=0)
        rows = zip(self.classes, right.tolist(), there.tolist(), given.tolist(), strict=True)
        return [ClassScore(name, n, ratio(r, g), ratio(r, n), ratio(2 * r, n + g)) for name, r, n, g in rows]

    @property
    def macro_f1(self) -> float:
        met = self.counts.sum(axis=1) + self.counts.sum(axis=0) > 0
        found = [score.f1 for score, is_met in zip(self.by_class, met, strict=True) if is_met]
        return sum(found) / max(1, len(found))


def score_classifier(
    classifier: Classifier, texts: Iterator[Labelled], name: str, notice: Callable[[str], None] | None = None
) -> Confusion:
    """Its labels beside the right ones, a chunk of texts at a time. `name` is the corpus's, should it be empty."""
    numbers = {label: number for number, label in enumerate(classifier.classes)}
    wanted, given = list[int](), list[int]()
    while chunk := list(islice(texts, AT_ONCE)):
        wanted += [number_of(found, numbers) for found in chunk]
        labelled = classifier.classify([one.text for one in chunk], first_line=len(given) + 1, notice=notice)
        given += [numbers[one.label] for one in labelled]
    if not wanted:
        raise DataError("E-CLS-02", f"{name} holds no labelled text to score; each line is label<TAB>text")
    return confusion_of(classifier.classes, wanted, given)


def confusion_of(classes: tuple[str, ...], wanted: Sequence[int], given: Sequence[int]) -> Confusion:
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (np.array(wanted, dtype=np.int64), np.array(given, dtype=np.int64)), 1)
    return Confusion(classes, counts)


def ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def wilson(right: int, of: int) -> tuple[float, float]:
    """(p̂ + z²/2n ± z √(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n): never below 0 nor above 1, and right for few texts too."""
    if of == 0:
        return 0.0, 1.0
    share, spread = right / of, Z * Z / of
    middle = share + spread / 2
    half = Z * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    low, high = (middle - half) / (1 + spread), (middle + half) / (1 + spread)
    return min(share, max(0.0, low)), max(share, min(1.0, high))  # rounded, all right could lie above the interval
