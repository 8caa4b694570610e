"""Where each token stands: attention alone does not know the order of what it reads."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoids(length: int, width: int, base: float = 10000.0) -> Float[Tensor, "T D"]:
    """PE(pos, 2i) = sin(pos / base^(2i/D)),  PE(pos, 2i+1) = cos(the same angle), in float64.

    Sine and cosine are interleaved, so a shift by k positions rotates each pair of numbers by k times its own rate:
    PE(pos + k) = R(k) PE(pos). The wavelengths run from 2π to base · 2π; the base is not a limit on the length.
    """
    even = torch.arange(0, width, 2, dtype=torch.float64)
    rates = base ** (-even / width)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates  # (T, D/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :width]


def split_sinusoids(length: int, width: int, base: float = 10000.0) -> Float[Tensor, "T D"]:
    """The same waves in another order, as Marian has them: all sines, then all cosines."""
    pairs = sinusoids(length, width, base).unflatten(-1, (-1, 2))  # (T, D/2, sine and cosine)
    return pairs.transpose(-2, -1).flatten(-2)


class SinusoidalPositions(nn.Module):
    """The fixed waves of 2017: computed in float64 when the first text comes, and further when a longer one does."""

    table: Float[Tensor, "N D"]

    def __init__(
        self, width: int, ready: int = 256, waves: Callable[[int, int], Float[Tensor, "T D"]] = sinusoids
    ) -> None:
        super().__init__()
        self.width, self.ready, self.waves = width, ready, waves
        self.register_buffer("table", torch.empty(0, width), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "T D"]:
        table = self.table  # threads may go through here together, and each of them make it longer
        if start + length > len(table):
            table = self.table = self.waves(max(self.ready, 2 * (start + length)), self.width).to(table)
        return table[start : start + length]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "SinusoidalPositions":
        """A move to another device or precision starts from float64 again, so nothing is rounded twice."""
        super()._apply(fn, recurse)
        self.table = self.waves(len(self.table), self.width).to(self.table)
        return self


class LearnedPositions(nn.Module):
    """A vector learned for each position up to `longest`; there is none for the next one."""

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(longest, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, start: int, length: int) -> Float[Tensor, "T D"]:
        if start + length > self.table.num_embeddings:
            raise ValueError(
                f"this model learned {self.table.num_embeddings} positions and was asked for {start + length}; "
                f"shorten the text or train with a larger `longest`"
            )
        return self.table.weight[start : start + length]


class RelativePositions(nn.Module):
    """T5's: no position is told, but each head adds to its scores a number learned for the distance key − query.

    Near distances have a bucket each, far ones share buckets that grow by a factor; from `furthest` on all are alike.
    A reader in both ways tells before from after; a writer sees no after.
    """

    def __init__(self, heads: int, buckets: int, furthest: int, *, both_ways: bool) -> None:
        super().__init__()
        self.buckets, self.furthest, self.both_ways = buckets, furthest, both_ways
        self.table = nn.Embedding(buckets, heads)
        nn.init.normal_(self.table.weight, std=0.1)

    def forward(self, start: int, queries: int, keys: int) -> Float[Tensor, "1 H Q K"]:
        """For queries that stand at `start`, `start` + 1 … and keys from 0 on."""
        device = self.table.weight.device
        places = torch.arange(start, start + queries, device=device)
        distances = torch.arange(keys, device=device) - places[:, None]  # (Q K)
        return self.table(self.bucket(distances)).permute(2, 0, 1)[None]

    def bucket(self, distances: Int[Tensor, "Q K"]) -> Int[Tensor, "Q K"]:
        buckets, first = self.buckets, torch.zeros_like(distances)
        if self.both_ways:
            buckets //= 2
            first = (distances > 0) * buckets
            back = distances.abs()
        else:
            back = (-distances).clamp(min=0)
        exact = buckets // 2
        share = (back.clamp(min=1).float() / exact).log() / math.log(self.furthest / exact)
        far = (exact + (share * (buckets - exact)).long()).clamp(max=buckets - 1)
        return first + torch.where(back < exact, back, far)
