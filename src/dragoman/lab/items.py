"""Items with a right answer each, the same for all models: what every exam but that of translators has in common.

item      right answer                  exam
text      its label                     classifiers
image     its label                     classifiers
image     its numbers                   regressors
image     a label for each pixel        segmenters
"""

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dragoman.errors import DataError
from dragoman.evaluation.significance import Paired
from dragoman.images.corpus import ImageCorpus, find_images
from dragoman.images.pixels import Form
from dragoman.jobs.pictures import ImagesConfig
from dragoman.lab.asked import Asked
from dragoman.lab.results import HeldOutItems, Measured
from dragoman.text.corpus import Dropped
from dragoman.text.labels import find_labelled

WARM_UP = 8  # items answered before the clock starts
Told = TypeVar("Told")


class Item(NamedTuple):
    given: Any  # to the model
    name: str  # as it is shown
    label: str  # the right answer: a label, or numbers with tabs between them; of a mask its hash
    sha256: str  # of what is given
    right: Any = None  # the numbers or the mask themselves


@dataclass(frozen=True)
class Items(ABC):
    items: list[Item]
    sha256: str

    @property
    def labels(self) -> list[str]:
        return [item.label for item in self.items]

    @abstractmethod
    def measure(self, run: Path) -> Measured: ...
    @abstractmethod
    def compare(self, first: list[str], second: list[str]) -> list[Paired]: ...

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

    def ask(self, answer: Callable[[list[Any]], Told]) -> tuple[Told, float]:
        """What is answered, and the seconds that it takes for 1,000 of them."""
        given = [item.given for item in self.items]
        answer(given[:WARM_UP])
        began = time.perf_counter()
        told = answer(given)
        return told, 1000 * (time.perf_counter() - began) / len(given)


def read_test(asked: Asked) -> tuple[list[Item], str]:
    """All items to measure on, and a hash of them with their right answers."""
    items = list(read_items(asked, asked.test))
    if not items:
        raise DataError("E-CMP-06", f"{' '.join(asked.test)} holds no labelled item; give --test what to measure on")
    hashes = "\n".join(f"{item.label}\t{item.sha256}" for item in items)
    return items, hashlib.sha256(hashes.encode()).hexdigest()


def read_items(asked: Asked, files: list[str]) -> Iterator[Item]:
    if asked.of_images:
        yield from read_images(asked, files)
        return
    for found in find_labelled(files, asked.encoding).texts(Dropped()):
        yield Item(found.text, found.text, found.label, hashlib.sha256(found.text.encode()).hexdigest())


def read_images(asked: Asked, files: list[str]) -> Iterator[Item]:
    corpus = find_images(files)
    form = corpus.form(ImagesConfig.read(asked.settings.get("images", {}), section="images").asked_size())
    rows = zip(corpus.pixels(form), corpus.names(), answers_in(corpus, asked.learned, form), strict=True)
    for pixels, name, (label, right) in rows:
        yield Item(np.moveaxis(pixels, 0, -1), name, label, hashlib.sha256(pixels.tobytes()).hexdigest(), right)


def answers_in(corpus: ImageCorpus, task: str, form: Form) -> Iterator[tuple[str, Any]]:
    match task:
        case "regress":
            return (("\t".join(map(repr, row.tolist())), row) for row in corpus.numbers()[1])
        case "segment":
            return ((hashlib.sha256(mask.tobytes()).hexdigest(), mask) for mask in corpus.masks(form.size))
        case _:
            return ((label, None) for label in corpus.labels())
