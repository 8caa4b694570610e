"""Text to ids and back. Five kinds to learn behind one protocol:

    unigram, bpe   subwords, learned by sentencepiece; the default for translation
    bytes          subwords over bytes, as GPT-2 has them: no text is unknown
    characters     one token a character; for spellings, sounds, dates
    words          one token a word; for small closed vocabularies, and for vectors of words

and two that come in with foreign models: a pipeline of the `tokenizers` library, and pieces under ids of another list.

A folder holds what was learned and the special ids; opening it needs nothing else.
"""

import io
import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import sentencepiece
from pydantic import Field, model_validator

from dragoman.config import Settings
from dragoman.errors import DataError, UsageError
from dragoman.text.boundaries import number_words
from dragoman.text.byte_level import learn_byte_subwords, open_byte_subwords
from dragoman.text.piece_model import open_sentencepiece
from dragoman.text.pieces import WORD_START, open_pieces
from dragoman.text.pipeline import open_pipeline
from dragoman.text.special import SpecialIds
from dragoman.text.words import AS_THEY_ARE, WordRules, count

SIDES = ("joint", "source", "target")
LARGEST_FILE = 1 << 26  # bytes; a vocabulary of a million words has about 20 million
LARGEST_GAP = 1 << 16  # ids that a foreign model may have beyond its tokenizer's
TRIED = "A B! 12,5 äß\u4e2d"

Kind = Literal["unigram", "bpe", "bytes", "characters", "words"]


class TokenizerConfig(Settings):
    kind: Kind = Field("unigram", description="unigram, bpe or bytes (subwords), characters, or words")
    target_kind: Kind | None = Field(None, description="the target's kind, where it is another than the source's")
    joint: bool = Field(True, description="one vocabulary for both sides")
    vocabulary: int = Field(8000, gt=4, description="how many subwords to learn; fewer if the text has not so many")
    split_digits: bool = Field(True, description="subwords hold one digit at most: unseen numbers are copied by digit")
    keep_spaces: bool = Field(False, description="subwords keep white space as it is: for a text, not for sentences")
    lowercase: bool = Field(False, description="words are read in small letters")
    split_punctuation: bool = Field(False, description="of words, punctuation stands apart")
    least_count: int = Field(1, gt=0, description="times that a word must be there to be known")
    most_words: int = Field(1_000_000, gt=0, description="words that are known at most, the most frequent ones")
    special: SpecialIds = Field(SpecialIds(), description="ids of padding, start, end and unknown")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "TokenizerConfig":
        if self.words() != AS_THEY_ARE and "words" not in (self.kind, self.target_kind):
            raise ValueError(
                "lowercase, split_punctuation, least_count and most_words are for words, "
                f"and these tokens are {self.kind}; set kind = words"
            )
        if self.joint and self.target_kind not in (None, self.kind):
            raise ValueError(f"one vocabulary cannot hold {self.kind} and {self.target_kind}; set joint = false")
        return self

    def words(self) -> WordRules:
        return WordRules(self.lowercase, self.split_punctuation, self.least_count, self.most_words)


@runtime_checkable
class Tokenizer(Protocol):
    kind: str  # what its tokens are called: subwords, characters, words
    special: SpecialIds
    writes_newlines: bool  # whether "\n" is a token like others; else `end` stands for it in a text

    def __len__(self) -> int: ...
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without start or end. The texts are clean (`reading.clean`)."""
        ...

    def decode(self, ids: Sequence[int]) -> str: ...
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each token as it is shown to people."""
        ...

    def words(self, ids: Sequence[int]) -> list[int]:
        """To which word of the text each token belongs, counted from 0."""
        ...

    def save(self, folder: Path, name: str) -> None: ...


MANY = 1000  # texts for which it pays to begin a second thread


class Subwords:
    """A sentencepiece model."""

    def __init__(self, proto: bytes, special: SpecialIds) -> None:
        self.kind = "subwords"
        self.writes_newlines = False
        self.special = special
        self.proto = proto
        self.model = open_sentencepiece(proto)

    def __len__(self) -> int:
        return self.model.vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.model.encode(list(texts), num_threads=2 if len(texts) >= MANY else 1)

    def decode(self, ids: Sequence[int]) -> str:
        return self.model.decode([int(i) for i in ids])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.model.id_to_piece(int(i)) for i in ids]

    def words(self, ids: Sequence[int]) -> list[int]:
        return number_words(piece.startswith(WORD_START) for piece in self.pieces(ids))

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.model").write_bytes(self.proto)


