"""Attention over texts of up to 128 tokens, forwards and backwards, in one native call each.

torch's fused kernel is made for long texts: it cuts them into blocks. On sentences it spends its time on the cutting,
three to ten times what the products take. Here a head of one text is computed whole, where it fits into the nearest
cache. Anything the native part does not know, `can_attend` leaves to torch.
"""

import ctypes
import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from dragoman import native

LONGEST = 128  # keys; beyond it torch's kernel is as fast, and the weights kept for the way back would be large


def can_attend(queries: Tensor, keys: Tensor, values: Tensor) -> bool:
    """Whether the native part knows these: ordinary numbers on a CPU, short, each head's own side by side."""
    return (
        keys.shape[2] <= LONGEST
        and keys.shape == values.shape
        and (queries.shape[:2], queries.shape[3]) == (keys.shape[:2], keys.shape[3])
        and all(
            x.dtype == torch.float32 and x.device.type == "cpu" and x.stride(-1) == 1 for x in (queries, keys, values)
        )
        and native.library() is not None
        and not torch.compiler.is_compiling()
    )


def attend(
    queries: Float[Tensor, "B H Q d"],
    keys: Float[Tensor, "B H K d"],
    values: Float[Tensor, "B H K d"],
    mask: Bool[Tensor, "#B #H #Q #K"] | None,
    bias: Float[Tensor, "#B #H #Q #K"] | None,
    scale: float | None,
) -> Float[Tensor, "B H Q d"]:
    """softmax(q·k · scale + bias) v over the keys that may be seen; `scale` is 1/√d where none is given."""
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    return ShortAttention.apply(queries, keys, values, mask, bias, scale, torch.is_grad_enabled())


class ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, bias: Tensor | None, scale: float,
        learns: bool,
    ) -> Tensor:  # fmt: skip
        shape = (*queries.shape[:3], keys.shape[2])
        context = like_places(queries)
        weights = queries.new_empty(shape) if learns else None
        asked = describe(queries, keys, values, context, scale)
        mask = None if mask is None else mask.expand(shape)
        show(mask, asked)
        if bias is not None:
            spread = bias.expand(shape)
            asked.bias, asked.bias_steps = spread.data_ptr(), (ctypes.c_int64 * 4)(*spread.stride())
        asked.weights = None if weights is None else weights.data_ptr()
        library().attend(ctypes.byref(asked))
        ctx.save_for_backward(queries, keys, values, weights, mask)
        ctx.scale, ctx.bias_shape = scale, None if bias is None else bias.shape
        return context

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, weights, mask = ctx.saved_tensors
        incoming = above[0] if above[0].stride(-1) == 1 else above[0].contiguous()
        slopes = [like_places(part) for part in (queries, keys, values)]
        to_bias = torch.empty_like(weights) if ctx.needs_input_grad[4] else None
        asked = describe(queries, keys, values, incoming, ctx.scale)
        show(mask, asked)
        asked.to_query, asked.to_key, asked.to_value = map(heads_of, slopes)
        asked.weights = weights.data_ptr()
        asked.to_bias = None if to_bias is None else to_bias.data_ptr()
        library().attend_backward(ctypes.byref(asked))
        return *slopes, None, None if to_bias is None else to_bias.sum_to_size(ctx.bias_shape), None, None


def like_places(x: Float[Tensor, "B H N d"]) -> Float[Tensor, "B H N d"]:
    """Room for as many, laid out as (B N H d): the heads of a place side by side, as the next projection reads them."""
    return x.new_empty(x.shape[0], x.shape[2], x.shape[1], x.shape[3]).transpose(1, 2)


def describe(queries: Tensor, keys: Tensor, values: Tensor, context: Tensor, scale: float) -> native.Attending:
    texts, heads, count, width = queries.shape
    return native.Attending(
        torch.get_num_threads(), texts, heads, count, keys.shape[2], width, scale,
        heads_of(queries), heads_of(keys), heads_of(values), heads_of(context),
    )  # fmt: skip


def show(mask: Bool[Tensor, "B H Q K"] | None, asked: native.Attending) -> None:
    """What may be seen: on the way back too, where what was hidden is not computed either."""
    if mask is not None:
        asked.mask, asked.mask_steps = mask.data_ptr(), (ctypes.c_int64 * 4)(*mask.stride())


def heads_of(x: Float[Tensor, "B H N d"]) -> native.Heads:
    return native.Heads(x.data_ptr(), *x.stride()[:3])


def library() -> ctypes.CDLL:
    found = native.library()
    assert found is not None, "can_attend said so"
    return found
