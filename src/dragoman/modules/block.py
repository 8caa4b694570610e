"""The Transformer block, and a stack of them. One class serves every family:

    encoder, BERT        no source attention   mask hides padding
    ViT                  no source attention   no mask: every patch sees every other
    GPT                  no source attention   mask hides the future
    decoder, T5          source attention      mask hides the future

Families differ in the parts they hand over, not in flags: T5 passes RMSNorm and an unscaled
score, BERT passes GELU and norm_first=False.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from dragoman.modules.attention import SCALES, Attention, Memory
from dragoman.modules.dropout import Dropout
from dragoman.modules.sublayers import (
    Sight,
    Sublayer,
    can_go_through,
    feeding,
    go_through,
    is_listened_to,
    own_memories,
    reading,
)

Past = tuple[Memory, ...]  # one memory for each block; () before the first token
AT_ONCE = 4_000_000  # weights of blocks that are computed in one call: more take so long that a call does not count


class Residual(nn.Module):
    """x + sublayer(x), normalised before the sublayer (GPT-2, T5, ViT) or after the sum (2017, BERT)."""

    def __init__(self, norm: nn.Module, *, norm_first: bool, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.norm_first = norm_first
        self.dropout = Dropout(dropout)

    def enter(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.norm(x) if self.norm_first else x

    def leave(self, x: Float[Tensor, "B T D"], y: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        x = x + self.dropout(y)
        return x if self.norm_first else self.norm(x)


def feedforward(width: int, hidden: int, activation: nn.Module, *, bias: bool = True) -> nn.Sequential:
    """FFN(x) = W₂ f(W₁ x + b₁) + b₂, the same for every position (Vaswani et al. 2017, eq. 2)."""
    inward, outward = nn.Linear(width, hidden, bias=bias), nn.Linear(hidden, width, bias=bias)
    for linear in (inward, outward):
        nn.init.xavier_uniform_(linear.weight)
        if bias:
            nn.init.zeros_(linear.bias)
    return nn.Sequential(inward, activation, outward)


class Block(nn.Module):
    def __init__(
        self,
        *,
        self_attention: Attention,
        source_attention: Attention | None = None,
        feedforward: nn.Module,
        norm: Callable[[], nn.Module],
        norm_first: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.source_attention = source_attention
        self.feedforward = feedforward
        self.around_self = Residual(norm(), norm_first=norm_first, dropout=dropout)
        self.around_source = Residual(norm(), norm_first=norm_first, dropout=dropout) if source_attention else None
        self.around_feedforward = Residual(norm(), norm_first=norm_first, dropout=dropout)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "#B #H #T #K"] | None,
        bias: Float[Tensor, "#B #H #T #K"] | None = None,
        past: Memory | None = None,
        source: Memory | None = None,
        source_mask: Bool[Tensor, "#B #H #T #S"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], Memory]:
        """Return the new states, and the self-attention memory grown by them."""
        x, memory = self.read_own(x, mask, bias, past)
        if self.source_attention is not None and self.around_source is not None:
            x = self.read_source(x, self.source_attention, self.around_source, source, source_mask)
        return self.think(x), memory

    def read_own(
        self,
        x: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "#B #H #T #K"] | None,
        bias: Float[Tensor, "#B #H #T #K"] | None,
        past: Memory | None,
    ) -> tuple[Float[Tensor, "B T D"], Memory]:
        attention = self.self_attention
        if past is None and (found := natively([self.reading(attention, self.around_self)], x, Sight(mask, bias=bias))):
            return found[0], found[1][0]
        h = self.around_self.enter(x)
        memory = attention.remember(h)
        memory = memory if past is None else past.extend(memory)
        return self.around_self.leave(x, attention(h, memory, mask, bias)), memory

    def read_source(
        self,
        x: Float[Tensor, "B T D"],
        attention: Attention,
        around: "Residual",
        source: Memory | None,
        mask: Bool[Tensor, "#B #H #T #S"] | None,
    ) -> Float[Tensor, "B T D"]:
        if source is not None and (found := natively([self.reading(attention, around, source)], x, Sight(source=mask))):
            return found[0]
        return around.leave(x, attention(around.enter(x), source, mask))

    def think(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        around = self.around_feedforward
        found = natively([self.feeding()], x, Sight())
        return around.leave(x, self.feedforward(around.enter(x))) if found is None else found[0]

    def reading(self, attention: Attention, around: "Residual", source: Memory | None = None) -> Sublayer | None:
        """As it can be computed natively; a block in shards, or with parts of one's own, is of another class."""
        ordinary = type(self) is Block and type(around) is Residual and type(attention) is Attention
        known = ordinary and attention.score in SCALES
        return reading(around, attention, SCALES[attention.score], source) if known else None

    def feeding(self) -> Sublayer | None:
        around = self.around_feedforward
        return feeding(around, self.feedforward) if type(self) is Block and type(around) is Residual else None

    def sublayers(self, source: Memory | None) -> list[Sublayer | None]:
        """All of them, one after the other."""
        own_way = is_listened_to(self) or "forward" in vars(self) or self._compiled_call_impl is not None
        if own_way or (self.source_attention is not None and source is None):
            return [None]
        first = [self.reading(self.self_attention, self.around_self)]
        if self.source_attention is not None and self.around_source is not None:
            first.append(self.reading(self.source_attention, self.around_source, source))
        return [*first, self.feeding()]


