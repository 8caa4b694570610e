"""The exam of classifiers: the same labelled items for all; how many each labels right, how fast, and where they
differ."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any, ClassVar

import torch

from dragoman.errors import DataError
from dragoman.evaluation.confusion import Confusion, confusion_of
from dragoman.evaluation.scores import Score
from dragoman.evaluation.significance import Paired
from dragoman.jobs.open import load
from dragoman.lab.asked import Asked
from dragoman.lab.items import Items, read_test
from dragoman.lab.results import Labelled


@dataclass(frozen=True)
class LabelExam(Items):
    kind: ClassVar[type[Labelled]] = Labelled
    file: ClassVar[str] = "labels.txt"

    def measure(self, run: Path) -> Labelled:
        classifier: Any = load(run)
        outputs, seconds = self.ask(lambda given: [found.label for found in classifier.classify(given)])
        found = self.confusion(classifier.classes, outputs)
        return Labelled(
            parameters=sum(parameter.numel() for parameter in classifier.model.parameters()),
            threads=torch.get_num_threads(),
            seconds_per_1000=seconds,
            scores=scores_of(found),
            outputs=outputs,
            interval=found.interval,
            by_class=found.by_class,
        )

    def confusion(self, classes: tuple[str, ...], outputs: list[str]) -> Confusion:
        numbers = {label: number for number, label in enumerate(classes)}
        unknown = [label for label in self.labels if label not in numbers]
        if unknown:
            raise DataError(
                "E-CMP-08",
                f"the test set has the label {unknown[0]!r} and the training data have not "
                f"(known: {', '.join(classes[:8])}); mend or remove those items",
            )
        return confusion_of(classes, [numbers[label] for label in self.labels], [numbers[label] for label in outputs])

    def compare(self, first: list[str], second: list[str]) -> list[Paired]:
        return [mcnemar(first, second, self.labels)]


def read_exam(asked: Asked) -> LabelExam:
    return LabelExam(*read_test(asked))


def scores_of(found: Confusion) -> list[Score]:
    low, high = found.interval
    interval = (100 * low, 100 * high)
    accuracy = Score("accuracy", 100 * found.accuracy, 50 * (high - low), "Wilson's 95 % interval", interval)
    return [accuracy, Score("macro-F1", 100 * found.macro_f1, None, "mean over the labels")]


def ways(n: int, least: int) -> Iterator[int]:
    """C(n, k) for k = least … n, each from the one before: C(n, k + 1) = C(n, k) · (n − k) / (k + 1)."""
    count = comb(n, least)
    for k in range(least, n + 1):
        yield count
        count = count * (n - k) // (k + 1)


def mcnemar(first: list[str], second: list[str], labels: list[str]) -> Paired:
    """McNemar's exact test, one-sided: of the items that only one of the two gets right, a fair coin gives the better
    one as many as it has, or more.

        p = Σ_{k ≥ max(b, c)} C(b + c, k) / 2^(b + c)        b, c: right by the first alone, by the second alone
    """
    right = Counter((a == label, b == label) for a, b, label in zip(first, second, labels, strict=True))
    alone = (right[True, False], right[False, True])
    of = sum(alone)
    p = 1.0 if alone[0] == alone[1] else sum(ways(of, max(alone))) / 2**of
    shares = [100 * sum(map(str.__eq__, given, labels)) / len(labels) for given in (first, second)]
    return Paired("accuracy", shares[0], shares[1], p, "McNemar, exact, one-sided")
