"""Figures for papers: the numbers in them are those that were given, whatever the tokens are."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from dragoman import models
from dragoman.decoding.maps import AttentionMap
from dragoman.decoding.translate import Translator
from dragoman.models.gpt import GptConfig
from dragoman.models.marian import MarianConfig
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.seeing.figures import (
    NUMBERED,
    draw_attention_grid,
    draw_heads,
    draw_look,
    draw_positions,
    draw_training,
    shorten,
)
from dragoman.seeing.history import history
from dragoman.seeing.look import look
from dragoman.seeing.plots import save_as
from dragoman.seeing.positions import positions_of
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers

SIZES = {"width": 16, "heads": 2, "layers": 2, "hidden": 16}


def attention(queries, keys, heads=2, layer="decoder.blocks.1.source_attention"):
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(heads, len(queries), len(keys), generator=generator).softmax(dim=-1)
    return AttentionMap(layer, weights, queries, keys)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_grid_has_a_number_in_each_cell_and_a_token_at_each_edge(tmp_path):
    found = attention(["a", "$x^{", " ", "</s>"], ["$1", "<i>", "a very long token indeed", "\n", "</s>"])
    figure = draw_attention_grid(found, head=1)
    [axes] = figure.axes
    written = [float(f"0{text}") if text.startswith(".") else float(text) for text in texts(axes)]
    torch.testing.assert_close(torch.tensor(written), found.weights[1].flatten(), atol=0.0051, rtol=0)
    assert "head 2" in axes.get_title(loc="left")
    assert f"{found.entropy()[1]:.2f} bits" in axes.get_title(loc="left")
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["$1", "<i>"]
    save_as(figure, tmp_path / "grid.png")
    svg = save_as(figure, tmp_path / "grid.svg").decode()
    assert "$x^{" in svg
    assert "&lt;i&gt;" in svg
    with Image.open(tmp_path / "grid.png") as image:
        assert min(image.size) > 200
        assert len(np.unique(np.asarray(image.convert("L")))) > 50


def test_a_large_grid_has_colours_alone():
    words = [f"w{number}" for number in range(NUMBERED + 1)]
    assert texts(draw_attention_grid(attention(words, words)).axes[0]) == []


def test_what_is_hidden_is_written_as_nought():
    found = AttentionMap("blocks.blocks.0.self_attention", torch.eye(3)[None], ["a", "b", "c"], ["a", "b", "c"])
    assert texts(draw_attention_grid(found).axes[0]) == ["1.00", "0", "0", "0", "1.00", "0", "0", "0", "1.00"]


def test_every_head_of_every_block_is_there_with_its_entropy():
    maps = [
        attention(list("abc"), list("de"), heads, f"decoder.blocks.{i}.source_attention")
        for i, heads in ((0, 2), (1, 3))
    ]
    figure = draw_heads(maps)
    titles = [axes.get_title() for axes in figure.axes if axes.axison]
    assert titles == [f"{bits:.2f} bits" for found in maps for bits in found.entropy()]
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()] == ["block 1", "block 2"]


@pytest.mark.parametrize(
    ("config", "panels"),
    [
        (TransformerConfig(source_vocabulary=9, target_vocabulary=9, **SIZES), 3),
        (MarianConfig(source_vocabulary=9, target_vocabulary=9, **SIZES), 3),
        (GptConfig(vocabulary=9, **SIZES, longest=20), 4),
        (T5Config(source_vocabulary=9, target_vocabulary=9, **SIZES, head_width=8), 4),
    ],
    ids=["transformer", "marian", "gpt", "t5"],
)
def test_positions_are_drawn(config, panels):
    found = positions_of(models.build(config))
    figure = draw_positions(found)
    titled = {axes.get_title(): axes for axes in figure.axes if axes.get_title()}
    assert len(titled) == panels
    assert len(titled["single numbers"].lines) == len(found.waves)
    drawn = titled["how close two places are"].lines[0].get_ydata()
    assert torch.equal(torch.as_tensor(drawn), found.closeness.sinusoidal.unpack())


def test_a_run_is_drawn_from_its_log(tmp_path):
    (tmp_path / "run.toml").write_text("[training]\nsteps = 30\n")
    report = {
        "kind": "report",
        "steps": 30,
        "epoch": 0.1,
        "tokens_per_second": 9.0,
        "gradient_norm": 1.0,
        "counted": "tokens",
    }
    lines = [{**report, "step": n, "seconds": n, "nats_per_token": 5 / n, "rate": n / 1e4} for n in range(1, 31)]
    checked = [
        {"kind": "validation", "step": n, "nats_per_token": 6 / n, "best": True, "samples": []} for n in (10, 20, 30)
    ]
    for scores, panels in (({"bleu": 3.0, "chrf": 20.0}, 3), ({}, 2)):
        whole = [*lines, *({**line, **scores} for line in checked)]
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in whole))
        figure = draw_training(history(tmp_path))
        assert len(figure.axes) == panels
        training, validation = figure.axes[0].lines
        assert list(training.get_ydata()) == [5 / n for n in range(1, 31)]
        assert list(validation.get_xdata()) == [10, 20, 30]
        assert figure.axes[-1].get_xlabel() == "step"


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_score_that_a_validation_lacks_is_neither_nought_nor_drawn(tmp_path, missing):
    checked = [
        {"kind": "validation", "step": n, "nats_per_token": 1.0, "best": True, "samples": [], "bleu": n / 10, "chrf": n}
        for n in (10, 20, 30)
    ]
    del checked[missing]["bleu"]
    (tmp_path / "run.toml").write_text("[training]\nsteps = 30\n")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in checked))
    found = history(tmp_path)
    wanted = [None if place == missing else 1.0 + place for place in range(3)]
    assert found.validations.scores == {"bleu": wanted, "chrf": [10, 20, 30]}
    assert json.loads(found.model_dump_json())["validations"]["scores"]["bleu"] == wanted
    lines = {line.get_label(): line.get_ydata() for line in draw_training(found).axes[1].lines}
    assert np.isnan(np.asarray(lines["BLEU"], dtype=float)).tolist() == [value is None for value in wanted]
    assert list(lines["chrF"]) == [10, 20, 30]


def test_what_was_looked_at_is_drawn_large_and_small():
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), [("a b c d", "e f g h")])
    size = len(tokenizers.source)
    model = models.build(TransformerConfig(source_vocabulary=size, target_vocabulary=size, **SIZES))
    seen = look(Translator(model, tokenizers, {"longest": 20}), "a b c", target="e f")
    figure = draw_look(seen)
    assert len(figure.axes) == 1 + 2 * 2  # the mean, and each head
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == seen.source.pieces


def test_each_figure_is_saved_without_a_word_of_warning(tmp_path):
    t5 = T5Config(source_vocabulary=9, target_vocabulary=9, **SIZES, head_width=8)
    for number, figure in enumerate(
        [draw_positions(positions_of(models.build(t5))), draw_heads([attention(["a"], ["b"])])]
    ):
        save_as(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 2000


def test_a_label_is_short_and_can_be_seen():
    assert shorten(" ") == "␣"
    assert len(shorten("x" * 99)) < 20
    assert shorten("a\x1bb") == "a·b"