def natively(
    sublayers: Sequence[Sublayer | None], x: Float[Tensor, "B T D"], sight: Sight
) -> tuple[Float[Tensor, "B T D"], list[Memory]] | None:
    """What comes out of the last, and the memory of each that reads itself; None where torch must compute it."""
    known = [one for one in sublayers if one is not None]
    if len(known) < len(sublayers) or not can_go_through(known, x, sight.bias):
        return None
    y, projected = go_through(known, x, sight)
    return y, [Memory(*memory) for memory in own_memories(projected, known[0].heads)] if len(projected) else []


def row_of(blocks: Sequence[Block], which: Iterable[int], sources: Iterable[Memory | None]) -> list[Sublayer | None]:
    """The sublayers of these blocks."""
    return [one for i, source in zip(which, sources, strict=True) for one in blocks[i].sublayers(source)]


class Stack(nn.Module):
    def __init__(self, blocks: Iterable[Block], final_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = final_norm or nn.Identity()

    def __iter__(self) -> Iterator[Block]:
        return cast("Iterator[Block]", iter(self.blocks))

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "#B #H #T #K"] | None,
        bias: Float[Tensor, "#B #H #T #K"] | None = None,
        past: Past = (),
        source: Past = (),
        source_mask: Bool[Tensor, "#B #H #T #S"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], Past]:
        grown, sight, blocks = list[Memory](), Sight(mask, source_mask, bias), list(self)
        at_once = max(1, AT_ONCE // (12 * x.shape[-1] ** 2))  # four projections of D × D, and two of D × 4D
        for first in range(0, len(blocks), at_once):
            several = range(first, min(first + at_once, len(blocks)))
            sources = [source[i] if source else None for i in several]
            if not past and (found := natively(row_of(blocks, several, sources), x, sight)):
                x, memories = found
                grown += memories
                continue
            for i, read in zip(several, sources, strict=True):
                x, memory = blocks[i](x, mask, bias, past[i] if past else None, read, source_mask)
                grown.append(memory)
        return self.final_norm(x), tuple(grown)

    def remember_source(self, states: Float[Tensor, "B S D"]) -> Past:
        """What each block will read of the source, computed once for a whole translation."""
        return tuple(block.source_attention.remember(states) for block in self if block.source_attention)


def length_of(past: Past) -> int:
    return past[0].keys.shape[2] if past else 0
