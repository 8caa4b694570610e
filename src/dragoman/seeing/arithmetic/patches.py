"""The arithmetic of a vit on an image: patches become vectors, and from there on they are words like any others.

    patches    E = x W + b           x: the pixels of a patch in a row, less their mean, over their deviation
    input      X = [class; E] + P

There is room for eight rows: the class token and the patches that it looks at most. Attention does not mind the order
of its rows, so these come first, and all others take part unseen.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.images import ImageModel
from dragoman.images.pixels import Pixels
from dragoman.models.vit import VitReader, cut
from dragoman.seeing.arithmetic.block import Case, stage, stages_of, work_through
from dragoman.seeing.arithmetic.matrices import SHOWN, Arithmetic, Stage, matrix, numbered
from dragoman.seeing.arithmetic.shuffle import shuffle_words
from dragoman.seeing.picture import places


@torch.inference_mode()
def patch_arithmetic(model: ImageModel, pixels: Pixels) -> Arithmetic:
    """The first block at work on this image, by its own parts."""
    reader: VitReader = model.model.reader
    block = next(iter(reader.encoder))
    rows = cut(model.levels.normalise(pixels[None]), reader.patch)[0]  # (P N)
    vectors = torch.cat([reader.class_token[None], reader.to_vector(rows)])  # (T D)
    where = reader.positions(0, len(vectors)).reshape(len(vectors), -1)
    order = most_looked_at(work_through(block, (vectors + where)[None], None, None).weights[0, 0])
    words = [places(model)[place] for place in order]
    states = (vectors + where)[order][None]
    case = Case(words, block, work_through(block, states, None, None), None, None)

    def weigh(shuffled: list[int], told: bool) -> Float[Tensor, "T T"]:
        few = vectors[order][shuffled] + (where[order][: len(shuffled)] if told else 0)
        return work_through(block, few[None], None, None).weights[0, 0]

    entered = input_stage(vectors[order], where[order], states[0], words)
    return Arithmetic(
        source="model",
        title=f"The first encoder block of this vit, head 1 of {case.heads}",
        note=note_on(len(words)),
        words=tuple(words[:SHOWN]),
        heads=case.heads,
        width=states.shape[-1],
        head_width=case.worked.queries.shape[-1],
        stages=(patch_stage(reader, rows, vectors[1:], order, words), *stages_of(case, entered)),
        shuffle=shuffle_words(words[:SHOWN], weigh),
    )


def most_looked_at(weights: Float[Tensor, "T T"]) -> list[int]:
    """The class token, the patches that it looks at most, in reading order, and then the rest."""
    patches = (1 + weights[0, 1:].argsort(descending=True, stable=True)).tolist()
    return [0, *sorted(patches[: SHOWN - 1]), *patches[SHOWN - 1 :]]


def note_on(tokens: int) -> str:
    shown = f"the class token and the {SHOWN - 1} of {tokens - 1:,} patches that it looks at most"
    return (
        "Numbers of this model on this image, computed by its own parts. The words here are patches, named by row and "
        f"column: {shown if tokens > SHOWN else 'all of them'}, and up to {SHOWN} columns of each matrix. The shape "
        "beside a matrix is its whole one."
    )


def patch_stage(
    reader: VitReader, rows: Float[Tensor, "P N"], vectors: Float[Tensor, "P D"], order: list[int], words: list[str]
) -> Stage:
    patches = [place - 1 for place in order if place]
    channels = rows.shape[1] // reader.patch**2
    return stage(
        "patches",
        f"The {reader.patch} × {reader.patch} pixels of a patch{', channel by channel,' if channels > 1 else ''} stand "
        f"in a row: {rows.shape[1]} numbers, each less the mean of its channel and divided by its deviation. One "
        "matrix makes a vector of each patch, as a table does of a word.",
        matrix("", "x", rows[patches], words[1:]),
        matrix("×", "W", reader.to_vector.weight.T, numbered(rows.shape[1])),
        matrix("+", "b", reader.to_vector.bias[None], ["b"]),
        matrix("=", "E", vectors[patches], words[1:]),
    )


def input_stage(
    vectors: Float[Tensor, "T D"], where: Float[Tensor, "T D"], states: Float[Tensor, "T D"], words: list[str]
) -> Stage:
    return stage(
        "input",
        "Before the patches stands the class token, a vector that was learned and is the same for every image. To each "
        "is added the vector of its place, which was learned, too.",
        matrix("", "E", vectors, words),
        matrix("+", "P", where, words),
        matrix("=", "X", states, words),
    )
