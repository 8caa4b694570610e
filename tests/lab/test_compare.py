"""A whole comparison on a small generated corpus: fair, resumable, and told completely."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from dragoman.cli import main
from dragoman.lab.memory import keep, recall
from dragoman.lab.results import Curve, Sample
from dragoman.lab.stage import Stage
from dragoman.runs.record import read_toml
from dragoman.text.generated import write_corpus

SMALL, WIDE = "transformer:width=16", "transformer:width=24"
SETTINGS = ["model.heads=2", "model.layers=1", "model.hidden=32", "model.dropout=0.1", "training.tokens_per_step=256",
            "training.report_every=2", "training.validate_every=8", "training.save_every=4"]  # fmt: skip
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus("reverse", folder, count=600, valid=30, test=40, seed=1)
    for side in ("source", "target"):  # two test sentences that were trained on
        known = (folder / f"train.{side}").read_text().split("\n")[:2]
        with (folder / f"test.{side}").open("a") as file:
            file.write("\n".join(known) + "\n")
    return folder


def arguments_for(corpus, out, *more, models=f"{SMALL},{WIDE}", settings=SETTINGS):
    files = {
        part: [str(corpus / f"{part}.{side}") for side in ("source", "target")] for part in ("train", "valid", "test")
    }
    sets = [word for setting in settings for word in ("--set", setting)]
    return ["compare", *files["train"], "--valid", *files["valid"], "--test", *files["test"], "--models", models,
            "--out", str(out), "--epochs", "2", "--threads", "1", *sets, *more]  # fmt: skip


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "out"
    assert main(arguments_for(corpus, out)) == 0
    return out


@pytest.fixture(scope="module")
def report(whole):
    return json.loads((whole / "report.json").read_text(encoding="utf-8"))


# ── what comes out ────────────────────────────────────────────────────────────────────────


def test_the_folder_holds_reports_and_plots(whole):
    for name in ("report.md", "report.json", "report.html", "compare.json", "plots/losses.png", "plots/losses.svg",
                 "plots/lengths.png", "plots/lengths.svg", "plots/scores.png", "plots/scores.svg"):  # fmt: skip
        assert (whole / name).stat().st_size > 100, name
    assert (whole / "plots" / "scores.png").read_bytes().startswith(b"\x89PNG")


def test_the_report_has_every_figure_of_every_model(report):
    assert [one["name"] for one in report["models"]] == [SMALL, WIDE]
    for one in report["models"]:
        trained, measured = one["trained"], one["measured"]
        assert [score["name"] for score in measured["scores"]] == ["BLEU", "chrF2", "BLEU lower-cased"]
        assert all(score["margin"] is not None and "version:" in score["signature"] for score in measured["scores"])
        assert sum(bucket["sentences"] for bucket in measured["by_length"]) == 42
        assert all({"words", "bleu", "chrf"} <= bucket.keys() for bucket in measured["by_length"])
        assert trained["tokens_per_second"] > 0
        assert measured["seconds_per_1000"] > 0
        assert measured["parameters"] > 1000
        assert trained["epochs"] == pytest.approx(2, abs=0.1)
        assert trained["steps"] > 20
        assert len(trained["training"]["nats"]) == len(trained["training"]["minutes"]) > 5
        assert len(trained["validation"]["nats"]) == len(trained["validation"]["minutes"]) > 2
        assert len(measured["samples"]) == 3
        assert one["rates"] == [trained]
    [neighbours] = report["neighbours"]
    assert (neighbours["first"], neighbours["second"]) == (SMALL, WIDE)
    assert [test["metric"] for test in neighbours["tests"]] == ["BLEU", "chrF2"]
    assert all(0 < test["p"] <= 1 for test in neighbours["tests"])


def test_the_models_had_the_same_data_tokenizer_batches_and_budget(whole, report):
    first, second = (read_toml(whole / one["trained"]["run"] / "run.toml") for one in report["models"])
    assert first["files"] == second["files"]
    assert first["asked"]["seed"] == second["asked"]["seed"]
    assert first["training"]["tokens_per_step"] == second["training"]["tokens_per_step"]
    assert report["batch"] == f"{first['training']['tokens_per_step']:,} tokens"
    assert report["models"][0]["trained"]["steps"] == report["models"][1]["trained"]["steps"]
    manifests = {
        (whole / one["trained"]["run"] / "tokenizer" / "manifest.json").read_text() for one in report["models"]
    }
    assert len(manifests) == 1


def test_sentences_are_a_short_a_middle_and_a_long_one_with_attention(report):
    lengths = [len(shown["source"].split()) for shown in report["test"]["shown"]]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    for one in report["models"]:
        for shown, sample in zip(report["test"]["shown"], one["measured"]["samples"], strict=True):
            looked = sample["attention"]
            assert len(looked["read"]) == len(shown["source"].split()) + 1  # and the end
            assert all(sum(row) == pytest.approx(1, abs=0.01) for row in looked["weights"])
            assert len(looked["written"]) == len(looked["weights"])


def test_test_sentences_in_the_training_data_are_counted_and_said(whole, report):
    assert report["test"]["in_training"] == 2
    assert "2 of 42 sources" in report["test"]["leak"]
    assert "2 of 42 sources" in (whole / "report.md").read_text()
    assert "2 of 42 sources" in (whole / "report.html").read_text()


def test_the_bounds_of_the_length_buckets_are_said(whole, report):
    assert report["test"]["how"].startswith("quarters of the test set by source length")
    assert f"1–{report['test']['bounds'][0]} words" in (whole / "report.md").read_text()


def test_translations_stand_beside_the_model_and_can_be_scored(whole, corpus, report, capsys):
    file = whole / "transformer_width=16" / "translations.txt"
    assert main(["score", "none", str(corpus / "test.source"), str(corpus / "test.target"), "--hypotheses", str(file),
                 "--json"]) == 0  # fmt: skip
    found = {score["name"]: score["value"] for score in json.loads(capsys.readouterr().out)["scores"]}
    ours = {score["name"]: score["value"] for score in report["models"][0]["measured"]["scores"]}
    assert found["BLEU"] == ours["BLEU"]
    assert found["chrF2"] == ours["chrF2"]


def test_the_page_loads_nothing_and_runs_nothing(whole):
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']?\s*(?!\#|["']\#)""", page)  # but for marks within the page itself
    assert not re.search(r"url\((?!#)|@import|<script|<link|<iframe", page)
    assert "default-src 'none'" in page
    assert page.count("<svg") == 3
    assert page.count("</svg>") == 3
    ids = re.findall(r'<clipPath id="(\w+)"', page)
    assert len(ids) == len(set(ids))  # three drawings in one page do not share their names
    assert page.count("<figure") == 6  # three sentences, two models


