"""A linear map that learns, by the products that are fastest here."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dragoman import native
from dragoman.modules.products import product
from dragoman.modules.sublayers import is_listened_to, is_ordinary, knows_linear


def project(x: Float[Tensor, "*N D"], layer: nn.Module) -> Float[Tensor, "*N E"]:
    """layer(x), whatever the layer is."""
    if not torch.is_grad_enabled() or torch.compiler.is_compiling() or not knows_linear(layer) or not x.numel():
        return layer(x)
    ours = is_ordinary(x) and not is_listened_to(layer) and native.has_own_products()
    return Linear.apply(x, layer.weight, layer.bias) if ours else layer(x)


class Linear(torch.autograd.Function):
    """y = W x + b;   dx = Wᵀ dy,   dW = Σ dy xᵀ,   db = Σ dy"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = product(x.flatten(0, -2), weight.T)
        return (y if bias is None else y.add_(bias)).view(*x.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_y, (for_x, for_weight, for_bias) = above[0].flatten(0, -2), ctx.needs_input_grad
        return (
            product(to_y, weight).view(x.shape) if for_x else None,
            product(to_y.T, x.flatten(0, -2)) if for_weight else None,
            to_y.sum(dim=0) if for_bias else None,
        )
