"""A text in, a vector for each word out: by the commands that people type."""

import json
import random
from functools import cache

import numpy as np
import pytest
import torch

import dragoman
from dragoman.cli import main
from dragoman.decoding.words import unit
from dragoman.jobs.events import Finished, Report, Validation
from dragoman.jobs.request import Request
from dragoman.jobs.start import start
from dragoman.runs.weights import read_tensors

ANIMALS, FRUITS = ("cat", "dog", "cow", "owl"), ("plum", "pear", "apple", "fig")
TRAINING = {"steps": 120, "validate_every": 60, "save_every": 30, "report_every": 10, "tokens_per_step": 128}
SIZE = {"width": 12, "sample": 0, "reach": 4}
FAMILIES = {
    "word2vec": {"model": SIZE, "training": {**TRAINING, "rate": 0.025}},
    "cbow": {"model": {**SIZE, "kind": "cbow"}, "training": {**TRAINING, "rate": 0.1}},
    "glove": {"model": {"width": 12, "reach": 4}, "training": {**TRAINING, "rate": 0.05}},
}


def sentences(count):
    """What eats and what is eaten: words of one kind keep the same company."""
    rng = random.Random(0)
    for _ in range(count):
        name, who = rng.choice(["Anna", "Otto"]), rng.choice(ANIMALS)
        yield f"The {who} runs and the {rng.choice(ANIMALS)} sleeps, says {name}."
        yield f"A ripe {rng.choice(FRUITS)} hangs beside a sweet {rng.choice(FRUITS)}!"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "farm.txt"
    path.write_text("\n".join(sentences(300)) + "\nseldom\n")
    return path


def request_for(text, out, name):
    return Request(
        corpora=[str(text)], out=str(out), family="glove" if name == "glove" else "word2vec", settings=FAMILIES[name]
    )


@pytest.fixture(scope="module")
def train_once(text, tmp_path_factory):
    """The run of a name, and what it told; trained when it is first asked for."""

    @cache
    def train(name):
        out = tmp_path_factory.mktemp("runs") / name
        return out, list(start(request_for(text, out, name), threads=1))

    return train


@pytest.fixture(params=FAMILIES)
def trained(request, train_once):
    return request.param, *train_once(request.param)


def test_words_of_one_kind_come_to_be_near_each_other(trained):
    _, out, events = trained
    reports = [e for e in events if isinstance(e, Report)]
    validations = [e for e in events if isinstance(e, Validation)]
    assert max(validation.nats_per_token for validation in validations) < 0.8 * reports[0].nats_per_token
    assert isinstance(events[-1], Finished)
    directions = unit(dragoman.load(out).embed([*ANIMALS, *FRUITS]))
    cosines = directions @ directions.T
    assert min(cosines[:4, :4].min(), cosines[4:, 4:].min()) > cosines[:4, 4:].max() + 0.3


def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(text, trained, tmp_path):
    name, done, _ = trained
    out = tmp_path / "run"
    events = start(request_for(text, out, name), threads=1)
    next(event for event in events if isinstance(event, Validation))  # at step 60; the last checkpoint is of step 30
    events.close()
    saved = {path.name for path in (out / "checkpoints" / "step-00000030").iterdir()}
    assert ("carried.safetensors" in saved, "optimizer.safetensors" in saved) == (name == "glove", False)
    list(start(request_for(text, out, name), threads=1))
    last = "checkpoints/step-00000120/weights.safetensors"
    a, b = read_tensors(done / last), read_tensors(out / last)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[key], b[key]) for key in a)


def test_a_run_may_start_from_vectors_that_were_learned_before(text, train_once, tmp_path):
    done, events = train_once("word2vec")
    settings = {"training": {**FAMILIES["word2vec"]["training"], "steps": 2, "rate": 1e-6}}
    request = Request(corpora=[str(text)], out=str(tmp_path / "more"), start_from=str(done), settings=settings)
    again = [e for e in start(request, threads=1) if isinstance(e, Validation)]
    best = min(e.nats_per_token for e in events if isinstance(e, Validation))
    assert again[-1].nats_per_token == pytest.approx(best, rel=1e-3)


