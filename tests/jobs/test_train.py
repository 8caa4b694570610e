"""A whole run: from files to a translator, stopped and gone on with, and every mistake in words."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

import dragoman
from dragoman.errors import DataError, Interrupted, UsageError
from dragoman.jobs import plan, shortlisting
from dragoman.jobs.events import Finished, Notice, Report, Validation
from dragoman.jobs.open import load
from dragoman.jobs.request import Request, gather_settings
from dragoman.jobs.signals import Stop
from dragoman.jobs.start import Planned, start
from dragoman.jobs.train import Meter
from dragoman.jobs.translating import find
from dragoman.runs.record import read_toml
from dragoman.runs.weights import read_tensors
from dragoman.text.generated import write_corpus
from dragoman.training.loop import Step

TINY = {
    "model": {"width": 32, "heads": 2, "layers": 1, "hidden": 48, "dropout": 0.1},
    "training": {"tokens_per_step": 512, "validate_every": 6, "save_every": 4, "report_every": 3, "warmup": 5},
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus("reverse", folder, count=1500, valid=60, test=40, seed=1)
    return folder


def request_for(corpus, out, steps=12, **changes):
    settings = {section: dict(values) for section, values in TINY.items()}
    settings["training"]["steps"] = steps
    fields = {
        "corpora": [str(corpus / "train.source"), str(corpus / "train.target")],
        "valid": [str(corpus / "valid.source"), str(corpus / "valid.target")],
        "out": str(out),
        "settings": settings,
        **changes,
    }
    return Request.read(fields, section="train")


def weights(run):
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return read_tensors(newest / "weights.safetensors")


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "whole"
    events = list(start(request_for(corpus, run)))
    return run, events


def test_a_run_tells_its_plan_its_steps_and_its_end(whole):
    run, events = whole
    kinds = [type(event) for event in events]
    assert kinds[0] is Planned
    assert kinds[-1] is Finished
    words = dict(events[0].lines)
    assert words["pairs"] == "1,500 kept, 0 dropped; 60 for validation"
    assert "words, one vocabulary for both sides" in words["tokens"]
    assert {"model", "training", "steps", "expected", "folder"} <= words.keys()
    assert [e.step for e in events if isinstance(e, Report)] == [3, 6, 9, 12]
    assert [e.step for e in events if isinstance(e, Validation)] == [6, 12]
    assert events[-1].run == run


def test_a_runs_folder_holds_what_the_surface_promises(whole):
    run, _ = whole
    for name in ("run.toml", "log.jsonl", "tokenizer/tokenizer.json", "model/config.json", "model/weights.safetensors",
                 "model/manifest.json", "model/tokenizer/tokenizer.json"):  # fmt: skip
        assert (run / name).is_file(), name
    newest = sorted((run / "checkpoints").iterdir())[-1]
    assert newest.name == "step-00000012"
    assert {p.name for p in newest.iterdir()} == {
        "weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json",
    }  # fmt: skip
    recorded = read_toml(run / "run.toml")
    assert recorded["training"]["steps"] == 12
    assert recorded["model"]["width"] == 32
    assert {len(file["sha256"]) for file in recorded["files"].values()} == {64}
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert {"report", "validation"} == {line["kind"] for line in lines}


def test_the_loss_falls_and_the_model_translates(whole):
    run, events = whole
    reports = [e for e in events if isinstance(e, Report)]
    assert reports[-1].nats_per_token < reports[0].nats_per_token
    [translation] = dragoman.load(run).translate(["a b c"])
    assert isinstance(translation.text, str)


def test_a_run_stopped_and_gone_on_with_ends_with_the_same_bits(corpus, whole, tmp_path):
    class EnoughError(Exception):
        pass

    def stop_at(step):
        for event in start(request_for(corpus, tmp_path / "run")):
            if isinstance(event, Report) and event.step == step:
                raise EnoughError

    with pytest.raises(EnoughError):
        stop_at(9)  # the newest checkpoint is of step 8
    events = list(start(request_for(corpus, tmp_path / "run")))
    assert Notice("going on from step 8 of 12") in events
    assert same(weights(tmp_path / "run"), weights(whole[0]))
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log if line["kind"] == "report"] == [3, 6, 9, 12]


def test_a_finished_run_says_so_and_goes_on_when_steps_are_raised(corpus, tmp_path):
    run = tmp_path / "run"
    list(start(request_for(corpus, run)))
    again = list(start(request_for(corpus, run)))
    assert any(isinstance(e, Notice) and "is finished (all 12 steps are done)" in e.sentence for e in again)
    more = list(start(request_for(corpus, run, steps=15)))
    assert isinstance(more[-1], Finished)
    assert more[-1].step == 15
    assert read_toml(run / "run.toml")["training"]["steps"] == 15


def test_fewer_steps_than_there_are_change_nothing(corpus, tmp_path):
    run = tmp_path / "run"
    list(start(request_for(corpus, run)))
    before = (run / "run.toml").read_bytes()
    again = list(start(request_for(corpus, run, steps=5)))
    said = [event.sentence for event in again if isinstance(event, Notice)]
    assert f"{run} has 12 steps already, and 5 were asked for; none is taken back" in said
    assert again[-1].step == 12
    assert "all 12 steps" in again[-1].reason
    assert (run / "run.toml").read_bytes() == before


def test_other_settings_are_refused_by_name(corpus, whole):
    run, _ = whole
    changed = {"settings": {**TINY, "model": {**TINY["model"], "width": 64}}}
    with pytest.raises(UsageError, match=r"was begun otherwise: model.width was 32 and is now 64.*--fresh"):
        list(start(request_for(corpus, run, **changed)))
    with pytest.raises(UsageError, match="seed was 1 and is now 2"):
        list(start(request_for(corpus, run, seed=2)))


def test_a_value_is_the_same_however_it_is_written(corpus, tmp_path):
    written = gather_settings(
        ["model.width=32", "model.heads=2", "model.layers=1", "model.hidden=48", "training.rate=1e-3",
         "training.steps=2", "tokenizer.special.pad=0", "tokenizer.joint=true"], None, {},
    )  # fmt: skip
    list(start(request_for(corpus, tmp_path / "run", settings=written)))
    asked = read_toml(tmp_path / "run" / "run.toml")["asked"]["settings"]
    assert (asked["model"]["width"], asked["training"]["rate"], asked["tokenizer"]["joint"]) == (32, 0.001, True)
    typed = {
        "model": {"width": 32, "heads": 2.0, "layers": 1, "hidden": 48},
        "training": {"rate": 0.001, "steps": 3},
        "tokenizer": {"special": {"pad": 0}, "joint": True},
    }
    events = list(start(request_for(corpus, tmp_path / "run", settings=typed)))
    assert Notice("going on from step 2 of 3") in events


def test_a_corpus_that_changed_is_refused(tmp_path):
    write_corpus("copy", tmp_path / "c", count=300, valid=20, test=5, seed=1)
    list(start(request_for(tmp_path / "c", tmp_path / "run", steps=2)))
    with (tmp_path / "c" / "train.source").open("a") as file:
        file.write("x\n")
    with (tmp_path / "c" / "train.target").open("a") as file:
        file.write("x\n")
    with pytest.raises(DataError, match=r"is not the file that .* was begun with"):
        list(start(request_for(tmp_path / "c", tmp_path / "run", steps=2)))


def test_fresh_moves_the_old_run_aside(corpus, tmp_path):
    run = tmp_path / "run"
    list(start(request_for(corpus, run, steps=2)))
    before = weights(run)
    events = list(start(request_for(corpus, run, steps=2, seed=5), fresh=True))
    assert Notice(f"what was in {run} is now in {tmp_path / 'run.old-1'}") in events
    assert same(weights(tmp_path / "run.old-1"), before)
    assert not same(weights(run), before)


def test_a_run_can_be_gone_on_with_from_another_folder(tmp_path, monkeypatch):
    write_corpus("copy", tmp_path / "c", count=300, valid=20, test=5, seed=1)
    monkeypatch.chdir(tmp_path / "c")
    list(start(request_for(Path(), tmp_path / "run", steps=2)))
    monkeypatch.chdir(tmp_path)
    events = list(start(request_for(Path("c"), tmp_path / "run", steps=3)))
    assert Notice("going on from step 2 of 3") in events


def test_what_a_kill_left_before_the_run_began_is_not_gone_on_with(corpus, tmp_path):
    run = tmp_path / "run"
    list(start(request_for(corpus, run, steps=2)))
    (run / ".begun").touch()  # as if a kill had come in the middle of --fresh
    (run / "run.toml").unlink()
    events = list(start(request_for(corpus, run, steps=2, seed=9)))
    assert Notice(f"what was in {run} is now in {tmp_path / 'run.old-1'}") in events
    assert not any(isinstance(e, Notice) and e.sentence.startswith("going on") for e in events)


def files_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("out", ["proj", "."], ids=["by name", "from inside"])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_persons_own_folders_are_neither_moved_nor_written_into(tmp_path, monkeypatch, out, fresh):
    proj = tmp_path / "proj"
    write_corpus("copy", proj / "data", count=40, valid=5, test=5, seed=1)
    (proj / "tokenizer").mkdir()
    (proj / "tokenizer" / "tokenizer.json").write_text("{}")
    (proj / "run.toml").write_text("[training]\nsteps = 3\n")  # their settings, and no run's
    monkeypatch.chdir(proj if out == "." else tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(UsageError, match=r"already holds run.toml, tokenizer, data, .* choose another --out"):
        list(start(request_for(proj / "data", out, valid=[]), fresh=fresh))
    with pytest.raises(UsageError, match=r"already holds run.toml"):
        list(start(request_for(proj / "data", out, valid=[]), dry_run=True))
    assert files_below(tmp_path) == before


def test_a_run_in_the_folder_one_stands_in_can_be_begun_anew(tmp_path, monkeypatch):
    write_corpus("copy", tmp_path / "c", count=300, valid=20, test=5, seed=1)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    list(start(request_for(tmp_path / "c", ".", steps=2)))
    events = list(start(request_for(tmp_path / "c", ".", steps=2, seed=5), fresh=True))
    assert Notice(f"what was in . is now in {tmp_path / 'here.old-1'}") in events
    assert (tmp_path / "here.old-1" / "run.toml").exists()
    assert not (tmp_path / "here" / ".begun").exists()


def test_what_the_new_run_reads_is_not_moved_aside(corpus, tmp_path):
    run = tmp_path / "run"
    list(start(request_for(corpus, run, steps=2)))
    (run / "data" / "more.de").write_text("ein Hund\n" * 20)
    (run / "data" / "more.en").write_text("a dog\n" * 20)
    files = [str(run / "data" / "more.de"), str(run / "data" / "more.en")]
    before = files_below(tmp_path)
    with pytest.raises(UsageError, match=r"data would be moved aside, and .*more.de is needed for this run"):
        list(start(request_for(corpus, run, corpora=files), fresh=True))
    assert files_below(tmp_path).keys() == before.keys()


def test_interruptions_do_not_change_the_model_that_comes_out(corpus, whole, tmp_path):
    """Stopped at steps 2 and 9, off the grid of planned checkpoints; the averaged model has the same bits."""
    run = tmp_path / "run"
    for enough in (2, 9):
        with pytest.raises(Interrupted):
            stop_after(enough, corpus, run)
    list(start(request_for(corpus, run)))
    assert same(weights(run), weights(whole[0]))
    model = "model/weights.safetensors"
    assert same(read_tensors(run / model), read_tensors(whole[0] / model))


def stop_after(step, corpus, run):
    """`start` with a stop of our own instead of a signal."""
    stop = Stop()
    with patch("dragoman.jobs.start.polite_stop", lambda: nullcontext(stop)):
        for event in start(request_for(corpus, run)):
            stop.asked = isinstance(event, Report) and event.step >= step


def test_a_full_disk_ends_with_74_and_one_line(corpus, tmp_path):
    """Files may not grow beyond 300 kB here: the checkpoint's weights do not fit."""
    arguments = ["train", "train.source", "train.target", "--steps", "3", "--out", str(tmp_path / "run"),
                 "--set", "model.width=128", "--set", "model.heads=4"]  # fmt: skip
    found = subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments], cwd=corpus, text=True, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
    )  # fmt: skip
    assert found.returncode == 74, found.stderr
    last = found.stderr.strip().split("\n")[-1]
    assert last.startswith("dragoman: ")
    assert last.endswith("[E-SAVE-01]")
    assert "what was saved before is intact" in last


