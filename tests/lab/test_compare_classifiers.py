"""Classifiers on equal terms: the same command, with accuracies, McNemar's test and the items on which they differ."""

import json
import random

import pytest

from dragoman.cli import main
from dragoman.errors import UsageError
from dragoman.lab.classifiers import mcnemar
from dragoman.lab.names import PARTS, read_names

FRUITS, TOOLS = ["apple", "pear", "plum", "cherry", "fig"], ["hammer", "saw", "drill", "pliers", "file"]
SETTINGS = ["model.width=16", "training.tokens_per_step=256", "tokenizer.kind=words"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("labelled"), random.Random(1)
    for part, count in (("train", 400), ("valid", 40), ("test", 60)):
        lines = []
        for _ in range(count):
            label, words = rng.choice([("fruit", FRUITS), ("tool", TOOLS)])
            lines.append(f"{label}\t{' '.join([*rng.choices(words, k=3), *rng.choices(FRUITS + TOOLS, k=3)])}\n")
        (folder / f"{part}.txt").write_text("".join(lines))
    (folder / "known.txt").write_text((folder / "train.txt").read_text().split("\n")[0] + "\n")
    (folder / "other.txt").write_text("metal\tsome words\n")
    (folder / "empty.txt").write_text("")
    return folder


def arguments_for(files, out, *more, models="bag,bag+attention:dropout=0.1,rnn", test="test"):
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    return ["compare", str(files / "train.txt"), "--valid", str(files / "valid.txt"), "--test",
            str(files / f"{test}.txt"), "--task", "classify", "--models", models, "--out", str(out), "--epochs", "3",
            "--threads", "1", *sets, *more]  # fmt: skip


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "out"
    assert main(arguments_for(files, out)) == 0
    return out


def test_the_report_has_accuracies_intervals_and_labels(whole, files):
    report = json.loads((whole / "report.json").read_text(encoding="utf-8"))
    assert report["task"] == "classify"
    labels = [line.split("\t")[0] for line in (files / "test.txt").read_text().splitlines()]
    for one in report["models"]:
        accuracy, macro_f1 = one["measured"]["scores"]
        given = (whole / one["trained"]["run"]).parent / "labels.txt"
        right = sum(a == b for a, b in zip(given.read_text().split(), labels, strict=True))
        assert accuracy["value"] == pytest.approx(100 * right / 60)
        low, high = one["measured"]["interval"]
        assert 0 <= low < right / 60 <= high <= 1
        assert {score["label"] for score in one["measured"]["by_class"]} == {"fruit", "tool"}
        assert 0 < macro_f1["value"] <= 100
        assert one["trained"]["tokens_per_second"] > 0
    assert [pair["tests"][0]["signature"] for pair in report["neighbours"]] == ["McNemar, exact, one-sided"] * 2
    assert report["test"]["items"] == 60
    assert len({one["trained"]["epochs"] for one in report["models"]}) == 1


def test_the_page_and_the_text_say_the_same(whole):
    text, page = (whole / "report.md").read_text(), (whole / "report.html").read_text()
    for words in ("Scores", "By label", "Where they differ", "What it took", "McNemar", "bag+attention"):
        assert words in text, words
        assert words in page, words
    assert "Sentence 1" not in page
    assert "no attention" not in page
    assert page.count("<svg") == 2  # scores and losses; there are no lengths of sources
    assert "plots/lengths" not in text
    assert (whole / "plots" / "scores.png").read_bytes().startswith(b"\x89PNG")


def test_it_is_told_again_without_training_and_items_that_were_trained_on_are_counted(whole, files, capsys):
    assert main(arguments_for(files, whole, "--json", models="bag", test="known")) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["doing"] for event in events if event["event"] == "stage"] == ["measuring"]
    assert "1 of 1 items of known.txt also stand in the training data" in events[-1]["report"]["test"]["leak"]
    assert main(arguments_for(files, whole)) == 0


def test_three_rates_are_tried(files, tmp_path):
    assert main(arguments_for(files, tmp_path / "out", "--rates", "3", models="bag")) == 0
    [one] = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["models"]
    assert [run["rate"] / one["rates"][0]["rate"] for run in one["rates"]] == [1, 0.5, 2]


@pytest.mark.parametrize(
    ("models", "test", "code", "words"),
    [
        ("bag,transformer", "test", 2, "learns to translate, not to classify"),
        ("bag+dot", "test", 2, "the family bag has no part 'dot'"),
        ("bag,bag+mean", "test", 2, "bag and bag+mean are equal"),
        ("bag", "empty", 3, "empty.txt holds no labelled item; give --test what to measure on"),
        ("bag", "missing", 3, "missing.txt does not exist"),
    ],
)
def test_a_mistake_is_found_before_anything_is_begun(files, tmp_path, models, test, code, words, capsys):
    assert main(arguments_for(files, tmp_path / "out", models=models, test=test)) == code
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_label_that_was_never_trained_is_named(whole, files, capsys):
    assert main(arguments_for(files, whole, models="bag", test="other")) == 3
    assert (
        "the test set has the label 'metal' and the training data have not (known: fruit, tool)"
        in capsys.readouterr().err
    )
    assert main(arguments_for(files, whole)) == 0


def test_every_part_of_a_classifier_is_a_setting_it_has():
    for family, parts in PARTS["classify"].items():
        for part, (key, value) in parts.items():
            [model] = read_names(f"{family}+{part}", "classify")
            assert getattr(model.config(), key) == value
    with pytest.raises(UsageError, match="sets cell to both gru and lstm"):
        read_names("rnn+gru+lstm", "classify")


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (0, 5, 1 / 32), (1, 9, 11 / 1024), (9, 1, 11 / 1024), (9900, 10_100, 0.07969)],
)
def test_mcnemar_is_a_fair_coin_over_the_items_that_one_alone_gets_right(b, c, p):
    labels = ["x"] * (b + c + 7)
    first = ["x"] * b + ["y"] * c + ["x"] * 4 + ["y"] * 3
    second = ["y"] * b + ["x"] * c + ["x"] * 4 + ["y"] * 3
    found = mcnemar(first, second, labels)
    assert found.p == pytest.approx(p, rel=1e-3)
    assert found.second - found.first == pytest.approx(100 * (c - b) / len(labels))
