"""A vit looked at as the page does it: its patches are the words, and every number is the model's own."""

import io
import json
import math
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import dragoman
from dragoman import models
from dragoman.cli import main
from dragoman.decoding.images import ImageClassifier, ImageEmbedder, ImageModel, ImageRegressor, ImageSegmenter
from dragoman.decoding.insides import roll_out
from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.images.index import IndexWriter
from dragoman.images.pixels import Form, colour_of
from dragoman.models.cnn import CnnClassifierConfig
from dragoman.models.vit import (
    VitClassifierConfig,
    VitRegressorConfig,
    VitSegmenterConfig,
    VitVectorsConfig,
    cut,
)
from dragoman.modules.attention import watching
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of
from dragoman.seeing import picture
from dragoman.seeing.arithmetic import patch_arithmetic
from dragoman.seeing.looked import Area, AttentionLayer, Look, Painted, Picture
from dragoman.seeing.page import page_data
from dragoman.seeing.picture import pixels_of
from dragoman.seeing.places import Places
from dragoman.seeing.positions import show_positions
from dragoman.seeing.shown import choose, first_of_run

CONTRACT = (Path(__file__).parents[2] / "web" / "src" / "data.ts").read_text(encoding="utf-8")
VIT = {"size": (8, 12), "channels": 3, "patch": 4, "width": 16, "heads": 2, "layers": 3, "hidden": 24}
ABOUT = {
    "images": {"mean": [0.5] * 3, "deviation": [0.25] * 3},
    "masks": [0, 7],
    "numbers": {"mean": [5.0], "deviation": [2.0]},
}
IMAGE = np.random.default_rng(0).integers(0, 256, (8, 12, 3), dtype=np.uint8)
CLASSIFY = VitClassifierConfig(**VIT, classes=("<b>cat</b>", "dog & co"))


def opened(kind: type[ImageModel], config) -> ImageModel:
    torch.manual_seed(0)
    return kind(models.build(config), ABOUT)


@pytest.fixture(scope="module")
def classifier():
    return opened(ImageClassifier, CLASSIFY)


