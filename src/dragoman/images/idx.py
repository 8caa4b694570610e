"""The idx format, in which MNIST is kept: four bytes that say what follows, its sizes, then all values in a row.

bytes 0, 1     zero
byte 2         the kind of a value; 0x08 is an unsigned byte
byte 3         how many axes there are: 3 for images (N H W), 4 in colour (N H W C), 1 for labels
then           the length of each axis, four bytes each, the highest first
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from dragoman.errors import DataError
from dragoman.images.pixels import Form, Pixels, Size, fit
from dragoman.text.reading import open_bytes, refuse_missing

BYTE = 0x08
BLOCK = 256  # images read at a time
NAME = re.compile(r"idx[134](?:\b|-ubyte)")


def is_idx(path: Path) -> bool:
    return NAME.search(path.name) is not None


LARGEST = 1 << 26  # values of one image
PIECE = 1 << 22  # bytes read at a time


def read_header(path: Path) -> tuple[int, ...]:
    """The length of each axis."""
    with open_bytes(path) as file:
        start = file.read(4)
        if len(start) < 4 or start[:2] != b"\0\0" or start[2] != BYTE or start[3] not in (1, 3, 4):
            magic = int.from_bytes(start.ljust(4, b"\0"))
            raise DataError(
                "E-IMG-05",
                f"{path} begins with {magic:#010x}; an idx file begins with 0x00000803 (images) or 0x00000801 (labels)",
            )
        lengths = file.read(4 * start[3])
    shape = tuple(int(length) for length in np.frombuffer(lengths.ljust(4 * start[3], b"\0"), ">u4"))
    if prod(shape[1:]) > LARGEST or (prod(shape[1:]) == 0 and shape[0]):
        raise DataError("E-IMG-05", f"{path} promises images of {shape[1:]} pixels; 1 to {LARGEST:,} values are known")
    if len(shape) == 4 and shape[3] not in (1, 3):
        raise DataError("E-IMG-05", f"{path} holds images of {shape[3]} channels; 1 (grey) and 3 (colour) are known")
    return shape


def read_values(path: Path, at_once: int) -> Iterator[UInt8[np.ndarray, "N ..."]]:
    """All values, so many of the first axis at a time."""
    shape = read_header(path)
    row = prod(shape[1:])
    with open_bytes(path) as file:
        file.read(4 + 4 * len(shape))
        for first in range(0, shape[0], at_once):
            wanted = min(at_once, shape[0] - first) * row
            found = read_exactly(file, wanted)
            if len(found) < wanted:
                raise DataError(
                    "E-IMG-05",
                    f"{path} promises {shape[0] * row:,} values and holds {first * row + len(found):,}; fetch it again",
                )
            yield np.frombuffer(found, np.uint8).reshape(-1, *shape[1:])


def read_exactly(file: Any, wanted: int) -> bytes:
    """Piece by piece: a header may promise more than any memory holds."""
    pieces, missing = list[bytes](), wanted
    while missing and (piece := file.read(min(missing, PIECE))):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


@dataclass(frozen=True)
class IdxImages:
    path: Path
    labels_path: Path | None = None  # None where nobody asks for labels

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path, *([self.labels_path] if self.labels_path else []))

    def holds(self) -> str:
        return "classify"

    def names(self) -> Iterator[str]:
        return (f"{self.path.name} {number}" for number in range(1, read_header(self.path)[0] + 1))

    def form(self, size: Size | None = None) -> Form:
        _, height, width, *channels = read_header(self.path)
        return Form(channels[0] if channels else 1, *(size or (height, width)))

    def pixels(self, form: Form) -> Iterator[Pixels]:
        for block in read_values(self.path, BLOCK):
            for image in block:
                yield image[None] if form.channels == 1 and image.shape == form.size else fit(image, form)

    def labels(self) -> list[str]:
        if self.labels_path is None:
            raise DataError("E-IMG-08", f"{self.path} has no labels beside it; give the file of its labels, too")
        images, *_ = read_header(self.path)
        found = np.concatenate([np.zeros(0, np.uint8), *read_values(self.labels_path, 1 << 20)])
        if len(found) != images:
            raise DataError(
                "E-IMG-04",
                f"{self.path} holds {images:,} images and {self.labels_path} {len(found):,} labels; they must pair up",
            )
        return [str(label) for label in found.tolist()]


def find_idx(paths: list[Path], *, alone: bool = False) -> list[IdxImages]:
    """Images with their labels: both given, in any order, or the labels found beside them by their name."""
    kinds = {path: len(read_header(path)) for path in paths}
    labels = [path for path in paths if kinds[path] == 1]
    found = []
    for path in (path for path in paths if kinds[path] != 1):
        partner = next((other for other in labels if twin(other) == twin(path)), None)
        if partner is None and len(labels) == 1 and len(paths) == 2:
            partner = labels[0]  # one of each: they belong together, whatever they are called
        partner = partner or beside(path)
        if partner is None and not alone:
            wanted = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
            raise DataError("E-IMG-08", f"{path} has no labels beside it ({wanted.name}); give the file of its labels")
        found.append(IdxImages(path, partner))
    if not found:
        refuse_missing(paths[0])
        raise DataError("E-IMG-08", f"{paths[0]} holds labels alone; give the file of its images, too")
    return found


def twin(path: Path) -> str:
    """What the names of images and their labels have in common."""
    name = re.sub(r"images|labels", "", path.name.removesuffix(".gz"))
    return re.sub(r"idx\d", "", name)


def beside(path: Path) -> Path | None:
    name = re.sub(r"idx\d", "idx1", path.name.replace("images", "labels")).removesuffix(".gz")
    others = (path.with_name(name + ending) for ending in ("", ".gz"))
    return next((other for other in others if other.is_file() and other != path), None)
