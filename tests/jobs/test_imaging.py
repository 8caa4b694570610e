"""Images in, a model out that tells what is on them: by the commands that people type."""

import json
import struct

import numpy as np
import pytest
import torch
from PIL import Image

import dragoman
from dragoman.cli import main
from dragoman.errors import DataError, UsageError
from dragoman.images.generated import draw_pictures
from dragoman.images.index import ImageIndex
from dragoman.images.pixels import Form, Size
from dragoman.jobs.events import Finished, Validation
from dragoman.jobs.plan_images import epochs_for, evenly_cut, images_per_step, patch_for, plan_model
from dragoman.jobs.request import Request
from dragoman.jobs.start import start
from dragoman.runs.model import open_model
from dragoman.runs.weights import read_tensors, weights_of

FAST = ["--threads", "1", "--set", "training.images_per_step=32", "--set", "training.validate_every=20"]
SIZES = {
    "mlp": ["--set=model.width=32", "--set=training.rate=0.01"],
    "cnn": ["--set=model.width=8", "--set=model.hidden=32", "--set=training.rate=0.005"],
    "vit": [f"--set=model.{size}" for size in ("width=32", "heads=2", "layers=2", "hidden=48", "patch=4")]
    + ["--set=training.rate=0.005"],
}


def stripes(count, seed):
    """12 × 12 pixels with stripes across, down, or not at all."""
    random = np.random.default_rng(seed)
    images, labels = random.integers(60, 120, (count, 12, 12), dtype=np.uint8), np.arange(count) % 3
    for image, label in zip(images, labels.tolist(), strict=True):
        first = random.integers(3)
        if label == 1:
            image[first::3] += 120
        elif label == 2:
            image[:, first::3] += 120
    return images, labels


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for part, count in (("train", 400), ("test", 90)):
        images, labels = stripes(count, seed=len(part))
        for name, values in (("images-idx3", images), ("labels-idx1", labels.astype(np.uint8))):
            start = bytes([0, 0, 8, values.ndim]) + b"".join(struct.pack(">I", length) for length in values.shape)
            (folder / f"{part}-{name}-ubyte").write_bytes(start + values.tobytes())
    for kind in ("road", "shapes"):
        for part, count in (("train", 200), ("test", 40)):
            np.savez(folder / f"{kind}-{part}.npz", **draw_pictures(kind, part, count, 0))
    images, labels = stripes(60, seed=9)
    for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        path = folder / "by-class" / ("none", "across", "down")[label] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder


def train(here, corpus, out, *words):
    return main(["train", str(here / corpus), "--out", str(here / out), *FAST, *words])


@pytest.fixture(scope="module", params=SIZES)
def run(request, here):
    """A classifier of each family."""
    family, steps = request.param, "120" if request.param == "vit" else "60"
    words = ["--family", family, "--steps", steps, *SIZES[family]]
    assert train(here, "train-images-idx3-ubyte", family, *words) == 0
    return here / family


