"""Six words, four numbers each, two heads: small enough to follow by hand, through the parts of a real block."""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.modules.attention import Attention, scaled_dot
from dragoman.modules.block import Block
from dragoman.modules.masks import hide_future
from dragoman.modules.positions import sinusoids
from dragoman.seeing.arithmetic.block import Case, stage, stages_of, work_through
from dragoman.seeing.arithmetic.matrices import CAT, SHOWN, Arithmetic, Stage, matrix
from dragoman.seeing.arithmetic.shuffle import shuffle_words

TOY_WIDTH, TOY_HEADS = 4, 2


def toy_arithmetic(words: Sequence[str] = CAT) -> Arithmetic:
    """A block of width 4 with two heads, on up to 8 words; the same word always has the same vector."""
    words = list(words[:SHOWN])
    block, vectors = toy_block(), toy_vectors(words)
    places = sinusoids(len(words), TOY_WIDTH)
    mask = hide_future(len(words), len(words))
    case = Case(words, block, work_through(block, (vectors + places)[None], mask, None), mask, None)

    def weigh(order: list[int], told: bool) -> Float[Tensor, "T T"]:
        states = vectors[order] + (places if told else 0.0)
        return work_through(block, states[None], None, None).weights[0, 0]

    return Arithmetic(
        source="toy",
        title=f"{' '.join(words)}, small enough to follow by hand",
        note="A toy: 4 numbers a word and 2 heads, made up to be easy to read, not learned. It is a decoder's block of "
        "2017: nobody looks ahead, and the norm comes last.",
        words=tuple(words),
        heads=TOY_HEADS,
        width=TOY_WIDTH,
        head_width=TOY_WIDTH // TOY_HEADS,
        stages=stages_of(case, toy_input(words, vectors, places)),
        shuffle=shuffle_words(words, weigh),
    )


def toy_input(words: list[str], vectors: Float[Tensor, "T D"], places: Float[Tensor, "T D"]) -> Stage:
    return stage(
        "input",
        "A vector for each word, the same wherever it stands, plus one for its place p, counted from 0: sin p, cos p, "
        "sin p/100, cos p/100. X = E + P.",
        matrix("", "E", vectors, words),
        matrix("+", "P", places, words),
        matrix("=", "X", vectors + places, words),
    )


def toy_vectors(words: list[str]) -> Float[Tensor, "T D"]:
    known = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return steps(SHOWN, TOY_WIDTH, (6, 10, 0), 19, 5)[[known[word] for word in words]]


@torch.no_grad()
def toy_block() -> Block:
    linears = []
    for shifts in ((15, 9, 12), (19, 6, 14), (4, 13, 9), (8, 5, 17)):  # W_Q, W_K, W_V, W_O
        linears.append(nn.Linear(TOY_WIDTH, TOY_WIDTH, bias=False, dtype=torch.float64))
        linears[-1].weight.copy_(steps(TOY_WIDTH, TOY_WIDTH, shifts, 21, 10).T)
    q, k, v, o = linears
    return Block(
        self_attention=Attention(score=scaled_dot, to_query=q, to_key=k, to_value=v, to_output=o, heads=TOY_HEADS),
        feedforward=nn.Identity(),
        norm=partial(nn.LayerNorm, TOY_WIDTH, dtype=torch.float64),
        norm_first=False,
    ).requires_grad_(False)


def steps(rows: int, columns: int, shifts: tuple[int, int, int], values: int, divisor: int) -> Float[Tensor, "R C"]:
    """((a i + b j + c) mod n − n/2) / divisor: readable, about 0, and no two rows alike."""
    down, across, start = shifts
    places = down * torch.arange(rows)[:, None] + across * torch.arange(columns) + start
    return (places % values - values // 2).double() / divisor
