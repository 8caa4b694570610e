"""A text in, a writer of such texts out."""

import json
import math

import pytest
import torch

import dragoman
from dragoman.cli import main
from dragoman.decoding.sample import SampleConfig
from dragoman.errors import DataError, UsageError
from dragoman.evaluation.perplexity import perplexity
from dragoman.jobs.events import Finished, Report, Validation
from dragoman.jobs.request import Request
from dragoman.jobs.start import start
from dragoman.runs.weights import read_tensors
from dragoman.text.tokenizer import open_tokenizers

TEXT = "the cat sat on the mat.\nthe dog sat on the log.\n\na bird sang to the cat.\n" * 60
SMALL = {
    "tokenizer": {"kind": "characters"},
    "model": {"cell": "gru", "width": 24, "embedding": 16, "layers": 2, "dropout": 0.1},
    "training": {
        "steps": 40,
        "tokens_per_step": 128,
        "window": 16,
        "validate_every": 20,
        "save_every": 10,
        "rate": 0.01,
    },
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "rhyme.txt"
    path.write_text(TEXT)
    return path


def request_for(text, out, **changes):
    return Request(corpora=[str(text)], out=str(out), family="rnn", settings={**SMALL, **changes})


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "rhyme"
    return out, list(start(request_for(text, out), threads=1))


def test_a_lone_text_is_learned_by_writing_it(trained):
    out, events = trained
    reports = [e for e in events if isinstance(e, Report)]
    validations = [e for e in events if isinstance(e, Validation)]
    assert reports[-1].nats_per_token < 0.8 * reports[0].nats_per_token
    assert validations[-1].scores["perplexity"] == pytest.approx(math.exp(validations[-1].nats_per_token))
    assert isinstance(events[-1], Finished)
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert any("perplexity" in line for line in log)


def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(text, trained, tmp_path):
    """The state that goes on from window to window is part of the checkpoint."""
    out = tmp_path / "run"
    events = start(request_for(text, out), threads=1)
    for event in events:
        if isinstance(event, Validation):
            break  # at step 20; its checkpoint is not written yet, so the run goes on from step 10
    events.close()
    assert (out / "checkpoints" / "step-00000010" / "carried.safetensors").exists()
    list(start(request_for(text, out), threads=1))
    last = "checkpoints/step-00000040/weights.safetensors"
    a, b = read_tensors(trained[0] / last), read_tensors(out / last)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_it_writes_what_it_was_asked_to(trained):
    writer = dragoman.load(trained[0])
    one, two = (writer.generate("the ", tokens=30) for _ in range(2))
    assert one == two
    assert "".join(writer.stream("the ", tokens=30)) == one
    assert len(one) == 30  # a character a token
    assert set(one) <= set(TEXT)
    with pytest.raises(DataError, match="never seen"):
        writer.generate("Ω")


def test_perplexity_is_that_of_the_probabilities_one_by_one(trained):
    writer = dragoman.load(trained[0])
    lines = ["the cat sat", "", "on the log."]
    lines *= 30  # several windows: the state must go on from one to the next
    found = perplexity(writer.model, writer.tokenizer, lines)
    end = writer.tokenizer.special.end
    ids = [end]
    for line in writer.tokenizer.encode(lines):
        ids += [*line, end]
    log_p = writer.model(torch.tensor([ids[:-1]])).log_softmax(-1)[0]
    nats = -sum(log_p[t, ids[t + 1]].item() for t in range(len(ids) - 1)) / (len(ids) - 1)
    assert found.nats_per_token == pytest.approx(nats, rel=1e-5)
    assert (found.tokens, found.characters) == (len(ids) - 1, sum(map(len, lines)) + len(lines))
    assert found.per_token == pytest.approx(math.exp(nats), rel=1e-5)


def test_the_commands_work_on_it(trained, text, capsys):
    assert main(["generate", str(trained[0]), "--prompt", "the ", "--tokens", "12", "--json", "--threads", "1"]) == 0
    assert len(json.loads(capsys.readouterr().out)["text"]) == 12
    assert main(["generate", str(trained[0]), "--prompt", "the ", "--tokens", "12", "--threads", "1"]) == 0
    assert capsys.readouterr().out.startswith("the ")
    assert main(["score", str(trained[0]), str(text), "--json", "--threads", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] < 20


def test_mistakes_are_one_sentence(trained, text, tmp_path, capsys):
    assert main(["translate", str(trained[0]), "the cat"]) == 3
    assert "learned to write; use it with dragoman generate" in capsys.readouterr().err
    assert main(["generate", str(trained[0]), "--tokens", "0"]) == 2
    assert main(["generate", str(trained[0]), "--temperature", "0"]) == 2
    assert main(["generate", str(tmp_path / "none")]) == 3
    assert main(["train", str(tmp_path / "no.txt"), "--family", "rnn"]) == 3
    capsys.readouterr()
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    assert main(["train", str(empty), "--family", "rnn", "--out", str(tmp_path / "x")]) == 3
    assert "0 tokens to learn from" in capsys.readouterr().err
    assert (
        main(
            ["train", str(text), "--valid", str(empty), "--family", "rnn", "--steps", "2", "--out", str(tmp_path / "v")]
        )
        == 3
    )
    assert "0 to validate with" in capsys.readouterr().err
    assert main(["score", str(trained[0]), str(empty)]) == 3
    capsys.readouterr()
    assert main(["score", str(trained[0]), str(text), str(text)]) == 3
    assert f"use it so: dragoman score {trained[0]} TEXT [E-RUN-10]" in capsys.readouterr().err
    with pytest.raises(UsageError, match="learns to translate, not to write"):
        list(start(Request(corpora=[str(text)], task="write", family="transformer", out=str(tmp_path / "y"))))
    assert main(["generate", str(trained[0]), "--prompt", "\udcff"]) == 2
    assert main(["generate", str(trained[0]), "--prompt", "the Ω"]) == 3
    said = capsys.readouterr()
    assert "'Ω'" in said.err
    assert said.out == ""
    assert main(["generate", str(trained[0]), "--temperature", "inf"]) == 2
    assert main(["generate", str(trained[0]), "--temperature", "1e-40", "--seed", "9" * 30, "--tokens", "3"]) == 0
    both = ["train", str(text), "--family", "rnn", "--epochs", "1", "--minutes", "1"]
    assert main(both) == 2
    assert "--minutes and --epochs" in capsys.readouterr().err


def test_more_epochs_may_be_asked_for_later(text, tmp_path):
    settings = {**SMALL, "training": {"tokens_per_step": 128, "window": 16}}
    for epochs in (0.5, 1.0):
        request = Request(
            corpora=[str(text)], task="write", family="rnn", out=str(tmp_path / "run"), epochs=epochs, settings=settings
        )
        events = list(start(request, threads=1))
        [planned] = {event.steps for event in events if isinstance(event, Report)}
        assert isinstance(events[-1], Finished)
        assert events[-1].step == planned
        assert [e.epoch for e in events if isinstance(e, Report)][-1] == pytest.approx(epochs, abs=0.05)


def test_a_run_may_start_from_a_model_of_its_own_task_and_family(text, trained, tmp_path):
    training = {"training": {"steps": 4, "tokens_per_step": 128, "window": 16}}
    made = {"corpora": [str(text)], "start_from": str(trained[0]), "settings": training}
    events = list(start(Request(**made, out=str(tmp_path / "more")), threads=1))
    assert isinstance(events[-1], Finished)
    assert next(e for e in events if isinstance(e, Validation)).nats_per_token < 2.6  # it knows the text already
    for other in ({"family": "transformer"}, {"task": "translate"}):
        with pytest.raises(UsageError, match="leave out --task and --family"):
            list(start(Request(**made, **other, out=str(tmp_path / "other")), threads=1))


def test_white_space_comes_back(tmp_path):
    poem = ["def f(x):", "    return x  # twice", "", "\treturn  2 "] * 40
    (tmp_path / "code.txt").write_text("\n".join(poem) + "\n")
    for kind in ("unigram", "bpe", "characters"):
        tokenizer = {"kind": kind, "vocabulary": 60}
        request = request_for(tmp_path / "code.txt", tmp_path / kind, tokenizer=tokenizer)
        next(e for e in start(request, threads=1) if isinstance(e, Report))
        found = open_tokenizers(tmp_path / kind / "tokenizer").target
        assert [found.decode(ids) for ids in found.encode(poem)] == poem


@pytest.mark.parametrize("kind", ["unigram", "words"])
def test_other_tokens_than_characters(text, tmp_path, kind):
    tokenizer = {"kind": kind, "vocabulary": 60}
    out = tmp_path / kind
    list(start(request_for(text, out, tokenizer=tokenizer, training={**SMALL["training"], "steps": 6}), threads=1))
    written = dragoman.load(out).generate("the cat", tokens=20)
    assert "<" not in written


def test_each_cell_is_trained(text, tmp_path):
    for cell in ("rnn", "lstm"):
        model = {**SMALL["model"], "cell": cell}
        events = list(start(request_for(text, tmp_path / cell, model=model), threads=1))
        losses = [e.nats_per_token for e in events if isinstance(e, Report)]
        assert losses[-1] < losses[0]


def test_a_gpt_learns_and_writes_beyond_its_window(text, tmp_path, capsys):
    model = {"width": 32, "heads": 2, "layers": 2, "hidden": 64, "longest": 16, "dropout": 0.0}
    changes = {"model": model, "tokenizer": {"kind": "bytes", "vocabulary": 280}}
    request = request_for(text, tmp_path / "gpt", **changes).model_copy(update={"family": "gpt"})
    events = list(start(request, threads=1))
    losses = [e.nats_per_token for e in events if isinstance(e, Report)]
    assert losses[-1] < 0.8 * losses[0]
    writer = dragoman.load(tmp_path / "gpt")
    assert len(writer.generate("the cat " * 10, tokens=60)) > 30  # a prompt longer than the window, and a text too
    assert writer.generate("Ω", tokens=3) is not None  # bytes know every character
    tokens = len(writer.read("the cat " * 10))
    assert main(["generate", str(tmp_path / "gpt"), "--prompt", "the cat " * 10, "--tokens", "2"]) == 0
    said = f"the prompt has {tokens} tokens and this model looks back over 16; its last 8 are seen"
    assert capsys.readouterr().err == f"dragoman: {said}\n"
    assert main(["generate", str(tmp_path / "gpt"), "--prompt", "the cat", "--tokens", "2"]) == 0
    assert capsys.readouterr().err == ""


def test_a_stop_text_ends_it_and_is_not_written(trained):
    writer = dragoman.load(trained[0])
    whole = writer.generate("the ", tokens=120)
    assert "\n" in whole
    assert writer.generate("the ", tokens=120, stop="\n") == whole.partition("\n")[0]
    assert writer.generate("the ", tokens=120, stop="never written") == whole


def test_a_guard_against_repetition_makes_repeats_rarer(trained):
    writer = dragoman.load(trained[0])
    sharp = {"temperature": 0.01, "seed": 3}
    plain = writer.generate(tokens=60, sampling=SampleConfig(**sharp))
    guarded = writer.generate(tokens=60, sampling=SampleConfig(**sharp, repetition=3.0))
    assert len(set(guarded)) > len(set(plain))


def test_several_prompts_give_a_text_each(trained, tmp_path, capsys):
    file = tmp_path / "prompts"
    file.write_text("the cat\na bird\n")
    assert main(["generate", str(trained[0]), "--input", str(file), "--tokens", "5", "--json", "--threads", "1"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["prompt"] for one in told] == ["the cat", "a bird"]
    both = ["generate", str(trained[0]), "--input", str(file), "--prompt", "x"]
    assert main(both) == 2
