"""Attention: a weighted average of values, the weights chosen by comparing a query with keys.

    context = softmax(score(query, keys)) values

Every kind in this project is that line with another `score` and other projections:

    kind         query    key      value    score             output
    dot          .        .        .        q·k               .
    scaled       .        .        .        q·k / √d          .
    bilinear     .        W k      .        q·k               .
    low-rank     U q      V k      .        q·k               .
    additive     W q      W k      .        v·tanh(q + k)     .
    multi-head   W q      W k      W v      q·k / √d          W c

Whether it is self-, cross- or masked attention is not a kind: it is which states are
remembered, and which mask is given.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from dragoman.modules.activations import softmax, tanh
from dragoman.modules.dropout import drop
from dragoman.modules.linear import project
from dragoman.modules.short_attention import attend, can_attend

Score = Callable[[Tensor, Tensor], Tensor]  # (B H Q d), (B H K d) -> (B H Q K)


class Memory(NamedTuple):
    """What attention looks at: a key to be found by and a value to be read, for each position."""

    keys: Float[Tensor, "B H K d"]
    values: Float[Tensor, "B H K e"]

    def extend(self, newer: "Memory") -> "Memory":
        return Memory(
            torch.cat([self.keys, newer.keys], dim=2),
            torch.cat([self.values, newer.values], dim=2),
        )


class Looked(NamedTuple):
    """One reading of a memory, as a watcher is shown it."""

    scores: Float[Tensor, "B H Q K"]  # before mask and softmax, a bias added
    mask: Bool[Tensor, "#B #H #Q #K"] | None
    weights: Float[Tensor, "B H Q K"]


Watcher = Callable[[Looked], None]


def attention_weights(
    scores: Float[Tensor, "B H Q K"], mask: Bool[Tensor, "#B #H #Q #K"] | None
) -> Float[Tensor, "B H Q K"]:
    """softmax over the visible keys; a query that may see nothing gets weight zero everywhere."""
    if mask is None:
        return softmax(scores)
    weights = softmax(scores.masked_fill(~mask, -math.inf))
    return weights.masked_fill(~mask, 0.0)  # a row of -inf only is NaN after softmax


class Attention(nn.Module):
    def __init__(
        self,
        *,
        score: Score,
        to_query: nn.Module | None = None,
        to_key: nn.Module | None = None,
        to_value: nn.Module | None = None,
        to_output: nn.Module | None = None,
        heads: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.score = score
        self.to_query = to_query or nn.Identity()
        self.to_key = to_key or nn.Identity()
        self.to_value = to_value or nn.Identity()
        self.to_output = to_output or nn.Identity()
        self.heads = heads
        self.dropout = dropout
        self.watcher: Watcher | None = None

    def remember(self, states: Float[Tensor, "B K D"]) -> Memory:
        """Project states to keys and values, once, however many queries will read them."""
        return Memory(
            split_heads(project(states, self.to_key), self.heads),
            split_heads(project(states, self.to_value), self.heads),
        )

    def forward(
        self,
        states: Float[Tensor, "B Q D"],
        memory: Memory,
        mask: Bool[Tensor, "#B #H #Q #K"] | None = None,
        bias: Float[Tensor, "#B #H #Q #K"] | None = None,
    ) -> Float[Tensor, "B Q E"]:
        """Read `memory` once for each state. `bias` is added to the scores: how T5 and ALiBi tell positions."""
        queries = split_heads(self.to_query(states), self.heads)
        dropout = self.dropout if self.training else 0.0
        if self.score in SCALES and self.watcher is None and not dropout:  # the same, fused
            context = fused(queries, memory, mask, bias, SCALES[self.score])
        else:
            scores = self.score(queries, memory.keys)
            scores = scores if bias is None else scores + bias
            weights = attention_weights(scores, mask)
            if self.watcher is not None:
                self.watcher(Looked(scores.detach(), mask, weights.detach()))
            context = (drop(weights, dropout) if dropout else weights) @ memory.values
        return self.to_output(merge_heads(context))


def fused(
    queries: Float[Tensor, "B H Q d"],
    memory: Memory,
    mask: Bool[Tensor, "#B #H #Q #K"] | None,
    bias: Float[Tensor, "#B #H #Q #K"] | None,
    scale: float | None,
) -> Float[Tensor, "B H Q e"]:
    """Scores, softmax and sum in one call: ours for sentences, torch's for all else."""
    if can_attend(queries, *memory):
        return attend(queries, *memory, mask, bias, scale)
    shown = mask if bias is None else hide_in(bias, mask)
    return F.scaled_dot_product_attention(queries, *memory, shown, scale=scale)


