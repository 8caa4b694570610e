"""Subwords over bytes: byte pair encoding as GPT-2 has it. Any text at all can be written with 256 bytes, so nothing is
unknown; frequent neighbours are merged into one token, the most frequent first.

The learning and the merging are those of the `tokenizers` library, whose `tokenizer.json` Hugging Face folders hold.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from dragoman.errors import UsageError
from dragoman.text.boundaries import number_words
from dragoman.text.special import SpecialIds

SPACE = "Ġ"  # how a byte-level vocabulary writes the space before a word


class ByteSubwords:
    def __init__(self, model: Tokenizer, special: SpecialIds) -> None:
        self.kind = "byte subwords"
        self.writes_newlines = False  # lines are learned one by one
        self.special = special
        self.model = model
        model.encode_special_tokens = True  # a text that says </s> means these four letters

    def __len__(self) -> int:
        return self.model.get_vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in self.model.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        return self.model.decode([int(i) for i in ids], skip_special_tokens=True)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Bytes stand for themselves in an alphabet of their own; a space is shown as `Ġ`."""
        return [self.model.id_to_token(int(i)) or "" for i in ids]

    def words(self, ids: Sequence[int]) -> list[int]:
        return number_words(piece.startswith(SPACE) for piece in self.pieces(ids))

    def save(self, folder: Path, name: str) -> None:
        """Written by us: the library tells of a full disk by an exception of no kind."""
        (folder / f"{name}.bytes.json").write_text(self.model.to_str(pretty=True), encoding="utf-8")


def open_byte_subwords(path: Path, special: SpecialIds) -> ByteSubwords:
    return ByteSubwords(Tokenizer.from_file(str(path)), special)


def learn_byte_subwords(texts: Iterable[str], vocabulary: int, special: SpecialIds) -> ByteSubwords:
    ids = special.pieces()  # they come first
    if sorted(ids) != list(range(len(ids))):
        raise UsageError("E-TOK-03", f"byte subwords need the special ids 0 … {len(ids) - 1}, not {sorted(ids)}")
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=max(vocabulary, len(ids) + 256),
        special_tokens=[AddedToken(ids[i], special=True) for i in sorted(ids)],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    model.train_from_iterator(texts, trainer)
    return ByteSubwords(model, special)
