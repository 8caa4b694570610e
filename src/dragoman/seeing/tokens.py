"""Tokens as they are shown: their pieces, and the words that they make up."""

from itertools import groupby

from dragoman.seeing.looked import Tokens
from dragoman.text.tokenizer import Tokenizer


def show_tokens(tokenizer: Tokenizer, ids: list[int], *, before: int | None = None, after: int | None = None) -> Tokens:
    """`before` and `after` are tokens that stand around the text, such as <start> and <end>; each is a word."""
    first, last = ([] if one is None else [one] for one in (before, after))
    words = [*range(len(first)), *(len(first) + word for word in tokenizer.words(ids))]
    words += [max(words, default=-1) + 1 for _ in last]
    whole = [*first, *ids, *last]
    members = [
        [token for token, _ in run] for _, run in groupby(zip(whole, words, strict=True), key=lambda two: two[1])
    ]
    return Tokens(pieces=tokenizer.pieces(whole), words=words, names=[name(tokenizer, word) for word in members])


def name(tokenizer: Tokenizer, word: list[int]) -> str:
    """Its text; what has none, such as <end>, by its pieces."""
    return tokenizer.decode(word).strip() or "".join(tokenizer.pieces(word))
