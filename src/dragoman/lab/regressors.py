"""The exam of models that tell numbers of images: how much of the numbers each explains, and how far off it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from dragoman.errors import DataError
from dragoman.evaluation.numbers import NumberScores, explained, explained_more, measure_numbers
from dragoman.evaluation.resampling import paired_images
from dragoman.evaluation.scores import Score
from dragoman.evaluation.significance import Paired
from dragoman.images.corpus import find_images
from dragoman.jobs.open import load
from dragoman.lab.asked import Asked
from dragoman.lab.items import Items, read_test
from dragoman.lab.results import Numbered


@dataclass(frozen=True)
class NumberExam(Items):
    kind: ClassVar[type[Numbered]] = Numbered
    file: ClassVar[str] = "numbers.txt"

    @property
    def right(self) -> Float[np.ndarray, "N K"]:
        return np.stack([item.right for item in self.items])

    def measure(self, run: Path) -> Numbered:
        regressor: Any = load(run)
        told, seconds = self.ask(lambda given: regressor.numbers(regressor.pixels(given)))
        found = measure_numbers(regressor.names, self.right, told)
        return Numbered(
            parameters=sum(parameter.numel() for parameter in regressor.model.parameters()),
            threads=torch.get_num_threads(),
            seconds_per_1000=seconds,
            scores=scores_of(found),
            outputs=["\t".join(map(repr, row)) for row in told.tolist()],
            interval=found.r2_interval,
            each=found.each,
        )

    def compare(self, first: list[str], second: list[str]) -> list[Paired]:
        """By the squared errors on each image: their difference, as a share of the variance, is that of R²."""
        told = [read_numbers(outputs) for outputs in (first, second)]
        gains = explained_more(self.right, *told)
        a, b = (float(explained(self.right, one).mean()) for one in told)
        return [paired_images("R²", (a, b), len(gains), lambda rows: float(gains[rows].mean()))]


def read_exam(asked: Asked) -> NumberExam:
    items, hashed = read_test(asked)
    learned = find_images(asked.corpora).numbers()[1].shape[1]
    if len(items[0].right) != learned:
        raise DataError(
            "E-IMG-10",
            f"the test set has {len(items[0].right)} numbers an image and the training data {learned}; give as many",
        )
    return NumberExam(items, hashed)


def scores_of(found: NumberScores) -> list[Score]:
    low, high = found.r2_interval
    signature = "mean over the numbers; 95 % of 1,000 resamples of the images"
    r2 = Score("R²", found.r2, (high - low) / 2, signature, (low, high))
    return [r2, Score("mean error", found.mean_error, None, "mean over the numbers, in their own units")]


def read_numbers(outputs: Sequence[str]) -> Float[np.ndarray, "N K"]:
    return np.array([line.split("\t") for line in outputs], dtype=np.float64)
