"""The same words in another order: what attention notices of it without positions, and with them."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dragoman.seeing.arithmetic.matrices import Compared, Shuffle
from dragoman.seeing.packed import pack

Weigh = Callable[[list[int], bool], Tensor]  # (order of the words, whether positions are told) -> weights (T T)


def shuffle_words(words: Sequence[str], weigh: Weigh) -> Shuffle | None:
    """Every second word first. Nothing is hidden here: which words may not be seen would tell the order, too."""
    if len(words) < 2:
        return None
    order = [*range(1, len(words), 2), *range(0, len(words), 2)]
    without, told = compare(weigh, order, told=False), compare(weigh, order, told=True)
    return Shuffle(
        order=tuple(order),
        words=tuple(words[i] for i in order),
        without=without,
        with_positions=told,
        sentence="Without positions the weights move with their words, rows and columns: put back in order they differ "
        f"by {without.difference:.4f} at most. That is equivariant, not invariant. With positions the same words in "
        f"another order look elsewhere: up to {told.difference:.4f} differs. (Nothing is hidden here: a mask tells "
        "order, too.)",
    )


def compare(weigh: Weigh, order: list[int], *, told: bool) -> Compared:
    before, after = weigh(sorted(order), told), weigh(order, told)
    back = torch.tensor(order).argsort()
    difference = (after[back][:, back] - before).abs().max().item()
    return Compared(before=pack(before), after=pack(after), difference=difference)
