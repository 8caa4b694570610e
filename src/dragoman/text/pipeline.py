"""Tokenizers of Hugging Face folders: normalise, split, look up, as the `tokenizers` library does it.

Word pieces (BERT), subwords over bytes (GPT-2) and unigram subwords (T5) are all one `tokenizer.json`. A text is read
as its own library reads it: `[MASK]` or `<|endoftext|>` in it mean the token, not its letters.
"""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models

from dragoman.text.boundaries import number_words
from dragoman.text.special import SpecialIds

SPACES = ("Ġ", "▁")  # how subwords write the space before a word; word pieces mark what goes on instead, as `##ing`


class Pipeline:
    def __init__(self, model: Tokenizer, special: SpecialIds) -> None:
        self.kind = "word pieces" if isinstance(model.model, models.WordPiece) else "subwords"
        self.special = special
        self.model = model
        model.no_truncation()  # how long a text may be, and with what it is filled up, is decided by who batches it
        model.no_padding()
        marks = {i for i, token in model.get_added_tokens_decoder().items() if token.special}
        self.silent = ({*special.pieces()} - {*special.spans}) | ({*special.also_end} & marks)
        self.writes_newlines = self.decode(self.encode(["\n"])[0]) == "\n"

    def __len__(self) -> int:
        return self.model.get_vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in self.model.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        return self.model.decode([int(i) for i in ids if i not in self.silent], skip_special_tokens=False)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.model.id_to_token(int(i)) or "" for i in ids]

    def words(self, ids: Sequence[int]) -> list[int]:
        if self.kind == "word pieces":
            return number_words(not piece.startswith("##") for piece in self.pieces(ids))
        return number_words(piece.startswith(SPACES) for piece in self.pieces(ids))

    def save(self, folder: Path, name: str) -> None:
        """Written by us: the library tells of a full disk by an exception of no kind."""
        (folder / f"{name}.pipeline.json").write_text(self.model.to_str(pretty=True), encoding="utf-8")


def open_pipeline(path: Path, special: SpecialIds) -> Pipeline:
    return Pipeline(Tokenizer.from_file(str(path)), special)
