"""Images in a `.npz` of numpy, read a block of rows at a time: the file may be larger than memory.

images or x    (N H W), (N H W C) or (N C H W); bytes, or numbers from 0 to 1 or from 0 to 255
labels or y    (N), numbers or words
numbers        (N) or (N K)
masks          (N H W), one label a pixel
names          of the labels or of the numbers, where they have some
"""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from dragoman.errors import DataError
from dragoman.images.pixels import Form, Pixels, Size, fit, resize_mask
from dragoman.text.reading import refuse_missing

BLOCK = 1 << 24  # bytes read at a time, about
LARGEST = 1 << 26  # bytes of one row
DAMAGE = (  # RuntimeError: it is encrypted; NotImplementedError: packed in a way that zipfile does not know
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OSError, OverflowError, RuntimeError,
    KeyError, TypeError, SyntaxError, MemoryError,
)  # fmt: skip
OTHER_NAMES = {"images": "x", "labels": "y"}


class Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class NpzImages:
    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    # ── arrays ──

    @cached_property
    def arrays(self) -> dict[str, str]:
        """Ours -> the name it has there."""
        there = self.there
        ours = {"images": "images", "labels": "labels", "numbers": "numbers", "masks": "masks", "names": "names"}
        ours |= {name: other for name, other in OTHER_NAMES.items() if name not in there}
        found = {name: other for name, other in ours.items() if other in there}
        if "images" not in found:
            raise self.lacks("`images` or `x`")
        return found

    @cached_property
    def there(self) -> list[str]:
        """The names of all its arrays, known or not."""
        refuse_missing(self.path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                return sorted(name.removesuffix(".npy") for name in archive.namelist())
        except DAMAGE as problem:
            raise self.unfit(f"cannot be read ({problem})") from None

    def unfit(self, what: str, answers: str = "labels") -> DataError:
        return DataError("E-IMG-06", f"{self.path} {what}; write it with numpy.savez(images=…, {answers}=…)")

    def lacks(self, array: str, answers: str = "labels") -> DataError:
        return self.unfit(f"holds no array {array}, but {', '.join(self.there) or 'nothing'}", answers)

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """The rows of an array, some at a time."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.arrays[name]}.npy") as file:
                shape, dtype = read_header(file)
                row = dtype.itemsize * int(np.prod(shape[1:]))
                at_once = max(1, BLOCK // max(1, row))
                for first in range(0, shape[0], at_once):
                    rows = min(at_once, shape[0] - first)
                    yield np.frombuffer(file.read(rows * row), dtype).reshape(rows, *shape[1:])
        except DAMAGE as problem:
            raise self.unfit(f"has an array {name} that cannot be read ({problem})") from None

    def whole(self, name: str) -> np.ndarray:
        return np.concatenate(list(self.blocks(name)) or [np.zeros(0)])

    def header(self, name: str) -> Header:
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.arrays[name]}.npy") as file:
                return read_header(file)
        except DAMAGE as problem:
            raise self.unfit(f"has an array {name} that cannot be read ({problem})") from None

    # ── what it holds ──

    def holds(self) -> str:
        kinds = {"labels": "classify", "numbers": "regress", "masks": "segment"}
        return next((task for name, task in kinds.items() if name in self.arrays), "")

    def names(self) -> Iterator[str]:
        return (f"{self.path.name} {number}" for number in range(1, self.header("images").shape[0] + 1))

    @cached_property
    def channels_first(self) -> bool:
        shape = self.header("images").shape
        return len(shape) == 4 and shape[3] not in (1, 3) and shape[1] in (1, 3)

    def form(self, size: Size | None = None) -> Form:
        shape, dtype = self.header("images")
        if (
            len(shape) not in (3, 4)
            or (len(shape) == 4 and not {shape[1], shape[3]} & {1, 3})
            or dtype.kind not in "buif"
        ):
            raise self.unfit(f"has images of shape {shape} and kind {dtype}; (N H W) or (N H W C), C 1 or 3, are known")
        _, *rest = shape
        channels = 1 if len(rest) == 2 else rest[0] if self.channels_first else rest[2]
        height, width = rest[1:] if self.channels_first else rest[:2]
        return Form(channels, *(size or (height, width)))

    def pixels(self, form: Form) -> Iterator[Pixels]:
        scale = self.scale()
        for block in self.blocks("images"):
            upright = block.transpose(0, 2, 3, 1) if self.channels_first else block
            for image in upright if upright.ndim == 4 else upright[..., None]:
                yield fit(to_bytes(image, scale), form)

    def scale(self) -> float:
        """What makes a value a byte: floats may run to 1 or to 255, whole numbers are of 8 or of 16 bits."""
        dtype = self.header("images").dtype
        if dtype == np.uint8:
            return 1.0
        low, high = 0.0, 0.0
        for block in self.blocks("images"):
            ends = float(block.min()), float(block.max())
            if not all(map(isfinite, ends)):  # asked by itself, for min and max of Python pass over NaN
                raise DataError(
                    "E-IMG-06", f"{self.path} has pixels that are NaN or infinite; mend or remove those images"
                )
            low, high = min(low, ends[0]), max(high, ends[1])
        if not (low >= 0 and high <= 0xFFFF):
            raise self.unfit(f"has images with values from {low:g} to {high:g}; 0 to 1, or 0 to 255, are known")
        if dtype.kind in "fb" and high <= 1:
            return 255.0
        return 1.0 if high <= 255 else 1 / 257

    def rows(self, name: str) -> np.ndarray:
        """The whole array of this name, a row for each image."""
        if name not in self.arrays:
            raise self.lacks(f"`{name}`", name)
        found, images = self.whole(name), self.header("images").shape[0]
        if len(found) != images:
            raise DataError(
                "E-IMG-04", f"{self.path} holds {images:,} images and {len(found):,} {name}; they must pair up"
            )
        return found

    def labels(self) -> list[str]:
        found, names = self.rows("labels"), self.given_names()
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim != 1 or found.dtype.kind not in "buiUS":
            raise self.unfit(
                f"has labels of shape {found.shape} and kind {found.dtype}; one number or word each is known"
            )
        plain = [label.decode() if isinstance(label, bytes) else label for label in found.tolist()]
        if names and all(isinstance(label, int) and 0 <= label < len(names) for label in plain):
            return [names[int(label)] for label in plain]
        return [str(label) for label in plain]

    def given_names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.whole("names").tolist()) if "names" in self.arrays else ()

    def numbers(self) -> tuple[tuple[str, ...], Float[np.ndarray, "N K"]]:
        found = self.rows("numbers")
        rows = found.reshape(len(found), -1)
        if rows.dtype.kind not in "buif" or not np.isfinite(rows.astype(np.float64)).all():
            raise DataError(
                "E-IMG-10", f"{self.path} has numbers that are none (inf, nan or words); mend or remove them"
            )
        names = self.given_names()
        usual = ("number",) if rows.shape[1] == 1 else tuple(f"number {n}" for n in range(1, rows.shape[1] + 1))
        return names if len(names) == rows.shape[1] else usual, rows.astype(np.float64)

    def masks(self, size: Size) -> Iterator[UInt8[np.ndarray, "H W"]]:
        if "masks" not in self.arrays:
            raise self.lacks("`masks`", "masks")
        shape, dtype = self.header("masks")
        of_images = self.form()
        if shape != (self.header("images").shape[0], *of_images.size) or dtype.kind not in "bui":
            raise DataError(
                "E-IMG-09", f"{self.path} has masks of shape {shape} and kind {dtype}, and images of {of_images.size}"
            )
        for block in self.blocks("masks"):
            if block.size and (block.min() < 0 or block.max() > 255):
                raise DataError("E-IMG-09", f"{self.path} has a mask with the number {block.max()}; 0 to 255 are known")
            for mask in block.astype(np.uint8):
                yield resize_mask(mask, size)


def read_header(file: Any) -> Header:
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"it is of version {version}")
    shape, by_columns, dtype = readers[version](file)
    if by_columns and len(shape) > 1:
        raise ValueError("it is laid out by columns; save numpy.ascontiguousarray of it")
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not opened")
    if not shape or any(length < 0 for length in shape) or dtype.itemsize * prod(shape[1:]) > LARGEST:
        raise ValueError(f"its shape is {shape}; a row may have {LARGEST:,} bytes at most")
    return Header(shape, dtype)


def to_bytes(image: np.ndarray, scale: float) -> UInt8[np.ndarray, "H W C"]:
    if image.dtype == np.uint8:
        return image
    return (image.astype(np.float64) * scale).round().clip(0, 255).astype(np.uint8)