def test_a_dry_run_plans_and_leaves_nothing(corpus, tmp_path):
    events = list(start(request_for(corpus, tmp_path / "run"), dry_run=True))
    assert [type(event) for event in events] == [Planned]
    assert list(tmp_path.iterdir()) == []


def test_without_validation_files_a_part_is_split_off(corpus, tmp_path):
    events = list(start(request_for(corpus, tmp_path / "run", steps=2, valid=[])))
    words = dict(events[0].lines)
    assert "split off by a hash of the source" in words["pairs"]
    texts = json.loads((tmp_path / "run" / "data" / "valid.json").read_text())
    assert 100 < len(texts) < 200  # a tenth at most
    assert len(dragoman_index(tmp_path / "run")) == 1500 - len(texts)


def dragoman_index(run):
    from dragoman.text.index import PairIndex

    return PairIndex(run / "data" / "train")


def test_dropped_pairs_are_counted_with_a_reason_each(tmp_path):
    rows = [f"a b {n}\tb a {n}" for n in range(100)]
    (tmp_path / "v.tsv").write_text("\n".join(rows[:20]) + "\n")
    (tmp_path / "c.tsv").write_text("\n".join([*rows, "x\t", "\ty", " ".join("a" * 400) + "\tq"]) + "\n")
    settings = {**TINY, "training": {"steps": 1}}
    files = {"corpora": [str(tmp_path / "c.tsv")], "valid": [str(tmp_path / "v.tsv")], "out": str(tmp_path / "run")}
    events = list(start(Request(**files, settings=settings)))
    said = [event.sentence for event in events if isinstance(event, Notice)]
    assert "2 pairs have an empty side (first: line 101); dropped as pairs" in said
    assert "1 pair has more than 256 tokens on a side (first: line 103); dropped as pairs" in said
    assert "20 training pairs have a source that also stands in the validation data" in said
    planned = next(event for event in events if isinstance(event, Planned))
    assert dict(planned.lines)["pairs"] == "100 kept, 3 dropped; 20 for validation"


