"""A linear map that learns, by the products that are fastest here."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman import native
from dragoman.modules.products import product
from dragoman.modules.sublayers import is_listened_to, is_ordinary, knows_linear


def project(x: Float[Tensor, "*N D"], layer: nn.Module) -> Float[Tensor, "*N E"]:
    """layer(x), whatever the layer is."""
    ours = (
        knows_linear(layer) and not is_listened_to(layer) and is_ordinary(x) and x.numel() and native.has_own_products()
    )
    if not ours or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return layer(x)
    return Linear.apply(x, layer.weight, layer.bias)


class Linear(torch.autograd.Function):
    """y = W x + b;   dx = Wᵀ dy,   dW = Σ dy xᵀ,   db = Σ dy"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        y = product(x.flatten(0, -2), weight.T)
        return (y if bias is None else y.add_(bias)).view(*x.shape[:-1], len(weight))

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_y = above[0].flatten(0, -2)
        to_x = product(to_y, weight).view(x.shape)
        return to_x, product(to_y.T, x.flatten(0, -2)), to_y.sum(dim=0) if ctx.has_bias else None
