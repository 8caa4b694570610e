"""The exam of classifiers: the same labelled items for all; how many each labels right, how fast, and where they
differ."""

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman.errors import DataError
from dragoman.evaluation.confusion import Confusion, confusion_of
from dragoman.evaluation.scores import Score
from dragoman.evaluation.significance import Paired
from dragoman.images.corpus import find_images
from dragoman.jobs.open import load
from dragoman.jobs.pictures import ImagesConfig
from dragoman.lab.asked import Asked
from dragoman.lab.results import HeldOutItems, Labelled
from dragoman.text.corpus import Dropped
from dragoman.text.labels import find_labelled

WARM_UP = 8  # items labelled before the clock starts


class Item(NamedTuple):
    given: Any  # to the classifier
    name: str  # as it is shown
    label: str
    sha256: str  # of what is given


class Items(NamedTuple):
    items: list[Item]
    sha256: str

    @property
    def labels(self) -> list[str]:
        return [item.label for item in self.items]

    def describe(self, asked: Asked) -> HeldOutItems:
        known = {item.sha256 for item in read_items(asked, asked.corpora)}
        shared = sum(item.sha256 in known for item in self.items)
        names = " ".join(Path(file).name for file in asked.test)
        leak = f"{shared:,} of {len(self.items):,} items of {names} also stand in the training data: scores flatter."
        return HeldOutItems(
            files=asked.test,
            items=len(self.items),
            sha256=self.sha256,
            in_training=shared,
            leak=leak if shared else "",
            names=[item.name for item in self.items],
            labels=self.labels,
        )

    def measure(self, run: Path) -> Labelled:
        classifier: Any = load(run)
        given = [item.given for item in self.items]
        classifier.classify(given[:WARM_UP])
        began = time.perf_counter()
        outputs = [found.label for found in classifier.classify(given)]
        seconds = time.perf_counter() - began
        found = self.confusion(classifier.classes, outputs)
        return Labelled(
            parameters=sum(parameter.numel() for parameter in classifier.model.parameters()),
            threads=torch.get_num_threads(),
            seconds_per_1000=1000 * seconds / len(given),
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


def scores_of(found: Confusion) -> list[Score]:
    low, high = found.interval
    accuracy = Score("accuracy", 100 * found.accuracy, 50 * (high - low), "Wilson's 95 % interval")
    return [accuracy, Score("macro-F1", 100 * found.macro_f1, None, "mean over the labels")]


def mcnemar(first: list[str], second: list[str], labels: list[str]) -> Paired:
    """McNemar's exact test, one-sided: of the items that only one of the two gets right, a fair coin gives the better
    one as many as it has, or more.

        p = Σ_{k ≥ max(b, c)} C(b + c, k) / 2^(b + c)        b, c: right by the first alone, by the second alone
    """
    right = Counter((a == label, b == label) for a, b, label in zip(first, second, labels, strict=True))
    alone = (right[True, False], right[False, True])
    of = sum(alone)
    p = 1.0 if alone[0] == alone[1] else sum(comb(of, k) for k in range(max(alone), of + 1)) / 2**of
    shares = [100 * sum(map(str.__eq__, given, labels)) / len(labels) for given in (first, second)]
    return Paired("accuracy", shares[0], shares[1], p, "McNemar, exact, one-sided")


def read_exam(asked: Asked) -> Items:
    items = list(read_items(asked, asked.test))
    if not items:
        raise DataError("E-CMP-06", f"{' '.join(asked.test)} holds no labelled item; give --test what to measure on")
    hashes = "\n".join(f"{item.label}\t{item.sha256}" for item in items)
    return Items(items, hashlib.sha256(hashes.encode()).hexdigest())


def read_items(asked: Asked, files: list[str]) -> Iterator[Item]:
    if asked.of_images:
        yield from read_images(asked, files)
        return
    for found in find_labelled(files, asked.encoding).texts(Dropped()):
        yield Item(found.text, found.text, found.label, hashlib.sha256(found.text.encode()).hexdigest())


def read_images(asked: Asked, files: list[str]) -> Iterator[Item]:
    corpus = find_images(files)
    form = corpus.form(ImagesConfig.read(asked.settings.get("images", {}), section="images").asked_size())
    rows = zip(corpus.pixels(form), corpus.names(), corpus.labels(), strict=True)
    for pixels, name, label in rows:
        yield Item(np.moveaxis(pixels, 0, -1), name, label, hashlib.sha256(pixels.tobytes()).hexdigest())