class Symbols:
    """A list of symbols, each a character or a word; the place in the list is the id."""

    def __init__(
        self, symbols: Sequence[str], special: SpecialIds, *, separator: str, rules: WordRules = AS_THEY_ARE
    ) -> None:
        self.rules = rules
        self.kind = "words" if separator else "characters"
        self.writes_newlines = False
        self.special = special
        self.symbols = list(symbols)
        self.separator = separator  # what stands between two symbols: nothing, or a space
        named = special.pieces()
        self.ids = {symbol: i for i, symbol in enumerate(symbols) if i not in named}
        self.silent = {*named} - {special.unknown, *special.spans}

    def __len__(self) -> int:
        return len(self.symbols)

    def split(self, text: str) -> list[str]:
        return self.rules.split(text) if self.separator else list(text)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        unknown = self.special.unknown
        return [[self.ids.get(symbol, unknown) for symbol in self.split(text)] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return self.separator.join(self.symbols[i] for i in ids if i not in self.silent)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.symbols[i] for i in ids]

    def words(self, ids: Sequence[int]) -> list[int]:
        if self.separator:
            return list(range(len(ids)))
        word, numbers = 0, []
        for symbol in self.pieces(ids):
            word += symbol == " "
            numbers.append(word)
        return numbers

    def save(self, folder: Path, name: str) -> None:
        about = {"separator": self.separator, "rules": self.rules._asdict(), "symbols": self.symbols}
        (folder / f"{name}.json").write_text(json.dumps(about, ensure_ascii=False, indent=0), encoding="utf-8")


# ── learning ──────────────────────────────────────────────────────────────────────────────


def learn(
    kind: Kind,
    texts: Iterable[str],
    vocabulary: int,
    special: SpecialIds,
    *,
    split_digits: bool = True,
    keep_spaces: bool = False,
    words: WordRules = AS_THEY_ARE,
) -> Tokenizer:
    match kind:
        case "characters":
            return learn_symbols((list(text) for text in texts), special, AS_THEY_ARE, separator="")
        case "words":
            return learn_symbols((words.split(text) for text in texts), special, words, separator=" ")
        case "unigram" | "bpe":
            return learn_subwords(kind, list(texts), vocabulary, special, split_digits, keep_spaces)
        case "bytes":
            return learn_byte_subwords(texts, vocabulary, special)


def learn_symbols(texts: Iterable[list[str]], special: SpecialIds, rules: WordRules, *, separator: str) -> Symbols:
    counts = count(texts)
    known = [symbol for symbol, times in counts.items() if times >= rules.least]
    ordered = sorted(known, key=lambda symbol: (-counts[symbol], symbol))[: rules.most]
    reserved = special.pieces()
    size = len(reserved) + len(ordered)
    if max(reserved) >= size:
        raise UsageError(
            "E-TOK-03", f"the special id {max(reserved)} is beyond a vocabulary of {size} tokens; lower it"
        )
    rest = iter(ordered)
    symbols = [reserved[i] if i in reserved else next(rest) for i in range(size)]
    return Symbols(symbols, special, separator=separator, rules=rules)


def learn_subwords(
    kind: str, texts: list[str], vocabulary: int, special: SpecialIds, split_digits: bool, keep_spaces: bool
) -> Subwords:
    alphabet = len(set().union(*texts)) if texts else 0
    proto = io.BytesIO()
    own_start = special.start not in {special.pad, special.end, special.unknown}
    main = {special.pad, special.start, special.end, special.unknown}
    others = {i: piece for i, piece in special.pieces().items() if i not in main}
    if others and sorted(others) != [i for i in range(len(others) + len(main)) if i not in main]:
        raise UsageError("E-TOK-03", f"the ids {sorted(others)} of hidden text must follow on {sorted(main)}")
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=proto,
            model_type=kind,
            vocab_size=max(vocabulary, min(alphabet, 3000) + 16),
            hard_vocab_limit=False,
            character_coverage=1.0 if alphabet < 1000 else 0.9995,
            split_digits=split_digits,
            normalization_rule_name="identity",  # the text is clean already, and must come back as it was
            remove_extra_whitespaces=not keep_spaces,
            control_symbols=[others[i] for i in sorted(others)],
            user_defined_symbols=["\t"] if keep_spaces else [],  # else it is a mark of sentencepiece's own
            pad_id=special.pad,
            bos_id=special.start if own_start else -1,
            eos_id=special.end,
            unk_id=special.unknown,
            max_sentence_length=1 << 16,
            num_threads=2,
            minloglevel=2,
        )
    except RuntimeError as problem:
        raise DataError(
            "E-TOK-01", f"no {kind} subwords can be learned from these {len(texts):,} sentences: {one_line(problem)}"
        ) from None
    return Subwords(proto.getvalue(), special)


