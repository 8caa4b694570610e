"""The task `write`: from a text to windows of it, and to how well a model foresees the text it has not read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
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
from dragoman.models.gpt import GptConfig
from dragoman.runs.files import check_folder, write_folder
from dragoman.runs.model import SavedModel
from dragoman.text.corpus import plain_name
from dragoman.text.index import Ids
from dragoman.text.reading import read_lines, refuse_encoding, refuse_missing
from dragoman.text.stream import TextStream, WindowOrder, write_stream
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers, learn, open_tokenizers
from dragoman.training.objectives import WritingLoss
from dragoman.training.settings import TrainingConfig

VALID = 0.1  # of the text, its end, held back where no validation text is given
MEASURED = 200_000  # tokens of the validation text that are read at each validation, at most
LEARNED_FROM = 20_000_000  # characters that a tokenizer is learned from, at most
SHOWN = 160  # tokens written at each validation, to be looked at


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
    train: Ids
    valid: Ids
    letters: float  # characters in a token, on the mean
    split_off: bool  # whether the validation text is the end of the training text
    about: dict[str, Any]
    tokenizer_settings: dict[str, Any]
    name: str = "write"

    @classmethod
    def prepare(
        cls, folder: Path, request: Request, texts: Texts, saved: SavedModel | None, notice: Notice
    ) -> "Writing":
        characters = sum(len(line) + 1 for line in texts.lines(texts.train))
        chosen = plan.plan_writing_tokenizer(characters, request.asked("tokenizer"))
        kept = characters if texts.valid else round((1 - VALID) * characters)
        tokenizers = saved.tokenizers if saved else learn_tokenizer(chosen, beginning(texts, kept))
        write_folder(folder / "tokenizer", tokenizers.save)
        parts = {"train": texts.train, **({"valid": texts.valid} if texts.valid else {})}
        for part, paths in parts.items():
            stream = write_stream(folder / "data" / part, texts.lines(paths), tokenizers.target)
            unknown = stream.about["unknown"] / max(1, len(stream))
            if unknown > 0.01:
                notice(f"{unknown:.1%} of the tokens of {texts.name} are unknown to the tokenizer")
        return cls.open(folder, tokenizers, {} if saved else chosen.model_dump())

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "Writing":
        check_folder(folder / "tokenizer")
        return cls.open(folder, open_tokenizers(folder / "tokenizer"), recorded["tokenizer"])

    @classmethod
    def open(cls, folder: Path, tokenizers: Tokenizers, settings: dict[str, Any]) -> "Writing":
        stream = TextStream(folder / "data" / "train")
        split_off = not (folder / "data" / "valid").exists()
        cut = round((1 - VALID) * len(stream)) if split_off else len(stream)
        valid = stream.ids[cut:] if split_off else TextStream(folder / "data" / "valid").ids
        if cut < 2 or len(valid) < 2:
            raise DataError(
                "E-DATA-11",
                f"there are {cut:,} tokens to learn from and {len(valid):,} to validate with, and two of each are the "
                "least; give a longer text, or another to --valid",
            )
        letters = stream.about["characters"] / len(stream)
        return cls(tokenizers, stream.ids[:cut], valid, letters, split_off, {}, settings)

    # ── plan ──

    def usual_minutes(self) -> float:
        return plan.minutes_for(len(self.train) // 20)  # tokens that a sentence pair would have

    def plan_model(self, request: Request, work: float) -> Settings:
        fixed = {"vocabulary": len(self.tokenizers.target)}
        return plan.plan_model(self.name, fixed, request, plan.Budget(len(self.train), work, request.epochs))

    def plan_use(self, config: Settings, request: Request) -> None: ...

    def plan_training(self, config: Settings) -> dict[str, Any]:
        """No smoothing: then the validation loss is the perplexity's logarithm. A window is as long as a model that
        has one can look back."""
        window = {"window": config.longest} if isinstance(config, GptConfig) else {}
        return {"label_smoothing": 0.0, **window}

    def describe(self) -> list[tuple[str, str]]:
        tokenizer = self.tokenizers.target
        split = " (the end of the text)" if self.split_off else ""
        read = f", of which the first {MEASURED:,} are read" if len(self.valid) > MEASURED else ""
        return [
            ("text", f"{len(self.train):,} tokens; {len(self.valid):,} for validation{split}{read}"),
            ("tokens", f"{len(tokenizer):,} {tokenizer.kind}; {self.letters:.1f} characters each"),
        ]

    def record(self) -> dict[str, Any]:
        return {"tokens": len(self.train)}

    # ── training ──

    def order(self, training: TrainingConfig, seed: int) -> WindowOrder:
        rows = training.tokens_per_step // training.accumulate // training.window
        return WindowOrder(self.train, rows, training.window, seed)

    def objective(self, training: TrainingConfig) -> WritingLoss:
        return WritingLoss(training.label_smoothing)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        nats, tokens = text_nats(model, self.valid[:MEASURED], label_smoothing=training.label_smoothing)
        return nats / tokens

    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        nats = self.validation_loss(model, training)
        plain = nats if training.label_smoothing == 0 else self.validation_loss(model, training.without_smoothing())
        text = TextWriter(model, self.tokenizers).generate(tokens=SHOWN, sampling=SampleConfig(seed=1))
        return Measured(nats, {"perplexity": exp(min(plain, 80))}, [Sample("", " ".join(text.split()), "")])

    def quick_about(self) -> dict[str, Any]:
        return self.about


def beginning(texts: Texts, characters: int) -> Iterator[str]:
    """Lines of the first so many characters of the text, an even share of them where they are too many."""
    stride = -(-characters // LEARNED_FROM)
    read = 0
    for number, line in enumerate(texts.lines(texts.train)):
        if read and read + len(line) > characters:
            return
        read += len(line) + 1
        if number % stride == 0 and line:
            yield line


def learn_tokenizer(config: TokenizerConfig, lines: Iterator[str]) -> Tokenizers:
    one = learn(
        config.kind,
        lines,
        config.vocabulary,
        config.special,
        split_digits=config.split_digits,
        keep_spaces=config.keep_spaces,
    )
    return Tokenizers(one, one)
