"""Imported tokenizers read and write as the reference's do, also what nobody would type."""

import json
import shutil
import warnings

import pytest
from reference import (
    TEXT,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
    add_byte_pairs,
    add_marian_pieces,
    add_spiece,
    add_word_pieces,
    transformers,
)

from dragoman.interop.importing import import_folder
from dragoman.text.tokenizer import open_tokenizers

HOSTILE = [
    "", " ", "  two  spaces  ", "\t", "tab\tin it", "🦊 fox", "é e\u0301", "ﬁne ½ Ⅷ", "\u200bzero\u200bwidth",
    "漢字かな", "İstanbul ẞ", "a" * 300, "…!?.,;:", "can't won't I'LL", "3,141.59", "\u00a0nbsp", "\u2028",
    "[brackets] <angles>", "▁▁ ##ing Ġ", "ends with space ", *TEXT[:6],
]  # fmt: skip
MARKED = {
    "bert": ["the [MASK] fox", "[CLS]", "a[SEP]b"],
    "gpt2": ["a<|endoftext|>b", "\n\nlines\n  and\r\n", "<|endoftext|>"],
    "t5": ["the <extra_id_0> fox <extra_id_1>", "a</s>b", "<extra_id_99>"],
    "marian": [">>fra<< the fox", ">>xyz<< the fox", "a</s>b", "the >>fra<< fox"],
}


def bert(folder):
    BertForMaskedLM(
        BertConfig(vocab_size=230, hidden_size=16, num_attention_heads=2, num_hidden_layers=1, intermediate_size=16)
    ).save_pretrained(folder)
    add_word_pieces(folder)
    return transformers.BertTokenizer


def gpt2(folder):
    config = GPT2Config(vocab_size=300, n_embd=16, n_head=2, n_layer=1, bos_token_id=299, eos_token_id=299)
    GPT2LMHeadModel(config).save_pretrained(folder)
    add_byte_pairs(folder)
    return transformers.GPT2Tokenizer


def t5(folder):
    config = T5Config(vocab_size=280, d_model=16, d_kv=8, d_ff=16, num_heads=2, num_layers=1)
    T5ForConditionalGeneration(config).save_pretrained(folder)
    add_spiece(folder)
    return transformers.T5Tokenizer


def marian(folder):
    config = MarianConfig(
        vocab_size=250, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, pad_token_id=249, decoder_start_token_id=249,
    )  # fmt: skip
    MarianMTModel(config).save_pretrained(folder)
    add_marian_pieces(folder)
    return transformers.MarianTokenizer


KINDS = {"bert": bert, "gpt2": gpt2, "t5": t5, "marian": marian}


def opened(kind, folder):
    """The reference's tokenizer of a new folder."""
    theirs = KINDS[kind](folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sacremoses is recommended
        return theirs.from_pretrained(folder)


def ours_from(folder, out):
    """Ours of the same folder, after a round trip through a folder of ours."""
    import_folder(folder, lambda _: None).saved.tokenizers.save(out)
    return open_tokenizers(out)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_become_the_same_ids_and_come_back_the_same(kind, tmp_path):
    reference = opened(kind, tmp_path / "theirs")
    tokenizers = ours_from(tmp_path / "theirs", tmp_path / "ours")
    for line in HOSTILE + MARKED[kind]:
        [ids] = tokenizers.source.encode([line])
        assert ids == reference(line, add_special_tokens=False)["input_ids"], line
        words = tokenizers.source.words(ids)
        assert words == sorted(words)
        assert len(words) == len(ids) == len(tokenizers.source.pieces(ids))
    for line in HOSTILE:
        [ids] = tokenizers.target.encode([line])
        shown = reference.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert tokenizers.target.decode(ids).split() == shown.split(), line


def test_a_folder_with_a_tokenizer_json_and_one_without_read_alike(tmp_path):
    """Where both are there, tokenizer.json counts; without it, the older files give the same ids."""
    for kind in ("bert", "gpt2"):
        KINDS[kind](tmp_path / kind)
        shutil.copytree(tmp_path / kind, tmp_path / f"{kind}-old")
        (tmp_path / f"{kind}-old" / "tokenizer.json").unlink()
        new, old = (ours_from(tmp_path / name, tmp_path / f"{name}-ours") for name in (kind, f"{kind}-old"))
        assert new.special == old.special
        assert new.source.encode(HOSTILE + MARKED[kind]) == old.source.encode(HOSTILE + MARKED[kind])


def test_t5_reads_alike_from_its_pieces_and_from_a_tokenizer_json(tmp_path):
    reference = opened("t5", tmp_path / "pieces")
    shutil.copytree(tmp_path / "pieces", tmp_path / "json")
    (tmp_path / "json" / "spiece.model").unlink()
    reference.save_pretrained(tmp_path / "json")
    pieces, pipeline = (ours_from(tmp_path / name, tmp_path / f"{name}-ours") for name in ("pieces", "json"))
    assert pieces.special == pipeline.special
    assert pieces.source.encode(HOSTILE + MARKED["t5"]) == pipeline.source.encode(HOSTILE + MARKED["t5"])


def test_lower_case_is_as_the_folder_says(tmp_path):
    bert(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    one = ours_from(tmp_path, tmp_path / "ours").source
    assert one.special.unknown in one.encode(["The"])[0]
    assert one.special.unknown not in one.encode(["the"])[0]


def test_sentinels_are_the_last_ids_the_first_one_last(tmp_path):
    t5(tmp_path)
    one = ours_from(tmp_path, tmp_path / "ours").source
    assert one.encode(["<extra_id_0> <extra_id_1>"]) == [[len(one) - 1, len(one) - 2]]
    assert one.special.spans[:2] == (len(one) - 1, len(one) - 2)
    [ids] = one.encode(["<extra_id_0> the fox <extra_id_1> dog"])
    assert one.decode(ids) == "<extra_id_0> the fox <extra_id_1> dog"


@pytest.mark.parametrize(("kind", "writes"), [("bert", False), ("gpt2", True), ("t5", False), ("marian", False)])
def test_only_bytes_write_line_ends(kind, writes, tmp_path):
    KINDS[kind](tmp_path)
    assert ours_from(tmp_path, tmp_path / "ours").target.writes_newlines == writes
