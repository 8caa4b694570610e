"""What a comparison finds: plain values, as report.json holds them."""

from dataclasses import dataclass
from typing import Any

from dragoman.evaluation.confusion import ClassScore
from dragoman.evaluation.numbers import NumberScore
from dragoman.evaluation.scores import Bucket, Score
from dragoman.evaluation.significance import Paired


@dataclass(frozen=True)
class Curve:
    minutes: list[float]
    nats: list[float]  # per token


@dataclass(frozen=True)
class Trained:
    """One run: a model at one learning rate."""

    run: str  # its folder, within the comparison's
    rate: float
    steps: int
    epochs: float
    minutes: float  # of training and validating; preparing is not in it
    tokens_per_second: float  # target tokens, the median over the reports
    validation_nats: float  # of the model that was kept; the rate is chosen by it
    reason: str  # why it ended
    training: Curve
    validation: Curve


@dataclass(frozen=True)
class Looked:
    """Cross-attention, the mean of all heads of all blocks: a row for each token written."""

    written: list[str]
    read: list[str]
    weights: list[list[float]]


@dataclass(frozen=True)
class Sample:
    output: str
    attention: Looked | None  # None where the model has none


@dataclass(frozen=True)
class Measured:
    """A model on the test set."""

    parameters: int
    threads: int
    seconds_per_1000: float  # items, in batches
    scores: list[Score]  # such as BLEU, chrF, BLEU of lower-cased text; accuracy, macro-F1; R², mean error
    outputs: list[str]  # translations, labels, numbers, or how masks overlap with the right ones


@dataclass(frozen=True)
class Translated(Measured):
    beam: int
    by_length: list[Bucket]
    samples: list[Sample]  # as many as there are sentences to show


@dataclass(frozen=True)
class Labelled(Measured):
    interval: tuple[float, float]  # of the accuracy
    by_class: list[ClassScore]


@dataclass(frozen=True)
class Numbered(Measured):
    interval: tuple[float, float]  # of R²
    each: list[NumberScore]


@dataclass(frozen=True)
class Segmented(Measured):
    interval: tuple[float, float]  # of the mean IoU
    iou: dict[str, float]  # of each label that is there or was given


Outcome = Translated | Labelled | Numbered | Segmented


@dataclass(frozen=True)
class Compared:
    """All that is known of one model."""

    name: str
    family: str
    settings: dict[str, Any]  # of the model, as planned
    trained: Trained  # at the rate chosen
    rates: list[Trained]  # all that were tried
    measured: Outcome


@dataclass(frozen=True)
class Neighbours:
    """Two models that stand beside each other in the list."""

    first: str
    second: str
    tests: list[Paired]


@dataclass(frozen=True)
class Shown:
    source: str
    reference: str


@dataclass(frozen=True)
class HeldOut:
    """The test set of translators."""

    files: list[str]
    sentences: int
    sha256: str
    in_training: int  # sources that also stand in the training data
    leak: str  # a sentence about them, or ""
    bounds: list[int]  # of the length buckets, in source words
    how: str  # the bounds were chosen
    shown: list[Shown]  # a short, a middle and a long sentence


@dataclass(frozen=True)
class HeldOutItems:
    """The test set of all others: classifiers, and models that tell numbers or label pixels."""

    files: list[str]
    items: int
    sha256: str
    in_training: int  # items that also stand in the training data
    leak: str  # a sentence about them, or ""
    names: list[str]  # texts, or the names of images
    labels: list[str]  # or numbers, with tabs between them; of masks their hashes


@dataclass(frozen=True)
class Report:
    dragoman: str
    task: str
    corpora: list[str]
    budget: str
    seed: int
    tokenizer: str  # sha256 of its manifest: every model has this one; "" where images are read
    batch: str  # what a step learns from, such as 2,048 tokens
    test: HeldOut | HeldOutItems
    models: list[Compared]
    neighbours: list[Neighbours]
