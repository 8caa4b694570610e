"""A model's weights as the engine reads them: packed once, in float32 or int8, with structs that point at them.

Queries, keys and values of a self-attention become one matrix, and so do the keys and values of a source. In int8 every
output of a matrix has a scale of its own; vectors of tokens, norms and biases stay float32.
"""

import ctypes
import math
from collections.abc import Sequence
from threading import Lock
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dragoman import native
from dragoman.decoding.arena import Arena
from dragoman.models.gpt import Gpt
from dragoman.models.t5 import T5, GatedFeedForward
from dragoman.models.transformer import EncoderDecoder
from dragoman.modules.attention import SCALES, Attention
from dragoman.modules.block import Block, Residual, Stack
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.positions import LearnedPositions, RelativePositions, SinusoidalPositions

Precision = Literal["float32", "int8"]
ACTIVATIONS = {"relu": 0, "gelu": 1, "gelu-tanh": 2, "silu": 3}
LAYER_NORM, RMS_NORM = 1, 2
READY = 256  # positions made at first


def can_pack(model: nn.Module) -> bool:
    """Whether the engine knows all parts of this model, and this machine the engine."""
    known = isinstance(model, EncoderDecoder | T5 | Gpt) and native.library() is not None
    return known and all(p.dtype == torch.float32 and p.device.type == "cpu" for p in model.parameters())


def why_not(model: nn.Module) -> str:
    """A sentence for a model that the engine cannot take."""
    if native.library() is None:
        return (
            "this package has no C++ part, so torch computes the model in float32, which is slower; install it again "
            "where there is a C++ compiler"
        )
    odd = next((p for p in model.parameters() if p.dtype != torch.float32 or p.device.type != "cpu"), None)
    if odd is not None:
        return f"a model in {odd.dtype} on {odd.device} goes without the engine, which takes float32 on a CPU"
    return f"a model of the class {type(model).__name__} goes without the engine; torch computes it in float32"


class Side:
    """Source or target: how ids become vectors, and the blocks that these go through."""

    def __init__(
        self,
        embedding: native.Embedding,
        stack: native.Stack,
        positions: SinusoidalPositions | LearnedPositions | None,
        tokens: int,  # that it knows
    ) -> None:
        self.embedding, self.stack, self.positions, self.tokens = embedding, stack, positions, tokens
        self.ready = 0  # positions there are

    def refuse_unknown(self, ids: Any) -> None:
        """A token that is not in the table would be read from beside it."""
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self.tokens:
            raise IndexError(f"tokens {int(ids.min())} to {int(ids.max())} were given; this model has {self.tokens:,}")

    @property
    def blocks(self) -> Sequence[native.Block]:
        return self.stack.block[: self.stack.blocks]


