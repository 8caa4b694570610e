"""The task `restore`: from a text to blocks with spans taken out, and to the spans: how T5 learns from plain text.

What comes of it is a text-to-text model like any other; `--from` it learns a task of its own from pairs.
"""

from collections.abc import Mapping
from math import exp, inf
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import Settings
from dragoman.decoding.beam import SearchConfig
from dragoman.decoding.translate import Translator
from dragoman.errors import UsageError
from dragoman.jobs.request import Request
from dragoman.jobs.task import Measured, Sample, lost, mean_nats
from dragoman.jobs.texts import TextTask
from dragoman.jobs.translating import about_translator
from dragoman.text.batches import Batch, make_batch
from dragoman.text.corruption import hide_spans
from dragoman.text.index import Ids
from dragoman.text.special import SpecialIds
from dragoman.text.stream import BlockOrder
from dragoman.training.objectives import TranslationLoss
from dragoman.training.settings import TrainingConfig

BLOCK = 128  # tokens of the text in a row
SPANS = 100  # marks for what was taken out: more than a block can need
WATCHED = 2  # blocks shown as they are restored better


class Restoring(TextTask):
    name = "restore"
    special = SpecialIds(spans=tuple(range(4, 4 + SPANS)))
    measured = 100_000

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "Restoring":
        task = super().reopen(folder, recorded)
        task.about = about_translator(SearchConfig.read(recorded["search"], section="search"), ("", ""), BLOCK)
        return task

    def fixed(self) -> dict[str, Any]:
        size = len(self.tokenizers.target)
        return {"source_vocabulary": size, "target_vocabulary": size}

    def plan_use(self, config: Settings, request: Request) -> None:  # noqa: ARG002
        search = SearchConfig.read({"longest_ratio": 1.0, **request.asked("search")}, section="search")
        self.about = about_translator(search, ("", ""), BLOCK)

    def plan_training(self, config: Settings) -> dict[str, Any]:  # noqa: ARG002
        return {"label_smoothing": 0.0, "window": BLOCK}

    def order(self, training: TrainingConfig, seed: int) -> "SpanOrder":
        if training.window < 2:
            raise UsageError("E-SET-01", "training.window = 1 leaves nothing beside what is taken out; give 2 or more")
        return SpanOrder(self.data.train, training, seed, self.tokenizers.special)

    def objective(self, training: TrainingConfig) -> TranslationLoss:
        return TranslationLoss(training.label_smoothing)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        return mean_nats(self.objective(training), model, self.validation_order(training))

    def validation_order(self, training: TrainingConfig) -> "SpanOrder":
        return SpanOrder(self.valid, training, 0, self.tokenizers.special)

    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        nats = self.validation_loss(model, training)
        if lost(nats):
            return Measured(nats, {"perplexity": inf}, [])
        blocks = self.validation_order(training).pairs(0, 0)[:WATCHED]
        outputs = Translator(model, self.tokenizers, self.about).write_ids([source for source, _ in blocks], beam=1)
        shown = [[self.show(ids) for ids in (*pair, output)] for pair, output in zip(blocks, outputs, strict=True)]
        samples = [Sample(source, output, target) for source, target, output in shown]
        return Measured(nats, {"perplexity": exp(min(nats, 80))}, samples)

    def show(self, ids: list[int]) -> str:
        """The text with the marks of its spans, which a tokenizer does not write out."""
        tokenizer, spans = self.tokenizers.target, self.tokenizers.special.spans
        parts, words = list[str](), list[int]()
        for token in [*ids, spans[0]]:
            if token not in spans:
                words.append(token)
                continue
            parts += [tokenizer.decode(words), *tokenizer.pieces([token])]
            words = []
        return " ".join(part for part in parts[:-1] if part)

    def quick_about(self) -> dict[str, Any]:
        return {**self.about, "search": {"longest_ratio": 0.01, "longest_extra": BLOCK // 4}}


class SpanOrder:
    """Blocks of a text with spans taken out; which ones is a function of (seed, epoch, k), too."""

    def __init__(self, ids: Ids, training: TrainingConfig, seed: int, special: SpecialIds) -> None:
        rows = training.tokens_per_step // training.accumulate // training.window
        self.blocks = BlockOrder(ids, rows, training.window, seed)
        self.seed, self.special = seed, special

    def __len__(self) -> int:
        return len(self.blocks)

    def pairs(self, epoch: int, k: int) -> list[tuple[list[int], list[int]]]:
        random = np.random.default_rng([self.seed, epoch, k])
        return [hide_spans(block, self.special.spans, random) for block in self.blocks.batch(epoch, k).tolist()]

    def batch(self, epoch: int, k: int) -> Batch:
        return make_batch(self.pairs(epoch, k), self.special)
