"""A model that reads images, beside a corpus that has the right answers."""

from itertools import islice

import numpy as np

from dragoman.decoding.images import ImageClassifier, ImageRegressor, ImageSegmenter
from dragoman.errors import DataError
from dragoman.evaluation.confusion import Confusion, confusion_of
from dragoman.evaluation.numbers import NumberScores, measure_numbers
from dragoman.evaluation.overlap import Overlap, overlap_of
from dragoman.images.answers import ClassAnswers, MaskAnswers, NumberAnswers
from dragoman.images.corpus import ImageCorpus

AT_ONCE = 256  # masks compared together


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


def score_masks(model: ImageSegmenter, corpus: ImageCorpus) -> Overlap:
    """Masks a block at a time: they may be many."""
    wanted = MaskAnswers(model.classes, tuple(model.values.tolist())).of(corpus, model.form)
    given = model.masks(corpus.pixels(model.form))
    found = Overlap(model.classes, np.zeros((len(model.classes),) * 2, np.int64), 0)
    while block := list(islice(zip(wanted, given, strict=True), AT_ONCE)):
        found += overlap_of(model.classes, *(np.stack(side) for side in zip(*block, strict=True)))
    refuse_none(corpus, found.images)
    return found


def refuse_none(corpus: ImageCorpus, images: int) -> None:
    if not images:
        raise DataError("E-IMG-02", f"{corpus.name} holds no image to score")
