"""What an image model sees, shown as it is: weights that sum to one, the model's own maps, a page that is whole."""

import io
import json
import math
import re
from base64 import b64decode

import numpy as np
import pytest
import torch
from PIL import Image

from dragoman import models
from dragoman.cli import main
from dragoman.decoding.images import ImageClassifier, ImageRegressor, ImageSegmenter
from dragoman.decoding.insides import roll_out
from dragoman.models.cnn import CnnClassifierConfig, CnnSegmenterConfig
from dragoman.models.mlp import MlpClassifierConfig
from dragoman.models.vit import VitClassifierConfig, VitRegressorConfig
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of
from dragoman.seeing.insides import insides_page, light_up, sheet

SIZE, LABELS = {"size": (8, 12), "channels": 3}, {"classes": ("<b>cat</b>", "dog & co")}
VIT = {**SIZE, "patch": 4, "width": 16, "heads": 2, "layers": 3, "hidden": 24}
ABOUT = {"images": {"mean": [0.5] * 3, "deviation": [0.25] * 3}}
CONFIGS = {
    "vit": VitClassifierConfig(**VIT, **LABELS),
    "cnn": CnnClassifierConfig(**SIZE, **LABELS, width=5, layers=2),
    "mlp": MlpClassifierConfig(**SIZE, **LABELS),
}
PIXELS = np.random.default_rng(0).integers(0, 256, (3, 8, 12), dtype=np.uint8)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A model's folder of each family, and an image whose name means something to a browser."""
    folder = tmp_path_factory.mktemp("look")
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        save_model(folder / name, config, weights_of(models.build(config)), None, ABOUT)
    Image.fromarray(PIXELS.transpose(1, 2, 0)).save(folder / "a<i>b&c.png")
    np.savez(folder / "many.npz", images=np.repeat(PIXELS.transpose(1, 2, 0)[None], 3, axis=0))
    return folder


def inside(config, kind=ImageClassifier, **about):
    torch.manual_seed(0)
    return kind(models.build(config), {**ABOUT, **about}).look(PIXELS.transpose(1, 2, 0))


def test_every_head_of_every_block_looks_at_everything_once():
    found = inside(CONFIGS["vit"])
    assert [one.layer for one in found.attention] == ["block 1", "block 2", "block 3"]
    for one in found.attention:
        assert one.weights.shape == (2, 2, 3)
        torch.testing.assert_close(one.weights.sum(dim=(1, 2)) + one.at_class, torch.ones(2))
        assert all(0 < bits <= math.log2(7) + 1e-6 for bits in one.entropy())
        for head, (row, column, weight) in zip(one.weights, one.strongest(), strict=True):
            assert head[row, column] == head.max() == pytest.approx(weight)
    assert found.maps == []
    assert found.rollout.shape == (2, 3)
    assert found.rollout.sum().item() == pytest.approx(1, abs=1e-5)


def test_rollout_of_blocks_that_look_nowhere_else_is_even():
    """Where every token looks at all alike, so does what reaches the class token; twice the same block, by hand."""
    even = torch.full((2, 5, 5), 0.2)
    torch.testing.assert_close(roll_out([even, even, even]), torch.full((4,), 0.25))
    one = torch.randn(3, 5, 5).softmax(dim=-1)
    mixed = 0.5 * one.mean(dim=0) + 0.5 * torch.eye(5)
    expected = (mixed @ mixed)[0, 1:]
    torch.testing.assert_close(roll_out([one, one]), expected / expected.sum())


def test_maps_are_what_the_stages_give():
    config = CONFIGS["cnn"]
    torch.manual_seed(0)
    model = ImageClassifier(models.build(config), ABOUT)
    found = model.look(PIXELS.transpose(1, 2, 0))
    names = [f"stage {stage}, layer {layer}" for stage in (1, 2) for layer in (1, 2)]
    assert [one.layer for one in found.maps] == names
    stages = model.model.reader(model.levels.normalise(PIXELS[None]))
    torch.testing.assert_close(found.maps[1].maps, stages[0][0])
    torch.testing.assert_close(found.maps[3].maps, stages[1][0])
    assert found.attention == []
    assert found.rollout is None
    assert not any(module._forward_hooks for module in model.model.modules())


