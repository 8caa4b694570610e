"""A text longer than the model was trained on is cut where sentences end, never silently and never in a word."""

import re
from collections.abc import Callable

SENTENCE_END = re.compile(r"(?<=[.!?…。！？;:])\s+|(?<=[。！？])")
CLAUSE_END = re.compile(r"(?<=[,，、–—)])\s*")


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts that fit, each as many whole sentences as possible; then clauses, then words, then letters."""
    return [part for part in cut(text, fits, [SENTENCE_END, CLAUSE_END, re.compile(r"\s+")]) if part]


def cut(text: str, fits: Callable[[str], bool], ways: list[re.Pattern[str]]) -> list[str]:
    if fits(text):
        return [text]
    if not ways:
        half = len(text) // 2
        return [*cut(text[:half], fits, []), *cut(text[half:], fits, [])] if half else [text]
    parts = [part for part in ways[0].split(text) if part]
    if len(parts) < 2:
        return cut(text, fits, ways[1:])
    small = [piece for part in parts for piece in cut(part, fits, ways[1:])]
    return join_while_fitting(small, fits)


def join_while_fitting(parts: list[str], fits: Callable[[str], bool]) -> list[str]:
    joined = [parts[0]]
    for part in parts[1:]:
        if fits(f"{joined[-1]} {part}"):
            joined[-1] = f"{joined[-1]} {part}"
        else:
            joined.append(part)
    return joined
