"""Activations and gates: what bends a line between two linear layers, and how steep it is there.

    name         f(x)                                          f′(x)
    sigmoid      σ(x) = 1 / (1 + e^−x)                         f (1 − f)
    tanh         (e^x − e^−x) / (e^x + e^−x)                   1 − f²
    relu         max(0, x)                                     1 where x > 0, else 0
    leaky-relu   x where x > 0, else 0.01 x                    1 where x > 0, else 0.01
    gelu         x Φ(x), Φ the normal distribution             Φ(x) + x φ(x)
    gelu-tanh    ½ x (1 + tanh u), u = √(2/π)(x + 0.044715 x³) ½ (1 + tanh u) + ½ x (1 − tanh² u) u′
    silu         x σ(x), also called swish                     σ(x) (1 + x (1 − σ(x)))
    softmax      e^xᵢ / Σ e^xⱼ                                 ∂fᵢ/∂xⱼ = fᵢ (δᵢⱼ − fⱼ)

A gate is a sigmoid that something is multiplied by: at 0 nothing gets through, at 1 everything (modules/recurrent.py).
What is computed is torch's own; the slopes are written out to be read, drawn and tested.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

sigmoid, tanh, relu = torch.sigmoid, torch.tanh, F.relu
LEAK = 0.01
Curve = Callable[[Tensor], Tensor]


def softmax(scores: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows K"]:
    """Numbers as probabilities. Torch takes the largest away before e^x: the quotient stays, and nothing overflows."""
    return scores.softmax(dim=-1)


def softmax_slope(scores: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows K K"]:
    """How each probability (rows) follows each score (columns): diag(f) − f fᵀ."""
    f = softmax(scores)
    return torch.diag_embed(f) - f[..., :, None] * f[..., None, :]


def gelu_slope(x: Tensor) -> Tensor:
    below = (1 + torch.erf(x / math.sqrt(2))) / 2
    return below + x * torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def gelu_tanh_slope(x: Tensor) -> Tensor:
    bent = tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return (1 + bent) / 2 + x * (1 - bent**2) * inner / 2


class Activation(NamedTuple):
    function: Curve
    slope: Curve
    layer: Callable[[], nn.Module]
    huggingface: tuple[str, ...] = ()  # what it is called in a config.json


ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": Activation(sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x)), nn.Sigmoid, ("sigmoid",)),
    "tanh": Activation(tanh, lambda x: 1 - tanh(x) ** 2, nn.Tanh, ("tanh",)),
    "relu": Activation(relu, lambda x: (x > 0).to(x.dtype), nn.ReLU, ("relu",)),
    "leaky-relu": Activation(
        partial(F.leaky_relu, negative_slope=LEAK),
        lambda x: torch.where(x > 0, 1.0, LEAK).to(x.dtype),
        partial(nn.LeakyReLU, LEAK),
        ("leaky_relu",),
    ),
    "gelu": Activation(F.gelu, gelu_slope, nn.GELU, ("gelu",)),
    "gelu-tanh": Activation(  # as GPT-2 computes it
        partial(F.gelu, approximate="tanh"),
        gelu_tanh_slope,
        partial(nn.GELU, approximate="tanh"),
        ("gelu_new", "gelu_pytorch_tanh"),
    ),
    "silu": Activation(F.silu, lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), nn.SiLU, ("silu", "swish")),
}


def activation(name: str) -> nn.Module:
    """As a layer of a network."""
    return ACTIVATIONS[name].layer()


def named_by_huggingface(*ours: str) -> dict[str, str]:
    """Their names for some of ours: theirs -> ours."""
    return {theirs: name for name in ours for theirs in ACTIVATIONS[name].huggingface}
