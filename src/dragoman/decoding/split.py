"""A text longer than the model was trained on is cut where sentences end: never silently, and no letter is lost.

Places to cut are tried from the best to the worst: after a sentence, after a clause, between words, and only in a
"word" that does not fit by itself, anywhere.
"""

import re
from collections.abc import Callable

WAYS = (
    re.compile(r"(?<=[.!?…;:])\s+|(?<=[。！？；])\s*"),
    re.compile(r"(?<=[,)–—])\s+|(?<=[，、])\s*"),
    re.compile(r"\s+"),
)
Fits = Callable[[str], bool]
Span = tuple[int, int]


def split_text(text: str, fits: Fits) -> list[str]:
    """Parts of the text that fit, each as long as possible, in their order."""
    return [text[start:end] for start, end in cut(text, (0, len(text)), fits, WAYS) if text[start:end].strip()]


def cut(text: str, span: Span, fits: Fits, ways: tuple[re.Pattern[str], ...]) -> list[Span]:
    start, end = span
    if fits(text[start:end]) or end - start < 2:
        return [span]
    if not ways:
        middle = (start + end) // 2
        return [*cut(text, (start, middle), fits, ()), *cut(text, (middle, end), fits, ())]
    gaps = [found.span() for found in ways[0].finditer(text, start, end)]
    begins, ends = [start, *(gap[1] for gap in gaps)], [*(gap[0] for gap in gaps), end]
    pieces = [piece for part in zip(begins, ends, strict=True) for piece in cut(text, part, fits, ways[1:])]
    return join_while_fitting(text, pieces, fits)


def join_while_fitting(text: str, pieces: list[Span], fits: Fits) -> list[Span]:
    """Neighbours become one part again, with what stood between them, as long as they fit."""
    joined = [pieces[0]]
    for start, end in pieces[1:]:
        if fits(text[joined[-1][0] : end]):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