def test_every_family_learns_to_classify(run, here, capsys):
    assert main(["score", str(run), str(here / "test-images-idx3-ubyte"), "--json", "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["images"] == 90
    assert found["accuracy"] > 0.9
    assert found["interval"][0] < found["accuracy"] <= found["interval"][1]
    assert [one["label"] for one in found["classes"]] == ["0", "1", "2"]
    assert sum(map(sum, found["confusion"])) == 90


def test_a_line_for_each_image(run, here, capsys):
    files = sorted((here / "by-class").glob("*/*.png"))[:6]
    assert main(["classify", str(run), *map(str, files), "--threads", "1"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[2] for line in lines] == [str(file) for file in files]
    assert all(0 < float(line[1]) <= 1 for line in lines)
    right = {"none": "0", "across": "1", "down": "2"}
    assert sum(line[0] == right[file.parent.name] for line, file in zip(lines, files, strict=True)) >= 5
    (here / "list.txt").write_text("".join(f"{file}\n" for file in files))
    assert main(["classify", str(run), "--input", str(here / "list.txt"), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["label"] for one in found] == [line[0] for line in lines]
    assert sum(found[0]["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert main(["classify", str(run), str(here / "test-images-idx3-ubyte"), str(here / "by-class")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 150


def test_from_python_files_and_arrays_are_told_alike(run, here):
    model = dragoman.load(run)
    file = next((here / "by-class" / "down").glob("*.png"))
    pixels = np.asarray(Image.open(file))
    shown = [file, str(file), pixels, pixels[..., None].repeat(3, axis=2), pixels / 255]
    found = model.classify(shown)
    assert {one.label for one in found} == {found[0].label}
    assert all(one.probability == pytest.approx(found[0].probability, abs=1e-5) for one in found)
    assert model.classes == ("0", "1", "2")
    assert model.classify([]) == []


# ── numbers and masks ─────────────────────────────────────────────────────────────────────


def test_numbers_are_learned_from_pictures_of_roads(here, capsys):
    sizes = ["--set=model.width=8", "--set=model.hidden=32", "--set=training.rate=0.004"]
    assert train(here, "road-train.npz", "road", *sizes, "--steps", "120") == 0
    assert "angle (" in capsys.readouterr().err
    assert main(["score", str(here / "road"), str(here / "road-test.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [angle] = found["numbers"]
    assert angle["name"] == "angle"
    assert angle["r2_interval"][0] < found["r2"] < angle["r2_interval"][1]
    assert found["r2"] > 0.8
    assert main(["classify", str(here / "road"), str(here / "road-test.npz")]) == 0
    told = [float(line.split("\t")[0]) for line in capsys.readouterr().out.splitlines()]
    right = np.load(here / "road-test.npz")["numbers"][:, 0]
    assert np.corrcoef(told, right)[0, 1] > 0.9
    model = dragoman.load(here / "road")
    assert model.regress([np.load(here / "road-test.npz")["images"][0]])[0]["angle"] == pytest.approx(told[0], abs=1e-3)


def test_every_pixel_gets_a_label(here, capsys, tmp_path):
    sizes = ["--set=model.width=12", "--set=training.rate=0.01", "--set=model.stages=3"]
    assert train(here, "shapes-train.npz", "shapes", *sizes, "--steps", "40") == 0
    assert main(["score", str(here / "shapes"), str(here / "shapes-test.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["iou"]) == {"background", "circle", "square", "triangle"}
    assert found["iou"]["background"] > 0.7
    assert found["mean_iou"] == pytest.approx(np.mean(list(found["iou"].values())))
    picture = np.load(here / "shapes-test.npz")["images"][0]
    Image.fromarray(picture).resize((96, 60)).save(tmp_path / "a.png")
    assert main(["classify", str(here / "shapes"), str(tmp_path / "a.png"), "--output", str(tmp_path / "masks")]) == 0
    listed, path = capsys.readouterr().out.strip().split("\t")
    assert "background" in listed
    with Image.open(path) as mask:
        assert mask.size == (96, 60)
        assert set(np.unique(np.asarray(mask))) <= {0, 1, 2, 3}
    assert main(["classify", str(here / "shapes"), str(tmp_path / "a.png")]) == 2
    assert "say where with --output DIR [E-IMG-14]" in capsys.readouterr().err
    no_mask_is_written_over(here / "shapes", picture, tmp_path, capsys)


def no_mask_is_written_over(model, picture, folder, capsys):
    """Images of one name have a mask each, and none takes the place of a mask that was there."""
    files = [folder / part / "0.png" for part in ("bright", "dark")]
    for file, shown in zip(files, (picture, 255 - picture), strict=True):
        file.parent.mkdir()
        Image.fromarray(shown).save(file)
    words = ["classify", str(model), *map(str, files), "--output", str(folder / "both"), "--json"]
    assert main(words) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["mask"] for one in told] == [str(folder / "both" / f"{name}-0.png") for name in ("bright", "dark")]
    for one in told:
        with Image.open(one["mask"]) as mask:
            assert (np.asarray(mask) == 0).mean() == pytest.approx(one["shares"]["background"])
    assert main(words) == 2
    assert "bright-0.png is there already; remove it, or name another" in capsys.readouterr().err
    assert main([*words[:-2], str(files[0])]) == 2
    assert "is a file, and masks are written into a folder" in capsys.readouterr().err


def test_a_vit_and_an_mlp_take_the_other_heads(here):
    for family, corpus, told in (("vit", "shapes", "segment"), ("vit", "road", "regress"), ("mlp", "road", "regress")):
        out = f"{family}-{told}"
        sizes = [word for word in SIZES[family] if "patch" not in word]
        assert train(here, f"{corpus}-train.npz", out, "--family", family, "--steps", "2", *sizes) == 0
        assert open_model(here / out).task == told


# ── runs ──────────────────────────────────────────────────────────────────────────────────


def request_for(here, out, **changes):
    settings = {
        "model": {"width": 8, "hidden": 16},
        "training": {"steps": 24, "images_per_step": 32, "validate_every": 8, "save_every": 8},
        "images": {"valid": 40, "flip": True},
    }
    corpora = [str(here / "train-images-idx3-ubyte")]
    return Request(corpora=corpora, out=str(out), settings={**settings, **changes})


@pytest.fixture(scope="module")
def whole(here, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    return out, list(start(request_for(here, out), threads=1))


def test_images_tell_the_task_and_a_part_is_split_off(whole):
    out, events = whole
    assert isinstance(events[-1], Finished)
    validation = next(event for event in events if isinstance(event, Validation))
    assert {"accuracy", "macro_f1"} == validation.scores.keys()
    train, valid = ImageIndex(out / "data" / "train"), ImageIndex(out / "data" / "valid")
    assert len(train) + len(valid) == 400
    assert 20 < len(valid) < 60
    assert not {image.tobytes() for image in train.pixels} & {image.tobytes() for image in valid.pixels}
    about = json.loads((out / "model" / "config.json").read_text())
    assert about["model"]["family"] == "cnn"
    assert about["images"] == {"mean": list(train.mean), "deviation": list(train.deviation)}
    assert not (out / "model" / "tokenizer").exists()


def test_the_plan_says_how_images_are_moved(here, tmp_path, capsys):
    words = ["train", str(here / "train-images-idx3-ubyte"), "--out", str(tmp_path / "no"), "--dry-run", *FAST]
    assert main([*words, "--steps", "2"]) == 0
    told = capsys.readouterr().err
    assert "shifted by up to 1 pixels, not flipped" in told
    assert "2 of 32 images" in told
    assert "of 12x12, grey" in told
    assert not (tmp_path / "no").exists()


def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(here, whole, tmp_path):
    """Batch norm, shifts and flips included."""
    events = start(request_for(here, tmp_path / "halved"), threads=1)
    next(event for event in events if isinstance(event, Validation))
    events.close()
    list(start(request_for(here, tmp_path / "halved"), threads=1))
    last = "checkpoints/step-00000024/weights.safetensors"
    a, b = read_tensors(whole[0] / last), read_tensors(tmp_path / "halved" / last)
    assert any(name.endswith("running_var") for name in a)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert (whole[0] / "model" / "weights.safetensors").read_bytes() == (
        tmp_path / "halved" / "model" / "weights.safetensors"
    ).read_bytes()


def test_validation_images_may_be_given_and_those_that_are_learned_too_are_said(here, tmp_path, capsys):
    words = ["--steps", "2", *SIZES["cnn"], *FAST]
    train, test = here / "train-images-idx3-ubyte", here / "test-images-idx3-ubyte"
    assert main(["train", str(train), "--valid", str(test), "--out", str(tmp_path / "apart"), *words]) == 0
    told = capsys.readouterr().err
    assert "400 of 12x12, grey; 90 for validation" in told
    assert "also stand in" not in told
    assert main(["train", str(train), "--valid", str(train), "--out", str(tmp_path / "same"), *words]) == 0
    assert "400 training images also stand in the validation data" in capsys.readouterr().err
    assert main(["train", str(train), "--valid", str(here / "by-class"), "--out", str(tmp_path / "no"), *words]) == 3
    assert "[E-IMG-12]" in capsys.readouterr().err


def test_a_handful_of_images_is_split_too(tmp_path):
    images, labels = stripes(9, seed=3)
    np.savez(tmp_path / "few.npz", images=images, labels=labels)
    settings = {"model": {"width": 4, "hidden": 8}, "images": {"shift": 0}}
    run = dragoman.train(tmp_path / "few.npz", out=tmp_path / "run", steps=2, threads=1, settings=settings)
    assert run == tmp_path / "run"
    assert (len(ImageIndex(run / "data" / "train")), len(ImageIndex(run / "data" / "valid"))) == (8, 1)
    assert dragoman.load(run).classes == ("0", "1", "2")


def test_a_folder_that_changed_is_not_gone_on_with(here, tmp_path, capsys):
    import shutil

    shutil.copytree(here / "by-class", tmp_path / "pets")
    words = ["train", str(tmp_path / "pets"), "--out", str(tmp_path / "run"), *FAST, "--steps", "2", *SIZES["cnn"]]
    assert main(words) == 0
    assert main(words) == 0
    Image.new("L", (12, 12)).save(tmp_path / "pets" / "none" / "new.png")
    capsys.readouterr()
    assert main(words) == 3
    assert "[E-DATA-09]" in capsys.readouterr().err


def test_what_a_classifier_has_learned_is_the_start_of_another(here, whole, tmp_path, capsys):
    """With labels it knows it goes on as it is; with others its last layer is new, and the reader is not."""
    words = ["--from", str(whole[0]), "--steps", "1", *FAST, "--set", "training.rate=1e-9"]
    assert main(["train", str(here / "test-images-idx3-ubyte"), "--out", str(tmp_path / "same"), *words]) == 0
    old, same = open_model(whole[0]), open_model(tmp_path / "same")
    assert same.model.config == old.model.config
    assert same.about == old.about
    assert main(["train", str(here / "by-class"), "--out", str(tmp_path / "other"), *words]) == 0
    assert "its last layer is new" in capsys.readouterr().err
    other = open_model(tmp_path / "other")
    assert other.model.config.classes == ("across", "down", "none")
    assert other.about["images"] == old.about["images"]
    a, b = weights_of(old.model.reader), weights_of(other.model.reader)
    learned = [name for name in a if name.endswith(("weight", "bias"))]
    assert all(torch.allclose(a[name], b[name], atol=1e-5) for name in learned)


def test_a_corpus_of_mixed_sizes_is_resized_where_asked(here, tmp_path, capsys):
    for number, file in enumerate(sorted((here / "by-class").glob("*/*.png"))):
        path = tmp_path / "mixed" / file.parent.name / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(file) as image:
            image.resize((12 + number % 2, 12)).save(path)
    words = ["train", str(tmp_path / "mixed"), "--out", str(tmp_path / "run"), *FAST, "--steps", "2", *SIZES["cnn"]]
    assert main(words) == 3
    assert "--set images.size=12x12 resizes them [E-IMG-03]" in capsys.readouterr().err
    assert main([*words, "--set", "images.size=10x8"]) == 0
    assert open_model(tmp_path / "run").model.config.size == (8, 10)


# ── the plan ──────────────────────────────────────────────────────────────────────────────


def test_more_time_makes_a_larger_model():
    told = {"classes": ("a", "b")}
    for family in SIZES:
        request = Request(corpora=[], family=family)
        plans = [plan_model("classify", Form(1, 28, 28), told, request, 60_000, work) for work in (1e9, 1e14, 1e18)]
        widths = [config.products_per_token() for config in plans]
        assert widths == sorted(widths)
        assert widths[0] < widths[-1]


def test_patches_are_few_and_whole():
    sides = {(28, 28): 4, (32, 32): 4, (64, 48): 8, (7, 11): 1, (224, 224): 28}
    assert {size: patch_for(Form(1, *size)) for size in sides} == sides


def test_a_size_that_leaves_only_crumbs_as_patches_is_refused_with_one_near_it_that_does_not():
    for size in (Size(227, 225), Size(37, 31), Size(667, 1000)):
        request = Request(corpora=[], family="vit")
        with pytest.raises(UsageError, match=f"--set images.size={evenly_cut(size)} makes 64 of them or fewer"):
            plan_model("classify", Form(1, *size), {"classes": ("a", "b")}, request, 100, 1e9)
        better = evenly_cut(size)
        assert better.height * better.width <= 64 * patch_for(Form(1, *better)) ** 2
        assert max(abs(a / b - 1) for a, b in zip(size, better, strict=True)) < 0.1
        wanted = Request(corpora=[], family="vit", settings={"model": {"patch": 1}})
        assert plan_model("classify", Form(1, *size), {"classes": ("a", "b")}, wanted, 100, 1e9).patch == 1
    assert evenly_cut(Size(120, 160)) == (120, 160)


def test_small_corpora_are_seen_more_often_in_smaller_steps():
    assert [images_per_step("classify", images) for images in (10, 1000, 3000, 60_000)] == [16, 16, 32, 128]
    assert [images_per_step("segment", images) for images in (10, 60_000)] == [8, 16]  # each pixel teaches
    assert epochs_for("classify", "cnn", 60_000) < epochs_for("classify", "cnn", 1000) <= 100


# ── mistakes ──────────────────────────────────────────────────────────────────────────────

MISTAKES = {
    "a family of texts": (["train", "{idx}", "--family", "bert"], 2, "reads texts, and", "E-SET-02"),
    "no such family": (["train", "{idx}", "--family", "cnm"], 2, "did you mean cnn?", "E-SET-02"),
    "mlp of pixels": (["train", "{shapes}", "--family", "mlp"], 2, "not to segment", "E-SET-02"),
    "a single image": (["train", "{png}"], 2, "is a single image", "E-USE-01"),
    "a fixed size": (["train", "{idx}", "--set", "model.size=3"], 2, "model.size", "E-SET-01"),
    "a size": (["train", "{idx}", "--set", "images.size=big"], 2, "such as 64x48", "E-SET-01"),
    "no such setting": (["train", "{idx}", "--set", "images.flips=1"], 2, "did you mean images.flip?", "E-SET-01"),
    "unread settings": (["train", "{idx}", "--set", "tokenizer.kind=words"], 2, "is not read", "E-SET-06"),
    "flipped angles": (["train", "{road}", "--set", "images.flip=true"], 2, "has other numbers", "E-IMG-13"),
    "no numbers": (["train", "{idx}", "--task", "regress"], 3, "has labels and no numbers", "E-IMG-10"),
    "no masks": (["train", "{road}", "--task", "segment"], 3, "holds no array `masks`", "E-IMG-06"),
    "a text": (["classify", "{run}", "hello"], 3, "hello does not exist", "E-DATA-04"),
    "no image at all": (["classify", "{run}"], 2, "no images were given", "E-USE-01"),
    "masks of a classifier": (["classify", "{run}", "{png}", "--output", "m"], 2, "leave out --output", "E-IMG-14"),
    "a translator": (["translate", "{run}", "x"], 3, "learned to classify images; use it with dragoman", "E-RUN-10"),
    "vectors": (["embed", "{run}", "x"], 3, "has no vectors for texts", "E-RUN-10"),
    "unknown labels": (["score", "{run}", "{folder}"], 3, "which the model does not know (known: 0, 1, 2)", "E-IMG-12"),
    "a plot that is none": (["score", "{run}", "{idx}", "--plot", "x.gif"], 2, "neither .png nor .svg", "E-CLS-06"),
    "another family": (["train", "{idx}", "--from", "{run}", "--family", "mlp"], 2, "is of the family cnn", "E-USE-10"),
    "a missing file": (["train", "{idx}.npz"], 3, "does not exist", "E-DATA-04"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_one_line(mistake, here, whole, tmp_path, capsys):
    words, code, told, error = MISTAKES[mistake]
    names = {
        "idx": here / "train-images-idx3-ubyte", "road": here / "road-train.npz", "shapes": here / "shapes-train.npz",
        "png": next((here / "by-class" / "down").glob("*.png")), "run": whole[0], "folder": here / "by-class",
    }  # fmt: skip
    out = ["--out", str(tmp_path / "run")] if words[0] == "train" else []
    found = main([word.format(**names) for word in words] + out)
    said = capsys.readouterr().err.splitlines()[-1]
    assert (found, told in said, said.endswith(f"[{error}]")) == (code, True, True), said


def test_an_array_that_is_no_image_is_refused(whole):
    model = dragoman.load(whole[0])
    for array, words in ((np.zeros((4, 4, 2)), "shape"), (np.full((4, 4), 3.0), "up to 3"), (np.zeros(4), "shape")):
        with pytest.raises(DataError, match=words) as refusal:
            model.classify([array])
        assert refusal.value.id == "E-IMG-06"
