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
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman.text.special import SpecialIds

SHARE = 0.15  # of the tokens that are hidden
MASKED, REPLACED = 0.8, 0.1  # of those: shown as [MASK], shown as another token; the rest is shown as it is
SPAN = 3.0  # tokens in a hidden span, on the mean


class MaskedBatch(NamedTuple):
    """Read `tokens`; tell what was at the places that are `asked`."""

    tokens: Int[Tensor, "B T"]  # [CLS] x1 … xn [SEP]
    real: Bool[Tensor, "B T"]
    asked: Bool[Tensor, "B T"]
    wanted: Int[Tensor, " N"]


def ordinary_ids(vocabulary: int, special: SpecialIds) -> Int[np.ndarray, " O"]:
    """All ids but those with a meaning of their own."""
    return np.setdiff1d(np.arange(vocabulary), list(special.pieces()))


def hide_tokens(
    blocks: Int[np.ndarray, "B N"], special: SpecialIds, ordinary: Int[np.ndarray, " O"], random: np.random.Generator
) -> MaskedBatch:
    """BERT's masks over blocks of text, each between [CLS] and [SEP]: the special ids `start` and `end`."""
    assert special.mask is not None
    ends = np.full((len(blocks), 1), special.start), np.full((len(blocks), 1), special.end)
    whole = np.concatenate([ends[0], blocks, ends[1]], axis=1)
    tokens, asked = mask_tokens(whole, ordinary, special.mask, random)
    if not asked.any():  # nothing to learn from is nothing to divide by
        tokens[0, 1], asked[0, 1] = special.mask, True
    found = [torch.from_numpy(part) for part in (tokens, np.ones_like(asked), asked, whole[asked])]
    return MaskedBatch(*found)


def mask_tokens(
    ids: Int[np.ndarray, "*B"],
    ordinary: Int[np.ndarray, " O"],
    mask: int,
    random: np.random.Generator,
    share: float = SHARE,
) -> tuple[Int[np.ndarray, "*B"], Bool[np.ndarray, "*B"]]:
    """What is shown, and where it is asked what was there. `ordinary` ids may be asked for, and stand for another."""
    asked = np.isin(ids, ordinary) & (random.random(ids.shape) < share)
    luck = random.random(ids.shape)
    others = random.choice(ordinary, ids.shape)
    shown = np.where(luck < MASKED, mask, np.where(luck < MASKED + REPLACED, others, ids))
    return np.where(asked, shown, ids), asked


def hide_spans(
    ids: Sequence[int], sentinels: Sequence[int], random: np.random.Generator, share: float = SHARE, span: float = SPAN
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


def rebuild(source: Sequence[int], target: Sequence[int], sentinels: Sequence[int]) -> list[int]:
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
