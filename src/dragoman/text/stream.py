"""A text as one long row of token ids, in a memory-mapped file; and windows of it, read side by side.

Lines are encoded one by one, and `end` stands for each line's `\\n`; a tokenizer that writes line ends itself, as
GPT-2's does, is given whole texts. A text comes back as it was, save with words for tokens, which know no white space
but the one between them.

ids.bin       the ids, one after another
index.json    how many there are and how wide; written last
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from dragoman.errors import DataError, SaveError
from dragoman.text.index import Ids, map_file
from dragoman.text.tokenizer import Tokenizer

CHUNK = 1_000_000  # characters encoded at a time


class Window(NamedTuple):
    """The next few tokens of several places in a text: read `tokens`, predict `wanted`, which is one further."""

    tokens: Int[Tensor, "B T"]
    wanted: Int[Tensor, "B T"]
    first: bool  # nothing comes before it: the state begins anew


class TextStream:
    def __init__(self, folder: Path) -> None:
        try:
            about = json.loads((folder / "index.json").read_text())
            self.about: dict[str, Any] = about["about"]
            self.ids: Ids = map_file(folder / "ids.bin", np.dtype(about["dtype"]))
            whole = len(self.ids) == about["tokens"]
        except (OSError, ValueError, LookupError, TypeError):
            whole = False
        if not whole:
            raise DataError("E-DATA-08", f"the index of token ids in {folder} is damaged; begin anew with --fresh")

    def __len__(self) -> int:
        return len(self.ids)


def write_stream(folder: Path, lines: Iterable[str], tokenizer: Tokenizer, before: Sequence[int] = ()) -> TextStream:
    """Encode a text line by line, in bounded memory, and open the result. The ids `before` stand before the text."""
    dtype = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)
    special, tokens, letters, unknown = tokenizer.special, 0, 0, 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.json").unlink(missing_ok=True)
        with (folder / "ids.bin").open("wb") as file:
            for ids, characters in chain([(list(before), 0)], encode_lines(lines, tokenizer)):
                file.write(np.array(ids, dtype).tobytes())
                tokens, letters = tokens + len(ids), letters + characters
                unknown += ids.count(special.unknown) if special.unknown != special.end else 0
        about = {"characters": letters, "unknown": unknown}
        ready = folder / "index.json.new"
        ready.write_text(json.dumps({"tokens": tokens, "dtype": dtype.name, "about": about}))
        ready.replace(folder / "index.json")
    except OSError as problem:
        raise SaveError(
            "E-SAVE-01", f"the token ids could not be written to {folder} ({problem.strerror}); free some space"
        ) from problem
    return TextStream(folder)


def encode_lines(lines: Iterable[str], tokenizer: Tokenizer) -> Iterator[tuple[list[int], int]]:
    """Ids of some lines, and how many characters they were, with their line ends."""
    for chunk in chunks(lines):
        text = "\n".join(chunk) + "\n"
        yield encode_text(text, tokenizer), len(text)


def encode_text(text: str, tokenizer: Tokenizer) -> list[int]:
    """Ids of a text, its line ends among them."""
    if tokenizer.writes_newlines:
        return tokenizer.encode([text])[0]
    first, *others = tokenizer.encode(text.split("\n"))
    return [*first, *chain.from_iterable((tokenizer.special.end, *line) for line in others)]


def chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    chunk, letters = list[str](), 0
    for line in lines:
        chunk.append(line)
        letters += len(line) + 1
        if letters >= CHUNK:
            yield chunk
            chunk, letters = [], 0
    if chunk:
        yield chunk


class WindowOrder:
    """Window k of an epoch: `rows` places spread over the text, each read `length` tokens further at every k.

    So the state of window k − 1 is what window k begins with. Each epoch starts somewhere else, and a row that comes to
    the end of the text goes on at its beginning.
    """

    def __init__(self, ids: Ids, rows: int, length: int, seed: int) -> None:
        if len(ids) < 2:
            raise DataError("E-DATA-10", f"the text has {len(ids)} tokens; there is nothing to learn from")
        self.length = min(length, len(ids) - 1)
        self.rows = max(1, min(rows, (len(ids) - 1) // self.length))
        self.ids, self.seed = ids, seed
        self.row_tokens = (len(ids) - 1) // self.rows  # one token more is needed, to predict

    def __len__(self) -> int:
        """Windows in an epoch."""
        return self.row_tokens // self.length

    def batch(self, epoch: int, k: int) -> Window:
        offset = int(np.random.default_rng([self.seed, epoch]).integers(self.row_tokens))
        starts = (offset + k * self.length + self.row_tokens * np.arange(self.rows)) % (len(self.ids) - self.length)
        taken = np.stack([self.ids[start : start + self.length + 1] for start in starts]).astype(np.int64)
        window = torch.from_numpy(taken)
        return Window(window[:, :-1], window[:, 1:], first=k == 0)


class BlockOrder:
    """Batch k of an epoch: `rows` blocks of `length` tokens in a row, in random order; each epoch cuts elsewhere.

    With `beyond` each block has so many tokens more, with which the next one begins.
    """

    def __init__(self, ids: Ids, rows: int, length: int, seed: int, *, beyond: int = 0) -> None:
        self.ids, self.seed, self.beyond = ids, seed, beyond
        room = len(ids) - beyond
        self.length = min(length, room)
        self.blocks = max(1, (room - self.length) // self.length)  # one less than fit: room for the cut to move
        self.rows = max(1, min(rows, self.blocks))
        self.shuffled: tuple[int, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self.blocks // self.rows

    def batch(self, epoch: int, k: int) -> Int[np.ndarray, "B N"]:
        if self.shuffled is None or self.shuffled[0] != epoch:
            self.shuffled = (epoch, self.starts(epoch))
        chosen = self.shuffled[1][k * self.rows : (k + 1) * self.rows]
        return np.stack([self.ids[start : start + self.length + self.beyond] for start in chosen]).astype(np.int64)

    def starts(self, epoch: int) -> NDArray[np.int64]:
        random = np.random.default_rng([self.seed, epoch])
        left_over = len(self.ids) - self.beyond - self.blocks * self.length
        first = int(random.integers(1 + min(self.length, left_over)))
        return first + self.length * random.permutation(self.blocks)


class ShuffledWindows:
    """Windows for a model that sees each of them alone: in random order, so that a batch is of all of the text."""

    def __init__(self, ids: Ids, rows: int, length: int, seed: int) -> None:
        self.blocks = BlockOrder(ids, rows, length, seed, beyond=1)

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, epoch: int, k: int) -> Window:
        block = torch.from_numpy(self.blocks.batch(epoch, k))
        return Window(block[:, :-1], block[:, 1:], first=True)


def windows_over(ids: Sequence[int] | Ids, rows: int, length: int) -> Iterator[Window]:
    """All of a text, once, in order: for measuring. The last window may be shorter; no token is left out but the few
    that do not fill a row."""
    ids = np.asarray(ids)
    rows = max(1, min(rows, (len(ids) - 1) // length))
    row_tokens = (len(ids) - 1) // rows
    for place in range(0, row_tokens, length):
        width = min(length, row_tokens - place)
        starts = place + row_tokens * np.arange(rows)
        window = torch.from_numpy(np.stack([ids[start : start + width + 1] for start in starts]).astype(np.int64))
        yield Window(window[:, :-1], window[:, 1:], first=place == 0)
