"""Many states to one vector: their mean, or a mean whose weights are learned.

    mean        c = 1/T Σ h<t>
    attention   c = Σ α<t> h<t>,   α = softmax(q·h<1> … q·h<T>)

The query q is one learned vector, the same for every text: it says what is worth looking at. With q = 0 all weights are
equal and attention is the mean; that is where it starts. With several heads, each part of q weighs the same part of the
states: one may look for what is asked, another for whom.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from dragoman.modules.attention import Attention, dot
from dragoman.modules.masks import hide_padding


def mean_pool(states: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    return states.masked_fill(~real[:, :, None], 0.0).sum(dim=1) / real.sum(dim=1, keepdim=True).clamp(min=1)


class MeanPool(nn.Module):
    def forward(self, states: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        return mean_pool(states, real)


class AttentionPool(nn.Module):
    def __init__(self, width: int, heads: int = 1) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(width))
        self.attention = Attention(score=dot, heads=heads)

    def forward(self, states: Float[Tensor, "B T D"], real: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        queries = self.query.expand(len(states), 1, -1)
        return self.attention(queries, self.attention.remember(states), hide_padding(real))[:, 0]


def make_pool(kind: Literal["mean", "attention"], width: int, heads: int = 1) -> MeanPool | AttentionPool:
    return AttentionPool(width, heads) if kind == "attention" else MeanPool()
