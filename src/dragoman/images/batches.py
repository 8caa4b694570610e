"""Images as a tensor: which of them make up batch k, how they are moved about, and how bytes become numbers.

    x = (byte / 255 − mean) / deviation        of each channel, over the training images

Batch k is a function of (seed, epoch, k) alone, and so are the shifts and flips in it.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dragoman.config import Settings
from dragoman.images.index import ImageIndex
from dragoman.images.pixels import Resampling


class ImageBatch(NamedTuple):
    images: Float[Tensor, "B C H W"]
    wanted: Tensor  # classes (B), numbers (B K), or the class of every pixel (B H W)


class Levels(Settings):
    """Where zero is and how far one is from it, for each channel: saved with the model, since it learned so."""

    mean: tuple[float, ...] = Field(description="of each channel, where black is 0 and white is 1")
    deviation: tuple[float, ...] = Field(description="standard deviation of each channel, likewise")
    resampling: Resampling = Field("bilinear", description="how images of other sizes are resized")

    def normalise(self, pixels: UInt8[np.ndarray, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """x / 255 / deviation − mean / deviation: two products and sums, in place."""
        images = torch.from_numpy(pixels.astype(np.float32))
        spread = torch.tensor(self.deviation)[:, None, None]
        return images.mul_(1 / (255 * spread)).sub_(torch.tensor(self.mean)[:, None, None] / spread)


class Moves(NamedTuple):
    """What is done to training images, at random: a moved image shows the same thing."""

    shift: int = 0  # pixels at most, to any side
    flip: bool = False  # left and right changed, for every other image

    def __str__(self) -> str:
        shifted = f"shifted by up to {self.shift} pixels" if self.shift else "not shifted"
        return f"{shifted}, {'flipped left to right at random' if self.flip else 'not flipped'}"


class ImageOrder:
    """The images of an index, in another order each epoch, `size` at a time."""

    def __init__(self, index: ImageIndex, size: int, seed: int, levels: Levels, moves: Moves | None = None) -> None:
        self.index, self.size, self.seed, self.levels = index, max(1, size), seed, levels
        self.moves = moves or Moves()
        self.shuffled: tuple[int, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return max(1, -(-len(self.index) // self.size))

    def rows(self, epoch: int, k: int) -> NDArray[np.int64]:
        if self.shuffled is None or self.shuffled[0] != epoch:
            self.shuffled = (epoch, np.random.default_rng([self.seed, epoch]).permutation(len(self.index)))
        return np.sort(self.shuffled[1][k * self.size : (k + 1) * self.size])  # in the order of the disk

    def batch(self, epoch: int, k: int) -> ImageBatch:
        rows, random = self.rows(epoch, k), np.random.default_rng([self.seed, epoch, k])
        pixels, answers = self.index.pixels[rows], np.asarray(self.index.answers[rows])
        per_pixel = answers.ndim == 3
        if per_pixel:  # a mask moves with its image
            together = move(np.concatenate([pixels, answers[:, None]], axis=1), self.moves, random)
            pixels, answers = together[:, :-1], together[:, -1]
        else:
            pixels = move(pixels, self.moves, random)
        wanted = torch.from_numpy(answers.astype(np.int64) if per_pixel else answers)
        return ImageBatch(self.levels.normalise(pixels), wanted)


def move(
    pixels: UInt8[np.ndarray, "B C H W"], moves: Moves, random: np.random.Generator
) -> UInt8[np.ndarray, "B C H W"]:
    """Each image by its own chance; what comes in at an edge is the edge again."""
    if moves.flip:
        flipped = random.random(len(pixels)) < 0.5
        pixels = np.where(flipped[:, None, None, None], pixels[..., ::-1], pixels)
    if moves.shift:
        rows, columns = random.integers(-moves.shift, moves.shift + 1, (2, len(pixels)))
        pixels = shift(pixels, rows, columns)
    return pixels


def shift(
    pixels: UInt8[np.ndarray, "B C H W"], down: Int[np.ndarray, " B"], right: Int[np.ndarray, " B"]
) -> UInt8[np.ndarray, "B C H W"]:
    """Image b moved down[b] rows and right[b] columns."""
    images, channels, height, width = pixels.shape
    rows = (np.arange(height) - down[:, None]).clip(0, height - 1)
    columns = (np.arange(width) - right[:, None]).clip(0, width - 1)
    first, second = np.arange(images)[:, None, None, None], np.arange(channels)[:, None, None]
    return pixels[first, second, rows[:, None, :, None], columns[:, None, None, :]]
