"""A corpus in three: train, valid and test, so that no source sentence stands in two of them.

Which part a pair goes to depends on a hash of its source alone, not on its place: sentences that occur twice stay
together, and with shares for sizes, text that is added later moves none of the old.
"""

from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from jaxtyping import Float64

from dragoman.errors import UsageError
from dragoman.text.corpus import Corpus, Dropped, Pair, keep, part_of

PARTS = ("test", "valid", "train")  # in the order in which they take their share of [0, 1)


class Split(NamedTuple):
    counts: dict[str, int]  # pairs in each part
    paths: tuple[Path, ...]
    dropped: Dropped


def split(corpus: Corpus, out: Path, valid: float | int, test: float | int, seed: int = 0) -> Split:
    """Writes the parts into the folder `out`; `valid` and `test` are shares if below 1, else numbers of pairs.

    A number is met up to repeated sources, which are never torn apart.
    """
    dropped = Dropped()
    places = np.array(array("d", (part_of(pair.source, seed) for pair in kept(corpus, dropped))), np.float64)
    borders = find_borders(places, valid, test)
    names = name_files(corpus, out)
    refuse_overwriting(out, [path for paths in names.values() for path in paths])
    out.mkdir(parents=True, exist_ok=True)
    parts = np.searchsorted(borders, places, side="right")
    with ExitStack() as files:
        opened = [[files.enter_context(create(path)) for path in names[part]] for part in PARTS]
        for pair, part in zip(kept(corpus, Dropped()), parts, strict=True):
            write_pair(pair, opened[part])
    counts = {part: int((parts == number).sum()) for number, part in enumerate(PARTS)}
    return Split(counts, tuple(path for part in PARTS for path in names[part]), dropped)


def kept(corpus: Corpus, dropped: Dropped) -> Iterator[Pair]:
    """Pairs with text on both sides, raw; all empty sources would have one hash, and crowd into one part."""
    for line, pair in enumerate(corpus.pairs(dropped), start=1):
        if keep(pair, line, dropped) is not None:
            yield pair


def find_borders(places: Float64[np.ndarray, " N"], valid: float | int, test: float | int) -> tuple[float, float]:
    """Below the first border is test, below the second valid, above it train."""
    refuse_negative(valid, test)
    in_order = np.sort(places)
    shares = [amount if amount < 1 else amount / max(len(places), 1) for amount in (test, valid)]
    if sum(shares) >= 1:
        raise UsageError(
            "E-USE-04",
            f"valid {valid:g} and test {test:g} leave nothing to train on, of {len(places):,} pairs; ask for less.",
        )
    first = float(test) if test < 1 else border_after(in_order, int(test))
    start = int(np.searchsorted(in_order, first))
    return first, first + valid if valid < 1 else border_after(in_order, start + int(valid))


def refuse_negative(valid: float | int, test: float | int) -> None:
    for name, amount in (("valid", valid), ("test", test)):
        if not amount >= 0:
            raise UsageError(
                "E-USE-04", f"{name} {amount:g} cannot be; give a share below 1, a number of pairs, or 0 for none."
            )


def border_after(in_order: Float64[np.ndarray, " N"], count: int) -> float:
    return float(in_order[count]) if count < len(in_order) else 1.0


def name_files(corpus: Corpus, out: Path) -> dict[str, list[Path]]:
    """Two files a part for a plain corpus, named after the languages; else one .tsv."""
    if any(part.kind != "plain" for part in corpus.parts):
        return {part: [out / f"{part}.tsv"] for part in PARTS}
    source, target = (language or side for language, side in zip(corpus.languages, ("src", "tgt"), strict=True))
    if source == target:
        source, target = "src", "tgt"
    return {part: [out / f"{part}.{source}", out / f"{part}.{target}"] for part in PARTS}


def refuse_overwriting(out: Path, paths: list[Path]) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError("E-USE-03", f"{out} is a file, and the parts need a folder; name another.")
    there = next((path for path in paths if path.exists()), None)
    if there is not None:
        raise UsageError(
            "E-USE-03", f"{there} exists already and is not overwritten; remove it or name another folder."
        )


def create(path: Path) -> IO[str]:
    return path.open("x", encoding="utf-8", errors="ignore", newline="\n")  # JSON may bring halves of surrogate pairs


def write_pair(pair: Pair, files: list[IO[str]]) -> None:
    """One line a side, or both with a tab between; what would end the line or the cell becomes a space."""
    source, target = (side.replace("\n", " ").replace("\r", " ").replace("\t", " ") for side in pair)
    if len(files) == 1:
        files[0].write(f"{source}\t{target}\n")
    else:
        files[0].write(f"{source}\n")
        files[1].write(f"{target}\n")
