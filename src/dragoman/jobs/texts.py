"""One text for all who learn from it without labels: writers, those who fill in, those who restore.

It is found, encoded into one long row of ids in the run's folder, and split: its end validates, where there is no other
text for that. The tasks themselves (writing.py, filling.py, restoring.py) say what is asked of a model about it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from dragoman.config import Settings
from dragoman.errors import DataError
from dragoman.jobs import plan
from dragoman.jobs.prepare import Notice, check_vocabulary, tell_odd_bytes
from dragoman.jobs.request import Request
from dragoman.runs.files import check_folder, write_folder
from dragoman.runs.model import SavedModel
from dragoman.text.corpus import plain_name
from dragoman.text.index import Ids
from dragoman.text.reading import clean, read_lines, refuse_encoding, refuse_missing
from dragoman.text.special import SpecialIds
from dragoman.text.stream import TextStream, write_stream
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers, learn, open_tokenizers

LEARNED_FROM = 20_000_000  # characters that a tokenizer is learned from, at most

Kind = TypeVar("Kind", bound="TextTask")


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
class TextData:
    """A text as ids, with the tokenizer that made them."""

    folder: Path  # of these data, in the run's
    tokenizers: Tokenizers
    settings: dict[str, Any]  # of the tokenizer, as chosen; empty where it came with a model
    whole: Ids
    train: Ids
    valid: Ids
    letters: float  # characters in a token, on the mean
    split_off: bool  # whether the validation text is the end of the training text

    @classmethod
    def prepare(
        cls,
        folder: Path,
        request: Request,
        texts: Texts,
        saved: SavedModel | None,
        notice: Notice,
        settings: dict[str, Any],
        held_back: float,
    ) -> "TextData":
        """`settings` are what the task wants of the tokenizer. Where white space is not kept, lines are cleaned and
        empty ones left out. The last part of the text, `held_back`, validates where there is no other text for that."""
        characters = sum(len(line) + 1 for line in texts.lines(texts.train))
        chosen = plan.plan_text_tokenizer(characters, {**settings, **request.asked("tokenizer")})
        kept = characters if texts.valid else round((1 - held_back) * characters)
        tell_odd_bytes(texts.train, texts.encoding, notice, keep_spaces=chosen.keep_spaces)
        tokenizers = saved.tokenizers if saved else learn_tokenizer(chosen, beginning(texts, kept, chosen))
        check_vocabulary(request.asked("tokenizer"), tokenizers, notice)
        write_folder(folder / "tokenizer", tokenizers.save)
        parts = {"train": texts.train, **({"valid": texts.valid} if texts.valid else {})}
        for part, paths in parts.items():
            raw = texts.lines(paths)
            lines = raw if chosen.keep_spaces else (line for line in map(clean, raw) if line)
            stream = write_stream(folder / "data" / part, lines, tokenizers.target)
            unknown = stream.about["unknown"] / max(1, len(stream))
            if unknown > 0.01:
                notice(f"{unknown:.1%} of the tokens of {texts.name} are unknown to the tokenizer")
        return cls.open(folder, tokenizers, {} if saved else chosen.model_dump(), held_back)

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any], held_back: float) -> "TextData":
        check_folder(folder / "tokenizer")
        return cls.open(folder, open_tokenizers(folder / "tokenizer"), recorded["tokenizer"], held_back)

    @classmethod
    def open(cls, folder: Path, tokenizers: Tokenizers, settings: dict[str, Any], held_back: float) -> "TextData":
        stream = TextStream(folder / "data" / "train")
        split_off = not (folder / "data" / "valid").exists()
        cut = round((1 - held_back) * len(stream)) if split_off else len(stream)
        valid = stream.ids[cut:] if split_off else TextStream(folder / "data" / "valid").ids
        if cut < 2 or len(valid) < 2:
            raise DataError(
                "E-DATA-11",
                f"there are {cut:,} tokens to learn from and {len(valid):,} to validate with, and two of each are the "
                "least; give a longer text, or another to --valid",
            )
        letters = stream.about["characters"] / len(stream)
        return cls(folder / "data", tokenizers, settings, stream.ids, stream.ids[:cut], valid, letters, split_off)


@dataclass
class TextTask:
    """What those tasks share."""

    data: TextData
    about: dict[str, Any] = field(default_factory=dict)
    name: ClassVar[str]
    counted: ClassVar[str] = "tokens"
    keep_spaces: ClassVar[bool] = False
    special: ClassVar[SpecialIds] = SpecialIds()
    held_back: ClassVar[float] = 0.1  # of the text, its end, where no validation text is given
    measured: ClassVar[int]  # tokens of the validation text that are read at each validation, at most

    @classmethod
    def prepare(
        cls: type[Kind], folder: Path, request: Request, texts: Texts, saved: SavedModel | None, notice: Notice
    ) -> Kind:
        return cls(TextData.prepare(folder, request, texts, saved, notice, cls.tokens_wanted(), cls.held_back))

    @classmethod
    def reopen(cls: type[Kind], folder: Path, recorded: Mapping[str, Any]) -> Any:
        return cls(TextData.reopen(folder, recorded, cls.held_back))

    @classmethod
    def tokens_wanted(cls) -> dict[str, Any]:
        """Settings of the tokenizer, where nobody asked for others."""
        return {"keep_spaces": cls.keep_spaces, "special": cls.special}

    @property
    def tokenizers(self) -> Tokenizers:
        return self.data.tokenizers

    @property
    def tokenizer_settings(self) -> dict[str, Any]:
        return self.data.settings

    @property
    def valid(self) -> Ids:
        return self.data.valid[: self.measured]

    def usual_minutes(self) -> float:
        return plan.minutes_for(len(self.data.train) // 20)  # tokens that a sentence pair would have

    def most_epochs(self, config: Settings) -> float:  # noqa: ARG002
        return inf

    def plan_from(self, config: Settings) -> Settings:
        return config

    def plan_model(self, request: Request, work: float) -> Settings:
        tokens = len(self.data.train)
        budget = plan.Budget(tokens, work, plan.tokens_asked(request, tokens))
        return plan.plan_model(self.name, self.fixed(), request, budget)

    def fixed(self) -> dict[str, Any]:
        """What follows from the tokenizer."""
        return {"vocabulary": len(self.tokenizers.target)}

    def plan_use(self, config: Settings, request: Request) -> None: ...

    def quick_about(self) -> dict[str, Any]:
        return self.about

    def describe(self) -> list[tuple[str, str]]:
        data, tokenizer = self.data, self.tokenizers.target
        split = " (the end of the text)" if data.split_off else ""
        read = f", of which the first {self.measured:,} are read" if len(data.valid) > self.measured else ""
        return [
            ("text", f"{len(data.train):,} tokens; {len(data.valid):,} for validation{split}{read}"),
            ("tokens", f"{len(tokenizer):,} {tokenizer.kind}; {data.letters:.1f} characters each"),
        ]

    def record(self) -> dict[str, Any]:
        return {"tokens": len(self.data.train)}


def beginning(texts: Texts, characters: int, config: TokenizerConfig) -> Iterator[str]:
    """Lines of the first so many characters of the text, an even share of them where they are too many; words are only
    counted, so there are never too many for them."""
    stride = 1 if config.kind == "words" else -(-characters // LEARNED_FROM)
    read = 0
    for number, line in enumerate(texts.lines(texts.train)):
        if read and read + len(line) > characters:
            return
        read += len(line) + 1
        if number % stride == 0 and line:
            yield line if config.keep_spaces else clean(line)


def learn_tokenizer(config: TokenizerConfig, lines: Iterator[str]) -> Tokenizers:
    one = learn(
        config.kind,
        lines,
        config.vocabulary,
        config.special,
        split_digits=config.split_digits,
        keep_spaces=config.keep_spaces,
        words=config.words(),
    )
    return Tokenizers(one, one)
