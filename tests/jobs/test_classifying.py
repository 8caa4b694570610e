"""Labelled texts in, a classifier out: by the commands that people type."""

import json
import random
import sys

import pytest
import torch

import dragoman
from dragoman.cli import main
from dragoman.jobs.events import Finished, Validation
from dragoman.jobs.labelling import LabelledData
from dragoman.jobs.request import Request
from dragoman.jobs.start import start
from dragoman.runs.model import open_model
from dragoman.runs.weights import read_tensors, weights_of

GOOD, BAD = ("lovely", "warm", "funny", "bright"), ("dull", "cold", "boring", "flat")
FILLER = ("the", "film", "is", "a", "story", "and", "it", "was", "so", "very")
STEPS = [f"--set=training.{value}" for value in ("steps=60", "tokens_per_step=256", "rate=0.01")] + ["--threads", "1"]
SIZES = {
    "bag": ["--set", "model.width=16", "--set", "training.rate=0.05"],
    "rnn": ["--set", "model.width=16", "--set", "model.embedding=16"],
    "bert": [f"--set=model.{size}" for size in ("width=16", "heads=2", "layers=1", "hidden=32", "longest=24")],
}
HOSTILE = [
    "",
    "   ",
    "lovely\r",
    "\u2028 dull \x0b",
    "x" * 5000,
    "lovely " * 400,
    "\x00\x1b[31m",
    "a\tb\tc",
    "日本語 🙂",
    "[SEP] </s>",
]


def sentence(rng, words):
    found = [rng.choice(words), *rng.choices(FILLER, k=rng.randint(3, 9))]
    rng.shuffle(found)
    return " ".join(found)


def review(rng):
    label = rng.choice(["good", "bad"])
    return f"{label}\t{sentence(rng, GOOD if label == 'good' else BAD)}"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("classify"), random.Random(0)
    lines = [review(rng) for _ in range(500)]
    (folder / "train.tsv").write_text("".join(f"{line}\n" for line in lines[:400]))
    (folder / "valid.txt").write_text("".join(f"{line}\n" for line in lines[400:]).replace("\t", " "))
    return folder


def train(here, out, *words, corpus="train.tsv"):
    return main(["train", str(here / corpus), "--out", str(here / out), "--task", "classify", *STEPS, *words])


@pytest.fixture(scope="module", params=SIZES)
def run(request, here):
    family = request.param
    assert train(here, family, "--family", family, "--valid", str(here / "valid.txt"), *SIZES[family]) == 0
    return here / family


