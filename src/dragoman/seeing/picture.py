"""A model at work on one image: a vit's patches are its words, and what it says of them stands over the image.

An image is a text of T = 1 + P words, the class token first. Every head of every block has T × T weights; where that is
more than a page can carry, each head keeps one row, and each block the mean over its heads.
"""

import base64
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from dragoman.decoding.images import (
    ImageClassifier,
    ImageModel,
    ImageRegressor,
    ImageSegmenter,
    Shown,
    as_pixels,
)
from dragoman.decoding.insides import asks_patches, roll_out
from dragoman.decoding.maps import AttentionMap, map_of
from dragoman.errors import DataError
from dragoman.images.pixels import Pixels, colour_of
from dragoman.modules.activations import softmax
from dragoman.modules.attention import watching
from dragoman.seeing.attention import DIGITS
from dragoman.seeing.looked import Area, AttentionLayer, Look, Painted, Picture, Side, Tokens, Told
from dragoman.seeing.packed import Packed, pack

CLASS = "[class]"
ALL_PATCHES = "[patches]"  # whose row is the mean over all of them
MOST = 1_000_000  # weights that a page carries: some 3 MB
SAID = 10  # labels at most
PNG = "data:image/png;base64,"


def look_at_image(model: ImageModel, image: Shown, name: str = "") -> Look:
    """The image as the model reads it, what it says of it, and who looks at whom."""
    refuse_blind(model)
    pixels = as_pixels(image, model.form)
    answers, maps = watch_patches(model, pixels)
    called = name or (str(image) if isinstance(image, str | Path) else "an image")
    whole = sum(found.weights.numel() for found in maps) <= MOST
    asks: Literal["class", "patches"] = "patches" if asks_patches(model.model) else "class"
    words = words_of(places(model))
    return Look(
        kind="see",
        text=called,
        source=words,
        given=None if whole else words_of([CLASS if asks == "class" else ALL_PATCHES]),
        attention=[show_layer(found, found if whole else shortened(found, asks)) for found in maps],
        image=Picture(
            name=Path(called).name,
            data=as_png(pixels),
            size=model.form.size,
            grid=model.model.config.grid(),
            told=tell(model, answers),
            asks=asks,
            rollout=roll(model, maps) if asks == "class" else None,
            area=show_area(model, answers) if isinstance(model, ImageSegmenter) else None,
            left_out="" if whole else too_many(maps, asks),
        ),
    )


def refuse_blind(model: ImageModel) -> None:
    if not hasattr(model.model.config, "patch"):
        raise DataError(
            "E-LOOK-02",
            "this model of images has no attention to look at, as only a vit has; a cnn's feature maps are drawn by: "
            "dragoman look MODEL IMAGE",
        )


@torch.inference_mode()
def watch_patches(model: ImageModel, pixels: Pixels) -> tuple[Float[Tensor, "1 ..."], list[AttentionMap]]:
    names = places(model)
    with watching(model.model) as seen:
        answers = model.model(model.levels.normalise(pixels[None]))
    return answers, [map_of(layer, looks, names, names) for layer, looks in seen.items()]


def places(model: ImageModel) -> list[str]:
    """The class token, then each patch by its row and column, from 1."""
    down, across = model.model.config.grid()
    return [CLASS, *(f"{row},{column}" for row in range(1, down + 1) for column in range(1, across + 1))]


def words_of(names: Sequence[str]) -> Tokens:
    return Tokens(pieces=list(names), words=list(range(len(names))), names=list(names))


# ── attention ─────────────────────────────────────────────────────────────────────────────


def shortened(found: AttentionMap, asks: Literal["class", "patches"]) -> AttentionMap:
    """Of each head the row that the answer hangs on: that of the class token, or the mean over all patches."""
    rows = found.weights[:, :1] if asks == "class" else found.weights[:, 1:].mean(dim=1, keepdim=True)
    return found._replace(weights=rows, scores=None)


