"""The table of token vectors: which tokens lie near each other, on a plane and in the whole space.

    plane         the two directions in which the centred vectors vary most (principal components)
    dot product   x·y                   grows with the lengths of both
    cosine        x·y / (|x| |y|)       the angle alone, from −1 to 1

The plane keeps a part of the variance only; neighbours are found in the whole space, by cosine and by dot product,
which need not agree.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.config import Settings
from dragoman.decoding.fill import MASK
from dragoman.jobs.open import Learned
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.seeing.packed import Packed, pack
from dragoman.text.reading import clean
from dragoman.text.tokenizer import Tokenizer

SHOWN = 300  # tokens on the plane
NEAREST = 6
MOST = 64  # tokens of the text whose neighbours are told


class Neighbour(Settings):
    token: str
    value: float


class Neighbours(Settings):
    token: str
    cosine: list[Neighbour]
    dot: list[Neighbour]


class Embeddings(Settings):
    sentence: str
    tokens: list[str]
    points: Packed  # tokens × 2
    shares: list[float]  # of the variance, for both directions
    in_text: list[bool]
    neighbours: list[Neighbours]  # of the text's tokens


def show_embeddings(learned: Learned, text: str) -> Embeddings | None:
    """Of the table that reads the text; None for a model that reads none."""
    tokenizer, table = reader_of(learned), table_of(learned)
    return None if tokenizer is None or table is None else embeddings_of(table, tokenizer, text)


def reader_of(learned: Any) -> Tokenizer | None:
    """The tokenizer of what is read, which is the source's where there are two."""
    both = getattr(learned, "tokenizers", None)
    return getattr(learned, "tokenizer", None) if both is None else both.source


def table_of(learned: Any) -> Float[Tensor, "V D"] | None:
    """Every token's vector. Word vectors come without those of special tokens, which are never shown: they are 0."""
    if hasattr(learned, "vectors"):
        table = torch.zeros(len(learned.tokenizer), learned.vectors.shape[1])
        table[torch.from_numpy(learned.ids)] = torch.from_numpy(learned.vectors)
        return table
    found = (part for part in learned.model.modules() if isinstance(part, TokenEmbedding))
    return next((part.table.weight.detach() for part in found), None)


def embeddings_of(table: Float[Tensor, "V D"], tokenizer: Tokenizer, text: str) -> Embeddings | None:
    """None where there are not two tokens to draw."""
    silent = tokenizer.special.pieces()
    known = [token for token in range(min(len(tokenizer), len(table))) if token not in silent]
    if len(known) < 2:
        return None
    ids = tokenizer.encode([clean(text.replace(MASK, " "))])[0]
    said = [token for token in dict.fromkeys(ids) if token not in silent]
    chosen = list(dict.fromkeys([*said, *known]))[: max(SHOWN, len(said))]
    points, exact = project(table[chosen].double())
    shares = [round(share, 3) for share in exact]  # as they are printed
    return Embeddings(
        sentence=sentence(len(chosen), table.shape[1], shares),
        tokens=tokenizer.pieces(chosen),
        points=pack(points),
        shares=shares,
        in_text=[place < len(said) for place in range(len(chosen))],
        neighbours=neighbours(table, tokenizer, said[:MOST], torch.tensor(known)),
    )


def project(vectors: Float[Tensor, "N D"]) -> tuple[Float[Tensor, "N 2"], list[float]]:
    """X − mean = U S Vᵀ: the first two columns of U S, and the share of each in the variance, S² / ΣS².

    A direction and its opposite serve alike; the one is taken whose largest number is positive.
    """
    _, sizes, directions = torch.linalg.svd(vectors - vectors.mean(dim=0), full_matrices=False)
    directions = F.pad(directions[:2], (0, 0, 0, 2 - len(directions[:2])))  # a single direction gets an empty second
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    directions = torch.where(largest < 0, -directions, directions)
    squares = F.pad(sizes.square(), (0, 2))
    shares = squares[:2] / squares.sum().clamp(min=torch.finfo(torch.float64).tiny)
    return (vectors - vectors.mean(dim=0)) @ directions.T, shares.tolist()


def neighbours(
    table: Float[Tensor, "V D"], tokenizer: Tokenizer, said: list[int], known: Int[Tensor, " N"]
) -> list[Neighbours]:
    """For each token said, those of all known ones that are nearest, itself left out."""
    directions = F.normalize(table, dim=-1)
    cosines, dots = directions[said] @ directions[known].T, table[said] @ table[known].T
    return [
        Neighbours(
            token=tokenizer.pieces([token])[0],
            cosine=nearest(cosines[row], tokenizer, known, token),
            dot=nearest(dots[row], tokenizer, known, token),
        )
        for row, token in enumerate(said)
    ]


def nearest(
    values: Float[Tensor, " N"], tokenizer: Tokenizer, known: Int[Tensor, " N"], itself: int
) -> list[Neighbour]:
    others = values.masked_fill(known == itself, -torch.inf)
    best = others.topk(min(NEAREST, len(known) - 1))
    names = tokenizer.pieces(known[best.indices].tolist())
    return [
        Neighbour(token=name, value=round(value, 4)) for name, value in zip(names, best.values.tolist(), strict=True)
    ]


def sentence(tokens: int, width: int, shares: list[float]) -> str:
    return (
        f"{tokens:,} tokens, {width} numbers each, seen from the side where they differ most. The two directions hold "
        f"{100 * shares[0]:.1f} % and {100 * shares[1]:.1f} % of the variance, so what is near here need not be near. "
        "Neighbours are found by all numbers: by cosine, the angle alone, or by dot product, which also grows with "
        "length. They are not the same."
    )
