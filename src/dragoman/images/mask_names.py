"""A name of its own for the mask of each image: as short as tells them apart.

images                       masks
cats/0.jpg                   0.png
cats/0.jpg, dogs/0.jpg       cats-0.png, dogs-0.png
dogs/0.jpg, dogs/0.png       dogs-0.jpg.png, dogs-0.png.png, or with more folders before them
dogs/0.jpg twice             …-1.png, …-2.png
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dragoman.errors import UsageError
from dragoman.images.pixels import ENDINGS


def mask_names(images: Sequence[Path]) -> list[str]:
    """Those that would be called alike get more of their path until they are not. Case does not tell files apart
    everywhere."""
    spelled = [spellings(path, number) for number, path in enumerate(images, start=1)]
    tried = [0] * len(images)
    while True:
        names = [those[place] for those, place in zip(spelled, tried, strict=True)]
        counts = Counter(name.casefold() for name in names)
        alike = [place for place, name in enumerate(names) if counts[name.casefold()] > 1]
        longer = [place for place in alike if tried[place] + 1 < len(spelled[place])]
        if not longer:
            return [f"{name}.png" for name in names]
        for place in longer:
            tried[place] += 1


def spellings(path: Path, number: int) -> list[str]:
    """From the shortest on; the last one is no other image's, for its number is in it."""
    shortest = path.stem if path.suffix.lower() in ENDINGS else path.name
    folders = [part for part in path.parts[:-1] if part not in (path.anchor, ".", "..")]
    joined = ["-".join([*folders[first:], shortest]) for first in range(len(folders), -1, -1)]
    whole = "-".join([*folders, path.name])
    return [*joined, whole, f"{whole}-{number}"]


def refuse_existing(folder: Path, names: Sequence[str]) -> None:
    """A mask that was made before, perhaps by hand, is not written over."""
    if folder.exists() and not folder.is_dir():
        raise UsageError("E-USE-03", f"{folder} is a file, and masks are written into a folder; name one by --output")
    there = next((folder / name for name in names if (folder / name).exists()), None)
    if there:
        raise UsageError("E-USE-03", f"{there} is there already; remove it, or name another folder by --output")
