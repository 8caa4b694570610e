"""Sentence pairs as token ids in memory-mapped files, so that a corpus may be larger than memory.

ids.bin       every sentence's ids, one after another: source, target, source, target …
offsets.bin   where each sentence begins, and the end of the last: int64
index.json    how many pairs there are and how wide an id is; written last, so a half-written index is no index
"""

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from dragoman.errors import DataError, SaveError

Ids = NDArray[np.integer]
Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


class PairIndex:
    """Pair i is `index[i]`; nothing is read until it is asked for."""

    def __init__(self, folder: Path) -> None:
        try:
            about = json.loads((folder / "index.json").read_text())
            self.count: int = about["pairs"]
            self.about: dict[str, Any] = about["about"]
            self.ids = map_file(folder / "ids.bin", np.dtype(about["dtype"]))
            self.offsets = map_file(folder / "offsets.bin", np.dtype(np.int64))
            whole = len(self.offsets) == 2 * self.count + 1 and len(self.ids) == self.offsets[-1]
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            whole = False
        if not whole:
            raise DataError("E-DATA-08", f"the index of token ids in {folder} is damaged; begin anew with --fresh")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Ids, Ids]:
        a, b, c = (int(place) for place in self.offsets[2 * row : 2 * row + 3])
        return self.ids[a:b], self.ids[b:c]

    def lengths(self) -> Int[np.ndarray, "N 2"]:
        """Tokens on each side of each pair."""
        return np.diff(self.offsets).astype(np.int32).reshape(-1, 2)


def map_file(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype, mode="r")


def write_index(
    folder: Path,
    chunks: Iterable[Pairs],
    vocabulary: int,
    about: dict[str, Any],
) -> PairIndex:
    """Write pairs as they come, a chunk at a time, and open the result. `about` is kept with them."""
    dtype = np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.json").unlink(missing_ok=True)
        count = write_ids(folder, chunks, dtype)
        ready = folder / "index.json.new"
        ready.write_text(json.dumps({"pairs": count, "dtype": dtype.name, "about": about}))
        ready.replace(folder / "index.json")
    except OSError as problem:
        raise SaveError(
            "E-SAVE-01", f"the token ids could not be written to {folder} ({problem.strerror}); free some space"
        ) from problem
    return PairIndex(folder)


def write_ids(folder: Path, chunks: Iterable[Pairs], dtype: np.dtype[Any]) -> int:
    count, end = 0, 0
    with (folder / "ids.bin").open("wb") as ids, (folder / "offsets.bin").open("wb") as offsets:
        offsets.write(np.int64(0).tobytes())
        for chunk in chunks:
            sentences = [sentence for pair in chunk for sentence in pair]
            if not sentences:
                continue
            places = end + np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64)
            ids.write(np.fromiter(chain.from_iterable(sentences), dtype, int(places[-1]) - end).tobytes())
            offsets.write(places.tobytes())  # and not by `tofile`, which may lose the last bytes without a word
            count, end = count + len(chunk), int(places[-1])
    return count