def test_every_family_learns_from_labelled_lines(run, here, capsys):
    assert main(["score", str(run), str(here / "valid.txt"), "--json", "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["texts"] == 100
    assert found["accuracy"] > 0.9
    assert found["interval"][0] < found["accuracy"] <= found["interval"][1]
    assert [one["label"] for one in found["classes"]] == ["bad", "good"]
    assert sum(map(sum, found["confusion"])) == 100


def test_labels_come_with_probabilities(run, capsys):
    assert main(["classify", str(run), "the film is lovely", "so dull", "--threads", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["good", "bad"]
    assert all(0.5 <= float(line.split("\t")[1]) <= 1 for line in lines)
    assert main(["classify", str(run), "so dull", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["label"] == "bad"
    assert list(found["probabilities"]) == ["bad", "good"]
    assert sum(found["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_one_line_in_one_line_out(run, capsys, monkeypatch, tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(HOSTILE) + "\n", encoding="utf-8")
    assert main(["classify", str(run), "--input", str(tmp_path / "in.txt")]) == 0
    from_file = capsys.readouterr().out
    assert from_file.count("\n") == len(HOSTILE)
    with (tmp_path / "in.txt").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["classify", str(run)]) == 0
    assert capsys.readouterr().out == from_file


def test_a_text_is_labelled_alike_alone_and_among_others(run):
    classifier = dragoman.load(run)
    texts = [text for text in HOSTILE if text.strip()]
    together = classifier.classify(texts)
    for text, one in zip(texts, together, strict=True):
        [alone] = classifier.classify([text])
        assert alone.probability == pytest.approx(one.probability, abs=1e-5)
    assert classifier.classify([]) == []


def test_a_text_longer_than_bert_reads_is_read_in_parts_and_said(here, capsys):
    run = here / "bert"
    if not run.exists():
        pytest.skip("its training is another test's")
    assert main(["classify", str(run), "dull " * 60]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("bad\t")
    assert "line 1 has" in told.err
    assert "read in" in told.err


# ── runs ──────────────────────────────────────────────────────────────────────────────────


def request_for(here, out, **changes):
    settings = {
        "model": {"width": 16},
        "training": {"steps": 40, "tokens_per_step": 256, "validate_every": 20, "save_every": 10},
    }
    return Request(corpora=[str(here / "train.tsv")], out=str(out), family="bag", settings={**settings, **changes})


@pytest.fixture(scope="module")
def bag(here, tmp_path_factory):
    """A run, and all that was told about it."""
    out = tmp_path_factory.mktemp("bag") / "run"
    return out, list(start(request_for(here, out), threads=1))


def test_the_family_bag_tells_the_task_and_a_part_is_split_off(bag):
    out, events = bag
    assert isinstance(events[-1], Finished)
    validation = next(event for event in events if isinstance(event, Validation))
    assert {"accuracy", "macro_f1"} == validation.scores.keys()
    assert all(sample.reference in ("good", "bad") for sample in validation.samples)
    data = LabelledData.reopen(
        out, {"model": {"classes": ["bad", "good"]}, "plan": {"split_off": True}, "tokenizer": {}}
    )
    assert 10 < len(data.valid) < 90
    assert len(data.valid) + len(data.train) == 400
    held = {text for _, text in data.valid_texts}
    learned = {data.tokenizers.target.decode(data.train[row][0].tolist()) for row in range(len(data.train))}
    assert not held & learned


def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(here, bag, tmp_path):
    events = start(request_for(here, tmp_path / "halved"), threads=1)
    next(event for event in events if isinstance(event, Validation))
    events.close()
    list(start(request_for(here, tmp_path / "halved"), threads=1))
    last = "checkpoints/step-00000040/weights.safetensors"
    a, b = read_tensors(bag[0] / last), read_tensors(tmp_path / "halved" / last)
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_what_bert_has_read_is_the_start_of_a_classifier(here, tmp_path, capsys):
    rng = random.Random(1)
    text = tmp_path / "text.txt"
    text.write_text("".join(sentence(rng, GOOD + BAD) + "\n" for _ in range(300)))
    filler, out = tmp_path / "filler", tmp_path / "classifier"
    assert main(["train", str(text), "--family", "bert", "--out", str(filler), *STEPS, *SIZES["bert"]]) == 0
    words = ["train", str(here / "train.tsv"), "--task", "classify", "--from", str(filler), "--out", str(out)]
    assert main([*words, *STEPS, "--set", "training.steps=100"]) == 0
    assert "first pooling, 2 classes" in capsys.readouterr().err
    old, new = open_model(filler).model, read_tensors(out / "checkpoints" / "step-00000100" / "weights.safetensors")
    learned = {f"reader.{name}" for name in weights_of(old.reader)}
    assert {name for name in new if name.startswith("reader.")} == learned
    assert main(["score", str(out), str(here / "valid.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.8
    assert main(["embed", str(out), "a lovely film", "--json"]) == 0  # it is a reader still


def test_a_reader_is_taken_over_exactly_and_the_head_is_new(here):
    from dragoman.models import build
    from dragoman.models.bert import BertConfig
    from dragoman.models.bert_classifier import BertClassifierConfig
    from dragoman.runs.weights import take_over

    sizes = {"vocabulary": 20, "width": 8, "heads": 2, "layers": 1, "hidden": 16, "longest": 10}
    old, new = build(BertConfig(**sizes)), build(BertClassifierConfig(**sizes, classes=("a", "b")))
    head = new.to_classes.weight.clone()
    take_over(new, old, here)
    theirs = weights_of(old.reader)
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in weights_of(new.reader).items())
    assert torch.equal(new.to_classes.weight, head)


def test_a_classifier_goes_on_with_the_labels_it_has(here, bag, tmp_path, capsys):
    first = bag[0]
    words = ["train", str(here / "train.tsv"), "--from", str(first), "--out", str(tmp_path / "second"), *STEPS]
    assert main(words) == 0
    assert "2 classes" in capsys.readouterr().err
    strange = tmp_path / "strange.tsv"
    strange.write_text("good\tlovely\nawful\tdull film\n" * 20)
    assert main(["train", str(strange), "--from", str(first), "--out", str(tmp_path / "no"), *STEPS]) == 3
    assert "[E-CLS-04]" in capsys.readouterr().err


# ── other files ───────────────────────────────────────────────────────────────────────────


def test_labels_may_be_numbers_of_json_and_texts_may_come_in_twos(tmp_path):
    rows = [{"label": n % 2, "text": f"{'yes' if n % 2 else 'no'} it is\tsecond {n}"} for n in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    size = {"width": 8, "heads": 2, "layers": 1, "hidden": 8}
    request = Request(
        corpora=[str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")],
        out=str(tmp_path / "run"),
        task="classify",
        family="bert",
        settings={"model": size, "training": {"steps": 3}},
    )
    events = list(start(request, threads=1))
    assert isinstance(events[-1], Finished)
    assert any("1 text has no words" in str(event) for event in events)
    classifier = dragoman.load(tmp_path / "run")
    assert classifier.classes == ("0", "1")
    one, two = classifier.classify(["yes it is\tsecond", "yes it is second"])
    assert one.probability != two.probability


def test_numbers_are_in_the_order_of_numbers():
    from dragoman.text.labels import in_order

    assert in_order(["10", "9", "2"]) == ("2", "9", "10")
    assert in_order(["b", "10", "9"]) == ("10", "9", "b")


# ── scores ────────────────────────────────────────────────────────────────────────────────


def test_scores_are_those_of_the_definitions():
    from dragoman.evaluation.confusion import confusion_of, wilson

    found = confusion_of(("a", "b", "c"), [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 2])
    assert found.counts.tolist() == [[2, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert found.accuracy == pytest.approx(4 / 6)
    assert [round(one.f1, 4) for one in found.by_class] == [0.6667, 0.5, 1.0]
    assert found.macro_f1 == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert confusion_of(("a", "b", "c"), [0, 1], [0, 1]).macro_f1 == 1.0  # c is neither there nor given
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe 1998, table I
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == pytest.approx(1.0)


def test_the_table_and_the_plot(here, bag, tmp_path, capsys):
    for name in ("c.png", "c.svg"):
        assert main(["score", str(bag[0]), str(here / "valid.txt"), "--plot", str(tmp_path / name)]) == 0
    told = capsys.readouterr().out
    for word in ("100 texts", "95 % interval", "Wilson", "macro-F1", "precision", "recall", "right label in rows"):
        assert word in told
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "given label" in (tmp_path / "c.svg").read_text()
    assert main(["score", str(bag[0]), str(here / "valid.txt"), "--plot", "c.pdf"]) == 2
    assert "[E-CLS-06]" in capsys.readouterr().err


def test_a_plot_without_matplotlib_ends_before_the_work(here, bag, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["score", str(bag[0]), str(here / "valid.txt"), "--plot", "c.png"]) == 4
    assert "pip install 'dragoman[plot]'" in capsys.readouterr().err


# ── mistakes ──────────────────────────────────────────────────────────────────────────────


MISTAKES = {
    "no label": ("good\tyes\n\tlonely\n" * 5, 3, "line 2 has no label", "E-CLS-01"),
    "no tab": (
        "good\tyes\nwords only\n",
        3,
        "line 2 has no label ('words only'); each line is label<TAB>text",
        "E-CLS-01",
    ),
    "one word": ("good yes\nalone\n", 3, "each line is label<SPACE>text", "E-CLS-01"),
    "empty": ("", 3, "holds no labelled text", "E-CLS-02"),
    "blank": ("\n \n", 3, "holds no labelled text", "E-CLS-02"),
    "one class": ("good\tyes\n" * 9, 3, "all 9 texts of bad have the label 'good'", "E-CLS-03"),
    "a text": ("".join(f"word{n} and more\n" for n in range(50)), 3, "50 different labels (word0, word1", "E-CLS-05"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_unfit_labels_are_said_in_one_sentence(mistake, tmp_path, capsys):
    text, code, words, error = MISTAKES[mistake]
    (tmp_path / "bad.txt").write_text(text)
    out = str(tmp_path / "run")
    assert main(["train", str(tmp_path / "bad.txt"), "--task", "classify", "--out", out, "--threads", "1"]) == code
    [told] = capsys.readouterr().err.splitlines()
    assert words in told
    assert told.endswith(f"[{error}]")


def test_an_unknown_label_is_named_with_its_line_and_the_known_ones(here, bag, tmp_path, capsys):
    (tmp_path / "test.txt").write_text("good\tlovely\nugly\tdull\n")
    assert main(["score", str(bag[0]), str(tmp_path / "test.txt")]) == 3
    told = capsys.readouterr().err
    assert "test.txt: line 2 has the label 'ugly'" in told
    assert "(known: bad, good)" in told
    assert "[E-CLS-04]" in told
    words = ["train", str(here / "train.tsv"), "--family", "bag", "--valid", str(tmp_path / "test.txt")]
    assert main([*words, "--out", str(tmp_path / "run"), *STEPS]) == 3
    assert "test.txt: line 2 has the label 'ugly'" in capsys.readouterr().err


OTHER_MISTAKES = {
    "not JSON": (["train", "{jsonl}", "--task", "classify"], 3, "line 1 is not JSON", "E-CLS-01"),
    "no text": (["train", "{half}", "--task", "classify"], 3, 'each line is {"label": …, "text": …}', "E-CLS-01"),
    "foreign": (["train", "{csv}", "--task", "classify"], 2, "holds no labels", "E-USE-01"),
    "classes": (["train", "{ok}", "--family", "bag", "--set", "model.classes=x"], 2, "model.classes", "E-SET-01"),
    "search": (
        ["train", "{ok}", "--family", "bag", "--set", "search.beam=2"],
        2,
        "search.beam is not read",
        "E-SET-06",
    ),
    "a translator": (["translate", "{run}", "x"], 3, "use it with dragoman classify", "E-RUN-10"),
    "both": (["classify", "{run}", "x", "--input", "{ok}"], 2, "both given", "E-USE-06"),
    "a plot of no classifier": (
        ["score", "{ok}.none", "{ok}", "--plot", "x.png"],
        2,
        "is none; leave it out",
        "E-CLS-06",
    ),
    "no model": (["classify", "{ok}.none", "x"], 3, "there is no model at", "E-RUN-04"),
}


@pytest.mark.parametrize("mistake", OTHER_MISTAKES)
def test_other_mistakes(mistake, here, bag, tmp_path, capsys):
    words, code, told, error = OTHER_MISTAKES[mistake]
    (tmp_path / "bad.jsonl").write_text("good\tyes\n")
    (tmp_path / "half.jsonl").write_text('{"label": "good"}\n')
    (tmp_path / "bad.csv").write_text("good,yes\n")
    names = {
        "jsonl": tmp_path / "bad.jsonl", "half": tmp_path / "half.jsonl", "csv": tmp_path / "bad.csv",
        "ok": here / "train.tsv", "run": bag[0],
    }  # fmt: skip
    found = main([word.format(**names) for word in words])
    said = capsys.readouterr().err.splitlines()[-1]
    assert (found, told in said, said.endswith(f"[{error}]")) == (code, True, True), said


def test_bytes_that_are_not_utf8_have_a_label_too(bag, tmp_path, capsys, monkeypatch):
    (tmp_path / "in.txt").write_bytes(b"lovely\nnot \xff utf-8")
    with (tmp_path / "in.txt").open("rb") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["classify", str(bag[0])]) == 0
    assert capsys.readouterr().out.count("\n") == 2
