"""A text without labels: BERT learns to fill in what is hidden, T5 to restore it; and what they are then used for."""

import json

import numpy as np
import pytest
import torch

import dragoman
from dragoman.cli import main
from dragoman.decoding.embed import nearest
from dragoman.jobs.events import Finished, Report, Validation
from dragoman.jobs.open import load_embedder
from dragoman.jobs.request import Request
from dragoman.jobs.start import start
from dragoman.runs.weights import read_tensors

LINES = ["the cat sat on the mat", "the dog sat on the log", "a bird sang to the cat", "a fish swam to the dog"]
TRAINING = {"steps": 60, "tokens_per_step": 256, "validate_every": 30, "save_every": 15, "rate": 0.01}
BERT = {
    "tokenizer": {"kind": "words"},
    "model": {"width": 32, "heads": 2, "layers": 2, "hidden": 64, "longest": 34, "dropout": 0.0, "norm_first": True},
    "training": {**TRAINING, "tokens_per_step": 512, "steps": 300, "validate_every": 150, "save_every": 75},
}
T5 = {
    "tokenizer": {"kind": "words"},
    "model": {"width": 32, "heads": 2, "head_width": 16, "layers": 1, "hidden": 64, "dropout": 0.0},
    "training": {**TRAINING, "window": 30},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "animals.txt"
    path.write_text("\n".join(LINES * 60) + "\n\n")
    return path


def request_for(text, out, family, settings):
    return Request(corpora=[str(text)], out=str(out), family=family, settings=settings)


@pytest.fixture(scope="module")
def bert(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "bert"
    return out, list(start(request_for(text, out, "bert", BERT), threads=1))


@pytest.fixture(scope="module")
def t5(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "t5"
    return out, list(start(request_for(text, out, "t5", T5), threads=1))


@pytest.mark.parametrize("which", ["bert", "t5"])
def test_a_text_without_labels_is_learned(which, request):
    _, events = request.getfixturevalue(which)
    losses = [event.nats_per_token for event in events if isinstance(event, Report)]
    assert losses[-1] < 0.7 * losses[0]
    validation = [event for event in events if isinstance(event, Validation)][-1]
    assert validation.scores["perplexity"] < 12
    assert "<" in validation.samples[0].source  # the mark of what was hidden is shown


@pytest.mark.parametrize(("family", "settings"), [("bert", BERT), ("t5", T5)])
def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(text, tmp_path, request, family, settings):
    """What is hidden in batch k is a function of (seed, epoch, k), like the batch."""
    out = tmp_path / "run"
    events = start(request_for(text, out, family, settings), threads=1)
    next(event for event in events if isinstance(event, Validation))  # its checkpoint is not written yet
    events.close()
    list(start(request_for(text, out, family, settings), threads=1))
    last = f"checkpoints/step-{settings['training']['steps']:08}/weights.safetensors"
    a, b = read_tensors(request.getfixturevalue(family)[0] / last), read_tensors(out / last)
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_it_fills_in_what_is_hidden(bert, capsys):
    first, second = dragoman.load(bert[0]).fill("the cat [MASK] on the [MASK]", top=3)
    assert first[0].token == "sat"
    assert first[0].probability > first[1].probability > first[2].probability
    assert sum(candidate.probability for candidate in second) <= 1.0
    assert first[0].text.startswith("the cat sat on the ")
    assert main(["fill", str(bert[0]), "a [MASK] sang", "--top", "2", "--json", "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["place"] == 1
    assert len(found["candidates"]) == 2
    assert main(["fill", str(bert[0]), "a [MASK] sang", "--threads", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_vectors_are_of_length_one_and_the_same_alone_and_together(bert):
    embedder = load_embedder(bert[0])
    texts = ["the cat sat", "", "the dog sat on the log " * 30, "a bird"]  # one is longer than the model reads
    together = embedder.embed(texts)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-5)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(embedder.embed([text])[0], vector, atol=1e-5)
    assert embedder.embed([]).shape == (0, 32)


def test_a_text_is_nearest_to_one_like_it(bert):
    texts = ["the cat sat on the mat", "a fish swam to the dog", "the cat sat on the log"]
    near = nearest(load_embedder(bert[0]).embed(texts), 1)
    assert near[0][0][0] == 2
    assert near[2][0][0] == 0
    assert all(-1.001 <= cosine <= 1.001 for [(_, cosine)] in near)


def test_embed_writes_what_numpy_reads(bert, tmp_path, capsys, monkeypatch):
    out = tmp_path / "vectors.npy"
    assert main(["embed", str(bert[0]), "the cat", "the dog", "--output", str(out), "--threads", "1"]) == 0
    assert capsys.readouterr().out == ""
    assert np.load(out).shape == (2, 32)
    (tmp_path / "lines").write_text("the cat\u2028sat\nthe dog\n\na bird\n", encoding="utf-8")
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        assert main(["embed", str(bert[0]), "--near", "1", "--json", "--threads", "1"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.removesuffix("\n").split("\n")]
    assert [row["text"] for row in rows] == ["the cat\u2028sat", "the dog", "", "a bird"]  # only \n ends a line
    assert [len(row["near"]) for row in rows] == [1, 1, 1, 1]
    assert main(["embed", str(bert[0]), "the cat", "--json", "--threads", "1"]) == 0
    assert len(json.loads(capsys.readouterr().out)["vector"]) == 32


def test_a_text_alone_has_nothing_to_be_near_to(bert, capsys):
    assert main(["embed", str(bert[0]), "solo", "--near", "3", "--threads", "1"]) == 2
    assert capsys.readouterr() == (
        "", "dragoman: --near compares each text with the others, and 1 was given; give two or more [E-USE-12]\n"
    )  # fmt: skip


def test_a_restorer_goes_on_to_learn_from_pairs(t5, tmp_path):
    (tmp_path / "a.source").write_text("\n".join(LINES * 10) + "\n")
    (tmp_path / "a.target").write_text("\n".join(" ".join(line.split()[::-1]) for line in LINES * 10) + "\n")
    request = Request(
        corpora=[str(tmp_path / "a.source"), str(tmp_path / "a.target")], out=str(tmp_path / "run"),
        start_from=str(t5[0]), settings={"training": {"steps": 4, "tokens_per_step": 128}},
    )  # fmt: skip
    assert isinstance(list(start(request, threads=1))[-1], Finished)
    assert len(dragoman.load(tmp_path / "run").translate(LINES[:2])) == 2
    assert dragoman.load(t5[0]).translate(["the cat"])[0].text is not None


def test_mistakes_are_one_sentence(bert, t5, text, tmp_path, capsys):
    for words, code, said in [
        (["fill", bert[0], "the cat"], 2, "there is no [MASK]"),
        (["fill", bert[0], "the [MASK]", "--top", "0"], 2, "asks for nothing"),
        (["fill", bert[0], "[MASK] " * 40], 3, "reads 32 at most"),
        (["fill", t5[0], "the [MASK]"], 3, "learned to translate; use it with dragoman translate"),
        (["embed", t5[0], "the cat"], 3, "no vectors for texts"),
        (["embed", bert[0], "a", "--input", text], 2, "give one of them"),
        (["embed", bert[0], "a", "--output", "x.txt"], 2, "x.npy"),
        (["embed", bert[0], "--input", tmp_path / "none"], 3, "does not exist"),
        (["translate", bert[0], "the cat"], 3, "use it with dragoman fill"),
        (["generate", bert[0]], 3, "use it with dragoman fill"),
        (["train", text, "--task", "fill", "--family", "gpt"], 2, "not to fill"),
    ]:
        assert main([str(word) for word in words]) == code
        assert said in capsys.readouterr().err
