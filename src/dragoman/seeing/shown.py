"""Which image is shown to a model: a file, one of many in a corpus, one of a run's own, or one that was sent."""

from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from dragoman.errors import DataError, UsageError
from dragoman.images.corpus import find_shown
from dragoman.images.folder import ImageFiles
from dragoman.images.index import ImageIndex
from dragoman.images.pixels import Form, Pixels, read_image


class Chosen(NamedTuple):
    name: str
    pixels: UInt8[np.ndarray, "H W C"]
    python: str  # the lines that give this `image`

    @property
    def title(self) -> str:
        return Path(self.name).name


def choose(path: str, number: int, form: Form) -> Chosen:
    """The image in this file, or that of this number, from 1, of a corpus."""
    [found] = find_shown([path])
    names = list(found.names())
    if not 1 <= number <= len(names):
        raise UsageError("E-IMG-15", f"--number {number} cannot be; {path} holds {len(names):,} images")
    pixels = next(islice(found.pixels(form), number - 1, None))
    if isinstance(found, ImageFiles):
        return Chosen(names[0], upright(pixels), f"image = {path!r}")
    python = (
        "from itertools import islice\nfrom dragoman.images.corpus import find_shown\n"
        f"[shown] = find_shown([{path!r}])\n"
        f"image = next(islice(shown.pixels(model.form), {number - 1}, None)).transpose(1, 2, 0)"
    )
    return Chosen(names[number - 1], upright(pixels), python)


def first_of_run(run: Path) -> Chosen | None:
    """The first image that the run is validated on; None where its data are not there."""
    folder = run / "data" / "valid"
    if not (folder / "index.json").is_file():
        return None
    try:
        images = ImageIndex(folder)
    except DataError:  # being written, or damaged: the run says so when it goes on
        return None
    if not len(images):
        return None
    python = (
        "from pathlib import Path\nfrom dragoman.images.index import ImageIndex\n"
        f"image = ImageIndex(Path({str(folder)!r})).pixels[0].transpose(1, 2, 0)"
    )
    return Chosen("image 1 of the validation data", upright(np.array(images.pixels[0])), python)


def read_sent(name: str, whole: bytes, form: Form) -> Chosen:
    """What a browser sent of a file, of which it tells the name without the folder."""
    pixels = read_image(Path(name), form, whole)
    return Chosen(name, upright(pixels), f"image = {name!r}")


def upright(pixels: Pixels) -> UInt8[np.ndarray, "H W C"]:
    return np.ascontiguousarray(pixels.transpose(1, 2, 0))


def python_for_image(model: str, image: str) -> str:
    """All lines from the imports to the numbers."""
    imports = [line for line in image.splitlines() if line.startswith("from ")]
    lines = [line for line in image.splitlines() if line not in imports]
    return "\n".join(
        [
            *("import dragoman", *imports, ""),
            *(f"model = dragoman.load({model!r})", *lines),
            *("seen = dragoman.look(model, image)", "seen.attention[0].weights.unpack()"),
        ]
    )