# ── again ─────────────────────────────────────────────────────────────────────────────────


def times(out, model):
    return {path: path.stat().st_mtime_ns for path in (out / model / "run").rglob("*") if path.is_file()}


def test_a_finished_comparison_is_told_again_without_training(whole, corpus, capsys):
    before = times(whole, "transformer_width=16") | times(whole, "transformer_width=24")
    began = time.monotonic()
    assert main(arguments_for(corpus, whole, "--json")) == 0
    assert time.monotonic() - began < 20  # seconds; far fewer on an idle machine
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {event["event"] for event in events} == {"notice", "compared"}
    assert f"{SMALL} is trained already (run): all" in events[1]["sentence"]
    assert events[-1]["report"] == json.loads((whole / "report.json").read_text(encoding="utf-8"))
    assert before == times(whole, "transformer_width=16") | times(whole, "transformer_width=24")


def test_killed_in_the_middle_it_goes_on_and_ends_the_same(corpus, report, tmp_path):
    """SIGKILL while the second model is in training; the first is not trained again, the second ends as if nothing."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "dragoman", *arguments_for(corpus, out, "--json")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        second = False
        for line in process.stdout:
            event = json.loads(line)
            second = second or (event["event"] == "stage" and event["model"] == WIDE)
            if second and event["event"] == "report" and event["step"] >= 10:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (out / "report.json").exists()
    before = times(out, "transformer_width=16")
    found = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert found.returncode == 0, found.stderr
    events = [json.loads(line) for line in found.stdout.splitlines()]
    assert before == times(out, "transformer_width=16")
    assert [event["model"] for event in events if event["event"] == "stage"] == [WIDE, WIDE]  # training, measuring
    assert any("going on from step" in event.get("sentence", "") for event in events)
    for ours, theirs in zip(events[-1]["report"]["models"], report["models"], strict=True):
        assert ours["measured"]["scores"] == theirs["measured"]["scores"]
        assert ours["trained"]["validation_nats"] == theirs["trained"]["validation_nats"]


def test_another_test_set_is_measured_without_training(corpus, tmp_path, whole, capsys):
    shutil.copytree(whole, tmp_path / "out")
    arguments = arguments_for(corpus, tmp_path / "out", "--json", models=SMALL)
    place = arguments.index("--test")
    arguments[place + 1 : place + 3] = [str(corpus / "valid.source"), str(corpus / "valid.target")]
    assert main(arguments) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["doing"] for event in events if event["event"] == "stage"] == ["measuring"]
    assert events[-1]["report"]["test"]["sentences"] == 30
    assert len(events[-1]["report"]["models"]) == 1  # a table of one is a table
    assert events[-1]["report"]["neighbours"] == []


# ── three rates ───────────────────────────────────────────────────────────────────────────


def test_three_rates_are_tried_and_the_best_by_validation_counts(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(arguments_for(corpus, out, "--rates", "3", models=SMALL)) == 0
    text = capsys.readouterr()
    assert text.out.count("chosen") == 2  # in the note, and beside one of the rates
    assert "compare  3 of 3" in text.err
    [one] = json.loads((out / "report.json").read_text(encoding="utf-8"))["models"]
    planned, half, double = one["rates"]
    assert half["rate"] == planned["rate"] / 2
    assert double["rate"] == planned["rate"] * 2
    assert planned["steps"] == half["steps"] == double["steps"]
    assert one["trained"]["validation_nats"] == min(run["validation_nats"] for run in one["rates"])
    shapes = [read_toml(out / run["run"] / "run.toml")["model"] for run in one["rates"]]
    assert shapes[0] == shapes[1] == shapes[2]
    [kept] = out.glob("*/run-half-rate.json")
    kept.unlink()  # as if it had been stopped just before it was kept
    assert main(arguments_for(corpus, out, "--rates", "3", models=SMALL)) == 0
    assert json.loads((out / "report.json").read_text(encoding="utf-8"))["models"][0]["rates"] == one["rates"]


# ── recurrent models ──────────────────────────────────────────────────────────────────────


def test_recurrent_models_with_and_without_attention_are_compared(corpus, tmp_path):
    out = tmp_path / "out"
    settings = [setting for setting in SETTINGS if setting.startswith("training")]
    models = "rnn:width=16,rnn+additive:width=16,rnn+dot+gru+one-way:width=16"
    assert main(arguments_for(corpus, out, models=models, settings=settings)) == 0
    found = json.loads((out / "report.json").read_text(encoding="utf-8"))
    looked = [[sample["attention"] for sample in one["measured"]["samples"]] for one in found["models"]]
    assert looked[0] == [None, None, None]
    assert all(looked[1])
    assert all(looked[2])
    assert (out / "report.html").read_text(encoding="utf-8").count("It has no attention") == 3
    assert len(found["neighbours"]) == 2


# ── parts ─────────────────────────────────────────────────────────────────────────────────


def test_what_is_kept_is_recalled_only_for_what_it_depends_on(tmp_path):
    path = tmp_path / "kept.json"
    curve = Curve([0.5, 1.0], [3.0, 2.5])
    assert recall(path, {"model": "a"}, Curve) is None
    keep(path, {"model": "a"}, curve)
    assert recall(path, {"model": "a"}, Curve) == curve
    assert recall(path, {"model": "b"}, Curve) is None
    assert recall(path, {"model": "a"}, Sample) is None  # as after an update that changed what is kept
    path.write_text("{half")
    assert recall(path, {"model": "a"}, Curve) is None


def test_the_time_left_counts_the_runs_to_come():
    from dragoman.jobs.events import Report

    report = Report(5, 10, 0.5, 3.0, 100.0, 0.01, 1.0, seconds=20.0, seconds_left=20.0)
    assert Stage("a", "training", 2, 4, 60.0).seconds_left(report) == 20 + 2 * 60
    assert Stage("a", "training", 1, 2, None).seconds_left(report) == 20 + 40