@pytest.fixture(scope="module")
def segmenter():
    return opened(ImageSegmenter, VitSegmenterConfig(**VIT, classes=("sky", "ground")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, classifier):
    """Models on disk, and an image whose name means something to a browser."""
    folder = tmp_path_factory.mktemp("picture")
    save_model(folder / "vit", CLASSIFY, weights_of(classifier.model), None, ABOUT)
    cnn = CnnClassifierConfig(size=(8, 12), channels=3, classes=("a", "b"), width=5, layers=2)
    save_model(folder / "cnn", cnn, weights_of(models.build(cnn)), None, ABOUT)
    Image.fromarray(IMAGE).save(folder / "a<i>b&c.png")
    np.savez(folder / "many.npz", images=np.stack([IMAGE, 255 - IMAGE]))
    return folder


# ── attention ─────────────────────────────────────────────────────────────────────────────


def test_every_weight_of_every_head_is_there_under_its_patch(classifier):
    seen = dragoman.look(classifier, IMAGE)
    assert seen.source.pieces == ["[class]", "1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]
    with watching(classifier.model) as looks, torch.inference_mode():
        classifier.read(IMAGE.transpose(2, 0, 1)[None])
    assert [layer.kind for layer in seen.attention] == ["encoder"] * 3
    for layer, (name, [look]) in zip(seen.attention, looks.items(), strict=True):
        assert layer.name == name
        torch.testing.assert_close(layer.weights.unpack().float(), look.weights[0], atol=6e-5, rtol=0)
        torch.testing.assert_close(layer.scores.unpack().float(), look.scores[0], atol=6e-4, rtol=0)
        torch.testing.assert_close(layer.mean.unpack().float(), look.weights[0].mean(dim=0), atol=6e-5, rtol=0)
        assert layer.by_word is None
        assert layer.most_entropy == round(math.log2(7), 3)
    assert seen.image.left_out == ""
    assert seen.given is None


def test_what_a_page_cannot_carry_is_left_out_and_said(classifier, segmenter, monkeypatch):
    """Of each head the row that the answer hangs on is kept, and of each block the mean over its heads."""
    whole = [dragoman.look(model, IMAGE) for model in (classifier, segmenter)]
    monkeypatch.setattr(picture, "MOST", 3 * 2 * 49 - 1)
    for model, before, name in zip((classifier, segmenter), whole, ("[class]", "[patches]"), strict=True):
        seen = dragoman.look(model, IMAGE)
        assert "6 heads of 7 × 7 weights are 294, more than a page carries" in seen.image.left_out
        assert seen.given.pieces == [name]
        for short, layer in zip(seen.attention, before.attention, strict=True):
            rows = layer.weights.unpack()
            kept = rows[:, :1] if name == "[class]" else rows[:, 1:].mean(dim=1, keepdim=True)
            torch.testing.assert_close(short.weights.unpack(), kept, atol=1e-4, rtol=0)
            assert (short.queries, short.keys, short.scores) == ("given", "source", None)
            assert (short.mean, short.entropy) == (layer.mean, layer.entropy)


def test_rollout_is_that_of_the_maps_and_a_segmenter_has_none(classifier, segmenter):
    """It drops its class token: what reaches that says nothing of the answer."""
    seen = dragoman.look(classifier, IMAGE)
    expected = roll_out([layer.weights.unpack().float() for layer in seen.attention])
    torch.testing.assert_close(seen.image.rollout.unpack().float().flatten(), expected, atol=2e-3, rtol=0)
    assert seen.image.rollout.shape == (2, 3)
    assert seen.image.asks == "class"
    assert dragoman.look(segmenter, IMAGE).image.rollout is None
    assert dragoman.look(segmenter, IMAGE).image.asks == "patches"


def test_a_drawing_of_a_segmenter_shows_where_its_patches_look(segmenter):
    found, seen = segmenter.look(IMAGE), dragoman.look(segmenter, IMAGE)
    assert found.rollout is None
    for block, layer in zip(found.attention, seen.attention, strict=True):
        mean = layer.weights.unpack()[:, 1:].mean(dim=1).float()
        torch.testing.assert_close(block.weights.flatten(1), mean[:, 1:], atol=1e-4, rtol=0)
        torch.testing.assert_close(block.at_class, mean[:, 0], atol=1e-4, rtol=0)


# ── what is said of the image ─────────────────────────────────────────────────────────────


def test_a_classifier_tells_its_labels_as_classify_does(classifier):
    told = dragoman.look(classifier, IMAGE).image.told
    [said] = classifier.classify([IMAGE])
    assert told[0].name == said.label
    assert {one.name: one.share for one in told} == pytest.approx(said.probabilities, abs=6e-5)
    assert told[0].value == f"{100 * said.probability:.2f} %"


def test_a_regressor_tells_numbers_in_their_units():
    model = opened(ImageRegressor, VitRegressorConfig(**VIT, numbers=("angle",)))
    [told] = dragoman.look(model, IMAGE).image.told
    assert (told.name, told.share) == ("angle", None)
    assert float(told.value) == pytest.approx(model.regress([IMAGE])[0]["angle"], abs=1e-3)


def test_a_segmenter_shows_the_labels_that_segment_gives(segmenter):
    area = dragoman.look(segmenter, IMAGE).image.area
    [mask] = segmenter.segment([IMAGE])
    shown = pixels_of(Picture.model_construct(data=area.data)).transpose(1, 2, 0)
    assert (shown == np.array([[colour_of(int(value)) for value in row] for row in mask])).all()
    assert [label.name for label in area.labels] == ["sky", "ground"]
    for place, (label, share) in enumerate(zip(area.patches, area.shares.unpack().flatten().tolist(), strict=True)):
        row, column = divmod(place, 3)
        patch = mask[4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
        assert (patch == {"sky": 0, "ground": 7}[label]).mean() == pytest.approx(share, abs=1e-4)


def test_a_reader_without_a_head_says_nothing():
    model = opened(ImageEmbedder, VitVectorsConfig(**VIT))
    assert dragoman.look(model, IMAGE).image.told == []


def test_the_image_on_the_page_is_what_the_model_read(classifier, folder):
    seen = dragoman.look(classifier, folder / "a<i>b&c.png")
    assert (pixels_of(seen.image) == IMAGE.transpose(2, 0, 1)).all()
    assert seen.image.name == "a<i>b&c.png"
    again = dragoman.look(folder / "vit", str(folder / "a<i>b&c.png"))
    assert again == seen


# ── positions and arithmetic ──────────────────────────────────────────────────────────────


def test_cosines_of_places_are_those_of_the_learned_vectors(classifier):
    places = show_positions(classifier).places
    table = classifier.model.reader.positions.table.weight[1:]
    for place in range(6):
        wanted = torch.nn.functional.cosine_similarity(table[place : place + 1], table)
        torch.testing.assert_close(places.cosines.unpack()[place].float(), wanted, atol=6e-4, rtol=0)
    assert places.grid == (2, 3)


def test_the_arithmetic_begins_with_pixels_and_ends_as_the_block_does(classifier):
    reader = classifier.model.reader
    found = patch_arithmetic(classifier, IMAGE.transpose(2, 0, 1))
    stages = {
        stage.name: {matrix.name: matrix.values.unpack().float() for matrix in stage.matrices} for stage in found.stages
    }
    assert list(stages)[:3] == ["patches", "input", "norm"]
    assert found.words == ("[class]", "1,1", "1,2", "1,3", "2,1", "2,2", "2,3")  # all of them fit
    with torch.inference_mode():
        rows = cut(classifier.levels.normalise(IMAGE.transpose(2, 0, 1)[None]), 4)[0]
        vectors = reader.to_vector(rows)
        states = torch.cat([reader.class_token[None], vectors]) + reader.positions(0, 7)
    torch.testing.assert_close(stages["patches"]["x"], rows[:, :8], atol=1e-3, rtol=0)
    torch.testing.assert_close(stages["patches"]["E"], vectors[:, :8], atol=1e-3, rtol=0)
    torch.testing.assert_close(stages["input"]["X"], states[:, :8], atol=1e-3, rtol=0)
    weights = dragoman.look(classifier, IMAGE).attention[0].weights.unpack()[0].float()
    torch.testing.assert_close(stages["weights"]["A"], weights, atol=2e-4, rtol=0)
    assert found.shuffle.without.difference < 1e-5 < found.shuffle.with_positions.difference


def test_of_many_patches_those_are_worked_through_that_the_class_token_looks_at_most():
    model = opened(ImageClassifier, VitClassifierConfig(**{**VIT, "patch": 2}, classes=("a", "b")))
    found, seen = patch_arithmetic(model, IMAGE.transpose(2, 0, 1)), dragoman.look(model, IMAGE)
    row = seen.attention[0].weights.unpack()[0, 0, 1:]
    best = {seen.source.pieces[1 + place] for place in row.argsort(descending=True)[:7].tolist()}
    assert (found.words[0], set(found.words[1:])) == ("[class]", best)
    assert list(found.words[1:]) == sorted(best, key=seen.source.pieces.index)


# ── the commands ──────────────────────────────────────────────────────────────────────────


def test_look_writes_the_page_and_the_numbers_of_all_that_attend(folder, tmp_path, capsys):
    image = str(folder / "a<i>b&c.png")
    for ending in ("html", "json", "png"):
        assert main(["look", str(folder / "vit"), image, "--out", str(tmp_path / f"x.{ending}")]) == 0
    assert "at class" in capsys.readouterr().out
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<i>b" not in page
    assert "<b>cat" not in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert data["look"] == json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert Look.model_validate(data["look"]) == dragoman.look(folder / "vit", image)
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("number", [None, 1, 2])
def test_the_python_of_a_page_gives_its_numbers(folder, number):
    """For a file, and for one image of a corpus."""
    model = dragoman.load(folder / "vit")
    chosen = choose(str(folder / ("many.npz" if number else "a<i>b&c.png")), number or 1, model.form)
    seen = dragoman.look(model, chosen.pixels)
    data = page_data(folder / "vit", model, seen, {"image": chosen.python})
    names = {}
    exec(data.python.replace("\nseen.attention", "\nweights = seen.attention"), names)
    assert torch.equal(names["weights"], seen.attention[0].weights.unpack())


def test_a_run_shows_the_first_image_it_is_validated_on(tmp_path):
    assert first_of_run(tmp_path) is None
    with IndexWriter(tmp_path / "data" / "valid", Form(3, 8, 12), "int64", ()) as writer:
        writer.add(IMAGE.transpose(2, 0, 1), 0)
    assert first_of_run(tmp_path) is None  # its index is not whole
    writer.finish()
    chosen = first_of_run(tmp_path)
    assert (chosen.pixels == IMAGE).all()
    names = {}
    exec(chosen.python, names)
    assert (names["image"] == IMAGE).all()


def test_explain_works_a_vit_through_on_an_image(folder, capsys):
    assert main(["explain", str(folder / "a<i>b&c.png"), "--model", str(folder / "vit")]) == 0
    told = capsys.readouterr().out
    assert "── 1 patches ──" in told
    assert "The first encoder block of this vit" in told


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["explain", "--model", "vit"], 2, "no image was given for vit to see"),
        (["explain", "--model", "cnn"], 3, "of the family cnn and has no attention"),
        (["explain", "nothing.png", "--model", "vit"], 3, "nothing.png does not exist"),
        (["page", "cnn"], 3, "dragoman look cnn IMAGE"),
        (["page", "vit", "nothing.png"], 3, "nothing.png does not exist"),
        (["look", "vit", "many.npz", "--number", "4"], 2, "many.npz holds 2 images"),
    ],
)
def test_a_mistake_is_one_line(folder, monkeypatch, capsys, words, code, said):
    monkeypatch.chdir(folder)
    assert main(words) == code
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_what_does_not_fit_is_refused(classifier, folder):
    cases = [
        (lambda: dragoman.look(classifier, IMAGE, target="x"), UsageError, "this model reads images"),
        (lambda: dragoman.look(classifier, IMAGE, force=[1]), UsageError, "this model reads images"),
        (lambda: dragoman.look(folder / "cnn", IMAGE), DataError, "only a vit has"),
        (lambda: dragoman.look(classifier, "nothing.png"), DragomanError, "does not exist"),
    ]
    for ask, kind, said in cases:
        with pytest.raises(kind, match=said):
            ask()


def test_the_page_and_python_agree_on_the_names_of_an_image():
    for found in (Picture, Area, Painted, Places, AttentionLayer):
        for name in found.model_fields:
            assert re.search(rf"\b{name}\??:", CONTRACT), f"{found.__name__}.{name}"


def test_pictures_are_whole(classifier):
    data = dragoman.look(classifier, IMAGE).image.data
    png = b64decode(data.removeprefix("data:image/png;base64,"))
    Image.open(io.BytesIO(png)).verify()
    assert Image.open(io.BytesIO(png)).getextrema()  # every pixel can be read
