"""Which tokens belong to one word: each kind of token marks where a word begins in its own way."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

from dragoman.text.special import SpecialIds


def number_words(begins: Iterable[bool]) -> list[int]:
    """The number of each token's word, from "does a word begin here?"; the first token always begins one."""
    word, numbers = -1, []
    for begin in begins:
        word += begin or word < 0
        numbers.append(word)
    return numbers


@runtime_checkable
class Splits(Protocol):
    """What is needed of a tokenizer here."""

    special: SpecialIds

    def __len__(self) -> int: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def words(self, ids: Sequence[int]) -> list[int]: ...


def whole_words(tokenizer: Splits) -> dict[int, str]:
    """Tokens that begin a word, and what they say: where nothing more follows, they are words."""
    ids = list(range(len(tokenizer)))
    numbers = tokenizer.words([ids[0], *ids])  # the first token always begins a word, so it is told from the second on
    begins = (i for i, (before, number) in zip(ids, pairwise(numbers), strict=True) if number > before)
    silent = tokenizer.special.pieces()
    said = {i: tokenizer.decode([i]).strip() for i in begins if i not in silent}
    return {i: word for i, word in said.items() if word}
