"""What each attention head looked at, with the tokens that its weights connect."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.errors import UsageError
from dragoman.modules.activations import softmax
from dragoman.modules.attention import Looked, watching
from dragoman.text.batches import Batch

Kind = Literal["encoder", "decoder", "cross"]


class AttentionMap(NamedTuple):
    layer: str  # the name of the module, "decoder.blocks.3.source_attention"
    weights: Float[Tensor, "H Q K"]  # a row sums to one
    queries: list[str]  # the token of each row
    keys: list[str]  # the token of each column
    scores: Float[Tensor, "H Q K"] | None = None  # before mask and softmax; None where only weights were kept
    visible: list[int] | None = None  # how many keys each query may see, the first ones; None: all of them

    @property
    def kind(self) -> Kind:
        """Whether a text looks at itself in both directions, at what came before, or at a source."""
        if self.layer.endswith("source_attention"):
            return "cross"
        return "encoder" if "encoder" in self.layer.split(".") else "decoder"

    @property
    def number(self) -> int:
        """Which block of its stack it stands in, from 1."""
        return 1 + max((int(part) for part in self.layer.split(".") if part.isdigit()), default=0)

    def entropy(self) -> list[float]:
        """−Σ a log₂ a in bits, for each head the mean over its rows: 0 where each looks at one place only."""
        weights = self.weights.double()
        bits = -torch.special.xlogy(weights, weights).sum(dim=-1).mean(dim=-1) / math.log(2)
        return bits.clamp(min=0.0).tolist()  # a weight of 1.0000001 would make it −0.00

    def without_mask(self) -> Float[Tensor, "H Q K"]:
        """The weights as they would be if every key were visible."""
        return self.weights if self.visible is None or self.scores is None else softmax(self.scores)


def map_of(layer: str, looks: Sequence[Looked], queries: list[str], keys: list[str]) -> AttentionMap:
    """The first sentence of a batch without padding; a recurrent decoder looks once a step, others at all at once."""
    weights = torch.cat([looked.weights for looked in looks], dim=2)[0]
    scores = torch.cat([looked.scores for looked in looks], dim=2)[0]
    mask = looks[0].mask
    hides = mask is not None and not bool(mask.all())
    visible = mask[0, 0].sum(dim=-1).tolist() if mask is not None and hides else None
    return AttentionMap(layer, weights, queries, keys, scores, visible)


@torch.inference_mode()
def source_weights(model: nn.Module, batch: Batch) -> Float[Tensor, "B T S"]:
    """How much each written token looked at each source token: the mean over all heads of all decoder blocks."""
    with watching(model) as seen:
        model(batch.source, batch.source_mask, batch.target_in)
    looked = [
        torch.cat([one.weights for one in found], dim=2)
        for layer, found in seen.items()
        if layer.endswith("source_attention")
    ]
    if not looked:
        raise UsageError("E-USE-11", "this model has no attention to align words by; leave out --alignments")
    return torch.cat(looked, dim=1).mean(dim=1)


def by_word(weights: Float[Tensor, "*H Q K"], queries: Sequence[int], keys: Sequence[int]) -> Float[Tensor, "*H R C"]:
    """Words instead of tokens, given the word of each token: keys of one word add up, queries of one are averaged."""
    rows = torch.tensor(queries).unsqueeze(0) == torch.arange(max(queries) + 1).unsqueeze(1)  # (R Q)
    columns = torch.tensor(keys).unsqueeze(1) == torch.arange(max(keys) + 1)  # (K C)
    mean = rows.to(weights) / rows.sum(dim=1, keepdim=True).clamp(min=1)
    return mean @ weights @ columns.to(weights)


def align_words(
    weights: Float[Tensor, "T S"], source_words: Sequence[int], target_words: Sequence[int]
) -> list[tuple[int, int]]:
    """(source word, target word) for each target word: the source word that its tokens looked at most.

    A row for each target token and a column for each source token; <end> is left out on both sides.
    """
    if not source_words or not target_words:
        return []
    words = by_word(weights[: len(target_words), : len(source_words)].float(), target_words, source_words)
    return [(int(best), word) for word, best in enumerate(words.argmax(dim=1))]