def one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split())


# ── both sides ────────────────────────────────────────────────────────────────────────────


class Tokenizers:
    """The source's tokenizer and the target's: the same object where the vocabulary is joint."""

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source, self.target = source, target

    @property
    def joint(self) -> bool:
        return self.source is self.target

    @property
    def special(self) -> SpecialIds:
        return self.target.special

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        sides = {"joint": self.source} if self.joint else {"source": self.source, "target": self.target}
        for name, tokenizer in sides.items():
            tokenizer.save(folder, name)
        about = {"sides": list(sides), "special": self.special.model_dump()}
        (folder / "tokenizer.json").write_text(json.dumps(about, indent=1))


def learn_tokenizers(config: TokenizerConfig, pairs: Sequence[tuple[str, str]]) -> Tokenizers:
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    learn_side = partial(
        learn,
        vocabulary=config.vocabulary,
        special=config.special,
        split_digits=config.split_digits,
        words=config.words(),
    )
    if config.joint:
        joint = learn_side(config.kind, [*sources, *targets])
        return Tokenizers(joint, joint)
    return Tokenizers(learn_side(config.kind, sources), learn_side(config.target_kind or config.kind, targets))


def open_tokenizers(folder: Path) -> Tokenizers:
    """What was saved there. A file may be damaged or made by anyone: it is looked at before a library is given it, and
    what opens must be able to read and write a little text."""
    try:
        for path in folder.iterdir():
            refuse_large(path)
        about = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        special = SpecialIds.read(about["special"], section="tokenizer.special")
        names = [name for name in about["sides"] if name in SIDES]
        sides = [open_side(folder, name, special) for name in names]
        for side in sides:
            try_out(side)
        return Tokenizers(sides[0], sides[-1])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # a library in Rust panics by an exception that is no Exception
        why = one_line(problem)[:300] or type(problem).__name__
        raise DataError("E-TOK-02", f"{folder} holds no tokenizer that can be read: {why}") from None


def refuse_large(path: Path) -> None:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path.name} is a pipe or a device, and must be a file")
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path.name} has more than {LARGEST_FILE:,} bytes")


def try_out(tokenizer: Tokenizer) -> None:
    """What cannot be used is better found here than in the middle of a text."""
    size = len(tokenizer)
    if size < 1 or max(tokenizer.special.pieces()) > size + LARGEST_GAP:
        raise ValueError(f"it has {size} tokens, and a special id {max(tokenizer.special.pieces())}")
    for ids in tokenizer.encode([TRIED, ""]):
        if not all(i >= 0 for i in ids):
            raise ValueError("it gives ids below 0")
        tokenizer.decode(ids).encode()
        tokenizer.words(ids)


def open_side(folder: Path, name: str, special: SpecialIds) -> Tokenizer:
    if (folder / f"{name}.model").exists():
        return Subwords((folder / f"{name}.model").read_bytes(), special)
    if (folder / f"{name}.bytes.json").exists():
        return open_byte_subwords(folder / f"{name}.bytes.json", special)
    if (folder / f"{name}.pipeline.json").exists():
        return open_pipeline(folder / f"{name}.pipeline.json", special)
    if (folder / f"{name}.pieces.json").exists():
        return open_pieces(folder, name, special)
    about = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    rules = WordRules(**about.get("rules", {}))  # older folders have none
    if not all(isinstance(text, str) for text in [about["separator"], *about["symbols"]]):
        raise ValueError(f"{name}.json lists symbols that are no text")
    return Symbols(about["symbols"], special, separator=about["separator"], rules=rules)
