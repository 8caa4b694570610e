"""Images and what is to be learned of them, in memory-mapped files, so that a corpus may be larger than memory.

pixels.bin     every image's bytes, one after another: channel, row, column
answers.bin    for each image its class, its numbers, or the class of every pixel
index.json     how many there are, and their form; written last, so a half-written index is no index

The mean and the deviation of each channel are counted as the images come, exactly: bytes add up in whole numbers.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from dragoman.errors import DataError, SaveError
from dragoman.images.pixels import Form, Pixels


class ImageIndex:
    """Image i is `pixels[i]` and its answer `answers[i]`; nothing is read until it is asked for."""

    def __init__(self, folder: Path) -> None:
        try:
            about = json.loads((folder / "index.json").read_text())
            self.form, self.count = Form(*about["form"]), int(about["images"])
            self.mean, self.deviation = tuple(about["mean"]), tuple(about["deviation"])
            shape, answer = (self.count, self.form.channels, *self.form.size), (self.count, *about["answer"])
            self.pixels: UInt8[np.ndarray, "N C H W"] = map_file(folder / "pixels.bin", np.dtype(np.uint8), shape)
            self.answers = map_file(folder / "answers.bin", np.dtype(about["dtype"]), answer)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            raise DataError("E-IMG-11", f"the images in {folder} are damaged; begin anew with --fresh") from None

    def __len__(self) -> int:
        return self.count


def map_file(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    if path.stat().st_size != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{path} has another size")
    if 0 in shape:
        return np.zeros(shape, dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype, mode="r", shape=shape)


class IndexWriter:
    """Takes images one at a time, within a `with`; after it, `finish` makes them an index."""

    def __init__(self, folder: Path, form: Form, dtype: str, answer: tuple[int, ...]) -> None:
        self.folder, self.form, self.dtype, self.answer = folder, form, np.dtype(dtype), answer
        self.count = 0
        self.sums, self.squares = [0] * form.channels, [0] * form.channels
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "index.json").unlink(missing_ok=True)
            self.pixels, self.answers = (folder / "pixels.bin").open("wb"), (folder / "answers.bin").open("wb")
        except OSError as problem:
            raise save_failed(folder, problem) from problem

    def add(self, pixels: Pixels, answer: Any) -> None:
        try:
            self.pixels.write(np.ascontiguousarray(pixels).data)
            self.answers.write(np.asarray(answer, dtype=self.dtype).tobytes())
        except OSError as problem:
            raise save_failed(self.folder, problem) from problem
        self.count += 1
        levels = pixels.reshape(len(pixels), -1).astype(np.int64)
        for channel, values in enumerate(levels):
            self.sums[channel] += int(values.sum())
            self.squares[channel] += int(values @ values)

    def __enter__(self) -> "IndexWriter":
        return self

    def __exit__(self, *_: object) -> None:
        """What was still to be written is written now, and may find no room."""
        try:
            with self.pixels, self.answers:
                pass
        except OSError as problem:
            raise save_failed(self.folder, problem) from problem

    def finish(self) -> ImageIndex:
        of = max(1, self.count * self.form.height * self.form.width)
        mean = [total / of for total in self.sums]
        spread = [math.sqrt(max(0.0, square / of - m * m)) for square, m in zip(self.squares, mean, strict=True)]
        about = {
            "images": self.count,
            "form": self.form[:3],
            "dtype": self.dtype.name,
            "answer": self.answer,
            "mean": [round(m / 255, 6) for m in mean],
            "deviation": [round(s / 255, 6) or 1.0 for s in spread],  # of a channel that never changes: as it is
        }
        try:
            ready = self.folder / "index.json.new"
            ready.write_text(json.dumps(about))
            ready.replace(self.folder / "index.json")
        except OSError as problem:
            raise save_failed(self.folder, problem) from problem
        return ImageIndex(self.folder)


def save_failed(folder: Path, problem: OSError) -> SaveError:
    return SaveError("E-SAVE-01", f"the images could not be written to {folder} ({problem.strerror}); free some space")


def fingerprint(pixels: Pixels) -> int:
    """The same for the same image; the first bits divide all images evenly."""
    return int.from_bytes(hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=8).digest())


def part_of(print_of_image: int) -> float:
    """A number in [0, 1) that depends on the image alone: equal images fall into the same part."""
    return (print_of_image >> 11) / (1 << 53)
