"""The task `embed`: from a text to a vector for each of its words. word2vec reads the text, GloVe counts its pairs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int

from dragoman.config import Settings
from dragoman.decoding.words import WordVectors
from dragoman.errors import DataError, UsageError
from dragoman.jobs import plan, texts
from dragoman.jobs.prepare import Notice
from dragoman.jobs.request import Request
from dragoman.jobs.task import Measured, Sample, mean_nats
from dragoman.jobs.texts import TextData, Texts, TextTask
from dragoman.models import find_family
from dragoman.models.word_vectors import Word2VecConfig
from dragoman.runs.model import SavedModel
from dragoman.text.cooccurrence import HELD_BACK, PairOrder, count_pairs, open_counts
from dragoman.text.index import Ids
from dragoman.text.neighbours import BlockedText, chance_to_draw, chance_to_stay, count_words
from dragoman.training.glove import GloveLoss
from dragoman.training.settings import TrainingConfig
from dragoman.training.word2vec import Word2VecLoss

SHOWN, NEAR = 3, 5  # words watched at each validation, with so many neighbours each
PUSH = 8.0  # rate times the number of times that the likeliest random word is drawn for a batch; at 12 some fly apart
WORDS_PER_STEP = (16, 4096)  # of the text, at least and at most
PAIRS_PER_STEP = 4096
EPOCHS = (5.0, 50.0)  # of word2vec, however long the text is; however short
SEEN = 15e6  # words that a short text is read for, again and again
GLOVE_EPOCHS = 25.0  # of all pairs
READ = {  # settings of the training that mean something here
    "steps", "tokens_per_step", "rate", "schedule", "warmup", "validate_every", "save_every", "report_every",
    "patience", "average",
}  # fmt: skip


def find(request: Request) -> Texts:
    """The text; and what cannot be is said before it is read."""
    for name in request.asked("training"):
        if name not in READ:
            raise UsageError("E-SET-06", f"training.{name} is not read where words get vectors; leave it out")
    if request.family == "glove" and request.valid:
        raise UsageError(
            "E-USE-15",
            f"glove learns from pairs of words and holds back {HELD_BACK:.0%} of them, so a text to validate with "
            f"({request.valid[0]}) is not read; leave out --valid",
        )
    return texts.find(request)


@dataclass
class Embedding(TextTask, ABC):
    """What both share: words as tokens, and what is measured."""

    config: Any = None  # of the model, once it is known
    name = "embed"
    measured = 100_000
    held_back = 0.02

    @classmethod
    def tokens_wanted(cls) -> dict[str, Any]:
        return {"kind": "words", "lowercase": True, "split_punctuation": True, "least_count": 5}

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "Embedding":
        config = find_family(cls.name, recorded["run"]["family"]).config.read(recorded["model"], section="model")
        return cls(TextData.reopen(folder, recorded, cls.held_back), config=config)

    @cached_property
    def counts(self) -> Int[np.ndarray, " V"]:
        """How often each word is in the text."""
        counts = count_words(self.data.train, len(self.tokenizers.target), self.tokenizers.special)
        if (counts > 0).sum() < 2:
            least = self.data.settings.get("least_count", 1)
            raise DataError(
                "E-WORD-02",
                f"there are {(counts > 0).sum()} words that the text has {least} times or more, and two are the least; "
                "give a longer text, or lower tokenizer.least_count",
            )
        return counts

    def plan_model(self, request: Request, work: float) -> Settings:  # noqa: ARG002
        family, asked = find_family(self.name, request.family), request.asked("model")
        plan.refuse_fixed(self.fixed(), asked)
        preset = family.presets[request.preset] if request.preset else {}
        return self.plan_from(family.config.read({**preset, **self.fixed(), **asked}, section="model"))

    def plan_from(self, config: Settings) -> Settings:
        self.config = config
        return config

    def samples(self, model: Any) -> list[Sample]:
        """Words that are there often, but not as often as `the`, with their nearest."""
        vectors = WordVectors(model, self.tokenizers)
        ranked = np.argsort(-self.counts[vectors.ids], kind="stable")
        places = np.geomspace(min(100, len(ranked) // 4 + 1), max(1, len(ranked) // 4), SHOWN).astype(int)
        rows = ranked[np.unique(places) - 1]
        found = vectors.nearest_rows(vectors.vectors[rows], [[int(row)] for row in rows], NEAR)
        return [
            Sample(vectors.words[row], ", ".join(vectors.words[other] for other in near), "")
            for row, near in zip(rows.tolist(), found, strict=True)
        ]

    @abstractmethod
    def validation_loss(self, model: Any, training: TrainingConfig) -> float: ...

    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        return Measured(self.validation_loss(model, training), {}, self.samples(model))


class Reading(Embedding):
    """word2vec: the words of a text with their neighbours, piece after piece."""

    counted = "words"
    rates: ClassVar[dict[str, float]] = {"skip-gram": 0.025, "cbow": 0.075}
    rate: float = 0.025

    def most_epochs(self, config: Settings) -> float:  # noqa: ARG002
        fewest, most = EPOCHS
        return min(most, max(fewest, SEEN / len(self.data.train)))

    def plan_use(self, config: Any, request: Request) -> None:
        self.rate = float(request.asked("training").get("rate", self.rates[config.kind]))

    def plan_training(self, config: Any) -> dict[str, Any]:
        """The rate falls in a line to nothing, from the first step on."""
        size = words_per_step(self.counts, config, self.rate)
        return {**PLAIN, "optimizer": "sgd", "rate": self.rate, "schedule": "linear", "tokens_per_step": size}

    def order(self, training: TrainingConfig, seed: int) -> BlockedText:
        return self.blocks(self.data.train, training, seed)

    def blocks(self, ids: Ids, training: TrainingConfig, seed: int) -> BlockedText:
        c = self.config
        return BlockedText(
            ids, self.counts, self.tokenizers.special,
            reach=c.reach, sample=c.sample, tokens=training.tokens_per_step, seed=seed,
        )  # fmt: skip

    def objective(self, training: TrainingConfig) -> Word2VecLoss:  # noqa: ARG002
        return Word2VecLoss()

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        """The same words thinned out, and the same random ones, at every validation."""
        return mean_nats(Word2VecLoss(), model, self.blocks(self.valid, training, 0))


class Counting(Embedding):
    """GloVe: how often each pair of words is near each other, counted before anything is learned."""

    counted = "pairs"

    def plan_from(self, config: Any) -> Settings:
        """What is near is known only now; all of the text is counted."""
        found = count_pairs(
            self.data.whole,
            len(self.tokenizers.target),
            self.tokenizers.special,
            config.reach,
            self.data.folder / "pairs",
        )
        if not min(found.values()):
            raise DataError(
                "E-WORD-02",
                f"there are {found['train']:,} pairs of words to learn from and {found['valid']:,} to validate with; "
                "give a longer text, or lower tokenizer.least_count",
            )
        return super().plan_from(config)

    def most_epochs(self, config: Settings) -> float:  # noqa: ARG002
        return GLOVE_EPOCHS

    def plan_training(self, config: Any) -> dict[str, Any]:  # noqa: ARG002
        size = PAIRS_PER_STEP
        return {**PLAIN, "optimizer": "adagrad", "rate": 0.05, "schedule": "constant", "tokens_per_step": size}

    def order(self, training: TrainingConfig, seed: int) -> PairOrder:
        return self.pairs("train", training, seed)

    def pairs(self, part: str, training: TrainingConfig, seed: int) -> PairOrder:
        counts = open_counts(self.data.folder / "pairs", part)
        return PairOrder(counts, len(self.tokenizers.target), training.tokens_per_step, seed)

    def objective(self, training: TrainingConfig) -> GloveLoss:  # noqa: ARG002
        return GloveLoss()

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        """The mean over the pairs that were held back."""
        return mean_nats(GloveLoss(), model, self.pairs("valid", training, 0))

    def describe(self) -> list[tuple[str, str]]:
        found = [len(open_counts(self.data.folder / "pairs", part).keys) for part in ("train", "valid")]
        return [
            *super().describe()[1:],
            ("pairs", f"{found[0]:,}; {found[1]:,} for validation (by a hash of both words)"),
        ]


def words_per_step(counts: Int[np.ndarray, " V"], config: Word2VecConfig, rate: float) -> int:
    """All that a batch does to a word starts from where the word was before. So a batch is only so large that the
    likeliest random word is not pushed too far by all the pairs that it is drawn for."""
    stay = (counts * np.minimum(1, chance_to_stay(counts, config.sample))).sum() / counts.sum()
    foretold = config.reach + 1 if config.kind == "skip-gram" else 1  # by a word that stays, on the mean
    drawn = stay * foretold * config.negatives * chance_to_draw(counts).max()  # for each word of the text
    least, most = WORDS_PER_STEP
    return int(min(most, max(least, PUSH / (rate * drawn))))


PLAIN = {"warmup": 0, "label_smoothing": 0.0, "patience": 0, "average": 1}
KINDS: dict[str, type[Embedding]] = {"word2vec": Reading, "glove": Counting}


def prepare(folder: Path, request: Request, texts: Texts, saved: SavedModel | None, notice: Notice) -> Any:
    return KINDS[request.family].prepare(folder, request, texts, saved, notice)


def reopen(folder: Path, recorded: Mapping[str, Any]) -> Any:
    return KINDS[recorded["run"]["family"]].reopen(folder, recorded)
