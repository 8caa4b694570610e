"""Vectors of words in files that other programs write and read: word2vec's text and binary, GloVe's text. And JSON.

.txt    `words width` on the first line, then `word number number …`; GloVe leaves out the first line
.bin    the same first line, then `word `, the numbers as float32, `\\n`
.json   [{"text": word, "vector": [number, …]}, …]; only written
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dragoman.errors import DataError
from dragoman.text.reading import open_bytes, refuse_missing


class NamedVectors(NamedTuple):
    words: list[str]
    vectors: Float[np.ndarray, "V D"]


def to_text(words: Sequence[str], vectors: Float[np.ndarray, "V D"]) -> bytes:
    lines = [f"{len(words)} {vectors.shape[1]}"]
    lines += [
        f"{word} {' '.join(f'{x:.6g}' for x in vector)}" for word, vector in zip(words, vectors.tolist(), strict=True)
    ]
    return ("\n".join(lines) + "\n").encode("utf-8")


def to_binary(words: Sequence[str], vectors: Float[np.ndarray, "V D"]) -> bytes:
    rows = (f"{word} ".encode() + row.tobytes() + b"\n" for word, row in zip(words, vectors.astype("<f4"), strict=True))
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(rows)


def to_json(texts: Sequence[str], vectors: Float[np.ndarray, "V D"]) -> bytes:
    """A row for each, for the same text may stand there twice."""
    rounded = ([float(f"{x:.6g}") for x in vector] for vector in vectors.tolist())
    rows = [{"text": text, "vector": vector} for text, vector in zip(texts, rounded, strict=True)]
    return json.dumps(rows, ensure_ascii=False).encode("utf-8")


# ── reading ───────────────────────────────────────────────────────────────────────────────


def read_vectors(path: Path) -> NamedVectors:
    """word2vec's text or binary, or GloVe's text, plain or compressed: told apart by what is in it."""
    refuse_missing(path)
    with open_bytes(path) as file:
        content = file.read()
    first, _, rest = content.partition(b"\n")
    header = first.split()
    counted = len(header) == 2 and all(part.isdigit() for part in header)
    try:
        if counted and is_binary(rest, int(header[1])):
            return from_binary(rest, int(header[0]), int(header[1]))
        found = from_text(rest if counted else content)
        if counted and len(found.words) != int(header[0]):
            raise ValueError(f"its first line tells of {int(header[0]):,} words and there are {len(found.words):,}")
        return found
    except (ValueError, IndexError) as problem:
        raise DataError(
            "E-WORD-03",
            f"{path} holds no vectors that can be read ({problem}); each line is a word and its numbers, "
            "as word2vec and GloVe write them",
        ) from None


def is_binary(rest: bytes, width: int) -> bool:
    """Whether the first word is followed by something else than so many numbers in letters."""
    line = rest[: 64 * (width + 2)].split(b"\n")[0].split()
    try:
        return len([float(number) for number in line[1:]]) != width
    except ValueError:
        return True


def from_binary(content: bytes, count: int, width: int) -> NamedVectors:
    if count * (4 * width + 1) > len(content):
        raise ValueError(
            f"its first line tells of {count:,} words of {width:,} numbers, "
            f"which do not fit into its {len(content):,} bytes"
        )
    words, rows, place = list[str](), np.empty((count, width), np.float32), 0
    for number in range(count):
        space = content.index(b" ", place)
        words.append(content[place:space].lstrip(b"\n").decode("utf-8"))
        place = space + 1 + 4 * width
        rows[number] = np.frombuffer(content[space + 1 : place], "<f4")
    return NamedVectors(words, rows)


def from_text(content: bytes) -> NamedVectors:
    words, rows = list[str](), list[np.ndarray]()
    for number, line in enumerate(content.decode("utf-8").split("\n"), start=1):
        parts = line.rstrip().split(" ")
        if len(parts) < 2:
            continue
        width = len(rows[0]) if rows else len(parts) - 1
        if len(parts) <= width:
            raise ValueError(f"row {number} has {len(parts) - 1} numbers and the first has {width}")
        words.append(" ".join(parts[:-width]))
        rows.append(np.array(parts[-width:], np.float32))
    if not rows:
        raise ValueError("it is empty")
    return NamedVectors(words, np.stack(rows))
