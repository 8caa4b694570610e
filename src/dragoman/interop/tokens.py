"""Tokenizer files of Hugging Face folders: one tokenizer.json, or what older folders have in its place.

vocab.txt                           BERT's word pieces, a line each
vocab.json, merges.txt              GPT-2's subwords over bytes, and which neighbours become one
spiece.model                        T5's sentencepiece model; its sentinels are the last ids, the first one last
source.spm, target.spm, vocab.json  Marian's two sentencepiece models, and the ids of their pieces
"""

import re
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from dragoman.errors import DataError
from dragoman.interop.huggingface import Folder, read_json
from dragoman.text.pieces import Pieces
from dragoman.text.special import SpecialIds


def open_pipeline(folder: Folder) -> Tokenizer | None:
    path = folder.path / "tokenizer.json"
    return Tokenizer.from_file(str(path)) if path.is_file() else None


def id_of(model: Tokenizer, folder: Folder, name: str, usual: str) -> int:
    token = folder.token(name, usual)
    found = model.token_to_id(token)
    if found is None:
        raise DataError("E-IMP-05", f"the tokenizer in {folder.path} has no {token} for its {name}; fetch it again")
    return found


def word_pieces(folder: Folder) -> Tokenizer:
    lines = file_in(folder, "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    vocabulary = {line: i for i, line in enumerate(lines)}
    unknown = folder.token("unk_token", "[UNK]")
    model = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=100))
    asked = folder.tokenizer
    model.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=asked.get("tokenize_chinese_chars", True),
        strip_accents=asked.get("strip_accents"),
        lowercase=asked.get("do_lower_case", True),
    )
    model.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    model.decoder = decoders.WordPiece()
    names = (("unk", "[UNK]"), ("sep", "[SEP]"), ("pad", "[PAD]"), ("cls", "[CLS]"), ("mask", "[MASK]"))
    marks = [folder.token(f"{name}_token", usual) for name, usual in names]
    model.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks if mark in vocabulary])
    return model


def byte_pairs(folder: Folder) -> Tokenizer:
    vocabulary, merges = (str(file_in(folder, name)) for name in ("vocab.json", "merges.txt"))
    model = Tokenizer(models.BPE.from_file(vocabulary, merges))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=folder.tokenizer.get("add_prefix_space", False))
    model.decoder = decoders.ByteLevel()
    end = folder.token("eos_token", "<|endoftext|>")
    model.add_special_tokens([AddedToken(end, special=True, normalized=False)])
    return model


def pieces_with_sentinels(folder: Folder, special: SpecialIds) -> Pieces:
    """T5's: the sentinels stand after the pieces, the first one last."""
    proto = file_in(folder, "spiece.model").read_bytes()
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    count = int(folder.tokenizer.get("extra_ids", 100))
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(count))]
    listed = [model.id_to_piece(i) for i in range(model.vocab_size())] + sentinels
    spans = tuple(len(listed) - 1 - number for number in range(count))
    apart = r"<extra_id_\d+>|" + marks(listed, special)
    return Pieces(proto, listed, apart, special.changed({"spans": spans}, section="special"))


def pieces_by_list(folder: Folder, side: str, vocabulary: str, special: SpecialIds) -> Pieces:
    """Marian's: ids of a list of its own. `>>fra<<` before a text asks for a language."""
    proto = file_in(folder, f"{side}.spm").read_bytes()
    ids: dict[str, int] = read_json(folder.path / vocabulary)
    listed = [""] * (1 + max(ids.values()))
    for piece, i in ids.items():
        listed[i] = piece
    return Pieces(proto, listed, r"^>>.*?<<|" + marks(listed, special), special)


def marks(listed: list[str], special: SpecialIds) -> str:
    """`</s>`, `<pad>` and `<unk>`, as they are written in this list."""
    beyond = [i for i in (special.end, special.pad, special.unknown) if i >= len(listed)]
    if beyond:
        raise DataError(
            "E-IMP-05",
            f"config.json has the special id {beyond[0]} and the tokenizer {len(listed)} tokens; fetch both again",
        )
    return "|".join(re.escape(listed[i]) for i in sorted({special.end, special.pad, special.unknown}))


def file_in(folder: Folder, name: str) -> Path:
    if not (folder.path / name).is_file():
        raise DataError("E-IMP-05", f"{folder.path} has neither tokenizer.json nor {name}; fetch its tokenizer too")
    return folder.path / name
