"""The tasks on images: to classify, to regress and to segment differ in the loss, in what is told, and in the scores.

All else is one class: the data, the plan, the order of the batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.config import Settings
from dragoman.evaluation.confusion import confusion_of
from dragoman.evaluation.numbers import measure_numbers
from dragoman.evaluation.overlap import Overlap, overlap_of
from dragoman.images.batches import ImageOrder
from dragoman.images.corpus import ImageCorpus
from dragoman.jobs import plan_images
from dragoman.jobs.pictures import ImageData
from dragoman.jobs.prepare import Notice
from dragoman.jobs.request import Request
from dragoman.jobs.task import Corpora, Measured, Sample, mean_nats
from dragoman.jobs.translating import WATCHED, spread
from dragoman.models import find_family, task_and_family_of
from dragoman.runs.model import SavedModel
from dragoman.text.labels import some
from dragoman.training.image_objectives import MeasuringLoss, NamingLoss, PixelLoss
from dragoman.training.settings import TrainingConfig

Own = TypeVar("Own", bound="ImageTask")  # typing.Self, which beartype does not take in single methods
ImageLoss = NamingLoss | MeasuringLoss | PixelLoss


@dataclass
class ImageTask(ABC):
    """What the three have in common."""

    data: ImageData
    about: dict[str, Any]
    name: ClassVar[str]
    counted: ClassVar[str] = "images"
    tokenizers: ClassVar[None] = None

    @classmethod
    def prepare(
        cls: type[Own],
        folder: Path,
        request: Request,
        corpora: Corpora[ImageCorpus],
        saved: SavedModel | None,
        notice: Notice,
    ) -> Own:
        data = ImageData.prepare(folder, request, corpora, saved, notice)
        return cls(data, data.about)

    @classmethod
    def reopen(cls: type[Own], folder: Path, recorded: Mapping[str, Any]) -> Own:
        data = ImageData.reopen(folder, recorded)
        return cls(data, data.about)

    @abstractmethod
    def objective(self, training: TrainingConfig) -> ImageLoss: ...
    @abstractmethod
    def told(self, answers: Tensor) -> Tensor:
        """What the model's answers say, as the answers of the corpus are."""

    @abstractmethod
    def scores(self, tallies: Sequence[Any]) -> dict[str, float]: ...
    @abstractmethod
    def words(self, answer: Tensor) -> str:
        """One answer as people say it."""

    @abstractmethod
    def to_learn(self) -> str:
        """For the plan."""

    @property
    def tokenizer_settings(self) -> dict[str, Any]:
        return {}

    # ── plan ──

    def usual_minutes(self) -> float:
        return plan_images.minutes_for(len(self.data.train))

    def most_epochs(self, config: Settings) -> float:
        return plan_images.epochs_for(*task_and_family_of(config), len(self.data.train))

    def plan_from(self, config: Settings) -> Settings:
        """The same reader, telling what is to be learned here."""
        family = find_family(self.name, task_and_family_of(config)[1])
        told = {**config.model_dump(), **self.data.answers.settings()}
        known = {name: value for name, value in told.items() if name in family.config.model_fields}
        return family.config.read(known, section="model")

    def plan_model(self, request: Request, work: float) -> Settings:
        index = self.data.train
        told = self.data.answers.settings()
        return plan_images.plan_model(self.name, index.form, told, request, len(index), work)

    def plan_use(self, config: Settings, request: Request) -> None: ...  # noqa: B027

    def plan_training(self, config: Settings) -> dict[str, Any]:  # noqa: ARG002
        return {"label_smoothing": 0.0, "images_per_step": plan_images.images_per_step(self.name, len(self.data.train))}

    def quick_about(self) -> dict[str, Any]:
        return self.about

    def describe(self) -> list[tuple[str, str]]:
        data = self.data
        split = " (split off by a hash of the image)" if data.split_off else ""
        form = f"{data.train.form.size}, {'grey' if data.train.form.channels == 1 else 'in colour'}"
        return [
            ("images", f"{len(data.train):,} of {form}; {len(data.valid):,} for validation{split}"),
            ("to learn", self.to_learn()),
            ("moved", f"{data.moves}, in training"),
        ]

    def record(self) -> dict[str, Any]:
        moves = self.data.moves
        return {
            "images": len(self.data.train), "split_off": self.data.split_off, "shift": moves.shift, "flip": moves.flip,
            "use": self.data.about,
        }  # fmt: skip

    # ── training ──

    def order(self, training: TrainingConfig, seed: int) -> ImageOrder:
        data = self.data
        return ImageOrder(data.train, training.images_per_step // training.accumulate, seed, data.levels, data.moves)

    def validation_order(self, training: TrainingConfig) -> ImageOrder:
        return ImageOrder(self.data.valid, training.images_per_step, 0, self.data.levels)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        return mean_nats(self.objective(training), model, self.validation_order(training))

    @torch.inference_mode()
    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        """Loss and scores in one pass over the validation images."""
        order, objective = self.validation_order(training), self.objective(training)
        images = len(self.data.valid)
        shown = set(spread(range(images), WATCHED))
        nats, seen, tallies, samples = 0.0, 0, list[Any](), list[Sample]()
        for k in range(len(order)):
            batch, rows = order.batch(0, k), order.rows(0, k).tolist()
            answers = model(batch.images)
            nats += objective.of(answers, batch.wanted).nats.item()
            told = self.told(answers)
            tallies.append(self.tally(told, batch.wanted))
            samples += [
                Sample(f"image {row + 1}", self.words(mine), self.words(its))
                for place, (row, mine, its) in enumerate(zip(rows, told, batch.wanted, strict=True), start=seen)
                if place in shown
            ]
            seen += len(rows)
        return Measured(nats / images, self.scores(tallies), samples)

    def tally(self, told: Tensor, wanted: Tensor) -> Any:
        """What the scores need of one batch; of many pixels no more than their counts."""
        return told, wanted


class ClassifyingImages(ImageTask):
    name = "classify"

    def objective(self, training: TrainingConfig) -> NamingLoss:
        return NamingLoss(training.label_smoothing)

    def told(self, answers: Float[Tensor, "B C"]) -> Int[Tensor, " B"]:
        return answers.argmax(dim=-1)

    def scores(self, tallies: Sequence[tuple[Tensor, Tensor]]) -> dict[str, float]:
        told, wanted = map(torch.cat, zip(*tallies, strict=True))
        found = confusion_of(self.data.answers.names, wanted.tolist(), told.tolist())
        return {"accuracy": 100 * found.accuracy, "macro_f1": 100 * found.macro_f1}

    def words(self, answer: Int[Tensor, ""]) -> str:
        return self.data.answers.names[int(answer)]

    def to_learn(self) -> str:
        counts = np.bincount(self.data.train.answers, minlength=len(self.data.answers.names))
        shares = [f"{name} ({n / counts.sum():.0%})" for name, n in zip(self.data.answers.names, counts, strict=True)]
        return f"{len(shares)} labels: {some(shares)}"


class Regressing(ImageTask):
    name = "regress"

    def objective(self, training: TrainingConfig) -> MeasuringLoss:  # noqa: ARG002
        return MeasuringLoss(*(tuple(self.about["numbers"][part]) for part in ("mean", "deviation")))

    def told(self, answers: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        mean, deviation = (torch.tensor(self.about["numbers"][part]) for part in ("mean", "deviation"))
        return answers * deviation + mean

    def scores(self, tallies: Sequence[tuple[Tensor, Tensor]]) -> dict[str, float]:
        told, wanted = map(torch.cat, zip(*tallies, strict=True))
        found = measure_numbers(self.data.answers.names, wanted.double().numpy(), told.double().numpy(), samples=1)
        return {"r2": found.r2, "mean_error": found.mean_error}

    def words(self, answer: Float[Tensor, " K"]) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in zip(self.data.answers.names, answer, strict=True))

    def to_learn(self) -> str:
        use = self.about["numbers"]
        each = zip(self.data.answers.names, use["mean"], use["deviation"], strict=True)
        return some([f"{name} ({mean:.3g} ± {spread:.3g})" for name, mean, spread in each])


class Segmenting(ImageTask):
    name = "segment"

    def objective(self, training: TrainingConfig) -> PixelLoss:
        return PixelLoss(training.label_smoothing)

    def told(self, answers: Float[Tensor, "B C H W"]) -> Int[Tensor, "B H W"]:
        return answers.argmax(dim=1)

    def tally(self, told: Int[Tensor, "B H W"], wanted: Int[Tensor, "B H W"]) -> Overlap:
        return overlap_of(self.data.answers.names, wanted.numpy(), told.numpy())

    def scores(self, tallies: Sequence[Overlap]) -> dict[str, float]:
        found = sum(tallies, Overlap.of_none(self.data.answers.names))
        return {"mean_iou": 100 * found.mean_iou, "pixel_accuracy": 100 * found.accuracy}

    def words(self, answer: Int[Tensor, "H W"]) -> str:
        counts = torch.bincount(answer.flatten(), minlength=len(self.data.answers.names)) / answer.numel()
        return ", ".join(f"{name} {n:.0%}" for name, n in zip(self.data.answers.names, counts, strict=True) if n > 0)

    def to_learn(self) -> str:
        return f"{len(self.data.answers.names)} labels, one a pixel: {some(self.data.answers.names)}"
