"""Sublayers of blocks while they train, as many as come one after the other in one native call forwards and one back.

    y = x + dropout(f(norm(x)))     or     y = norm(x + dropout(f(x)))

The written-out way is in block.py, and this is it: the same draws of dropout, the same numbers but for their last
digits. Where Python calls a dozen operations for each, threads that learn side by side wait for its lock at each of
them; here the lock is free. What the native part does not know, `can_go_through` leaves to torch: other numbers than
float32, other devices, weights in shards, attention that is watched, texts of more than 128 tokens.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from ctypes import c_int64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch._utils import _unflatten_dense_tensors
from torch.autograd.function import once_differentiable

from dragoman import native
from dragoman.modules.dropout import draw
from dragoman.modules.short_attention import LONGEST, heads_of, like_places

if TYPE_CHECKING:
    from dragoman.modules.attention import Attention, Memory
    from dragoman.modules.block import Residual

FEEDS, READS_ITSELF, READS_SOURCE = range(3)
PLACES = 10  # of a sublayer's parameters: gain, shift, up to three inward weights and their biases, the outward one
ACTIVATIONS = {nn.ReLU: 0, nn.GELU: 1, nn.SiLU: 3}
GELU_BY_TANH = 2


class Sublayer(NamedTuple):
    """Linear maps inward, what is between, one outward, and what stands around them."""

    kind: int
    around: "Residual"
    inward: tuple[Any, ...]
    outward: Any
    activation: int = 0
    attention: "Attention | None" = None
    scale: float | None = None  # of scores; else 1/√d
    memory: "Memory | None" = None

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        return self.around.norm, self.around.dropout, *self.inward, self.outward

    @property
    def heads(self) -> int:
        return 1 if self.attention is None else self.attention.heads

    def parameters(self) -> list[Tensor | None]:
        """By their places in the native part."""
        norm: Any = self.around.norm
        missing = [None] * (3 - len(self.inward))
        weights, biases = [one.weight for one in self.inward], [one.bias for one in self.inward]
        outward = self.outward.weight, self.outward.bias
        return [norm.weight, getattr(norm, "bias", None), *weights, *missing, *biases, *missing, *outward]


class Sight(NamedTuple):
    """Who may see what, in all sublayers of a run; and what is added to the scores of those that read themselves."""

    own: Bool[Tensor, "#B #H #T #T"] | None = None
    source: Bool[Tensor, "#B #H #T #S"] | None = None
    bias: Float[Tensor, "#B #H #T #T"] | None = None


def feeding(around: "Residual", feedforward: nn.Module) -> Sublayer | None:
    """The feed-forward sublayer; None where it is not two linear maps and a known bend between them."""
    if type(feedforward) is not nn.Sequential or len(feedforward) != 3:  # a gated one is of another class
        return None
    inward, bent, outward = feedforward
    activation = ACTIVATIONS.get(type(bent))
    if activation is None or is_listened_to(feedforward) or is_listened_to(bent):
        return None
    if type(bent) is nn.GELU and bent.approximate == "tanh":
        activation = GELU_BY_TANH
    return Sublayer(FEEDS, around, (inward,), outward, activation)


def reading(around: "Residual", attention: "Attention", scale: float | None, memory: "Memory | None") -> Sublayer:
    """The attention sublayer over a memory, or over itself where none is given."""
    linears: tuple[nn.Module, ...] = attention.to_query, attention.to_key, attention.to_value
    kind, inward = (READS_ITSELF, linears) if memory is None else (READS_SOURCE, linears[:1])
    return Sublayer(kind, around, inward, attention.to_output, 0, attention, scale, memory)


# ── what the native part knows ──────────────────────────────────────────────────────────────


def can_go_through(sublayers: Sequence[Sublayer], x: Tensor, bias: Tensor | None = None) -> bool:
    """Whether this is training, on a CPU, by parts that the native part knows and whose sizes fit; where they do not,
    torch says so."""
    return (
        torch.is_grad_enabled()
        and is_ordinary(x)
        and (bias is None or is_ordinary(bias))
        and all(fits(one, x) for one in sublayers)
        and are_alike(sublayers)
        and native.has_products()
        and not torch.compiler.is_compiling()
    )


def fits(one: Sublayer, x: Tensor) -> bool:
    width, inward, outward = x.shape[-1], one.inward, one.outward
    return (
        one.around.training
        and knows_norm(one.around.norm, width)
        and all(map(knows_linear, (*inward, outward)))
        and all(linear.in_features == width for linear in inward)
        and all(linear.out_features == outward.in_features for linear in inward)
        and all((linear.bias is None) == (inward[0].bias is None) for linear in inward)
        and outward.out_features == width
        and not any(map(is_listened_to, one.modules))
        and (one.attention is None or can_be_read(one.attention, one, x))
    )


def are_alike(sublayers: Sequence[Sublayer]) -> bool:
    """What they project of themselves is kept as one tensor, and one mask is spread over the heads and keys of all."""
    reading = [one for one in sublayers if one.kind != FEEDS]
    keys = [0 if one.memory is None else one.memory.keys.shape[2] for one in reading]
    sizes = {(one.kind, one.heads, one.outward.in_features, count) for one, count in zip(reading, keys, strict=True)}
    return len(sizes) == len({one.kind for one in reading})


def can_be_read(attention: "Attention", one: Sublayer, x: Tensor) -> bool:
    """Whether the texts are short, nothing is watched, and heads are of one width, those of a memory too."""
    inner = one.outward.in_features
    return (
        attention.watcher is None
        and not attention.dropout
        and not is_listened_to(attention)
        and inner % attention.heads == 0
        and (x.shape[1] <= LONGEST if one.memory is None else is_read(one.memory, len(x), attention.heads, inner))
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


# ── the two calls ───────────────────────────────────────────────────────────────────────────


def go_through(
    sublayers: Sequence[Sublayer], x: Float[Tensor, "B T D"], sight: Sight
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "L B T E"]]:
    """What comes out of the last of them; and what was projected in the L that read themselves: queries, keys and
    values side by side."""
    parameters = [parameter for one in sublayers for parameter in one.parameters()]
    memories = [part for one in sublayers if one.memory is not None for part in one.memory]
    drawn = [draw_for(one, x) for one in sublayers]
    given = [parameter for parameter in parameters if parameter is not None]
    there = [parameter is not None for parameter in parameters]
    run = Run(sublayers, drawn, sight, there, len(memories))
    return GoThrough.apply(x.contiguous(), sight.bias, run, *given, *memories)


def draw_for(one: Sublayer, x: Tensor) -> tuple[Bool[Tensor, "B T D"] | None, float]:
    dropout = one.around.dropout
    return draw(x.shape, dropout.share) if dropout.share and dropout.training else (None, 1.0)


class Run:
    """Sublayers in a row on their way forwards and back."""

    def __init__(
        self,
        sublayers: Sequence[Sublayer],
        drawn: list[tuple[Tensor | None, float]],
        sight: Sight,
        there: list[bool],
        memories: int,
    ) -> None:
        self.drawn, self.there, self.memories = (
            drawn,
            there,
            memories,
        )  # masks of dropout must stay as long as this does
        self.own, self.source, self.bias = sight
        self.sublayers = (native.Sublayer * len(sublayers))(*map(describe, sublayers, drawn))
        own = [one for one in sublayers if one.kind == READS_ITSELF]
        self.projections = len(own), 3 * own[0].outward.in_features if own else 0
        self.heads = own[0].heads if own else 1
        self.read_source = [i for i, one in enumerate(sublayers) if one.kind == READS_SOURCE]

    def ask(self, x: Tensor, projected: Tensor, parameters: Sequence[Tensor], memories: Sequence[Tensor]) -> native.Run:
        for i, keys, values in zip(self.read_source, memories[::2], memories[1::2], strict=True):
            one = self.sublayers[i]
            one.keys, one.key, one.value = keys.shape[2], heads_of(keys), heads_of(values)
        asked = native.Run(torch.get_num_threads(), *x.shape, len(self.sublayers), self.sublayers)
        asked.parameters = self.addresses(parameters)
        texts, length, _ = x.shape
        if self.own is not None:
            asked.own = shown(self.own, (texts, self.heads, length, length))
        if self.source is not None and self.read_source:
            one = self.sublayers[self.read_source[0]]
            asked.source = shown(self.source, (texts, one.heads, length, one.keys))
        asked.x, asked.projected = x.data_ptr(), projected.data_ptr()
        return asked

    def addresses(self, tensors: Sequence[Tensor]) -> Any:
        """Of parameters or their slopes, by their places."""
        following = iter(tensors)
        return (c_void_p * len(self.there))(
            *(next(following).data_ptr() if is_there else None for is_there in self.there)
        )


def describe(one: Sublayer, drawn: tuple[Tensor | None, float]) -> native.Sublayer:
    norm: Any = one.around.norm
    (kept, boost), inner = drawn, one.outward.in_features
    return native.Sublayer(
        one.kind, one.around.norm_first, type(norm) is nn.LayerNorm, one.activation, one.heads, inner,
        torch.finfo(torch.float32).eps if norm.eps is None else norm.eps,
        1 / math.sqrt(inner // one.heads) if one.scale is None else one.scale, boost, address(kept),
    )  # fmt: skip


def shown(mask: Bool[Tensor, "#B #H #Q #K"], looks: tuple[int, int, int, int]) -> native.Shown:
    spread = mask.expand(looks)
    return native.Shown(spread.data_ptr(), (c_int64 * 4)(*spread.stride()))


class GoThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor | None, run: Run, *rest: Tensor) -> tuple[Tensor, Tensor]:
        parameters, memories = rest[: len(rest) - run.memories], rest[len(rest) - run.memories :]
        y, projected = torch.empty_like(x), x.new_empty(run.projections[0], *x.shape[:2], run.projections[1])
        asked = run.ask(x, projected, parameters, memories)
        if bias is not None:
            spread = bias.expand(len(x), run.heads, x.shape[1], x.shape[1])
            asked.bias, asked.bias_steps = spread.data_ptr(), (c_int64 * 4)(*spread.stride())
        asked.y = y.data_ptr()
        room = call(library().forwards, asked, x)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, projected, room, run.own, run.source, *rest)
        ctx.run, ctx.bias_shape = run, None if bias is None else bias.shape
        return y, projected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor | None) -> tuple[Tensor | None, ...]:
        run = cast("Run", ctx.run)
        x, projected, room, _, _, *rest = ctx.saved_tensors  # torch has seen that none was changed, masks neither
        parameters, memories = rest[: len(rest) - run.memories], rest[len(rest) - run.memories :]
        incoming = torch.zeros_like(x) if above[0] is None else above[0].contiguous()
        more = None if above[1] is None else above[1].contiguous()
        to_x, to_memories = torch.empty_like(x), [like_places(part) for part in memories]
        looks = len(x), run.heads, x.shape[1], x.shape[1]
        to_bias = x.new_empty(looks) if ctx.needs_input_grad[1] else None
        slopes = _unflatten_dense_tensors(x.new_empty(sum(p.numel() for p in parameters)), parameters)
        asked = run.ask(x, projected, parameters, memories)
        asked.slopes, asked.above, asked.to_x = run.addresses(slopes), incoming.data_ptr(), to_x.data_ptr()
        asked.more, asked.to_bias = address(more), address(to_bias)
        for i, to_keys, to_values in zip(run.read_source, to_memories[::2], to_memories[1::2], strict=True):
            run.sublayers[i].to_key, run.sublayers[i].to_value = heads_of(to_keys), heads_of(to_values)
        call(library().backwards, asked, x, room)
        shrunk = None if to_bias is None else to_bias.sum_to_size(ctx.bias_shape)
        return to_x, shrunk, None, *slopes, *to_memories


def call(way: Callable[[Any], None], asked: native.Run, x: Tensor, room: Tensor | None = None) -> Tensor:
    """With memory for the time of the call; and with room for what is kept for the way back, which is returned."""
    kept, passing = c_int64(), c_int64()
    library().measure(ctypes.byref(asked), ctypes.byref(kept), ctypes.byref(passing))
    room, scratch = x.new_empty(kept.value) if room is None else room, x.new_empty(passing.value)
    asked.room, asked.scratch = room.data_ptr(), scratch.data_ptr()
    way(ctypes.byref(asked))
    return room


def own_memories(projected: Float[Tensor, "L B T E"], heads: int) -> list[tuple[Tensor, Tensor]]:
    """Keys and values of what was projected to queries, keys and values, for each that read itself."""
    each = projected.unflatten(-1, (3, heads, -1)).permute(0, 3, 1, 4, 2, 5).unbind()
    return [(keys, values) for _, keys, values in (one.unbind() for one in each)]


def address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def library() -> ctypes.CDLL:
    found = native.library()
    assert found is not None, "can_go_through said so"
    return found
