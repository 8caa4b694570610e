"""Images as files in a folder, laid out by what is to be learned of them.

classify   folder/<class>/….png
regress    folder/numbers.csv (or .tsv), whose rows are: file, number, number …
segment    folder/images/….jpg with folder/masks/….png of the same name
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from dragoman.errors import DataError
from dragoman.images.pixels import ENDINGS, Form, Pixels, Size, measure, read_image, read_mask, resize_mask
from dragoman.text.reading import read_lines, refuse_missing

TABLES = {"numbers.csv": ",", "numbers.tsv": "\t"}
NAMES = "classes.txt"  # beside images/ and masks/: what the numbers 0, 1, 2 … of a mask mean, a line each


@dataclass(frozen=True)
class FolderImages:
    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def holds(self) -> str:
        if (self.path / "masks").is_dir() and (self.path / "images").is_dir():
            return "segment"
        return "regress" if self.table else "classify" if any(map(images_in, self.classes)) else ""

    @cached_property
    def table(self) -> Path | None:
        return next((self.path / name for name in TABLES if (self.path / name).is_file()), None)

    @cached_property
    def classes(self) -> list[Path]:
        return sorted(path for path in self.path.iterdir() if path.is_dir() and not path.name.startswith("."))

    @cached_property
    def files(self) -> list[Path]:
        match self.holds():
            case "segment":
                found = images_in(self.path / "images")
            case "regress":
                found = [file for file, _ in self.rows]
            case "classify":
                found = [file for folder in self.classes for file in images_in(folder)]
            case _:
                found = images_in(self.path)
        if not found:
            raise DataError(
                "E-IMG-02",
                f"{self.path} holds no image; put them into a folder for each class, {self.path.name}/<class>/….png",
            )
        return found

    def names(self) -> Iterator[str]:
        return (str(file) for file in self.files)

    def form(self, size: Size | None = None) -> Form:
        """All of one size, or of the size that is asked for; grey if all of them are."""
        channels, first = 1, measure(self.files[0])
        for file in self.files:
            found = measure(file)
            channels = max(channels, found.channels)
            if size is None and found.size != first.size:
                raise mixed_sizes(str(self.files[0]), first.size, str(file), found.size)
        return Form(channels, *(size or first.size))

    def pixels(self, form: Form) -> Iterator[Pixels]:
        return (read_image(file, form) for file in self.files)

    # ── what is to be learned ──

    def labels(self) -> list[str]:
        if self.holds() != "classify":
            raise DataError(
                "E-IMG-02", f"{self.path} has no folders of images, one for each class: {self.path.name}/<class>/….png"
            )
        found = {folder: len(images_in(folder)) for folder in self.classes}
        empty = next((folder for folder, images in found.items() if not images), None)
        if empty:  # a class that is left out without a word would be missed only by whoever uses the model
            raise DataError(
                "E-IMG-02",
                f"{empty} holds no image ({', '.join(ENDINGS)}) and stands beside folders that do, one for each class; "
                "put some into it, or remove it",
            )
        return [folder.name for folder, images in found.items() for _ in range(images)]

    def numbers(self) -> tuple[tuple[str, ...], Float[np.ndarray, "N K"]]:
        return self.heading, np.array([numbers for _, numbers in self.rows], dtype=np.float64)

    def masks(self, size: Size) -> Iterator[UInt8[np.ndarray, "H W"]]:
        there = {path.stem: path for path in images_in(self.path / "masks")}
        for file in self.files:
            if file.stem not in there:
                raise DataError("E-IMG-09", f"{file} has no mask: {self.path / 'masks' / file.stem}.png is missing")
            mask, image = read_mask(there[file.stem]), measure(file).size
            if mask.shape != image:
                raise DataError(
                    "E-IMG-09",
                    f"{file} is {image} and its mask {there[file.stem]} {Size(*mask.shape)}; they must be of one size",
                )
            yield resize_mask(mask, size)

    def given_names(self) -> tuple[str, ...]:
        path = self.path / NAMES
        return tuple(line.strip() for line in read_lines(path, "utf-8")) if path.is_file() else ()

    # ── the table of numbers ──

    @cached_property
    def lines(self) -> list[tuple[int, list[str]]]:
        if self.table is None:
            raise DataError(
                "E-IMG-10", f"{self.path} has no numbers.csv; its rows are: file, number, for each image to learn from"
            )
        rows = csv.reader(read_lines(self.table, "utf-8"), delimiter=TABLES[self.table.name])
        return [(number, [cell.strip() for cell in row]) for number, row in enumerate(rows, start=1) if any(row)]

    @cached_property
    def heading(self) -> tuple[str, ...]:
        _, first = self.lines[0] if self.lines else (0, ["file"])
        count = len(first) - 1
        if self.has_heading:
            return tuple(first[1:])
        return ("number",) if count == 1 else tuple(f"number {n}" for n in range(1, count + 1))

    @property
    def has_heading(self) -> bool:
        """Whether the first row names the columns: it does where it holds no number."""
        return bool(self.lines) and not any(is_number(cell) for cell in self.lines[0][1][1:])

    @cached_property
    def rows(self) -> list[tuple[Path, list[float]]]:
        found = [self.row(*line) for line in self.lines[1 if self.has_heading else 0 :]]
        for file, _ in found:
            refuse_missing(file)
        return found

    def row(self, number: int, cells: list[str]) -> tuple[Path, list[float]]:
        if len(cells) != len(self.heading) + 1 or len(cells) < 2:
            raise DataError(
                "E-IMG-10",
                f"{self.table}: row {number:,} has {len(cells)} cells and the first one {len(self.heading) + 1}; "
                "a row is: file, number …",
            )
        wrong = next((cell for cell in cells[1:] if not is_number(cell)), None)
        if wrong is not None:
            raise DataError("E-IMG-10", f"{self.table}: row {number:,} has {wrong!r} where a number should be; mend it")
        return self.path / cells[0], [float(cell) for cell in cells[1:]]


@dataclass(frozen=True)
class ImageFiles:
    """Single files, such as people give to a model that has learned."""

    files: tuple[Path, ...]

    def names(self) -> Iterator[str]:
        return (str(file) for file in self.files)

    def pixels(self, form: Form) -> Iterator[Pixels]:
        return (read_image(file, form) for file in self.files)


def images_in(folder: Path) -> list[Path]:
    found = folder.rglob("*") if folder.is_dir() else ()
    return sorted(path for path in found if path.suffix.lower() in ENDINGS and not path.name.startswith("."))


def mixed_sizes(first: str, size: Size, other: str, found: Size) -> DataError:
    return DataError(
        "E-IMG-03",
        f"{first} is {size} and {other} is {found}; all images of a corpus have one size: "
        f"--set images.size={size} resizes them",
    )


def is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
