"""`dragoman compare` as people mistype it: one line, the right exit code, and nothing begun."""

import sys
from pathlib import Path

import pytest

from dragoman.cli import main
from dragoman.cli.compare import show_table
from dragoman.cli.display import Lines, Panel
from dragoman.jobs.events import Report
from dragoman.lab.stage import Stage
from dragoman.runs.lock import only_writer
from dragoman.seeing.comparison import Table


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for side, text in (("de", "ein Hund\neine Katze\n"), ("en", "a dog\na cat\n")):
        for part in ("train", "test"):
            Path(f"{part}.{side}").write_text(text * 50)
        Path(f"empty.{side}").write_text("")
        Path(f"blank.{side}").write_text("\n\n")
    Path("short.en").write_text("a dog\n")
    Path("one.tsv").write_text("".join(f"Hund {n} bellt\tdog {n} barks\n" for n in range(60)))
    return tmp_path


TRAIN = ["train.de", "train.en"]
REST = ["--test", "test.de", "test.en", "--models", "transformer", "--out", "c"]
MINUTE = ["--minutes", "1"]


def models(names):
    return [*TRAIN, *MINUTE, "--test", "test.de", "test.en", "--out", "c", "--models", names]


def measured_on(*files):
    return [*TRAIN, *MINUTE, "--models", "transformer", "--out", "c", "--test", *files]


MISTAKES = {
    "unknown family": (models("transformr"), 2, "did you mean transformer?", "E-SET-02"),
    "unknown part": (models("transformer+smal"), 2, "did you mean small?", "E-CMP-02"),
    "unknown setting": (models("transformer:x=1"), 2, "there is no setting model.x", "E-SET-01"),
    "twice": (models("transformer,transformer"), 2, "transformer is named twice", "E-CMP-03"),
    "no models": (models(","), 2, "names no model", "E-CMP-03"),
    "zero minutes": ([*TRAIN, *REST, "--minutes", "0"], 2, "--minutes 0 is no budget", "E-CMP-01"),
    "negative epochs": ([*TRAIN, *REST, "--epochs", "-1"], 2, "--epochs -1 is no budget", "E-CMP-01"),
    "no number": ([*TRAIN, *REST, "--minutes", "nan"], 2, "--minutes nan is no budget", "E-CMP-01"),
    "no budget": ([*TRAIN, *REST], 2, "neither --minutes nor --epochs was given", "E-CMP-01"),
    "two budgets": ([*TRAIN, *REST, *MINUTE, "--epochs", "1"], 2, "both --minutes and --epochs", "E-CMP-01"),
    "steps": ([*TRAIN, *REST, *MINUTE, "--set", "training.steps=9"], 2, "training.steps is a second", "E-CMP-01"),
    "two rates": ([*TRAIN, *REST, *MINUTE, "--rates", "2"], 2, "Input should be 1 or 3", "E-SET-01"),
    "no threads": ([*TRAIN, *REST, *MINUTE, "--threads", "0"], 2, "--threads 0 cannot be", "E-USE-07"),
    "no section": ([*TRAIN, *REST, *MINUTE, "--set", "mdl.x=1"], 2, "there is no section 'mdl'", "E-SET-06"),
    "no corpus": ([*REST, *MINUTE], 2, "no files were given", "E-USE-01"),
    "no test": ([*TRAIN, *MINUTE, "--models", "transformer", "--out", "c"], 2, "--test", "E-USE-00"),
    "empty test": (measured_on("empty.de", "empty.en"), 3, "empty.de empty.en holds no sentence", "E-CMP-06"),
    "blank test": (measured_on("blank.de", "blank.en"), 3, "holds no sentence", "E-CMP-06"),
    "missing test": (measured_on("tset.de", "test.en"), 3, "tset.de does not exist", "E-DATA-04"),
    "half a test": (measured_on("test.de"), 2, "one plain file has no partner (test.de)", "E-USE-01"),
    "misaligned test": (measured_on("test.de", "short.en"), 3, "test.de has 100 lines", "E-DATA-01"),
    "misaligned": (["train.de", "short.en", *REST, *MINUTE], 3, "train.de has 100 lines", "E-DATA-01"),
    "validation": ([*TRAIN, *REST, *MINUTE, "--valid", "test.de", "short.en"], 3, "test.de has 100", "E-DATA-01"),
}


