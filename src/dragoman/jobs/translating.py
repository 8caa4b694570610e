"""The task `translate`: from a corpus of sentence pairs to batches of them, and to scores of what a model writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from dragoman.config import Settings
from dragoman.decoding.beam import SearchConfig
from dragoman.decoding.translate import Translator
from dragoman.evaluation.scores import bleu, chrf
from dragoman.jobs import plan
from dragoman.jobs.prepare import (
    DataConfig,
    Notice,
    Prepared,
    Survey,
    check_vocabulary,
    open_prepared,
    prepare,
    survey,
    tell_odd_bytes,
)
from dragoman.jobs.request import Request
from dragoman.jobs.task import Corpora, Measured, Sample, lost, mean_nats
from dragoman.models import find_family
from dragoman.runs.model import SavedModel
from dragoman.text.batches import Batch, BatchOrder, make_batch
from dragoman.text.corpus import Corpus, drifting, find_corpus
from dragoman.text.index import PairIndex
from dragoman.text.special import SpecialIds
from dragoman.text.swapped import refuse_turned, refuse_turned_text
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers
from dragoman.training.objectives import TranslationLoss
from dragoman.training.settings import TrainingConfig

WATCHED = 3  # validation sentences shown as they improve
SCORED = 128  # validation sentences translated for a score at each validation

Item = TypeVar("Item")


def find(request: Request) -> Corpora[Corpus]:
    def find_one(arguments: list[str], languages: tuple[str, str]) -> Corpus:
        return find_corpus(
            arguments,
            source_language=languages[0] or None,
            target_language=languages[1] or None,
            encoding=request.encoding,
        )

    train = find_one(request.corpora, (request.source, request.target))
    if not request.valid:
        return Corpora(train, None)
    valid = find_one(request.valid, train.languages)  # a file of several gives the same ones
    refuse_turned(valid, train)
    return Corpora(train, valid)


@dataclass
class Translating:
    prepared: Prepared
    languages: tuple[str, str]
    valid_share: float  # of the corpus, split off for validation; 0 where it has files of its own
    about: dict[str, Any]
    tokenizer_settings: dict[str, Any]  # as chosen; empty where the tokenizers came with a model
    sides: tuple[str, str] = ("", "")  # what is read and what is written, as people are told
    name: str = "translate"
    counted: str = "tokens"

    @classmethod
    def prepare(
        cls, folder: Path, request: Request, corpora: Corpora[Corpus], saved: SavedModel | None, notice: Notice
    ) -> "Translating":
        data = DataConfig.read(request.asked("data"), section="data")
        surveyed: Survey = survey(corpora.train, corpora.valid is not None, data)
        if corpora.valid:
            refuse_turned_text(corpora.valid, corpora.train, surveyed.sample)
        tell_odd_bytes(corpora.train.text_files, corpora.train.encoding, notice)
        for sentence in drifting(corpora.train):
            notice(sentence)
        one_table = find_family(cls.name, request.family).one_table
        chosen = None if saved else plan.plan_tokenizer(surveyed, request.asked("tokenizer"), one_table=one_table)
        tokenizer: TokenizerConfig | Tokenizers = chosen or saved.tokenizers  # type: ignore[union-attr]
        prepared = prepare(folder, corpora.train, corpora.valid, surveyed, tokenizer, data, notice)
        check_vocabulary(request.asked("tokenizer"), prepared.tokenizers, notice)
        settings = chosen.model_dump() if chosen else {}
        return cls(prepared, corpora.train.languages, surveyed.valid_share, {}, settings, corpora.train.sides)

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "Translating":
        made = recorded["plan"]
        search = SearchConfig.read(recorded["search"], section="search")
        languages = (made["languages"][0], made["languages"][1])
        task = cls(open_prepared(folder), languages, made["valid_share"], {}, recorded["tokenizer"])
        task.about = about_translator(search, languages, made["longest"])
        return task

    @property
    def tokenizers(self) -> Tokenizers:
        return self.prepared.tokenizers

    # ── plan ──

    def usual_minutes(self) -> float:
        return plan.minutes_for(len(self.prepared.train))

    def most_epochs(self, config: Settings) -> float:  # noqa: ARG002
        return inf

    def plan_from(self, config: Settings) -> Settings:
        return config

    def plan_model(self, request: Request, work: float) -> Settings:
        tokenizers = self.tokenizers
        fixed = {
            "source_vocabulary": len(tokenizers.source),
            "target_vocabulary": len(tokenizers.target),
            "tied": "all" if tokenizers.joint else "target",
        }
        target_tokens = int(self.prepared.train.about["target_tokens"]) + len(self.prepared.train)
        budget = plan.Budget(target_tokens, work, plan.tokens_asked(request, target_tokens))
        config = plan.plan_model(self.name, fixed, request, budget)
        plan.refuse_short_positions(config, self.prepared)
        return config

    def plan_use(self, config: Settings, request: Request) -> None:
        search = plan.plan_search(self.prepared, config, request.asked("search"))
        self.about = about_translator(search, self.languages, int(self.prepared.train.lengths().max()))

    def plan_training(self, config: Settings) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def describe(self) -> list[tuple[str, str]]:
        train, tokenizers = self.prepared.train, self.tokenizers
        split = " (split off by a hash of the source)" if self.valid_share else ""
        kept = f"{len(train):,} kept, {train.about['read'] - len(train):,} dropped"
        source, target = (train.about[f"{side}_tokens"] / len(train) for side in ("source", "target"))
        vocabulary = f"{len(tokenizers.source):,} {tokenizers.source.kind}" + (
            ", one vocabulary for both sides"
            if tokenizers.joint
            else f" and {len(tokenizers.target):,} {tokenizers.target.kind}"
        )
        return [
            ("direction", " → ".join(self.sides)),
            ("pairs", f"{kept}; {len(self.prepared.valid):,} for validation{split}"),
            ("tokens", f"{vocabulary}; {source:.1f} → {target:.1f} a pair"),
        ]

    def record(self) -> dict[str, Any]:
        return {
            "pairs": len(self.prepared.train),
            "valid_share": self.valid_share,
            "languages": self.about["languages"],
            "longest": self.about["longest"],
        }

    # ── training ──

    def order(self, training: TrainingConfig, seed: int) -> "PairOrder":
        tokens = training.tokens_per_step // training.accumulate
        return PairOrder(self.prepared.train, tokens, seed, self.tokenizers.special)

    def objective(self, training: TrainingConfig) -> TranslationLoss:
        return TranslationLoss(training.label_smoothing)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        """Nats per token with the training's own smoothing: sharp guesses that are wrong cost less than without it."""
        order = PairOrder(self.prepared.valid, training.tokens_per_step, 0, self.tokenizers.special)
        return mean_nats(self.objective(training), model, order)

    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        nats = self.validation_loss(model, training)
        if lost(nats):
            return Measured(nats, {"bleu": 0.0, "chrf": 0.0}, [])
        some = spread(self.prepared.valid_texts, SCORED)
        translator = Translator(model, self.tokenizers, self.about)
        outputs = [t.text for t in translator.translate([pair.source for pair in some], beam=1)]
        references = [pair.target for pair in some]
        samples = [Sample(pair.source, output, pair.target) for pair, output in zip(some, outputs, strict=True)]
        scores = {"bleu": bleu(outputs, references), "chrf": chrf(outputs, references)}
        return Measured(nats, scores, spread(samples, WATCHED))

    def quick_about(self) -> dict[str, Any]:
        """An untrained model writes to the end of its line: give it lines of the usual length."""
        usual = int(self.prepared.valid.lengths()[:, 1].mean()) + 1
        return {**self.about, "search": {"longest_ratio": 0.01, "longest_extra": usual}}


class PairOrder:
    """The pairs of an index, batch by batch."""

    def __init__(self, index: PairIndex, tokens: int, seed: int, special: SpecialIds) -> None:
        self.index, self.special = index, special
        self.batches = BatchOrder(index.lengths(), tokens, seed)

    def __len__(self) -> int:
        return len(self.batches)

    def batch(self, epoch: int, k: int) -> Batch:
        return make_batch([self.index[int(row)] for row in self.batches.rows(epoch, k)], self.special)


def about_translator(search: SearchConfig, languages: tuple[str, str], longest: int) -> dict[str, Any]:
    return {"search": search.model_dump(), "languages": list(languages), "longest": longest}


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """Up to `count` items, evenly over the whole."""
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]
