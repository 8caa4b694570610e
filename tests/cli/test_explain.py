"""dragoman explain: numbers that can be followed, in 80 columns."""

import json
import math
import re
import subprocess
import sys

import pytest
import torch
from rich.cells import cell_len

from dragoman import models
from dragoman.cli import explain as command
from dragoman.cli import main
from dragoman.models.bag import BagConfig
from dragoman.models.bert import BertConfig
from dragoman.models.cnn import CnnClassifierConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.models.word_vectors import Word2VecConfig
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of
from dragoman.seeing.arithmetic import slides_arithmetic, toy_arithmetic
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers

TEXT = "unbelievable 猫猫猫猫猫猫 is a lovely cat , is it not ?"
TOKENIZERS = learn_tokenizers(TokenizerConfig(kind="words", special=SpecialIds(mask=4)), [(TEXT, TEXT)])
V = len(TOKENIZERS.source)
BOTH = {"source_vocabulary": V, "target_vocabulary": V}
SIZES = {"width": 32, "heads": 2, "layers": 1, "hidden": 16}
MODELS = {
    "transformer": TransformerConfig(**BOTH, **SIZES),
    "t5": T5Config(**BOTH, **SIZES, head_width=16),
    "gpt": GptConfig(vocabulary=V, **SIZES),
    "bert": BertConfig(vocabulary=V, **SIZES),
    "rnn": RnnConfig(**BOTH, width=8, embedding=8),
    "rnn-additive": RnnConfig(**BOTH, width=32, embedding=16, attention="additive"),
    "rnn-fed": RnnConfig(**BOTH, width=32, embedding=16, attention="low-rank", rank=4, input_feeding=True),
    "bag": BagConfig(vocabulary=V, width=8, classes=("a", "b")),
    "word2vec": Word2VecConfig(vocabulary=V, width=8),
}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("explain")
    about = {"longest": 64, "languages": ["", ""]}
    for name, config in MODELS.items():
        save_model(folder / name, config, weights_of(models.build(config)), TOKENIZERS, about)
    images = CnnClassifierConfig(size=(8, 8), classes=("a", "b"))
    levels = {"mean": [0.5], "deviation": [0.5]}
    save_model(folder / "cnn", images, weights_of(models.build(images)), None, {"images": levels})
    return folder


def told(arguments, capsys):
    assert main(["explain", *map(str, arguments)]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    return found.out


def fits(text):
    return all(len(line) <= 80 and cell_len(line) <= 80 for line in text.split("\n"))


def test_the_toy_is_what_one_sees_first(capsys):
    text = told([], capsys)
    assert text.startswith("YOUR CAT IS A LOVELY CAT")
    assert fits(text)
    for stage in toy_arithmetic().stages:
        assert f" {stage.name} ──" in text
    assert "\x1b" not in text  # plain, since this is no terminal
    assert "−∞" in text


def test_every_number_of_the_toy_is_printed(capsys):
    text = told(["--numbers", "toy"], capsys)
    for stage in toy_arithmetic().stages:
        for matrix in stage.matrices:
            for row in matrix.values.unpack().tolist():
                assert all(command.number(value, matrix.values.digits) in text for value in row)


def test_one_score_is_written_out_term_by_term(capsys):
    lines = told([], capsys).split("\n")
    start = lines.index("CAT looks at YOUR, term by term:")
    products = [float(line.rpartition("=")[2]) for line in lines[start + 1 : start + 3]]
    assert sum(products) == pytest.approx(float(lines[start + 3].split()[-1]), abs=1e-3)
    assert "  = q·k" in lines[start + 3]


def test_the_slides_numbers_and_what_is_odd_about_them(capsys):
    text = told(["--numbers", "slides"], capsys)
    assert fits(text)
    for digits in ("0.268", "0.097", "1.001", "0.8414", "171.411 + 1664.068 = 1835.479"):
        assert digits in " ".join(text.split())


@pytest.mark.parametrize(
    "words", ["cat", "the cat sat on the mat today then slept", "a\tb  c", "supercalifragilistic " * 9]
)
def test_the_toy_takes_words_of_ones_own(words, capsys):
    text = told([words], capsys)
    assert fits(text)
    assert text.startswith(" ".join(words.split()[:8])[:40])


@pytest.mark.parametrize("name", ["transformer", "t5", "gpt", "bert"])
def test_a_models_own_numbers_fit_80_columns(name, here, capsys):
    text = told([TEXT, "--model", here / name], capsys)
    assert fits(text)
    assert f"block of this {name}, head 1 of 2" in text
    assert ("RMSNorm" in text) == (name == "t5")
    assert "with 8 more terms" in text


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("rnn-additive", ["Additive attention of this rnn", "v·tanh(q + k)", "with 24 more terms", "lstm( [ y_i−1 ("]),
        ("rnn-fed", ["Low-rank attention of this rnn", "= q·k", "; t_i−1 (", "s_i ("]),
    ],
)
def test_recurrent_attention_fits_80_columns_too(name, lines, here, capsys):
    text = told([TEXT, "--model", here / name], capsys)
    assert fits(text)
    assert all(line in text for line in lines)