@pytest.mark.parametrize("names", [("v.de", "v.en"), ("v1.txt", "v2.txt")], ids=["by names", "by letters"])
def test_validation_files_the_other_way_round_are_refused(tmp_path, names):
    files = {"t.de": "ein Hund läuft im Schnee", "t.en": "a dog runs in the snow"}
    files |= {names[0]: "eine Katze läuft im Haus", names[1]: "a cat runs in the house"}
    for name, line in files.items():
        (tmp_path / name).write_text(f"{line}\n" * 50)
    train, valid = ([str(tmp_path / name) for name in pair] for pair in (("t.de", "t.en"), names))
    turned = request_for(tmp_path, tmp_path / "run", corpora=train, valid=valid[::-1])
    with pytest.raises(DataError, match=r"is the other way round than the training data \(.*t.en, de → en\)"):
        list(start(turned, dry_run=True))
    right = request_for(tmp_path, tmp_path / "run", corpora=train, valid=valid, steps=2)
    assert ("direction", "de → en") in next(e for e in start(right, dry_run=True) if isinstance(e, Planned)).lines


def test_keys_in_another_order_validate_the_same_direction(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"de": "ein Hund läuft", "en": "a dog runs"}\n' * 50)
    (tmp_path / "v.jsonl").write_text('{"en": "a cat runs", "de": "eine Katze läuft"}\n' * 5)
    request = request_for(
        tmp_path, tmp_path / "run", corpora=[str(tmp_path / "t.jsonl")], valid=[str(tmp_path / "v.jsonl")]
    )
    assert next(find(request).valid.pairs()) == ("eine Katze läuft", "a cat runs")