def show_layer(found: AttentionMap, kept: AttentionMap) -> AttentionLayer:
    """The rows that are kept of its heads; its numbers are of all of them."""
    queries: Side = "source" if kept is found else "given"
    return AttentionLayer(
        name=found.layer,
        kind=found.kind,
        number=found.number,
        queries=queries,
        keys="source",
        weights=pack(kept.weights, DIGITS),
        scores=None if kept.scores is None else pack(kept.scores),
        visible=None,
        unmasked=None,
        by_word=None,
        entropy=[round(bits, 3) for bits in found.entropy()],
        most_entropy=round(math.log2(found.weights.shape[-1]), 3),
        mean=pack(found.weights.mean(dim=0), DIGITS),
    )


def roll(model: ImageModel, maps: Sequence[AttentionMap]) -> Packed:
    return pack(roll_out([found.weights for found in maps]).unflatten(0, model.model.config.grid()), DIGITS)


def too_many(maps: Sequence[AttentionMap], asks: Literal["class", "patches"]) -> str:
    heads, tokens = sum(len(found.weights) for found in maps), maps[0].weights.shape[-1]
    row = "the row of its class token" if asks == "class" else "the mean over the rows of its patches"
    return (
        f"{heads:,} heads of {tokens:,} × {tokens:,} weights are {heads * tokens**2:,}, more than a page carries: of "
        f"each head {row} is here, and of each block the mean over its heads, whole."
    )


# ── what is said ──────────────────────────────────────────────────────────────────────────


def tell(model: ImageModel, answers: Float[Tensor, "1 ..."]) -> list[Told]:
    """Labels with their probabilities, the likeliest first; numbers; or the part of the image that each label has."""
    match model:
        case ImageClassifier():
            return in_shares(model.classes, softmax(answers[0]), digits=2)
        case ImageSegmenter():
            counts = torch.bincount(answers[0].argmax(dim=0).flatten(), minlength=len(model.classes))
            return in_shares(model.classes, counts / counts.sum(), digits=1)
        case ImageRegressor():
            return [Told(name=name, value=value, share=None) for name, value in model.words(answers)]
        case _:
            return []


def in_shares(labels: Sequence[str], shares: Float[Tensor, " C"], digits: int) -> list[Told]:
    best = shares.argsort(descending=True, stable=True)[:SAID].tolist()
    return [
        Told(name=labels[one], value=f"{100 * float(shares[one]):.{digits}f} %", share=round(float(shares[one]), 4))
        for one in best
    ]


def show_area(model: ImageSegmenter, answers: Float[Tensor, "1 C H W"]) -> Area:
    found = answers[0].argmax(dim=0)
    down, across = model.model.config.grid()
    inside = (
        found.unflatten(1, (across, -1)).unflatten(0, (down, -1)).transpose(1, 2).flatten(2)
    )  # (down across pixels)
    counts = torch.nn.functional.one_hot(inside, len(model.classes)).sum(dim=2)
    best = counts.max(dim=2)
    colours = [colour_of(int(value)) for value in model.values]
    return Area(
        data=as_png(np.array(colours, dtype=np.uint8)[found.numpy()].transpose(2, 0, 1)),
        labels=[
            Painted(name=name, colour="#{:02x}{:02x}{:02x}".format(*colour))
            for name, colour in zip(model.classes, colours, strict=True)
        ],
        patches=[model.classes[one] for one in best.indices.flatten().tolist()],
        shares=pack(best.values / inside.shape[2], DIGITS),
    )


# ── pictures ──────────────────────────────────────────────────────────────────────────────


def as_png(pixels: UInt8[np.ndarray, "C H W"]) -> str:
    """The picture as data within the page, every pixel as it is."""
    image = Image.fromarray(np.ascontiguousarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)))
    whole = io.BytesIO()
    image.save(whole, format="PNG")
    return PNG + base64.b64encode(whole.getvalue()).decode()


def pixels_of(picture: Picture) -> Pixels:
    """`as_png` backwards: what the model was shown."""
    whole = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture.data.removeprefix(PNG)))))
    return whole[None] if whole.ndim == 2 else whole.transpose(2, 0, 1)
