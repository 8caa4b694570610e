"""A sublayer of a block while it trains, in one native call forwards and one backwards.

    y = x + dropout(f(norm(x)))     or     y = norm(x + dropout(f(x)))

The written-out way is in block.py, and this is it: the same draws of dropout, the same numbers but for their last
digits. Where Python calls a dozen operations, threads that learn side by side wait for its lock at each of them; here
the lock is free. What the native part does not know, `can_compute` leaves to torch: other numbers than float32, other
devices, weights in shards, attention that is watched, texts of more than 128 tokens.
"""

import ctypes
import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dragoman import native
from dragoman.modules.dropout import draw
from dragoman.modules.short_attention import LONGEST, heads_of, like_places, show

if TYPE_CHECKING:
    from dragoman.modules.attention import Attention, Memory
    from dragoman.modules.block import Residual

ALIGNED = 16  # numbers of a vector
ACTIVATIONS = {"relu": 0, "gelu": 1, "gelu-tanh": 2, "silu": 3}


class Around(NamedTuple):
    """What stands around f."""

    norm_first: bool
    centred: bool  # LayerNorm, else RMSNorm
    epsilon: float
    kept: Bool[Tensor, "B T D"] | None  # dropout's mask
    boost: float


def can_compute(around: "Residual", x: Tensor, inward: Sequence[Any], outward: Any) -> bool:
    """Whether this is training, on a CPU, by parts that the native part knows and whose sizes fit; where they do not,
    torch says so."""
    return (
        around.training
        and torch.is_grad_enabled()
        and is_ordinary(x)
        and knows_norm(around.norm, x.shape[-1])
        and all(knows_linear(linear) for linear in (*inward, outward))
        and all(linear.in_features == x.shape[-1] for linear in inward)
        and outward.out_features == x.shape[-1]
        and not any(map(is_listened_to, (around.norm, around.dropout, *inward, outward)))
        and native.library() is not None
        and native.product_of_torch() is not None
        and not torch.compiler.is_compiling()
    )


def is_ordinary(x: Tensor) -> bool:
    return x.dtype == torch.float32 and x.is_cpu


def is_plain(x: Tensor | None) -> bool:
    """Numbers one after the other in this process; a parameter in shards is of another class."""
    return x is None or (type(x) in (Tensor, nn.Parameter) and is_ordinary(x) and x.is_contiguous())


def knows_norm(norm: Any, width: int) -> bool:
    return (
        type(norm) in (nn.LayerNorm, nn.RMSNorm)
        and tuple(norm.normalized_shape) == (width,)
        and norm.weight is not None
        and is_plain(norm.weight)
        and is_plain(getattr(norm, "bias", None))
    )


def knows_linear(linear: Any) -> bool:
    return type(linear) is nn.Linear and is_plain(linear.weight) and is_plain(linear.bias)


