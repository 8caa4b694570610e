"""Which tokens belong to one word: each kind of token marks where a word begins in its own way."""

from collections.abc import Iterable


def number_words(begins: Iterable[bool]) -> list[int]:
    """The number of each token's word, from "does a word begin here?"; the first token always begins one."""
    word, numbers = -1, []
    for begin in begins:
        word += begin or word < 0
        numbers.append(word)
    return numbers
