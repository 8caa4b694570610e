"""A corpus of images: one or more idx files, `.npz` files or folders, and what is to be learned of it.

classify   one label an image      what is on it
regress    numbers of an image     an angle, a box
segment    one label a pixel       what is where
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from dragoman.errors import DataError, UsageError
from dragoman.images.folder import FolderImages, ImageFiles, mixed_sizes
from dragoman.images.idx import IdxImages, find_idx, is_idx
from dragoman.images.npz import NpzImages
from dragoman.images.pixels import ENDINGS, Form, Pixels, Size
from dragoman.text.labels import in_order
from dragoman.text.reading import refuse_missing

EXPECTED = "give idx files, .npz files, or folders of images"
ENDING = re.compile(r"\.npz$|([-.]images)?[-.]idx\d.*$")
Part = IdxImages | NpzImages | FolderImages


@dataclass(frozen=True)
class ImageCorpus:
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        more = f"-and-{len(self.parts) - 1}-more" if len(self.parts) > 1 else ""
        return f"{ENDING.sub('', self.parts[0].path.resolve().name) or 'images'}{more}"

    @property
    def paths(self) -> list[Path]:
        return [path for part in self.parts for path in part.paths]

    def task(self) -> str:
        """What there is to learn; nothing where there are images alone."""
        return self.parts[0].holds()

    def names(self) -> Iterator[str]:
        return chain.from_iterable(part.names() for part in self.parts)

    def form(self, size: Size | None = None) -> Form:
        forms = [part.form(size) for part in self.parts]
        for (one, a), (other, b) in pairwise(zip(self.parts, forms, strict=True)):
            if a.size != b.size:
                raise mixed_sizes(str(one.path), a.size, str(other.path), b.size)
        return Form(max(form.channels for form in forms), *forms[0].size)

    def pixels(self, form: Form) -> Iterator[Pixels]:
        return chain.from_iterable(part.pixels(form) for part in self.parts)

    def labels(self) -> list[str]:
        return [label for part in self.parts for label in part.labels()]

    def numbers(self) -> tuple[tuple[str, ...], Float[np.ndarray, "N K"]]:
        """What they are called, and a row for each image."""
        found = [self.numbers_of(part) for part in self.parts]
        widths = [rows.shape[1] for _, rows in found]
        if len(set(widths)) > 1:
            raise DataError(
                "E-IMG-10", f"{self.name} has {min(widths)} and {max(widths)} numbers an image; give as many"
            )
        return found[0][0], np.concatenate([rows for _, rows in found])

    def numbers_of(self, part: Part) -> tuple[tuple[str, ...], Float[np.ndarray, "N K"]]:
        if isinstance(part, IdxImages):
            raise DataError("E-IMG-10", f"{part.path} has labels and no numbers; give a .npz or a folder that has some")
        return part.numbers()

    def masks(self, size: Size) -> Iterator[UInt8[np.ndarray, "H W"]]:
        for part in self.parts:
            if isinstance(part, IdxImages):
                raise DataError(
                    "E-IMG-09", f"{part.path} has labels and no masks; give a .npz or a folder that has some"
                )
            yield from part.masks(size)

    def mask_names(self, values: Sequence[int]) -> tuple[str, ...]:
        """What each of these numbers means: as a list beside the masks says, or itself."""
        listed = next((part.given_names() for part in self.parts if not isinstance(part, IdxImages)), ())
        return tuple(listed[value] if value < len(listed) and listed[value] else str(value) for value in values)


def holds_images(arguments: Iterable[str | Path]) -> bool:
    """Told from the names alone."""
    paths = [Path(argument) for argument in arguments]
    return any(path.is_dir() or path.suffix.lower() in (".npz", *ENDINGS) or is_idx(path) for path in paths)


def find_images(arguments: Sequence[str | Path], *, alone: bool = False) -> ImageCorpus:
    """The corpus that these files make; `alone` where nobody asks for labels."""
    paths = [Path(argument) for argument in arguments]
    if not paths:
        raise UsageError("E-USE-01", f"no images were given; {EXPECTED}")
    for path in paths:
        if not path.is_dir():
            refuse_missing(path)
        if path.suffix.lower() in ENDINGS:
            raise UsageError("E-USE-01", f"{path} is a single image; {EXPECTED}")
    folders = [FolderImages(path) for path in paths if path.is_dir()]
    archives = [NpzImages(path) for path in paths if path.suffix.lower() == ".npz"]
    rest = [path for path in paths if not path.is_dir() and path.suffix.lower() != ".npz"]
    return ImageCorpus((*folders, *archives, *(find_idx(rest, alone=alone) if rest else ())))


def find_shown(arguments: Sequence[str | Path]) -> list[ImageFiles | ImageCorpus]:
    """Images to be shown to a model: files, and whatever may be a corpus, labels or not."""
    paths = [Path(argument) for argument in arguments]
    if not paths:
        raise UsageError("E-USE-01", "no images were given; give image files, idx files, .npz files or folders")
    found: list[ImageFiles | ImageCorpus] = []
    for path in paths:
        if path.suffix.lower() in ENDINGS and not path.is_dir():
            refuse_missing(path)
            found.append(ImageFiles((path,)))
        else:
            found.append(find_images([path], alone=True))
    return found


def classes_in(corpus: ImageCorpus, labels: Sequence[str]) -> tuple[str, ...]:
    """The different labels, in order; there must be two."""
    found = in_order(sorted(set(labels)))
    if not found:
        raise DataError("E-IMG-02", f"{corpus.name} holds no image; {EXPECTED}")
    if len(found) == 1:
        raise DataError(
            "E-IMG-07",
            f"all {len(labels):,} images of {corpus.name} have the label {found[0]!r}; there is nothing to tell apart, "
            "so give images with another label too",
        )
    return found


def mask_values(corpus: ImageCorpus, size: Size) -> list[int]:
    """The different numbers in all masks, in order; there must be two."""
    met = np.zeros(256, dtype=bool)
    for mask in corpus.masks(size):
        met[np.unique(mask)] = True
    found = np.flatnonzero(met).tolist()
    if len(found) < 2:
        raise DataError(
            "E-IMG-07", f"all pixels of {corpus.name} have the label {found}; there is nothing to tell apart"
        )
    return found