def is_listened_to(module: nn.Module) -> bool:
    """By a hook, which would not be called."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )


def feed(around: "Residual", feedforward: nn.Module, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"] | None:
    """The feed-forward sublayer; None where torch must compute it."""
    if type(feedforward) is not nn.Sequential or len(feedforward) != 3:  # a gated one is of another class
        return None
    inward, bent, outward = feedforward
    kind = kind_of(bent)
    if kind is None or not can_compute(around, x, (inward,), outward) or inward.out_features != outward.in_features:
        return None
    if is_listened_to(feedforward) or is_listened_to(bent):
        return None
    norm: Any = around.norm
    parts = (inward.weight, inward.bias, outward.weight, outward.bias)
    return FeedForward.apply(
        x.contiguous(), norm.weight, getattr(norm, "bias", None), *parts, describe_around(around, x), kind
    )


def kind_of(activation: nn.Module) -> int | None:
    if type(activation) is nn.GELU:
        return ACTIVATIONS["gelu-tanh" if activation.approximate == "tanh" else "gelu"]
    return {nn.ReLU: ACTIVATIONS["relu"], nn.SiLU: ACTIVATIONS["silu"]}.get(type(activation))


def describe_around(around: "Residual", x: Tensor) -> Around:
    norm: Any = around.norm
    epsilon = torch.finfo(torch.float32).eps if norm.eps is None else norm.eps
    share = around.dropout.share if around.dropout.training else 0.0
    kept, boost = draw(x.shape, share) if share else (None, 1.0)
    return Around(around.norm_first, type(norm) is nn.LayerNorm, epsilon, kept, boost)


class FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gain: Tensor, shift: Tensor | None, weight_in: Tensor, bias_in: Tensor | None,
        weight_out: Tensor, bias_out: Tensor | None, around: Around, kind: int,
    ) -> Tensor:  # fmt: skip
        rows = x.shape[:-1].numel()
        hidden, slopes = rows * len(weight_in), 0 if kind == ACTIVATIONS["relu"] else rows * len(weight_in)
        y, room = torch.empty_like(x), Room(x, x.numel(), 2 * rows, hidden, slopes)
        asked = native.FeedForward(struct_around(x, gain, shift, around, room), activation=kind)
        asked.inward, asked.outward = projection(weight_in, bias_in), projection(weight_out, bias_out)
        asked.around.y = y.data_ptr()
        asked.hidden, asked.slopes = room.places[2:]
        library().feed_forward(ctypes.byref(asked))
        ctx.save_for_backward(x, gain, shift, weight_in, bias_in, weight_out, bias_out, room.numbers)
        ctx.around, ctx.room = around, room.sizes
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, shift, weight_in, bias_in, weight_out, bias_out, numbers = ctx.saved_tensors
        incoming, room = above[0].contiguous(), Room(x, *ctx.room, numbers=numbers)
        scratch = Room(x, x.numel(), x.numel(), ctx.room[2])
        slopes = [like(one) for one in (x, gain, shift, weight_in, bias_in, weight_out, bias_out)]
        asked = native.FeedForward(struct_around(x, gain, shift, ctx.around, room))
        asked.inward, asked.outward = projection(weight_in, bias_in), projection(weight_out, bias_out)
        ask_slopes(asked, incoming, scratch, slopes)
        asked.hidden, asked.slopes = room.places[2:]
        asked.to_hidden = scratch.places[2]
        library().feed_forward_back(ctypes.byref(asked))
        return *slopes, None, None


def read(
    around: "Residual",
    attention: "Attention",
    x: Float[Tensor, "B T D"],
    memory: "Memory | None",
    mask: Bool[Tensor, "#B #H #T #K"] | None,
    bias: Float[Tensor, "#B #H #T #K"] | None,
    scale: float | None,
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T E"]] | None:
    """The attention sublayer over a memory, or over itself where none is given; and what was projected for it: queries,
    and beside them keys and values where they are its own. None where torch must compute it."""
    own = (attention.to_query, attention.to_key, attention.to_value) if memory is None else (attention.to_query,)
    if not can_compute(around, x, own, attention.to_output) or not fits(attention, own, x, memory, bias):
        return None
    norm: Any = around.norm
    linears: Any = own
    outward: Any = attention.to_output
    weight, shift = together([one.weight for one in linears]), together([one.bias for one in linears])
    shape = (attention.heads, scale)
    memory_parts = (None, None) if memory is None else memory
    return Read.apply(
        x.contiguous(), norm.weight, getattr(norm, "bias", None), weight, shift, outward.weight, outward.bias,
        *memory_parts, mask, bias, describe_around(around, x), shape,
    )  # fmt: skip


def fits(attention: "Attention", own: Any, x: Tensor, memory: "Memory | None", bias: Tensor | None) -> bool:
    """Whether the texts are short, nothing is watched, and heads are of one width, those of a memory too."""
    inner = own[0].out_features
    outward: Any = attention.to_output
    return (
        attention.watcher is None
        and not attention.dropout
        and not is_listened_to(attention)
        and outward.in_features == inner
        and inner % attention.heads == 0
        and all(linear.out_features == inner and (linear.bias is None) == (own[0].bias is None) for linear in own)
        and (bias is None or is_ordinary(bias))
        and (x.shape[1] <= LONGEST if memory is None else is_read(memory, len(x), attention.heads, inner))
    )


def is_read(memory: "Memory", texts: int, heads: int, inner: int) -> bool:
    keys, values = memory
    return (
        keys.shape[:2] == (texts, heads)
        and keys.shape[2] <= LONGEST
        and keys.shape[3] == inner // heads
        and keys.shape == values.shape
        and all(is_ordinary(part) and part.stride(-1) == 1 for part in memory)
    )


def together(parts: list[Any]) -> Any:
    """Rows of several matrices one below the other: what reads the same input is one product."""
    return parts[0] if len(parts) == 1 or parts[0] is None else torch.cat(parts)


class Read(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gain: Tensor, shift: Tensor | None, weight_in: Tensor, bias_in: Tensor | None,
        weight_out: Tensor, bias_out: Tensor | None, keys: Tensor | None, values: Tensor | None, mask: Tensor | None,
        bias: Tensor | None, around: Around, shape: tuple[int, float | None],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        (texts, queries, _), (heads, scale), inner = x.shape, shape, weight_out.shape[1]  # heads × their width
        looks, width = (texts, heads, queries, queries if keys is None else keys.shape[2]), inner // heads
        y, projected = torch.empty_like(x), x.new_empty(texts, queries, len(weight_in))
        room = Room(x, x.numel(), 2 * texts * queries, texts * queries * inner, math.prod(looks))
        asked = native.Reading(struct_around(x, gain, shift, around, room), projected=projected.data_ptr())
        asked.inward, asked.outward = projection(weight_in, bias_in), projection(weight_out, bias_out)
        asked.around.y, (asked.context, asked.attending.weights) = y.data_ptr(), room.places[2:]
        scale = 1 / math.sqrt(width) if scale is None else scale
        mask = None if mask is None else mask.expand(looks)
        describe_looks(asked.attending, looks, width, scale, mask)
        asked.attending.query, asked.attending.key, asked.attending.value = projected_heads(
            projected, heads, keys, values
        )
        asked.attending.context = places_of(asked.context, looks, width)
        if bias is not None:
            spread = bias.expand(looks)
            asked.attending.bias, asked.attending.bias_steps = spread.data_ptr(), (ctypes.c_int64 * 4)(*spread.stride())
        library().read_memory(ctypes.byref(asked))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            x, gain, shift, weight_in, bias_in, weight_out, bias_out, keys, values, mask, projected, room.numbers
        )
        ctx.around, ctx.room, ctx.looks, ctx.scale = around, room.sizes, looks, scale
        ctx.bias_shape = None if bias is None else bias.shape
        return y, projected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor | None) -> tuple[Tensor | None, ...]:
        x, gain, shift, weight_in, bias_in, weight_out, bias_out, *parts = ctx.saved_tensors
        keys, values, mask, projected, numbers = parts
        heads, room = ctx.looks[1], Room(x, *ctx.room, numbers=numbers)
        width = weight_out.shape[1] // heads
        incoming = torch.zeros_like(x) if above[0] is None else above[0].contiguous()
        more = None if above[1] is None else above[1].contiguous()
        scratch = Room(x, x.numel(), x.numel(), ctx.room[2])
        to_projected = torch.empty_like(projected)
        slopes = [like(one) for one in (x, gain, shift, weight_in, bias_in, weight_out, bias_out)]
        to_memory = (None, None) if keys is None else (like_places(keys), like_places(values))
        to_bias = x.new_empty(ctx.looks) if ctx.needs_input_grad[10] else None
        asked = native.Reading(struct_around(x, gain, shift, ctx.around, room), projected=projected.data_ptr())
        asked.inward, asked.outward = projection(weight_in, bias_in), projection(weight_out, bias_out)
        ask_slopes(asked, incoming, scratch, slopes)
        asked.to_projected, asked.more, asked.to_context = to_projected.data_ptr(), address(more), scratch.places[2]
        asked.context, asked.attending.weights = room.places[2:]
        asked.attending.to_bias = address(to_bias)
        describe_looks(asked.attending, ctx.looks, width, ctx.scale, mask)
        asked.attending.query, asked.attending.key, asked.attending.value = projected_heads(
            projected, heads, keys, values
        )
        slopes_of_heads = projected_heads(to_projected, heads, *to_memory)
        asked.attending.to_query, asked.attending.to_key, asked.attending.to_value = slopes_of_heads
        asked.attending.context = places_of(asked.to_context, ctx.looks, width)
        library().read_memory_back(ctypes.byref(asked))
        shrunk = None if to_bias is None else to_bias.sum_to_size(ctx.bias_shape)
        return *slopes, *to_memory, None, shrunk, None, None


def own_memory(
    projected: Float[Tensor, "B T E"], heads: int
) -> tuple[Float[Tensor, "B H T d"], Float[Tensor, "B H T d"]]:
    """Keys and values of what was projected to queries, keys and values."""
    _, keys, values = projected.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4).unbind()
    return keys, values


# ── structs for the native part, and memory for it: each tensor less is one turn less at Python's lock ──


class Room:
    """One tensor for several uses: each place begins where a vector may. None for what has no size."""

    def __init__(self, x: Tensor, *sizes: int, numbers: Tensor | None = None) -> None:
        self.sizes = sizes
        starts = list(accumulate((size + -size % ALIGNED for size in sizes), initial=0))
        self.numbers = x.new_empty(starts[-1]) if numbers is None else numbers
        first = self.numbers.data_ptr()
        self.places = [first + 4 * start if size else None for start, size in zip(starts[:-1], sizes, strict=True)]


def struct_around(x: Tensor, gain: Tensor, shift: Tensor | None, around: Around, room: Room) -> native.Around:
    """`room` has what f was given (or what the later norm was), and the norm's statistics."""
    between, statistics = room.places[:2]
    return native.Around(
        torch.get_num_threads(), x.shape[:-1].numel(), x.shape[-1], around.norm_first, around.centred, around.epsilon,
        gain.data_ptr(), address(shift), address(around.kept), around.boost, x.data_ptr(), None, between, between,
        statistics,
    )  # fmt: skip