def refusal(arguments, capsys):
    code = main(["compare", *arguments])
    error = capsys.readouterr().err
    assert error.startswith("dragoman: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return code, error


@pytest.mark.parametrize(("arguments", "code", "words", "id"), MISTAKES.values(), ids=MISTAKES)
@pytest.mark.usefixtures("here")
def test_a_mistake_is_found_before_anything_is_begun(arguments, code, words, id, capsys):
    found, error = refusal(arguments, capsys)
    assert (found, words in error) == (code, True), error
    assert error.rstrip().endswith(f"[{id}]")
    assert not Path("c").exists()


@pytest.mark.usefixtures("here")
def test_without_matplotlib_the_way_out_is_said(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, error = refusal([*TRAIN, *REST, *MINUTE], capsys)
    assert code == 4
    assert "pip install 'dragoman[plot]' [E-CMP-07]" in error
    assert not Path("c").exists()


@pytest.mark.usefixtures("here")
def test_a_folder_in_use_is_refused(capsys):
    with only_writer(Path("c")):
        code, error = refusal([*TRAIN, *REST, *MINUTE], capsys)
    assert code == 4
    assert error.rstrip().endswith("[E-RUN-03]")


@pytest.mark.usefixtures("here")
def test_a_comparison_begun_otherwise_is_refused_by_what_differs(capsys):
    from dragoman.lab.asked import Asked, refuse_another

    fields = {"corpora": TRAIN, "test": REST[1:3], "models": "transformer", "out": "c", "minutes": 5}
    Path("c").mkdir()
    refuse_another(Asked.read(fields, section="compare"))
    code, error = refusal([*TRAIN, *REST, *MINUTE, "--seed", "3"], capsys)
    assert code == 2
    assert "c was begun otherwise: minutes was 5.0 and is now 1.0; seed was 1 and is now 3." in error
    assert "choose another --out [E-CMP-04]" in error
    Path("train.de").write_text("ein Wolf\n" * 100)
    code, error = refusal([*TRAIN, *REST, "--minutes", "5"], capsys)
    assert code == 2
    assert "files was" in error


@pytest.mark.usefixtures("here")
def test_one_file_corpora_are_taken_as_train_takes_them(capsys):
    arguments = ["one.tsv", "--test", "one.tsv", "--models", "transformer:width=16:heads=2:layers=1:hidden=16"]
    code = main(["compare", *arguments, "--out", "c", "--epochs", "1", "--threads", "1"])
    found = capsys.readouterr()
    assert code == 0, found.err
    assert "60 of 60 sources of one.tsv also stand in one.tsv" in found.err
    assert found.out.splitlines()[-1] == str(Path("c") / "report.html")


# ── what is shown ─────────────────────────────────────────────────────────────────────────


REPORT = Report(10, 10, 0.5, 3.0, 100.0, 0.01, 1.0, seconds=60.0, seconds_left=60.0)


@pytest.mark.parametrize("display", [Lines, Panel])
def test_progress_says_which_model_of_how_many_and_the_time_of_all(display, capsys):
    shown = display()
    with shown:
        shown.show(Stage("transformer+tiny", "training", 2, 4, 300.0))
        shown.show(REPORT)
    error = " ".join(capsys.readouterr().err.split())
    assert "compare 2 of 4 · transformer+tiny · training" in error
    assert "1:00 left, 11:00 in all" in error


def test_a_table_on_a_terminal_shows_names_as_they_are(capsys):
    show_table(Table("Scores", "a note", ["model", "BLEU"], [["rnn[bold]+dot", "36.5 ± 1.2"]]))
    text = capsys.readouterr().out
    assert "rnn[bold]+dot" in text
    assert "36.5 ± 1.2" in text
    assert "a note" in text
