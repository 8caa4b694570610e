"""What a vit learned of where a patch lies: how alike the vectors of any two places are, laid out as the image is.

    cosine(p, q) = p·q / (|p| |q|)      of the learned vectors of two patches; 1 of a patch with itself

Nobody told the model that place 9 lies below place 1: where rows and columns show, it has found the image's shape.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from dragoman.config import Settings
from dragoman.decoding.images import ImageModel
from dragoman.seeing.packed import Packed, pack

MOST = 1_000_000  # cosines that a page carries


class Places(Settings):
    grid: tuple[int, int]  # patches down and across
    cosines: Packed | None  # patches × patches; None where there are too many
    sentence: str


@torch.inference_mode()
def places_of(model: ImageModel) -> tuple[Places, str]:
    """The places, and what is to be said of positions as a whole."""
    table: Float[Tensor, "T D"] = model.model.reader.positions.table.weight[1:]  # without the class token's
    down, across = model.model.config.grid()
    few = len(table) ** 2 <= MOST
    places = Places(
        grid=(down, across),
        cosines=pack(cosines(table), 3) if few else None,
        sentence=compared_sentence() if few else left_out(len(table)),
    )
    return places, learned_sentence(down, across)


def cosines(table: Float[Tensor, "P D"]) -> Float[Tensor, "P P"]:
    directions = F.normalize(table.double(), dim=-1)
    return directions @ directions.T


def compared_sentence() -> str:
    return (
        "How alike the vector of one place is to those of all others: 1 is the same direction, 0 none in common, −1 "
        "the opposite. Choose a place to compare with. Nobody told the model which places are neighbours."
    )


def left_out(patches: int) -> str:
    return f"{patches:,} × {patches:,} cosines are more than a page carries, so they are left out."


def learned_sentence(down: int, across: int) -> str:
    return (
        f"Each of {down} × {across} = {down * across:,} places has a vector that was learned, and so has the class "
        "token's, which is place 0; the patches follow row by row. A larger image has no more places: it is made "
        "smaller. The waves of 2017, which count along a text, stand beside for comparison."
    )
