"""Dropout: in training, zero a share p of the numbers and scale the others by 1/(1−p); otherwise do nothing.

torch draws its masks one number at a time on a CPU, which takes an eighth of a small model's training time. Here a
mask costs one random byte a number, drawn by a fast generator that is seeded from torch's own: `torch.manual_seed`
still decides everything.
"""

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
        if x.device.type != "cpu":
            return F.dropout(x, self.share)
        zeroed = min(255, max(1, round(256 * self.share)))  # of 256 values that a byte can take
        return x * random_bytes_from(zeroed, x.shape).to(x.dtype).mul_(256 / (256 - zeroed))


def random_bytes_from(least: int, shape: torch.Size) -> Bool[Tensor, "*any"]:
    """True where a random byte is at least `least`."""
    generator = np.random.SFC64(int(torch.randint(1 << 62, ()).item()))
    numbers = generator.random_raw((shape.numel() + 7) // 8).view(np.uint8)[: shape.numel()]
    return torch.from_numpy(numbers).view(shape) >= least


class WordDropout(nn.Module):
    """Dropout of whole tokens: a model that cannot count on any one word looks at more of them (Iyyer et al. 2015)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropout = Dropout(share)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return x * self.dropout(x.new_ones(*x.shape[:2], 1)) if self.training else x
