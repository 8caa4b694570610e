"""Convolution: one small map of weights, moved over the whole image, so that a thing is found wherever it stands.

Z[o, y, x] = Σ_c Σ_i Σ_j  W[o, c, i, j] · X[c, y + i, x + j] + b[o]
Y = g(norm(Z))                       a layer
Y = g(norm(conv(X))) + P X           a residual layer; P is a 1×1 convolution where the channels differ, else nothing
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.modules.activations import activation

REACH = 3  # pixels that a layer looks at, across and down


class Convolution(nn.Sequential):
    """g(norm(conv(X))), of the same height and width: what lies beyond the edge is zero."""

    def __init__(self, inward: int, outward: int, *, batch_norm: bool) -> None:
        convolution = nn.Conv2d(inward, outward, REACH, padding=REACH // 2, bias=not batch_norm)
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")  # He et al. 2015: for g = ReLU
        if convolution.bias is not None:
            nn.init.zeros_(convolution.bias)
        super().__init__(convolution, nn.BatchNorm2d(outward) if batch_norm else nn.Identity(), activation("relu"))


class ResidualConvolution(nn.Module):
    """Y = g(conv(X)) + X (lecture 002): the layer only has to learn what is to be changed."""

    def __init__(self, inward: int, outward: int, *, batch_norm: bool) -> None:
        super().__init__()
        self.convolution = Convolution(inward, outward, batch_norm=batch_norm)
        self.project = nn.Identity() if inward == outward else nn.Conv2d(inward, outward, 1)

    def forward(self, x: Float[Tensor, "B c H W"]) -> Float[Tensor, "B d H W"]:
        return self.convolution(x) + self.project(x)


def halve(x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C h w"]:
    """Pooling: of each square of four the largest; half as high and wide, and a small shift changes nothing."""
    return F.max_pool2d(x, 2)


def join(coarse: Float[Tensor, "B c h w"], fine: Float[Tensor, "B d H W"]) -> Float[Tensor, "B e H W"]:
    """The coarse map enlarged to the size of the fine one, and both as channels of one."""
    return torch.cat([F.interpolate(coarse, size=fine.shape[2:], mode="nearest"), fine], dim=1)


def channels_together(x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """The same numbers, a pixel's channels side by side in memory, as convolutions on a CPU want them: 1.7 times
    as fast.

    Where there is one channel, both layouts are alike to `contiguous`, so the strides are written out.
    """
    _, channels, height, width = x.shape
    strides = (channels * height * width, 1, channels * width, channels)
    return torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device).copy_(x)
