"""From files of labelled texts to token ids on disk: count the labels, learn the tokenizer, write the index.

An index of pairs serves: the one side holds a text's ids, the other the number of its class.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import DataError
from dragoman.jobs import plan
from dragoman.jobs.prepare import CHUNK, SAMPLE, DataConfig, Notice, check_vocabulary, tell_odd_bytes
from dragoman.jobs.request import Request
from dragoman.jobs.task import Corpora
from dragoman.jobs.texts import learn_tokenizer
from dragoman.runs.files import check_folder, write_file, write_folder
from dragoman.runs.model import SavedModel
from dragoman.text.corpus import Dropped, part_of, share_for
from dragoman.text.index import PairIndex, write_index
from dragoman.text.labels import Labelled, LabelledCorpus, encode_texts, in_order, number_of, some
from dragoman.text.tokenizer import Tokenizers, open_tokenizers

TEXTS_PER_LABEL = 4  # on the mean; with fewer the first words of the lines are hardly labels


class LabelSurvey(NamedTuple):
    """What is known of a labelled corpus before it is tokenized."""

    labels: Counter[str]
    sample: list[str]  # texts, spread evenly over the corpus
    characters: int  # of all texts, about


def survey(corpus: LabelledCorpus) -> LabelSurvey:
    """Read everything once, keep every 2ⁿ-th text: enough to plan by, never too much to hold."""
    labels, sample, stride = Counter[str](), list[str](), 1
    for number, found in enumerate(corpus.texts(Dropped())):
        labels[found.label] += 1
        if number % stride == 0:
            sample.append(found.text)
        if len(sample) == 2 * SAMPLE:
            sample, stride = sample[::2], 2 * stride
    refuse_unfit(corpus, labels)
    return LabelSurvey(labels, sample, stride * sum(len(text) + 1 for text in sample))


def refuse_unfit(corpus: LabelledCorpus, labels: Counter[str]) -> None:
    texts = labels.total()
    if not texts:
        raise DataError("E-CLS-02", f"{corpus.name} holds no labelled text; each line is label<TAB>text")
    if len(labels) == 1:
        raise DataError(
            "E-CLS-03",
            f"all {texts:,} texts of {corpus.name} have the label {next(iter(labels))!r}; "
            "there is nothing to tell apart, so give texts with another label too",
        )
    if texts < TEXTS_PER_LABEL * len(labels):
        raise DataError(
            "E-CLS-05",
            f"{corpus.name} has {len(labels):,} different labels ({some(in_order([*labels]))}) for {texts:,} texts, "
            f"and {TEXTS_PER_LABEL} texts a label are the least; is each line label<TAB>text?",
        )


@dataclass
class LabelledData:
    """Labelled texts as ids, with the tokenizer that made them."""

    tokenizers: Tokenizers
    settings: dict[str, Any]  # of the tokenizer, as chosen; empty where it came with a model
    classes: tuple[str, ...]
    train: PairIndex
    valid: PairIndex
    valid_texts: list[tuple[str, str]]  # label and text
    split_off: bool  # whether the validation texts are a part of the training corpus

    @classmethod
    def prepare(
        cls, folder: Path, request: Request, corpora: Corpora[LabelledCorpus], saved: SavedModel | None, notice: Notice
    ) -> "LabelledData":
        """A classifier that goes on keeps its classes. The validation part is written first."""
        config = DataConfig.read(request.asked("data"), section="data")
        surveyed = survey(corpora.train)
        tell_odd_bytes(corpora.train.paths, corpora.train.encoding, notice)
        chosen = plan.plan_label_tokenizer(surveyed.characters, request.asked("tokenizer"))
        tokenizers = saved.tokenizers if saved else learn_tokenizer(chosen, iter(surveyed.sample))
        check_vocabulary(request.asked("tokenizer"), tokenizers, notice)
        write_folder(folder / "tokenizer", tokenizers.save)
        writer = Writer(
            folder / "data",
            tokenizers,
            classes_of(saved) or in_order([*surveyed.labels]),
            most_tokens(config, request, saved),
        )
        usual = min(0.1, config.valid_pairs / surveyed.labels.total())
        share = 0.0 if corpora.valid else share_for(surveyed.sample, usual)
        writer.write(corpora.train, corpora.valid, share, notice)
        return cls.open(folder, tokenizers, {} if saved else chosen.model_dump(), writer.classes, share > 0)

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "LabelledData":
        check_folder(folder / "tokenizer")
        classes, split_off = tuple(recorded["model"]["classes"]), recorded["plan"]["split_off"]
        return cls.open(folder, open_tokenizers(folder / "tokenizer"), recorded["tokenizer"], classes, split_off)

    @classmethod
    def open(
        cls, folder: Path, tokenizers: Tokenizers, settings: dict[str, Any], classes: tuple[str, ...], split_off: bool
    ) -> "LabelledData":
        train, valid = PairIndex(folder / "data" / "train"), PairIndex(folder / "data" / "valid")
        texts = json.loads((folder / "data" / "valid.json").read_text(encoding="utf-8"))
        return cls(tokenizers, settings, classes, train, valid, [(label, text) for label, text in texts], split_off)


def classes_of(saved: SavedModel | None) -> tuple[str, ...]:
    config: Any = saved.model.config if saved else None
    return getattr(config, "classes", ())


def most_tokens(config: DataConfig, request: Request, saved: SavedModel | None) -> int:
    """Tokens of a text that are learned from: as many as the model reads, where that is known by now."""
    known: Any = saved.model.config if saved else None
    longest = getattr(known, "longest", None) if saved else request.asked("model").get("longest")
    return min(config.longest, int(longest) - 2) if longest else config.longest


@dataclass(frozen=True)
class Writer:
    """Writes labelled texts as ids into a folder."""

    folder: Path
    tokenizers: Tokenizers
    classes: tuple[str, ...]
    most: int  # tokens of a text; what is longer is learned from its beginning, and said

    def write(self, corpus: LabelledCorpus, valid: LabelledCorpus | None, share: float, notice: Notice) -> None:
        dropped = Dropped(thing="validation text")
        held = [found for found in (valid or corpus).texts(dropped) if valid or part_of(found.text) < share]
        texts = [(found.label, found.text) for found in held]
        self.encode("valid", iter(held), set())
        write_file(self.folder / "valid.json", json.dumps(texts, ensure_ascii=False))
        left = Dropped(thing="text")
        rest = (found for found in corpus.texts(left) if valid or part_of(found.text) >= share)
        about = self.encode("train", rest, {text for _, text in texts})
        if not (held and about["texts"]):
            raise DataError(
                "E-CLS-02",
                f"{corpus.name} leaves {about['texts']:,} texts to learn from and there are {len(held):,} to validate "
                "with; give more texts, or some to --valid",
            )
        for sentence in (*(dropped.sentences() if valid else ()), *left.sentences(), *remarks(about, self.most)):
            notice(sentence)

    def encode(self, part: str, texts: Iterator[Labelled], held: set[str]) -> Counter[str]:
        """Write the ids of all texts and what was counted; those met again that are held back are counted, too."""
        numbers = {name: number for number, name in enumerate(self.classes)}
        tokenizer, counts, about = self.tokenizers.target, Counter[str](), dict[str, Any]()

        def chunks() -> Iterator[list[tuple[list[int], list[int]]]]:
            while chunk := list(islice(texts, CHUNK)):
                ids = encode_texts([found.text for found in chunk], tokenizer)
                counts["texts"] += len(chunk)
                counts["leaked"] += sum(found.text in held for found in chunk)
                counts["cut"] += sum(len(one) > self.most for one in ids)
                counts["unknown"] += sum(one.count(tokenizer.special.unknown) for one in ids)
                counts["tokens"] += sum(min(len(one), self.most) for one in ids)
                labels = [number_of(found, numbers) for found in chunk]
                yield [(one[: self.most], [label]) for one, label in zip(ids, labels, strict=True)]
            about.update(counts)  # known only now; written after the last chunk

        write_index(self.folder / part, chunks(), max(len(tokenizer), len(numbers)), about)
        return counts


def remarks(counts: Counter[str], most: int) -> Iterator[str]:
    """What looks wrong with what was kept, or is not all of it."""
    if counts["cut"]:
        yield f"{counts['cut']:,} texts have more than {most:,} tokens; their first {most:,} are learned from"
    if counts["leaked"]:
        yield f"{counts['leaked']:,} training texts also stand in the validation data"
    if counts["unknown"] > 0.01 * counts["tokens"]:
        yield f"{counts['unknown'] / counts['tokens']:.1%} of the tokens are unknown to the tokenizer"
