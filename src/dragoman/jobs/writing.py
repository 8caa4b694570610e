"""The task `write`: from a text to windows of it, and to how well a model foresees the text it has not read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.config import Settings
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.sample import SampleConfig
from dragoman.errors import DataError
from dragoman.evaluation.perplexity import text_nats
from dragoman.jobs import plan
from dragoman.jobs.prepare import Notice
from dragoman.jobs.request import Request
from dragoman.jobs.task import Measured, Sample
from dragoman.runs.files import check_folder, write_folder
from dragoman.runs.model import SavedModel
from dragoman.text.corpus import plain_name
from dragoman.text.reading import read_lines, refuse_encoding, refuse_missing
from dragoman.text.stream import TextStream, WindowOrder, write_stream
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers, learn, open_tokenizers
from dragoman.training.objectives import WritingLoss
from dragoman.training.settings import TrainingConfig

VALID = 0.1  # of the text, its end, held back where no validation text is given
MOST_VALID = 20_000  # lines of it at most
SAMPLED = 400_000  # lines that a tokenizer is learned from, at most
SHOWN = 160  # characters of the text shown at each validation


class Texts(NamedTuple):
    train: list[Path]
    valid: list[Path]
    encoding: str

    @property
    def name(self) -> str:
        return plain_name(self.train[0])

    @property
    def paths(self) -> list[Path]:
        return [*self.train, *self.valid]

    def lines(self, paths: list[Path]) -> Iterator[str]:
        return chain.from_iterable(read_lines(path, self.encoding) for path in paths)


def find(request: Request) -> Texts:
    texts = Texts([Path(p) for p in request.corpora], [Path(p) for p in request.valid], request.encoding)
    refuse_encoding(request.encoding)
    for path in texts.paths:
        refuse_missing(path)
    return texts


@dataclass
class Writing:
    tokenizers: Tokenizers
    train: TextStream
    valid: TextStream
    split_off: int  # lines at the end of the text kept for validation; 0 where it has files of its own
    about: dict[str, Any]
    tokenizer_settings: dict[str, Any]
    name: str = "write"

    @classmethod
    def prepare(
        cls, folder: Path, request: Request, texts: Texts, saved: SavedModel | None, notice: Notice
    ) -> "Writing":
        count = sum(1 for _ in texts.lines(texts.train))
        split_off = 0 if texts.valid else min(MOST_VALID, round(VALID * count))
        if count - split_off < 1 or (not texts.valid and split_off < 1):
            raise DataError(
                "E-DATA-10",
                f"{texts.name} has {count} lines; there is nothing to learn from, or nothing to validate on",
            )
        chosen = None if saved else plan.plan_writing_tokenizer(learned_from(texts, count), request.asked("tokenizer"))
        tokenizers = saved.tokenizers if saved else learn_tokenizer(chosen, learned_from(texts, count - split_off))
        write_folder(folder / "tokenizer", tokenizers.save)
        end = texts.lines(texts.valid) if texts.valid else islice(texts.lines(texts.train), count - split_off, None)
        valid = write_stream(folder / "data" / "valid", end, tokenizers.target)
        train = write_stream(
            folder / "data" / "train", islice(texts.lines(texts.train), count - split_off), tokenizers.target
        )
        for part, stream in (("text", train), ("validation text", valid)):
            if stream.about["unknown"] > 0.01 * len(stream):
                share = stream.about["unknown"] / len(stream)
                notice(f"{share:.1%} of the tokens of the {part} are unknown to the tokenizer")
        return cls(tokenizers, train, valid, split_off, {}, chosen.model_dump() if chosen else {})

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "Writing":
        check_folder(folder / "tokenizer")
        train, valid = TextStream(folder / "data" / "train"), TextStream(folder / "data" / "valid")
        tokenizers = open_tokenizers(folder / "tokenizer")
        task = cls(tokenizers, train, valid, recorded["plan"]["split_off"], {}, recorded["tokenizer"])
        task.about = {}
        return task

    # ── plan ──

    def usual_minutes(self) -> float:
        return plan.minutes_for(len(self.train) // 20)  # tokens that a sentence pair would have

    def plan_model(self, request: Request, work: float) -> Settings:
        fixed = {"vocabulary": len(self.tokenizers.target)}
        return plan.plan_model(("write", request.family), fixed, request, len(self.train), work)

    def plan_use(self, config: Settings, request: Request) -> None: ...

    def plan_training(self) -> dict[str, Any]:
        return {"label_smoothing": 0.0}  # then the validation loss is the perplexity's logarithm

    def describe(self) -> list[tuple[str, str]]:
        tokenizer = self.tokenizers.target
        split = f" (its last {self.split_off:,} lines, split off)" if self.split_off else ""
        letters = self.train.about["characters"] / max(1, len(self.train))
        return [
            ("text", f"{len(self.train):,} tokens; {len(self.valid):,} for validation{split}"),
            ("tokens", f"{len(tokenizer):,} {tokenizer.kind}; {letters:.1f} characters each"),
        ]

    def record(self) -> dict[str, Any]:
        return {"tokens": len(self.train), "split_off": self.split_off}

    # ── training ──

    def order(self, training: TrainingConfig, seed: int) -> WindowOrder:
        rows = training.tokens_per_step // training.accumulate // training.window
        return WindowOrder(self.train.ids, rows, training.window, seed)

    def objective(self, training: TrainingConfig) -> WritingLoss:
        return WritingLoss(training.label_smoothing)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        nats, tokens = text_nats(model, self.valid.ids, training.label_smoothing)
        return nats / tokens

    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        nats = self.validation_loss(model, training)
        text = TextWriter(model, self.tokenizers, self.about).generate(tokens=SHOWN, sampling=SampleConfig(seed=1))
        return Measured(nats, {"perplexity": exp(min(nats, 80))}, [Sample("", " ".join(text.split()), "")])

    def quick_about(self) -> dict[str, Any]:
        return self.about


def learned_from(texts: Texts, lines: int) -> Iterable[str]:
    """An even share of the text's first lines, at most so many as a tokenizer needs."""
    stride = -(-lines // SAMPLED)
    return islice(texts.lines(texts.train), 0, lines, stride)


def learn_tokenizer(config: TokenizerConfig | None, lines: Iterable[str]) -> Tokenizers:
    assert config is not None
    one = learn(
        config.kind,
        [line for line in lines if line],
        vocabulary=config.vocabulary,
        special=config.special,
        split_digits=config.split_digits,
    )
    return Tokenizers(one, one)
