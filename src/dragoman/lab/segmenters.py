"""The exam of models that label every pixel: how well what each marks lies over what it should."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from dragoman.evaluation.overlap import EachOverlap, Overlap, measure_masks
from dragoman.evaluation.resampling import paired_images
from dragoman.evaluation.scores import Score
from dragoman.evaluation.significance import Paired
from dragoman.images.answers import MaskAnswers
from dragoman.images.pixels import resize_mask
from dragoman.jobs.open import load
from dragoman.lab.asked import Asked
from dragoman.lab.items import Items, read_test
from dragoman.lab.results import Segmented


@dataclass(frozen=True)
class MaskExam(Items):
    """What a model put out is kept as its overlaps: of each image, and each label, pixels that have it and were given
    it / pixels that have it or were given it."""

    kind: ClassVar[type[Segmented]] = Segmented
    file: ClassVar[str] = "overlaps.txt"

    def measure(self, run: Path) -> Segmented:
        segmenter: Any = load(run)
        told, seconds = self.ask(lambda given: list(segmenter.masks(segmenter.pixels(given))))
        answers = MaskAnswers(segmenter.classes, tuple(segmenter.values.tolist()))
        masks = (
            (answers.numbered(resize_mask(item.right, segmenter.form.size), item.name), mask)
            for item, mask in zip(self.items, told, strict=True)
        )
        whole, each, interval = measure_masks(segmenter.classes, masks)
        return Segmented(
            parameters=sum(parameter.numel() for parameter in segmenter.model.parameters()),
            threads=torch.get_num_threads(),
            seconds_per_1000=seconds,
            scores=scores_of(whole, interval),
            outputs=write_overlaps(each),
            interval=interval,
            iou=whole.iou,
        )

    def compare(self, first: list[str], second: list[str]) -> list[Paired]:
        a, b = read_overlaps(first), read_overlaps(second)
        scores = 100 * a.mean_iou(), 100 * b.mean_iou()
        return [paired_images("mean IoU", scores, len(first), lambda rows: b.mean_iou(rows) - a.mean_iou(rows))]


def read_exam(asked: Asked) -> MaskExam:
    return MaskExam(*read_test(asked))


def scores_of(found: Overlap, interval: tuple[float, float]) -> list[Score]:
    low, high = interval
    signature = "mean over the labels; 95 % of 1,000 resamples of the images"
    mean_iou = Score("mean IoU", 100 * found.mean_iou, 50 * (high - low), signature, (100 * low, 100 * high))
    return [mean_iou, Score("pixel accuracy", 100 * found.accuracy, None, "over all pixels")]


def write_overlaps(each: EachOverlap) -> list[str]:
    rows = zip(each.both.tolist(), each.either.tolist(), strict=True)
    return ["\t".join(f"{b}/{e}" for b, e in zip(both, either, strict=True)) for both, either in rows]


def read_overlaps(outputs: Sequence[str]) -> EachOverlap:
    pairs = np.array([[pair.split("/") for pair in line.split("\t")] for line in outputs], dtype=np.int64)
    return EachOverlap(pairs[:, :, 0], pairs[:, :, 1])
