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


# ── numbers and masks ─────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Squares with a bright square on them: where it is, as numbers or pixel by pixel; and images of an odd size."""
    folder, random = tmp_path_factory.mktemp("others"), np.random.default_rng(2)
    for part, count in (("train", 160), ("valid", 20), ("test", 30)):
        images = random.integers(0, 90, (count, 8, 8)).astype(np.uint8)
        places, masks = random.integers(0, 5, (count, 2)), np.zeros((count, 8, 8), np.uint8)
        for image, mask, (down, right) in zip(images, masks, places, strict=True):
            image[down : down + 4, right : right + 4] += 60
            mask[down : down + 4, right : right + 4] = 7
        np.savez(folder / f"regress-{part}.npz", images=images, numbers=places, names=["down", "right"])
        np.savez(folder / f"segment-{part}.npz", images=images, masks=masks)
    np.savez(folder / "one-number.npz", images=images, numbers=places[:, 0])
    odd = random.integers(0, 255, (20, 37, 31)).astype(np.uint8)
    np.savez(folder / "odd.npz", images=odd, labels=np.arange(20) % 2)
    return folder


MODELS = {
    "regress": "mlp:width=8,cnn+batch-norm:width=4:hidden=8",
    "segment": "cnn:width=4,vit:width=8:heads=1:hidden=8",
}


@pytest.fixture(scope="module", params=MODELS)
def whole(request, others, tmp_path_factory):
    task, out = request.param, tmp_path_factory.mktemp("compared") / "out"
    words = ["compare", str(others / f"{task}-train.npz")]
    words += [word for part in ("valid", "test") for word in (f"--{part}", str(others / f"{task}-{part}.npz"))]
    words += ["--models", MODELS[task], "--out", str(out), "--epochs", "2", "--threads", "1"]
    assert main(words) == 0
    return task, out, words


def test_models_of_numbers_and_of_masks_have_the_scores_that_score_gives_them(whole, others, capsys):
    task, out, _ = whole
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["task"] == task
    capsys.readouterr()
    for one in report["models"]:
        main(["score", str(out / one["trained"]["run"]), str(others / f"{task}-test.npz"), "--json", "--threads", "1"])
        scored, (first, second) = json.loads(capsys.readouterr().out), one["measured"]["scores"]
        low, high = one["measured"]["interval"]
        if task == "regress":
            assert [first["value"], second["value"]] == pytest.approx([scored["r2"], scored["mean_error"]])
            assert [each["r2_interval"] for each in one["measured"]["each"]] == [
                pytest.approx(each["r2_interval"]) for each in scored["numbers"]
            ]
            assert low < first["value"] < high
        else:
            shares = [100 * scored["mean_iou"], 100 * scored["pixel_accuracy"]]
            assert [first["value"], second["value"]] == pytest.approx(shares)
            assert one["measured"]["iou"] == pytest.approx(scored["iou"])
            assert [low, high] == pytest.approx(scored["interval"])
            assert 100 * low <= first["value"] <= 100 * high + 1e-9
    [[test]] = [pair["tests"] for pair in report["neighbours"]]
    assert 0 < test["p"] <= 1
    assert [test["first"], test["second"]] == pytest.approx(
        [one["measured"]["scores"][0]["value"] for one in report["models"]]
    )


def test_the_page_and_the_text_have_their_tables_and_plots(whole):
    task, out, _ = whole
    text, page = (out / "report.md").read_text(), (out / "report.html").read_text()
    own = ("R²", "By number", "right") if task == "regress" else ("mean IoU", "By label", "pixel accuracy")
    for words in (*own, "paired bootstrap over the images", "Where they differ", "What it took", "items/s"):
        assert words in text, words
        assert words in page, words
    assert page.count("<svg") == 2
    assert "No item of " in text


def test_they_are_told_again_without_training_or_measuring(whole, capsys):
    _, out, words = whole
    before = (out / "report.json").read_text()
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if json.loads(line)["event"] == "stage"]
    assert (out / "report.json").read_text() == before


@pytest.mark.parametrize(
    ("train", "test", "words", "code", "said"),
    [
        ("regress-train", "one-number", ["--models", "mlp"], 3, "has 1 numbers an image and the training data 2"),
        ("regress-train", "segment-test", ["--models", "mlp"], 3, "segment-test.npz holds no array `numbers`"),
        ("regress-train", "regress-test", ["--models", "mlp", "--task", "classify"], 3, "holds no array `labels`"),
        ("segment-train", "segment-test", ["--models", "mlp"], 2, "not to segment"),
        ("odd", "odd", ["--models", "mlp,vit"], 2, "--set images.size=30x35 makes 64 of them or fewer"),
        ("odd", "odd", ["--models", "mlp,vit:patch=5"], 2, "images of 31×37 cannot be cut into patches of 5×5"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_trained(others, tmp_path, train, test, words, code, said, capsys):
    files = [str(others / f"{train}.npz"), "--test", str(others / f"{test}.npz")]
    assert main(["compare", *files, *words, "--out", str(tmp_path / "out"), "--epochs", "1"]) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_numbers_and_masks_are_asked_of_images_alone(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("x\ty\n")
    files = [str(tmp_path / "a.txt"), "--test", str(tmp_path / "a.txt")]
    assert main(["compare", *files, "--task", "regress", "--models", "rnn", "--out", "o", "--epochs", "1"]) == 2
    assert "--task regress is for images, and" in capsys.readouterr().err
