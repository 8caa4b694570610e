"""How a model tells places apart: waves that are computed, vectors that were learned, or a number for each distance.

    sinusoidal    PE(p, 2i) = sin(p / 10000^(2i/D)),  PE(p, 2i+1) = cos(the same angle)     for any place, not learned
    learned       a vector for each place up to the longest; there is none for the next
    relative      nothing is added to a token; each head adds b(k − q) to its scores (T5)

The waves of 2017 at the model's width stand beside what the model has, to be compared with.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.config import Settings
from dragoman.decoding.images import ImageModel
from dragoman.jobs.open import Learned
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.modules.positions import (
    LearnedPositions,
    RelativePositions,
    SinusoidalPositions,
    sinusoids,
    split_sinusoids,
)
from dragoman.seeing.packed import Packed, pack
from dragoman.seeing.places import Places, places_of

SHOWN = 64  # places, and numbers of each
WAVES = 6  # drawn, from the fastest to the slowest
REACH = 32  # distances of a relative bias, to both sides
Table = Callable[[int, int], Float[Tensor, "T D"]]  # (places, width) -> their vectors


class Wave(Settings):
    dimension: int  # from 0
    wavelength: float  # in places
    values: Packed


class Closeness(Settings):
    """PE(p)·PE(p+k) over |PE|², mean over p: 1 at distance 0."""

    distances: list[int]
    sinusoidal: Packed
    learned: Packed | None


class Bias(Settings):
    distances: list[int]  # key − query
    heads: Packed  # heads × distances


class Positions(Settings):
    kind: str
    sentence: str
    width: int
    table: Packed  # places × numbers: sinusoidal, the first of both
    learned: Packed | None  # what the model learned instead, as many
    longest: int | None  # places there are, where they are learned
    waves: list[Wave]
    closeness: Closeness
    bias: Bias | None
    places: Places | None = None  # of an image


def show_positions(learned: Learned) -> Positions | None:
    """None for a model that adds none: a recurrent one reads in order, a bag of words knows no order."""
    model: nn.Module | None = getattr(learned, "model", None)
    found = None if model is None else positions_of(model)
    return on_image(learned, found) if isinstance(learned, ImageModel) and found else found


def on_image(model: ImageModel, found: Positions) -> Positions:
    places, sentence = places_of(model)
    return found.model_copy(update={"places": places, "sentence": sentence})


@torch.inference_mode()
def positions_of(model: nn.Module) -> Positions | None:
    """Of the side that reads the text; a model's first part with positions is that."""
    kinds = (SinusoidalPositions, LearnedPositions, RelativePositions)
    match next((part for part in model.modules() if isinstance(part, kinds)), None):
        case SinusoidalPositions() as waves:
            order = split_sentence() if waves.waves is split_sinusoids else ""
            return compared("sinusoidal", computed_sentence(waves.width) + order, waves.waves, waves.width)
        case LearnedPositions() as table:
            return compared("learned", learned_sentence(len(table.table.weight)), sinusoids, *table_of(table))
        case RelativePositions() as distances:
            return compared("relative", relative_sentence(distances), sinusoids, width_of(model), bias=distances)
        case _:
            return None


def compared(
    kind: str,
    sentence: str,
    waves: Table,
    width: int,
    learned: Float[Tensor, "N D"] | None = None,
    bias: RelativePositions | None = None,
) -> Positions:
    places = SHOWN if learned is None else min(SHOWN, len(learned))
    table = waves(places, width)
    return Positions(
        kind=kind,
        sentence=sentence,
        width=width,
        table=pack(table[:, :SHOWN]),
        learned=None if learned is None else pack(learned[:places, :SHOWN]),
        longest=None if learned is None else len(learned),
        waves=waves_of(table, split=waves is split_sinusoids),
        closeness=Closeness(
            distances=list(range(places)),
            sinusoidal=pack(closeness(table, places)),
            learned=None if learned is None else pack(closeness(learned, places)),
        ),
        bias=None if bias is None else bias_of(bias),
    )


def table_of(positions: LearnedPositions) -> tuple[int, Float[Tensor, "N D"]]:
    return positions.table.embedding_dim, positions.table.weight


def width_of(model: nn.Module) -> int:
    return next(part.table.embedding_dim for part in model.modules() if isinstance(part, TokenEmbedding))


# ── numbers ───────────────────────────────────────────────────────────────────────────────


def waves_of(table: Float[Tensor, "T D"], *, split: bool) -> list[Wave]:
    """Sines from the fastest to the slowest; pair i repeats after 2π · 10000^(2i/D) places."""
    width = table.shape[1]
    pairs = (width + 1) // 2
    chosen = sorted({round(i * (pairs - 1) / (WAVES - 1)) for i in range(WAVES)})
    return [
        Wave(
            dimension=pair if split else 2 * pair,
            wavelength=round(2 * math.pi * 10000 ** (2 * pair / width), 2),
            values=pack(table[:, pair if split else 2 * pair]),
        )
        for pair in chosen
    ]


def closeness(table: Float[Tensor, "N D"], distances: int) -> Float[Tensor, " T"]:
    """For each distance k the mean of p(i)·p(i+k) over all i, as a share of the mean of |p|²."""
    products = table @ table.T
    means = torch.stack([products.diagonal(offset=k).mean() for k in range(distances)])
    return means / means[0].clamp(min=torch.finfo(means.dtype).tiny)


def bias_of(positions: RelativePositions) -> Bias:
    distances = torch.arange(-REACH, REACH + 1)
    found = positions.table(positions.bucket(distances[None]))[0].T  # (H, distances)
    return Bias(distances=distances.tolist(), heads=pack(found))


# ── words ─────────────────────────────────────────────────────────────────────────────────


def computed_sentence(width: int) -> str:
    longest = 2 * math.pi * 10000 ** ((width - 2) / width)
    return (
        f"Each place has {width} numbers, sines and cosines, added to the token's vector. The fastest repeats after "
        f"2π = 6.28 places, the slowest after {longest:,.0f}. Nothing is learned, and any length has its vectors; how "
        "well the model reads beyond what it was trained on is another matter."
    )


def split_sentence() -> str:
    return " Marian's order: all sines come first, then all cosines; the waves are the same."


def learned_sentence(longest: int) -> str:
    return (
        f"Each of {longest:,} places has a vector that was learned like a token's. There is none for place "
        f"{longest + 1:,}: a longer text is refused or read in parts. The waves of 2017 stand beside for comparison."
    )


def relative_sentence(positions: RelativePositions) -> str:
    return (
        "Nothing is added to a token's vector. Each head adds to its scores a number learned for the distance key − "
        f"query, from {positions.buckets} buckets: near distances have one each, far ones share, and from "
        f"{positions.furthest} on all are alike. All blocks share this table. The waves of 2017 stand beside for "
        "comparison."
    )
