"""Text without labels made into a task: hide some of it, and ask for what was hidden.

    masks     BERT: 15 % of the tokens are asked for; of these 80 % are shown as [MASK], 10 % as another token, 10 % as
              they are, so that a model cannot trust what it sees
    spans     T5: 15 % of the tokens, in spans of three on the mean, are each replaced by one sentinel; the target is
              every sentinel with what stood there:

                  Thank you ⟨0⟩ me to your party ⟨1⟩ week      →      ⟨0⟩ for inviting ⟨1⟩ last ⟨2⟩
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

SHARE = 0.15  # of the tokens that are hidden
MASKED, REPLACED = 0.8, 0.1  # of those: shown as [MASK], shown as another token; the rest is shown as it is
SPAN = 3.0  # tokens in a hidden span, on the mean


class Masked(NamedTuple):
    tokens: Int[np.ndarray, " T"]
    asked: Bool[np.ndarray, " T"]  # where the token that was there is to be told


def mask_tokens(
    ids: Int[np.ndarray, " T"], vocabulary: range, mask: int, random: np.random.Generator, share: float = SHARE
) -> Masked:
    """BERT's masks. `vocabulary` are the ids that may stand for another; ids outside it are never asked for."""
    ordinary = (ids >= vocabulary.start) & (ids < vocabulary.stop)
    asked = ordinary & (random.random(len(ids)) < share)
    luck = random.random(len(ids))
    others = random.integers(vocabulary.start, vocabulary.stop, len(ids))
    shown = np.where(luck < MASKED, mask, np.where(luck < MASKED + REPLACED, others, ids))
    return Masked(np.where(asked, shown, ids), asked)


def hide_spans(
    ids: Sequence[int], sentinels: range, random: np.random.Generator, share: float = SHARE, span: float = SPAN
) -> tuple[list[int], list[int]]:
    """T5's spans: the text with sentinels for what was taken out, and what was taken out after its sentinels."""
    count = len(ids)
    hidden = min(max(1, round(share * count)), count - 1)
    spans = min(max(1, round(hidden / span)), hidden, count - hidden, len(sentinels) - 1)
    lengths = cut(hidden, spans, random)
    gaps = cut(count - hidden, spans, random)
    source, target, place = list[int](), list[int](), 0
    for sentinel, gap, length in zip(sentinels, gaps, lengths, strict=False):
        source += [*ids[place : place + gap], sentinel]
        target += [sentinel, *ids[place + gap : place + gap + length]]
        place += gap + length
    return source, [*target, sentinels[spans]]


def cut(total: int, parts: int, random: np.random.Generator) -> list[int]:
    """`total` in so many parts of at least one each, every way to cut it alike."""
    places = np.sort(random.choice(total - 1, parts - 1, replace=False)) + 1
    return np.diff([0, *places, total]).tolist()


def rebuild(source: Sequence[int], target: Sequence[int], sentinels: range) -> list[int]:
    """The text that `hide_spans` took apart."""
    taken: dict[int, list[int]] = {}
    newest = -1
    for token in target:
        if token in sentinels:
            newest = token
            taken[newest] = []
        else:
            taken[newest].append(token)
    return [part for token in source for part in (taken[token] if token in sentinels else [token])]