def test_an_additive_score_is_written_out_term_by_term(here, capsys):
    lines = told(["a lovely cat", "--model", here / "rnn-additive"], capsys).split("\n")
    start = next(i for i, line in enumerate(lines) if line.endswith("looks at a, term by term:"))
    for line in lines[start + 1 : start + 9]:
        v, q, k, product = map(float, re.findall(r"-?\d+\.\d+", line))
        assert v * math.tanh(q + k) == pytest.approx(product, abs=2e-3)
    assert lines[start + 9].startswith("  = v·tanh(q + k)")


def test_json_is_the_same_object(here, capsys):
    assert json.loads(told(["--json"], capsys)) == json.loads(toy_arithmetic().model_dump_json())
    assert json.loads(told(["--numbers", "slides", "--json"], capsys)) == json.loads(
        slides_arithmetic().model_dump_json()
    )
    assert json.loads(told([TEXT, "--model", here / "gpt", "--json"], capsys))["source"] == "model"


def test_on_a_terminal_headings_have_weight(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    text = told([], capsys)
    assert "\x1b[1m" in text


@pytest.mark.parametrize(
    ("arguments", "code", "words", "id"),
    [
        ([""], 2, "there is no word in ''", "E-EXP-01"),
        (["--model", "transformer"], 2, "no text was given for", "E-EXP-01"),
        (["a", "--model", "transformer", "--numbers", "toy"], 2, "two sources of numbers", "E-EXP-02"),
        (["a", "--numbers", "slides"], 2, "leave out 'a'", "E-EXP-02"),
        (["a", "--numbers", "real"], 2, "real", "E-USE-00"),
        (["a", "--threads", "0"], 2, "--threads 0", "E-USE-07"),
        (["a", "--model", "rnn"], 3, "of the family rnn", "E-EXP-03"),
        (["a", "--model", "bag"], 3, "of the family bag", "E-EXP-03"),
        (["a", "--model", "word2vec"], 3, "of the family word2vec", "E-EXP-03"),
        (["a", "--model", "cnn"], 3, "of the family cnn", "E-EXP-03"),
        (["a", "--model", "nothing"], 3, "there is no model at", "E-RUN-04"),
        (["strange", "--model", "gpt"], 3, "has never seen", "E-TEXT-01"),
    ],
)
def test_a_mistake_is_one_line_with_its_exit_code(arguments, code, words, id, here, capsys, monkeypatch):
    monkeypatch.chdir(here)
    assert main(["explain", *arguments]) == code
    found = capsys.readouterr()
    assert words in found.err
    assert found.err.rstrip().endswith(f"[{id}]")
    assert found.err.count("\n") == 1
    assert found.out == ""


@pytest.mark.parametrize(("weight", "id"), [(1e9, "E-EXP-04"), (float("nan"), "E-RUN-17"), (1e30, "E-RUN-17")])
def test_a_spoiled_model_is_told_in_words(capsys, tmp_path, weight, id):
    """Numbers too large to be shown; numbers that no weight can be, which are refused before anything is computed."""
    model = models.build(MODELS["gpt"])
    with torch.no_grad():
        model.embedding.table.weight.fill_(weight)
    save_model(tmp_path / "spoiled", MODELS["gpt"], weights_of(model), TOKENIZERS, {})
    assert main(["explain", "cat", "--model", str(tmp_path / "spoiled")]) == 3
    assert f"[{id}]" in capsys.readouterr().err


def test_what_a_terminal_would_obey_is_not_printed():
    assert "\x1b" not in command.fit("\x1b[31mred")
    assert command.fit(" ") == "␣"


def test_importing_the_command_does_not_import_torch():
    code = "import sys, dragoman.cli.explain; assert 'torch' not in sys.modules and 'rich' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
