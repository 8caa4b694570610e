"""Small models of the reference, with random weights, saved as Hugging Face folders; and our import of them."""

import json
import os
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import sentencepiece
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the reference's own imports
    import transformers
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        BertForSequenceClassification,
        BertModel,
        GPT2Config,
        GPT2LMHeadModel,
        GPT2Model,
        MarianConfig,
        MarianMTModel,
        T5Config,
        T5ForConditionalGeneration,
    )

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

__all__ = [
    "TEXT",
    "BertConfig", "BertForMaskedLM", "BertForSequenceClassification", "BertModel", "GPT2Config", "GPT2LMHeadModel",
    "GPT2Model", "MarianConfig", "MarianMTModel", "T5Config", "T5ForConditionalGeneration", "transformers",
]  # fmt: skip

TEXT = [
    "the quick brown fox jumps over the lazy dog",
    "Ein Hund läuft über die Straße, und niemand weiß warum.",
    "In 1984 there were 3,141 pigeons; today there are none!",
    "don't you think it's odd? I do (a little).",
    "Čeština, français, ελληνικά и русский в одной строке",
    "one two three four five six seven eight nine ten",
] * 4


def save(model, folder: Path, noise: float = 0.1) -> Path:
    """With weights that are not what they were drawn as: zeros and ones would hide a mistake."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.requires_grad):
            parameter.add_(noise * torch.randn_like(parameter))
    model.eval().save_pretrained(folder)
    return folder


def add_word_pieces(folder: Path, size: int = 200) -> Path:
    """tokenizer.json and vocab.txt, learned from TEXT."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    model = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    model.normalizer = normalizers.BertNormalizer(lowercase=True)
    model.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    model.decoder = decoders.WordPiece()
    model.train_from_iterator(
        TEXT, trainers.WordPieceTrainer(vocab_size=size, special_tokens=marks, show_progress=False)
    )
    ordered = sorted(model.get_vocab(), key=model.get_vocab().get)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in ordered), encoding="utf-8")
    model.save(str(folder / "tokenizer.json"))
    return folder


def add_byte_pairs(folder: Path, size: int = 300) -> Path:
    """tokenizer.json, and vocab.json with merges.txt; <|endoftext|> is the last id."""
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    model.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=size - 1, initial_alphabet=alphabet, show_progress=False)
    )
    model.add_special_tokens(["<|endoftext|>"])
    assert model.token_to_id("<|endoftext|>") == size - 1
    model.save(str(folder / "tokenizer.json"))
    model.model.save(str(folder))
    vocabulary = json.loads((folder / "vocab.json").read_text()) | {"<|endoftext|>": size - 1}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    return folder


def learn_pieces(path: Path, size: int = 160, **ids: int) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_prefix=str(path),
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **ids,
    )


def add_spiece(folder: Path) -> Path:
    """T5's spiece.model, with 160 pieces."""
    learn_pieces(folder / "spiece", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    (folder / "spiece.vocab").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": 100}))
    return folder


def add_marian_pieces(folder: Path, size: int = 250) -> Path:
    """source.spm and target.spm, and one list of their pieces; <pad> is the last id."""
    listed = {"</s>": 0, "<unk>": 1}
    for side in ("source", "target"):
        learn_pieces(folder / side, size=120 if side == "source" else 100)
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.model"))
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
        for i in range(3, model.vocab_size()):
            listed.setdefault(model.id_to_piece(i), len(listed))
    listed[">>fra<<"] = len(listed)
    assert len(listed) < size
    listed |= {f"never{i}": i for i in range(len(listed), size - 1)} | {"<pad>": size - 1}
    (folder / "vocab.json").write_text(json.dumps(listed))
    config = {"tokenizer_class": "MarianTokenizer", "source_lang": "de", "target_lang": "en"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def rows(vocabulary: int, lengths: list[int], least: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ids in rows of these lengths, padded with 0; and where they are real."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(least, vocabulary, (len(lengths), max(lengths)), generator=generator)
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return ids.masked_fill(~real, 0), real


def differences(ours, theirs, real=None) -> float:
    gap = (ours - theirs).abs()
    return float((gap if real is None else gap[real]).max())
