"""Dropout: in training, zero a share p of the numbers and scale the others by 1/(1−p); otherwise do nothing.

torch draws its masks one number at a time on a CPU, which takes an eighth of a small model's training time. Here a
mask costs one random byte a number, drawn by a fast generator. It is seeded from torch's own, so `torch.manual_seed`
decides everything; or, inside `seeded`, from a number of the thread's own, since threads that drew from one generator
would get what is left by the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Dropout(nn.Module):
    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        if not self.training or self.share == 0.0:
            return x
        return drop(x, self.share)


def drop(x: Float[Tensor, "*any"], share: float) -> Float[Tensor, "*any"]:
    if x.device.type != "cpu":
        return F.dropout(x, share)
    kept, boost = draw(x.shape, share)
    return x * kept.to(x.dtype).mul_(boost)


def draw(shape: torch.Size, share: float) -> tuple[Bool[Tensor, "*any"], float]:
    """What is kept, and what it is to be multiplied by."""
    zeroed = min(255, max(1, round(256 * share)))  # of 256 values that a byte can take
    return random_bytes_from(zeroed, shape), 256 / (256 - zeroed)


own = local()  # .seeds: where this thread's come from, while it is inside `seeded`


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside this block the masks that this thread draws follow from `seed` alone."""
    own.seeds = np.random.SFC64(seed)
    try:
        yield
    finally:
        del own.seeds


def next_seed() -> int:
    seeds = getattr(own, "seeds", None)
    return int(torch.randint(1 << 62, ()).item()) if seeds is None else int(seeds.random_raw())


def random_bytes_from(least: int, shape: torch.Size) -> Bool[Tensor, "*any"]:
    """True where a random byte is at least `least`."""
    generator = np.random.SFC64(next_seed())
    numbers = generator.random_raw((shape.numel() + 7) // 8).view(np.uint8)[: shape.numel()]
    return torch.from_numpy(numbers).view(shape) >= least


class WordDropout(nn.Module):
    """Dropout of whole tokens: a model that cannot count on any one word looks at more of them (Iyyer et al. 2015)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropout = Dropout(share)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return x * self.dropout(x.new_ones(*x.shape[:2], 1)) if self.training else x
