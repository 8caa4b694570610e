"""Models of images on equal terms: the task is told from the data, the rest is as for texts."""

import json

import numpy as np
import pytest

from dragoman.cli import main


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Squares that are bright on the left or on the right."""
    folder, random = tmp_path_factory.mktemp("images"), np.random.default_rng(1)
    for part, count in (("train", 240), ("valid", 40), ("test", 50)):
        labels = random.integers(0, 2, count)
        images = random.integers(0, 120, (count, 8, 8)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[:, 4 * label : 4 * label + 4] += 60
        np.savez(folder / f"{part}.npz", images=images, labels=labels)
    return folder


def arguments_for(files, out, *more, models="mlp:width=8,cnn+batch-norm:width=4:hidden=8"):
    return ["compare", str(files / "train.npz"), "--valid", str(files / "valid.npz"), "--test",
            str(files / "test.npz"), "--models", models, "--out", str(out), "--epochs", "2", "--threads", "1",
            *more]  # fmt: skip


def test_models_of_images_are_compared(files, tmp_path):
    out = tmp_path / "out"
    assert main(arguments_for(files, out)) == 0
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["task"] == "classify"
    assert report["tokenizer"] == ""
    assert report["batch"].endswith(" images")
    with np.load(files / "test.npz") as held:
        labels = [str(label) for label in held["labels"]]
    for one in report["models"]:
        given = ((out / one["trained"]["run"]).parent / "labels.txt").read_text().split()
        right = sum(a == b for a, b in zip(given, labels, strict=True))
        assert one["measured"]["scores"][0]["value"] == pytest.approx(100 * right / 50)
    text = (out / "report.md").read_text()
    assert "the same data, the same batches of" in text
    assert "test.npz" in text


def test_three_rates_of_an_image_model_share_their_shape(files, tmp_path):
    assert main(arguments_for(files, tmp_path / "out", "--rates", "3", models="mlp:width=8")) == 0
    [one] = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["models"]
    assert [run["rate"] / one["rates"][0]["rate"] for run in one["rates"]] == [1, 0.5, 2]
    assert len({run["steps"] for run in one["rates"]}) == 1


def test_a_model_of_texts_is_refused_for_images(files, tmp_path, capsys):
    assert main(arguments_for(files, tmp_path / "out", models="mlp,rnn")) == 2
    assert "reads texts" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
