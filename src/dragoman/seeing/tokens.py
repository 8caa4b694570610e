"""Tokens as they are shown: their pieces, and the words that they make up."""

from itertools import groupby

from dragoman.seeing.looked import Tokens
from dragoman.text.tokenizer import Tokenizer


def show_tokens(
    tokenizer: Tokenizer, ids: list[int], *, text: str = "", before: int | None = None, after: int | None = None
) -> Tokens:
    """`before` and `after` are tokens that stand around the text, such as <start> and <end>; each is a word. Where a
    `text` was read, a word with unknown tokens keeps the name that it has there."""
    first, last = ([] if one is None else [one] for one in (before, after))
    words = [*range(len(first)), *(len(first) + word for word in tokenizer.words(ids))]
    words += [max(words, default=-1) + 1 for _ in last]
    whole = [*first, *ids, *last]
    members = [
        [token for token, _ in run] for _, run in groupby(zip(whole, words, strict=True), key=lambda two: two[1])
    ]
    names = [name(tokenizer, word) for word in members]
    own, around = text.split(), len(first)
    if len(own) == len(names) - around - len(last):  # else its words are not those between blanks
        for place, word in enumerate(own, start=around):
            names[place] = word if tokenizer.special.unknown in members[place] else names[place]
    return Tokens(pieces=tokenizer.pieces(whole), words=words, names=names)


def name(tokenizer: Tokenizer, word: list[int]) -> str:
    """Its text; what has none, such as <end>, by its pieces."""
    return tokenizer.decode(word).strip() or "".join(tokenizer.pieces(word))
