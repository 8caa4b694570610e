"""How good a model is that labels every pixel.

IoU              of a label: pixels that have it and were given it / pixels that have it or were given it
mean IoU         the mean over the labels that are there or were given
pixel accuracy   pixels labelled right / all
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Integer


@dataclass(frozen=True)
class Overlap:
    classes: tuple[str, ...]
    counts: Int[np.ndarray, "C C"]  # pixels: a row for each right label, a column for each given one
    images: int

    @property
    def accuracy(self) -> float:
        return float(self.counts.trace() / max(1, self.counts.sum()))

    @property
    def iou(self) -> dict[str, float]:
        """Of each label that is there or was given."""
        both = self.counts.diagonal()
        either = self.counts.sum(axis=0) + self.counts.sum(axis=1) - both
        return {name: float(b / e) for name, b, e in zip(self.classes, both, either, strict=True) if e}

    @property
    def mean_iou(self) -> float:
        return sum(self.iou.values()) / max(1, len(self.iou))

    def __add__(self, other: "Overlap") -> "Overlap":
        return Overlap(self.classes, self.counts + other.counts, self.images + other.images)


def overlap_of(
    classes: tuple[str, ...], wanted: Integer[np.ndarray, "N H W"], told: Integer[np.ndarray, "N H W"]
) -> Overlap:
    size = len(classes)
    pairs = wanted.astype(np.int64).ravel() * size + told.astype(np.int64).ravel()
    return Overlap(classes, np.bincount(pairs, minlength=size**2).reshape(size, size), len(wanted))