def ask_slopes(
    asked: native.FeedForward | native.Reading, above: Tensor, scratch: Room, slopes: list[Tensor | None]
) -> None:
    around, (to_x, to_gain, to_shift, *to_parts) = asked.around, map(address, slopes)
    around.above, (around.out, around.to_entered) = above.data_ptr(), scratch.places[:2]
    around.to_x, around.to_gain, around.to_shift = to_x, to_gain, to_shift
    asked.inward.to_weight, asked.inward.to_bias, asked.outward.to_weight, asked.outward.to_bias = to_parts


def describe_looks(
    attending: native.Attending, looks: tuple[int, int, int, int], width: int, scale: float, mask: Tensor | None
) -> None:
    attending.threads = 1  # the sublayer has its own
    attending.texts, attending.heads, attending.queries, attending.keys = looks
    attending.width, attending.scale = width, scale
    show(mask, attending)


def projected_heads(
    projected: Float[Tensor, "B T E"], heads: int, keys: Tensor | None, values: Tensor | None
) -> tuple[native.Heads, native.Heads, native.Heads]:
    """Queries, keys and values side by side in each place; or queries alone, beside a memory."""
    first, (_, places, every) = projected.data_ptr(), projected.shape
    if keys is not None and values is not None:
        return native.Heads(first, places * every, every // heads, every), heads_of(keys), heads_of(values)
    query, key, value = (
        native.Heads(first + 4 * (every // 3) * part, places * every, every // 3 // heads, every) for part in range(3)
    )
    return query, key, value


def places_of(first: int, looks: tuple[int, int, int, int], width: int) -> native.Heads:
    """Heads of a place side by side, at this address."""
    _, heads, queries, _ = looks
    return native.Heads(first, queries * heads * width, width, heads * width)


def projection(weight: Tensor, bias: Tensor | None) -> native.Projection:
    outward, inward = weight.shape
    return native.Projection(inward, outward, weight.data_ptr(), address(bias))


def like(x: Tensor | None) -> Tensor | None:
    return None if x is None else torch.empty_like(x)


def address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def library() -> ctypes.CDLL:
    found = native.library()
    assert found is not None, "can_compute said so"
    return found
