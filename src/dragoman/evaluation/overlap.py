"""How good a model is that labels every pixel.

IoU              of a label: pixels that have it and were given it / pixels that have it or were given it
mean IoU         the mean over the labels that are there or were given
pixel accuracy   pixels labelled right / all
interval         of the mean IoU: the middle 95 % of 1,000 resamples of the images
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Integer

from dragoman.evaluation.resampling import middle, resampled


@dataclass(frozen=True)
class Overlap:
    classes: tuple[str, ...]
    counts: Int[np.ndarray, "C C"]  # pixels: a row for each right label, a column for each given one
    images: int

    @property
    def accuracy(self) -> float:
        return float(self.counts.trace() / max(1, self.counts.sum()))

    @property
    def both(self) -> Int[np.ndarray, " C"]:
        return self.counts.diagonal()

    @property
    def either(self) -> Int[np.ndarray, " C"]:
        return self.counts.sum(axis=0) + self.counts.sum(axis=1) - self.both

    @property
    def iou(self) -> dict[str, float]:
        """Of each label that is there or was given."""
        return {name: float(b / e) for name, b, e in zip(self.classes, self.both, self.either, strict=True) if e}

    @property
    def mean_iou(self) -> float:
        return sum(self.iou.values()) / max(1, len(self.iou))

    def __add__(self, other: "Overlap") -> "Overlap":
        return Overlap(self.classes, self.counts + other.counts, self.images + other.images)

    @classmethod
    def of_none(cls, classes: tuple[str, ...]) -> "Overlap":
        return cls(classes, np.zeros((len(classes),) * 2, np.int64), 0)


@dataclass(frozen=True)
class EachOverlap:
    """Image by image, for those who draw some of them anew."""

    both: Int[np.ndarray, "N C"]
    either: Int[np.ndarray, "N C"]

    @classmethod
    def of(cls, found: Sequence[Overlap]) -> "EachOverlap":
        return cls(np.stack([one.both for one in found]), np.stack([one.either for one in found]))

    def mean_iou(self, rows: Int[np.ndarray, " R"] | None = None) -> float:
        """Over all images, or these of them, as often as they are named."""
        drawn = slice(None) if rows is None else rows
        both, either = self.both[drawn].sum(axis=0), self.either[drawn].sum(axis=0)
        met = either > 0
        return float((both[met] / either[met]).mean()) if met.any() else 0.0

    def of_each(self) -> Float[np.ndarray, " N"]:
        """The mean IoU of every single image."""
        met = self.either > 0
        shares = np.where(met, self.both / np.maximum(1, self.either), 0.0)
        return shares.sum(axis=1) / np.maximum(1, met.sum(axis=1))


def overlap_of(
    classes: tuple[str, ...], wanted: Integer[np.ndarray, "N H W"], told: Integer[np.ndarray, "N H W"]
) -> Overlap:
    size = len(classes)
    pairs = wanted.astype(np.int64).ravel() * size + told.astype(np.int64).ravel()
    return Overlap(classes, np.bincount(pairs, minlength=size**2).reshape(size, size), len(wanted))


class MaskScores(NamedTuple):
    whole: Overlap
    each: EachOverlap
    interval: tuple[float, float]  # of the mean IoU


Mask = Integer[np.ndarray, "H W"]


def measure_masks(classes: tuple[str, ...], masks: Iterable[tuple[Mask, Mask]]) -> MaskScores:
    """Of the right mask and the given one of each image. They may be many: only their counts are kept."""
    whole, found = Overlap.of_none(classes), list[Overlap]()
    for wanted, told in masks:
        found.append(overlap_of(classes, wanted[None], told[None]))
        whole += found[-1]
    if not found:
        return MaskScores(whole, EachOverlap(whole.both[None][:0], whole.either[None][:0]), (0.0, 0.0))
    each = EachOverlap.of(found)
    return MaskScores(whole, each, middle(resampled(len(found), each.mean_iou)))
