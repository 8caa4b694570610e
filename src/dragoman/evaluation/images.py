"""A model that reads images, beside a corpus that has the right answers."""

import numpy as np

from dragoman.decoding.images import ImageClassifier, ImageRegressor, ImageSegmenter
from dragoman.errors import DataError
from dragoman.evaluation.confusion import Confusion, confusion_of
from dragoman.evaluation.numbers import NumberScores, measure_numbers
from dragoman.evaluation.overlap import MaskScores, measure_masks
from dragoman.images.answers import ClassAnswers, MaskAnswers, NumberAnswers
from dragoman.images.corpus import ImageCorpus


def score_labels(model: ImageClassifier, corpus: ImageCorpus) -> Confusion:
    wanted = list(ClassAnswers(model.classes).of(corpus, model.form))
    numbers = {label: number for number, label in enumerate(model.classes)}
    given = [numbers[one.label] for one in model.label(corpus.pixels(model.form))]
    refuse_none(corpus, len(wanted))
    return Confusion(model.classes, confusion_of(model.classes, wanted, given).counts, "images")


def score_numbers(model: ImageRegressor, corpus: ImageCorpus) -> NumberScores:
    wanted = list(NumberAnswers(model.names).of(corpus, model.form))
    refuse_none(corpus, len(wanted))
    return measure_numbers(model.names, np.stack(wanted), model.numbers(corpus.pixels(model.form)))


def score_masks(model: ImageSegmenter, corpus: ImageCorpus) -> MaskScores:
    wanted = MaskAnswers(model.classes, tuple(model.values.tolist())).of(corpus, model.form)
    found = measure_masks(model.classes, zip(wanted, model.masks(corpus.pixels(model.form)), strict=True))
    refuse_none(corpus, found.whole.images)
    return found


def refuse_none(corpus: ImageCorpus, images: int) -> None:
    if not images:
        raise DataError("E-IMG-02", f"{corpus.name} holds no image to score")
