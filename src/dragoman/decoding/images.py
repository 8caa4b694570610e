"""Images in, what a model tells of them out: a label, numbers, or one label for each pixel.

An image is a file, or an array of rows and columns with 1 or 3 channels: bytes, or numbers from 0 to 1. It is resized
to what the model reads.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from dragoman.decoding.classify import Classified
from dragoman.decoding.insides import Insides, watch
from dragoman.errors import DataError
from dragoman.images.batches import Levels
from dragoman.images.pixels import Form, Pixels, fit, read_image
from dragoman.modules.activations import softmax

AT_ONCE = 1 << 18  # pixels read together
SAID = 5  # labels at most that are said of an image
Shown = str | Path | np.ndarray


class ImageModel:
    """A model with the form of image that it reads, and the levels that it knows."""

    def __init__(self, model: nn.Module, about: dict[str, Any]) -> None:
        self.model: Any = model.eval()  # images -> scores
        self.about = about
        self.levels = Levels.read(about["images"], section="images")
        config: Any = model.config
        height, width = config.size
        self.form = Form(config.channels, height, width, self.levels.resampling)

    def told(self, images: Iterable[Pixels]) -> Iterator[Float[Tensor, "B ..."]]:
        """What the model says of these images, some at a time."""
        waiting, at_once = iter(images), max(1, AT_ONCE // (self.form.height * self.form.width))
        while block := list(islice(waiting, at_once)):
            yield self.read(np.stack(block))

    @torch.inference_mode()
    def read(self, pixels: UInt8[np.ndarray, "B C H W"]) -> Float[Tensor, "B ..."]:
        return self.model(self.levels.normalise(pixels))

    def pixels(self, images: Iterable[Shown]) -> Iterator[Pixels]:
        return (as_pixels(image, self.form) for image in images)

    def look(self, image: Shown) -> Insides:
        """What the model sees on its way: feature maps, or where each head of a vit looks."""
        pixels = as_pixels(image, self.form)
        seen = watch(self.model, self.levels.normalise(pixels[None]))
        return Insides(pixels, self.words(seen.answers), seen.maps, seen.attention, seen.rollout)

    def words(self, answers: Float[Tensor, "1 ..."]) -> list[tuple[str, str]]:  # noqa: ARG002
        """What is said of one image, as pairs of a word and its value; nothing where there is no head."""
        return []


class ImageClassifier(ImageModel):
    @property
    def classes(self) -> tuple[str, ...]:
        return self.model.config.classes

    def classify(self, images: Sequence[Shown]) -> list[Classified]:
        """The likeliest label of each: a file's name, or an array of rows and columns with 1 or 3 channels."""
        return list(self.label(self.pixels(images)))

    def label(self, images: Iterable[Pixels]) -> Iterator[Classified]:
        for scores in self.told(images):
            for row in softmax(scores).tolist():
                best = max(range(len(row)), key=row.__getitem__)
                yield Classified(self.classes[best], row[best], dict(zip(self.classes, row, strict=True)))

    def words(self, answers: Float[Tensor, "1 C"]) -> list[tuple[str, str]]:
        """The likeliest labels."""
        shares = zip(self.classes, softmax(answers[0]).tolist(), strict=True)
        return [(label, f"{share:.2%}") for label, share in sorted(shares, key=second, reverse=True)[:SAID]]


class ImageRegressor(ImageModel):
    @property
    def names(self) -> tuple[str, ...]:
        return self.model.config.numbers

    def regress(self, images: Sequence[Shown]) -> list[dict[str, float]]:
        """Each number by its name."""
        return [dict(zip(self.names, row, strict=True)) for row in self.numbers(self.pixels(images)).tolist()]

    def numbers(self, images: Iterable[Pixels]) -> Float[np.ndarray, "N K"]:
        told = [self.in_units(answers) for answers in self.told(images)]
        return np.concatenate([np.zeros((0, len(self.names))), *told])

    def in_units(self, answers: Float[Tensor, "B K"]) -> Float[np.ndarray, "B K"]:
        mean, spread = (np.array(self.about["numbers"][name]) for name in ("mean", "deviation"))
        return answers.double().numpy() * spread + mean

    def words(self, answers: Float[Tensor, "1 K"]) -> list[tuple[str, str]]:
        return [(name, f"{value:.5g}") for name, value in zip(self.names, self.in_units(answers)[0], strict=True)]


class ImageSegmenter(ImageModel):
    @property
    def classes(self) -> tuple[str, ...]:
        return self.model.config.classes

    @property
    def values(self) -> UInt8[np.ndarray, " C"]:
        """The number that stands for each class in a mask."""
        return np.array(self.about["masks"], dtype=np.uint8)

    def segment(self, images: Sequence[Shown]) -> list[UInt8[np.ndarray, "H W"]]:
        """A mask for each image, of the size that the model reads; its numbers are those it learned from."""
        return [self.values[mask] for mask in self.masks(self.pixels(images))]

    def masks(self, images: Iterable[Pixels]) -> Iterator[UInt8[np.ndarray, "H W"]]:
        """The number of the likeliest class at each pixel."""
        for scores in self.told(images):
            yield from scores.argmax(dim=1).to(torch.uint8).numpy()

    def words(self, answers: Float[Tensor, "1 C H W"]) -> list[tuple[str, str]]:
        """The share of the image that each label has."""
        counts = torch.bincount(answers[0].argmax(dim=0).flatten(), minlength=len(self.classes))
        shares = zip(self.classes, (counts / counts.sum()).tolist(), strict=True)
        return [(label, f"{share:.1%}") for label, share in sorted(shares, key=second, reverse=True)]


class ImageEmbedder(ImageModel):
    def embed(self, images: Sequence[Shown]) -> Float[np.ndarray, "N D"]:
        return self.vectors(self.pixels(images))

    def vectors(self, images: Iterable[Pixels]) -> Float[np.ndarray, "N D"]:
        """The state of the class token, of length 1, so that a dot product is a cosine."""
        states = [states[:, 0] for states in self.told(images)]
        whole = torch.cat([torch.zeros(0, self.model.config.width), *states])
        return nn.functional.normalize(whole, dim=-1).numpy()


def second(pair: tuple[str, float]) -> float:
    return pair[1]


def as_pixels(image: Shown, form: Form) -> Pixels:
    if not isinstance(image, np.ndarray):
        return read_image(Path(image), form)
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise DataError("E-IMG-06", f"an image of shape {image.shape} cannot be; rows, columns and 1 or 3 channels can")
    if image.dtype == np.uint8:
        return fit(image, form)
    if not (image.min() >= 0 and image.max() <= 1):  # false for NaN too
        raise DataError(
            "E-IMG-06", f"an image of {image.dtype} has values up to {image.max()}; bytes, or 0 to 1, can be"
        )
    return fit((255 * image.astype(np.float64)).round().astype(np.uint8), form)
