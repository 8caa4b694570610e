"""Texts with a label each: what a classifier learns from.

    kind     what a line holds
    plain    label<TAB>text, or label<SPACE>text where the first line has no tab
    tsv      label<TAB>text
    jsonl    {"label": …, "text": …}

A tab within the text divides two texts that are judged together, such as a question and an answer to it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import DataError, UsageError
from dragoman.text.corpus import FOREIGN, Dropped, ending_of, plain_name
from dragoman.text.reading import clean, read_lines, refuse_encoding, refuse_missing
from dragoman.text.tokenizer import Tokenizer

NO_TEXT = "no words"
SHOWN = 8  # labels named in a sentence


class Labelled(NamedTuple):
    label: str
    text: str
    path: Path
    line: int


@dataclass(frozen=True)
class LabelledCorpus:
    paths: tuple[Path, ...]
    encoding: str = "utf-8"

    @property
    def name(self) -> str:
        more = f"-and-{len(self.paths) - 1}-more" if len(self.paths) > 1 else ""
        return f"{plain_name(self.paths[0])}{more}"

    def texts(self, dropped: Dropped) -> Iterator[Labelled]:
        """All labelled texts of all files, cleaned; blank lines and labels without words go to `dropped`."""
        for path in self.paths:
            for found in read_jsonl(path, self.encoding) if ending_of(path) == ".jsonl" else self.read(path):
                if found.text:
                    yield found
                else:
                    dropped.add(NO_TEXT, found.line)

    def read(self, path: Path) -> Iterator[Labelled]:
        """Lines of label, tab or space, text: the first one tells which of the two it is."""
        divider = "\t" if ending_of(path) == ".tsv" else ""
        for number, line in enumerate(read_lines(path, self.encoding), start=1):
            if not line.strip():
                yield Labelled("", "", path, number)
                continue
            divider = divider or ("\t" if "\t" in line else " ")
            label, found, text = line.partition(divider)
            name = clean(label)
            if not (found and name):
                written = "label<TAB>text" if divider == "\t" else "label<SPACE>text"
                raise unlabelled(path, number, f"has no label ({line[:40]!r}); each line is {written}")
            yield Labelled(name, clean_text(text), path, number)


def find_labelled(arguments: Sequence[str | Path], encoding: str = "utf-8") -> LabelledCorpus:
    paths = tuple(Path(argument) for argument in arguments)
    expected = "give files of label<TAB>text, or .jsonl with label and text"
    if not paths:
        raise UsageError("E-USE-01", f"no files were given; {expected}")
    for path in paths:
        refuse_missing(path)
        if ending_of(path) in {*FOREIGN, ".tmx"}:
            raise UsageError("E-USE-01", f"{path} is of a kind that holds no labels; {expected}")
    refuse_encoding(encoding)
    return LabelledCorpus(paths, encoding)


def read_jsonl(path: Path, encoding: str) -> Iterator[Labelled]:
    for number, line in enumerate(read_lines(path, encoding), start=1):
        if not line.strip():
            yield Labelled("", "", path, number)
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise unlabelled(path, number, f"is not JSON ({problem})") from None
        label, text = (row.get("label"), row.get("text")) if isinstance(row, dict) else (None, None)
        name = clean(label) if isinstance(label, str) else json.dumps(label)
        if isinstance(label, dict | list | None) or not name or not isinstance(text, str):
            raise unlabelled(path, number, 'has no label, or no text; each line is {"label": …, "text": …}')
        yield Labelled(name, clean_text(text), path, number)


def unlabelled(path: Path, line: int, what: str) -> DataError:
    return DataError("E-CLS-01", f"{path}: line {line:,} {what}. Mend or remove that line.")


def number_of(found: Labelled, numbers: dict[str, int]) -> int:
    """The place of its label among the known ones."""
    if found.label not in numbers:
        raise DataError(
            "E-CLS-04",
            f"{found.path}: line {found.line:,} has the label {found.label!r}, which the model does not know "
            f"(known: {some(list(numbers))}); mend or remove that line",
        )
    return numbers[found.label]


def some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def in_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Sorted: as numbers where all of them are."""
    numbers = all(label.isascii() and label.isdigit() for label in labels)
    return tuple(sorted(labels, key=lambda label: (int(label), label) if numbers else (0, label)))


def clean_text(text: str) -> str:
    """One text clean, or two with a tab between them."""
    return "\t".join(part for part in map(clean, text.split("\t", 1)) if part)


def encode_texts(texts: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Ids of each clean text. Between two that belong together stands `end`, which is [SEP]."""
    parted = [text.partition("\t") for text in texts]
    first = tokenizer.encode([before for before, _, _ in parted])
    second = tokenizer.encode([after for _, _, after in parted])
    end = tokenizer.special.end
    return [a + ([end, *b] if b else []) for a, b in zip(first, second, strict=True)]