def lines_of(folder, *files):
    for name, text in files:
        (folder / name).write_bytes(text.encode())
    return [str(folder / name) for name, _ in files]


def vocabulary_of(corpus, out, **tokenizer):
    events = start(request_for(corpus, out, settings={"tokenizer": tokenizer, "training": {"steps": 1}}), dry_run=True)
    return [event.sentence for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize("kind", ["unigram", "bpe", "bytes"])
def test_subwords_that_cannot_be_had_are_told(corpus, tmp_path, kind):
    said = vocabulary_of(corpus, tmp_path / "run", kind=kind, vocabulary=50_000)
    assert any(sentence.startswith("50,000 subwords were asked for, and the text gives ") for sentence in said)
    with pytest.raises(UsageError, match=r"tokenizer.vocabulary = 5 is too small for the letters of this text"):
        vocabulary_of(corpus, tmp_path / "run", kind=kind, vocabulary=5)


def test_a_number_of_subwords_is_not_read_for_words(corpus, tmp_path):
    said = vocabulary_of(corpus, tmp_path / "run", kind="words", vocabulary=50)
    assert "tokenizer.vocabulary = 50 is about subwords, and these tokens are words" in said


def test_why_no_pair_is_left_is_said_with_the_way_out(tmp_path):
    files = lines_of(tmp_path, ("a.de", "a b c d e\n" * 40), ("a.en", "f g h i k\n" * 39 + "\n"))
    settings = {"tokenizer": {"kind": "characters"}, "data": {"longest": 3}}
    request = request_for(tmp_path, tmp_path / "run", corpora=files, valid=files, settings=settings)
    with pytest.raises(DataError) as caught:
        list(start(request))
    assert caught.value.sentence == (
        f"{files[0]}, {files[1]}: no pair is left to validate with: 1 pair has an empty side (first: line 40); "
        "39 pairs have more than 3 tokens on a side (first: line 1); raise the limit, as by "
        "--set data.longest=12, or give --valid files"
    )


@pytest.mark.parametrize("pairs", [2, 3, 10])
def test_of_a_few_pairs_one_validates(tmp_path, pairs):
    rows = [f"{n} {n + 1} {n + 2}" for n in range(40, 40 + pairs)]
    files = lines_of(tmp_path, ("a.x", "\n".join(rows)), ("a.y", "\n".join(row[::-1] for row in rows)))
    events = start(request_for(tmp_path, tmp_path / "run", corpora=files, valid=[], steps=1), dry_run=True)
    words = dict(next(e for e in events if isinstance(e, Planned)).lines)["pairs"]
    assert words == f"{pairs - 1} kept, 0 dropped; 1 for validation (split off by a hash of the source)"


def test_lines_that_end_as_on_an_old_macintosh_are_named_with_the_way_out(tmp_path):
    files = lines_of(tmp_path, ("mac.de", "ein Hund\reine Katze\r"), ("mac.en", "a dog\ra cat\r"))
    with pytest.raises(DataError) as caught:
        list(start(request_for(tmp_path, tmp_path / "run", corpora=files, valid=[])))
    way = f"{files[0]} has lines that end in CR alone. Convert: tr '\\r' '\\n' < {files[0]} > NEW."
    assert caught.value.sentence.startswith(f"{files[0]}, {files[1]}: 1 pair with text on both sides, and two are the")
    assert way in caught.value.sentence
    files[1:] = lines_of(tmp_path, ("unix.en", "a dog\na cat\n"))
    with pytest.raises(DataError, match="has 1 lines") as caught:
        list(start(request_for(tmp_path, tmp_path / "run", corpora=files, valid=[])))
    assert way in caught.value.sentence


def test_what_is_odd_in_the_files_is_told(tmp_path):
    """Both sides alike, and bytes that are no text; of a text that keeps its white space they are said to stay."""
    rows = [f"a b {n}" for n in range(100)]
    text = "\ufeff" + "\r\n".join([*rows, "a\0b", "a\u2028b"]) + "\r\n"
    for name in ("s", "t", "text.txt"):
        (tmp_path / name).write_bytes(text.encode())
    settings = {**TINY, "training": {"steps": 1}}
    files = [str(tmp_path / "s"), str(tmp_path / "t")]
    events = start(Request(corpora=files, out=str(tmp_path / "run"), settings=settings), dry_run=True)
    said = [event.sentence for event in events if isinstance(event, Notice)]
    assert "100% of the pairs have equal sides; was a file given twice, or is the text untranslated?" in said
    assert f"{files[0]} has 1 NUL characters (first: line 101). They are left out" in said
    assert f"{files[1]} has 102 lines that end in CR LF (first: line 1). The CR is left out" in said
    assert f"{files[0]} has 1 byte order marks (first: line 1). They are left out" in said
    assert any("1 line separators (U+2028) (first: line 102)" in sentence for sentence in said)
    lone = Request(corpora=[str(tmp_path / "text.txt")], task="write", family="rnn", out=str(tmp_path / "more"),
                   settings={"model": {"width": 16, "embedding": 16}, "training": {"steps": 1}})  # fmt: skip
    said = [event.sentence for event in start(lone, dry_run=True) if isinstance(event, Notice)]
    assert f"{tmp_path / 'text.txt'} has 1 NUL characters (first: line 101). They are learned as they stand" in said


def test_a_few_equal_sides_are_not_told(tmp_path):
    (tmp_path / "c.tsv").write_text("".join(f"a b {n}\tb a {n}\n" for n in range(60)) + "Anna\tAnna\n" * 20)
    settings = {**TINY, "training": {"steps": 1}}
    events = start(Request(corpora=[str(tmp_path / "c.tsv")], settings=settings), dry_run=True)
    assert not any("equal sides" in event.sentence for event in events if isinstance(event, Notice))


def test_a_corpus_of_empty_lines_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.jobs.prepare.EARLY", 100)
    for side in ("de", "en"):
        (tmp_path / f"a.{side}").write_text("\n" * 1000)
    request = Request(corpora=[str(tmp_path / "a.de"), str(tmp_path / "a.en")], out=str(tmp_path / "run"))
    with pytest.raises(DataError, match="100 of 100 pairs have an empty side"):
        list(start(request))


def test_too_many_empty_sides_stop_before_training(tmp_path):
    (tmp_path / "c.tsv").write_text("a\tb\n" * 8 + "a\t\n" * 2)
    with pytest.raises(DataError, match=r"2 of 10 pairs have an empty side \(first: line 9\), more than 5%"):
        list(start(Request(corpora=[str(tmp_path / "c.tsv")], out=str(tmp_path / "run"))))


def test_a_model_can_start_from_anothers_weights(corpus, whole, tmp_path):
    settings = {"training": {**TINY["training"], "steps": 1}}
    request = request_for(corpus, tmp_path / "run", start_from=str(whole[0]), settings=settings)
    [report] = [e for e in start(request) if isinstance(e, Report)]
    first = next(e for e in whole[1] if isinstance(e, Report))
    assert report.nats_per_token < first.nats_per_token
    assert report.step == 1


def test_the_python_call_trains_and_loads(corpus, tmp_path):
    run = dragoman.train(
        corpus / "train.source", corpus / "train.target", valid=(corpus / "valid.source", corpus / "valid.target"),
        out=tmp_path / "run", steps=2, settings=TINY,
    )  # fmt: skip
    assert run == tmp_path / "run"
    assert len(dragoman.load(run).translate(["a b", "c"])) == 2
    files = corpus / "train.source", corpus / "train.target"
    more = dragoman.train(
        *files, out=tmp_path / "more", start_from=run, steps=1, settings={"training": TINY["training"]}
    )
    assert read_toml(more / "run.toml")["asked"]["start_from"] == str(run)


def test_steps_give_the_same_plan_on_a_machine_that_is_a_thousand_times_slower(corpus, tmp_path, monkeypatch):
    def planned(speed, validation):
        monkeypatch.setattr(plan, "measure_machine", lambda: speed)
        monkeypatch.setattr("dragoman.jobs.start.time_validation", lambda _: validation)
        request = request_for(corpus, tmp_path / "run", settings={"training": {"steps": 30}})
        lines = dict(next(e for e in start(request, dry_run=True) if isinstance(e, Planned)).lines)
        return [lines[name] for name in ("model", "training", "steps")]

    assert planned(1e8, 100.0) == planned(1e11, 0.1)


def test_minutes_are_a_real_budget(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "run", minutes=0.2, settings={"model": TINY["model"]})
    began = time.monotonic()
    events = list(start(request))
    seconds = time.monotonic() - began
    assert isinstance(events[-1], Finished)
    assert events[-1].step == read_toml(tmp_path / "run" / "run.toml")["training"]["steps"] > 5
    assert 5 < seconds < 24  # twelve asked for; a loaded machine may take twice as long


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_saves_and_exits_with_130(corpus, tmp_path, number):
    arguments = ["train", "train.source", "train.target", "--valid", "valid.source", "valid.target", "--steps", "5000",
                 "--out", str(tmp_path / "run"), "--json", "--set", "model.width=32", "--set", "model.heads=2",
                 "--set", "training.report_every=1"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", *arguments], cwd=corpus, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    with process:
        for line in process.stdout:
            if json.loads(line)["event"] == "report":
                break
        process.send_signal(number)
        process.stdout.read()
        error = process.stderr.read()
    assert process.returncode == 130
    assert "and saved; the same command goes on [E-RUN-07]" in error
    newest = sorted(Path(tmp_path / "run" / "checkpoints").iterdir())[-1]
    assert int(newest.name[5:]) >= 1


def test_what_int8_costs_is_told_once_and_saved_with_the_model(corpus, tmp_path):
    out = tmp_path / "run"
    first = [e.sentence for e in start(request_for(corpus, out)) if isinstance(e, Notice)]
    assert [sentence for sentence in first if sentence.startswith("in int8 it scores BLEU")]
    known = json.loads((out / "model" / "config.json").read_text(encoding="utf-8"))["int8"]
    assert known.keys() == {"sentences", "float32", "int8"}
    again = [e.sentence for e in start(request_for(corpus, out)) if isinstance(e, Notice)]
    assert not [sentence for sentence in again if sentence.startswith("in int8")]


def test_a_shortlist_is_learned_once_told_and_used(corpus, tmp_path, monkeypatch):
    out = tmp_path / "run"
    few = [e.sentence for e in start(request_for(corpus, tmp_path / "few")) if isinstance(e, Notice)]
    assert not [sentence for sentence in few if "--shortlist" in sentence]  # so few tokens are scored in no time
    monkeypatch.setattr(shortlisting, "WORTH", 1)
    first = [e.sentence for e in start(request_for(corpus, out)) if isinstance(e, Notice)]
    [told] = [sentence for sentence in first if sentence.startswith("with --shortlist it chooses among")]
    known = json.loads((out / "model" / "config.json").read_text(encoding="utf-8"))["shortlist"]
    assert known.keys() == {"sentences", "changed", "tokens", "bleu"}
    assert f"{known['changed']:.1%} of {known['sentences']:,} validation sentences come out otherwise" in told
    again = [e.sentence for e in start(request_for(corpus, out)) if isinstance(e, Notice)]
    assert not [sentence for sentence in again if "--shortlist" in sentence]
    assert len(load(out).translate(["a b", "c"], shortlist=True)) == 2


def test_a_report_tells_the_mean_of_all_tokens_since_the_one_before():
    """Of steps that were applied: one that was refused has no loss to speak of."""
    meter = Meter(0.0)
    for nats, tokens, applied in ((2.0, 10, True), (5.0, 30, True), (float("nan"), 7, False)):
        meter.count(Step(1, nats, tokens, 1.0, applied))
    assert meter.nats_per_token() == pytest.approx((2 * 10 + 5 * 30) / 40)
    meter.begin_anew()
    meter.count(Step(2, 1.5, 3, 1.0, True))
    assert meter.nats_per_token() == 1.5


def test_files_of_equal_length_that_drift_apart_are_told_before_training(tmp_path):
    """A line is lost on one side, another one later on the other: the counts agree, and the pairs between do not."""
    write_corpus("numbers", tmp_path, count=1200, valid=20, test=20, seed=2)
    source, target = (tmp_path / f"train.{side}" for side in ("source", "target"))
    request = Request(
        corpora=[str(source), str(target)], out=str(tmp_path / "run"), settings={**TINY, "training": {"steps": 1}}
    )

    def told():
        return [
            e.sentence for e in start(request, dry_run=True) if isinstance(e, Notice) and "drift apart" in e.sentence
        ]

    assert told() == []
    lines = source.read_text().split("\n")
    source.write_text("\n".join([*lines[:300], *lines[301:-1], "acht", ""]))
    [said] = told()
    assert "near line" in said
    assert f"dragoman data check {source} {target}" in said
    near = int(said.partition("near line ")[2].partition(",")[0])
    assert abs(near - 301) < 40