# ── the command ───────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def run(train_once):
    return str(train_once("word2vec")[0])


def told(capsys, *words):
    assert main(["embed", *words, "--threads", "1"]) == 0
    return capsys.readouterr().out


def test_near_words_are_of_the_whole_vocabulary_by_cosine_and_with_their_dot_products(run, capsys):
    found = json.loads(told(capsys, run, "Cat", "--near", "3", "--json"))
    vectors = dragoman.load(run)
    cat = vectors.embed(["cat"])[0]
    others = [word for word in vectors.words if word != "cat"]
    cosines = {word: float(unit(vectors.embed([word]))[0] @ unit(cat[None])[0]) for word in others}
    best = sorted(others, key=lambda word: -cosines[word])[:3]
    assert [near["word"] for near in found["near"]] == best
    for near in found["near"]:
        assert near["cosine"] == pytest.approx(cosines[near["word"]], abs=1e-5)
        assert near["dot"] == pytest.approx(float(vectors.embed([near["word"]])[0] @ cat), abs=1e-4)
    header = told(capsys, run, "cat", "--near", "1").splitlines()[1]
    assert header.split() == ["cosine", "dot", "product", "word"]


def test_an_analogy_leaves_out_its_three_words(run, capsys):
    everything = len(dragoman.load(run).words)
    found = json.loads(told(capsys, run, "--analogy", "cat", "runs", "dog", "--near", "100", "--json"))
    words = [near["word"] for near in found["near"]]
    assert len(words) == everything - 3
    assert {"cat", "runs", "dog"}.isdisjoint(words)
    assert [near["cosine"] for near in found["near"]] == sorted(
        (near["cosine"] for near in found["near"]), reverse=True
    )


def test_a_text_is_the_mean_of_its_words(run, capsys):
    lines = told(capsys, run, "the cat", "the", "cat", "--json").splitlines()
    both, the, cat = (np.array(json.loads(line)["vector"]) for line in lines)
    np.testing.assert_allclose(both, (the + cat) / 2, atol=1e-5)


def test_mistakes_are_one_sentence(run, text, tmp_path, capsys):
    none = tmp_path / "none"
    short = tmp_path / "short.txt"
    short.write_text(" ".join(f"word{number}" for number in range(200)))
    fresh = ["--family", "word2vec", "--out", none]
    for words, code, said in [
        (["embed", run, "appel"], 3, "the word 'appel' is none of the"),
        (["embed", run, "appel"], 3, "did you mean apple?"),
        (["embed", run, "the qqq"], 3, "the word 'qqq'"),
        (["embed", run, "seldom"], 3, "too seldom"),
        (["embed", run, ""], 3, "holds no word"),
        (["embed", run, "cat", "--output", "x.csv"], 2, "x.npy"),
        (["embed", run, "cat", "--analogy", "cat", "dog", "owl"], 2, "leave out other texts"),
        (["train", short, *fresh], 3, "lower tokenizer.least_count"),
        (["train", text, *fresh, "--valid", short, "--steps", "5", "--dry-run"], 3, "nothing to validate with"),
        (["train", text, "--family", "glove", "--valid", text], 2, "leave out --valid"),
        (["train", text, *fresh, "--set", "training.optimizer=adam"], 2, "training.optimizer is not read"),
        (["train", text, *fresh, "--set", "model.reach=40"], 2, "model.reach = '40' cannot be"),
        (["train", text, *fresh, "--set", "tokenizer.kind=unigram"], 2, "set kind = words"),
        (["train", text, "--task", "embed", "--family", "bert"], 2, "--family word2vec or glove"),
        (["generate", run], 3, "use it with dragoman embed"),
    ]:
        assert main([str(word) for word in words]) == code
        assert said in capsys.readouterr().err
