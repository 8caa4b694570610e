"""A line as words: where one ends and the next begins, and which of them are worth an id of their own."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from typing import NamedTuple

HELD = 4_000_000  # different words counted at a time


class WordRules(NamedTuple):
    lowercase: bool = False
    split_punctuation: bool = False  # "Oh, don't!" is Oh , don't !
    least: int = 1  # times that a word must be there to be known
    most: int = 1_000_000  # words known, the most frequent

    def split(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        return word_pattern().findall(text) if self.split_punctuation else text.split()


AS_THEY_ARE = WordRules()


@cache
def word_pattern() -> re.Pattern[str]:
    """Letters, digits and the marks that belong to them, joined by apostrophes and hyphens; else one sign at a time."""
    marks = (code for code in range(1 << 16) if unicodedata.category(chr(code)).startswith("M"))
    runs = [[code for _, code in run] for _, run in groupby(enumerate(marks), lambda item: item[1] - item[0])]
    letter = rf"[\w{''.join(f'{chr(run[0])}-{chr(run[-1])}' for run in runs)}]"
    return re.compile(rf"{letter}+(?:['’\-]{letter}+)*|[^\s\w]")


def count(texts: Iterable[list[str]], held: int = HELD) -> Counter[str]:
    """How often each symbol is there. Where there are too many to hold, the rarest so far are forgotten, as word2vec
    does: their counts begin anew when they come again."""
    counts, rare = Counter[str](), 1
    for text in texts:
        counts.update(text)
        while len(counts) > held:
            counts = Counter({symbol: times for symbol, times in counts.items() if times > rare})
            rare += 1
    return counts
