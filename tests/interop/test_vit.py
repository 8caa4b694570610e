"""An imported ViT tells what the reference tells: the same logits, from the same bytes of an image."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from reference import differences, save, transformers
from safetensors.torch import load_file, save_file

import dragoman
from dragoman.cli import main
from dragoman.errors import DataError
from dragoman.interop.importing import import_folder
from dragoman.runs.model import open_model
from dragoman.runs.weights import weights_of

SHAPES = {
    "square": {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "image_size": 12, "patch_size": 4},
    "grey, relu": {
        "hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 1, "image_size": 8, "patch_size": 2,
        "num_channels": 1, "hidden_act": "relu",
    },
    "oblong, loose norms": {
        "hidden_size": 16, "num_attention_heads": 8, "num_hidden_layers": 3, "image_size": [8, 16], "patch_size": 8,
        "layer_norm_eps": 1e-3, "hidden_act": "gelu_new",
    },
}  # fmt: skip
LABELS = {0: "cat", 1: "dog", 2: "neither"}


def reference_of(kind, shape, **more):
    return kind(transformers.ViTConfig(intermediate_size=48, **shape, **more))


def bring_in(folder):
    said = []
    found = import_folder(folder, said.append)
    assert said == []
    return found.saved


def images_for(model):
    height, width = model.config.size
    return torch.randn(3, model.config.channels, height, width, generator=torch.Generator().manual_seed(1))


def gap(reference, model, pixels):
    with torch.inference_mode():
        return differences(model(pixels), reference(pixels)[0])


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", ["ViTForImageClassification", "ViTModel"])
def test_logits_and_states(kind, shape, tmp_path):
    labels = {"id2label": LABELS} if kind == "ViTForImageClassification" else {}
    reference = reference_of(getattr(transformers, kind), shape, **labels)
    assert reference.config._attn_implementation == "sdpa"
    model = bring_in(save(reference, tmp_path)).model
    pixels = images_for(model)
    assert gap(reference, model, pixels) <= 1e-4
    assert gap(reference.double(), model.double(), pixels.double()) <= 1e-10


@pytest.fixture
def folder(tmp_path):
    shape = SHAPES["square"]
    reference = reference_of(transformers.ViTForImageClassification, shape, id2label=LABELS)
    return save(reference, tmp_path / "theirs"), reference


PREPARED = {
    "usual": {},
    "imagenet": {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]},
    "bicubic": {"resample": 3},
    "not scaled": {"do_rescale": False, "image_mean": [120.0] * 3, "image_std": [60.0] * 3},
    "to two": {"rescale_factor": 2 / 255},
    "not normalised": {"do_normalize": False},
}


@pytest.mark.parametrize("settings", PREPARED.values(), ids=PREPARED)
def test_images_are_prepared_as_the_folder_says(folder, settings, tmp_path):
    """The reference prepares with Pillow, too; from the same bytes come the same probabilities."""
    theirs, reference = folder
    values = {"size": {"height": 12, "width": 12}, **settings}
    (theirs / "preprocessor_config.json").write_text(json.dumps(values))
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    kind = {2: Image.Resampling.BILINEAR, 3: Image.Resampling.BICUBIC}[settings.get("resample", 2)]
    small = np.asarray(Image.fromarray(pixels).resize((12, 12), kind)).astype(np.float64)
    scaled = small * (settings.get("rescale_factor", 1 / 255) if settings.get("do_rescale", True) else 1)
    if settings.get("do_normalize", True):
        mean, spread = settings.get("image_mean", [0.5] * 3), settings.get("image_std", [0.5] * 3)
        scaled = (scaled - mean) / spread
    with torch.inference_mode():
        wanted = reference(torch.from_numpy(scaled).float().permute(2, 0, 1)[None]).logits.softmax(-1)[0]
    [found] = dragoman.load(theirs).classify([tmp_path / "a.png"])
    assert list(found.probabilities) == ["cat", "dog", "neither"]
    np.testing.assert_allclose(list(found.probabilities.values()), wanted.numpy(), atol=1e-5)


def test_the_command_imports_classifies_and_looks(folder, tmp_path, capsys):
    theirs, _ = folder
    Image.new("RGB", (30, 20), (200, 10, 10)).save(tmp_path / "a.png")
    assert main(["import", str(theirs), str(tmp_path / "ours")]) == 0
    story = capsys.readouterr().out
    assert "ViTForImageClassification as a vit to classify: images of 12×12 in colour, 9 patches" in story
    told = []
    for model in (theirs, tmp_path / "ours"):
        assert main(["classify", str(model), str(tmp_path / "a.png"), "--threads", "1"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert main(["look", str(theirs), str(tmp_path / "a.png"), "--out", str(tmp_path / "a.html")]) == 0
    assert "block 2" in capsys.readouterr().out


def test_a_reader_alone_gives_vectors_and_is_a_start(tmp_path, capsys):
    reader = save(reference_of(transformers.ViTModel, SHAPES["square"]), tmp_path / "theirs")
    assert main(["import", str(reader), str(tmp_path / "ours")]) == 0
    assert "left out: the pooler" in capsys.readouterr().out
    model = dragoman.load(tmp_path / "ours")
    images = np.random.default_rng(0).integers(0, 256, (40, 12, 12, 3), dtype=np.uint8)
    vectors = model.embed(list(images[:3]))
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(40) % 2)
    words = ["train", str(tmp_path / "a.npz"), "--from", str(tmp_path / "ours"), "--out", str(tmp_path / "run")]
    assert main([*words, "--steps", "1", "--threads", "1", "--set", "training.rate=1e-9"]) == 0
    tuned, old = open_model(tmp_path / "run"), open_model(tmp_path / "ours")
    assert tuned.model.config.classes == ("0", "1")
    assert tuned.about["images"] == old.about["images"]
    a, b = weights_of(old.model.reader), weights_of(tuned.model.reader)
    assert all(torch.allclose(a[name], b[name], atol=1e-6) for name in a)


def test_images_are_embedded_by_a_reader_alone_and_it_says_that_it_can_tell_no_class(tmp_path, capsys):
    theirs = save(reference_of(transformers.ViTModel, SHAPES["square"]), tmp_path / "theirs")
    assert main(["import", str(theirs), str(tmp_path / "ours")]) == 0
    files = [tmp_path / f"{colour}.png" for colour in ("red", "maroon", "blue")]
    for file in files:
        Image.new("RGB", (30, 20), file.stem).save(file)
    names = [str(file) for file in files]
    capsys.readouterr()
    for model in (theirs, tmp_path / "ours"):
        assert main(["embed", str(model), *names, "--output", str(tmp_path / "x.npy")]) == 0
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), dragoman.load(model).embed(names))
        assert main(["embed", str(model), *names, "--near", "1", "--json"]) == 0
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [one["image"] for one in told] == names
        assert all(len(one["near"]) == 1 for one in told)
        for command in ("classify", "score"):
            assert main([command, str(model), str(tmp_path)]) == 3
            assert f"has no head to tell anything with; put one on it by dragoman train IMAGES --from {model}" in (
                capsys.readouterr().err
            )
    for words, code, said in [
        ([names[0], "--near", "1"], 2, "compares each image with the others, and 1 was given; give two or more"),
        ([names[0], "--output", "x.bin"], 2, "has those of images; name it x.npy"),
        (["--analogy", "a", "b", "c"], 3, "has vectors of images"),
    ]:
        assert main(["embed", str(tmp_path / "ours"), *words]) == code
        assert said in capsys.readouterr().err


# ── what does not fit ─────────────────────────────────────────────────────────────────────


def change(folder, name, **values):
    config = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
    (folder / name).write_text(json.dumps({**config, **values}))


def test_missing_and_left_over_tensors_are_named(folder):
    theirs, _ = folder
    weights = load_file(theirs / "model.safetensors")
    lost = weights.pop("vit.encoder.layer.1.layernorm_after.bias")
    save_file(weights, theirs / "model.safetensors")
    with pytest.raises(DataError, match=r"vit.encoder.layer.1.layernorm_after.bias is missing"):
        import_folder(theirs, print)
    save_file(
        {**weights, "vit.encoder.layer.1.layernorm_after.bias": lost, "odd": lost.clone()}, theirs / "model.safetensors"
    )
    with pytest.raises(DataError, match=r"odd \(32\) is left over"):
        import_folder(theirs, print)


def test_another_size_of_image_does_not_fit_the_positions(folder):
    theirs, _ = folder
    change(theirs, "config.json", image_size=16)
    with pytest.raises(DataError, match=r"position_embeddings gives \(10, 32\) and must give \(17, 32\)"):
        import_folder(theirs, print)


WRONG = {
    "no bias": ("config.json", {"qkv_bias": False}, "qkv_bias = False"),
    "several labels": ("config.json", {"problem_type": "multi_label_classification"}, "problem_type"),
    "patches": ("config.json", {"patch_size": [4, 2]}, "square ones"),
    "uneven": ("config.json", {"image_size": 13}, "cannot be cut into patches"),
    "cropped": ("preprocessor_config.json", {"do_center_crop": True}, "do_center_crop"),
    "hamming": ("preprocessor_config.json", {"resample": 5}, "resample = 5"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_settings_that_are_not_known(wrong, folder):
    name, values, words = WRONG[wrong]
    change(folder[0], name, **values)
    with pytest.raises(DataError, match=words) as refusal:
        import_folder(folder[0], print)
    assert refusal.value.id == "E-IMP-02"
