"""Drawn pictures: the same for the same seed, and what is said of them is what is on them."""

import math

import numpy as np
import pytest

from dragoman.cli import main
from dragoman.images.corpus import find_images
from dragoman.images.generated import BOXES, KINDS, SHAPES, draw_pictures, paint_road


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_a_function_of_seed_part_and_number(kind):
    few, more, other = (draw_pictures(kind, "train", count, seed) for count, seed in ((3, 1), (5, 1), (3, 2)))
    for name in few:
        if name != "names":
            assert (few[name] == more[name][:3]).all()
    assert (few["images"] != other["images"]).any()
    assert (few["images"] != draw_pictures(kind, "valid", 3, 1)["images"]).any()


def test_a_box_holds_the_thing_and_no_more():
    """What differs most from the wall lies within the box, and touches its sides."""
    made = draw_pictures("boxes", "train", 30, 0)
    touched = 0
    for image, (left, top, right, bottom) in zip(made["images"].astype(int), made["numbers"], strict=True):
        thing = np.zeros(BOXES, bool)
        thing[math.ceil(top * 48) : int(bottom * 48), math.ceil(left * 48) : int(right * 48)] = True
        middle = image[int((top + bottom) * 24), int((left + right) * 24)]
        alike = abs(image - middle).max(axis=2) < 40
        touched += alike[~thing].mean() < 0.12 < alike[thing].mean()
    assert touched >= 27


def test_shapes_have_a_label_at_each_pixel_and_edges_where_labels_change():
    made = draw_pictures("shapes", "train", 40, 0)
    assert made["masks"].shape == (40, *SHAPES)
    assert set(np.unique(made["masks"])) == {0, 1, 2, 3}
    steps = abs(np.diff(made["images"].astype(int), axis=2)).max(axis=3)
    change = np.diff(made["masks"].astype(int), axis=2) != 0
    assert steps[change].mean() > 3 * steps[~change].mean()


def test_a_road_in_the_mirror_is_steered_the_other_way():
    for seed in range(5):
        bend = [0.2, 0.4, 0.1 * seed]
        left, right = (paint_road(*(s * b for b in bend), np.random.default_rng(seed)) for s in (1, -1))
        assert left.answer == -right.answer
        assert abs(left.pixels.astype(float) - right.pixels[:, ::-1]).mean() < 11  # noise alone
        assert abs(left.pixels.astype(float) - right.pixels).mean() > 5  # the same noise, another road


def test_the_further_the_road_bends_the_larger_the_angle():
    made = [paint_road(0.0, 0.0, bend, np.random.default_rng(0)).answer.item() for bend in (-0.5, 0.0, 0.3, 0.8)]
    assert made == sorted(made)
    assert made[1] == 0
    assert 10 < draw_pictures("road", "train", 100, 0)["numbers"].std() < 25


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_writes_what_train_reads(kind, tmp_path, capsys):
    assert main(["data", "make", kind, str(tmp_path / "out"), "--count", "4", "--valid", "2", "--test", "2"]) == 0
    paths = capsys.readouterr().out.split()
    assert [path.rsplit("/")[-1] for path in paths] == ["train.npz", "valid.npz", "test.npz"]
    corpus = find_images(paths[:1])
    assert corpus.task() == ("segment" if kind == "shapes" else "regress")
    assert len(list(corpus.pixels(corpus.form()))) == 4
    assert main(["data", "make", kind, str(tmp_path / "out")]) == 2
    assert "[E-USE-03]" in capsys.readouterr().err


def test_an_unknown_kind_is_met_with_all_that_there_are(tmp_path, capsys):
    assert main(["data", "make", "roads", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "did you mean road?" in told
    assert "shapes" in told
    assert "dates" in told
    assert main(["data", "make", "road", str(tmp_path), "--count", "0"]) == 2
    assert "[E-USE-04]" in capsys.readouterr().err