class Packed:
    """All that the engine needs of a model. What the structs point at lives as long as this does."""

    def __init__(self, model: nn.Module, precision: Precision) -> None:
        library = native.library()
        if library is None:
            raise RuntimeError("the engine was not built; ask `can_pack` first")
        self.library, self.precision = library, precision
        self.kept: list[Tensor] = []
        self.growing = Lock()  # threads share this
        self.arena = Arena()
        m: Any = model
        self.source: Side | None = None
        match model:
            case T5():
                self.source = self.side(m.source_embedding, None, m.encoder, m.encoder_distances, m.config)
                self.target = self.side(m.target_embedding, None, m.decoder, m.decoder_distances, m.config)
            case Gpt():
                self.target = self.side(m.embedding, m.positions, m.blocks, None, m.config)
            case _:
                self.source = self.side(m.source_embedding, m.source_positions, m.encoder, None, m.config)
                self.target = self.side(m.target_embedding, m.target_positions, m.decoder, None, m.config)
        self.table: Tensor = m.scores.table.weight.detach().contiguous()  # a shortlist is packed out of it
        self.scores = self.pack_scores(m.scores)
        self.output_scale = m.config.width**-0.5 if isinstance(m, T5) and m.config.tied == "all" else 1.0
        self.vocabulary: int = m.scores.table.num_embeddings
        first = self.target.blocks[0]
        self.inner: int = first.self_attention.heads * first.self_attention.head_width

    def keep(self, tensor: Tensor) -> int:
        """The tensor's address, which stays valid."""
        tensor = tensor.detach().contiguous()
        self.kept.append(tensor)
        return tensor.data_ptr()

    # ── parts ─────────────────────────────────────────────────────────────────────────────

    def side(
        self,
        embedding: TokenEmbedding,
        positions: SinusoidalPositions | LearnedPositions | None,
        stack: Stack,
        distances: RelativePositions | None,
        config: Any,
    ) -> Side:
        table = native.Embedding(self.keep(embedding.table.weight), embedding.scale, None)
        side = Side(table, self.pack_stack(stack, distances, config), positions, embedding.table.num_embeddings)
        if isinstance(positions, LearnedPositions):
            side.embedding.positions = self.keep(positions.table.weight)
            side.ready = positions.table.num_embeddings
        else:
            self.reach(side, READY)
        return side

    def reach(self, side: Side, length: int) -> None:
        """Have positions for texts of this length. Those that were learned end somewhere, and it is said."""
        if length <= side.ready or side.positions is None:
            return
        if isinstance(side.positions, LearnedPositions):
            side.positions(0, length)  # refuses, in words
        with self.growing:
            if length > side.ready:
                side.embedding.positions = self.keep(side.positions(0, 2 * length).clone())
                side.ready = 2 * length

    def pack_stack(self, stack: Stack, distances: RelativePositions | None, config: Any) -> native.Stack:
        blocks = [self.pack_block(block, ACTIVATIONS[config.activation]) for block in stack]
        packed = (native.Block * len(blocks))(*blocks)
        final = stack.final_norm
        made = native.Stack(config.width, len(blocks), packed, self.pack_norm(final), None, 0)
        if distances is not None:
            made.reach = distances.furthest
            places = torch.arange(-distances.furthest, distances.furthest + 1)
            made.distances = self.keep(distances.table(distances.bucket(places[None]))[0])
        return made

    def pack_block(self, block: Block, activation: int) -> native.Block:
        made = native.Block(activation=activation, norm_first=block.around_self.norm_first)
        made.self_attention = self.pack_attention(block.self_attention, of_source=False)
        made.around_self = self.pack_norm(block.around_self)
        made.around_feedforward = self.pack_norm(block.around_feedforward)
        if block.source_attention is not None and block.around_source is not None:
            made.source_attention = self.pack_attention(block.source_attention, of_source=True)
            made.around_source = self.pack_norm(block.around_source)
        feedforward: Any = block.feedforward
        if isinstance(feedforward, GatedFeedForward):
            made.inward, made.gate = self.pack_linear(feedforward.inward), self.pack_linear(feedforward.gate)
            made.outward = self.pack_linear(feedforward.outward)
        else:
            made.inward, made.outward = self.pack_linear(feedforward[0]), self.pack_linear(feedforward[2])
        return made

    def pack_attention(self, attention: Attention, *, of_source: bool) -> native.Attention:
        a: Any = attention
        head_width = a.to_query.out_features // attention.heads
        scale = SCALES[attention.score]
        made = native.Attention(heads=attention.heads, head_width=head_width)
        made.scale = 1 / math.sqrt(head_width) if scale is None else scale
        made.outward = self.pack_linear(a.to_output)
        if of_source:
            made.inward, made.memory = self.pack_linear(a.to_query), self.pack_linear(a.to_key, a.to_value)
        else:
            made.inward = self.pack_linear(a.to_query, a.to_key, a.to_value)
        return made

    def pack_norm(self, part: nn.Module) -> native.Norm:
        norm: Any = part.norm if isinstance(part, Residual) else part
        if isinstance(norm, nn.Identity):
            return native.Norm()
        shift = getattr(norm, "bias", None)
        kind = LAYER_NORM if isinstance(norm, nn.LayerNorm) else RMS_NORM
        return native.Norm(self.keep(norm.weight), None if shift is None else self.keep(shift), norm.eps, kind)

    def pack_linear(self, *linears: nn.Linear) -> native.Linear:
        """One matrix of those that read the same: their outputs follow one another."""
        biases: list[Tensor] = [linear.bias for linear in linears if linear.bias is not None]
        weights: list[Tensor] = [linear.weight for linear in linears]
        return self.pack(torch.cat(weights), torch.cat(biases) if biases else None)

    def pack_scores(self, scores: TokenScores) -> native.Linear:
        return self.pack(scores.table.weight, scores.bias)

    @torch.no_grad()
    def pack(self, weights: Tensor, bias: Tensor | None) -> native.Linear:
        weights = weights.detach().contiguous()
        (outward, inward), whole = weights.shape, self.precision == "int8"
        packed = self.arena.take(self.library.packed_size(outward, inward, whole))
        made = native.Linear(inward, outward, packed)
        padded = outward + -outward % native.PANEL
        made.bias = None if bias is None else self.keep(nn.functional.pad(bias, (0, padded - outward)))
        if whole:
            made.scales = self.keep(torch.empty(padded))
            made.sums = self.keep(torch.empty(padded, dtype=torch.int32))
            self.library.pack_bytes(weights.data_ptr(), outward, inward, packed, made.scales, made.sums)
        else:
            self.library.pack_floats(weights.data_ptr(), outward, inward, packed)
        return made


def pointer(struct: ctypes.Structure) -> Any:
    return ctypes.byref(struct)
