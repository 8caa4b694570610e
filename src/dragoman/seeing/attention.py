"""Attention maps as the page shows them: to printed digits, by token and by word, each head with its numbers."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.maps import AttentionMap, align_words, by_word
from dragoman.evaluation.alignment import alignment_error, read_pharaoh
from dragoman.seeing.looked import AttentionLayer, BestHead, GoldLinks, Side, Tokens, WordWeights
from dragoman.seeing.packed import Packed, pack, pack_each

DIGITS = 4  # of a weight
LITTLE, FEW = 0.2, 0.5  # shares below which a word may have been dropped, and output words tell nothing of it
LIT = 0.5  # a source word is lit whose weight is at least this share of the largest


def show_maps(
    maps: Sequence[AttentionMap], queries: Side, keys: Side, sides: dict[Side, Tokens]
) -> list[AttentionLayer]:
    """Maps of one kind, in their order. Those with as many heads are rounded together."""
    shown: list[AttentionLayer] = []
    for _, run in groupby(maps, key=lambda found: found.weights.shape):
        some = list(run)
        weights = torch.stack([found.weights for found in some])
        packed = zip(
            pack_each(weights, DIGITS),
            pack_each(by_word(weights, sides[queries].words, sides[keys].words), DIGITS),
            strict=True,
        )
        shown += [show_map(found, queries, keys, *two) for found, two in zip(some, packed, strict=True)]
    return shown


def show_map(found: AttentionMap, queries: Side, keys: Side, weights: Packed, words: Packed) -> AttentionLayer:
    assert found.scores is not None
    seen = found.visible or [found.weights.shape[-1]] * found.weights.shape[-2]
    return AttentionLayer(
        name=found.layer,
        kind=found.kind,
        number=found.number,
        queries=queries,
        keys=keys,
        weights=weights,
        scores=pack(found.scores),
        visible=found.visible,
        unmasked=pack(found.without_mask(), DIGITS) if found.visible else None,
        by_word=words,
        entropy=[round(bits, 3) for bits in found.entropy()],
        most_entropy=round(sum(math.log2(count) for count in seen) / len(seen), 3),
    )


def mean_over_heads(maps: Sequence[AttentionMap]) -> Float[Tensor, "Q K"] | None:
    """The mean over all heads of all blocks; None where there is no attention."""
    if not maps:
        return None
    return torch.cat([found.weights for found in maps]).mean(dim=0)


def show_words(weights: Float[Tensor, "T S"], source: Tokens, target: Tokens) -> WordWeights | None:
    """By word, <end> left out on both sides; None where nothing was written."""
    if len(source.names) < 2 or len(target.names) < 2:
        return None
    words = by_word(weights, target.words, source.words)[:-1, :-1]
    coverage = words.sum(dim=0)
    lit = words >= LIT * words.amax(dim=1, keepdim=True)
    return WordWeights(
        source=source.names[:-1],
        target=target.names[:-1],
        weights=pack(words, DIGITS),
        links=[row.nonzero().flatten().tolist() for row in lit],
        coverage=pack(coverage, 2),
        least=int(coverage.argmin()),
        dropped=seems_dropped(coverage, len(words)),
    )


def seems_dropped(coverage: Float[Tensor, " S"], written: int) -> bool:
    """Whether the word that was looked at least has much less than a source word gets on the mean, written / source.

    Where much fewer words are written than read, as of a date in words, each stands for several: nothing is said."""
    mean = written / len(coverage)
    return mean >= FEW and float(coverage.min()) < LITTLE * mean


def against_gold(
    text: str,
    layers: list[AttentionLayer],
    maps: list[AttentionMap],
    source: Tokens,
    target: Tokens,
    of: Literal["output", "reference"],
) -> tuple[GoldLinks, list[AttentionLayer]]:
    """Every head of cross attention against links that people drew, and the best of them.

    `maps` are in the order of `layers`, and are those of `target` being written, which the links lead to."""
    gold = read_pharaoh(text, len(source.names) - 1, len(target.names) - 1)
    judged, best = [], BestHead(layer=0, head=0, aer=math.inf)
    for place, (layer, found) in enumerate(zip(layers, maps, strict=True)):
        if found.kind != "cross":
            judged.append(layer)
            continue
        links = [align_words(head, source.words[:-1], target.words[:-1]) for head in found.weights]
        errors = [round(alignment_error(one, gold), 4) for one in links]
        judged.append(layer.model_copy(update={"aer": errors}))
        if min(errors) < best.aer:
            best = BestHead(layer=place, head=errors.index(min(errors)), aer=min(errors))
    return GoldLinks(text=text, sure=gold.sure, possible=gold.possible, best=best, of=of), judged