def hide_in(
    bias: Float[Tensor, "#B #H #Q #K"], mask: Bool[Tensor, "#B #H #Q #K"] | None
) -> Float[Tensor, "#B #H #Q #K"]:
    """One thing to add to the scores, for both: −∞ where a query may not look."""
    return bias if mask is None else torch.where(mask, bias, -math.inf)


def split_heads(x: Float[Tensor, "B N D"], heads: int) -> Float[Tensor, "B H N d"]:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Float[Tensor, "B H N d"]) -> Float[Tensor, "B N D"]:
    return x.transpose(1, 2).flatten(-2)


# ── scores ────────────────────────────────────────────────────────────────────────────────


def dot(queries: Float[Tensor, "B H Q d"], keys: Float[Tensor, "B H K d"]) -> Float[Tensor, "B H Q K"]:
    return queries @ keys.transpose(-2, -1)


def scaled_dot(queries: Float[Tensor, "B H Q d"], keys: Float[Tensor, "B H K d"]) -> Float[Tensor, "B H Q K"]:
    """q·k / √d, which keeps unit variance when the parts of q and k have it."""
    return dot(queries, keys) / math.sqrt(queries.shape[-1])


SCALES: dict[Score, float | None] = {dot: 1.0, scaled_dot: None}  # what the fused kernel is told; None is 1/√d


class AdditiveScore(nn.Module):
    """v·tanh(q + k): a network with one hidden layer (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.v = nn.Linear(width, 1, bias=False)

    def forward(self, queries: Float[Tensor, "B H Q d"], keys: Float[Tensor, "B H K d"]) -> Float[Tensor, "B H Q K"]:
        pairs = queries.unsqueeze(-2) + keys.unsqueeze(-3)  # (B H Q K d)
        return self.v(tanh(pairs)).squeeze(-1)


# ── kinds ─────────────────────────────────────────────────────────────────────────────────


def dot_attention() -> Attention:
    return Attention(score=dot)


def scaled_attention() -> Attention:
    return Attention(score=scaled_dot)


def bilinear_attention(query_width: int, key_width: int) -> Attention:
    """q·Wk, called 'general' or multiplicative (Luong et al. 2015, eq. 8)."""
    return Attention(score=dot, to_key=nn.Linear(key_width, query_width, bias=False))


def low_rank_attention(query_width: int, key_width: int, rank: int) -> Attention:
    """(Uq)·(Vk): the bilinear form with W = UᵀV of rank at most `rank`."""
    return Attention(
        score=dot,
        to_query=nn.Linear(query_width, rank, bias=False),
        to_key=nn.Linear(key_width, rank, bias=False),
    )


def additive_attention(query_width: int, key_width: int, width: int) -> Attention:
    return Attention(
        score=AdditiveScore(width),
        to_query=nn.Linear(query_width, width, bias=False),
        to_key=nn.Linear(key_width, width),
    )


def multi_head_attention(
    width: int, heads: int, *, score: Score = scaled_dot, bias: bool = True, dropout: float = 0.0
) -> Attention:
    """Concat(head₁ … head_H) Wᴼ (Vaswani et al. 2017, §3.2.2)."""
    if width % heads:
        raise ValueError(f"width {width} cannot be split into {heads} equal heads")
    q, k, v, o = (nn.Linear(width, width, bias=bias) for _ in "qkvo")
    for projection in (q, k, v, o):
        nn.init.xavier_uniform_(projection.weight)
        if bias:
            nn.init.zeros_(projection.bias)
    return Attention(score=score, to_query=q, to_key=k, to_value=v, to_output=o, heads=heads, dropout=dropout)


# ── looking inside ────────────────────────────────────────────────────────────────────────


@contextmanager
def watching(model: nn.Module) -> Iterator[dict[str, list[Looked]]]:
    """Inside this block, collect what every attention in `model` looks at, under its module's name, call by call."""
    attentions = {name: module for name, module in model.named_modules() if isinstance(module, Attention)}
    seen: dict[str, list[Looked]] = {name: [] for name in attentions}
    for name, attention in attentions.items():
        attention.watcher = seen[name].append
    try:
        yield seen
    finally:
        for attention in attentions.values():
            attention.watcher = None
