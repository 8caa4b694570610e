"""An image file as bytes: upright as its camera meant it, in grey or in colour, of the size that is asked for.

file                                   becomes
grey, 1 bit or 8 bits                  one channel
grey, 16 bits                          one channel, of the upper 8 bits
palette                                what its colours are
transparent                            itself on white
turned by its EXIF orientation         turned back
"""

import colorsys
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from dragoman.errors import DataError, SaveError, UsageError
from dragoman.text.reading import refuse_missing

ENDINGS = (".png", ".jpg", ".jpeg")
FORMATS = ("PNG", "JPEG")  # whatever the name says: other decoders are not asked
LARGEST = 1 << 25  # pixels; a few bytes of a file can promise any number of them
DAMAGE = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, Image.DecompressionBombError)
GREY = ("1", "L", "LA", "La", "I", "F")  # modes; and those of 16 bits, which begin with I;16
ORIENTATION, ON_ITS_SIDE = 0x0112, (5, 6, 7, 8)  # of EXIF

Pixels = UInt8[np.ndarray, "C H W"]
Resampling = Literal["nearest", "bilinear", "bicubic", "lanczos"]


class Size(NamedTuple):
    height: int
    width: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


class Form(NamedTuple):
    """What all images of a corpus have in common, and what a model reads."""

    channels: int
    height: int
    width: int
    resampling: Resampling = "bilinear"  # how an image of another size comes to this one

    @property
    def size(self) -> Size:
        return Size(self.height, self.width)


def read_size(text: str) -> Size:
    """'640x480', as everybody writes it: the width first."""
    width, _, height = text.lower().replace("×", "x").partition("x")
    if not (width.strip().isdigit() and height.strip().isdigit() and int(width) and int(height)):
        raise UsageError("E-SET-01", f"images.size = {text!r} cannot be: write width and height, such as 64x48")
    return Size(int(height), int(width))


@contextmanager
def opened(path: Path, whole: bytes | None = None) -> Iterator[Image.Image]:
    """The image there, nothing of it decoded yet; a damaged one is named, with what is wrong. `whole` is what the file
    holds, where it came by another way than from the disk."""
    if whole is None:
        refuse_missing(path)
    file = path if whole is None else BytesIO(whole)
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(file, formats=FORMATS) as image:  # of odd EXIF
            if image.width * image.height > LARGEST:
                raise ValueError(f"it has {image.width:,} × {image.height:,} pixels, and {LARGEST:,} are the most")
            yield image
    except UnidentifiedImageError:
        raise damaged(path, "it is no PNG or JPEG") from None
    except DAMAGE as problem:
        raise damaged(path, " ".join(str(problem).split()) or type(problem).__name__) from None


def damaged(path: Path, why: str) -> DataError:
    return DataError("E-IMG-01", f"the image {path} cannot be read ({why}); mend or remove it")


def measure(path: Path) -> Form:
    """Of the image as it is shown, from its first bytes."""
    with opened(path) as image:
        width, height = image.size
        if image.getexif().get(ORIENTATION) in ON_ITS_SIDE:
            width, height = height, width
        return Form(1 if is_grey(image) else 3, height, width)


def read_image(path: Path, form: Form, whole: bytes | None = None) -> Pixels:
    with opened(path, whole) as image:
        return fit(ImageOps.exif_transpose(image), form)


def fit(image: Image.Image | UInt8[np.ndarray, "h w"] | UInt8[np.ndarray, "h w c"], form: Form) -> Pixels:
    """In this form: resized where the size is another, grey or in colour."""
    if isinstance(image, np.ndarray):
        if image.shape == (*form.size, form.channels):
            return np.ascontiguousarray(image.transpose(2, 0, 1))
        image = Image.fromarray(image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image)
    image = without_alpha(eight_bits(image)).convert("L" if form.channels == 1 else "RGB")
    if image.size != (form.width, form.height):
        image = image.resize((form.width, form.height), Image.Resampling[form.resampling.upper()])
    pixels = np.asarray(image)
    return np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))


def is_grey(image: Image.Image) -> bool:
    if image.mode == "P" and "transparency" not in image.info:
        colours = np.array(image.getpalette() or [0, 0, 0]).reshape(-1, 3)
        return bool((colours == colours[:, :1]).all())
    return image.mode in GREY or image.mode.startswith("I;16")


def eight_bits(image: Image.Image) -> Image.Image:
    if image.mode == "I" or image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image).astype(np.int64).clip(0, 0xFFFF) >> 8).astype(np.uint8))
    return image


def without_alpha(image: Image.Image) -> Image.Image:
    if image.mode not in ("LA", "La", "PA", "RGBA", "RGBa") and "transparency" not in image.info:
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))


def read_mask(path: Path) -> UInt8[np.ndarray, "H W"]:
    """One number a pixel, as it is stored: a grey value, or a place in the palette."""
    with opened(path) as image:
        if image.mode not in ("1", "L", "P", "I") and not image.mode.startswith("I;16"):
            raise DataError(
                "E-IMG-09", f"the mask {path} is in colour ({image.mode}); save it with one number a pixel, grey"
            )
        numbers = np.asarray(image).astype(np.int64)
    if numbers.min() < 0 or numbers.max() > 255:
        raise DataError("E-IMG-09", f"the mask {path} holds the number {numbers.max():,}; 0 to 255 are known")
    return numbers.astype(np.uint8)


def resize_mask(mask: UInt8[np.ndarray, "h w"], size: Size) -> UInt8[np.ndarray, "H W"]:
    """Each pixel takes the label of the nearest one: labels have no mean."""
    if mask.shape == size:
        return mask
    return np.asarray(Image.fromarray(mask).resize((size.width, size.height), Image.Resampling.NEAREST))


def save_mask(mask: UInt8[np.ndarray, "H W"], path: Path) -> None:
    """As a palette, so that the numbers stay what they are and yet can be told apart by eye."""
    image = Image.fromarray(mask).convert("L")
    image = Image.frombytes("P", image.size, image.tobytes())
    image.putpalette([level for number in range(256) for level in colour_of(number)])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, format="PNG")
    except OSError as problem:
        raise SaveError("E-SAVE-01", f"the mask {path} could not be written ({problem.strerror})") from problem


def colour_of(number: int) -> tuple[int, int, int]:
    """0 is black, 255 white; the others far from their neighbours in hue."""
    if number in (0, 255):
        return (number, number, number)
    red, green, blue = colorsys.hsv_to_rgb(number * 0.618034 % 1, 0.75, 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)