def test_numbers_and_pixels_can_be_looked_at_too():
    numbers = {"numbers": {"mean": [5.0], "deviation": [2.0]}}
    found = inside(VitRegressorConfig(**VIT, numbers=("angle",)), ImageRegressor, **numbers)
    assert found.told[0][0] == "angle"
    found = inside(CnnSegmenterConfig(**SIZE, classes=("sky", "ground"), width=4), ImageSegmenter, masks=[0, 1])
    assert [one.layer for one in found.maps] == ["stage 1, layer 1", "stage 2, layer 1", "way up 1"]
    assert {word for word, _ in found.told} == {"sky", "ground"}


def test_light_falls_where_the_weight_is():
    weights = torch.zeros(2, 3)
    weights[1, 2] = 0.5
    lit = light_up(PIXELS, weights).astype(int)
    warm = lit[:, :, 0] - lit[:, :, 2]
    assert (warm[4:, 8:] > 150).all()
    assert (warm[:4] == 0).all()


def test_a_sheet_holds_every_map():
    maps = torch.arange(5 * 2 * 3, dtype=torch.float32).reshape(5, 2, 3)
    whole = sheet(maps)
    assert (whole == 255).sum() == 5  # the brightest place of each


def test_the_page_is_whole_and_escaped(here, tmp_path, capsys):
    out = tmp_path / "cnn.html"
    assert main(["look", str(here / "cnn"), str(here / "a<i>b&c.png"), "--out", str(out), "--threads", "1"]) == 0
    assert capsys.readouterr().out.endswith(f"{out}\n")
    text = out.read_text()
    assert "<i>b" not in text
    assert "<b>cat" not in text
    assert "&lt;b&gt;cat&lt;/b&gt;" in text
    assert "<script" not in text
    assert "img-src data:" in text
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)
    pictures = re.findall(r"data:image/png;base64,([^\"]+)", text)
    assert len(pictures) == 1 + 4
    for picture in pictures:
        Image.open(io.BytesIO(b64decode(picture))).verify()


def test_the_picture_is_drawn(here, tmp_path):
    for name in ("vit", "cnn"):
        out = tmp_path / f"{name}.png"
        assert main(["look", str(here / name), str(here / "many.npz"), "--number", "3", "--out", str(out)]) == 0
        with Image.open(out) as image:
            assert min(image.size) > 300
            assert len(np.unique(np.asarray(image.convert("L")))) > 50


def test_every_number_can_be_had(here, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["look", str(here / "cnn"), str(here / "a<i>b&c.png"), "--out", "cnn.json"]) == 0
    assert "stage 2, layer 2" in capsys.readouterr().out
    cnn = json.loads((tmp_path / "cnn.json").read_text(encoding="utf-8"))
    assert len(cnn["maps"]) == 4


def test_without_a_name_the_page_goes_here(here, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["look", str(here / "vit"), str(here / "a<i>b&c.png")]) == 0
    assert capsys.readouterr().out.endswith("look.html\n")
    assert (tmp_path / "look.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_mistakes(here, capsys, monkeypatch):
    image = str(here / "many.npz")
    cases = [
        (["look", str(here / "mlp"), image], 3, "neither attention between words nor feature maps", "E-LOOK-02"),
        (["look", str(here / "vit"), image, "--number", "4"], 2, "holds 3 images", "E-IMG-15"),
        (["look", str(here / "vit"), image, "--out", "x.gif"], 2, "none of .html, .json", "E-LOOK-07"),
        (["look", str(here / "vit"), "nothing.png"], 3, "does not exist", "E-DATA-04"),
        (["look", str(here / "nothing"), image], 3, "there is no model at", "E-RUN-04"),
    ]  # fmt: skip
    for words, code, told, error in cases:
        assert main(words) == code, words
        said = capsys.readouterr().err
        assert told in said
        assert f"[{error}]" in said
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["look", str(here / "vit"), image, "--out", "x.png"]) == 4
    assert "[E-IMG-16]" in capsys.readouterr().err


def test_a_page_from_python(here):
    config = json.loads((here / "vit" / "config.json").read_text())
    assert config["images"] == ABOUT["images"]
    assert insides_page(inside(CONFIGS["cnn"]), "a & b").startswith("<!doctype html>")
