"""Files that ask what words have to do with each other.

    judgements   word<TAB>word<TAB>score, how alike people find them: WordSim-353, SimLex-999; commas or spaces do too,
                 and columns between the words and the score, and a line of headings
    analogies    a b c d: a is to b as c is to d; `: name` begins a section, as in questions-words.txt

Lines that begin with # are remarks.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import DataError
from dragoman.text.reading import read_lines, refuse_missing


class Judgement(NamedTuple):
    first: str
    second: str
    score: float


class Analogy(NamedTuple):
    section: str
    words: tuple[str, str, str, str]


def read_word_test(path: Path, encoding: str = "utf-8") -> list[Judgement] | list[Analogy]:
    """Which of both it is, the first lines tell."""
    refuse_missing(path)
    lines = [(number, line.strip()) for number, line in enumerate(read_lines(path, encoding), start=1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise DataError("E-WORD-04", f"{path} asks nothing; give lines of word<TAB>word<TAB>score, or of four words")
    if holds_analogies([line for _, line in lines[:2]]):
        return list(read_analogies(path, lines))
    return list(read_judgements(path, lines))


def holds_analogies(first: list[str]) -> bool:
    """Told from the first lines: four words, and no headings of scores that follow."""
    if first[0].startswith(":"):
        return True
    return len(cells_of(first[0])) == 4 and all(score_in(cells_of(line)) is None for line in first)


def read_judgements(path: Path, lines: list[tuple[int, str]]) -> Iterator[Judgement]:
    for place, (number, line) in enumerate(lines):
        cells = cells_of(line)
        score = score_in(cells)
        if score is not None:
            yield Judgement(cells[0], cells[1], score)
        elif place:  # the first line may be headings
            raise DataError(
                "E-WORD-04", f"{path}, line {number}: {line!r} is not two words and a score; mend or remove the line"
            )


def read_analogies(path: Path, lines: list[tuple[int, str]]) -> Iterator[Analogy]:
    section = ""
    for number, line in lines:
        words = cells_of(line)
        if line.startswith(":"):
            section = line[1:].strip()
        elif len(words) == 4:
            yield Analogy(section, (words[0], words[1], words[2], words[3]))
        else:
            raise DataError(
                "E-WORD-04", f"{path}, line {number}: there are {len(words)} words and an analogy has 4; mend the line"
            )


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in (re.split(r"[\t,;]", line) if re.search(r"[\t,;]", line) else line.split())]


def score_in(cells: list[str]) -> float | None:
    """The first number after the two words."""
    for cell in cells[2:]:
        try:
            return float(cell)
        except ValueError:
            continue
    return None
