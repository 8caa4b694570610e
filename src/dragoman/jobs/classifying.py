"""The task `classify`: from labelled texts to batches of them, and to how many of them a model labels right."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from dragoman.config import Settings
from dragoman.decoding.classify import Classifier
from dragoman.evaluation.confusion import confusion_of
from dragoman.jobs import plan
from dragoman.jobs.labelling import LabelledData
from dragoman.jobs.prepare import Notice
from dragoman.jobs.request import Request
from dragoman.jobs.task import Corpora, Measured, Sample, mean_nats
from dragoman.jobs.translating import WATCHED, spread
from dragoman.models import task_and_family_of
from dragoman.models.bert import BertConfig
from dragoman.models.bert_classifier import BertClassifierConfig
from dragoman.runs.model import SavedModel
from dragoman.text.batches import BatchOrder, LabelledBatch, make_reading
from dragoman.text.index import PairIndex
from dragoman.text.labels import LabelledCorpus, find_labelled
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizers
from dragoman.training.objectives import ClassifyingLoss
from dragoman.training.settings import TrainingConfig

SHOWN = 6  # labels in the plan


def find(request: Request) -> Corpora[LabelledCorpus]:
    valid = find_labelled(request.valid, request.encoding) if request.valid else None
    return Corpora(find_labelled(request.corpora, request.encoding), valid)


@dataclass
class Classifying:
    data: LabelledData
    about: dict[str, Any] = field(default_factory=dict)
    name: str = "classify"
    counted: str = "texts"

    @classmethod
    def prepare(
        cls, folder: Path, request: Request, corpora: Corpora[LabelledCorpus], saved: SavedModel | None, notice: Notice
    ) -> "Classifying":
        return cls(LabelledData.prepare(folder, request, corpora, saved, notice))

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "Classifying":
        return cls(LabelledData.reopen(folder, recorded))

    @property
    def tokenizers(self) -> Tokenizers:
        return self.data.tokenizers

    @property
    def tokenizer_settings(self) -> dict[str, Any]:
        return self.data.settings

    # ── plan ──

    def usual_minutes(self) -> float:
        return plan.minutes_for(len(self.data.train))

    def most_epochs(self, config: Settings) -> float:
        return plan.epochs_for_classes(task_and_family_of(config)[1], self.tokens())

    def plan_model(self, request: Request, work: float) -> Settings:
        """The label of a text teaches about as much as one token of it would: the budget is in texts."""
        fixed: dict[str, Any] = {
            "vocabulary": len(self.tokenizers.target),
            "classes": self.data.classes,
            "dropout": plan.CLASSIFIERS[request.family].dropout,
        }
        if request.family == "bert":
            fixed |= {"separator": self.tokenizers.special.end, "longest": self.positions()}
        if request.family == "bag":
            fixed["pairs"] = plan.pairs_for(self.tokens())
        texts, most = len(self.data.train), plan.epochs_for_classes(request.family, self.tokens())
        each, given = texts / self.tokens(), plan.tokens_asked(request, self.tokens(), plan.CLASSIFYING)
        budget = plan.Budget(texts, work * each, given and given * each, most)
        return plan.plan_model(self.name, fixed, request, budget)

    def positions(self) -> int:
        """For the longest text there is, and some more."""
        longest = max(int(index.lengths()[:, 0].max()) for index in (self.data.train, self.data.valid))
        return max(plan.READ, longest + 2)

    def tokens(self) -> int:
        return int(self.data.train.about["tokens"]) + 2 * len(self.data.train)

    def plan_from(self, config: Settings) -> Settings:
        """A classifier goes on as it is; on what BERT has read, classes are put."""
        if not isinstance(config, BertConfig) or isinstance(config, BertClassifierConfig):
            return config
        head = {"classes": self.data.classes, "separator": self.tokenizers.special.end}
        return BertClassifierConfig.read({**config.model_dump(), **head}, section="model")

    def plan_use(self, config: Settings, request: Request) -> None: ...

    def plan_training(self, config: Any) -> dict[str, Any]:  # noqa: ARG002
        return dict(plan.CLASSIFYING)

    def quick_about(self) -> dict[str, Any]:
        return self.about

    def describe(self) -> list[tuple[str, str]]:
        data, tokenizer = self.data, self.tokenizers.target
        counts = np.bincount(labels_of(data.train), minlength=len(data.classes))
        shares = [f"{name} ({n / len(data.train):.0%})" for name, n in zip(data.classes, counts, strict=True)]
        mean = data.train.about["tokens"] / len(data.train)
        more = f" and {len(shares) - SHOWN} more" if len(shares) > SHOWN else ""
        split = " (split off by a hash of the text)" if data.split_off else ""
        return [
            ("texts", f"{len(data.train):,}; {len(data.valid):,} for validation{split}"),
            ("labels", f"{len(shares)}: {', '.join(shares[:SHOWN])}{more}"),
            ("tokens", f"{len(tokenizer):,} {tokenizer.kind}; {mean:.1f} a text"),
        ]

    def record(self) -> dict[str, Any]:
        return {"texts": len(self.data.train), "split_off": self.data.split_off}

    # ── training ──

    def order(self, training: TrainingConfig, seed: int) -> "LabelledOrder":
        return LabelledOrder(
            self.data.train, training.tokens_per_step // training.accumulate, seed, self.tokenizers.special
        )

    def objective(self, training: TrainingConfig) -> ClassifyingLoss:
        return ClassifyingLoss(training.label_smoothing)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        """Nats a text, with the training's own smoothing."""
        return mean_nats(self.objective(training), model, self.validation_order(training))

    def validation_order(self, training: TrainingConfig) -> "LabelledOrder":
        return LabelledOrder(self.data.valid, training.tokens_per_step, 0, self.tokenizers.special)

    @torch.inference_mode()
    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        order = self.validation_order(training)
        wanted, given = list[int](), list[int]()
        for k in range(len(order)):
            batch = order.batch(0, k)
            wanted += batch.wanted.tolist()
            given += model(batch.tokens, batch.real).argmax(dim=-1).tolist()
        found = confusion_of(self.data.classes, wanted, given)
        scores = {"accuracy": 100 * found.accuracy, "macro_f1": 100 * found.macro_f1}
        return Measured(self.validation_loss(model, training), scores, self.samples(model))

    def samples(self, model: Any) -> list[Sample]:
        some = spread(self.data.valid_texts, WATCHED)
        found = Classifier(model, self.tokenizers).classify([text for _, text in some])
        return [
            Sample(text, f"{one.label} ({one.probability:.0%})", label)
            for (label, text), one in zip(some, found, strict=True)
        ]


def labels_of(index: PairIndex) -> Int[np.ndarray, " N"]:
    """The number of each text's class: the one id of each pair's second side."""
    return np.asarray(index.ids[index.offsets[1::2]], dtype=np.int64)


class LabelledOrder:
    """The texts of an index, batch by batch: texts of like length together."""

    def __init__(self, index: PairIndex, tokens: int, seed: int, special: SpecialIds) -> None:
        self.index, self.special = index, special
        lengths = index.lengths()[:, :1] + 1  # [CLS] and [SEP]; the order itself counts one of them
        self.batches = BatchOrder(np.repeat(lengths, 2, axis=1), tokens, seed)

    def __len__(self) -> int:
        return len(self.batches)

    def batch(self, epoch: int, k: int) -> LabelledBatch:
        rows = [self.index[int(row)] for row in self.batches.rows(epoch, k)]
        reading = make_reading([ids for ids, _ in rows], self.special)
        return LabelledBatch(reading.tokens, reading.real, torch.tensor([int(label[0]) for _, label in rows]))
