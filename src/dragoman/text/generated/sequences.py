"""Sequences of symbols to repeat, forwards or backwards: the smallest tasks that need attention at all.

    copy      k 3 b x   →  k 3 b x
    reverse   k 3 b x   →  x b 3 k

The symbols mean nothing, so nothing can be guessed: each has to be fetched from its place in the source.
"""

from random import Random
from string import ascii_lowercase, digits

SYMBOLS = ascii_lowercase + digits
LONGEST = 12


def draw_symbols(rng: Random) -> list[str]:
    """Between one symbol and `LONGEST`, all lengths equally likely."""
    return rng.choices(SYMBOLS, k=rng.randint(1, LONGEST))


def draw_copy(rng: Random) -> tuple[str, str]:
    text = " ".join(draw_symbols(rng))
    return text, text


def draw_reverse(rng: Random) -> tuple[str, str]:
    symbols = draw_symbols(rng)
    return " ".join(symbols), " ".join(reversed(symbols))
