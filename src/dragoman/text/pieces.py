"""sentencepiece's pieces under ids of another list, as T5 and Marian have them.

T5 puts its sentinels after the pieces; Marian has a list of its own, which the source's and the target's pieces share.
What `apart` matches is one token whatever stands around it: `<extra_id_0>`, or `>>fra<<` for the language to write.
"""

import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from dragoman.text.boundaries import number_words
from dragoman.text.piece_model import open_sentencepiece
from dragoman.text.special import SpecialIds

WORD_START = "▁"  # how sentencepiece writes the space before a word


class Pieces:
    def __init__(self, proto: bytes, listed: Sequence[str], apart: str, special: SpecialIds) -> None:
        self.kind = "subwords"
        self.writes_newlines = False
        self.special = special
        self.proto = proto
        self.model = open_sentencepiece(proto)
        self.listed, self.apart = list(listed), apart
        self.ids = {piece: i for i, piece in enumerate(listed)}
        self.silent = {*special.pieces()} - {*special.spans}

    def __len__(self) -> int:
        return len(self.listed)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self.ids.get(piece, self.special.unknown) for piece in self.split(text)] for text in texts]

    def split(self, text: str) -> list[str]:
        found: list[str] = []
        place = 0
        for match in re.finditer(self.apart, text):
            found += [*self.model.encode(text[place : match.start()], out_type=str), match.group()]
            place = match.end()
        return found + self.model.encode(text[place:], out_type=str)

    def decode(self, ids: Sequence[int]) -> str:
        """What is hidden is shown by its sentinel, between spaces."""
        spoken = [int(i) for i in ids if i not in self.silent and i < len(self)]
        runs = groupby(spoken, lambda i: i in self.special.spans)
        texts = [" ".join(self.pieces(list(run))) if span else self.join(self.pieces(list(run))) for span, run in runs]
        return " ".join(texts)

    def join(self, pieces: list[str]) -> str:
        return self.model.decode_pieces(pieces).replace(WORD_START, " ").strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """A model may have more vectors than there are pieces."""
        return [self.listed[i] if i < len(self) else "" for i in ids]

    def words(self, ids: Sequence[int]) -> list[int]:
        return number_words(piece.startswith(WORD_START) for piece in self.pieces(ids))

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.pieces.model").write_bytes(self.proto)
        about = {"apart": self.apart, "pieces": self.listed}
        (folder / f"{name}.pieces.json").write_text(json.dumps(about, ensure_ascii=False, indent=0), encoding="utf-8")


def open_pieces(folder: Path, name: str, special: SpecialIds) -> Pieces:
    about = json.loads((folder / f"{name}.pieces.json").read_text(encoding="utf-8"))
    return Pieces((folder / f"{name}.pieces.model").read_bytes(), about["pieces"], about["apart"], special)
